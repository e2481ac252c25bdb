//! L2: a slot that changes hands, with a scan.
//!
//! A uses object 1 under a slot and clears it. B takes the slot for object 2.
//! The scanner finds object 2 there, concludes that object 1 is free, and
//! frees it. B's store ended the release sequence of A's, so B must have
//! acquired what A released, and must release it in turn.
//!
//! Proves: it does, for a slot of a line (rseq rung), for an overflow slot
//! whose guard went to another thread, for one that takes an address already
//! held (a clone, a move), for a pool slot, and for a held slot that goes from
//! one object to the next or to nothing; on all rungs.
//!
//! Cannot show: that two claimers of one CPU's slot exclude each other in the
//! assembly; `sim` excludes them by a lock.

use super::*;
use crate::overflow::fill;
use crate::slot::RESERVED;
use percpu::section;
use percpu::sim::harness::Model;
use percpu::sim::{CPU0, CPU1, CUT, MOVED};

struct S {
    slots: Box<Slots>,
    first: Box<Node>,
    second: Box<Node>,
    /// Holds the second object; the first is unlinked.
    src: AtomicPtr<()>,
    nothing: AtomicPtr<()>,
    /// Of the first object.
    guard: Kept,
    b: Thread,
}

fn state(slots: Box<Slots>, b: Thread, guard: fn(&Slots, &Thread, &AtomicPtr<()>) -> SlotRef) -> S {
    let (first, second) = (Node::new(1), Node::new(2));
    let guard = guard(&slots, &b, &holding(&first));
    S {
        slots,
        src: holding(&second),
        nothing: AtomicPtr::new(ptr::null_mut()),
        first,
        second,
        guard: Kept::new(guard),
        b,
    }
}

fn in_line() -> S {
    state(opened(), Thread::new(), protect)
}

/// In B's record, as after B sent its guard to A.
fn in_record() -> S {
    let slots = opened();
    let b = with_record(&slots);
    state(slots, b, |slots, b, src| {
        slots.parts().1.protect(b, src, ALL_BITS).unwrap().0
    })
}

fn in_pool() -> S {
    state(opened(), without_record(), |slots, b, src| {
        slots.parts().1.protect(b, src, ALL_BITS).unwrap().0
    })
}

/// A: uses the first object and lets go.
fn user(s: &S) {
    s.first.read();
    s.guard.take().release();
}

/// B on a line. Only the line: what it does when the slot is taken is another
/// model.
fn line_claimer(s: &S) {
    let lines = s.slots.parts().0.all();
    // SAFETY: the lines outlive the threads.
    let _ = unsafe { section::search_and_load(lines.as_ptr(), 2, 0, 1, &s.src, ALL_BITS) };
}

/// B in its record, or (if that is full still) in the pool.
fn overflow_claimer(s: &S) {
    let (_, object) = s.slots.parts().1.protect(&s.b, &s.src, ALL_BITS).unwrap();
    s.second.read();
    assert_eq!(object.as_ptr(), s.second.address());
}

fn masked_claimer(s: &S) {
    s.slots.parts().1.protect(&s.b, &s.src, !1).unwrap();
}

/// B's slot gets an address that B protects elsewhere.
fn holding_claimer(s: &S) {
    let _ = s.slots.hold(&s.b, s.second.addr());
}

/// A held slot goes on to the second object.
fn goes_on(s: &S) {
    s.first.read();
    let slot = s.guard.take();
    fill(&s.src, slot.word(), ALL_BITS, RESERVED).unwrap();
    s.second.read();
}

fn goes_on_masked(s: &S) {
    s.first.read();
    let slot = s.guard.take();
    fill(&s.src, slot.word(), !1, RESERVED).unwrap();
}

/// A held slot is asked for a source that is empty.
fn goes_to_nothing(s: &S) {
    s.first.read();
    let slot = s.guard.take();
    assert!(fill(&s.nothing, slot.word(), ALL_BITS, RESERVED).is_err());
}

fn scanner(s: &S) {
    free_if_unprotected(&s.slots, s.first.address());
}

static LINE: Model<S> = Model {
    name: "l2 line slot changes hands",
    rung: Rung::Rseq,
    plans: &[CPU0, CPU0, CPU0],
    setup: in_line,
    roles: &[user, line_claimer, scanner],
    after: |_| (),
};

#[test]
fn of_a_line() {
    LINE.check();
}

static RECORD: Model<S> = Model {
    name: "l2 record slot changes hands",
    rung: Rung::Rseq,
    plans: &[CPU0, CPU0, CPU0],
    setup: in_record,
    roles: &[user, overflow_claimer, scanner],
    after: |_| (),
};

static RECORD_MASKED: Model<S> = Model {
    name: "l2 record slot changes hands, masked",
    rung: Rung::Rseq,
    plans: &[CPU0, CPU0, CPU0],
    setup: in_record,
    roles: &[user, masked_claimer, scanner],
    after: |_| (),
};

static RECORD_HOLD: Model<S> = Model {
    name: "l2 record slot changes hands, hold",
    rung: Rung::Rseq,
    plans: &[CPU0, CPU0, CPU0],
    setup: in_record,
    roles: &[user, holding_claimer, scanner],
    after: |_| (),
};

static POOL: Model<S> = Model {
    name: "l2 pool slot changes hands",
    rung: Rung::Rseq,
    plans: &[CPU0, CPU0, CPU0],
    setup: in_pool,
    roles: &[user, overflow_claimer, scanner],
    after: |_| (),
};

#[test]
fn of_a_record() {
    on_all_rungs(&RECORD, &[&[CPU0, CPU0, CPU0]]);
}

#[test]
fn of_a_record_masked() {
    RECORD_MASKED.check();
}

#[test]
fn of_a_record_by_hold() {
    RECORD_HOLD.check_with(Rung::Membarrier, RECORD_HOLD.plans);
}

#[test]
fn of_the_pool() {
    POOL.check_with(Rung::Membarrier, POOL.plans);
}

static GOES_ON: Model<S> = Model {
    name: "l2 held slot, next object",
    rung: Rung::Rseq,
    plans: &[CPU0, CPU0],
    setup: in_record,
    roles: &[goes_on, scanner],
    after: |_| (),
};

static GOES_ON_MASKED: Model<S> = Model {
    name: "l2 held slot, next object, masked",
    rung: Rung::Rseq,
    plans: &[CPU0, CPU0],
    setup: in_record,
    roles: &[goes_on_masked, scanner],
    after: |_| (),
};

static GOES_TO_NOTHING: Model<S> = Model {
    name: "l2 held slot, empty source",
    rung: Rung::Rseq,
    plans: &[CPU0, CPU0],
    setup: in_record,
    roles: &[goes_to_nothing, scanner],
    after: |_| (),
};

#[test]
fn within_one_owner() {
    for model in [&GOES_ON, &GOES_ON_MASKED, &GOES_TO_NOTHING] {
        on_all_rungs(
            model,
            &[&[CPU0, CPU0], &[CPU1, CPU0], &[MOVED, CPU0], &[CUT, CPU0]],
        );
    }
}
