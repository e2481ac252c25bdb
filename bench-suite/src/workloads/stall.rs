//! Floor 3, bench-suite. Owns the workload `stall`: a reader parks inside protection while writers retire.
//! May touch a scheme through its trait, and the crew.
//!
//! The objects count themselves (constructor and destructor), so waiting objects are counted the same way for every
//! scheme: alive, minus the one in the cell. Writers sample after each batch of writes; `peak_unreclaimed` is the
//! largest sample from the start of the warm-up on, `final_unreclaimed` what waits at the end with the reader still
//! inside, `released_unreclaimed` what is left when the reader and the writers have gone and the scheme was asked
//! to flush for as long as that frees something. A new object in the hands of a blocked writer counts as waiting.
//! Where the scheme documents a bound it is reported beside. The reader looks at its object once more before it
//! leaves.

use super::{Kind, over_schemes};
use crate::engine::crew::{self, BATCH, Pace, Rate, Refusal, Tally, Worker};
use crate::engine::job::{Job, Shape};
use crate::report::human;
use crate::report::record::Record;
use crate::report::summary::{Group, Point};
use crate::report::view::{self, Column, Plot, View};
use crate::schemes::{self, Census, Object, Scheme};
use std::time::{Duration, Instant};

pub(super) const KIND: Kind = Kind {
    name: "stall",
    what: "objects that wait while one reader is parked inside protection",
    points: |ask| ask.each(&[2], shape),
    tour: |_| vec![shape(2)],
    variants: schemes::all,
    run: over_schemes!(run),
    support: |about, _| about.stall,
    view: View {
        meaning: "objects that wait for reclaim while one reader is parked inside protection; fewer is better",
        reference: "hp",
        title: view::shape,
        columns: |_| {
            &const {
                [
                    Column {
                        head: "peak",
                        cell: |row| row.show(peak, human::count),
                    },
                    Column {
                        head: "final",
                        cell: |row| row.show(|p| p.param("final_unreclaimed"), human::count),
                    },
                    Column {
                        head: "released",
                        cell: |row| row.show(|p| p.param("released_unreclaimed"), human::count),
                    },
                    Column {
                        head: "bound",
                        cell: |row| row.show(|p| p.param("pending_bound"), human::count),
                    },
                    view::rate("writes/s"),
                ]
            }
        },
        order: peak,
        plot: Plot {
            title: "stall: one reader parked inside protection",
            axis: "peak of objects waiting for reclaim (fewer is better, logarithmic)",
            log: true,
            descending: false,
            format: human::count,
            panels: |group: &Group| {
                let writers = human::plural(group.shape.1, "writer");
                vec![(format!("1 parked reader + {writers}"), peak)]
            },
            ..view::RATES
        },
    },
};

fn peak(point: &Point) -> Option<f64> {
    point.param("peak_unreclaimed")
}

fn shape(threads: usize) -> Shape {
    Shape {
        threads,
        readers: 1,
        writers: threads - 1,
        ..Shape::default()
    }
}

/// A run ends early when more objects than this wait: what grows without bound need not fill the memory to prove it.
const CAP: i64 = 2_000_000;

/// One parked reader and `job.writers` writers.
fn run<S: Scheme>(job: &Job) -> Result<Record, Refusal> {
    let census = Census::leak();
    let cell = S::new(Object::new(0, Some(census)));
    let mut workers: Vec<Worker<'_>> = vec![parked(&cell)];
    workers.extend((0..job.writers).map(|_| writer(&cell, census)));
    let mut last = 0;
    let (tallies, early) = crew::run(job, workers, || {
        // Writers have been told to stop; let those finish that do not wait for the reader.
        std::thread::sleep(Duration::from_millis(2));
        last = census.living();
    })?;
    let rate = Rate::of(&tallies[1..]).expect("there is at least one writer");
    let bound = cell.bound(job.writers);
    let after = release(&cell, census);
    let mut record = Record::empty(job);
    super::fill(&mut record, &rate, job.writers);
    if rate.ops == 0 {
        record.note = "every write waited for the reader".to_owned();
    }
    let waiting = |living: i64| (living - 1).max(0);
    let peak = waiting(census.peak().max(last));
    record.set("peak_unreclaimed", peak);
    record.set("final_unreclaimed", waiting(last));
    record.set("released_unreclaimed", waiting(after));
    if let Some(bound) = bound {
        // The bound does not count protected objects (one here), nor the two that a writer has in its hands: the new one
        // before the swap, the old one before the retire.
        let limit = bound as i64 + 1 + 2 * job.writers as i64;
        record.set("pending_bound", bound);
        record.set("within_bound", peak <= limit);
        if peak > limit {
            record.remark("above the documented bound");
        }
    }
    if let Some(why) = early {
        record.remark(&why);
    }
    record.judge(tallies[0].bad);
    Ok(record)
}

/// Asks the scheme to flush until nothing more goes, or for a second at most. Returns what is left.
fn release<S: Scheme>(cell: &S, census: &Census) -> i64 {
    let start = Instant::now();
    let mut left = census.living();
    let mut fruitless = 0;
    while fruitless < 4 && start.elapsed() < Duration::from_secs(1) {
        cell.flush();
        let now = census.living();
        fruitless = if now < left { 0 } else { fruitless + 1 };
        left = now;
    }
    left
}

fn parked<S: Scheme>(cell: &S) -> Worker<'_> {
    Box::new(move |pace: &Pace| {
        let mut state = cell.reader();
        let alive = cell.hold(&mut state, || pace.park());
        let now = Instant::now();
        Tally {
            ops: 0,
            bad: u64::from(!alive),
            start: now,
            stop: now,
        }
    })
}

fn writer<'a, S: Scheme>(cell: &'a S, census: &'static Census) -> Worker<'a> {
    Box::new(move |pace: &Pace| {
        let mut serial = 0;
        pace.measure(|| {
            for _ in 0..BATCH {
                serial += 1;
                cell.write(Object::new(serial, Some(census)));
            }
            if census.sample() > CAP {
                pace.end_early(&format!("ended early: more than {CAP} objects wait"));
            }
            0
        })
    })
}
