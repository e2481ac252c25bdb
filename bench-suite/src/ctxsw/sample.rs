//! Floor 3, bench-suite. Owns the seconds of `ctxsw`: what is read, discarded, added up and printed. May read the
//! kernel's idle counters.

use super::pairs::{Binding, Mode, Pairs};
use crate::command::say;
use crate::engine::interrupt;
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
    /// The least and the most of a task in any measured second.
    pub(super) least: u64,
    pub(super) most: u64,
    /// How often a CPU went idle for each message, if the kernel counts that.
    pub(super) idle_per_op: Option<f64>,
    /// Idle time of all CPUs in percent, over the whole run.
    pub(super) idle_percent: Option<f64>,
}

/// Runs `tasks` pairs and reads their counters every second. With `original` prints as the original does.
pub(super) fn measure(
    mode: Mode,
    binding: Binding,
    tasks: usize,
    seconds: u64,
    original: bool,
) -> Result<Outcome, Trouble> {
    let tell = |text: &str| if original { say(text) } else { Ok(()) };
    let stat = cpu_times();
    tell("testcase:Context switch via pipes\n")?;
    let pairs = Pairs::start(mode, binding, tasks)?;
    tell("warmup\n")?;
    let mut before = pairs.counts();
    let (mut sum, mut least, mut most) = (0u64, u64::MAX, 0);
    let mut idle = None;
    let mut done = 0;
    for second in 0..DISCARDED + seconds {
        if second == DISCARDED {
            tell("measurement\n")?;
            idle = idle_entries();
        }
        std::thread::sleep(Duration::from_secs(1));
        let now = pairs.counts();
        let made = now.iter().zip(&before).map(|(now, before)| now - before);
        let (min, max) = made
            .clone()
            .fold((u64::MAX, 0), |(min, max), n| (min.min(n), max.max(n)));
        let total: u64 = made.sum();
        before = now;
        tell(&format!("min:{min} max:{max} total:{total}\n"))?;
        if second >= DISCARDED {
            (sum, least, most) = (sum + total, least.min(min), most.max(max));
            done += 1;
        }
        if interrupt::asked() {
            break;
        }
    }
    let entries = idle
        .zip(idle_entries())
        .map(|(before, now)| now.saturating_sub(before));
    let average = sum / done.max(1);
    tell(&format!("average:{average}\n"))?;
    drop(pairs);
    Ok(Outcome {
        average,
        least: if done == 0 { 0 } else { least },
        most,
        idle_per_op: entries
            .filter(|_| sum > 0)
            .map(|entries| entries as f64 / sum as f64),
        idle_percent: stat
            .zip(cpu_times())
            .map(|((all, idle), (all_now, idle_now))| {
                100.0 * (idle_now - idle) as f64 / ((all_now - all).max(1)) as f64
            }),
    })
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
