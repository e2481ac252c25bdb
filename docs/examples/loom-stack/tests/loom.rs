//! The stack's models: RUSTFLAGS="--cfg loom" cargo test --release --test loom
#![cfg(loom)]

use hp::verify::Model;
use hp::{Domain, HazardPointer};
use loom_stack::Stack;
use std::cell::Cell;

/// What the roles of a model share. (loom runs one thread at a time, and each
/// role uses its own place of the arrays, so a `Cell` will do.)
struct Shared {
    stack: Stack<u32>,
    hazards: [Cell<Option<HazardPointer>>; 2],
    /// What each role got, as a sum of powers of two: nothing is got twice.
    got: [Cell<u32>; 2],
}

/// 1 and 2 are on the stack, 2 on top.
fn two() -> Shared {
    let stack = Stack::new();
    stack.push(1);
    stack.push(2);
    Shared {
        stack,
        hazards: [(); 2].map(|()| Cell::new(Some(HazardPointer::new()))),
        got: Default::default(),
    }
}

fn pops(s: &Shared, role: usize) {
    let mut hazard = s.hazards[role].take().expect("one for each role");
    if let Some(value) = s.stack.pop(&mut hazard) {
        s.got[role].set(s.got[role].get() + value);
    }
    s.hazards[role].set(Some(hazard));
}

/// Every value came out, or is still there, once; every node is freed.
fn sum_is(s: &Shared, sum: u32) {
    loop {
        let before = s.got[0].get();
        pops(s, 0);
        if s.got[0].get() == before {
            break;
        }
    }
    assert_eq!(s.got[0].get() + s.got[1].get(), sum, "lost or twice");
    s.hazards.iter().for_each(|hazard| drop(hazard.take()));
    Domain::global().drain();
    assert_eq!(Domain::global().stats().pending, 0, "all are freed");
}

static POP_POP: Model<Shared> =
    Model::new("pop, pop", two, &[|s| pops(s, 0), |s| pops(s, 1)], |s| {
        sum_is(s, 3)
    });

static POP_POPS: Model<Shared> = Model::new(
    "pop, pop twice",
    two,
    &[
        |s| pops(s, 0),
        |s| {
            pops(s, 1);
            pops(s, 1);
        },
    ],
    |s| sum_is(s, 3),
);

static POP_PUSH: Model<Shared> = Model::new(
    "pop, push",
    two,
    &[|s| pops(s, 0), |s| s.stack.push(4)],
    |s| sum_is(s, 7),
);

#[test]
fn pop_pop() {
    POP_POP.check();
}

#[test]
fn pop_pops() {
    POP_POPS.search(3);
}

#[test]
fn pop_push() {
    POP_PUSH.check();
}
