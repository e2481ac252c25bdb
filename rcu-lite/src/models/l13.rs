//! L13: threads that exit, and domains that end, with callbacks queued.
//!
//! Proves: what a thread queued before it gave its record back and went is run
//! by others, once, and after the readers that could see it; a barrier that
//! runs meanwhile waits for none that is gone, and the next thread with the
//! record reads as safely. A domain that ends runs all that waits, also what a
//! callback queues in its turn, and what another thread's pass had taken.
//!
//! Cannot show: the thread-local destructor and the `Drop` of `Rcu` themselves
//! (statics and thread-locals are outside loom); the models do what they do.
//!
//! Rungs: all three for a reader that leaves as the domain ends; membarrier for
//! the rest. A thread that exits as another begins, with a pass, is a search of
//! at most three preemptions.

use super::*;
use crate::domain::Core;
use crate::local::Running;
use crate::queue::{Callbacks, Domain, Queue, barrier, call, finish, pass};
use crate::records::{Asymmetric, Record, Records};
use crate::thread;
use core::cell::Cell;
use percpu::barrier::{BarrierLost, rung};
use percpu::sim::CPU0;
use percpu::sim::harness::Model;

/// What `ThreadRcu` keeps in a static.
#[derive(Debug)]
struct Flavor {
    records: Asymmetric,
    grace: Grace,
    queue: Queue,
}

impl Readers for Flavor {
    fn turn(&self) {
        self.records.turn();
    }

    fn barrier(&self) -> Result<(), BarrierLost> {
        self.records.barrier()
    }

    fn drained(&self) -> bool {
        self.records.drained()
    }
}

impl Domain for Flavor {
    type Keep = &'static Flavor;

    fn keep(&self) -> &'static Flavor {
        unreachable!("models start no worker")
    }

    fn grace(&self) -> &Grace {
        &self.grace
    }

    fn queue(&self) -> &Queue {
        &self.queue
    }

    fn assert_outside(&self, _: &str) {}
}

struct S {
    flavor: Flavor,
    source: Source,
    mine: Cell<*const Record>,
}

fn setup() -> S {
    let records = Asymmetric(Records::new());
    S {
        mine: Cell::new(records.0.take_ptr()),
        flavor: Flavor {
            records,
            grace: Grace::new(),
            queue: Queue::new(Callbacks::Manual),
        },
        source: Source::new(),
    }
}

impl S {
    fn section(&self, record: &Record) {
        thread::enter(&self.flavor.records.0, record, rung());
        self.source.read();
        record.leave();
    }

    fn all_have_run(&self) {
        barrier(&self.flavor, "barrier");
        assert!(self.source.nodes[0].is_freed(), "lost");
        let stats = self.flavor.queue.stats(&self.flavor.grace);
        assert_eq!((stats.queued, stats.run), (1, 1));
    }
}

/// Reads, queues, and ends.
fn exits(s: &S) {
    // SAFETY: records live as long as their list, which the state owns.
    let mine = unsafe { &*s.mine.get() };
    s.section(mine);
    call(&s.flavor, s.source.unlink(1).to_free());
    s.flavor.records.0.give_back(mine);
}

/// Begins, with that record or another one.
fn begins(s: &S) {
    // SAFETY: as above.
    let mine = unsafe { &*s.flavor.records.0.take_ptr() };
    s.section(mine);
    s.flavor.records.0.give_back(mine);
}

fn waits(s: &S) {
    barrier(&s.flavor, "barrier");
}

static EXIT: Model<S> = Model {
    name: "l13 thread exits, barrier",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup,
    roles: &[exits, waits],
    after: S::all_have_run,
};

static EXIT_BEGIN: Model<S> = Model {
    name: "l13 thread exits, another begins, pass",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0, CPU0],
    setup,
    roles: &[exits, begins, |s| {
        pass(&s.flavor, Running::Inline);
    }],
    after: S::all_have_run,
};

#[test]
fn a_thread_exits() {
    EXIT.check();
    EXIT_BEGIN.search(3);
}

/// A domain that ends.
struct E {
    core: Box<Core>,
    nodes: [Box<Node>; 2],
}

/// One callback waits; it queues another one.
fn one_waits() -> E {
    let core = Box::new(Core::new(Callbacks::Manual));
    let nodes = [Node::new(1), Node::new(2)];
    // SAFETY: the core is in a box that outlives its callbacks.
    let longer: &'static Core = unsafe { &*ptr::from_ref(&*core) };
    let (first, second) = (nodes[0].to_free(), nodes[1].to_free());
    call(longer, move || {
        first();
        call(longer, second);
    });
    E { core, nodes }
}

fn ends(e: &E) {
    finish(&*e.core);
    assert!(e.nodes.iter().all(|node| node.is_freed()), "lost");
}

static END: Model<E> = Model {
    name: "l13 domain ends, pass",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup: one_waits,
    roles: &[ends, |e| {
        pass(&*e.core, Running::Free);
    }],
    after: |e| {
        let stats = e.core.queue().stats(e.core.grace());
        assert_eq!((stats.queued, stats.run), (2, 2));
    },
};

/// A domain that ends while another thread waits for its last reader.
struct R {
    core: Box<Core>,
    source: Source,
    kept: Cell<Option<Entered>>,
}

fn one_inside() -> R {
    let core = Box::new(Core::new(Callbacks::Manual));
    core.counters().open_all();
    let source = Source::new();
    let kept = Cell::new(Some(enter(core.counters())));
    call(&*core, source.unlink(1).to_free());
    R { core, source, kept }
}

static END_READ: Model<R> = Model {
    name: "l13 leave and domain ends, pass",
    rung: Rung::Rseq,
    plans: &[CPU0, CPU0],
    setup: one_inside,
    roles: &[
        |r| {
            r.source.nodes[0].read();
            r.core
                .counters()
                .leave(r.kept.take().expect("entered in setup"));
            finish(&*r.core);
            assert!(r.source.nodes[0].is_freed(), "lost");
        },
        |r| {
            pass(&*r.core, Running::Free);
        },
    ],
    after: |_| (),
};

#[test]
fn a_domain_ends() {
    END.check();
    on_all_rungs(&END_READ, &[&[CPU0, CPU0]]);
}
