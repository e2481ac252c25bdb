//! L9: the choice of the rung against its first use.
//!
//! Proves, without any rung: whoever reads a decided rung reads the winner's,
//! everybody reads the same one, and what the winner did before deciding (its
//! registration with the kernel) happens before any use. A reader that leaves
//! its fence out therefore never meets a reclaimer that issues only a fence.
//!
//! Cannot show: that the kernel's registration covers threads that exist
//! already. That is the system call's contract.

use crate::barrier::{Choice, Rung};
use crate::sim::CPU0;
use crate::sim::harness::Model;
use crate::sync::UnsafeCell;
use std::sync::Mutex;

struct S {
    choice: Choice,
    /// What each decider did before it decided; by rung.
    registered: [UnsafeCell<bool>; 4],
    /// Not a word of the model: the answers.
    answers: Mutex<Vec<Rung>>,
}

fn setup() -> S {
    S {
        choice: Choice::new(),
        registered: std::array::from_fn(|_| UnsafeCell::new(false)),
        answers: Mutex::new(vec![]),
    }
}

/// `barrier::rung` with the system calls as a write.
fn act(s: &S, mine: Rung) {
    let rung = s.choice.get().unwrap_or_else(|| {
        // SAFETY: loom checks.
        s.registered[mine as usize].with_mut(|r| unsafe { *r = true });
        match s.choice.settle(mine) {
            Ok(()) => mine,
            Err(theirs) => theirs,
        }
    });
    // SAFETY: loom checks.
    s.registered[rung as usize].with(|r| unsafe { assert!(*r, "not registered") });
    s.answers.lock().unwrap().push(rung);
}

/// The late reader: only looks.
fn look(s: &S) {
    if let Some(rung) = s.choice.get() {
        // SAFETY: loom checks.
        s.registered[rung as usize].with(|r| unsafe { assert!(*r, "not registered") });
        s.answers.lock().unwrap().push(rung);
    }
}

fn one_answer(s: &S) {
    let answers = s.answers.lock().unwrap();
    assert!(
        answers.windows(2).all(|two| two[0] == two[1]),
        "one process, two rungs: {answers:?}"
    );
    assert_eq!(s.choice.get(), answers.last().copied());
}

static DECIDERS: Model<S> = Model {
    name: "l9 two deciders, a reader that looks",
    rung: Rung::Fence,
    plans: &[CPU0, CPU0, CPU0],
    setup,
    roles: &[|s| act(s, Rung::Membarrier), |s| act(s, Rung::Fence), look],
    after: one_answer,
};

#[test]
fn all_act_on_the_winners_rung() {
    DECIDERS.check();
}
