//! L10a: readers of the per-CPU flavour against a grace period.
//!
//! Proves: what a reader reaches in its section is neither freed nor written
//! before it leaves. On the rseq rung for readers with their CPU's slot (also
//! one that changes hands, and the CPU's first use), for readers that count in
//! the line because the slot is taken or a section was interrupted (also
//! leaving on another CPU than they entered on), and for readers that are
//! always interrupted and so count in a shared line. On the membarrier and
//! fence rungs for those alone, with the second look and the count in both
//! phases. With one grace period and with two that bring the number of the
//! phase back; with a guard that another thread drops.
//!
//! Cannot show: that the assembly and the system call keep what `sim` says of
//! them; counters that wrap (tests on the real build); that a grace period ends
//! while new readers keep coming (Spin). Models with three roles poll instead
//! of waiting, which looks as often and ends by itself; one of them is a search
//! of at most two preemptions.

use super::*;
use core::cell::Cell;
use percpu::sim::harness::Model;
use percpu::sim::{CPU0, CPU1, CUT, MOVED, Step, WANDERS};
use percpu::sync::atomic::AtomicUsize;

/// The slot's section is interrupted; counts on one CPU, leaves on the other.
const COUNTS_AND_WANDERS: Plan = &[Step::cut(1), Step::on(0), Step::on(1)];
/// The same the other way round: a barrier walks the CPUs in their order.
const COUNTS_AND_RETURNS: Plan = &[Step::cut(0), Step::on(1), Step::on(0)];

struct S {
    /// In a box: sections that begin in setup point into them.
    counters: Box<Counters>,
    grace: Grace,
    source: Source,
    /// Sections between setup, roles and the end.
    kept: Cell<Option<Entered>>,
    kept_too: Cell<Option<Entered>>,
    handed_over: AtomicUsize,
}

fn with(counters: Box<Counters>) -> S {
    S {
        counters,
        grace: Grace::new(),
        source: Source::new(),
        kept: Cell::new(None),
        kept_too: Cell::new(None),
        handed_over: AtomicUsize::new(0),
    }
}

fn setup() -> S {
    with(opened())
}

/// A reader is inside when the roles begin.
fn one_inside() -> S {
    let s = setup();
    s.kept.set(Some(enter(&s.counters)));
    s
}

fn reader(s: &S) {
    let entered = enter(&s.counters);
    s.source.read();
    s.counters.leave(entered);
}

/// The one that is inside from the start.
fn insider(s: &S) {
    s.source.read();
    s.counters.leave(s.kept.take().expect("entered in setup"));
}

fn synchronizer(s: &S) {
    let old = s.source.unlink(1);
    synchronize(&s.grace, &*s.counters);
    old.free();
}

fn synchronizes_twice(s: &S) {
    synchronizer(s);
    let old = s.source.unlink(2);
    synchronize(&s.grace, &*s.counters);
    old.free();
}

fn poller(s: &S) {
    let old = s.source.unlink(1);
    if poll(&s.grace, &*s.counters) {
        old.free();
    }
}

/// When all have left, a grace period waits for nobody.
fn all_have_left(s: &S) {
    assert!(poll(&s.grace, &*s.counters) && poll(&s.grace, &*s.counters));
}

static ONE: Model<S> = Model {
    name: "l10a reader, synchronize",
    rung: Rung::Rseq,
    plans: &[CPU0, CPU0],
    setup,
    roles: &[reader, synchronizer],
    after: all_have_left,
};

#[test]
fn one_grace_period() {
    on_all_rungs(
        &ONE,
        &[
            &[CPU0, CPU0],
            &[CPU1, CPU0],
            &[MOVED, CPU0],
            &[WANDERS, CPU0],
            &[COUNTS_AND_WANDERS, CPU0],
            &[COUNTS_AND_RETURNS, CPU0],
            &[CUT, CPU0],
        ],
    );
}

static TWICE: Model<S> = Model {
    name: "l10a reader, synchronize twice",
    rung: Rung::Rseq,
    plans: &[CPU0, CPU0],
    setup,
    roles: &[reader, synchronizes_twice],
    after: all_have_left,
};

#[test]
fn the_phase_comes_back() {
    on_all_rungs(
        &TWICE,
        &[&[CPU0, CPU0], &[WANDERS, CPU0], &[COUNTS_AND_WANDERS, CPU0]],
    );
}

