//! `RcuList`: links.
//!
//! Proves: a walk that meets a node sees it whole, however the pointer to it
//! came about: put in at either end, in another one's place, or uncovered by
//! taking out the one before; a walk on a node that is taken out goes on; two
//! writers lose nothing. On the membarrier rung.
//!
//! Cannot show: a writer that vanishes in a fork (tests on the real build).

use super::rcu::Rcu;
use super::*;
use crate::{Callbacks, RcuList};
use percpu::sim::CPU0;
use percpu::sim::harness::Model;
use std::sync::Arc;

/// Stands for an object; the list drops it.
#[derive(Clone, Copy)]
struct Value(&'static Node);

struct S {
    list: RcuList<Value, Arc<Rcu>>,
    rcu: Arc<Rcu>,
    nodes: [Box<Node>; 3],
}

/// A list with one element.
fn one() -> S {
    let rcu = Arc::new(Rcu::with_callbacks(Callbacks::Manual));
    let s = S {
        list: RcuList::new_in(Arc::clone(&rcu)),
        rcu,
        nodes: [Node::new(1), Node::blank(), Node::blank()],
    };
    s.list.push_back(s.value(0));
    s
}

impl S {
    fn value(&self, n: usize) -> Value {
        Value(Node::at(self.nodes[n].address()))
    }

    fn fresh(&self, n: usize) -> Value {
        self.nodes[n].init(n as u32 + 1);
        self.value(n)
    }

    fn walk(&self) {
        let guard = self.rcu.read();
        let mut seen = 0;
        for value in self.list.iter(&guard) {
            value.0.read();
            seen += 1;
        }
        assert!((1..=2).contains(&seen), "{seen} elements");
    }

    fn remove_first(&self) {
        assert!(
            self.list
                .remove_first(|value| ptr::eq(value.0, &*self.nodes[0]))
        );
    }

    fn has(&self, expected: &[u32]) {
        self.rcu.barrier();
        let guard = self.rcu.read();
        let seen: Vec<_> = self.list.iter(&guard).map(|v| v.0.read()).collect();
        assert_eq!(seen, expected);
        assert_eq!(self.list.len(), expected.len());
    }
}

static FRONT: Model<S> = Model {
    name: "list walk, push in front",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup: one,
    roles: &[S::walk, |s| s.list.push_front(s.fresh(1))],
    after: |s| s.has(&[2, 1]),
};

static BACK: Model<S> = Model {
    name: "list walk, push behind",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup: one,
    roles: &[S::walk, |s| s.list.push_back(s.fresh(1))],
    after: |s| s.has(&[1, 2]),
};

static UNCOVER: Model<S> = Model {
    name: "list walk, push behind and take out the first",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup: one,
    roles: &[S::walk, |s| {
        s.list.push_back(s.fresh(1));
        s.remove_first();
    }],
    after: |s| s.has(&[2]),
};

static REPLACE: Model<S> = Model {
    name: "list walk, replace",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup: one,
    roles: &[S::walk, |s| {
        assert!(s.list.replace_first(|_| Some(s.fresh(1))));
    }],
    after: |s| s.has(&[2]),
};

/// Walks from the first element to the second, which stays.
fn walks_on(s: &S) {
    let guard = s.rcu.read();
    let last = s.list.iter(&guard).last().expect("never empty");
    assert_eq!(last.0.read(), 2, "the walk ends where a node was taken out");
}

static TAKEN_OUT: Model<S> = Model {
    name: "list walk, take out the first",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup: || {
        let s = one();
        s.list.push_back(s.fresh(1));
        s
    },
    roles: &[walks_on, S::remove_first],
    after: |s| s.has(&[2]),
};

#[test]
fn a_walk_goes_on() {
    TAKEN_OUT.check();
}

#[test]
fn a_walk_sees_nodes_whole() {
    for model in [&FRONT, &BACK, &UNCOVER, &REPLACE] {
        model.check();
    }
}

static WRITERS: Model<S> = Model {
    name: "list push, push",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup: one,
    roles: &[
        |s| s.list.push_front(s.fresh(1)),
        |s| s.list.push_back(s.fresh(2)),
    ],
    after: |s| s.has(&[2, 1, 3]),
};

#[test]
fn writers_take_turns() {
    WRITERS.check();
}
