//! Floor 3, bench-suite. Owns what a run of lazy-mm must not do, and what the record says of it.
//! May touch records and the census.
//!
//! | | |
//! |---|---|
//! | I1 | the mm that a CPU has is alive, whenever it is looked at |
//! | I2 | after a tear-down that frees at once no CPU has the mm, and no slot holds it |
//! | I3 | a slot holds the mm that its CPU has lazily, and nothing while a user task runs |
//! | I4 | a grab never finds its slot in use |
//! | I5 | each mm is freed once, after its tear-down; at the end none is left |
//! | I6 | no more interrupts are sent than slots matched (or bits of the mask were set) |

use super::mm::Found;
use crate::report::record::{Record, Status};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How many there are.
const COUNT: usize = 6;

/// What was broken, how often.
#[derive(Debug, Default)]
pub(crate) struct Invariants([AtomicU64; COUNT]);

impl Invariants {
    /// Invariant `number` (1 to 6) was broken so many times more.
    pub(crate) fn broken(&self, number: usize, times: u64) {
        if times > 0 {
            self.0[number - 1].fetch_add(times, Relaxed);
        }
    }

    /// I4 and I6, by what the tracker and the interrupts counted.
    pub(crate) fn count(&self, busy: u64, sent: u64, reasons: u64) {
        self.broken(4, busy);
        self.broken(6, sent.saturating_sub(reasons));
    }

    /// I5, at the very end.
    pub(crate) fn settle(&self, found: &Found) {
        let left = found.born.abs_diff(found.freed);
        self.broken(5, left + found.doubled + found.untorn);
    }

    /// Says in the record what held, and fails it if something did not.
    pub(crate) fn judge(&self, record: &mut Record) {
        let broken: Vec<String> = self
            .0
            .iter()
            .enumerate()
            .filter_map(|(index, times)| match times.load(Relaxed) {
                0 => None,
                times => Some(format!("I{} broken {times} times", index + 1)),
            })
            .collect();
        if broken.is_empty() {
            record.set("invariants", "I1-I6 held");
            return;
        }
        let words = broken.join(", ");
        record.set("invariants", words.as_str());
        record.status = Status::Failed;
        record.remark(&words);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::record::tests::sample;
    use crate::workloads::Workload;

    fn found() -> Found {
        Found {
            born: 3,
            torn: 3,
            freed: 3,
            doubled: 0,
            untorn: 0,
            peak: 1,
        }
    }

    fn verdict(breaks: impl FnOnce(&Invariants)) -> Record {
        let mut record = sample(Workload::Think, "x", 1, 0, 1);
        let invariants = Invariants::default();
        breaks(&invariants);
        invariants.judge(&mut record);
        record
    }

    #[test]
    fn what_held_is_said() {
        let record = verdict(|it| {
            it.count(0, 2, 2);
            it.settle(&found());
        });
        assert_eq!(record.status, Status::Ok);
        assert_eq!(record.text("invariants"), Some("I1-I6 held"));
    }

    #[test]
    fn each_fails_the_run_under_its_name() {
        type Break = fn(&Invariants);
        let breaks: [(&str, Break); 8] = [
            ("I1", |it| it.broken(1, 7)),
            ("I2", |it| it.broken(2, 7)),
            ("I3", |it| it.broken(3, 7)),
            ("I4", |it| it.count(7, 0, 0)),
            ("I5", |it| {
                it.settle(&Found {
                    freed: 10,
                    ..found()
                });
            }),
            ("I5", |it| {
                it.settle(&Found {
                    doubled: 7,
                    ..found()
                });
            }),
            ("I5", |it| {
                it.settle(&Found {
                    untorn: 7,
                    ..found()
                });
            }),
            ("I6", |it| it.count(0, 9, 2)),
        ];
        for (name, breaks) in breaks {
            let record = verdict(breaks);
            assert_eq!(record.status, Status::Failed);
            assert_eq!(record.note, format!("{name} broken 7 times"));
        }
    }
}
