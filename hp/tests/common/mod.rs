//! What hp's public tests share: values that count their drops, and short
//! ways to retire and to look.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use hp::{Atomic, Domain};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

const ALIVE: u64 = 0x600D_600D_600D_600D;
const DEAD: u64 = 0xDEAD_DEAD_DEAD_DEAD;

/// Makes values and counts how many of them were dropped. One for each test,
/// so that tests of one process do not meet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Drops(Arc<AtomicUsize>);

impl Drops {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    pub(crate) fn value(&self, value: usize) -> Counted {
        Counted {
            canary: AtomicU64::new(ALIVE),
            value,
            drops: self.clone(),
        }
    }
}

/// A value whose drop is counted and that knows when it is dead.
#[derive(Debug)]
pub(crate) struct Counted {
    canary: AtomicU64,
    value: usize,
    drops: Drops,
}

impl Counted {
    /// The number it was made with. Panics if the value is dead.
    pub(crate) fn get(&self) -> usize {
        assert_eq!(
            self.canary.load(Ordering::Relaxed),
            ALIVE,
            "read a dead value"
        );
        self.value
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let canary = self.canary.swap(DEAD, Ordering::Relaxed);
        assert_eq!(canary, ALIVE, "dropped twice");
        self.drops.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Retires `value` to `domain`, by the safe level.
pub(crate) fn retire<T: Send + 'static>(domain: &Domain, value: T) {
    Atomic::new(value)
        .take()
        .expect("the cell has a value")
        .retire_in(domain);
}

/// Slots that hold `address` now.
pub(crate) fn holders<T: ?Sized>(address: *const T) -> usize {
    let mut n = 0;
    hp::scan(address.cast(), |_| n += 1).expect("a barrier");
    n
}

/// Runs `f` with a deleter of its own: a value that calls `f` when dropped.
pub(crate) struct OnDrop<F: FnMut() + Send>(pub(crate) F);

impl<F: FnMut() + Send> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// `full` rounds, or a few under Miri.
pub(crate) const fn rounds(full: usize, miri: usize) -> usize {
    if cfg!(miri) { miri } else { full }
}

/// Drains the global domain until `done`. One drain is enough for what this
/// thread's passes reclaim; here another test's pass may run the deleters, and
/// what those retire is then not this drain's business.
pub(crate) fn drain_global_until(done: impl Fn() -> bool) {
    for _ in 0..1000 {
        Domain::global().drain();
        if done() {
            return;
        }
        std::thread::yield_now();
    }
}
