//! L3, lines: a line's first use against a scan.
//!
//! Proves, on the rseq rung: a claim in a line that was opened by this thread
//! or by another one, and that committed before the scanner's heavy barrier,
//! is seen by the scan, because the line was announced before its words were
//! opened.
//!
//! Cannot show: that the Release of the announcement itself matters. The
//! barrier orders everything that came before the claim, so opening carries
//! it (see `UNKILLABLE` in `ci/mutants.py`).

use crate::barrier::{Rung, heavy};
use crate::line::Lines;
use crate::section::{self, Miss};
use crate::sim::harness::Model;
use crate::sim::{CPU0, CPU1, MOVED};
use crate::sync::UnsafeCell;
use crate::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

const FREE: usize = usize::MAX;

struct S {
    lines: Lines,
    object: Box<UnsafeCell<u32>>,
    src: AtomicPtr<()>,
}

fn setup() -> S {
    let object = Box::new(UnsafeCell::new(1));
    let address = core::ptr::from_ref(&*object).cast_mut().cast();
    S {
        lines: Lines::new(),
        object,
        src: AtomicPtr::new(address),
    }
}

/// Claims a word for the object, opening the line if need be and allowed.
fn claim(s: &S, may_open: bool) -> Option<&AtomicUsize> {
    loop {
        // SAFETY: the lines outlive the model's threads.
        let answer = unsafe {
            section::search_and_load(s.lines.all().as_ptr(), 2, 0, 1, &s.src, usize::MAX)
        };
        match answer {
            // SAFETY: a word of the lines.
            Ok((word, _)) => return Some(unsafe { &*word }),
            Err(Miss::Inactive(index)) if may_open => s.lines.activate(index, 1, FREE),
            Err(Miss::Restarted) => {}
            Err(Miss::Null | Miss::Busy | Miss::Inactive(_)) => return None,
            Err(other) => panic!("{other:?}"),
        }
    }
}

fn use_it(s: &S, word: Option<&AtomicUsize>) {
    if let Some(word) = word {
        // SAFETY: loom checks that it is not written at the same time.
        s.object.with(|v| unsafe { assert_eq!(*v, 1, "freed") });
        // Release: "Clear".
        word.store(FREE, Ordering::Release);
    }
}

fn first_user(s: &S) {
    use_it(s, claim(s, true));
}

/// Claims only in a line that somebody else has opened.
fn second_user(s: &S) {
    use_it(s, claim(s, false));
}

/// What the first user does, without its claim.
fn opener(s: &S) {
    s.lines.activate(0, 1, FREE);
}

fn scanner(s: &S) {
    let old = s.src.swap(core::ptr::null_mut(), Ordering::AcqRel);
    heavy().unwrap();
    let mut held = false;
    s.lines.for_each_active(|_, line| {
        // Acquire: as in `hp`'s scan.
        held |= line.words()[0].load(Ordering::Acquire) == old.addr();
    });
    if !held {
        // SAFETY: loom checks that nobody else is there.
        s.object.with_mut(|v| unsafe { *v = 0xdead });
    }
}

static ONE: Model<S> = Model {
    name: "l3 first use of a line, scan",
    rung: Rung::Rseq,
    plans: &[CPU0, CPU0],
    setup,
    roles: &[first_user, scanner],
    after: |_| (),
};

static OPENED: Model<S> = Model {
    name: "l3 use of a line that another one opens, scan",
    rung: Rung::Rseq,
    plans: &[CPU0, CPU0, CPU0],
    setup,
    roles: &[opener, second_user, scanner],
    after: |_| (),
};

#[test]
fn one_opens_a_line() {
    ONE.check();
    ONE.check_with(Rung::Rseq, &[CPU1, CPU0]);
    ONE.check_with(Rung::Rseq, &[MOVED, CPU0]);
}

#[test]
fn another_one_opened_the_line() {
    OPENED.check();
}
