//! Floor 3, bench-suite. Owns the original's words of `futex-hash`, and its figures. Touches nothing else.
//!
//! Two ± must not be mixed up. The original's is the relative standard error of the mean **over the threads of one
//! run**: it says how alike the threads were. The spread here of a table is **over the runs**: how alike a repetition would be.

use super::run::{Outcome, Plan};
use std::fmt::Write;

/// Mean and relative standard error in percent, as the original gets them: Welford's recurrence, the error of the mean
/// over as many values, zero of fewer than two.
pub(super) fn mean_and_error(values: &[u64]) -> (f64, f64) {
    let (mut n, mut mean, mut squares) = (0.0, 0.0, 0.0);
    for &value in values {
        n += 1.0;
        let delta = value as f64 - mean;
        mean += delta / n;
        squares += delta * (value as f64 - mean);
    }
    if n < 2.0 || mean == 0.0 {
        return (mean, 0.0);
    }
    let error = (squares / (n - 1.0) / n).sqrt();
    (mean, 100.0 * error / mean)
}

impl Outcome {
    /// The whole seconds that the original divides by.
    pub(super) fn whole_seconds(&self) -> u64 {
        (self.span_s as u64).max(1)
    }

    /// Operations a second of each thread, as the original counts.
    pub(super) fn rates(&self) -> Vec<u64> {
        let seconds = self.whole_seconds();
        self.workers
            .iter()
            .map(|worker| worker.ops / seconds)
            .collect()
    }
}

/// One run in the original's words.
pub(super) fn original(plan: &Plan, outcome: &Outcome) -> String {
    let mut text = format!(
        "# Running 'futex/hash' benchmark:\nRun summary [PID {}]: {} threads, each operating on {} [{}] futexes for {} secs.\n\n",
        outcome.pid,
        plan.threads,
        plan.futexes,
        if plan.shared { "shared" } else { "private" },
        plan.time.as_secs(),
    );
    let rates = outcome.rates();
    if !plan.silent {
        for (index, (worker, rate)) in outcome.workers.iter().zip(&rates).enumerate() {
            let _ = match plan.futexes {
                1 => writeln!(
                    text,
                    "[thread {index:2}] futex: {:#x} [ {rate} ops/sec ]",
                    worker.first
                ),
                _ => writeln!(
                    text,
                    "[thread {index:2}] futexes: {:#x} ... {:#x} [ {rate} ops/sec ]",
                    worker.first, worker.last
                ),
            };
        }
        text.push('\n');
    }
    let (mean, error) = mean_and_error(&rates);
    let _ = writeln!(
        text,
        "Averaged {} operations/sec (+- {error:.2}%), total secs = {}",
        mean as u64,
        outcome.whole_seconds()
    );
    match (plan.buckets, outcome.in_use) {
        (_, None) => {}
        (Some(0), _) | (None, Some(0)) => text.push_str("Futex hashing: global hash\n"),
        (Some(_), Some(buckets)) => {
            let immutable = if plan.immutable { " (immutable)" } else { "" };
            let _ = writeln!(text, "Futex hashing: {buckets} hash buckets{immutable}");
        }
        (None, Some(buckets)) => {
            let _ = writeln!(text, "Futex hashing: auto resized to {buckets} buckets");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::futexhash::run::Worker;
    use std::time::Duration;

    pub(crate) fn plan(buckets: Option<usize>) -> Plan {
        Plan {
            threads: 2,
            time: Duration::from_secs(10),
            futexes: 1024,
            silent: false,
            shared: false,
            lock_memory: false,
            buckets,
            immutable: false,
            settle: Duration::from_millis(200),
            churn: None,
        }
    }

    fn outcome(ops: &[u64], in_use: Option<usize>) -> Outcome {
        Outcome {
            pid: 4711,
            workers: ops
                .iter()
                .enumerate()
                .map(|(index, &ops)| Worker {
                    first: 0x1000 * (index + 1),
                    last: 0x1000 * (index + 1) + 4092,
                    cpu: index,
                    ops,
                })
                .collect(),
            span_s: 10.9,
            measured_s: 10.0,
            in_use,
            unexpected: 0,
            changes: vec![],
            refused: None,
        }
    }

    /// By hand: mean 25, sample variance 500/3, error sqrt(500/3/4) = 6.4550, 25.82 % of the mean.
    #[test]
    fn the_error_is_that_of_the_mean_over_the_threads() {
        let (mean, error) = mean_and_error(&[10, 20, 30, 40]);
        assert_eq!(mean, 25.0);
        assert!((error - 25.819_888_974_7).abs() < 1e-9, "{error}");
        assert_eq!(mean_and_error(&[7]), (7.0, 0.0));
        assert_eq!(mean_and_error(&[0, 0]), (0.0, 0.0));
        // A run of the kernel's own tool on two threads: 637152 and 686308, printed as 661730 (+- 3.71%).
        let (mean, error) = mean_and_error(&[637_152, 686_308]);
        assert_eq!(
            (mean as u64, format!("{error:.2}").as_str()),
            (661_730, "3.71")
        );
    }

    /// 10.9 s count as 10; each thread's rate is cut off before the mean.
    #[test]
    fn seconds_are_whole_and_rates_too() {
        let run = outcome(&[1_000_009, 999_999], None);
        assert_eq!(run.rates(), [100_000, 99_999]);
        assert_eq!(mean_and_error(&run.rates()).0, 99_999.5);
    }

    #[test]
    fn the_originals_words() {
        let mut text = original(&plan(None), &outcome(&[6_371_520, 6_863_080], Some(16)));
        for (in_use, buckets) in [
            (Some(0), Some(0)),
            (Some(64), Some(64)),
            (Some(0), None),
            (None, None),
        ] {
            let plan = Plan {
                silent: true,
                shared: true,
                ..plan(buckets)
            };
            text.push_str(&original(&plan, &outcome(&[6_371_520], in_use)));
        }
        let one = Plan {
            futexes: 1,
            immutable: true,
            ..plan(Some(4))
        };
        text.push_str(&original(&one, &outcome(&[10], Some(4))));
        insta::assert_snapshot!(text);
    }
}
