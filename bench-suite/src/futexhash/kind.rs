//! Floor 3, bench-suite. Owns the workload `futex-hash`: one run as a record. May touch the run and the report.
//!
//! What a run does is the original's, see `run`. Its warm-up is the pause in which the kernel settles: nothing is called
//! in it. `per_thread` is the mean over the threads, as the original has it, but over measured time; where a run takes a
//! second or more, `per_thread_original` is over whole seconds, the making of the threads among them.
//! `sem_threads_percent` is the original's ±.

use super::run::{Churn, Outcome, Plan, perform};
use super::{Ask, hashes, text, unexpected};
use crate::engine::crew::{Rate, Refusal, Tally};
use crate::engine::job::{Job, Params, Shape};
use crate::report::human;
use crate::report::record::{Record, Status};
use crate::report::stats::quantile;
use crate::report::summary::Point;
use crate::report::view::{self, Column, Plot, View};
use crate::schemes::{About, Support};
use crate::workloads::{Kind, fill};
use serde_json::Value;
use std::time::{Duration, Instant};

/// The variant of shared futexes.
pub(super) const SHARED: &str = "shared";

/// Buckets if nobody says: from there on the curve of seed 000 is flat.
pub(super) const BUCKETS: usize = 1024;

/// Words of each thread if nobody says: the original's.
const FUTEXES: u64 = 1024;

static VARIANTS: [About; 5] = [
    hashes::VARIANTS[0],
    hashes::VARIANTS[1],
    hashes::VARIANTS[2],
    hashes::VARIANTS[3],
    About::new(
        SHARED,
        "shared futexes: in the one hash of all processes, by what is mapped and not by address",
        "no count: it is never replaced",
    )
    .nowhere("a kind of futex, which is another subject"),
];

/// Names of the options in points.
const WORDS: &str = "futexes";
const SILENT: &str = "silent";
const LOCKED: &str = "memory_locked";
const CHURN: &str = "churn_ns";

pub(crate) const KIND: Kind = Kind {
    name: "futex-hash",
    what: "perf bench futex hash on the running kernel: a FUTEX_WAIT that fails, over the kernel's hashes; -b buckets, -f futexes, --churn",
    points: |ask| ask.each(&[1, 2], shape),
    tour: |ask| {
        let more = |mut shape: Shape| {
            shape.more = Params::from([(hashes::BUCKETS.to_owned(), BUCKETS.into())]);
            shape
        };
        ask.each(&[2], shape).into_iter().map(more).collect()
    },
    variants: || &VARIANTS,
    run,
    support: |about, job| {
        if job.more.contains_key(CHURN) && !matches!(about.name, hashes::AUTO | hashes::PRIVATE) {
            return Support::No("it is never replaced");
        }
        hashes::support(about.name)
    },
    view: View {
        meaning: "FUTEX_WAIT calls that find the word changed, on this kernel; per thread: mean over the threads, as the kernel's tool counts; more is better; +- threads: its error over the threads of one run, as that tool prints; spread: over the runs",
        reference: hashes::GLOBAL,
        title: view::threads,
        columns: |group| match group.points.iter().any(|p| p.param("changes").is_some()) {
            true => CHURNED,
            false => COLUMNS,
        },
        order: |point| per_thread(point).map(|rate| -rate),
        plot: Plot {
            title: "perf bench futex hash: waits that fail, on this kernel",
            axis: "calls per second and thread (more is better)",
            over: Some(hashes::BUCKETS),
            descending: true,
            format: human::count,
            panels: |group| vec![(view::threads(group), per_thread)],
            ..view::RATES
        },
    },
};

fn per_thread(point: &Point) -> Option<f64> {
    point.param("per_thread")
}

const COLUMNS: &[Column] = &[
    PER_THREAD,
    RATIO,
    ERROR,
    SPREAD,
    view::rate("total"),
    IN_USE,
];

