//! L3: records and pool slots that come into use, with a scan.
//!
//! Proves: a protection in the first slot of a record that was linked just
//! now, or of a pool record that was never used before, is seen by a scan whose
//! heavy barrier came after it; a scan that meets a record while it is being
//! linked sees it initialised. A shared record beyond the pool is linked with
//! its first slot taken. Protections against scans on all rungs; walks and
//! links, which know no barrier, on the membarrier rung. (First use of a line: `percpu`'s `models::l3`.)
//!
//! Cannot show: that the Release of `pool_used` matters by itself; the barrier
//! of the protection that follows orders it (`UNKILLABLE` in `ci/mutants.py`).

use super::*;
use crate::overflow::Overflow;
use crate::slot::RESERVED;
use crate::unlink::unlink;
use percpu::sim::CPU0;
use percpu::sim::harness::Model;

struct S {
    slots: Box<Slots>,
    object: Box<Node>,
    src: AtomicPtr<()>,
    reader: Thread,
}

fn state(slots: Box<Slots>, reader: Thread) -> S {
    let object = Node::new(1);
    S {
        slots,
        src: holding(&object),
        object,
        reader,
    }
}

/// No record yet.
fn fresh() -> S {
    state(opened(), Thread::new())
}

/// Will use the pool, for the first time.
fn pooled() -> S {
    state(opened(), without_record())
}

/// The pool is full.
fn pool_full() -> S {
    let slots = opened();
    let _ = slots.hold(&without_record(), RESERVED);
    state(slots, without_record())
}

fn overflow(s: &S) -> &Overflow {
    s.slots.parts().1
}

fn reader(s: &S) {
    if let Some((slot, object)) = overflow(s).protect(&s.reader, &s.src, ALL_BITS) {
        Node::at(object).read();
        slot.release();
    }
}

fn reclaimer(s: &S) {
    let old = unlink(&s.src, ptr::null_mut());
    free_if_unprotected(&s.slots, old);
}

/// Scans for an object that nobody protects: only has to survive the walk.
fn bystander(s: &S) {
    assert!(!s.slots.is_protected(64));
    assert!(overflow(s).acquires() <= 2);
}

static RECORD: Model<S> = Model {
    name: "l3 first record, scan",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup: fresh,
    roles: &[reader, reclaimer],
    after: |_| (),
};

static POOL: Model<S> = Model {
    name: "l3 first pool slot, scan",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup: pooled,
    roles: &[reader, reclaimer],
    after: |_| (),
};

static BEYOND: Model<S> = Model {
    name: "l3 first shared record beyond the pool, scan",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup: pool_full,
    roles: &[reader, reclaimer],
    after: |_| (),
};

#[test]
fn a_first_slot_is_seen() {
    for model in [&RECORD, &POOL, &BEYOND] {
        on_all_rungs(model, &[&[CPU0, CPU0]]);
    }
}

static WALK: Model<S> = Model {
    name: "l3 a record is linked during a walk",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup: fresh,
    roles: &[
        |s| {
            let _ = s.slots.hold(&s.reader, RESERVED);
        },
        bystander,
    ],
    after: |_| (),
};

static WALK_BEYOND: Model<S> = Model {
    name: "l3 a shared record is linked during a walk",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup: pool_full,
    roles: &[
        |s| {
            let _ = s.slots.hold(&s.reader, RESERVED);
        },
        bystander,
    ],
    after: |_| (),
};

#[test]
fn a_record_is_linked_whole() {
    WALK.check();
    WALK_BEYOND.check();
}

/// Two threads link their first records, and two take a pool slot each.
struct Two {
    slots: Box<Slots>,
    threads: [Thread; 2],
    kept: [Cell<Option<SlotRef>>; 2],
}

fn take(s: &Two, me: usize) {
    s.kept[me].set(Some(s.slots.hold(&s.threads[me], 64 * (me + 1))));
}

fn both_are_there(s: &Two) {
    assert!(s.slots.is_protected(64) && s.slots.is_protected(128));
    for kept in &s.kept {
        kept.take().unwrap().release();
    }
    assert!(!s.slots.is_protected(64) && !s.slots.is_protected(128));
}

static TWO_RECORDS: Model<Two> = Model {
    name: "l3 two link at the same time",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup: || Two {
        slots: opened(),
        threads: [Thread::new(), Thread::new()],
        kept: [Cell::new(None), Cell::new(None)],
    },
    roles: &[|s| take(s, 0), |s| take(s, 1)],
    after: both_are_there,
};

static TWO_SHARED: Model<Two> = Model {
    name: "l3 two take shared slots at the same time",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup: || Two {
        slots: opened(),
        threads: [without_record(), without_record()],
        kept: [Cell::new(None), Cell::new(None)],
    },
    roles: &[|s| take(s, 0), |s| take(s, 1)],
    after: both_are_there,
};

#[test]
fn two_never_get_one_slot() {
    TWO_RECORDS.check();
    TWO_SHARED.check();
}
