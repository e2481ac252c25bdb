//! Whether a concurrent history could have happened one operation after another.
//!
//! Floor 3 (`structures`). Owns recording and the search; knows no structure.
//!
//! A history is *linearizable* if its operations can be put in one order that respects real time (an operation that ended
//! before another began comes first) and in which a sequential model gives the same answers. The search takes an
//! operation that no other precedes, asks the model, and goes on with the rest; what was tried already (the set of
//! operations done and the model's state) is not tried again. Sources: Wing and Gong 1993; Lowe's memory of configurations,
//! 2017.

use std::collections::HashSet;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};

/// A sequential model.
pub trait Model: Clone + Eq + Hash {
    /// An operation with its arguments.
    type Op: Clone + Debug;
    /// Its answer.
    type Out: Clone + Debug + PartialEq;

    /// Carries it out.
    fn apply(&mut self, op: &Self::Op) -> Self::Out;
}

/// An operation that has been carried out.
#[derive(Clone, Debug)]
pub struct Done<O, A> {
    /// When it began.
    pub began: u64,
    /// When it had ended.
    pub ended: u64,
    /// What it was.
    pub op: O,
    /// What it answered.
    pub out: A,
}

/// The clock of a history: every reading is different.
#[derive(Debug, Default)]
pub struct Clock(AtomicU64);

impl Clock {
    /// Starts at 0.
    #[must_use]
    pub const fn new() -> Self {
        Clock(AtomicU64::new(0))
    }

    fn now(&self) -> u64 {
        // SeqCst: an operation that begins after another has ended reads more, and nothing of it is done before.
        self.0.fetch_add(1, Ordering::SeqCst)
    }

    /// Runs `operation` and notes when it began and ended.
    pub fn record<O, A>(&self, op: O, operation: impl FnOnce(&O) -> A) -> Done<O, A> {
        let began = self.now();
        let out = operation(&op);
        let ended = self.now();
        Done {
            began,
            ended,
            op,
            out,
        }
    }
}

/// An order in which `history` could have happened to `model`, as indices; `None`: there is none.
///
/// # Panics
///
/// If the history has more than 64 operations.
#[must_use]
pub fn linearize<M: Model>(model: &M, history: &[Done<M::Op, M::Out>]) -> Option<Vec<usize>> {
    assert!(
        history.len() <= 64,
        "{} operations; the search takes 64 at most",
        history.len()
    );
    let mut order = Vec::with_capacity(history.len());
    search(model, history, 0, &mut order, &mut HashSet::new()).then_some(order)
}

fn search<M: Model>(
    model: &M,
    history: &[Done<M::Op, M::Out>],
    done: u64,
    order: &mut Vec<usize>,
    tried: &mut HashSet<(u64, M)>,
) -> bool {
    if order.len() == history.len() {
        return true;
    }
    let open = |i: &usize| done & (1 << i) == 0;
    // Whatever begins after one of the rest has ended does not come next.
    let first_end = (0..history.len())
        .filter(open)
        .map(|i| history[i].ended)
        .min()
        .unwrap_or(u64::MAX);
    for next in (0..history.len()).filter(open) {
        if history[next].began > first_end {
            continue;
        }
        let mut after = model.clone();
        if after.apply(&history[next].op) != history[next].out {
            continue;
        }
        let done = done | 1 << next;
        if tried.insert((done, after.clone())) {
            order.push(next);
            if search(&after, history, done, order, tried) {
                return true;
            }
            order.pop();
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A register: `Some` writes, `None` reads.
    #[derive(Clone, PartialEq, Eq, Hash)]
    struct Register(u64);

    impl Model for Register {
        type Op = Option<u64>;
        type Out = u64;

        fn apply(&mut self, op: &Option<u64>) -> u64 {
            if let Some(new) = *op {
                self.0 = new;
            }
            self.0
        }
    }

    fn done(began: u64, ended: u64, op: Option<u64>, out: u64) -> Done<Option<u64>, u64> {
        Done {
            began,
            ended,
            op,
            out,
        }
    }

    #[test]
    fn overlapping_operations_may_come_in_either_order() {
        for seen in [0, 1] {
            let history = [done(0, 3, Some(1), 1), done(1, 2, None, seen)];
            let order = linearize(&Register(0), &history).unwrap();
            assert_eq!(order, if seen == 1 { [0, 1] } else { [1, 0] });
        }
    }

    #[test]
    fn real_time_is_respected() {
        // A write that has ended is seen.
        let history = [done(0, 1, Some(1), 1), done(2, 3, None, 0)];
        assert_eq!(linearize(&Register(0), &history), None);
        // Two readers do not see a write in different orders.
        let history = [
            done(0, 9, Some(1), 1),
            done(1, 2, None, 1),
            done(3, 4, None, 0),
        ];
        assert_eq!(linearize(&Register(0), &history), None);
    }

    #[test]
    fn the_answer_is_an_order_that_the_model_follows() {
        let history = [
            done(0, 10, Some(1), 1),
            done(1, 9, Some(2), 2),
            done(2, 8, None, 2),
            done(3, 7, None, 1),
        ];
        let order = linearize(&Register(0), &history).unwrap();
        let mut model = Register(0);
        for i in order {
            assert_eq!(model.apply(&history[i].op), history[i].out);
        }
    }

    #[test]
    fn the_clock_orders_what_follows() {
        let clock = Clock::new();
        let first = clock.record((), |()| 1);
        let second = clock.record((), |()| 2);
        assert!(first.began < first.ended && first.ended < second.began);
        assert_eq!((first.out, second.out), (1, 2));
    }
}
