//! Floor 3, bench-suite. Owns the workload `rcuscale`: grace periods of some writers as one record. May touch the writers and
//! the report.
//!
//! The number of grace periods is what counts (`writers`), the time only as a least one. `ns_per_op` is their average, as
//! the original's script begins with; the percentiles are picked as it picks them. With callbacks an operation is the
//! queueing of one, and in the kfree_rcu test allocating and retiring an object: there `ns_per_op` is the total against
//! what a thread has retired.

use super::show::Percentiles;
use super::writers::Outcome;
use super::{Ask, Free, Setup, Wait, kfree, subject};
use crate::engine::crew::{Rate, Refusal, Tally};
use crate::engine::job::{Job, Params, Shape};
use crate::engine::pin;
use crate::report::human;
use crate::report::record::{Record, Status};
use crate::report::summary::Point;
use crate::report::view::{self, Column, Plot, View};
use crate::schemes::{About, Support};
use crate::trouble::Trouble;
use crate::workloads::{Kind, fill};
use serde_json::Value;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Names of the options in points.
const BETWEEN: &str = "writer_holdoff_us";
const ASYNC: &str = "gp_async_max";
const OBJECTS: &str = "kfree_alloc_num";
const LOOPS: &str = "kfree_loops";

pub(crate) const KIND: Kind = Kind {
    name: "rcuscale",
    what: "rcuscale in user space: grace periods of writers beside readers and each other; --nreaders, --nwriters, --writer-holdoff, --gp-async, --kfree-rcu-test",
    points: |ask| {
        let more = ask.more.as_ref().and_then(|more| more.first());
        let point =
            |crew: &(usize, usize)| shape(crew.0, crew.1, more.cloned().unwrap_or_default());
        match &ask.crews[..] {
            [] => vec![point(&(1, 1))],
            crews => crews.iter().map(point).collect(),
        }
    },
    tour: |_| vec![shape(1, 1, Params::new())],
    variants,
    run,
    support: |about, job| {
        let has = |name| job.more.contains_key(name);
        match subject::can(about.name, has(ASYNC), has(OBJECTS)) {
            Ok(()) => Support::Yes,
            Err(_) if has(OBJECTS) => Support::No("it frees no objects"),
            Err(_) => Support::No("it frees objects and takes no callbacks"),
        }
    },
    view: View {
        meaning: "time of a grace period of each writer, beside readers and each other, in user space (with gp_async_max: of queueing a callback; with kfree_loops: of allocating and retiring an object); less is better; x heavy-barrier: against the barrier that makes readers cheap",
        reference: "heavy-barrier",
        title: view::shape,
        columns: |group| match group.points.iter().any(|p| p.param(WAITING).is_some()) {
            true => KFREE,
            false => COLUMNS,
        },
        order: Point::ns,
        plot: Plot {
            title: "rcuscale: one grace period, callback or object",
            axis: "average time (less is better)",
            panels: |group| vec![(view::shape(group), Point::ns)],
            ..view::TIMES
        },
    },
};

/// A column of microseconds.
macro_rules! us {
    ($head:literal, $param:literal) => {
        Column {
            head: $head,
            cell: |row| row.show(|p| p.param($param), |us| human::nanoseconds(us * 1e3)),
        }
    };
}

const COLUMNS: &[Column] = &[
    view::time("average"),
    Column {
        head: "x heavy-barrier",
        cell: |row| row.against(Point::ns),
    },
    us!("min", "gp_min_us"),
    us!("p50", "gp_p50_us"),
    us!("p90", "gp_p90_us"),
    us!("p99", "gp_p99_us"),
    us!("max", "gp_max_us"),
    Column {
        head: "reads/s",
        cell: |row| row.show(|p| p.param("reader_rate"), human::count),
    },
    view::TIME_SPREAD,
];

/// What only the kfree_rcu test has.
const WAITING: &str = "waiting";
const FLUSH: &str = "flush_ms";
const GROWTH: &str = "growth_bytes";

