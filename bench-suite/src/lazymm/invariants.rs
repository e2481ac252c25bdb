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
