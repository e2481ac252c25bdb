//! L13: `percpu_ref`, kill, switches and revival against gets and puts.
//!
//! Proves: the last reference is noticed once, after all uses, whatever words
//! the gets and puts went to (same CPU, other CPU, interrupted, a shard, the
//! shared count); a switch there and back loses no reference and shows no
//! false zero; a revived count starts from zeroed words.
//!
//! Cannot show: that the restarting barrier does what `sim` says; the stress
//! test runs on the real one.
//!
//! Rungs: all three, but where a model says which one it is about.

use super::*;
use crate::{Thread, percpu_ref::PercpuRef};
use percpu::sim::{CPU0, CPU1, CUT, MOVED, WANDERS};

struct S {
    count: PercpuRef,
    object: Object,
}

fn setup() -> S {
    S {
        count: PercpuRef::new(),
        object: Object::new(1),
    }
}

/// With a reference for role 0.
fn setup_held() -> S {
    let s = setup();
    s.count.get(&Thread::at(0));
    s
}

fn put_from(s: &S, thread: usize) {
    s.object.read();
    s.object.free_if(s.count.put(&Thread::at(thread)));
}

fn holder(s: &S) {
    put_from(s, 0);
}

fn seeker(s: &S) {
    if s.count.try_get_live(&Thread::at(0)) {
        put_from(s, 0);
    }
}

/// As [`seeker`], with one shard's word up and the other's down.
fn crossing_seeker(s: &S) {
    if s.count.try_get(&Thread::at(0)) {
        put_from(s, 1);
    }
}

fn killer(s: &S) {
    s.object.free_if(s.count.kill().unwrap());
}

fn freed(s: &S) {
    assert!(s.object.is_freed());
    assert_eq!(s.count.count(), 0);
}

static SEEK: Model<S> = Model {
    name: "l13 kill against get and put",
    rung: Rung::Rseq,
    plans: &[CPU0, CPU0],
    setup,
    roles: &[seeker, killer],
    after: freed,
};

static CROSS: Model<S> = Model {
    name: "l13 kill against two shards",
    rung: Rung::Fence,
    plans: &[CPU0, CPU0],
    setup,
    roles: &[crossing_seeker, killer],
    after: freed,
};

static HELD: Model<S> = Model {
    name: "l13 kill against put",
    rung: Rung::Rseq,
    plans: &[CPU0, CPU0],
    setup: setup_held,
    roles: &[holder, killer],
    after: freed,
};

static BOTH: Model<S> = Model {
    name: "l13 kill against put, and get and put",
    rung: Rung::Rseq,
    plans: &[CPU1, CUT, CPU0],
    setup: setup_held,
    roles: &[holder, seeker, killer],
    after: freed,
};

/// Another holder frees, after a put that went to the spread count.
static HANDED: Model<S> = Model {
    name: "l13 kill against two puts",
    rung: Rung::Rseq,
    plans: &[CPU0, CPU1, CPU0],
    setup: || {
        let s = setup_held();
        s.count.get(&Thread::at(1));
        s
    },
    roles: &[holder, |s| put_from(s, 1), killer],
    after: freed,
};

const PLANS: &[&[Plan]] = &[
    &[CPU0, CPU0],
    &[CPU1, CPU0],
    &[MOVED, CPU0],
    &[WANDERS, CPU0],
    &[CUT, CPU0],
    &[CUT_THEN_RUN, CPU0],
    &[RUN_THEN_CUT, CPU0],
];

use percpu::sim::Step;
/// The first operation is interrupted until it gives up; the next one runs.
const CUT_THEN_RUN: Plan = &[Step::cut(0), Step::cut(0), Step::on(0)];
/// The first operation runs; the next one is interrupted until it gives up.
const RUN_THEN_CUT: Plan = &[Step::on(0), Step::cut(0)];

#[test]
fn a_kill_against_get_and_put() {
    on_all_rungs(&SEEK, PLANS);
    CROSS.check_portable();
}

#[test]
fn a_kill_against_a_put() {
    on_all_rungs(&HELD, PLANS);
}

