//! L10c: grace periods that are shared, left half-way, polled.
//!
//! Proves: a synchronizer frees nothing that a reader reached, whoever led the
//! grace period that it waited for: itself, another thread that was first, a
//! leader that gave up in the middle, or one that came after it; and a poll
//! that says yes is as good as a wait. Mostly on the membarrier rung, whose
//! light barrier gives nothing but what the pair promises; some of two roles on
//! the fence rung too, and a counted reader on the rseq rung. Models with three
//! roles are searches of at most two or three preemptions.
//!
//! Cannot show: that waiting ends (Spin); a leader that vanishes in a fork
//! (tests on the real build); more than two synchronizers.

use super::*;
use crate::records::{Asymmetric, Record, Records};
use crate::{grace::Timeout, thread};
use core::cell::Cell;
use percpu::barrier::rung;
use percpu::sim::harness::Model;
use percpu::sim::{CPU0, CPU1};
use std::time::Instant;

/// Readers of the per-thread flavour: the fewest words.
struct S {
    records: Asymmetric,
    grace: Grace,
    source: Source,
    /// A second place, for the second synchronizer.
    other: Source,
    mine: *const Record,
    cookie: Cell<u64>,
    gave_up: Cell<bool>,
}

fn setup() -> S {
    let records = Asymmetric(Records::new());
    S {
        mine: records.0.take_ptr(),
        records,
        grace: Grace::new(),
        source: Source::new(),
        other: Source::new(),
        cookie: Cell::new(0),
        gave_up: Cell::new(false),
    }
}

/// A grace period is in progress: its leader has turned and gone.
fn in_progress() -> S {
    let s = setup();
    // SAFETY: records live as long as their list, which the state owns.
    let mine = unsafe { &*s.mine };
    thread::enter(&s.records.0, mine, rung());
    assert!(!poll(&s.grace, &s.records));
    mine.leave();
    s
}

impl S {
    fn section(&self, f: impl FnOnce()) {
        // SAFETY: as above.
        let mine = unsafe { &*self.mine };
        thread::enter(&self.records.0, mine, rung());
        f();
        mine.leave();
    }
}

fn reader(s: &S) {
    s.section(|| s.source.read());
}

fn reads_both(s: &S) {
    s.section(|| {
        s.source.read();
        s.other.read();
    });
}

fn synchronizer(s: &S) {
    let old = s.source.unlink(1);
    synchronize(&s.grace, &s.records);
    old.free();
}

fn synchronizes_other(s: &S) {
    let old = s.other.unlink(1);
    synchronize(&s.grace, &s.records);
    old.free();
}

fn polls_other(s: &S) {
    let old = s.other.unlink(1);
    if poll(&s.grace, &s.records) {
        old.free();
    }
}

/// Frees what it replaced only if that took no time.
fn gives_up(s: &S) {
    let old = s.other.unlink(1);
    let target = s.grace.snap();
    match s.grace.wait(&s.records, target, Some(Instant::now())) {
        Ok(()) => old.free(),
        Err(why) => {
            assert_eq!(why, Timeout::ReadersRemain);
            s.gave_up.set(true);
        }
    }
}

/// Leads, or finds somebody leading, and waits for nothing.
fn passes_by(s: &S) {
    poll(&s.grace, &s.records);
}

fn all_have_left(s: &S) {
    assert!(poll(&s.grace, &s.records));
}

/// Somebody else's grace period begins before, or after.
static LED: Model<S> = Model {
    name: "l10c reader, synchronize, another leads",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0, CPU0],
    setup,
    roles: &[reader, synchronizer, passes_by],
    after: all_have_left,
};

/// The leader asked for its grace period before, and has not begun it.
fn asked_for() -> S {
    let s = setup();
    s.cookie.set(s.grace.snap());
    s
}

