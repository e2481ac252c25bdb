//! One set of counters for a succession of tables: the reference count of
//! Linux 6.17 on the hash table of a process's futexes.
//!
//! Floor 3 (`refcounts`). Owns the number and state of the current table, and
//! the shared count; adds on the CPUs' lines through `per_cpu`.
//!
//! Readers get a reference to the *current* table. To replace it, its initial
//! reference is *dropped*; when the last reference has gone it is *dead* and
//! somebody *pivots*: moves its contents to the next table, which becomes the
//! current one. What is in a table is the caller's business; here a [`Table`] is
//! a number. Two consecutive ones exist at a time, so their places can be used
//! alternately.
//!
//! # States of a table
//!
//! A state word holds `number << 1 | ATOMIC`. It says more than the kernel's
//! bare state: a section that tests it also tests that the word was not reused
//! for the table after the next.
//!
//! | state | gets and puts | lines | shared count |
//! |---|---|---|---|
//! | per-CPU | lines | references, with the initial one | 0 |
//! | atomic, lines not folded (inside `drop_table`) | shared count | what they held when it began | `BIAS` + … |
//! | atomic | shared count; a get fails at 0 | the 1 of the next table | references |
//! | dead | every get fails | the 1 of the next table | 0 |
//!
//! ```text
//!  per-CPU ─ one grace period since it was published ─▶ count := BIAS, atomic
//!     ▲                                                        │ a grace period
//!     │                                                        ▼
//!   pivot ◀── dead ◀── last put, or the fold itself ◀── count += lines − BIAS − 1
//! ```
//!
//! # The two grace periods
//!
//! 1. *Between "atomic" and the fold*: all additions on the lines are over. For
//!    sections the heavy barrier alone is that (see `per_cpu`); those without
//!    sections look the state up and then add, inside an announced lookup (see
//!    `lookups`), which the grace period waits for.
//! 2. *Between the publication of a table and the start of its replacement.*
//!    The shared count belongs to whichever table is atomic, but a state belongs
//!    to one table. A reader that found table 1 in state atomic, and went to
//!    sleep, may wake when table 1 is dead and table 2 is being dropped: the
//!    shared count, 0 until then and so a refusal, is `BIAS` now, and the reader
//!    would get a reference to a dead table. With a grace period after the
//!    publication every lookup that could have found table 1 is over.
//!
//! # Orderings
//!
//! *Ready* (a new table's state, Release) pairs with the test of the state
//! (Acquire): contents moved, lines folded. *Atomic* (the state again, Release)
//! pairs with the cold path's Acquire: the bias is in place. *Put* is Release,
//! *Sum* takes it from the lines, the grace period from the lanes, *Fold* hands it
//! on, and who finds the shared count at zero is Acquire. The number of the
//! current table carries nothing: states do.
//!
//! Source: `kernel/futex/core.c` (Linux 6.17, Peter Zijlstra and Sebastian
//! Siewior). Numbers in states, and grace periods made of one barrier for the
//! hot path, are this project's.

use crate::lookups::{Lookup, Lookups};
use crate::per_cpu::{Added, PerCpu};
use crate::plain;
use crate::sync::{Mutex, Padded, lock};
use crate::{BarrierLost, Thread, Tracker};
use percpu::barrier::rung;
use percpu::sync::atomic::{AtomicUsize, Ordering};

/// On top of the shared count until the lines are folded in.
const BIAS: usize = isize::MAX as usize;

/// State of table `number` that counts on lines.
fn per_cpu(number: usize) -> usize {
    number << 1
}

/// State of table `number` that counts in the shared count.
fn atomic(number: usize) -> usize {
    number << 1 | 1
}

/// A reference to a table, by its number. Not to be lost: give it back with
/// [`FutexRef::put`].
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a reference that is not put keeps its table for ever"]
pub struct Table(usize);

impl Table {
    /// How many tables there were before.
    #[must_use]
    pub fn number(&self) -> usize {
        self.0
    }

    /// A reference that the setup of a model took.
    #[cfg(all(test, loom))]
    pub(crate) fn held(number: usize) -> Self {
        Self(number)
    }
}

/// What only replacing needs to know.
#[derive(Debug)]
struct Writer {
    /// The current table is atomic and the lines are not folded yet.
    folding: bool,
    /// Grace periods so far.
    graces: usize,
    /// What `graces` was when the current table was published.
    published: usize,
}

