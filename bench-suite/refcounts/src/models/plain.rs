//! The plain count.
//!
//! Proves: who is told that its put was the last frees exactly once, after
//! everybody's uses; a weak get on a dead count fails.
//!
//! Cannot show: overflow by racing threads; there are 2^30 steps to go.
//!
//! Rungs: one is enough, no barrier of `percpu` is involved.

use super::*;
use crate::plain::Plain;
use percpu::sim::CPU0;

struct S {
    count: Plain,
    object: Object,
}

fn setup(references: u32) -> S {
    S {
        count: Plain::new(references),
        object: Object::new(1),
    }
}

fn holder(s: &S) {
    s.object.read();
    s.object.free_if(s.count.put());
}

fn sharer(s: &S) {
    s.count.get();
    s.object.free_if(s.count.put());
    holder(s);
}

fn seeker(s: &S) {
    if s.count.get_unless_zero() {
        holder(s);
    }
}

fn freed(s: &S) {
    assert!(s.object.is_freed());
}

static HOLDERS: Model<S> = Model {
    name: "plain two holders",
    rung: Rung::Fence,
    plans: &[CPU0, CPU0],
    setup: || setup(2),
    roles: &[holder, sharer],
    after: freed,
};

static WEAK: Model<S> = Model {
    name: "plain weak get",
    rung: Rung::Fence,
    plans: &[CPU0, CPU0],
    setup: || setup(1),
    roles: &[holder, seeker],
    after: freed,
};

#[test]
fn the_last_put_frees() {
    HOLDERS.check();
}

#[test]
fn a_weak_get_is_in_time_or_fails() {
    WEAK.check();
}