/// Waits for another one's grace period, by looking once.
fn asks_and_looks(s: &S) {
    let old = s.source.unlink(1);
    let target = s.grace.snap();
    if s.grace.reached(target) {
        old.free();
    }
}

static LEADS: Model<S> = Model {
    name: "l10c reader, ask and look, lead",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0, CPU0],
    setup: asked_for,
    roles: &[reader, asks_and_looks, |s| {
        s.grace.advance(&s.records, s.cookie.get());
    }],
    after: all_have_left,
};

/// One that is in progress already does not count.
static JOINED: Model<S> = Model {
    name: "l10c in progress: reader, synchronize",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup: in_progress,
    roles: &[reader, synchronizer],
    after: all_have_left,
};

static JOINED_LED: Model<S> = Model {
    name: "l10c in progress: reader, synchronize, another leads",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0, CPU0],
    setup: in_progress,
    roles: &[reader, synchronizer, passes_by],
    after: all_have_left,
};

static TWO: Model<S> = Model {
    name: "l10c reader, synchronize, synchronize",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0, CPU0],
    setup,
    roles: &[reads_both, synchronizer, synchronizes_other],
    after: all_have_left,
};

#[test]
fn another_one_leads() {
    JOINED.check_portable();
    LEADS.search(3);
    LED.search(2);
    JOINED_LED.search(2);
}

#[test]
fn two_synchronizers() {
    TWO.search(2);
}

static HALF_WAY: Model<S> = Model {
    name: "l10c reader, synchronize, another gives up",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0, CPU0],
    setup,
    roles: &[reads_both, synchronizer, gives_up],
    after: all_have_left,
};

/// A leader that gives up, then goes on where it was.
static ALONE: Model<S> = Model {
    name: "l10c reader, give up, synchronize",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup,
    roles: &[reads_both, |s| {
        gives_up(s);
        synchronizer(s);
    }],
    after: |s| {
        if s.gave_up.get() {
            assert!(!s.other.nodes[0].is_freed());
        }
        all_have_left(s);
    },
};

#[test]
fn a_leader_gives_up() {
    ALONE.check_portable();
    HALF_WAY.search(2);
}

/// Asked for in one thread, asked after in another.
fn starts(s: &S) {
    let old = s.source.unlink(1);
    s.cookie.set(s.grace.snap());
    for _ in 0..2 {
        if s.grace.advance(&s.records, s.cookie.get()) {
            old.free();
            return;
        }
    }
}

static POLLED: Model<S> = Model {
    name: "l10c reader, poll twice",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup,
    roles: &[reader, starts],
    after: all_have_left,
};

static POLLED_BY_TWO: Model<S> = Model {
    name: "l10c reader, poll, poll",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0, CPU0],
    setup,
    roles: &[reads_both, starts, polls_other],
    after: all_have_left,
};

#[test]
fn cookies() {
    POLLED.check_portable();
    POLLED_BY_TWO.search(2);
}

/// The same with the readers of the per-CPU flavour.
struct C {
    counters: Box<Counters>,
    grace: Grace,
    sources: [Source; 2],
}

static COUNTED: Model<C> = Model {
    name: "l10c counted reader, poll, poll",
    rung: Rung::Rseq,
    plans: &[CPU1, CPU0, CPU0],
    setup: || C {
        counters: opened(),
        grace: Grace::new(),
        sources: [Source::new(), Source::new()],
    },
    roles: &[
        |c| {
            let entered = enter(&c.counters);
            c.sources.iter().for_each(Source::read);
            c.counters.leave(entered);
        },
        |c| c.poller(0),
        |c| c.poller(1),
    ],
    after: |c| assert!(poll(&c.grace, &*c.counters)),
};

impl C {
    fn poller(&self, n: usize) {
        let old = self.sources[n].unlink(1);
        if poll(&self.grace, &*self.counters) {
            old.free();
        }
    }
}

#[test]
fn cookies_of_the_percpu_flavour() {
    COUNTED.search(2);
}
