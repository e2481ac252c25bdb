//! Floor 3, bench-suite. Owns the tracked object, [`Mm`], and the [`Census`] that counts births, tear-downs and deaths.
//! Touches nothing of the trackers but their mark.
//!
//! A dead mm is poisoned and its block kept for a while, so that whoever still has it finds the poison and not a
//! successor in the same place, and so that a second free is seen instead of suffered.
//!
//! **Orderings.** Canary and counters are Relaxed: whether a look at a dead mm sees the poison is luck, and only where
//! the tracker is broken. `users` is AcqRel: what all users did happens before the tear-down.

use super::tracker::Tracker;
use hdrhistogram::Histogram;
use std::alloc::Layout;
use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::atomic::Ordering::{AcqRel, Relaxed};
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

const ALIVE: u64 = 0x11fe_0add_4e55_face;
const POISON: u64 = 0xdead_0add_4e55_dead;

/// Dead blocks that are kept; of trackers that are broken on purpose all are.
const KEPT: usize = 1024;

/// Alone on its pair of cache lines.
#[derive(Debug)]
#[repr(align(128))]
struct Padded<V>(V);

/// An address space. What everybody reads, what changes with its users, and what the tracker writes are on lines of
/// their own.
pub(crate) struct Mm<T: Tracker> {
    alive: Padded<Face>,
    users: Padded<AtomicUsize>,
    mark: Padded<T::Mark>,
}

struct Face {
    canary: AtomicU64,
    serial: u64,
    census: &'static Census,
    /// When it was torn down, in nanoseconds of the census; 0 before.
    torn: AtomicU64,
}

impl<T: Tracker> Mm<T> {
    /// A new one with so many users, on the heap.
    pub(crate) fn new(mark: T::Mark, users: usize, census: &'static Census) -> NonNull<Self> {
        let serial = census.born.fetch_add(1, Relaxed) + 1;
        let mm = Box::new(Mm {
            alive: Padded(Face {
                canary: AtomicU64::new(ALIVE),
                serial,
                census,
                torn: AtomicU64::new(0),
            }),
            users: Padded(AtomicUsize::new(users)),
            mark: Padded(mark),
        });
        NonNull::from(Box::leak(mm))
    }

    /// Whether it lives: what holders look at.
    #[inline(always)]
    pub(crate) fn is_alive(&self) -> bool {
        self.alive.0.canary.load(Relaxed) == ALIVE
    }

    /// Its number, from 1: addresses come back, this does not.
    pub(crate) fn serial(&self) -> u64 {
        self.alive.0.serial
    }

    /// What the tracker keeps here.
    #[inline(always)]
    pub(crate) fn mark(&self) -> &T::Mark {
        &self.mark.0
    }

    /// Another user, by one of its users.
    pub(crate) fn join(&self) {
        // Relaxed: the caller is a user.
        self.users.0.fetch_add(1, Relaxed);
    }

    /// A user leaves. Whether it was the last, who then calls [`torn`](Self::torn) and tears it down.
    pub(crate) fn leave(&self) -> bool {
        // AcqRel: Release by who leaves, Acquire by the last.
        self.users.0.fetch_sub(1, AcqRel) == 1
    }

    /// The clock of the tear-down starts.
    pub(crate) fn torn(&self) {
        let census = self.alive.0.census;
        self.alive.0.torn.store(census.now(), Relaxed);
        let torn = census.torn.fetch_add(1, Relaxed) + 1;
        let waiting = torn.saturating_sub(census.freed.load(Relaxed));
        census.peak.fetch_max(waiting, Relaxed);
    }

    /// The destructor: what every tracker calls to free an mm.
    ///
    /// # Safety
    /// `this` came from [`new`](Self::new), was torn down, and nobody uses it any more. (A second call is counted and
    /// does nothing as long as the block is kept.)
    pub(crate) unsafe fn free(this: NonNull<Self>) {
        // SAFETY: the memory is there: it is freed only below, some time after the poison.
        let face = unsafe { &(*this.as_ptr()).alive.0 };
        let census = face.census;
        if face.canary.swap(POISON, Relaxed) != ALIVE {
            census.doubled.fetch_add(1, Relaxed);
            return;
        }
        let torn = face.torn.load(Relaxed);
        if torn == 0 {
            census.untorn.fetch_add(1, Relaxed);
        } else if let Some(latencies) = &mut *lock(&census.latencies) {
            latencies.saturating_record(census.now().saturating_sub(torn).max(1));
        }
        // SAFETY: the exchange made this the only one to do so.
        unsafe { std::ptr::drop_in_place(&raw mut (*this.as_ptr()).mark) };
        census.freed.fetch_add(1, Relaxed);
        census.keep(this.cast(), Layout::new::<Self>(), T::ABOUT.hidden);
    }
}

