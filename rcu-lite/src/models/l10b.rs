//! L10b: records of threads against a grace period.
//!
//! Proves, for the per-thread flavour: nothing is freed that a reader reached, with one section,
//! with nested ones, with a section that follows another, and with a thread's
//! first section, whose record is pushed while the list is read; a record that
//! is given back, or left to a guard, serves the next thread as a fresh one
//! and never two at a time. For the quiescent-state flavour: the same for
//! going online and offline, for announcing, and for handles on top of each
//! other, against a grace period that interrupts nobody.
//!
//! Rungs: membarrier and fence, which is all that the flavour knows, for its
//! sections; membarrier for records that change hands, and for the
//! quiescent-state flavour, whose fences are its own. Models with three roles
//! are searches of at most two or three preemptions.
//!
//! Cannot show: that a thread's end runs the destructor which gives the record
//! back (thread-locals are outside loom; tests of the real build show it);
//! epochs that wrap (48 bits; a test starts at the last one).

use super::*;
use crate::records::{Asymmetric, Fenced, Record, Records};
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

/// A thread's first section takes a record.
fn newcomer(s: &Threads) {
    let record = s.records.0.take_ptr();
    s.mine.set(record);
    reader(s);
}

static FIRST: Model<Threads> = Model {
    name: "l10b a thread's first section, synchronize",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup: unregistered,
    roles: &[newcomer, Threads::synchronizer],
    after: Threads::all_have_left,
};

/// Two at once.
static BOTH_FIRST: Model<Threads> = Model {
    name: "l10b two first sections",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup: unregistered,
    roles: &[
        |s| s.mine.set(s.records.0.take_ptr()),
        |s| s.other.set(s.records.0.take_ptr()),
    ],
    after: |s| {
        for record in [at(&s.mine), at(&s.other)] {
            enter(s, record);
            assert!(!poll(&s.grace, &s.records), "not in the list");
            record.leave();
        }
        s.all_have_left();
    },
};

/// And a look at the list.
static TWO_FIRST: Model<Threads> = Model {
    name: "l10b two first sections, poll",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0, CPU0],
    setup: unregistered,
    roles: &[
        newcomer,
        |s| {
            s.other.set(s.records.0.take_ptr());
        },
        Threads::poller,
    ],
    after: |s| {
        assert!(!ptr::eq(s.mine.get(), s.other.get()), "two owners");
        s.all_have_left();
    },
};

#[test]
fn a_thread_registers() {
    FIRST.check_portable();
    BOTH_FIRST.check();
    TWO_FIRST.search(2);
}

/// Reads, and its thread ends.
fn leaver(s: &Threads) {
    reader(s);
    s.records.0.give_back(at(&s.mine));
}

/// Takes the record, or a new one.
fn successor(s: &Threads) {
    let record = s.records.0.take_ptr();
    s.other.set(record);
    let record = at(&s.other);
    enter(s, record);
    s.source.read();
    record.leave();
    assert_eq!(record.depth(), 0, "does not begin inside");
}

static REUSED: Model<Threads> = Model {
    name: "l10b a thread ends, another begins, poll",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0, CPU0],
    setup: registered,
    roles: &[leaver, successor, Threads::poller],
    after: Threads::all_have_left,
};

/// Without a look, wholly.
static REUSED_BY: Model<Threads> = Model {
    name: "l10b a thread ends, another begins",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup: registered,
    roles: &[leaver, successor],
    after: Threads::all_have_left,
};

#[test]
fn a_record_is_reused() {
    REUSED_BY.check();
    REUSED.search(2);
}

/// A record that a thread left to a guard, which has gone since.
fn abandoned() -> Threads {
    let s = registered();
    s.records.0.abandon(at(&s.mine));
    s.mine.set(ptr::null());
    s
}

/// A guard outlives its thread, which leaves the record to it.
fn abandons(s: &Threads) {
    let record = at(&s.mine);
    enter(s, record);
    s.records.0.abandon(record);
    s.source.read();
    record.leave();
}

static ABANDONED: Model<Threads> = Model {
    name: "l10b a record left to a guard, another thread",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup: registered,
    roles: &[abandons, successor],
    after: Threads::all_have_left,
};

