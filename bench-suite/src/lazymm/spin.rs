//! Floor 3, bench-suite. Owns thinking: a loop that takes a set time and touches no memory that others have.
//! Touches the clock while it is calibrated.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// Turns of a calibration sample.
const SAMPLE: u64 = 20_000;

/// Samples; the quickest counts, which nothing interrupted.
const SAMPLES: usize = 25;

/// A think time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spin {
    turns: u64,
    /// What it takes, loop included, measured.
    pub(crate) measured_ns: f64,
}

impl Spin {
    /// Calibrates one for `time`, on the calling thread.
    pub(crate) fn calibrate(time: Duration) -> Self {
        if time.is_zero() {
            return Spin {
                turns: 0,
                measured_ns: 0.0,
            };
        }
        let turn = quickest(|| turns(SAMPLE)) / SAMPLE as f64;
        let turns = ((time.as_nanos() as f64 / turn).round() as u64).max(1);
        let spin = Spin {
            turns,
            measured_ns: 0.0,
        };
        let times = (SAMPLE / turns).max(1);
        let measured = quickest(|| (0..times).for_each(|_| spin.think()));
        Spin {
            turns,
            measured_ns: measured / times as f64,
        }
    }

    /// Thinks.
    #[inline(always)]
    pub(crate) fn think(&self) {
        turns(self.turns);
    }
}

#[inline(always)]
fn turns(count: u64) {
    let mut left = count;
    while left > 0 {
        // Through memory, so that each turn waits for the one before.
        left = black_box(left) - 1;
    }
}

fn quickest(mut work: impl FnMut()) -> f64 {
    let sample = |_| {
        let start = Instant::now();
        work();
        start.elapsed().as_nanos() as f64
    };
    (0..SAMPLES).map(sample).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_measured_is_what_was_asked() {
        for ns in [100, 1000, 20_000] {
            let spin = Spin::calibrate(Duration::from_nanos(ns));
            let ratio = spin.measured_ns / ns as f64;
            assert!((0.5..2.0).contains(&ratio), "{ns}: {spin:?}");
        }
        assert_eq!(Spin::calibrate(Duration::ZERO).measured_ns, 0.0);
    }
}
