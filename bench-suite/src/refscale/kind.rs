//! Floor 3, bench-suite. Owns the workload `ref`: so many experiments as one record. May touch the readers and the report.
//!
//! The work is fixed, not the time: loops and experiments. `ns_per_op` is the mean over the readers of the time of a pair,
//! of the median experiment; `experiment_min_ns` and `…_max_ns` are of the quickest and the slowest one.

use super::run::{self, Setup, Times};
use super::subject::{Delay, Subject};
use super::{instances, types};
use crate::engine::crew::{Rate, Refusal, Tally};
use crate::engine::job::{Job, Params, Shape};
use crate::engine::pin;
use crate::report::human;
use crate::report::record::Record;
use crate::report::stats::median;
use crate::report::summary::Point;
use crate::report::view::{self, Column, Plot, View};
use crate::schemes::About;
use crate::trouble::Trouble;
use crate::workloads::{Kind, fill};
use serde_json::Value;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Names of the options in points.
const LOOPS: &str = "loops";
const RUNS: &str = "nruns";
const DELAY: &str = "readdelay_ns";
const INSTANCES: &str = "lookup_instances";

pub(crate) const KIND: Kind = Kind {
    name: "ref",
    what: "refscale in user space: one acquire and release beside other readers; --scale-type, --nreaders, --loops, --nruns, --readdelay, --lookup-instances",
    points: |ask| ask.each(&[1], shape),
    tour: |ask| {
        let more = |mut shape: Shape| {
            shape.more = params(1000, 10, 0, 0);
            shape
        };
        ask.each(&[2], shape).into_iter().map(more).collect()
    },
    variants,
    run: run_job,
    support: |about, _| types::support(about.name),
    view: View {
        meaning: "time of one acquire and release beside other readers, in user space; less is better; x acqrel: against a load and a store",
        reference: "acqrel",
        title: view::threads,
        columns: |_| COLUMNS,
        order: Point::ns,
        plot: Plot {
            title: "refscale: one acquire and release",
            axis: "time of a pair (less is better)",
            threads_axis: "readers",
            ..view::TIMES
        },
    },
};

const COLUMNS: &[Column] = &[
    view::time("ns/pair"),
    Column {
        head: "x acqrel",
        cell: |row| row.against(Point::ns),
    },
    Column {
        head: "quickest",
        cell: |row| row.show(|p| p.param("experiment_min_ns"), human::nanoseconds),
    },
    Column {
        head: "slowest",
        cell: |row| row.show(|p| p.param("experiment_max_ns"), human::nanoseconds),
    },
    view::TIME_SPREAD,
];

fn shape(readers: usize) -> Shape {
    Shape {
        threads: readers,
        readers,
        ..Shape::default()
    }
}

/// What the options ask of a point.
pub(super) fn params(loops: u64, runs: u64, delay: u64, objects: i64) -> Params {
    Params::from([
        (LOOPS.to_owned(), loops.into()),
        (RUNS.to_owned(), runs.into()),
        (DELAY.to_owned(), delay.into()),
        (INSTANCES.to_owned(), objects.into()),
    ])
}

/// The types that can be had, as this program describes variants.
fn variants() -> &'static [About] {
    static ALL: OnceLock<Vec<About>> = OnceLock::new();
    ALL.get_or_init(|| {
        let about = |kind: &types::Type| {
            let new = About::new(
                kind.name,
                kind.what(),
                "as refscale: one pair after the other",
            );
            let new = new.nowhere("a type of ref, which is another subject");
            if kind.percpu() {
                new.over_percpu()
            } else {
                new
            }
        };
        types::listed().map(about).collect()
    })
}

fn setup(job: &Job) -> Setup {
    let number = |name: &str, usual: u64| {
        let said = job.more.get(name).and_then(Value::as_u64);
        said.unwrap_or(usual)
    };
    Setup {
        loops: number(LOOPS, super::LOOPS),
        readers: job.threads,
        runs: number(RUNS, super::RUNS) as usize,
        delay: Delay::of(Duration::from_nanos(number(DELAY, 0))),
        cpus: pin::allowed(),
    }
}

