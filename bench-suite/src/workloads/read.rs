//! Floor 3, bench-suite. Owns the workload `read`: protect, dereference, release, as fast as it goes, nobody writes.
//! May touch a scheme through its trait, and the crew.

use crate::engine::crew::{self, BATCH, Pace, Rate, Refusal, Worker};
use crate::engine::job::Job;
use crate::report::record::{Record, Status};
use crate::schemes::{Object, Scheme};

/// No reader can be faster than this; a loop that seems to be was optimised away.
const FLOOR_NS: f64 = 0.02;

/// `job.readers` threads read one cell.
pub(super) fn run<S: Scheme>(job: &Job) -> Result<Record, Refusal> {
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
        pace.measure(|| {
            let mut dead = 0;
            for _ in 0..BATCH {
                dead += u64::from(!cell.read(&mut state));
            }
            dead
        })
    })
}
