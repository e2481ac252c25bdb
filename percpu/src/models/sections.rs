//! The orderings that every section promises, one by one.
//!
//! Proves, on the rseq rung, for the simulated sections (`section/sim.rs`,
//! which has the orderings of the assembly): the load of the source acquires,
//! the commit releases, the test of a word acquires, and so a word's claim
//! hands on what its previous owner released.
//!
//! Cannot show: that the assembly does the same; on x86-64 each `mov` does.

use crate::barrier::{Rung, heavy};
use crate::line::Lines;
use crate::section;
use crate::sim::harness::Model;
use crate::sim::{CPU0, CPU1, WANDERS};
use crate::sync::UnsafeCell;
use crate::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use core::ptr;

const FREE: usize = usize::MAX;

struct S {
    lines: Lines,
    src: AtomicPtr<()>,
    own: AtomicUsize,
    word: AtomicUsize,
    data: UnsafeCell<u32>,
    /// Written with the commit.
    mine: UnsafeCell<u32>,
}

fn setup() -> S {
    let lines = Lines::new();
    for line in 0..2 {
        lines.activate(line, 2, FREE);
    }
    S {
        lines,
        src: AtomicPtr::new(ptr::null_mut()),
        own: AtomicUsize::new(FREE),
        word: AtomicUsize::new(7),
        data: UnsafeCell::new(0),
        mine: UnsafeCell::new(0),
    }
}

const ADDRESS: *mut () = ptr::without_provenance_mut(64);

fn write(cell: &UnsafeCell<u32>) {
    // SAFETY: loom checks.
    cell.with_mut(|v| unsafe { *v = 1 });
}

fn read(cell: &UnsafeCell<u32>) {
    // SAFETY: loom checks.
    cell.with(|v| unsafe { assert_eq!(*v, 1) });
}

fn lines(s: &S) -> *const crate::line::Line {
    s.lines.all().as_ptr()
}

/// Publishes an object.
fn publish(s: &S) {
    write(&s.data);
    // Release: pairs with the section's load of the source.
    s.src.store(ADDRESS, Ordering::Release);
}

/// Sees a commit in `word`.
fn see(s: &S, word: &AtomicUsize, expected: usize) {
    // Acquire: pairs with the section's commit.
    if word.load(Ordering::Acquire) == expected {
        read(&s.mine);
    }
}

fn search(s: &S) {
    write(&s.mine);
    // SAFETY: the lines outlive the threads.
    let claimed = unsafe { section::search_and_load(lines(s), 2, 0, 1, &s.src, usize::MAX) };
    if let Ok((_, value)) = claimed {
        assert_eq!(value, ADDRESS);
        read(&s.data);
    }
}

fn load_into(s: &S) {
    write(&s.mine);
    // SAFETY: the slot is this role's.
    let value = unsafe { section::load_into(&s.src, &s.own) };
    if !value.is_null() {
        read(&s.data);
    }
}

static SEARCH: Model<S> = Model {
    name: "sections search_and_load",
    rung: Rung::Rseq,
    plans: &[CPU0, CPU0, CPU1],
    setup,
    roles: &[publish, search, |s| {
        see(s, &s.lines.all()[0].words()[0], ADDRESS.addr());
    }],
    after: |_| (),
};

static LOAD_INTO: Model<S> = Model {
    name: "sections load_into",
    rung: Rung::Rseq,
    plans: &[CPU0, CPU0, CPU1],
    setup,
    roles: &[publish, load_into, |s| see(s, &s.own, ADDRESS.addr())],
    after: |_| (),
};

#[test]
fn sources_are_acquired_and_commits_released() {
    SEARCH.check();
    LOAD_INTO.check();
}

/// Holds word 0 of CPU 0 from the start, uses the data, lets go.
fn holder(s: &S) {
    read(&s.data);
    // Release: "Clear".
    s.lines.all()[0].words()[0].store(FREE, Ordering::Release);
}

fn claimer(s: &S) {
    // SAFETY: the lines outlive the threads.
    let _ = unsafe { section::claim(lines(s), 2, 0, 1, 128) };
}

