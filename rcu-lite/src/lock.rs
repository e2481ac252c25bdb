//! A lock that is only ever tried, and that a forked child can tell from one
//! whose holder it does not have.
//!
//! Floor 2 (`rcu-lite`), raw layer. Owns the lock word; touches nothing else.
//!
//! The word holds 0 or the process generation of the holder. A child that
//! meets its parent's generation takes the lock over and is told so: what the
//! lock guards may then be half-written.
//!
//! # Orderings
//!
//! Taking it is an Acquire exchange, giving it back a Release store: what the
//! last holder did happens before what the next one does.

use percpu::fork::generation;
use percpu::sync::atomic::{AtomicUsize, Ordering};

/// The lock.
#[derive(Debug)]
pub(crate) struct Lock(AtomicUsize);

impl Lock {
    #[cfg(not(loom))]
    pub(crate) const fn new() -> Self {
        Self(AtomicUsize::new(0))
    }

    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        Self(AtomicUsize::new(0))
    }

    /// Takes the lock if nobody has it.
    ///
    /// # Progress
    ///
    /// Wait-free.
    #[inline]
    pub(crate) fn try_lock(&self) -> Option<Locked<'_>> {
        // Relaxed look, to leave the line shared where many wait. (No look
        // under loom, which misses orders where a thread loads a word that it
        // then exchanges.)
        let mut seen = 0;
        if !cfg!(loom) {
            seen = self.0.load(Ordering::Relaxed);
            if seen == generation() {
                return None;
            }
        }
        // Acquire: pairs with the Release of `Locked::drop`.
        self.0
            .compare_exchange(seen, generation(), Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
            .then_some(seen != 0)
            .map(|orphaned| Locked {
                lock: self,
                orphaned,
            })
    }

    /// Leaves it as a holder does that a forked child does not have.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn orphan(&self) {
        // Relaxed: tests are alone.
        self.0.store(generation() + 1, Ordering::Relaxed);
    }

    /// Whether somebody has it; for people and for tests.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn is_locked(&self) -> bool {
        // Relaxed: a snapshot.
        self.0.load(Ordering::Relaxed) == generation()
    }
}

/// The lock, taken.
#[derive(Debug)]
pub(crate) struct Locked<'a> {
    lock: &'a Lock,
    /// The holder before was a thread that this (forked) process does not
    /// have.
    pub(crate) orphaned: bool,
}

impl Drop for Locked<'_> {
    #[inline]
    fn drop(&mut self) {
        // Release: pairs with the Acquire of `try_lock`.
        self.lock.0.store(0, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_failed_attempt_does_not_unlock() {
        let lock = Lock::new();
        let held = lock.try_lock().unwrap();
        assert!(!held.orphaned);
        assert!(lock.try_lock().is_none());
        assert!(lock.is_locked());
        drop(held);
        assert!(lock.try_lock().is_some());
    }

    #[test]
    fn a_lock_of_another_process_is_taken_over() {
        let lock = Lock(AtomicUsize::new(generation() + 1));
        assert!(lock.try_lock().unwrap().orphaned);
        assert!(!lock.try_lock().unwrap().orphaned);
    }
}
