//! L15: the stack of `structures`.
//!
//! Proves, on the stack's own code: each value comes out once or is still
//! there; a node is never read after it was freed, by poppers, pushers and
//! those who take all; who pops a value sees what its pusher wrote into it. On
//! all rungs; three roles on the rseq rung, as a search of at most two
//! preemptions.
//!
//! Cannot show: an address that comes back (nodes' memory is kept, so that
//! reading a freed one is found instead, which comes before any ABA).

use super::keeper::Words;
use super::*;
use crate::structures::stack::{Raw, take_next};
use percpu::sim::harness::Model;
use percpu::sim::{CPU0, CPU1};

struct S {
    words: Words,
    stack: Raw<u32>,
    /// What each role got out, as a sum of powers of two.
    got: [Cell<u32>; 3],
}

/// With 1 and 2 on the stack, 2 on top.
fn two() -> S {
    let s = S {
        words: Words::new(3),
        stack: Raw::new(),
        got: Default::default(),
    };
    s.stack.push(&s.words.role(0), 1);
    s.stack.push(&s.words.role(0), 2);
    s
}

fn pops(s: &S, role: usize) {
    if let Some(value) = s.stack.pop(&s.words.role(role)) {
        s.got[role].set(s.got[role].get() + value);
    }
}

fn pushes(s: &S, role: usize, value: u32) {
    s.stack.push(&s.words.role(role), value);
}

fn takes(s: &S, role: usize) {
    let mut chain = s.stack.take_all();
    // SAFETY: what `take_all` gave.
    while let Some(value) = unsafe { take_next(&s.words.role(role), &mut chain) } {
        s.got[role].set(s.got[role].get() + value);
    }
}

/// All values together, each once: a sum of different powers of two.
fn sum_is(s: &S, sum: u32) {
    takes(s, 0);
    let got: u32 = s.got.iter().map(Cell::get).sum();
    assert_eq!(got, sum, "lost or twice");
    assert_eq!(s.words.free_all() as u32, sum.count_ones());
}

static POP_POP: Model<S> = Model {
    name: "l15 pop, pop",
    rung: Rung::Rseq,
    plans: &[CPU0, CPU1],
    setup: two,
    roles: &[|s| pops(s, 0), |s| pops(s, 1)],
    after: |s| sum_is(s, 3),
};

static POP_PUSH: Model<S> = Model {
    name: "l15 pop, push",
    rung: Rung::Rseq,
    plans: &[CPU0, CPU1],
    setup: two,
    roles: &[|s| pops(s, 0), |s| pushes(s, 1, 4)],
    after: |s| sum_is(s, 7),
};

static PUSH_PUSH: Model<S> = Model {
    name: "l15 push, push",
    rung: Rung::Rseq,
    plans: &[CPU0, CPU1],
    setup: two,
    roles: &[|s| pushes(s, 0, 8), |s| pushes(s, 1, 4)],
    after: |s| sum_is(s, 15),
};

static POP_TAKE: Model<S> = Model {
    name: "l15 pop, take all",
    rung: Rung::Rseq,
    plans: &[CPU0, CPU1],
    setup: two,
    roles: &[|s| pops(s, 0), |s| takes(s, 1)],
    after: |s| sum_is(s, 3),
};

static PUSH_TAKE: Model<S> = Model {
    name: "l15 push, take all",
    rung: Rung::Rseq,
    plans: &[CPU0, CPU1],
    setup: two,
    roles: &[|s| pushes(s, 0, 4), |s| takes(s, 1)],
    after: |s| sum_is(s, 7),
};

/// Who pops the second node reads a `next` that another role wrote.
static POP_TWICE_PUSH: Model<S> = Model {
    name: "l15 pop twice, pop, push",
    rung: Rung::Rseq,
    plans: &[CPU0, CPU1, CPU0],
    setup: two,
    roles: &[
        |s| {
            pops(s, 0);
            pops(s, 0);
        },
        |s| pops(s, 1),
        |s| pushes(s, 2, 4),
    ],
    after: |s| sum_is(s, 7),
};

#[test]
fn two_of_everything() {
    for model in [&POP_POP, &POP_PUSH, &PUSH_PUSH, &POP_TAKE, &PUSH_TAKE] {
        on_all_rungs(model, &[&[CPU0, CPU1]]);
    }
}

#[test]
fn three_roles() {
    POP_TWICE_PUSH.search(2);
}