const CHURNED: &[Column] = &[
    PER_THREAD,
    RATIO,
    ERROR,
    SPREAD,
    view::rate("total"),
    Column {
        head: "changes",
        cell: |row| row.show(|p| p.param("changes"), human::count),
    },
    Column {
        head: "median",
        cell: |row| row.show(|p| p.param("change_p50_ns"), human::nanoseconds),
    },
    Column {
        head: "longest",
        cell: |row| row.show(|p| p.param("change_max_ns"), human::nanoseconds),
    },
];

const PER_THREAD: Column = Column {
    head: "per thread",
    cell: |row| row.show(per_thread, human::count),
};
const RATIO: Column = Column {
    head: "x global",
    cell: |row| row.against(per_thread),
};
const ERROR: Column = Column {
    head: "+- threads",
    cell: |row| {
        row.show(
            |p| p.param("sem_threads_percent"),
            |percent| format!("{percent:.2} %"),
        )
    },
};
const SPREAD: Column = Column {
    head: "spread",
    cell: |row| {
        let spread = row.point.spread(|record| record.number("per_thread"));
        spread.map(human::percent)
    },
};
const IN_USE: Column = Column {
    head: "buckets in use",
    cell: |row| {
        row.show(
            |p| p.param("buckets_in_use"),
            |n| match n {
                0.0 => "global".to_owned(),
                n => format!("{n:.0}"),
            },
        )
    },
};

fn shape(threads: usize) -> Shape {
    Shape {
        threads,
        readers: threads,
        ..Shape::default()
    }
}

/// What the options ask of a point.
pub(super) fn point(ask: &Ask, buckets: usize) -> Params {
    let mut point = Params::from([
        (hashes::BUCKETS.to_owned(), buckets.into()),
        (WORDS.to_owned(), ask.futexes.into()),
    ]);
    if let Some(pause) = ask.churn {
        let ns = u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX);
        point.insert(CHURN.to_owned(), ns.into());
    }
    for (name, given) in [(SILENT, ask.silent), (LOCKED, ask.lock_memory)] {
        if given {
            point.insert(name.to_owned(), true.into());
        }
    }
    point
}

fn plan(job: &Job) -> Plan {
    let number = |name: &str| job.more.get(name).and_then(Value::as_u64);
    let given = |name: &str| job.more.get(name).and_then(Value::as_bool) == Some(true);
    let buckets = match job.variant.as_str() {
        hashes::GLOBAL => super::kernel::buckets().is_ok().then_some(0),
        hashes::PRIVATE | hashes::IMMUTABLE => Some(hashes::size(job, BUCKETS)),
        _ => None,
    };
    Plan {
        threads: job.threads,
        time: job.time,
        futexes: number(WORDS).unwrap_or(FUTEXES) as usize,
        silent: given(SILENT),
        shared: job.variant == SHARED,
        lock_memory: given(LOCKED),
        buckets,
        immutable: job.variant == hashes::IMMUTABLE,
        settle: job.warmup,
        churn: number(CHURN).map(|ns| Churn {
            pause: Duration::from_nanos(ns),
        }),
    }
}

fn run(job: &Job) -> Result<Record, Refusal> {
    let outcome =
        perform(&plan(job)).map_err(|trouble| Refusal::Environment(trouble.to_string()))?;
    Ok(record(job, &outcome))
}