/// The guard that outlives its thread is inside from the start.
fn left_inside() -> Threads {
    let s = registered();
    enter(&s, at(&s.mine));
    s.records.0.abandon(at(&s.mine));
    s
}

/// The look may find the next owner's section in the record.
static LEFT_INSIDE: Model<Threads> = Model {
    name: "l10b a guard goes, another thread begins, poll",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0, CPU0],
    setup: left_inside,
    roles: &[
        |s| {
            s.source.read();
            at(&s.mine).leave();
        },
        |s| {
            s.other.set(s.records.0.take_ptr());
            enter(s, at(&s.other));
        },
        Threads::poller,
    ],
    after: |s| {
        at(&s.other).leave();
        s.all_have_left();
    },
};

/// Takes the record and leaves it to a guard that stays.
fn abandons_again(s: &Threads) {
    s.mine.set(s.records.0.take_ptr());
    enter(s, at(&s.mine));
    s.records.0.abandon(at(&s.mine));
}

static ABANDONED_AGAIN: Model<Threads> = Model {
    name: "l10b a record left to a guard twice",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup: abandoned,
    roles: &[abandons_again, successor],
    after: |s| {
        assert_eq!(at(&s.mine).depth(), 1, "the guard is still there");
        assert!(!poll(&s.grace, &s.records));
        at(&s.mine).leave();
        s.all_have_left();
    },
};

#[test]
fn a_record_is_left_to_a_guard() {
    ABANDONED.check();
    ABANDONED_AGAIN.check();
    LEFT_INSIDE.search(3);
}

static TWO_TAKE: Model<Threads> = Model {
    name: "l10b two want one record",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup: given_back,
    roles: &[
        |s| s.mine.set(s.records.0.take_ptr()),
        |s| s.other.set(s.records.0.take_ptr()),
    ],
    after: |s| assert!(!ptr::eq(s.mine.get(), s.other.get()), "two owners"),
};

#[test]
fn a_record_has_one_owner() {
    TWO_TAKE.check();
}

// Announced quiescent states.

fn offline() -> Online {
    let s = with(Fenced(Records::new()));
    s.mine.set(s.records.0.take_ptr());
    s
}

fn online() -> Online {
    let s = offline();
    qsbr::enter(&s.records.0, at(&s.mine));
    s
}

fn visitor(s: &Online) {
    let record = at(&s.mine);
    qsbr::enter(&s.records.0, record);
    s.source.read();
    qsbr::leave(record);
}

/// A handle, and a guard without one on top of it.
fn visits_twice(s: &Online) {
    let record = at(&s.mine);
    qsbr::enter(&s.records.0, record);
    visitor(s);
    s.source.read();
    qsbr::leave(record);
}

fn announcer(s: &Online) {
    let record = at(&s.mine);
    s.source.read();
    qsbr::announce(&s.records.0, record);
    s.source.read();
    qsbr::announce(&s.records.0, record);
}

/// Offline for a moment, and online again.
fn sleeper(s: &Online) {
    let record = at(&s.mine);
    s.source.read();
    qsbr::leave(record);
    visitor(s);
}

fn goes_offline(s: &Online) {
    qsbr::leave(at(&s.mine));
    s.all_have_left();
}

static VISITOR: Model<Online> = Model {
    name: "l10b qsbr online and offline, synchronize",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup: offline,
    roles: &[visitor, Online::synchronizer],
    after: Online::all_have_left,
};

static VISITS_TWICE: Model<Online> = Model {
    name: "l10b qsbr two handles, synchronize",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup: offline,
    roles: &[visits_twice, Online::synchronizer],
    after: Online::all_have_left,
};

static SLEEPER: Model<Online> = Model {
    name: "l10b qsbr offline, online again, synchronize",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup: online,
    roles: &[sleeper, Online::synchronizer],
    after: Online::all_have_left,
};

/// It may announce before the turn and not again: the poll says no then.
static ANNOUNCER: Model<Online> = Model {
    name: "l10b qsbr announce twice, poll",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup: online,
    roles: &[announcer, Online::poller],
    after: goes_offline,
};

#[test]
fn quiescent_states() {
    for model in [&VISITOR, &VISITS_TWICE, &SLEEPER, &ANNOUNCER] {
        model.check();
    }
}