/// A dead block.
struct Block(NonNull<u8>, Layout);

// SAFETY: nobody else has it, but for those who should not.
unsafe impl Send for Block {}

/// Counts the mms of a run.
pub(crate) struct Census {
    start: Instant,
    born: AtomicU64,
    torn: AtomicU64,
    freed: AtomicU64,
    doubled: AtomicU64,
    untorn: AtomicU64,
    peak: AtomicU64,
    latencies: Mutex<Option<Histogram<u64>>>,
    kept: Mutex<VecDeque<Block>>,
}

/// What a [`Census`] found.
#[derive(Debug)]
pub(crate) struct Found {
    /// Born.
    pub(crate) born: u64,
    /// Whose last user has gone.
    pub(crate) torn: u64,
    /// Freed.
    pub(crate) freed: u64,
    /// Frees of what was free.
    pub(crate) doubled: u64,
    /// Frees of what was not torn down.
    pub(crate) untorn: u64,
    /// Most that were torn down and not free at any tear-down.
    pub(crate) peak: u64,
}

impl Census {
    /// A census that is never freed: a scheme may free as late as at the end of the process.
    pub(crate) fn leak() -> &'static Self {
        let histogram =
            Histogram::new_with_bounds(1, 100_000_000_000, 3).expect("the bounds are in order");
        Box::leak(Box::new(Census {
            start: Instant::now(),
            born: AtomicU64::new(0),
            torn: AtomicU64::new(0),
            freed: AtomicU64::new(0),
            doubled: AtomicU64::new(0),
            untorn: AtomicU64::new(0),
            peak: AtomicU64::new(0),
            latencies: Mutex::new(Some(histogram)),
            kept: Mutex::default(),
        }))
    }

    /// Never 0.
    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos())
            .unwrap_or(u64::MAX)
            .max(1)
    }

    /// Freed up to now.
    pub(crate) fn freed(&self) -> u64 {
        self.freed.load(Relaxed)
    }

    /// Whether the block of an mm that was freed when the count was at least `freed` is sure to be kept still. Blocks
    /// may be put away in another order than they are counted, hence the half.
    pub(crate) fn block_is_kept_since(&self, freed: u64) -> bool {
        self.freed().saturating_sub(freed) < KEPT as u64 / 2
    }

    /// Torn down and not freed.
    pub(crate) fn waiting(&self) -> u64 {
        let freed = self.freed.load(Relaxed);
        self.torn.load(Relaxed).saturating_sub(freed)
    }

    /// How long the tear-downs up to now took, from the last user's leaving to the destructor. Later ones belong to the
    /// end of the run and are not timed. Called once.
    pub(crate) fn latencies(&self) -> Histogram<u64> {
        lock(&self.latencies).take().expect("asked for once")
    }

    /// The counts.
    pub(crate) fn found(&self) -> Found {
        Found {
            born: self.born.load(Relaxed),
            torn: self.torn.load(Relaxed),
            freed: self.freed.load(Relaxed),
            doubled: self.doubled.load(Relaxed),
            untorn: self.untorn.load(Relaxed),
            peak: self.peak.load(Relaxed),
        }
    }

    fn keep(&self, block: NonNull<u8>, layout: Layout, for_good: bool) {
        let mut kept = lock(&self.kept);
        kept.push_back(Block(block, layout));
        if kept.len() > KEPT && !for_good {
            let Block(block, layout) = kept.pop_front().expect("there are several");
            drop(kept);
            // SAFETY: from a box of this layout, whose contents were dropped, long enough ago.
            unsafe { std::alloc::dealloc(block.as_ptr(), layout) };
        }
    }
}

fn lock<V>(mutex: &Mutex<V>) -> MutexGuard<'_, V> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lazymm::trackers::Hidden;

    #[test]
    fn a_second_free_is_counted_and_does_nothing() {
        let census = Census::leak();
        let mm = Mm::<Hidden>::new((), 2, census);
        // SAFETY: blocks of hidden trackers stay.
        unsafe {
            assert!(mm.as_ref().is_alive());
            mm.as_ref().join();
            assert!(!mm.as_ref().leave() && !mm.as_ref().leave() && mm.as_ref().leave());
            mm.as_ref().torn();
            assert_eq!(census.waiting(), 1);
            Mm::free(mm);
            assert!(!mm.as_ref().is_alive());
            Mm::free(mm);
        }
        assert_eq!(census.latencies().len(), 1);
        let untorn = Mm::<Hidden>::new((), 1, census);
        // SAFETY: as above.
        unsafe { Mm::free(untorn) };
        let found = census.found();
        let counts = [
            found.born,
            found.torn,
            found.freed,
            found.doubled,
            found.untorn,
            found.peak,
        ];
        assert_eq!(counts, [2, 1, 2, 1, 1, 1]);
    }
}
