//! `RcuCell`: publication.
//!
//! Proves: who loads a value sees it whole, by `load`, in `update` and from a
//! `compare_and_replace` that lost; who drops an old value has seen it whole
//! too; no update is lost. On the membarrier rung, with the callbacks of a
//! domain that nobody runs but its barrier.
//!
//! Cannot show: that what is replaced is not dropped too early: it can, but
//! that is the grace period's matter (`l10a`, `l11`).

use super::rcu::Rcu;
use super::*;
use crate::{Callbacks, RcuCell};
use percpu::sim::CPU0;
use percpu::sim::harness::Model;
use std::sync::Arc;

/// Frees the object that it stands for.
#[derive(Clone, Copy)]
struct Ref(&'static Node);

struct Value(Ref);

impl Drop for Value {
    fn drop(&mut self) {
        self.0.0.free();
    }
}

struct S {
    /// Goes first, and with it the last value.
    cell: RcuCell<Value, Arc<Rcu>>,
    rcu: Arc<Rcu>,
    nodes: [Box<Node>; 4],
}

fn setup() -> S {
    let rcu = Arc::new(Rcu::with_callbacks(Callbacks::Manual));
    let nodes = [Node::new(1), Node::blank(), Node::blank(), Node::blank()];
    S {
        cell: RcuCell::new_in(value(&nodes[0]), Arc::clone(&rcu)),
        rcu,
        nodes,
    }
}

fn value(node: &Node) -> Value {
    Value(Ref(Node::at(node.address())))
}

impl S {
    /// A value that is made here and now.
    fn fresh(&self, n: usize) -> Value {
        self.nodes[n].init(1);
        value(&self.nodes[n])
    }

    fn load(&self) {
        let guard = self.rcu.read();
        self.cell.load(&guard).0.0.read();
    }

    fn update(&self, n: usize) {
        let mut tries = n;
        self.cell.update(|old| {
            old.0.0.read();
            let new = self.fresh(tries);
            tries += 1;
            new
        });
    }

    fn compare_and_replace(&self, n: usize) {
        let guard = self.rcu.read();
        let current = self.cell.load(&guard);
        if let Err(lost) = self
            .cell
            .compare_and_replace(&guard, current, self.fresh(n))
        {
            lost.current.0.0.read();
        }
    }
}

fn old_ones_are_dropped(s: &S) {
    s.rcu.barrier();
    let stats = s.rcu.stats();
    assert_eq!(stats.queued, stats.run);
    assert!(s.nodes[0].is_freed(), "replaced");
}

static LOAD: Model<S> = Model {
    name: "cell load, replace",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup,
    roles: &[S::load, |s| s.cell.replace(s.fresh(1))],
    after: old_ones_are_dropped,
};

/// The second one gets what the first one put in, and drops it.
static REPLACE: Model<S> = Model {
    name: "cell replace, replace and barrier",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup: || {
        let s = setup();
        s.rcu.close();
        s
    },
    roles: &[
        |s| s.cell.replace(s.fresh(1)),
        |s| {
            s.cell.replace(s.fresh(2));
            s.rcu.barrier();
        },
    ],
    after: old_ones_are_dropped,
};

static UPDATE: Model<S> = Model {
    name: "cell update, replace",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup,
    roles: &[|s| s.update(1), |s| s.cell.replace(s.fresh(3))],
    after: old_ones_are_dropped,
};

static LOAD_UPDATE: Model<S> = Model {
    name: "cell load, update",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup,
    roles: &[S::load, |s| s.update(1)],
    after: old_ones_are_dropped,
};

static COMPARE: Model<S> = Model {
    name: "cell compare and replace, twice",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup,
    roles: &[|s| s.compare_and_replace(1), |s| s.compare_and_replace(2)],
    after: old_ones_are_dropped,
};

#[test]
fn values_are_seen_whole() {
    LOAD.check();
    LOAD_UPDATE.check();
    COMPARE.check();
}

#[test]
fn values_are_dropped_whole() {
    REPLACE.check();
    UPDATE.check();
}