/// The count. Begins with table 0, per-CPU, and its initial reference.
#[derive(Debug)]
pub struct FutexRef {
    /// Read by all, written by replacements.
    current: AtomicUsize,
    states: [AtomicUsize; 2],
    per_cpu: PerCpu,
    /// As the lines, for those without sections.
    lanes: Box<[Padded<AtomicUsize>]>,
    lookups: Lookups,
    writer: Mutex<Writer>,
    count: Padded<AtomicUsize>,
}

impl FutexRef {
    /// A count for table 0.
    #[must_use]
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        // Sections run from now on.
        let _ = rung();
        Self {
            current: AtomicUsize::new(0),
            states: [
                AtomicUsize::new(per_cpu(0)),
                // No table's: number 1 is not there yet.
                AtomicUsize::new(usize::MAX),
            ],
            per_cpu: PerCpu::new(),
            lanes: (0..crate::thread::shared_words())
                .map(|n| Padded(AtomicUsize::new(usize::from(n == 0))))
                .collect(),
            lookups: Lookups::new(),
            writer: Mutex::new(Writer {
                folding: false,
                graces: 0,
                published: 0,
            }),
            count: Padded(AtomicUsize::new(0)),
        }
    }

    #[inline(always)]
    fn state(&self, number: usize) -> &AtomicUsize {
        &self.states[number & 1]
    }

    fn lane(&self, thread: &Thread) -> &AtomicUsize {
        &self.lanes[thread.among(self.lanes.len())]
    }

    /// A reference to the current table. `None` if that is dead: somebody has
    /// to [pivot](Self::pivot), perhaps the caller.
    ///
    /// # Progress
    ///
    /// Wait-free per CPU; lock-free when the table is being replaced.
    #[inline]
    pub fn get(&self, thread: &Thread) -> Option<Table> {
        // Relaxed: an old number fails the test of its state.
        let number = self.current.load(Ordering::Relaxed);
        match self.per_cpu.add(self.state(number), per_cpu(number), 1) {
            Added::Yes => Some(Table(number)),
            Added::Shut | Added::Unable => self.get_cold(thread),
        }
    }

    #[cold]
    #[inline(never)]
    fn get_cold(&self, thread: &Thread) -> Option<Table> {
        let _lookup = self.lookups.begin(thread);
        // Relaxed: not older than the last grace period, by its barrier.
        let number = self.current.load(Ordering::Relaxed);
        // Acquire: pairs with "Ready" and "Atomic".
        let state = self.state(number).load(Ordering::Acquire);
        if state == per_cpu(number) {
            // Relaxed: the grace period before the fold waits for this lookup.
            self.lane(thread).fetch_add(1, Ordering::Relaxed);
            return Some(Table(number));
        }
        // A state of another table cannot be, by the second grace period.
        (state == atomic(number) && plain::get_unless_zero(&self.count)).then_some(Table(number))
    }

    /// Gives a reference back. Whether it was the last: the table is dead, and
    /// the caller should pivot.
    ///
    /// # Progress
    ///
    /// Wait-free.
    #[inline]
    pub fn put(&self, thread: &Thread, table: Table) -> bool {
        let Table(number) = table;
        match self
            .per_cpu
            .add(self.state(number), per_cpu(number), usize::MAX)
        {
            Added::Yes => false,
            Added::Shut => plain::put(&self.count),
            Added::Unable => self.put_cold(thread, number),
        }
    }

    #[cold]
    #[inline(never)]
    fn put_cold(&self, thread: &Thread, number: usize) -> bool {
        let lookup = self.lookups.begin(thread);
        // Acquire: pairs with "Atomic": the subtraction comes after the bias. (The
        // reference keeps the table, so this is its state.)
        if self.state(number).load(Ordering::Acquire) == per_cpu(number) {
            self.put_in_lane(thread, lookup);
            return false;
        }
        // An atomic table stays so as long as somebody has it.
        drop(lookup);
        plain::put(&self.count)
    }

    fn put_in_lane(&self, thread: &Thread, lookup: Lookup<'_>) {
        // Relaxed: the grace period before the sum waits for this lookup, whose
        // end hands on the caller's past.
        self.lane(thread).fetch_sub(1, Ordering::Relaxed);
        drop(lookup);
    }

    /// Waits for a grace period: the next [`drop_table`](Self::drop_table) of
    /// the current table has one less to wait for.
    ///
    /// # Errors
    ///
    /// [`BarrierLost`].
    ///
    /// # Progress
    ///
    /// Waits for barriers and for lookups in progress, never for references.
    pub fn settle(&self) -> Result<(), BarrierLost> {
        self.grace(&mut lock(&self.writer))
    }

    fn grace(&self, writer: &mut Writer) -> Result<(), BarrierLost> {
        self.lookups.wait()?;
        writer.graces += 1;
        Ok(())
    }

    /// Gives the current table's initial reference back, once (later calls do
    /// nothing and say `false`). Whether that was the last; if not, some put
    /// will be.
    ///
    /// # Errors
    ///
    /// [`BarrierLost`]: nobody is told that it was the last. May be called
    /// again.
    ///
    /// # Progress
    ///
    /// Waits for another replacement, and for two grace periods.
    pub fn drop_table(&self) -> Result<bool, BarrierLost> {
        let mut writer = lock(&self.writer);
        if !writer.folding && !self.shut(&mut writer)? {
            return Ok(false);
        }
        // No addition to lines and lanes may still be under way.
        self.grace(&mut writer)?;
        // The initial reference goes with the bias.
        let change = self.take_sum().wrapping_sub(BIAS).wrapping_sub(1);
        // Release: "Fold", hands on what the sum has taken.
        let before = self.count.fetch_add(change, Ordering::Release);
        writer.folding = false;
        if before.wrapping_add(change) != 0 {
            return Ok(false);
        }
        // Acquire: pairs with every "Put".
        self.count.load(Ordering::Acquire);
        Ok(true)
    }

    /// The first half of a drop: from here on the current table counts in the
    /// shared count. `false` if it did already.
    fn shut(&self, writer: &mut Writer) -> Result<bool, BarrierLost> {
        // Relaxed (both): written under the lock.
        let number = self.current.load(Ordering::Relaxed);
        let state = self.state(number);
        if state.load(Ordering::Relaxed) == atomic(number) {
            return Ok(false);
        }
        // No lookup may still hold the table before this one.
        if writer.graces == writer.published && number > 0 {
            self.grace(writer)?;
        }
        // Relaxed: published by "Atomic".
        self.count.store(BIAS, Ordering::Relaxed);
        // Release: "Atomic", pairs with the cold path's Acquire.
        state.store(atomic(number), Ordering::Release);
        writer.folding = true;
        Ok(true)
    }

    /// The first half by itself: with the second one models are too large.
    #[cfg(all(test, loom))]
    pub(crate) fn shut_only(&self) {
        self.shut(&mut lock(&self.writer)).unwrap();
    }

    /// For a model that begins in the middle of a put: leaves its lookup open.
    #[cfg(all(test, loom))]
    pub(crate) fn begin_put(&self) {
        core::mem::forget(self.lookups.begin(&Thread::at(0)));
    }

    /// The rest of that put.
    #[cfg(all(test, loom))]
    pub(crate) fn finish_put(&self) {
        self.put_in_lane(&Thread::at(0), self.lookups.resume());
    }

    /// The sum of lines and lanes, which begin anew for the next table.
    fn take_sum(&self) -> usize {
        let mut sum = self.per_cpu.sum();
        self.per_cpu.reset();
        for (n, lane) in self.lanes.iter().enumerate() {
            // Relaxed (both): after the grace period; published by "Ready".
            sum = sum.wrapping_add(lane.load(Ordering::Relaxed));
            lane.store(usize::from(n == 0), Ordering::Relaxed);
        }
        sum
    }

    /// If the current table is dead, calls `rehash` with its number and the
    /// next one's, and makes that the current one. Whether it did (somebody
    /// else may have). While `rehash` runs nobody has a reference to either.
    ///
    /// # Progress
    ///
    /// Waits for another replacement.
    pub fn pivot(&self, rehash: impl FnOnce(usize, usize)) -> bool {
        let mut writer = lock(&self.writer);
        // Relaxed (both): written under the lock.
        let number = self.current.load(Ordering::Relaxed);
        if self.state(number).load(Ordering::Relaxed) != atomic(number) {
            return false;
        }
        // Acquire: pairs with every "Put" and with "Fold".
        if self.count.load(Ordering::Acquire) != 0 {
            return false;
        }
        let next = number + 1;
        rehash(number, next);
        // Release: "Ready", pairs with the tests of the state.
        self.state(next).store(per_cpu(next), Ordering::Release);
        // Relaxed: the state carries everything.
        self.current.store(next, Ordering::Relaxed);
        writer.published = writer.graces;
        true
    }

    /// Whether the current table is dead.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        let _writer = lock(&self.writer);
        // Relaxed (all): for people and tests; `pivot` looks again.
        let number = self.current.load(Ordering::Relaxed);
        self.state(number).load(Ordering::Relaxed) == atomic(number)
            && self.count.load(Ordering::Relaxed) == 0
    }

    /// References to the current table now: exact while nobody gets or puts.
    #[must_use]
    pub fn count(&self) -> usize {
        let writer = lock(&self.writer);
        // Relaxed (all): for people and tests.
        let number = self.current.load(Ordering::Relaxed);
        let shared = self.count.load(Ordering::Relaxed);
        let is_atomic = self.state(number).load(Ordering::Relaxed) == atomic(number);
        if is_atomic && !writer.folding {
            return shared;
        }
        let bias = if is_atomic { BIAS } else { 0 };
        self.lanes
            .iter()
            .fold(self.per_cpu.sum(), |sum, lane| {
                sum.wrapping_add(lane.load(Ordering::Relaxed))
            })
            .wrapping_add(shared)
            .wrapping_sub(bias)
    }
}

