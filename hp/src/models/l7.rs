//! L7: deleters that retire, protect and reclaim.
//!
//! Proves: no lock is held and no list is borrowed while a deleter runs; a
//! deleter's retiring only queues, however much (no pass inside a pass); what
//! it retires is freed before `drain` returns, or by a later pass; nothing is
//! freed twice. Alone on all rungs; with another thread that retires on the
//! rseq rung, as a search of at most three preemptions.
//!
//! Cannot show: deleters that panic (loom ends the execution with the first
//! panic; tests of the real build have them).

use super::*;
use crate::reclaim::Core;
use percpu::sim::harness::Model;
use percpu::sim::{CPU0, CPU1};

loom::thread_local! {
    static DEPTH: Cell<u32> = Cell::new(0);
}

struct S {
    slots: Box<Slots>,
    core: Core,
    outer: Box<Node>,
    inner: [Box<Node>; 2],
    other: Box<Node>,
    /// Still linked.
    linked: Box<Node>,
    src: AtomicPtr<()>,
    alone: bool,
}

fn state(slots: Box<Slots>, alone: bool) -> S {
    let linked = Node::new(5);
    S {
        slots,
        core: Core::new(false),
        outer: Node::new(1),
        inner: [Node::new(2), Node::new(3)],
        other: Node::new(4),
        src: holding(&linked),
        linked,
        alone,
    }
}

/// The deleter of `outer`; its second word is the state.
unsafe fn busy_deleter(address: *mut (), second: MaybeUninit<*mut ()>) {
    // SAFETY: `retire_outer` put the state there, which outlives the roles.
    let s = unsafe { &*second.assume_init().cast::<S>() };
    DEPTH.with(|d| {
        assert_eq!(d.get(), 0, "a pass inside a pass");
        d.set(1);
    });
    if s.alone {
        assert!(s.core.shard().try_lock().is_some(), "locked for a deleter");
    }
    Node::at(NonNull::new(address).unwrap()).free();
    let thread = without_record();
    let (slot, object) = s.slots.protect_with(&thread, &s.src, ALL_BITS).unwrap();
    assert_eq!(Node::at(object).read(), 5);
    slot.release();
    for node in &s.inner {
        s.core.retire(&s.slots, node.retired());
        // (With others about, a retired object is not to be looked at.)
        assert!(!s.alone || !node.is_freed(), "freed inside the deleter");
    }
    assert_eq!(s.core.reclaim(&s.slots, usize::MAX), Ok(0));
    assert_eq!(s.core.drain(&s.slots), Ok(0));
    DEPTH.with(|d| d.set(0));
}

fn retire_outer(s: &S) {
    let context = ptr::from_ref(s).cast_mut().cast();
    // SAFETY: retired once; see the deleter.
    let object = unsafe { Retired::with(s.outer.address(), context, busy_deleter) };
    s.core.retire(&s.slots, object);
}

fn drain_all(s: &S) {
    retire_outer(s);
    s.core.drain(&s.slots).unwrap();
    assert!(s.outer.is_freed());
    assert!(
        s.inner.iter().all(|n| n.is_freed()),
        "drained without what the deleter retired"
    );
}

/// The pass is that of retiring, when the shard is due.
fn retire_until_due(s: &S) {
    s.core.retire(&s.slots, s.other.retired());
    retire_outer(s);
    assert!(s.outer.is_freed(), "the shard was due");
}

fn finish(s: &S, total: u64) {
    s.core.drain(&s.slots).unwrap();
    assert!(s.outer.is_freed() && s.inner.iter().all(|n| n.is_freed()));
    assert!(!s.linked.is_freed());
    let counters = s.core.counters();
    assert_eq!((counters.retired, counters.reclaimed), (total, total));
}

static DRAIN: Model<S> = Model {
    name: "l7 drain alone",
    rung: Rung::Membarrier,
    plans: &[CPU0],
    setup: || state(unused(), true),
    roles: &[drain_all],
    after: |s| finish(s, 3),
};

static DUE: Model<S> = Model {
    name: "l7 due alone",
    rung: Rung::Membarrier,
    plans: &[CPU0],
    setup: || state(unused(), true),
    roles: &[retire_until_due],
    after: |s| finish(s, 4),
};

#[test]
fn alone() {
    on_all_rungs(&DRAIN, &[&[CPU0]]);
    on_all_rungs(&DUE, &[&[CPU0]]);
}

static WITH_RETIRER: Model<S> = Model {
    name: "l7 drain, retire",
    rung: Rung::Rseq,
    plans: &[CPU0, CPU1],
    setup: || state(opened(), false),
    roles: &[
        |s| {
            retire_outer(s);
            s.core.drain(&s.slots).unwrap();
            // By this thread or by the other one. (What the deleter retired on
            // the other one may still wait.)
            assert!(s.outer.is_freed(), "drained too early");
        },
        |s| s.core.retire(&s.slots, s.other.retired()),
    ],
    after: |s| finish(s, 4),
};

#[test]
fn with_a_retirer() {
    WITH_RETIRER.search(3);
}
