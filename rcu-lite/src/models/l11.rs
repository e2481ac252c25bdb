//! L11: callbacks against passes, barriers and readers; a worker that leaves.
//!
//! Proves, on the product's queue with one shard: what was queued before a
//! barrier has run when that returns, whoever ran it, and everything runs once;
//! what a thread did before it queued happens before the callback, and what the
//! callback did before the barrier's end, also by way of the inbox; a callback
//! does not free what a reader reached, on every rung, with passes that wait
//! and with such as do not. A worker that leaves while a callback is queued
//! either finds it or is replaced (liburcu 51b98c3), also where the mode of the
//! queue changes meanwhile.
//!
//! Cannot show: more than one shard; that a thread can be started (the model
//! of the worker ends at the announcement); a runner that vanishes in a fork;
//! panics in callbacks (all three: tests on the real build). Models with
//! three roles are searches of a few preemptions.

use super::*;
use crate::domain::Core;
use crate::local::Running;
use crate::queue::{Callbacks, Domain, barrier, call, pass, set_callbacks};
use crate::shard::LockedShard;
use crate::worker::{attend, leave_unless_needed, start};
use core::cell::Cell;
use percpu::sim::harness::Model;
use percpu::sim::{CPU0, CPU1};

struct S {
    /// Locked in setup; goes before what it borrows.
    locked: Cell<Option<LockedShard<'static>>>,
    /// The reader that is inside when the roles begin.
    kept: Cell<Option<Entered>>,
    stays: Cell<bool>,
    source: Source,
    blank: [Box<Node>; 2],
    core: Box<Core>,
}

fn with(callbacks: Callbacks) -> S {
    let core = Box::new(Core::new(callbacks));
    core.counters().open_all();
    S {
        locked: Cell::new(None),
        kept: Cell::new(None),
        stays: Cell::new(false),
        source: Source::new(),
        blank: [Node::blank(), Node::blank()],
        core,
    }
}

fn manual() -> S {
    with(Callbacks::Manual)
}

/// The first object waits already.
fn one_waits() -> S {
    let s = manual();
    call(&*s.core, s.source.unlink(1).to_free());
    s
}

impl S {
    /// The callback writes the object too, so this must come before it.
    fn use_and_call(&self, n: usize) {
        self.blank[n].init(1);
        call(&*self.core, self.blank[n].to_free());
    }

    fn pass(&self) {
        pass(&*self.core, Running::Free);
    }

    fn barrier(&self) {
        barrier(&*self.core, "barrier");
    }

    fn unlink_and_call(&self) {
        call(&*self.core, self.source.unlink(1).to_free());
    }

    fn read(&self) {
        let entered = enter(self.core.counters());
        self.source.read();
        self.core.counters().leave(entered);
    }

    /// Each callback has run, and once.
    fn all_have_run(&self, nodes: &[&Node]) {
        self.barrier();
        assert!(nodes.iter().all(|node| node.is_freed()), "lost");
        let stats = self.core.queue().stats(self.core.grace());
        let count = nodes.len() as u64;
        assert_eq!((stats.queued, stats.run), (count, count));
    }

    fn both_have_run(&self) {
        self.all_have_run(&[&self.blank[0], &self.blank[1]]);
    }
}

static CALL_CALL: Model<S> = Model {
    name: "l11 call, call",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup: manual,
    roles: &[|s| s.use_and_call(0), |s| s.use_and_call(1)],
    after: S::both_have_run,
};

static CALL_PASS: Model<S> = Model {
    name: "l11 call, pass",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup: one_waits,
    roles: &[|s| s.use_and_call(0), S::pass],
    after: |s| s.all_have_run(&[&s.source.nodes[0], &s.blank[0]]),
};

/// The same where the pass's grace period needs no barrier, which would order
/// more than the queue does.
static CALL_PASS_CLOSED: Model<S> = Model {
    name: "l11 call, pass without barrier",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup: || {
        let s = one_waits();
        s.core.grace().close();
        s
    },
    roles: &[|s| s.use_and_call(0), S::pass],
    after: |s| s.all_have_run(&[&s.source.nodes[0], &s.blank[0]]),
};

#[test]
fn calls_and_passes() {
    CALL_CALL.check();
    CALL_PASS_CLOSED.check();
    CALL_PASS.check();
}

/// The shard is locked by a thread that waits for the processor.
fn locked() -> S {
    let s = manual();
    // SAFETY: the core is in a box that lives as long as the lock.
    let longer: &'static Core = unsafe { &*ptr::from_ref(&*s.core) };
    s.locked.set(longer.queue().lock_for_models());
    s
}

static POST_POST: Model<S> = Model {
    name: "l11 two call by the inbox",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup: locked,
    roles: &[|s| s.use_and_call(0), |s| s.use_and_call(1)],
    after: |s| {
        drop(s.locked.take());
        s.both_have_run();
    },
};

/// The pass waits for the shard until the other one is through.
static POST_PASS: Model<S> = Model {
    name: "l11 call by the inbox, pass",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup: locked,
    roles: &[
        |s| {
            s.use_and_call(0);
            drop(s.locked.take());
            s.use_and_call(1);
        },
        S::pass,
    ],
    after: S::both_have_run,
};

