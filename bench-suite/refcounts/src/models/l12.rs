//! L12: `rcuref`, get against last put against dead; with zones of an 8-bit
//! count.
//!
//! Proves: a get that succeeds comes before the freeing, although the count may
//! have been at zero in between; exactly one put is the last; who goes by
//! `is_dead` frees after all uses, also if a failed get has parked the word;
//! gets and puts that race over the edge never end in the dead zone.
//!
//! Cannot show: that the memory of the count outlives a put in progress. That is
//! the caller's grace period; the state of a model lives long enough.
//!
//! Rungs: one is enough, no barrier of `percpu` is involved.

use super::*;
use crate::rcuref::RcuRef;
use percpu::sim::CPU0;

type Tiny = RcuRef<{ 1 << 24 }>;

struct S {
    count: Tiny,
    object: Object,
}

fn setup(references: u32) -> S {
    S {
        count: Tiny::new(references),
        object: Object::new(1),
    }
}

fn holder(s: &S) {
    s.object.read();
    s.object.free_if(s.count.put());
}

fn seeker(s: &S) {
    if s.count.get() {
        holder(s);
    }
}

/// Gives its reference back and leaves the freeing to the observer.
fn careless(s: &S) {
    s.object.read();
    s.count.put();
}

fn careless_seeker(s: &S) {
    if s.count.get() {
        careless(s);
    }
}

fn observer(s: &S) {
    if s.count.is_dead() {
        s.object.free();
    }
}

fn freed(s: &S) {
    assert!(s.object.is_freed());
    assert!(s.count.is_dead() && !s.count.get());
}

static LAST: Model<S> = Model {
    name: "l12 get against the last put",
    rung: Rung::Fence,
    plans: &[CPU0, CPU0],
    setup: || setup(1),
    roles: &[holder, seeker],
    after: freed,
};

static SEEKERS: Model<S> = Model {
    name: "l12 two gets against the last put",
    rung: Rung::Fence,
    plans: &[CPU0, CPU0, CPU0],
    setup: || setup(1),
    roles: &[holder, seeker, seeker],
    after: freed,
};

static DEAD: Model<S> = Model {
    name: "l12 an observer of death",
    rung: Rung::Fence,
    plans: &[CPU0, CPU0, CPU0],
    setup: || setup(1),
    roles: &[careless, careless_seeker, observer],
    after: |s| assert!(s.count.is_dead()),
};

static EDGE: Model<S> = Model {
    name: "l12 over the edge",
    rung: Rung::Fence,
    plans: &[CPU0, CPU0, CPU0],
    setup: || setup(Tiny::MAX),
    roles: &[
        |s| assert!(s.count.get()),
        |s| {
            assert!(s.count.get());
            assert!(!s.count.put());
        },
        |s| assert!(!s.count.put()),
    ],
    after: |s| {
        assert!(!s.count.is_dead());
        assert!(s.count.read() >= Tiny::MAX);
    },
};

#[test]
fn a_get_revives_or_fails() {
    LAST.check();
    SEEKERS.check();
}

#[test]
fn dead_is_declared_not_counted() {
    DEAD.check();
}

#[test]
fn saturated_is_not_dead() {
    EDGE.check();
}
