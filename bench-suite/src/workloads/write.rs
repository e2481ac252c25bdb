//! Floor 3, bench-suite. Owns the workload `write`: allocate, swap, retire, with or without readers beside.
//! May touch a scheme through its trait, and the crew.
//!
//! The main figures count writes; the time of whatever reclaim the writes trigger is part of them.

use super::read::reader;
use super::{Kind, over_schemes};
use crate::engine::crew::{self, BATCH, Pace, Rate, Refusal, Worker};
use crate::engine::job::{Job, Shape};
use crate::report::human;
use crate::report::record::Record;
use crate::report::summary::Point;
use crate::report::view::{self, Column, Plot, View};
use crate::schemes::{self, Object, Scheme, Support};

pub(super) const KIND: Kind = Kind {
    name: "write",
    what: "allocate + swap + retire; --readers N --writers M adds readers; ops_per_s counts writes, reads_per_s reads",
    points: |ask| match &ask.crews[..] {
        [] => ask.each(&[1], |writers| shape(0, writers)),
        crews => crews.iter().map(|crew| shape(crew.0, crew.1)).collect(),
    },
    tour: |_| vec![shape(0, 1), shape(1, 1)],
    variants: schemes::all,
    run: over_schemes!(run),
    support: |about, job| match about.write {
        Support::Yes if job.readers > 0 => about.write_with_readers,
        other => other,
    },
    view: View {
        meaning: "allocate + swap + retire; rates over all threads, ns per write (wall time x busy CPUs / operations); more is better; x hp: rate against that of hp",
        reference: "hp",
        title: view::shape,
        columns: |group| {
            if group.shape.0 == 0 {
                &const {
                    [
                        view::rate("writes/s"),
                        view::time("ns/write"),
                        view::RATE_RATIO,
                        view::RATE_SPREAD,
                    ]
                }
            } else {
                &const {
                    [
                        view::rate("writes/s"),
                        view::time("ns/write"),
                        view::RATE_RATIO,
                        READS,
                        READ_RATIO,
                        view::RATE_SPREAD,
                    ]
                }
            }
        },
        order: |point| point.rate().map(|rate| -rate),
        plot: Plot {
            title: "write: allocate + swap + retire",
            panels: |group| {
                let crew = view::shape(group);
                if group.shape.0 == 0 {
                    vec![(format!("{crew} alone: writes"), Point::rate)]
                } else {
                    vec![
                        (format!("{crew}: writes"), Point::rate),
                        (format!("{crew}: reads"), Point::reads),
                    ]
                }
            },
            ..view::RATES
        },
    },
};

const READS: Column = Column {
    head: "reads/s",
    cell: |row| row.show(Point::reads, human::count),
};

const READ_RATIO: Column = Column {
    head: "reads x hp",
    cell: |row| row.against(Point::reads),
};

fn shape(readers: usize, writers: usize) -> Shape {
    Shape {
        threads: readers + writers,
        readers,
        writers,
        ..Shape::default()
    }
}

/// `job.readers` threads read while `job.writers` threads write one cell.
fn run<S: Scheme>(job: &Job) -> Result<Record, Refusal> {
    let cell = S::new(Object::new(0, None));
    let readers = (0..job.readers).map(|_| reader(&cell));
    let writers = (0..job.writers).map(|_| writer(&cell));
    let (tallies, _) = crew::run(job, readers.chain(writers).collect(), || ())?;
    let (reads, writes) = tallies.split_at(job.readers);
    let reads = Rate::of(reads);
    let writes = Rate::of(writes).expect("there is at least one writer");
    let mut record = Record::empty(job);
    super::fill(&mut record, &writes, job.writers);
    record.reads_per_s = reads.map(|reads| reads.per_s());
    if let Some(reads) = reads {
        record.set("reads", reads.ops);
    }
    record.judge(reads.map_or(0, |reads| reads.bad));
    Ok(record)
}

fn writer<S: Scheme>(cell: &S) -> Worker<'_> {
    Box::new(move |pace: &Pace| {
        let mut serial = 0;
        pace.measure(|| {
            for _ in 0..BATCH {
                serial += 1;
                cell.write(Object::new(serial, None));
            }
            0
        })
    })
}
