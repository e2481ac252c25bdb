//! L8: the end of a domain with a guard alive.
//!
//! Proves: what a domain still holds when it goes is handed to another one
//! complete, what is protected outlives its guard and not longer than the next
//! drain, and the other domain's passes meanwhile neither free it too early
//! nor twice. With the guard alone on all rungs, with a
//! pass at the same time on the rseq rung. (Records and lines belong to
//! the process; no scan can meet one that is gone.)
//!
//! Cannot show: the `Drop` of `Domain` itself (safe level, not built under
//! loom); the model does what it does, step by step.

use super::*;
use crate::reclaim::Core;
use percpu::sim::CPU0;
use percpu::sim::harness::Model;

struct S {
    slots: Box<Slots>,
    /// The domain that goes.
    own: Cell<Option<Core>>,
    global: Core,
    guarded: Box<Node>,
    free: Box<Node>,
    guard: Kept,
}

fn setup() -> S {
    let slots = opened();
    let (guarded, free) = (Node::new(1), Node::new(2));
    let thread = Thread::new();
    let guard = protect(&slots, &thread, &holding(&guarded));
    let own = Core::new(true);
    own.retire(&slots, guarded.retired());
    own.retire(&slots, free.retired());
    S {
        slots,
        own: Cell::new(Some(own)),
        global: Core::new(false),
        guarded,
        free,
        guard: Kept::new(guard),
    }
}

/// What `Domain`'s drop does.
fn goes(s: &S) {
    let mut own = s.own.take().unwrap();
    own.drain(&s.slots).unwrap();
    let rest = own.take_all();
    let counters = own.counters();
    assert_eq!(counters.retired, 2);
    assert_eq!(counters.reclaimed + rest.len() as u64, 2);
    drop(own);
    s.global.adopt(rest);
    assert!(s.free.is_freed());
}

fn holder(s: &S) {
    s.guarded.read();
    s.guard.take().release();
}

fn all_is_freed(s: &S) {
    s.global.drain(&s.slots).unwrap();
    assert!(s.guarded.is_freed() && s.free.is_freed(), "lost");
    let counters = s.global.counters();
    assert_eq!(counters.retired, counters.reclaimed);
    assert!(counters.retired <= 1);
}

static GOES: Model<S> = Model {
    name: "l8 domain goes, guard goes",
    rung: Rung::Rseq,
    plans: &[CPU0, CPU0],
    setup,
    roles: &[goes, holder],
    after: all_is_freed,
};

static GOES_WITH_PASS: Model<S> = Model {
    name: "l8 domain goes, guard goes, global pass",
    rung: Rung::Rseq,
    plans: &[CPU0, CPU0, CPU0],
    setup,
    roles: &[goes, holder, |s| {
        s.global.reclaim(&s.slots, usize::MAX).unwrap();
    }],
    after: all_is_freed,
};

#[test]
fn a_guard_outlives_the_domain() {
    on_all_rungs(&GOES, &[&[CPU0, CPU0]]);
}

#[test]
fn another_domain_passes_meanwhile() {
    GOES_WITH_PASS.check();
}