static FIRST_USE: Model<S> = Model {
    name: "l10a first use of a line, poll",
    rung: Rung::Rseq,
    plans: &[CPU0, CPU0],
    setup: || with(Box::new(Counters::new())),
    roles: &[reader, poller],
    after: all_have_left,
};

/// Counts in a line that another thread opens, without a look at its slot.
const COUNTS: Plan = &[Step::cut(0), Step::on(0)];

static FIRST_USE_COUNTED: Model<S> = Model {
    name: "l10a first use of a line, count in it, poll",
    rung: Rung::Rseq,
    plans: &[CPU0, COUNTS, CPU0],
    setup: || with(Box::new(Counters::new())),
    roles: &[
        |s| s.kept_too.set(Some(enter(&s.counters))),
        |s| {
            s.kept.set(Some(enter(&s.counters)));
            s.source.read();
        },
        poller,
    ],
    after: |s| {
        for entered in [s.kept.take(), s.kept_too.take()] {
            s.counters.leave(entered.expect("entered"));
        }
        all_have_left(s);
    },
};

#[test]
fn the_first_use_of_a_line() {
    FIRST_USE.check();
}

#[test]
fn a_line_that_another_one_opened() {
    FIRST_USE_COUNTED.search(2);
}

/// Enters while another one has the CPU's slot, and stays longer than that.
fn second(s: &S) {
    let entered = enter(&s.counters);
    s.counters.leave(s.kept.take().expect("entered in setup"));
    s.source.read();
    s.counters.leave(entered);
}

static SLOT_TAKEN: Model<S> = Model {
    name: "l10a reader beside a taken slot, synchronize",
    rung: Rung::Rseq,
    plans: &[CPU0, CPU0],
    setup: one_inside,
    roles: &[second, synchronizer],
    after: all_have_left,
};

#[test]
fn the_slot_is_taken() {
    on_all_rungs(&SLOT_TAKEN, &[&[CPU0, CPU0], &[WANDERS, CPU0]]);
}

/// The first reader's slot is the second one's, before or after the turn.
static CHANGES_HANDS: Model<S> = Model {
    name: "l10a leave a slot, claim it, poll",
    rung: Rung::Rseq,
    plans: &[CPU1, CPU0, CPU1],
    setup: one_inside,
    roles: &[
        insider,
        |s| s.kept_too.set(Some(enter(&s.counters))),
        poller,
    ],
    after: |s| {
        s.counters.leave(s.kept_too.take().expect("entered"));
        all_have_left(s);
    },
};

#[test]
fn a_slot_changes_hands() {
    CHANGES_HANDS.check();
}

static HANDED_OVER: Model<S> = Model {
    name: "l10a enter, leave elsewhere, poll",
    rung: Rung::Rseq,
    plans: &[CPU0, CPU1, CPU0],
    setup,
    roles: &[
        |s| {
            s.kept.set(Some(enter(&s.counters)));
            s.source.read();
            // Release: hands the guard over.
            s.handed_over.store(1, Ordering::Release);
        },
        |s| {
            // Acquire: takes it.
            if s.handed_over.load(Ordering::Acquire) == 1 {
                insider(s);
            }
        },
        poller,
    ],
    after: |s| {
        if let Some(entered) = s.kept.take() {
            s.counters.leave(entered);
        }
        all_have_left(s);
    },
};

#[test]
fn another_thread_leaves() {
    on_all_rungs(&HANDED_OVER, &[&[CPU0, CPU1, CPU0]]);
}

/// Comes and goes, and must not stand for the one that stays inside.
fn passer_by(s: &S) {
    let entered = enter(&s.counters);
    s.counters.leave(entered);
}

fn polls_in_vain(s: &S) {
    assert!(!poll(&s.grace, &*s.counters), "a reader is inside");
}

static TWO: Model<S> = Model {
    name: "l10a one inside, one passes by, poll",
    rung: Rung::Rseq,
    plans: &[CPU0, CPU0],
    setup: one_inside,
    roles: &[passer_by, polls_in_vain],
    after: |s| {
        insider(s);
        all_have_left(s);
    },
};

#[test]
fn two_readers() {
    on_all_rungs(&TWO, &[&[CPU0, CPU0], &[CPU1, CPU0], &[WANDERS, CPU0]]);
}
