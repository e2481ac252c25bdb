//! Floor 3, bench-suite. Owns how `schbench -A` seeks the pace that keeps the machine busy to a percentage. May read
//! `/proc/stat`.
//!
//! The steps are the original's: towards the target by the ratio of target and load, at most threefold up and to 0.3
//! down, a quarter of the way when near, an eighth when nearer. Once a step is below 5 % the target counts as hit and
//! the rates begin to count. (One thing is not: a goal of zero would end the pace for good, so it stays at one.)

use std::fs;

/// Ticks of all CPUs, and how many of them were idle.
pub(super) type Ticks = (u64, u64);

/// What the kernel says now.
pub(super) fn ticks() -> Option<Ticks> {
    parse(&fs::read_to_string("/proc/stat").ok()?)
}

fn parse(stat: &str) -> Option<Ticks> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let all: Result<Vec<u64>, _> = line.split_whitespace().map(str::parse).collect();
    let all = all.ok()?;
    Some((all.iter().sum(), *all.get(3)?))
}

/// Percentage of the time between two readings that was not idle.
pub(super) fn busy(before: Ticks, now: Ticks) -> Option<f64> {
    let (all, idle) = (now.0.checked_sub(before.0)?, now.1.saturating_sub(before.1));
    (all > 0).then(|| 100.0 - 100.0 * idle as f64 / all as f64)
}

/// The next goal, and whether the target is near enough to count.
pub(super) fn next(goal: u32, busy: f64, target: u32) -> (u32, bool) {
    let target = f64::from(target);
    let (factor, near) = if busy < target {
        match (target / busy.max(0.001)).min(3.0) {
            ratio if ratio < 1.2 => {
                let step = 1.0 + (ratio - 1.0) / 8.0;
                (step, step < 1.05)
            }
            ratio if ratio < 1.5 => (1.0 + (ratio - 1.0) / 4.0, false),
            ratio => (ratio, false),
        }
    } else {
        match (target / busy).max(0.3) {
            ratio if ratio > 0.9 => {
                let step = ratio + (1.0 - ratio) / 8.0;
                (step, step > 0.95)
            }
            ratio if ratio > 0.8 => (ratio + (1.0 - ratio) / 4.0, false),
            ratio => (ratio, false),
        }
    };
    let wanted = f64::from(goal) * factor;
    let rounded = if factor > 1.0 {
        wanted.ceil()
    } else {
        wanted.floor()
    };
    if rounded >= f64::from(i32::MAX) {
        // There are not enough threads for the target.
        return (goal, near);
    }
    ((rounded as u32).max(1), near)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads() {
        let before = parse("cpu  10 0 10 80 0 0 0 0 0 0\ncpu0 1 1 1 1\n").unwrap();
        assert_eq!(before, (100, 80));
        assert_eq!(busy(before, (200, 105)), Some(75.0));
        assert_eq!(busy(before, before), None);
        assert_eq!(parse("cpu 1 2"), None);
    }

    #[test]
    fn steps() {
        for (goal, load, target, next_goal, near) in [
            (100, 10.0, 90, 300, false),
            (100, 0.0, 90, 300, false),
            (100, 60.0, 81, 109, false),
            (1000, 80.0, 88, 1013, true),
            (100, 50.0, 50, 100, true),
            (100, 100.0, 10, 30, false),
            (100, 100.0, 85, 88, false),
            (1000, 100.0, 95, 956, true),
            (1, 100.0, 10, 1, false),
            (2_000_000_000, 10.0, 90, 2_000_000_000, false),
        ] {
            assert_eq!(
                next(goal, load, target),
                (next_goal, near),
                "{goal} at {load}"
            );
        }
    }

    /// A machine that is busy in proportion: the goal gets there and stays.
    #[test]
    fn it_arrives() {
        let mut goal = 10;
        for _ in 0..60 {
            goal = next(goal, f64::from(goal) / 50.0, 60).0;
        }
        assert!((2900..=3100).contains(&goal), "{goal}");
    }
}