const KFREE: &[Column] = &[
    Column {
        head: "total",
        cell: |row| {
            row.show(
                |p| p.median(|r| Some(r.elapsed_s)),
                |s| human::nanoseconds(s * 1e9),
            )
        },
    },
    view::time("ns/object"),
    Column {
        head: "growth",
        cell: |row| {
            row.show(
                |p| p.param(GROWTH),
                |bytes| format!("{:.0} MB", bytes / f64::from(1 << 20)),
            )
        },
    },
    Column {
        head: "waiting",
        cell: |row| row.show(|p| p.param(WAITING), human::count),
    },
    Column {
        head: "flush",
        cell: |row| row.show(|p| p.param(FLUSH), |ms| human::nanoseconds(ms * 1e6)),
    },
    view::TIME_SPREAD,
];

fn shape(readers: usize, writers: usize, more: Params) -> Shape {
    Shape {
        threads: readers + writers,
        readers,
        writers,
        more,
        ..Shape::default()
    }
}

/// What the options ask of a point.
pub(super) fn point(ask: &Ask) -> Params {
    let mut point = Params::new();
    if ask.kfree {
        point.insert(OBJECTS.to_owned(), ask.kfree_alloc_num.into());
        point.insert(LOOPS.to_owned(), ask.kfree_loops.into());
        return point;
    }
    if ask.writer_holdoff > 0 {
        point.insert(BETWEEN.to_owned(), ask.writer_holdoff.into());
    }
    if ask.gp_async {
        point.insert(ASYNC.to_owned(), ask.gp_async_max.into());
    }
    point
}

fn variants() -> &'static [About] {
    static ALL: OnceLock<Vec<About>> = OnceLock::new();
    ALL.get_or_init(|| subject::all().copied().collect())
}

fn run(job: &Job) -> Result<Record, Refusal> {
    let number = |name: &str| job.more.get(name).and_then(Value::as_u64);
    let refusal = |trouble: Trouble| Refusal::Environment(trouble.to_string());
    if let (Some(allocations), Some(loops)) = (number(OBJECTS), number(LOOPS)) {
        let setup = kfree::Setup {
            threads: job.writers,
            allocations,
            loops,
        };
        let start = Instant::now();
        let outcome = subject::visit(&job.variant, Free(&setup)).map_err(refusal)?;
        return Ok(freed(job, &setup, &outcome, start));
    }
    let setup = Setup {
        readers: job.readers,
        writers: job.writers,
        asynchronous: number(ASYNC),
        // A tour has some milliseconds for each run: as much as the least number takes.
        least: job.time,
        between: Duration::from_micros(number(BETWEEN).unwrap_or(0)),
        cpus: pin::allowed(),
    };
    let start = Instant::now();
    match subject::visit(&job.variant, Wait(&setup)) {
        Ok(outcome) => Ok(record(job, &outcome, start)),
        Err(trouble @ Trouble::Correctness(_)) => {
            let mut record = Record::empty(job);
            record.status = Status::Failed;
            record.remark(&trouble.to_string());
            Ok(record)
        }
        Err(trouble) => Err(refusal(trouble)),
    }
}

fn record(job: &Job, outcome: &Outcome, start: Instant) -> Record {
    let span = Duration::from_nanos(outcome.end.saturating_sub(outcome.start));
    let tally = |durations: &Vec<u64>| Tally {
        ops: durations.len() as u64,
        bad: 0,
        start,
        stop: start + span,
    };
    let tallies: Vec<Tally> = outcome.durations.iter().map(tally).collect();
    let mut record = Record::empty(job);
    if let Some(rate) = Rate::of(&tallies) {
        fill(&mut record, &rate, job.writers);
        record.params.remove("start_skew_s");
    }
    record.ns_per_op = None;
    if let Some(own) = Percentiles::of(outcome) {
        record.ns_per_op = Some(own.average * 1e3);
        for (name, value) in [
            ("gp_min_us", own.min),
            ("gp_p50_us", own.p50),
            ("gp_p90_us", own.p90),
            ("gp_p99_us", own.p99),
            ("gp_max_us", own.max),
        ] {
            record.set(name, value);
        }
        record.set("grace_periods", own.count);
    }
    if job.readers > 0 {
        record.set("reader_rate", outcome.reads);
    }
    if let Some(barrier) = outcome.barrier {
        record.set("barrier_us", barrier.as_secs_f64() * 1e6);
        record.remark(&format!("barrier at the end {barrier:.1?}"));
    }
    record.set("scope", "user space");
    record
}

