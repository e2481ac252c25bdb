//! Lookups against waiting for them.
//!
//! Proves: what was taken away before a wait is not in use after it, whatever
//! phase the lookup had loaded and however often the phase was turned before.
//!
//! Cannot show: that a wait ends while lookups keep coming.
//!
//! Rungs: all three, but where a model says which one it is about.

use super::*;
use crate::Thread;
use crate::lookups::Lookups;
use percpu::sim::CPU0;
use percpu::sync::atomic::{AtomicBool, Ordering::Relaxed};

struct S {
    lookups: Lookups,
    object: Object,
    /// Relaxed: the barriers must do.
    gone: AtomicBool,
}

fn lookup(s: &S) {
    let lookup = s.lookups.begin(&Thread::at(0));
    if !s.gone.load(Relaxed) {
        s.object.read();
    }
    drop(lookup);
}

fn take_away(s: &S) {
    s.gone.store(true, Relaxed);
    s.lookups.wait().unwrap();
    s.object.free();
}

fn setup() -> S {
    S {
        lookups: Lookups::new(),
        object: Object::new(1),
        gone: AtomicBool::new(false),
    }
}

static ONE: Model<S> = Model {
    name: "lookups one wait",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup,
    roles: &[lookup, take_away],
    after: |_| (),
};

/// The lookup may have loaded its phase before the first one.
static TWO: Model<S> = Model {
    name: "lookups two waits",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup,
    roles: &[lookup, |s| {
        s.lookups.wait().unwrap();
        take_away(s);
    }],
    after: |_| (),
};

#[test]
fn a_wait() {
    on_all_rungs(&ONE, &[&[CPU0, CPU0]]);
}

#[test]
fn a_second_wait() {
    on_all_rungs(&TWO, &[&[CPU0, CPU0]]);
}
