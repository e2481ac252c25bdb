//! Floor 3, bench-suite. Owns the workload `write`: allocate, swap, retire, with or without readers beside.
//! May touch a scheme through its trait, and the crew.
//!
//! The main figures count writes; the time of whatever reclaim the writes trigger is part of them.

use super::read::reader;
use crate::engine::crew::{self, BATCH, Pace, Rate, Refusal, Worker};
use crate::engine::job::Job;
use crate::report::record::Record;
use crate::schemes::{Object, Scheme};

/// `job.readers` threads read while `job.writers` threads write one cell.
pub(super) fn run<S: Scheme>(job: &Job) -> Result<Record, Refusal> {
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
