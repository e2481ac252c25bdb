//! The PI mutex over the simulated kernel.
//!
//! Proves: what one owner did is seen by the next, by the fast path, by the
//! kernel's, and across the two; no waiter is forgotten.
//!
//! Three owners are a search of at most three preemptions.
//!
//! Rungs: one is enough, no barrier of `percpu` is involved.
//!
//! Cannot show: priorities, and so nothing of inheritance: the simulated kernel hands the
//! mutex on and boosts nobody. That is `tests/probe.rs`, on the real one.

use super::*;
use crate::futex::Os;
use crate::pi::{PiMutex, Taken};

struct M {
    mutex: PiMutex<Os>,
    cell: UnsafeCell<u32>,
}

// SAFETY: loom checks.
unsafe impl Sync for M {}

fn new() -> M {
    M {
        mutex: PiMutex::new(),
        cell: UnsafeCell::new(0),
    }
}

fn add(m: &M) {
    assert_eq!(m.mutex.lock(), Taken::Clean);
    // SAFETY: loom checks.
    m.cell.with_mut(|v| unsafe { *v += 1 });
    m.mutex.unlock();
}

fn try_add(m: &M) {
    if m.mutex.try_lock() {
        // SAFETY: loom checks.
        m.cell.with_mut(|v| unsafe { *v += 1 });
        m.mutex.unlock();
    }
}

static TWO: Model<M> = Model {
    name: "pi two owners",
    rung: Rung::Fence,
    plans: &[CPU0, CPU0],
    setup: new,
    roles: &[add, add],
    after: |m| {
        assert!(m.mutex.try_lock());
        // SAFETY: loom checks.
        assert_eq!(m.cell.with(|v| unsafe { *v }), 2);
    },
};

static THREE: Model<M> = Model {
    name: "pi three owners",
    rung: Rung::Fence,
    plans: &[CPU0, CPU0, CPU0],
    setup: new,
    roles: &[add, add, try_add],
    after: |m| assert!(m.mutex.try_lock()),
};

#[test]
fn two_owners() {
    TWO.check();
}

#[test]
fn three_owners() {
    THREE.search(3);
}
