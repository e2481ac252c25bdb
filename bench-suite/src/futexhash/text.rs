//! Floor 3, bench-suite. Owns what `futex-hash` prints: the original's words, and a table. Touches nothing else.
//!
//! Two ± must not be mixed up. The original's is the relative standard error of the mean **over the threads of one
//! run**: it says how alike the threads were. The spread here is **over the runs**: how alike a repetition would be.

use super::run::{Outcome, Plan};
use crate::published::{self, show::columns};
use crate::report::{human, stats};
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

    /// The original's figure.
    pub(super) fn mean(&self) -> f64 {
        mean_and_error(&self.rates()).0
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
        plan.seconds,
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

/// What all runs have in common.
pub(super) fn heading(plan: &Plan, runs: usize) -> String {
    let settled = match plan.settle.as_nanos() {
        0 => "started at once, as the original does".to_owned(),
        ns => format!(
            "{} between the last thread and the start (the original: none)",
            human::nanoseconds(ns as f64)
        ),
    };
    let mut text = format!(
        "futex hash: FUTEX_WAIT calls a second that find the word changed, on the running kernel\n  {} of {} s, {}, {} {} futexes each{}; {settled}\n",
        human::plural(runs, "run"),
        plan.seconds,
        human::plural(plan.threads, "thread"),
        plan.futexes,
        if plan.shared { "shared" } else { "private" },
        if plan.lock_memory {
            ", memory locked"
        } else {
            ""
        },
    );
    if let Some(churn) = &plan.churn {
        let _ = writeln!(
            text,
            "  one more thread sets the size to twice as much and back, {} apart",
            human::nanoseconds(churn.pause.as_nanos() as f64)
        );
    }
    text
}

/// The published figure beside a size.
fn theirs(buckets: Option<usize>) -> Option<f64> {
    let key = match buckets? {
        0 => "global 65536".to_owned(),
        n => n.to_string(),
    };
    published::table("seed000", "buckets").value(&key, 0)
}

fn change(now: Option<f64>, before: Option<f64>) -> String {
    match (now, before) {
        (Some(now), Some(before)) if before > 0.0 => {
            format!("{:+.0} %", (now / before - 1.0) * 100.0)
        }
        _ => "-".to_owned(),
    }
}

/// The table: one row for each size, the published one beside it.
pub(super) fn table(points: &[(Plan, Vec<Outcome>)], cpus: usize) -> String {
    let with_churn = points.iter().any(|(plan, _)| plan.churn.is_some());
    let with_theirs = points
        .iter()
        .any(|(plan, _)| theirs(plan.buckets).is_some() && !plan.shared);
    let mut heading = [
        "buckets",
        "per thread",
        "change",
        "+- threads",
        "spread runs",
        "total",
    ]
    .map(str::to_owned)
    .to_vec();
    if with_churn {
        heading.extend(["changes", "median", "longest"].map(str::to_owned));
    }
    if with_theirs {
        heading.extend(["theirs", "change"].map(str::to_owned));
    }
    let mut rows = vec![heading];
    let (mut before, mut before_theirs) = (None, None);
    for (plan, outcomes) in points {
        let means: Vec<f64> = outcomes.iter().map(Outcome::mean).collect();
        let totals: Vec<f64> = outcomes.iter().map(Outcome::total).collect();
        let middle = stats::median(&means);
        // A change is from one size to the next; the global hash and the kernel's choice are other things.
        let private = plan.buckets.is_some_and(|n| n > 0);
        // The ± of the run that the median is nearest to.
        let error = outcomes
            .iter()
            .min_by(|a, b| {
                let far = |o: &Outcome| (o.mean() - middle.unwrap_or(0.0)).abs();
                far(a).total_cmp(&far(b))
            })
            .map(|outcome| mean_and_error(&outcome.rates()).1);
        let show = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.0}"));
        let mut row = vec![
            name(plan, outcomes),
            show(middle),
            change(middle.filter(|_| private), before),
            error.map_or("-".to_owned(), |error| format!("{error:.2} %")),
            stats::spread(&means).map_or("-".to_owned(), human::percent),
            show(stats::median(&totals)),
        ];
        if with_churn {
            let mut all: Vec<u64> = outcomes
                .iter()
                .flat_map(|o| o.changes.iter().copied())
                .collect();
            all.sort_unstable();
            let ns = |value: Option<u64>| {
                value.map_or("-".to_owned(), |ns| human::nanoseconds(ns as f64))
            };
            row.extend([
                (all.len() / outcomes.len().max(1)).to_string(),
                ns(stats::quantile(&all, 0.5)),
                ns(all.last().copied()),
            ]);
        }
        if with_theirs {
            let published = theirs(plan.buckets);
            row.extend([
                published.map_or("-".to_owned(), |value| format!("{value:.0}")),
                change(published.filter(|_| private), before_theirs),
            ]);
            before_theirs = published.filter(|_| private);
        }
        before = middle.filter(|_| private);
        rows.push(row);
    }
    let mut text = columns(&rows);
    text.push_str(
        "  per thread: median over the runs of the mean over the threads, whole seconds (the original's figure); total: all threads, measured seconds\n  +- threads: standard error over the threads of the median run (the original's +-); spread runs: (most - least) / median over the runs\n",
    );
    if with_churn {
        text.push_str("  changes: a run; median, longest: how long prctl took\n");
    }
    for (plan, outcomes) in points {
        if let Some(why) = outcomes.iter().find_map(|outcome| outcome.refused.as_ref()) {
            let _ = writeln!(
                text,
                "  note: {}: the changes ended: {why}",
                name(plan, outcomes)
            );
        }
    }
    if with_theirs {
        let set = published::find("seed000").expect("named by the program");
        let _ = writeln!(
            text,
            "  theirs: published, not measured here ({}): {}",
            set.id, set.machine
        );
        if cpus < 256 {
            let _ = writeln!(
                text,
                "  {} online here: their knee at 256 to 512 buckets cannot show, only how few buckets these threads need",
                human::plural(cpus, "CPU")
            );
        }
    }
    text
}