fn record(job: &Job, outcome: &Outcome) -> Record {
    let stop = Instant::now();
    let start = stop
        .checked_sub(Duration::from_secs_f64(outcome.measured_s))
        .unwrap_or(stop);
    let tally = |ops| Tally {
        ops,
        bad: 0,
        start,
        stop,
    };
    let tallies: Vec<Tally> = outcome.workers.iter().map(|w| tally(w.ops)).collect();
    let rate = Rate::of(&tallies).expect("there is at least one thread");
    let mut record = Record::empty(job);
    fill(&mut record, &rate, job.threads);
    // They begin together by a signal; when each did is not known.
    record.params.remove("start_skew_s");
    record.set("per_thread", rate.per_s() / job.threads as f64);
    let (mean, error) = text::mean_and_error(&outcome.rates());
    record.set("sem_threads_percent", error);
    if job.time >= Duration::from_secs(1) {
        record.set("per_thread_original", mean);
    }
    let cpus: Vec<usize> = outcome.workers.iter().map(|worker| worker.cpu).collect();
    record.set("placement", cpus);
    record.set("scope", "real futexes, this kernel");
    match job.variant.as_str() {
        // Whatever the process has of its own.
        SHARED => record.set("buckets_in_use", 0),
        _ => hashes::put(&mut record),
    }
    if job.more.contains_key(CHURN) {
        let mut changes = outcome.changes.clone();
        changes.sort_unstable();
        record.set("changes", changes.len());
        for (name, q) in [("change_p50_ns", 0.5), ("change_max_ns", 1.0)] {
            if let Some(ns) = quantile(&changes, q) {
                record.set(name, ns);
            }
        }
    }
    if let Some(why) = &outcome.refused {
        record.remark(&format!("the changes ended: {why}"));
    }
    if outcome.unexpected > 0 {
        record.status = Status::Failed;
        record.remark(&unexpected(outcome.unexpected));
    }
    record
}

#[cfg(test)]
mod tests {
    use super::super::run::Worker;
    use super::*;
    use crate::engine::job::Pin;
    use crate::workloads::Workload;

    fn job(more: Params) -> Job {
        Job {
            workload: Workload::FutexHash,
            variant: hashes::GLOBAL.to_owned(),
            threads: 2,
            readers: 2,
            writers: 0,
            pauses: None,
            more,
            run: 0,
            order: 0,
            seed: 1,
            time: Duration::from_secs(10),
            warmup: Duration::ZERO,
            pin: Pin::Pu,
            quick: false,
        }
    }

    fn outcome() -> Outcome {
        let worker = |cpu, ops| Worker {
            first: 0x1000,
            last: 0x1ffc,
            cpu,
            ops,
        };
        Outcome {
            pid: 1,
            workers: vec![worker(0, 1000), worker(1, 3000)],
            span_s: 10.9,
            measured_s: 10.0,
            in_use: Some(16),
            unexpected: 0,
            changes: vec![30, 10, 20],
            refused: None,
        }
    }

    /// By hand: rates 100 and 300, mean 200, sample variance 20000, error sqrt(20000 / 2) = 100, 50 % of the mean.
    #[test]
    fn figures_of_the_original() {
        let record = record(&job(Params::new()), &outcome());
        assert_eq!(record.ops, 4000);
        assert!((record.ops_per_s - 400.0).abs() < 1e-6);
        assert!((record.number("per_thread").unwrap() - 200.0).abs() < 1e-6);
        assert_eq!(record.number("per_thread_original"), Some(200.0));
        assert_eq!(record.number("sem_threads_percent"), Some(50.0));
        assert!(record.number("changes").is_none());
        assert_eq!(record.status, Status::Ok);
    }

    #[test]
    fn calls_that_do_not_fail_are_a_failure() {
        let wrong = Outcome {
            unexpected: 3,
            refused: Some("64 buckets: no".to_owned()),
            ..outcome()
        };
        let record = record(&job(Params::from([(CHURN.to_owned(), 5.into())])), &wrong);
        assert_eq!(record.status, Status::Failed);
        assert!(record.note.contains("3 calls") && record.note.contains("64 buckets: no"));
        assert_eq!(record.number("changes"), Some(3.0));
        assert_eq!(record.number("change_p50_ns"), Some(20.0));
        assert_eq!(record.number("change_max_ns"), Some(30.0));
    }

    #[test]
    fn the_reference_is_a_variant() {
        assert!(Workload::FutexHash.find(KIND.view.reference).is_some());
    }
}
