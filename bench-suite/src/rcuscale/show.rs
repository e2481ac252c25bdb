//! Floor 3, bench-suite. Owns what `rcuscale` prints as the original: its words, and those of the script that reads them.
//! Touches nothing else.

use super::kfree;
use super::writers::{LEAST, Outcome};
use super::{Ask, Setup};
use std::fmt::Write;

/// The first line.
pub(super) fn parameters(name: &str, ask: &Ask, setup: &Setup) -> String {
    format!(
        "{name}-scale:--- Start of test: gp_async={} gp_async_max={} gp_exp=0 holdoff={} minruntime={} nreaders={} nwriters={} writer_holdoff={} writer_holdoff_jiffies=0 verbose=1 shutdown=0\n",
        u8::from(ask.gp_async),
        ask.gp_async_max,
        ask.holdoff,
        ask.minruntime,
        setup.readers,
        setup.writers,
        ask.writer_holdoff
    )
}

/// What the kernel prints, then what its script makes of that.
pub(super) fn original(name: &str, outcome: &Outcome) -> String {
    let mut text = String::new();
    for writer in 0..outcome.durations.len() {
        let _ = writeln!(
            text,
            "{name}-scale: rcu_scale_writer {writer} has {LEAST} measurements"
        );
    }
    let _ = writeln!(text, "{name}-scale: Test complete");
    let mut gps = 0;
    for (writer, own) in outcome.durations.iter().enumerate() {
        let _ = writeln!(text, "{name}-scale: writer {writer} gps: {}", own.len());
        gps += own.len();
    }
    let _ = writeln!(
        text,
        "{name}-scale: start: {} end: {} duration: {} gps: {gps} batches: 0",
        outcome.start,
        outcome.end,
        outcome.end.saturating_sub(outcome.start)
    );
    for (writer, own) in outcome.durations.iter().enumerate() {
        for (index, ns) in own.iter().enumerate() {
            let _ = writeln!(
                text,
                "{name}-scale: {writer:>4} writer-duration: {index:>5} {ns}"
            );
        }
    }
    if let Some(script) = Percentiles::of(outcome) {
        let _ = writeln!(
            text,
            "Average grace-period duration: {} microseconds\nMinimum grace-period duration: {}\n50th percentile grace-period duration: {}\n90th percentile grace-period duration: {}\n99th percentile grace-period duration: {}\nMaximum grace-period duration: {}\nGrace periods: {gps} Batches: 0 Ratio: -",
            script.average, script.min, script.p50, script.p90, script.p99, script.max
        );
    }
    text
}

/// In microseconds.
#[derive(Debug, PartialEq)]
pub(super) struct Percentiles {
    pub(super) average: f64,
    pub(super) min: f64,
    pub(super) p50: f64,
    pub(super) p90: f64,
    pub(super) p99: f64,
    pub(super) max: f64,
    pub(super) count: usize,
}

impl Percentiles {
    /// As the script picks them: the element whose number is that share of the count, rounded down, from 1 on.
    pub(super) fn of(outcome: &Outcome) -> Option<Self> {
        let mut all: Vec<u64> = outcome.durations.concat();
        all.sort_unstable();
        let us = |ns: u64| ns as f64 / 1000.0;
        let pick = |percent: usize| us(all[(all.len() * percent / 100).max(1) - 1]);
        let (min, max) = (*all.first()?, *all.last()?);
        Some(Percentiles {
            average: all.iter().map(|&ns| us(ns)).sum::<f64>() / all.len() as f64,
            min: us(min),
            p50: pick(50),
            p90: pick(90),
            p99: pick(99),
            max: us(max),
            count: all.len(),
        })
    }

    #[cfg(test)]
    fn cells(&self) -> [f64; 6] {
        [
            self.average,
            self.min,
            self.p50,
            self.p90,
            self.p99,
            self.max,
        ]
    }
}

/// The first lines of the kfree_rcu test.
pub(super) fn kfree_parameters(name: &str, setup: &kfree::Setup) -> String {
    format!(
        "{name}-scale:--- kfree_rcu_test: kfree_mult=1 kfree_by_call_rcu=0 kfree_nthreads={} kfree_alloc_num={} kfree_loops={} kfree_rcu_test_double=0 kfree_rcu_test_single=0\nkfree object size={}, kfree_by_call_rcu=0\n",
        setup.threads,
        setup.allocations,
        setup.loops,
        size_of::<crate::schemes::Object>()
    )
}

/// Its last one.
pub(super) fn kfree_original(setup: &kfree::Setup, outcome: &kfree::Outcome) -> String {
    format!(
        "Total time taken by all kfree'ers: {} ns, loops: {}, batches: 0, memory footprint: {}MB\n",
        outcome.total.as_nanos(),
        setup.loops,
        outcome.memory >> 20
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn outcome() -> Outcome {
        Outcome {
            durations: vec![vec![1000, 3000, 2000], vec![4000, 10_500]],
            start: 5,
            end: 1_000_000_005,
            reads: 2_000_000.0,
            barrier: None,
        }
    }

    #[test]
    fn percentiles_are_the_scripts() {
        let of = |durations: Vec<u64>| {
            Percentiles::of(&Outcome {
                durations: vec![durations],
                ..Outcome::default()
            })
        };
        assert_eq!(of(vec![]), None);
        let one = of(vec![7000]).unwrap();
        assert_eq!(one.cells(), [7.0; 6]);
        // Of a hundred, the 50th, 90th and 99th.
        let hundred = of((1..=100).rev().map(|n| n * 1000).collect()).unwrap();
        assert_eq!(hundred.cells(), [50.5, 1.0, 50.0, 90.0, 99.0, 100.0]);
    }

    #[test]
    fn the_originals_words() {
        insta::assert_snapshot!("original", original("rcu", &outcome()));
        let setup = kfree::Setup {
            threads: 2,
            allocations: 8000,
            loops: 10,
        };
        let free = kfree::Outcome {
            total: Duration::from_micros(1234),
            memory: 5 << 20,
            waiting: 17,
            flush: None,
        };
        insta::assert_snapshot!(
            "kfree",
            kfree_parameters("rcu", &setup) + &kfree_original(&setup, &free)
        );
    }
}
