//! Floor 3, bench-suite. Owns what the machine did beside a run: the clock's speed, time that a hypervisor took away,
//! the load before. May read the tree that it is given, and spins for a few milliseconds.
//!
//! The clock is told by the time of one step of a fixed chain of multiplications and additions, each of which waits for
//! the one before: the least of many short bursts, so that an interruption does not count. A virtual machine has no
//! other way to tell its clock. Time stolen is counted by the kernel in ticks, of which a short run has few: below
//! [`LEAST_TICKS`] nothing is said.

use super::sysroot::Root;
use crate::report::record::Record;
use std::hint::black_box;
use std::time::Instant;

/// Steps of a burst: some 50 µs.
const STEPS: u32 = 40_000;

/// Bursts, of which the shortest counts.
const BURSTS: usize = 40;

/// A change of the clock that is remarked on.
const CLOCK: f64 = 0.02;

/// Stolen time, in percent of the CPUs' time, that is remarked on.
pub(crate) const STEAL_PERCENT: f64 = 1.0;

/// Fewer stolen ticks than this say nothing.
const LEAST_TICKS: u64 = 3;

/// What was seen before a run.
#[derive(Debug)]
pub(crate) struct Weather {
    root: Root,
    cpus: Vec<usize>,
    load1: Option<f64>,
    ticks: Option<Ticks>,
    spin_ns: f64,
    mhz: Option<f64>,
}

/// Ticks of the CPUs in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ticks {
    all: u64,
    stolen: u64,
}

impl Ticks {
    /// From the text of `/proc/stat`.
    fn of(stat: &str, cpus: &[usize]) -> Option<Self> {
        let mut sum = Ticks { all: 0, stolen: 0 };
        for line in stat.lines() {
            let mut words = line.split_whitespace();
            let cpu = words
                .next()
                .and_then(|word| word.strip_prefix("cpu")?.parse().ok());
            if !cpu.is_some_and(|cpu: usize| cpus.contains(&cpu)) {
                continue;
            }
            // What guests take is in the time of their hosts.
            let ticks: Vec<u64> = words
                .take(8)
                .map(str::parse)
                .collect::<Result<_, _>>()
                .ok()?;
            sum.all += ticks.iter().sum::<u64>();
            sum.stolen += ticks.get(7).copied().unwrap_or(0);
        }
        (sum.all > 0).then_some(sum)
    }

    fn now(root: &Root, cpus: &[usize]) -> Option<Self> {
        Ticks::of(&root.text("proc/stat")?, cpus)
    }
}

/// The load average over one minute.
pub(crate) fn load1(root: &Root) -> Option<f64> {
    root.line("proc/loadavg")?.split(' ').next()?.parse().ok()
}

/// Nanoseconds of one step of the chain.
fn spin() -> f64 {
    let burst = || {
        let mut x = black_box(1u64);
        let start = Instant::now();
        for _ in 0..STEPS {
            // The multiplier is opaque, so that steps cannot be joined.
            x = x
                .wrapping_mul(black_box(6_364_136_223_846_793_005))
                .wrapping_add(1);
        }
        let time = start.elapsed();
        black_box(x);
        time.as_nanos() as f64 / f64::from(STEPS)
    };
    (0..BURSTS).map(|_| burst()).fold(f64::INFINITY, f64::min)
}

/// The mean clock of the CPUs, where a driver tells it.
fn mhz(root: &Root, cpus: &[usize]) -> Option<f64> {
    let of = |cpu: &usize| {
        let file = format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq");
        root.line(&file)?.parse::<f64>().ok()
    };
    let all: Vec<f64> = cpus.iter().filter_map(of).collect();
    (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64 / 1e3)
}

impl Weather {
    /// Looks before a run.
    pub(crate) fn before() -> Self {
        let root = Root::here();
        let cpus = root.allowed();
        Weather {
            load1: load1(&root),
            mhz: mhz(&root, &cpus),
            spin_ns: spin(),
            ticks: Ticks::now(&root, &cpus),
            root,
            cpus,
        }
    }

    /// Looks after it, and puts both into the record.
    pub(crate) fn after(self, mut record: Record) -> Record {
        let now = Ticks::now(&self.root, &self.cpus);
        let spin_after = spin();
        if let Some(load) = self.load1 {
            record.set("load1", load);
        }
        if let (Some(before), Some(after)) = (self.mhz, mhz(&self.root, &self.cpus)) {
            record.set("mhz_before", before);
            record.set("mhz_after", after);
        }
        record.set("spin_ns_before", rounded(self.spin_ns));
        record.set("spin_ns_after", rounded(spin_after));
        if let Some(percent) = changed(self.spin_ns, spin_after) {
            record.set("clock_changed_percent", rounded(percent));
        }
        if let (Some(before), Some(now)) = (self.ticks, now) {
            let (percent, much) = stolen(before, now);
            record.set("steal_percent", rounded(percent));
            if much {
                record.set("stolen", true);
            }
        }
        record
    }
}

fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

/// By how many percent the clock is faster or slower after than before, if that is to be remarked on.
fn changed(before: f64, after: f64) -> Option<f64> {
    let change = before / after - 1.0;
    (change.abs() > CLOCK).then_some(change * 100.0)
}

/// Stolen time in percent, and whether that is too much.
fn stolen(before: Ticks, after: Ticks) -> (f64, bool) {
    let all = after.all.saturating_sub(before.all);
    let stolen = after.stolen.saturating_sub(before.stolen);
    let percent = 100.0 * stolen as f64 / all.max(1) as f64;
    (percent, percent > STEAL_PERCENT && stolen >= LEAST_TICKS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_ticks_of_the_cpus_in_use() {
        let stat = "cpu  10 1 20 300 7 0 2 50 99 98\ncpu0 1 1 1 90 1 1 1 4 9 9\ncpu1 9 9 9 9 9 9 9 9 0 0\nintr 5\n";
        let before = Ticks::of(stat, &[0]).unwrap();
        assert_eq!(
            before,
            Ticks {
                all: 100,
                stolen: 4
            }
        );
        assert_eq!(Ticks::of(stat, &[0, 1]).unwrap().stolen, 13);
        assert_eq!(Ticks::of(stat, &[7]), None);
        assert_eq!(Ticks::of("cpu0 x", &[0]), None);
        let after = |all, stolen| Ticks {
            all: before.all + all,
            stolen: before.stolen + stolen,
        };
        assert_eq!(stolen(before, after(200, 4)), (2.0, true));
        assert_eq!(stolen(before, after(1000, 10)), (1.0, false));
        // One tick of a short run is 5 %, and says nothing.
        assert_eq!(stolen(before, after(20, 1)), (5.0, false));
        assert_eq!(stolen(before, before), (0.0, false));
    }

    #[test]
    fn a_change_of_the_clock() {
        assert_eq!(changed(1.0, 1.01), None);
        assert!((changed(1.0, 1.25).unwrap() + 20.0).abs() < 1e-9, "slower");
        assert!((changed(1.0, 0.8).unwrap() - 25.0).abs() < 1e-9, "faster");
        assert!(spin() > 0.05, "the chain was optimised away");
    }
}