/// Tracks table 0.
impl Tracker for FutexRef {
    type Held = Table;
    const NAME: &'static str = "futex-ref";

    fn new() -> Self {
        FutexRef::new()
    }

    #[inline]
    fn get(&self, thread: &Thread) -> Option<Table> {
        self.get(thread)
    }

    #[inline]
    fn try_get(&self, thread: &Thread) -> Option<Table> {
        self.get(thread)
    }

    #[inline]
    fn put(&self, thread: &Thread, held: Table) -> bool {
        self.put(thread, held)
    }

    fn kill(&self, _: &Thread) -> Result<bool, BarrierLost> {
        self.drop_table()
    }

    fn count(&self) -> usize {
        self.count()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_table_dies_with_its_last_reference() {
        let (count, thread) = (FutexRef::new(), Thread::new());
        let held = count.get(&thread).unwrap();
        assert_eq!(count.count(), 2);
        assert!(!count.drop_table().unwrap());
        assert!(!count.drop_table().unwrap(), "dropped once");
        let other = count.get(&thread).unwrap();
        assert_eq!(count.count(), 2);
        assert!(!count.put(&thread, held));
        assert!(!count.pivot(|_, _| unreachable!()));
        assert!(count.put(&thread, other));
        assert!(count.is_dead());
        assert_eq!(count.get(&thread), None);
        let mut moved = None;
        assert!(count.pivot(|from, to| moved = Some((from, to))));
        assert_eq!(moved, Some((0, 1)));
        let held = count.get(&thread).unwrap();
        assert_eq!((held.number(), count.count()), (1, 2));
        assert!(!count.put(&thread, held));
        assert!(count.drop_table().unwrap());
    }

    #[test]
    fn many_tables() {
        let (count, thread) = (FutexRef::new(), Thread::new());
        for number in 0..50 {
            let held: Vec<_> = (0..number).map(|_| count.get(&thread).unwrap()).collect();
            if number % 2 == 0 {
                count.settle().unwrap();
            }
            assert_eq!(count.drop_table().unwrap(), held.is_empty());
            let last = held
                .into_iter()
                .map(|held| {
                    assert_eq!(held.number(), number);
                    count.put(&thread, held)
                })
                .last();
            assert_eq!(last, (number > 0).then_some(true));
            assert!(count.pivot(|_, _| ()));
            assert_eq!(count.count(), 1);
        }
    }

    /// A reference that was got on one thread's words and is put on another's.
    #[test]
    fn put_elsewhere() {
        let count = FutexRef::new();
        let held: Vec<_> = (0..10)
            .map(|n| count.get(&Thread::at(n)).unwrap())
            .collect();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for held in held {
                    assert!(!count.put(&Thread::at(3), held));
                }
            });
        });
        assert_eq!(count.count(), 1);
        assert!(count.drop_table().unwrap());
    }
}
