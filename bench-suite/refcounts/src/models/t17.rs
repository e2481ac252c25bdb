//! T17: two puts of `rcuref` that both leave no reference.
//!
//! Proves: exactly one is the last, and neither is taken for a put too many.
//! (Linux looked at the count a second time until 2025, found it dead by the
//! other's hand, and complained.)
//!
//! Cannot show: that the memory of the count outlives a put in progress; see `l12`.
//!
//! Rungs: one is enough, no barrier of `percpu` is involved.

use super::*;
use crate::rcuref::{Outcome, RcuRef};
use percpu::sim::CPU0;
use std::sync::Mutex;

struct S {
    count: RcuRef<{ 1 << 24 }>,
    /// Not a word of the model: the answers.
    answers: Mutex<Vec<Outcome>>,
}

fn put(s: &S) {
    let outcome = s.count.put_outcome();
    assert_ne!(outcome, Outcome::Unbalanced, "a put too many");
    s.answers.lock().unwrap().push(outcome);
}

fn get_and_put(s: &S) {
    if s.count.get() {
        put(s);
    }
}

fn one_last(s: &S) {
    let answers = s.answers.lock().unwrap();
    let last = answers.iter().filter(|&&a| a == Outcome::Last).count();
    assert_eq!(last, 1, "{answers:?}");
    assert!(s.count.is_dead());
}

fn setup() -> S {
    S {
        count: RcuRef::new(1),
        answers: Mutex::new(vec![]),
    }
}

static TWO: Model<S> = Model {
    name: "t17 two last puts",
    rung: Rung::Fence,
    plans: &[CPU0, CPU0],
    setup,
    roles: &[put, get_and_put],
    after: one_last,
};

static THREE: Model<S> = Model {
    name: "t17 three last puts",
    rung: Rung::Fence,
    plans: &[CPU0, CPU0, CPU0],
    setup,
    roles: &[put, get_and_put, get_and_put],
    after: one_last,
};

#[test]
fn one_is_the_last_and_none_too_many() {
    TWO.check();
    THREE.check();
}