#[test]
fn a_kill_against_two() {
    // (Two lines, or two shards, take minutes: HANDED has them.)
    BOTH.check();
    on_all_rungs(&HANDED, &[&[CPU0, CPU1, CPU0], &[CUT, CPU0, CPU0]]);
}

/// Gets and puts although it holds a reference all the time.
fn sharer(s: &S) {
    s.count.get(&Thread::at(0));
    assert!(!s.count.put(&Thread::at(0)), "a false last");
}

fn crossing_sharer(s: &S) {
    s.count.get(&Thread::at(0));
    assert!(!s.count.put(&Thread::at(1)), "a false last");
}

fn there_and_back(s: &S) {
    s.count.switch_to_atomic().unwrap();
    s.count.switch_to_percpu();
}

fn back(s: &S) {
    s.count.switch_to_percpu();
}

fn there(s: &S) {
    s.count.switch_to_atomic().unwrap();
}

/// The references that setup took, and the initial one.
fn references(s: &S, held: usize) {
    assert_eq!(s.count.count(), held + 1);
    assert_eq!(s.count.kill(), Ok(held == 0));
    for n in 1..=held {
        assert_eq!(s.count.put(&Thread::at(0)), n == held);
    }
}

static SWITCH: Model<S> = Model {
    name: "l13 there and back",
    rung: Rung::Rseq,
    plans: &[CPU0, CPU0],
    setup,
    roles: &[sharer, there_and_back],
    after: |s| references(s, 0),
};

static CROSS_SWITCH: Model<S> = Model {
    name: "l13 there and back, two shards",
    rung: Rung::Fence,
    plans: &[CPU0, CPU0],
    setup,
    roles: &[crossing_sharer, there_and_back],
    after: |s| references(s, 0),
};

static THERE: Model<S> = Model {
    name: "l13 to atomic",
    rung: Rung::Rseq,
    plans: &[CPU0, CPU0],
    setup,
    roles: &[sharer, there],
    after: |s| references(s, 0),
};

/// Words that were not zero before.
static BACK: Model<S> = Model {
    name: "l13 back to per-CPU",
    rung: Rung::Rseq,
    plans: &[CPU0, CPU1],
    setup: || {
        let s = setup_held();
        s.count.switch_to_atomic().unwrap();
        s
    },
    roles: &[sharer, back],
    after: |s| references(s, 1),
};

#[test]
fn a_switch_there_and_back() {
    on_all_rungs(&THERE, PLANS);
    on_all_rungs(&SWITCH, PLANS);
    CROSS_SWITCH.check_portable();
    on_all_rungs(
        &BACK,
        &[&[CPU0, CPU1], &[CPU1, CPU0], &[CUT_THEN_RUN, CPU1]],
    );
}

static REVIVE: Model<S> = Model {
    name: "l13 revival",
    rung: Rung::Rseq,
    plans: &[CPU0, CPU0],
    setup: || {
        let s = setup_held();
        assert_eq!(s.count.kill(), Ok(false));
        assert!(s.count.put(&Thread::at(0)));
        s
    },
    roles: &[
        |s| {
            if s.count.try_get_live(&Thread::at(0)) {
                assert!(!s.count.put(&Thread::at(0)), "a false last");
            }
        },
        |s| s.count.reinit(),
    ],
    after: |s| references(s, 0),
};

static RESURRECT: Model<S> = Model {
    name: "l13 resurrection",
    rung: Rung::Rseq,
    plans: &[CPU0, CPU0],
    setup: || {
        let s = setup_held();
        assert_eq!(s.count.kill(), Ok(false));
        s
    },
    roles: &[
        |s| {
            if s.count.try_get(&Thread::at(0)) {
                assert!(!s.count.put(&Thread::at(0)), "a false last");
            }
        },
        |s| s.count.resurrect(),
    ],
    after: |s| references(s, 1),
};

#[test]
fn a_revival() {
    on_all_rungs(&REVIVE, PLANS);
    on_all_rungs(&RESURRECT, PLANS);
}
