//! L1: protect and clear against unlink, barrier, scan, free.
//!
//! Proves: a reader that got a protected pointer reads neither a freed object
//! nor races with its deleter. On the rseq rung for a slot of the CPU's line
//! (same CPU, other CPU, interrupted first), for an overflow slot filled by a
//! section, with and without a mask, and for publish-and-recheck after too
//! many interruptions; on the membarrier and fence rungs for publish and
//! recheck. With the bare scan of `synchronize` and with a pass of `Core`.
//!
//! Cannot show: that the assembly and the system call keep what `sim` says of
//! them; progress.

use super::*;
use crate::overflow::fill;
use crate::reclaim::Core;
use crate::slot::RESERVED;
use crate::unlink::unlink;
use percpu::sim::harness::Model;
use percpu::sim::{CPU0, CPU1, CUT, MOVED};

struct S {
    slots: Box<Slots>,
    core: Core,
    old: Box<Node>,
    new: Box<Node>,
    src: AtomicPtr<()>,
    reader: Thread,
    held: Kept,
}

fn setup() -> S {
    let slots = opened();
    let old = Node::new(1);
    let reader = Thread::new();
    let held = slots.hold(&reader, RESERVED);
    S {
        core: Core::new(false),
        src: holding(&old),
        new: Node::new(2),
        held: Kept::new(held),
        old,
        reader,
        slots,
    }
}

/// The slot that `setup` took is given back, so that the record has a free one.
fn setup_with_free_record() -> S {
    let s = setup();
    s.held.take().release();
    s
}

fn reader(s: &S) {
    let (slot, object) = s
        .slots
        .protect_with(&s.reader, &s.src, ALL_BITS)
        .expect("never null");
    Node::at(object).read();
    slot.release();
}

fn overflow_reader(s: &S) {
    let (slot, object) = s
        .slots
        .parts()
        .1
        .protect(&s.reader, &s.src, ALL_BITS)
        .expect("never null");
    assert!(slot.is_overflow());
    Node::at(object).read();
    slot.release();
}

fn masked_reader(s: &S) {
    let (slot, object) = s
        .slots
        .parts()
        .1
        .protect(&s.reader, &s.src, !1)
        .expect("never null");
    Node::at(object).read();
    slot.release();
}

/// What a `HazardPointer` does.
fn holder(s: &S) {
    let slot = s.held.take();
    let object = fill(&s.src, slot.word(), ALL_BITS, RESERVED).expect("never null");
    Node::at(object).read();
    slot.release();
}

fn reclaimer(s: &S) {
    let old = unlink(&s.src, s.new.address());
    free_if_unprotected(&s.slots, old);
}

/// Replaces the object and then takes the new one out too.
fn reclaims_two(s: &S) {
    let old = unlink(&s.src, s.new.address());
    free_if_unprotected(&s.slots, old);
    let new = unlink(&s.src, ptr::null_mut());
    free_if_unprotected(&s.slots, new);
}

fn either_reader(s: &S) {
    if let Some((slot, object)) = s.slots.parts().1.protect(&s.reader, &s.src, ALL_BITS) {
        Node::at(object).read();
        slot.release();
    }
}

/// Retires and passes at once.
fn passer(s: &S) {
    let old = unlink(&s.src, s.new.address());
    assert_eq!(old, s.old.address());
    s.core.retire(&s.slots, s.old.retired());
    s.core.reclaim(&s.slots, usize::MAX).unwrap();
}

fn all_is_freed(s: &S) {
    s.core.drain(&s.slots).unwrap();
    assert!(s.old.is_freed());
    assert!(!s.new.is_freed());
    let counters = s.core.counters();
    assert_eq!((counters.retired, counters.reclaimed), (1, 1));
}

static LINE: Model<S> = Model {
    name: "l1 line slot",
    rung: Rung::Rseq,
    plans: &[CPU0, CPU0],
    setup,
    roles: &[reader, reclaimer],
    after: |_| (),
};

#[test]
fn in_a_line() {
    LINE.check();
    LINE.check_with(Rung::Rseq, &[CPU1, CPU0]);
    LINE.check_with(Rung::Rseq, &[MOVED, CPU0]);
}

static OVERFLOW: Model<S> = Model {
    name: "l1 overflow slot",
    rung: Rung::Rseq,
    plans: &[CPU0, CPU0],
    setup: setup_with_free_record,
    roles: &[overflow_reader, reclaimer],
    after: |_| (),
};

static MASKED: Model<S> = Model {
    name: "l1 overflow slot, masked",
    rung: Rung::Rseq,
    plans: &[CPU0, CPU0],
    setup: setup_with_free_record,
    roles: &[masked_reader, reclaimer],
    after: |_| (),
};

static HELD: Model<S> = Model {
    name: "l1 held slot",
    rung: Rung::Rseq,
    plans: &[CPU0, CPU0],
    setup,
    roles: &[holder, reclaimer],
    after: |_| (),
};

#[test]
fn in_an_overflow_slot() {
    for model in [&OVERFLOW, &MASKED, &HELD] {
        on_all_rungs(
            model,
            &[&[CPU0, CPU0], &[CPU1, CPU0], &[MOVED, CPU0], &[CUT, CPU0]],
        );
    }
}

/// A source that changes under the reader, twice.
static TWICE: Model<S> = Model {
    name: "l1 overflow slot, two unlinkings",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup: setup_with_free_record,
    roles: &[either_reader, reclaims_two],
    after: |_| (),
};

#[test]
fn while_the_source_changes() {
    TWICE.check();
}

static PASS: Model<S> = Model {
    name: "l1 a pass of the core",
    rung: Rung::Rseq,
    plans: &[CPU0, CPU0],
    setup: setup_with_free_record,
    roles: &[reader, passer],
    after: all_is_freed,
};

#[test]
fn against_a_pass() {
    on_all_rungs(&PASS, &[&[CPU0, CPU0], &[CPU1, CPU0]]);
}
