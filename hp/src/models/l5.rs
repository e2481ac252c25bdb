//! L5: moving and cloning a protection, with a scan.
//!
//! Proves, on the rseq rung (where lines are used): a guard that moves from a
//! line to a record protects throughout, whatever of the two a scan in
//! progress has already passed, because the new place is filled before the
//! old one is cleared, and lines are scanned before records; so does a clone
//! whose original is dropped. On the membarrier rung: clones of an overflow
//! guard share its slot, and the last one that goes frees it, after what the
//! others did.
//!
//! Cannot show: more than three guards of one object.

use super::*;
use percpu::sim::harness::Model;
use percpu::sim::{CPU0, CPU1};

struct S {
    slots: Box<Slots>,
    object: Box<Node>,
    thread: Thread,
    guards: [Kept; 3],
}

fn state(slots: Box<Slots>, thread: Thread, guards: [Option<SlotRef>; 3], object: Box<Node>) -> S {
    S {
        slots,
        object,
        thread,
        guards: guards.map(|g| Kept(Cell::new(g))),
    }
}

/// A guard in a line, of an object that is unlinked by now.
fn in_line(with: fn(&Slots) -> Thread) -> S {
    let slots = opened();
    let object = Node::new(1);
    let thread = with(&slots);
    let guard = protect(&slots, &thread, &holding(&object));
    assert!(!guard.is_overflow());
    state(slots, thread, [Some(guard), None, None], object)
}

fn mover(s: &S) {
    let mut guard = s.guards[0].take();
    s.slots.move_out(&s.thread, &mut guard);
    assert!(guard.is_overflow());
    s.object.read();
    guard.release();
}

/// Clone, drop the original, drop the clone.
fn cloner(s: &S) {
    let guard = s.guards[0].take();
    let clone = s.slots.share(&s.thread, &guard);
    s.object.read();
    guard.release();
    s.object.read();
    clone.release();
}

fn scanner(s: &S) {
    free_if_unprotected(&s.slots, s.object.address());
}

/// Looks again until it is free, as `synchronize` does.
fn waiter(s: &S) {
    heavy().unwrap();
    let mut backoff = percpu::wait::Backoff::new();
    while s.slots.is_protected(s.object.addr()) {
        backoff.snooze();
    }
    s.object.free();
}

static MOVES: Model<S> = Model {
    name: "l5 move out, scan",
    rung: Rung::Rseq,
    plans: &[CPU1, CPU0],
    setup: || in_line(with_record),
    roles: &[mover, scanner],
    after: |_| (),
};

static MOVES_TO_NEW: Model<S> = Model {
    name: "l5 move out to a new record, scan",
    rung: Rung::Rseq,
    plans: &[CPU1, CPU0],
    setup: || in_line(|_| Thread::new()),
    roles: &[mover, scanner],
    after: |_| (),
};

static MOVES_TO_POOL: Model<S> = Model {
    name: "l5 move out to the pool, scan",
    rung: Rung::Rseq,
    plans: &[CPU1, CPU0],
    setup: || in_line(|_| without_record()),
    roles: &[mover, scanner],
    after: |_| (),
};

static CLONES: Model<S> = Model {
    name: "l5 clone a line guard, scan",
    rung: Rung::Rseq,
    plans: &[CPU1, CPU0],
    setup: || in_line(with_record),
    roles: &[cloner, scanner],
    after: |_| (),
};

#[test]
fn out_of_a_line() {
    for model in [&MOVES, &MOVES_TO_NEW, &MOVES_TO_POOL, &CLONES] {
        model.check();
    }
}

static MOVES_WAIT: Model<S> = Model {
    name: "l5 move out, wait",
    rung: Rung::Rseq,
    plans: &[CPU1, CPU0],
    setup: || in_line(with_record),
    roles: &[mover, waiter],
    after: |s| assert!(s.object.is_freed()),
};

#[test]
fn a_waiter_waits_for_the_new_place_too() {
    MOVES_WAIT.check();
}

/// `n` guards on one overflow slot.
fn shared(n: usize) -> S {
    let slots = opened();
    let object = Node::new(1);
    let thread = with_record(&slots);
    let (first, _) = slots
        .parts()
        .1
        .protect(&thread, &holding(&object), ALL_BITS)
        .unwrap();
    let mut guards = [Some(first), None, None];
    for n in 1..n {
        let clone = guards[0].as_ref().map(|g| slots.share(&thread, g));
        guards[n] = clone;
    }
    state(slots, thread, guards, object)
}

fn drop_guard(s: &S, n: usize) {
    s.object.read();
    s.guards[n].take().release();
}

static TWO_CLONES: Model<S> = Model {
    name: "l5 two clones of one slot, scan",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0, CPU0],
    setup: || shared(2),
    roles: &[|s| drop_guard(s, 0), |s| drop_guard(s, 1), scanner],
    after: |s| assert!(!s.slots.is_protected(s.object.addr()), "slot is free"),
};

/// One of two clones its guard while the other one goes.
static CLONE_AND_DROP: Model<S> = Model {
    name: "l5 clone an overflow guard, drop another, scan",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0, CPU0],
    setup: || shared(2),
    roles: &[cloner, |s| drop_guard(s, 1), scanner],
    after: |s| assert!(!s.slots.is_protected(s.object.addr()), "slot is free"),
};

static THREE_CLONES: Model<S> = Model {
    name: "l5 three guards of one slot",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0, CPU0],
    setup: || shared(3),
    roles: &[
        |s| drop_guard(s, 0),
        |s| drop_guard(s, 1),
        |s| drop_guard(s, 2),
    ],
    after: |s| assert!(!s.slots.is_protected(s.object.addr()), "slot is free"),
};

#[test]
fn clones_share_a_slot() {
    TWO_CLONES.check();
}

#[test]
fn clones_share_a_slot_while_one_is_cloned() {
    CLONE_AND_DROP.check();
}

#[test]
fn three_guards_free_one_slot() {
    THREE_CLONES.check();
}