fn freed(job: &Job, setup: &kfree::Setup, outcome: &kfree::Outcome, start: Instant) -> Record {
    let tally = Tally {
        ops: setup.allocations * setup.loops,
        bad: 0,
        start,
        stop: start + outcome.total,
    };
    let rate = Rate::of(&vec![tally; setup.threads]).expect("there is at least one thread");
    let mut record = Record::empty(job);
    fill(&mut record, &rate, setup.threads);
    record.params.remove("start_skew_s");
    record.ns_per_op = Some(outcome.total.as_nanos() as f64 / tally.ops as f64);
    record.set(GROWTH, outcome.memory);
    record.set(WAITING, outcome.waiting);
    match outcome.flush {
        Some(time) => record.set(FLUSH, time.as_secs_f64() * 1e3),
        None => record.remark("not all was freed 10 s later"),
    }
    record.set("scope", "user space");
    record
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::job::Pin;
    use crate::workloads::Workload;

    fn job() -> Job {
        Job {
            workload: Workload::Rcuscale,
            variant: "hp-sync".to_owned(),
            threads: 2,
            readers: 1,
            writers: 1,
            pauses: None,
            more: Params::new(),
            run: 0,
            order: 0,
            seed: 1,
            time: Duration::ZERO,
            warmup: Duration::ZERO,
            pin: Pin::None,
            quick: false,
        }
    }

    #[test]
    fn the_average_is_the_figure() {
        let outcome = Outcome {
            durations: vec![vec![1000, 3000, 2000], vec![4000, 10_500]],
            start: 5,
            end: 1_000_000_005,
            reads: 2_000_000.0,
            barrier: Some(Duration::from_millis(3)),
        };
        let record = record(&job(), &outcome, Instant::now());
        assert_eq!((record.ops, record.ns_per_op), (5, Some(4100.0)));
        assert!((record.ops_per_s - 5.0).abs() < 1e-6);
        assert_eq!(record.number("gp_p50_us"), Some(2.0));
        assert_eq!(record.number("gp_max_us"), Some(10.5));
        assert_eq!(record.number("reader_rate"), Some(2_000_000.0));
        assert!(record.note.contains("3.0ms"), "{}", record.note);
    }

    /// Two threads retire 30 objects each in 6 us.
    #[test]
    fn an_object_is_an_operation_of_the_kfree_test() {
        let setup = kfree::Setup {
            threads: 2,
            allocations: 10,
            loops: 3,
        };
        let outcome = kfree::Outcome {
            total: Duration::from_micros(6),
            memory: 4096,
            waiting: 7,
            flush: None,
        };
        let record = freed(&job(), &setup, &outcome, Instant::now());
        assert_eq!((record.ops, record.ns_per_op), (60, Some(200.0)));
        assert!((record.elapsed_s - 6e-6).abs() < 1e-12);
        assert_eq!(record.number(WAITING), Some(7.0));
        assert!(record.number(FLUSH).is_none() && record.note.contains("not all"));
    }

    #[test]
    fn all_types_are_variants() {
        assert!(Workload::Rcuscale.find(KIND.view.reference).is_some());
        let record = run(&job()).unwrap();
        assert!(
            record.number("grace_periods") > Some(100.0),
            "{}",
            record.note
        );
    }
}