#[test]
fn the_inbox() {
    POST_POST.check();
    POST_PASS.check();
}

/// What waited before has run.
fn barrier_for_first(s: &S) {
    s.barrier();
    assert!(s.source.nodes[0].is_freed(), "too early");
}

static BARRIER_PASS: Model<S> = Model {
    name: "l11 barrier, pass",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup: one_waits,
    roles: &[barrier_for_first, S::pass],
    after: |s| s.all_have_run(&[&s.source.nodes[0]]),
};

static BARRIER_BARRIER: Model<S> = Model {
    name: "l11 barrier, barrier",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup: one_waits,
    roles: &[barrier_for_first, barrier_for_first],
    after: |s| s.all_have_run(&[&s.source.nodes[0]]),
};

/// The pass may have taken the list just before, or just after.
static CALL_BARRIER_PASS: Model<S> = Model {
    name: "l11 call and barrier, pass",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup: one_waits,
    roles: &[
        |s| {
            s.use_and_call(0);
            s.barrier();
            assert!(s.blank[0].is_freed(), "too early");
        },
        S::pass,
    ],
    after: |s| s.all_have_run(&[&s.source.nodes[0], &s.blank[0]]),
};

/// What one thread queued, another one waits for.
static CALL_BARRIER: Model<S> = Model {
    name: "l11 call, barrier",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup: one_waits,
    roles: &[|s| s.use_and_call(0), barrier_for_first],
    after: |s| s.all_have_run(&[&s.source.nodes[0], &s.blank[0]]),
};

#[test]
fn barriers() {
    BARRIER_PASS.check();
    BARRIER_BARRIER.check();
    CALL_BARRIER.check();
}

#[test]
fn a_barrier_after_a_call() {
    CALL_BARRIER_PASS.check();
}

/// The batch of a pass that did not wait.
fn left_half_way() -> S {
    let s = manual();
    s.kept.set(Some(enter(s.core.counters())));
    call(&*s.core, s.source.unlink(1).to_free());
    assert_eq!(pass(&*s.core, Running::Inline), Some(0));
    s
}

static HALF_WAY: Model<S> = Model {
    name: "l11 leave, call and barrier, a pass that does not wait",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup: left_half_way,
    roles: &[
        |s| {
            s.core
                .counters()
                .leave(s.kept.take().expect("entered in setup"));
            s.use_and_call(0);
            s.barrier();
            assert!(s.blank[0].is_freed(), "too early");
        },
        |s| {
            pass(&*s.core, Running::Inline);
            pass(&*s.core, Running::Inline);
        },
    ],
    after: |s| s.all_have_run(&[&s.source.nodes[0], &s.blank[0]]),
};

/// A reader is inside, and a callback waits for it.
fn one_inside() -> S {
    let s = manual();
    s.kept.set(Some(enter(s.core.counters())));
    call(&*s.core, s.source.unlink(1).to_free());
    s
}

static LEFT_TWICE: Model<S> = Model {
    name: "l11 barrier, two passes that do not wait and leave",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup: one_inside,
    roles: &[barrier_for_first, |s| {
        pass(&*s.core, Running::Inline);
        pass(&*s.core, Running::Inline);
        s.core
            .counters()
            .leave(s.kept.take().expect("entered in setup"));
    }],
    after: |s| s.all_have_run(&[&s.source.nodes[0]]),
};

#[test]
fn a_pass_is_left_half_way() {
    HALF_WAY.check();
    LEFT_TWICE.check();
}

/// The queuing thread passes at once.
static INLINE: Model<S> = Model {
    name: "l11 reader, unlink and call inline",
    rung: Rung::Rseq,
    plans: &[CPU0, CPU0],
    setup: || with(Callbacks::Inline { threshold: 1 }),
    roles: &[S::read, S::unlink_and_call],
    after: |s| s.all_have_run(&[&s.source.nodes[0]]),
};

static BARRIER_READER: Model<S> = Model {
    name: "l11 reader, unlink and call and barrier",
    rung: Rung::Rseq,
    plans: &[CPU0, CPU0],
    setup: manual,
    roles: &[S::read, |s| {
        s.unlink_and_call();
        barrier_for_first(s);
    }],
    after: |s| s.all_have_run(&[&s.source.nodes[0]]),
};

#[test]
fn a_reader() {
    on_all_rungs(&INLINE, &[&[CPU0, CPU0], &[CPU1, CPU0]]);
    on_all_rungs(&BARRIER_READER, &[&[CPU0, CPU0]]);
}

/// The thread that frees is not the one that unlinked.
static HANDED_ON: Model<S> = Model {
    name: "l11 reader, unlink and call, pass",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0, CPU0],
    setup: manual,
    roles: &[S::read, S::unlink_and_call, |s| {
        pass(&*s.core, Running::Inline);
    }],
    after: |s| s.all_have_run(&[&s.source.nodes[0]]),
};

