//! L10b: records of threads against a grace period.
//!
//! Proves, for the per-thread flavour on the membarrier and fence rungs (which
//! is all it knows): nothing is freed that a reader reached, with one section,
//! with nested ones, with a section that follows another, and with a thread's
//! first section, whose record is pushed while the list is read; a record that
//! is given back, or left to a guard, serves the next thread as a fresh one
//! and never two at a time. For the quiescent-state flavour: the same for
//! going online and offline, for announcing, and for handles on top of each
//! other, against a grace period that interrupts nobody.
//!
//! Cannot show: that a thread's end runs the destructor which gives the record
//! back (thread-locals are outside loom; tests of the real build show it);
//! epochs that wrap (48 bits; a test starts at the last one).

use super::*;
use crate::records::{Asymmetric, DEEPEST, Fenced, Record, Records};
use crate::{qsbr, thread};
use core::cell::Cell;
use percpu::barrier::rung;
use percpu::sim::CPU0;
use percpu::sim::harness::Model;

struct S<R> {
    records: R,
    grace: Grace,
    source: Source,
    /// The reader's record, if it has one from the start.
    mine: Cell<*const Record>,
    other: Cell<*const Record>,
}

type Threads = S<Asymmetric>;
type Online = S<Fenced>;

fn with<R>(records: R) -> S<R> {
    S {
        records,
        grace: Grace::new(),
        source: Source::new(),
        mine: Cell::new(ptr::null()),
        other: Cell::new(ptr::null()),
    }
}

fn unregistered() -> Threads {
    with(Asymmetric(Records::new()))
}

fn registered() -> Threads {
    let s = unregistered();
    s.mine.set(s.records.0.take_ptr());
    s
}

/// A record's owner has gone.
fn given_back() -> Threads {
    let s = registered();
    s.records.0.give_back(at(&s.mine));
    s
}

impl<R: Readers> S<R> {
    fn synchronizer(&self) {
        let old = self.source.unlink(1);
        synchronize(&self.grace, &self.records);
        old.free();
    }

    fn synchronizes_twice(&self) {
        self.synchronizer();
        let old = self.source.unlink(2);
        synchronize(&self.grace, &self.records);
        old.free();
    }

    fn poller(&self) {
        let old = self.source.unlink(1);
        if poll(&self.grace, &self.records) {
            old.free();
        }
    }

    /// When all have left, a grace period waits for nobody.
    fn all_have_left(&self) {
        assert!(poll(&self.grace, &self.records));
    }
}

fn at(record: &Cell<*const Record>) -> &'static Record {
    // SAFETY: records live as long as their list, which the state owns.
    unsafe { record.get().as_ref() }.expect("registered")
}

fn enter(s: &Threads, record: &Record) {
    thread::enter(&s.records.0, record, rung());
}

fn reader(s: &Threads) {
    let record = at(&s.mine);
    enter(s, record);
    s.source.read();
    record.leave();
}

static ONE: Model<Threads> = Model {
    name: "l10b reader, synchronize",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup: registered,
    roles: &[reader, Threads::synchronizer],
    after: Threads::all_have_left,
};

static TWICE: Model<Threads> = Model {
    name: "l10b reader, synchronize twice",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup: registered,
    roles: &[reader, Threads::synchronizes_twice],
    after: Threads::all_have_left,
};

#[test]
fn one_section() {
    ONE.check_portable();
    TWICE.check_portable();
}

fn nests(s: &Threads) {
    let record = at(&s.mine);
    enter(s, record);
    enter(s, record);
    s.source.read();
    record.leave();
    s.source.read();
    record.leave();
    assert_eq!(record.depth(), 0);
}

static NESTED: Model<Threads> = Model {
    name: "l10b nested sections, synchronize",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup: registered,
    roles: &[nests, Threads::synchronizer],
    after: Threads::all_have_left,
};

/// The second section is in the new epoch perhaps, and nobody looked between
/// the two.
fn nests_the_second_time(s: &Threads) {
    let record = at(&s.mine);
    enter(s, record);
    s.source.read();
    record.leave();
    enter(s, record);
    enter(s, record);
}

static AGAIN: Model<Threads> = Model {
    name: "l10b a section, then nested ones, poll",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup: registered,
    roles: &[nests_the_second_time, Threads::poller],
    after: |s| {
        at(&s.mine).leave();
        at(&s.mine).leave();
        s.all_have_left();
    },
};

#[test]
fn sections_nest() {
    NESTED.check_portable();
    AGAIN.check_portable();
}
