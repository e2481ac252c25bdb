//! Floor 3, bench-suite. Owns the workload `read`: protect, dereference, release, as fast as it goes, nobody writes.
//! May touch a scheme through its trait, and the crew.

use super::{Kind, over_schemes};
use crate::engine::crew::{self, BATCH, Pace, Rate, Refusal, Worker};
use crate::engine::job::{Job, Shape};
use crate::report::record::{Record, Status};
use crate::report::view::{self, Plot, View};
use crate::schemes::{self, Object, Scheme};

pub(super) const KIND: Kind = Kind {
    name: "read",
    what: "protect + dereference + release, ns per pair",
    points: |ask| ask.each(&[1, 2], shape),
    tour: |ask| ask.each(&[1, 2], shape),
    variants: schemes::all,
    run: over_schemes!(run),
    support: |about, _| about.read,
    view: View {
        meaning: "protect + dereference + release; rates over all threads, ns per pair (wall time x busy CPUs / operations); more is better; x hp: rate against that of hp",
        reference: "hp",
        title: view::threads,
        columns: |_| {
            &const {
                [
                    view::rate("ops/s"),
                    view::time("ns/op"),
                    view::RATE_RATIO,
                    view::RATE_SPREAD,
                ]
            }
        },
        order: |point| point.rate().map(|rate| -rate),
        plot: Plot {
            title: "read: protect + dereference + release",
            ..view::RATES
        },
    },
};

fn shape(threads: usize) -> Shape {
    Shape {
        threads,
        readers: threads,
        ..Shape::default()
    }
}

/// No reader can be faster than this; a loop that seems to be was optimised away.
const FLOOR_NS: f64 = 0.02;

/// `job.readers` threads read one cell.
fn run<S: Scheme>(job: &Job) -> Result<Record, Refusal> {
    let cell = S::new(Object::new(0, None));
    let workers = (0..job.readers).map(|_| reader(&cell)).collect();
    let (tallies, _) = crew::run(job, workers, || ())?;
    let rate = Rate::of(&tallies).expect("there is at least one reader");
    let mut record = Record::empty(job);
    super::fill(&mut record, &rate, job.readers);
    record.judge(rate.bad);
    if record.ns_per_op.is_some_and(|ns| ns < FLOOR_NS) {
        record.status = Status::Failed;
        record.remark("faster than any machine: the loop was optimised away");
    }
    Ok(record)
}

/// A thread that reads until the end.
pub(super) fn reader<S: Scheme>(cell: &S) -> Worker<'_> {
    Box::new(move |pace: &Pace| {
        let mut state = cell.reader();
        pace.measure(|| cell.read_batch(&mut state, BATCH))
    })
}
