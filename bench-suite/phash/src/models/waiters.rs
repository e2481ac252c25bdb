//! Waits against wakes, and both against a replacement.
//!
//! What is proved and what not: see the folder's head.
//!
//! With a replacement, searches of at most two preemptions.
//!
//! Rungs: one is enough, no barrier of `percpu` is involved.

use super::*;
use percpu::barrier::Rung;
use percpu::sim::CPU0;
use percpu::sim::harness::Model;

static WAKE: Model<S> = Model {
    name: "phash wait against wake",
    rung: Rung::Fence,
    plans: &[CPU0, CPU0],
    setup,
    roles: &[waiter, waker],
    after: |s| agree(s, Wait::Mismatch),
};

#[test]
fn a_wait_against_a_wake() {
    WAKE.check();
}

static MOVED: Model<S> = Model {
    name: "phash wait against wake and replacement",
    rung: Rung::Fence,
    plans: &[CPU0, CPU0, CPU0],
    setup,
    roles: &[waiter, waker, replacer],
    after: |s| agree(s, Wait::Mismatch),
};

#[test]
fn a_wait_against_a_wake_and_a_replacement() {
    MOVED.search(2);
}

static HASTY: Model<S> = Model {
    name: "phash giving up against wake",
    rung: Rung::Fence,
    plans: &[CPU0, CPU0],
    setup,
    roles: &[hasty, just_wakes],
    after: |s| agree(s, Wait::TimedOut),
};

#[test]
fn giving_up_against_a_wake() {
    HASTY.check();
}

static HASTY_MOVED: Model<S> = Model {
    name: "phash giving up against wake and replacement",
    rung: Rung::Fence,
    plans: &[CPU0, CPU0, CPU0],
    setup,
    roles: &[hasty, just_wakes, replacer],
    after: |s| agree(s, Wait::TimedOut),
};

#[test]
fn giving_up_against_a_wake_and_a_replacement() {
    HASTY_MOVED.search(2);
}
