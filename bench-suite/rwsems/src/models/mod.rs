//! loom models of this crate, on its own code.
//!
//! Floor 3 (`rwsems`), compiled for tests under `--cfg loom` only. Each model is
//! a tiny program around one lock and one cell of loom's: two threads inside that
//! must not meet are a race, a wake-up that is lost is a deadlock. Futexes are
//! those of `os::sim`; sections and barriers those of `percpu::sim`.
//!
//! | module | what |
//! |---|---|
//! | `pi` | the mutex: two and three owners |
//! | `rwbase` | readers against a writer, overtaking and blocked; two writers |
//! | `vanilla` | the count word: readers against writers, queued and let in |
//! | `per_cpu` | sections against a writer, with and without sections |
//! | `pi_multi` | seats against a writer |
//!
//! The optimistic spinning of `vanilla` is left out (it is a loop of guesses), and
//! patience is always at its end, so that the handoff is part of the model.

mod per_cpu;
mod pi;
mod pi_multi;
mod rwbase;
mod vanilla;

use crate::RwSem;
use percpu::barrier::Rung;
use percpu::sim::harness::Model;
use percpu::sim::{CPU0, Plan};
use percpu::sync::UnsafeCell;

/// A lock and what it guards.
struct S<L> {
    lock: L,
    cell: UnsafeCell<u32>,
}

// SAFETY: loom checks.
unsafe impl<L> Sync for S<L> {}

fn setup<L: RwSem>() -> S<L> {
    S {
        lock: L::new(),
        cell: UnsafeCell::new(0),
    }
}

/// What up to three threads do with a lock that knows no CPU and no barrier.
const fn program<L: RwSem>(
    name: &'static str,
    roles: &'static [fn(&S<L>)],
    after: fn(&S<L>),
) -> Model<S<L>> {
    const PLANS: &[Plan] = &[CPU0; 3];
    Model {
        name,
        rung: Rung::Fence,
        plans: PLANS.split_at(roles.len()).0,
        setup,
        roles,
        after,
    }
}

/// Looks, inside.
fn look<L>(s: &S<L>) -> u32 {
    // SAFETY: loom checks.
    s.cell.with(|v| unsafe { *v })
}

/// Adds one, inside, alone.
fn bump<L>(s: &S<L>) {
    // SAFETY: loom checks.
    s.cell.with_mut(|v| unsafe { *v += 1 });
}

fn reader<L: RwSem>(s: &S<L>) {
    let _guard = s.lock.read();
    look(s);
}

fn writer<L: RwSem>(s: &S<L>) {
    let _guard = s.lock.write();
    bump(s);
}

fn try_reader<L: RwSem>(s: &S<L>) {
    if let Some(_guard) = s.lock.try_read() {
        look(s);
    }
}

fn try_writer<L: RwSem>(s: &S<L>) {
    if let Some(_guard) = s.lock.try_write() {
        bump(s);
    }
}

/// Free again, and nothing was lost.
fn free<L: RwSem>(s: &S<L>, writes: u32) {
    let _guard = s.lock.try_write().expect("not free");
    assert_eq!(look(s), writes, "a write is lost");
}

/// As [`free`], where not all writers got in.
fn free_at_most<L: RwSem>(s: &S<L>, writes: u32) {
    let _guard = s.lock.try_write().expect("not free");
    assert!(look(s) <= writes);
}