/// A grace period of somebody else is over before the unlinking.
static TOO_EARLY: Model<S> = Model {
    name: "l11 reader, grace period and unlink and call, pass",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0, CPU0],
    setup: manual,
    roles: &[
        S::read,
        |s| {
            poll(s.core.grace(), &*s.core);
            s.unlink_and_call();
        },
        |s| {
            pass(&*s.core, Running::Inline);
        },
    ],
    after: |s| s.all_have_run(&[&s.source.nodes[0]]),
};

#[test]
fn the_unlinking_goes_with_the_callback() {
    HANDED_ON.search(3);
    TOO_EARLY.search(3);
}

// The worker.

/// A worker that has nothing left to do, and begins to leave.
fn attended() -> S {
    let s = with(Callbacks::Worker);
    s.unlink_and_call();
    assert!(!start(&*s.core), "announced by the first callback");
    attend(&*s.core);
    s.pass();
    s
}

fn leaves(s: &S) {
    if !leave_unless_needed(&*s.core) {
        s.stays.set(true);
        s.pass();
    }
}

/// Where the callback still waits, there is a new worker: one that was
/// announced by somebody else than the old one.
fn nothing_is_lost(s: &S) {
    // Relaxed: all threads have been joined.
    let announced = s.core.queue().worker.load(Ordering::Relaxed) != 0;
    if !s.blank[0].is_freed() {
        assert!(announced && !s.stays.get(), "nobody comes for the callback");
    }
    s.all_have_run(&[&s.source.nodes[0], &s.blank[0]]);
}

static LEAVES: Model<S> = Model {
    name: "l11 worker leaves, call",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup: attended,
    roles: &[leaves, |s| s.use_and_call(0)],
    after: nothing_is_lost,
};

/// Nobody queues: it has left.
static LEAVES_ALONE: Model<S> = Model {
    name: "l11 worker leaves",
    rung: Rung::Membarrier,
    plans: &[CPU0],
    setup: attended,
    roles: &[leaves],
    after: |s| {
        // Relaxed: all threads have been joined.
        let announced = s.core.queue().worker.load(Ordering::Relaxed) != 0;
        assert!(!announced && !s.stays.get());
    },
};

/// Two queue, so that one of them finds the shard locked by the other.
static LEAVES_TWO: Model<S> = Model {
    name: "l11 worker leaves, call, call",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0, CPU0],
    setup: attended,
    roles: &[leaves, |s| s.use_and_call(0), |s| s.use_and_call(1)],
    after: |s| {
        // Relaxed: all threads have been joined.
        let announced = s.core.queue().worker.load(Ordering::Relaxed) != 0;
        let freed = s.blank.iter().all(|node| node.is_freed());
        assert!(freed || announced, "nobody comes for the callback");
        s.all_have_run(&[&s.source.nodes[0], &s.blank[0], &s.blank[1]]);
    },
};

#[test]
fn a_worker_leaves() {
    LEAVES_ALONE.check();
    LEAVES.check();
    LEAVES_TWO.search(2);
}

/// It comes back for a callback that waits, and moves what is in the inbox to
/// the shard, while another thread takes both.
static COMES_BACK: Model<S> = Model {
    name: "l11 worker comes back, call and barrier",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup: || {
        let s = attended();
        s.use_and_call(1);
        s
    },
    roles: &[
        |s| s.stays.set(!leave_unless_needed(&*s.core)),
        |s| {
            s.use_and_call(0);
            s.barrier();
            assert!(s.blank[0].is_freed(), "too early");
        },
    ],
    after: |s| s.all_have_run(&[&s.source.nodes[0], &s.blank[0], &s.blank[1]]),
};

#[test]
fn a_worker_comes_back() {
    COMES_BACK.check();
}

/// A pass that does not wait has taken everything, and is left.
static UNDER_WAY: Model<S> = Model {
    name: "l11 worker leaves, a pass that does not wait",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup: || {
        let s = attended();
        s.kept.set(Some(enter(s.core.counters())));
        s.use_and_call(0);
        s
    },
    roles: &[
        |s| s.stays.set(!leave_unless_needed(&*s.core)),
        |s| {
            pass(&*s.core, Running::Inline);
        },
    ],
    after: |s| {
        assert!(s.stays.get(), "nobody comes for the batch");
        let entered = s.kept.take().expect("entered in setup");
        s.core.counters().leave(entered);
        s.all_have_run(&[&s.source.nodes[0], &s.blank[0]]);
    },
};

#[test]
fn a_worker_leaves_a_batch() {
    UNDER_WAY.check();
}

/// It leaves because the mode is another one, which changes back.
static MODE: Model<S> = Model {
    name: "l11 worker leaves, worker wanted again",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup: || {
        let s = attended();
        set_callbacks(&*s.core, Callbacks::Manual);
        s.use_and_call(0);
        s
    },
    roles: &[leaves, |s| set_callbacks(&*s.core, Callbacks::Worker)],
    after: nothing_is_lost,
};

#[test]
fn the_mode_changes() {
    MODE.check();
}
