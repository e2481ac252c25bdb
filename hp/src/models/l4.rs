//! L4: a record that a new thread takes over.
//!
//! A thread leaves its record (it exits) while one of its slots is still held
//! by a guard that went elsewhere. The next thread takes the record, finds
//! that slot taken, and goes on to a shared one.
//!
//! Proves: the new owner sees every slot that the old one filled, so it never
//! overwrites a protection; two threads never own one record. A guard
//! that is kept, on all rungs; the rest on the membarrier rung, with a scan at
//! the same time as a search of at most two preemptions.
//!
//! Cannot show: that thread exit runs `leave` (thread-local destructors are
//! outside loom; tests of the real build show it). There is no free list and
//! hence no ABA to model.

use super::*;
use crate::unlink::unlink;
use percpu::sim::CPU0;
use percpu::sim::harness::Model;

struct S {
    slots: Box<Slots>,
    first: Box<Node>,
    second: Box<Node>,
    src: AtomicPtr<()>,
    other: AtomicPtr<()>,
    old: Thread,
    new: Thread,
    next: Thread,
    kept: [Cell<Option<SlotRef>>; 2],
}

fn setup() -> S {
    let slots = opened();
    let old = with_record(&slots);
    let (first, second) = (Node::new(1), Node::new(2));
    S {
        src: holding(&first),
        other: holding(&second),
        first,
        second,
        old,
        new: Thread::new(),
        next: Thread::new(),
        kept: [Cell::new(None), Cell::new(None)],
        slots,
    }
}

/// Protects, exits, and the guard is used after that.
fn leaver(s: &S) {
    let guard = s.slots.parts().1.protect(&s.old, &s.src, ALL_BITS);
    s.old.leave();
    if let Some((slot, object)) = guard {
        Node::at(object).read();
        slot.release();
    }
}

/// A thread that needs an overflow slot and has no record.
fn newcomer(s: &S) {
    let (_, object) = s
        .slots
        .parts()
        .1
        .protect(&s.new, &s.other, ALL_BITS)
        .unwrap();
    assert_eq!(Node::at(object).read(), 2);
}

/// The same with an address that it protects elsewhere: fewer steps.
fn holder(s: &S) {
    let _ = s.slots.hold(&s.new, s.second.addr());
}

fn reclaimer(s: &S) {
    let old = unlink(&s.src, ptr::null_mut());
    free_if_unprotected(&s.slots, old);
}

static TAKEN_OVER: Model<S> = Model {
    name: "l4 record taken over with a slot held",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0, CPU0],
    setup,
    roles: &[leaver, holder, reclaimer],
    after: |_| (),
};

/// The reclaimer only afterwards, so that the newcomer can do more.
fn guard_holds(s: &S) {
    assert!(s.kept[0].take().is_none_or(|slot| {
        let found = s.slots.is_protected(s.first.addr());
        slot.release();
        found
    }));
    assert!(s.slots.is_protected(s.second.addr()));
}

static HELD: Model<S> = Model {
    name: "l4 record taken over, guard kept",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup,
    roles: &[
        |s| {
            let guard = s.slots.parts().1.protect(&s.old, &s.src, ALL_BITS);
            s.old.leave();
            s.kept[0].set(guard.map(|(slot, _)| slot));
        },
        newcomer,
    ],
    after: guard_holds,
};

#[test]
fn held_slots_stay_held() {
    on_all_rungs(&HELD, &[&[CPU0, CPU0]]);
}

#[test]
fn held_slots_stay_held_with_a_scan() {
    TAKEN_OVER.search(2);
}

static TWO: Model<S> = Model {
    name: "l4 two want one record",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup: || {
        let s = setup();
        s.old.leave();
        s
    },
    roles: &[
        |s| s.kept[0].set(Some(s.slots.hold(&s.new, s.first.addr()))),
        |s| s.kept[1].set(Some(s.slots.hold(&s.next, s.second.addr()))),
    ],
    after: |s| {
        assert!(s.slots.is_protected(s.first.addr()));
        assert!(s.slots.is_protected(s.second.addr()));
    },
};

#[test]
fn one_record_has_one_owner() {
    TWO.check();
}
