//! Where retired objects wait: one shard a CPU, each a vector behind a lock
//! that is only ever tried.
//!
//! Floor 2 (`hp`), raw layer. Owns the lock and the vectors; runs nothing.
//!
//! Nobody waits for a shard: whoever finds one locked goes to the next, and
//! whoever finds all of them locked posts to the domain's inbox. The lock word
//! holds the process generation of its holder, so that a forked child passes
//! over (and leaks) a shard that a thread it does not have was changing.
//!
//! # Orderings
//!
//! Lock (Acquire exchange) and unlock (Release store) hand the list over, and
//! with it what the retirers did before: the unlinking of every object in a
//! list happens before the heavy barrier of whoever takes that list, also when
//! that is another thread (folly#1632).

use crate::retired::Retired;
use core::ops::{Deref, DerefMut};
use percpu::fork::generation;
use percpu::sync::UnsafeCell;
use percpu::sync::atomic::{AtomicUsize, Ordering, Statistic};

/// The objects of a shard, and the vectors that a pass borrows.
#[derive(Debug)]
pub(crate) struct List {
    /// Retired, not yet looked at, or found protected by an earlier pass.
    pub(crate) objects: Vec<Retired>,
    /// An empty vector with the capacity of the last batch.
    pub(crate) spare: Vec<Retired>,
    /// The snapshot buffer of the last pass.
    pub(crate) held: Vec<usize>,
    /// Length at which a pass is due: what the last one left, plus the
    /// threshold. 0 before the first.
    pub(crate) due: usize,
}

/// One shard.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Shard {
    /// 0, or the generation of the process whose thread holds it.
    lock: AtomicUsize,
    retired: Statistic,
    list: UnsafeCell<List>,
}

// SAFETY: `list` is touched under the lock only; `Retired` is `Send`.
unsafe impl Sync for Shard {}
// SAFETY: as above.
unsafe impl Send for Shard {}

const EMPTY: List = List {
    objects: Vec::new(),
    spare: Vec::new(),
    held: Vec::new(),
    due: 0,
};

impl Shard {
    #[cfg(not(loom))]
    pub(crate) const fn new() -> Self {
        Self {
            lock: AtomicUsize::new(0),
            retired: Statistic::new(0),
            list: UnsafeCell::new(EMPTY),
        }
    }

    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        Self {
            lock: AtomicUsize::new(0),
            retired: Statistic::new(0),
            list: UnsafeCell::new(EMPTY),
        }
    }

    /// Locks the shard if nobody has it.
    ///
    /// # Progress
    ///
    /// Wait-free.
    #[inline]
    pub(crate) fn try_lock(&self) -> Option<Locked<'_>> {
        // Relaxed look, then Acquire: pairs with the Release of `Locked::drop`.
        // (No look under loom, which misses orders where a thread loads a word
        // that it then exchanges.)
        ((cfg!(loom) || self.lock.load(Ordering::Relaxed) == 0)
            && self
                .lock
                .compare_exchange(0, generation(), Ordering::Acquire, Ordering::Relaxed)
                .is_ok())
        .then(|| Locked { shard: self })
    }

    /// Whether a thread that this (forked) process does not have holds it.
    pub(crate) fn is_orphan(&self) -> bool {
        // Relaxed: such a word does not change any more.
        let holder = self.lock.load(Ordering::Relaxed);
        holder != 0 && holder != generation()
    }

    /// Objects that were ever retired here.
    pub(crate) fn retired(&self) -> u64 {
        // Relaxed: a statistic.
        self.retired.load(Ordering::Relaxed)
    }
}

/// A locked shard.
#[derive(Debug)]
pub(crate) struct Locked<'a> {
    shard: &'a Shard,
}

impl Locked<'_> {
    /// Counts one more retired object. Under the lock, hence no RMW.
    #[inline]
    pub(crate) fn count(&self) {
        let retired = &self.shard.retired;
        // Relaxed, both: only the lock's holder writes, readers want a number.
        retired.store(
            retired.load(Ordering::Relaxed).wrapping_add(1),
            Ordering::Relaxed,
        );
    }
}

impl Deref for Locked<'_> {
    type Target = List;
    #[inline]
    fn deref(&self) -> &List {
        // SAFETY: this is the lock's holder.
        self.shard.list.with(|list| unsafe { &*list })
    }
}

impl DerefMut for Locked<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut List {
        // SAFETY: this is the lock's holder.
        self.shard.list.with_mut(|list| unsafe { &mut *list })
    }
}

impl Drop for Locked<'_> {
    #[inline]
    fn drop(&mut self) {
        // Release: pairs with the Acquire of `try_lock`.
        self.shard.lock.store(0, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_failed_attempt_does_not_unlock() {
        let shard = Shard::new();
        let held = shard.try_lock();
        assert!(held.is_some());
        assert!(shard.try_lock().is_none());
        assert!(
            shard.try_lock().is_none(),
            "still locked after the first attempt"
        );
        drop(held);
        assert!(shard.try_lock().is_some());
    }
}