/// What the row is called.
fn name(plan: &Plan, outcomes: &[Outcome]) -> String {
    let in_use = outcomes.last().and_then(|outcome| outcome.in_use);
    match (plan.buckets, in_use) {
        (Some(0), _) | (None, Some(0)) => "global".to_owned(),
        (Some(n), _) if plan.immutable => format!("{n} immutable"),
        (Some(n), _) => n.to_string(),
        (None, _) if plan.shared => "global (shared)".to_owned(),
        (None, Some(n)) => format!("auto ({n})"),
        (None, None) => "kernel's".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::futexhash::run::{Churn, Worker};
    use std::time::Duration;

    pub(crate) fn plan(buckets: Option<usize>) -> Plan {
        Plan {
            threads: 2,
            seconds: 10,
            futexes: 1024,
            silent: false,
            shared: false,
            lock_memory: false,
            buckets,
            immutable: false,
            settle: Duration::from_millis(200),
            churn: None,
            run: 0,
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
        assert_eq!(run.mean(), 99_999.5);
        assert_eq!(run.total(), 200_000.8);
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

    #[test]
    fn the_table_beside_the_published_one() {
        let points = [
            (
                plan(Some(2)),
                vec![
                    outcome(&[100, 300], Some(2)),
                    outcome(&[300, 500], Some(2)),
                    outcome(&[200, 200], Some(2)),
                ],
            ),
            (plan(Some(4)), vec![outcome(&[4000, 4000], Some(4))]),
            (plan(Some(0)), vec![outcome(&[8000, 8000], Some(0))]),
            (plan(None), vec![outcome(&[8000, 8000], Some(16))]),
        ];
        let mut text = heading(&points[0].0, 3);
        text.push_str(&table(&points, 2));
        let churn = Plan {
            churn: Some(Churn {
                pause: Duration::from_millis(5),
            }),
            shared: false,
            ..plan(Some(64))
        };
        let mut run = outcome(&[50, 70], Some(128));
        (run.changes, run.refused) = (
            vec![1_000, 3_000, 2_000],
            Some("128 buckets: no".to_owned()),
        );
        text.push_str(&heading(&churn, 1));
        text.push_str(&table(&[(churn, vec![run])], 384));
        insta::assert_snapshot!(text);
    }
}
