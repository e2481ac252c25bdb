//! L14: what the returned pointer promises about the object.
//!
//! Proves: what a publisher wrote before it put an object in is seen through
//! the pointer that protecting it returns (Release of the exchange, Acquire of
//! the section's load or of the recheck), and by whoever takes it out again
//! and frees it (Acquire of the exchange), on all rungs.
//!
//! Cannot show: the difference between the two copies of an equal pointer.
//! They are one number to loom; which of them the compiler goes on with is
//! checked on the assembly (`ptr_eq`).

use super::*;
use crate::unlink::{unlink, unlink_if};
use percpu::sim::harness::Model;
use percpu::sim::{CPU0, CPU1};

struct S {
    slots: Box<Slots>,
    new: Box<Node>,
    src: AtomicPtr<()>,
    reader: Thread,
}

fn setup() -> S {
    let slots = opened();
    let reader = with_record(&slots);
    S {
        slots,
        new: Node::blank(),
        src: AtomicPtr::new(ptr::null_mut()),
        reader,
    }
}

fn publisher(s: &S) {
    s.new.init(7);
    unlink(&s.src, s.new.address());
}

fn conditional_publisher(s: &S) {
    s.new.init(7);
    assert!(unlink_if(&s.src, ptr::null_mut(), s.new.address()).is_some());
}

fn reader(s: &S) {
    if let Some((slot, object)) = s.slots.protect_with(&s.reader, &s.src, ALL_BITS) {
        assert_eq!(Node::at(object).read(), 7);
        slot.release();
    }
}

fn masked_reader(s: &S) {
    if let Some((slot, object)) = s.slots.parts().1.protect(&s.reader, &s.src, !1) {
        assert_eq!(Node::at(object).read(), 7);
        slot.release();
    }
}

/// Takes out what the publisher put in, and frees it.
fn remover(s: &S) {
    let old = unlink(&s.src, ptr::null_mut());
    free_if_unprotected(&s.slots, old);
}

fn conditional_remover(s: &S) {
    if unlink_if(&s.src, s.new.address(), ptr::null_mut()).is_some() {
        free_if_unprotected(&s.slots, s.new.address());
    }
}

static SEEN: Model<S> = Model {
    name: "l14 publish, protect",
    rung: Rung::Rseq,
    plans: &[CPU1, CPU0],
    setup,
    roles: &[publisher, reader],
    after: |_| (),
};

static SEEN_MASKED: Model<S> = Model {
    name: "l14 publish, protect masked",
    rung: Rung::Rseq,
    plans: &[CPU1, CPU0],
    setup,
    roles: &[publisher, masked_reader],
    after: |_| (),
};

static SEEN_CONDITIONAL: Model<S> = Model {
    name: "l14 publish by compare-exchange, protect",
    rung: Rung::Rseq,
    plans: &[CPU1, CPU0],
    setup,
    roles: &[conditional_publisher, reader],
    after: |_| (),
};

#[test]
fn a_protected_object_is_initialised() {
    for model in [&SEEN, &SEEN_MASKED, &SEEN_CONDITIONAL] {
        on_all_rungs(model, &[&[CPU1, CPU0]]);
    }
}

/// Takes out and uses, as `Unlinked` allows without any barrier.
fn taker(s: &S) {
    if let Some(old) = NonNull::new(unlink(&s.src, ptr::null_mut())) {
        assert_eq!(Node::at(old).read(), 7);
    }
}

fn conditional_taker(s: &S) {
    if let Some(old) = unlink_if(&s.src, s.new.address(), ptr::null_mut()) {
        assert_eq!(old, s.new.address());
        assert_eq!(s.new.read(), 7);
    }
}

static TAKEN: Model<S> = Model {
    name: "l14 publish, take",
    rung: Rung::Fence,
    plans: &[CPU0, CPU0],
    setup,
    roles: &[publisher, taker],
    after: |_| (),
};

static TAKEN_CONDITIONAL: Model<S> = Model {
    name: "l14 publish, take by compare-exchange",
    rung: Rung::Fence,
    plans: &[CPU0, CPU0],
    setup,
    roles: &[publisher, conditional_taker],
    after: |_| (),
};

#[test]
fn a_taken_object_is_initialised() {
    TAKEN.check();
    TAKEN_CONDITIONAL.check();
}

static REMOVED: Model<S> = Model {
    name: "l14 publish, remove and free",
    rung: Rung::Rseq,
    plans: &[CPU1, CPU0],
    setup,
    roles: &[publisher, remover],
    after: |_| (),
};

static REMOVED_CONDITIONAL: Model<S> = Model {
    name: "l14 publish, remove by compare-exchange",
    rung: Rung::Rseq,
    plans: &[CPU1, CPU0],
    setup,
    roles: &[conditional_publisher, conditional_remover],
    after: |_| (),
};

static ALL_THREE: Model<S> = Model {
    name: "l14 publish, protect, remove and free",
    rung: Rung::Rseq,
    plans: &[CPU1, CPU0, CPU1],
    setup,
    roles: &[publisher, reader, remover],
    after: |_| (),
};

#[test]
fn a_removed_object_is_initialised() {
    for model in [&REMOVED, &REMOVED_CONDITIONAL] {
        on_all_rungs(model, &[&[CPU1, CPU0]]);
    }
}

#[test]
fn from_publishing_to_freeing() {
    on_all_rungs(&ALL_THREE, &[&[CPU1, CPU0, CPU1]]);
}