fn scanner(s: &S) {
    heavy().unwrap();
    // Acquire: as in `hp`'s scan.
    if s.lines.all()[0].words()[0].load(Ordering::Acquire) != 64 {
        // SAFETY: loom checks that the holder is done.
        s.data.with_mut(|v| unsafe { *v = 0xdead });
    }
}

static HAND_OVER: Model<S> = Model {
    name: "sections claim hands the word on",
    rung: Rung::Rseq,
    plans: &[CPU1, CPU0, CPU1],
    setup: || {
        let s = setup();
        write(&s.data);
        // SAFETY: as above.
        unsafe { section::claim(lines(&s), 2, 0, 1, 64) }.unwrap();
        s
    },
    roles: &[holder, claimer, scanner],
    after: |_| (),
};

#[test]
fn a_claim_hands_on_what_the_last_owner_released() {
    HAND_OVER.check();
    HAND_OVER.check_with(Rung::Rseq, &[CPU0, CPU0, CPU0]);
}

/// A per-CPU reference count: take a reference if the object lives.
fn get_and_put(s: &S) {
    let add = |n: usize| {
        // SAFETY: the lines outlive the threads.
        unsafe { section::check_and_add(&s.word, 7, lines(s), 2, 0, n) }
    };
    if add(1).is_ok() {
        read(&s.data);
        // The object may have been killed meanwhile; then the reference stays,
        // as with any count that is given back elsewhere.
        let _ = add(1usize.wrapping_neg());
    }
}

fn kill(s: &S) {
    // Release: pairs with the section's test of the flag.
    s.word.store(8, Ordering::Release);
    heavy().unwrap();
    let sum = (0..2).fold(0usize, |sum, cpu| {
        // Acquire: pairs with the commits.
        sum.wrapping_add(s.lines.all()[cpu].words()[0].load(Ordering::Acquire))
    });
    // Words began at FREE, which is minus one.
    if sum == 2usize.wrapping_neg() {
        // SAFETY: loom checks that nobody has a reference.
        s.data.with_mut(|v| unsafe { *v = 0xdead });
    }
}

static COUNTED: Model<S> = Model {
    name: "sections check_and_add, kill",
    rung: Rung::Rseq,
    plans: &[CPU0, CPU1],
    setup: || {
        let s = setup();
        write(&s.data);
        s
    },
    roles: &[get_and_put, kill],
    after: |_| (),
};

/// Revives: publishes data, then the flag that the section tests.
fn revive(s: &S) {
    write(&s.data);
    // Release: pairs with the section's test of the flag.
    s.word.store(9, Ordering::Release);
}

static TESTED: Model<S> = Model {
    name: "sections check_and_add",
    rung: Rung::Rseq,
    plans: &[CPU0, CPU0, CPU1],
    setup,
    roles: &[
        revive,
        |s| {
            write(&s.mine);
            // SAFETY: the lines outlive the threads.
            if unsafe { section::check_and_add(&s.word, 9, lines(s), 2, 0, 1) }.is_ok() {
                read(&s.data);
            }
        },
        // A word that was FREE and is one more is 0.
        |s| see(s, &s.lines.all()[0].words()[0], 0),
    ],
    after: |_| (),
};

#[test]
fn a_flag_is_tested_and_a_count_changed_at_once() {
    COUNTED.check();
    COUNTED.check_with(Rung::Rseq, &[WANDERS, CPU0]);
    TESTED.check();
}

fn switch_phase(s: &S) {
    write(&s.data);
    // Release: pairs with the section's load of the phase.
    s.word.store(1, Ordering::Release);
}

static PHASE: Model<S> = Model {
    name: "sections load_and_add",
    rung: Rung::Rseq,
    plans: &[CPU0, CPU0, CPU1],
    setup: || {
        let s = setup();
        // Relaxed: nobody else is here yet.
        s.word.store(0, Ordering::Relaxed);
        s
    },
    roles: &[
        switch_phase,
        |s| {
            write(&s.mine);
            // SAFETY: the lines outlive the threads.
            if unsafe { section::load_and_add(lines(s), &s.word) } == 1 {
                read(&s.data);
            }
        },
        // A word that was FREE and is one more is 0.
        |s| see(s, &s.lines.all()[0].words()[1], 0),
    ],
    after: |_| (),
};

#[test]
fn an_index_is_loaded_and_its_count_changed_at_once() {
    PHASE.check();
}