/// What is done with a type once it is known.
pub(super) struct Measure<'a>(pub(super) &'a Setup);

impl types::Visit for Measure<'_> {
    type Out = Result<Times, Trouble>;

    fn visit<S: Subject>(self, subject: S) -> Self::Out {
        run::measure(&subject, self.0)
    }
}

fn run_job(job: &Job) -> Result<Record, Refusal> {
    let setup = setup(job);
    let asked = job.more.get(INSTANCES).and_then(Value::as_i64);
    let objects = instances(asked.unwrap_or(0), setup.cpus.len());
    let kind = types::listed().find(|kind| kind.name == job.variant);
    let kind = kind.expect("a variant of this workload");
    let start = Instant::now();
    let times = types::visit(kind, objects, Measure(&setup))
        .map_err(|trouble| Refusal::Environment(trouble.to_string()))?;
    Ok(record(job, &setup, &times, start))
}

fn record(job: &Job, setup: &Setup, times: &Times, start: Instant) -> Record {
    let pairs = setup.loops + 1;
    // Of each experiment the mean over its readers.
    let each: Vec<f64> = times
        .runs
        .iter()
        .map(|run| run.iter().sum::<u64>() as f64 / run.len().max(1) as f64 / pairs as f64)
        .collect();
    let timed: u64 = times.runs.iter().filter_map(|run| run.iter().max()).sum();
    let tally = Tally {
        ops: pairs * times.runs.len() as u64,
        bad: 0,
        start,
        stop: start + Duration::from_nanos(timed),
    };
    let tallies: Vec<Tally> = (0..setup.readers).map(|_| tally).collect();
    let rate = Rate::of(&tallies).expect("there is at least one reader");
    let mut record = Record::empty(job);
    fill(&mut record, &rate, setup.readers);
    record.params.remove("start_skew_s");
    record.ns_per_op = median(&each);
    for (name, value) in [
        ("experiment_min_ns", each.iter().copied().reduce(f64::min)),
        ("experiment_max_ns", each.iter().copied().reduce(f64::max)),
    ] {
        if let Some(value) = value {
            record.set(name, value);
        }
    }
    record.set("scope", "user space");
    record.judge(times.dead().unwrap_or(0));
    record
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::job::Pin;
    use crate::workloads::Workload;

    fn job(variant: &str) -> Job {
        Job {
            workload: Workload::Ref,
            variant: variant.to_owned(),
            threads: 2,
            readers: 2,
            writers: 0,
            pauses: None,
            more: params(99, 3, 0, 0),
            run: 0,
            order: 0,
            seed: 1,
            time: Duration::ZERO,
            warmup: Duration::ZERO,
            pin: Pin::None,
            quick: false,
        }
    }

    /// By hand: experiments of 100 pairs take 10, 30 and 20 ns a pair in the mean of two readers.
    #[test]
    fn the_median_experiment_is_the_figure() {
        let job = job("acqrel");
        let times = Times::of(vec![vec![900, 1100], vec![2000, 4000], vec![2000, 2000]]);
        let record = record(&job, &setup(&job), &times, Instant::now());
        assert_eq!(record.ns_per_op, Some(20.0));
        assert_eq!(record.number("experiment_min_ns"), Some(10.0));
        assert_eq!(record.number("experiment_max_ns"), Some(30.0));
        assert_eq!(record.ops, 600);
        assert!((record.elapsed_s - 7.1e-6).abs() < 1e-9);
    }

    #[test]
    fn types_are_variants() {
        assert!(Workload::Ref.find(KIND.view.reference).is_some());
        let record = run_job(&job("hp")).unwrap();
        assert!(record.ns_per_op > Some(0.0), "{}", record.note);
    }
}
