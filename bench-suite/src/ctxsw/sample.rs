//! Floor 3, bench-suite. Owns the seconds of the original's course: what is read, discarded, added up and printed; and
//! how idle CPUs are. May read the kernel's idle counters.

use super::pairs::{Mode, Pairs};
use crate::command::say;
use crate::engine::interrupt;
use crate::engine::job::Pin;
use crate::trouble::Trouble;
use std::fs;
use std::time::Duration;

/// Seconds before the measured ones. (The original means five; its count is one off.)
pub(super) const DISCARDED: u64 = 6;

/// What one run gave.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outcome {
    /// Messages a second, all tasks: the sum of the measured seconds over their number.
    pub(super) average: u64,
    /// Idle time of all CPUs in percent, over the whole run.
    pub(super) idle_percent: Option<f64>,
}

/// Runs `tasks` pairs and reads their counters every second. With `original` prints as the original does. What is
/// interrupted, or loses a task, gives no average.
pub(super) fn measure(
    mode: Mode,
    pin: Pin,
    tasks: usize,
    seconds: u64,
    original: bool,
) -> Result<Outcome, Trouble> {
    let tell = |text: &str| if original { say(text) } else { Ok(()) };
    let idle = Idle::now();
    tell("testcase:Context switch via pipes\n")?;
    let mut pairs = Pairs::start(mode, pin, tasks)?;
    tell("warmup\n")?;
    let mut before = pairs.counts();
    let mut sum = 0u64;
    for second in 0..DISCARDED + seconds {
        if second == DISCARDED {
            tell("measurement\n")?;
        }
        std::thread::sleep(Duration::from_secs(1));
        pairs.alive()?;
        if interrupt::asked() {
            return Err(Trouble::Interrupted(
                "interrupted: the run in progress gives no average".to_owned(),
            ));
        }
        let now = pairs.counts();
        let made = now.iter().zip(&before).map(|(now, before)| now - before);
        let (min, max) = made
            .clone()
            .fold((u64::MAX, 0), |(min, max), n| (min.min(n), max.max(n)));
        let total: u64 = made.sum();
        before = now;
        tell(&format!("min:{min} max:{max} total:{total}\n"))?;
        if second >= DISCARDED {
            sum += total;
        }
    }
    let average = sum / seconds;
    tell(&format!("average:{average}\n"))?;
    drop(pairs);
    Ok(Outcome {
        average,
        idle_percent: idle.since().1,
    })
}

/// What the kernel has counted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Idle {
    entries: Option<u64>,
    ticks: Option<(u64, u64)>,
}

impl Idle {
    /// So far.
    pub(super) fn now() -> Self {
        Idle {
            entries: idle_entries(),
            ticks: cpu_times(),
        }
    }

    /// How often CPUs have gone idle since, and what part of the time they were idle, in percent; where it is counted.
    pub(super) fn since(self) -> (Option<u64>, Option<f64>) {
        let now = Idle::now();
        let entries = self.entries.zip(now.entries);
        let ticks = self.ticks.zip(now.ticks);
        (
            entries.map(|(before, now)| now.saturating_sub(before)),
            ticks.map(|((all, idle), (all_now, idle_now))| {
                // The kernel may take back some of the time that it called idle.
                let idle = idle_now.saturating_sub(idle) as f64;
                100.0 * idle / all_now.saturating_sub(all).max(1) as f64
            }),
        )
    }
}

/// How often CPUs have gone idle.
pub(crate) fn idle_entries() -> Option<u64> {
    let mut sum = None;
    for cpu in fs::read_dir("/sys/devices/system/cpu").ok()?.flatten() {
        let Ok(states) = fs::read_dir(cpu.path().join("cpuidle")) else {
            continue;
        };
        for state in states.flatten() {
            let usage = fs::read_to_string(state.path().join("usage")).ok()?;
            *sum.get_or_insert(0) += usage.trim().parse::<u64>().ok()?;
        }
    }
    sum
}

/// Ticks of all CPUs, and how many of them were idle or waited for I/O.
fn cpu_times() -> Option<(u64, u64)> {
    times(&fs::read_to_string("/proc/stat").ok()?)
}

fn times(stat: &str) -> Option<(u64, u64)> {
    let line = stat.lines().find(|line| line.starts_with("cpu "))?;
    let ticks: Vec<u64> = line
        .split_whitespace()
        .skip(1)
        // What guests take is in the time of their hosts.
        .take(8)
        .map(str::parse)
        .collect::<Result<_, _>>()
        .ok()?;
    Some((ticks.iter().sum(), ticks.get(3)? + ticks.get(4)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_ticks() {
        let stat = "cpu  10 1 20 300 7 0 2 5 99 98\ncpu0 1 1 1 1 1 1 1 1 1 1\n";
        assert_eq!(times(stat), Some((345, 307)));
        assert_eq!(times("cpu 1 x"), None);
        assert_eq!(times(""), None);
    }
}
