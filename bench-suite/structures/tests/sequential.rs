//! One thread: each structure under each scheme does what a sequential model does.

mod common;

use common::{frees_all, linked, scaled, schemes};
use proptest::prelude::*;
use std::collections::VecDeque;
use structures::{Cell, Census, Queue, Scheme, Stack, Visit, VisitCell, dispatch, dispatch_cell};

/// `Some` puts in, `None` takes out.
type Ops = Vec<Option<u64>>;

struct OnStack(Ops);

impl Visit for OnStack {
    type Out = ();

    fn visit<S: Scheme>(self) {
        let census = Census::leak();
        let stack = Stack::<S>::new(census);
        let mut model = Vec::new();
        let mut thread = stack.thread();
        for op in self.0 {
            match op {
                Some(value) => {
                    stack.push(&mut thread, value);
                    model.push(value);
                }
                None => assert_eq!(stack.pop(&mut thread), model.pop(), "{}", S::ABOUT.name),
            }
            assert_eq!(stack.peek(&mut thread), model.last().copied());
            let mut held = false;
            let top = stack.hold(&mut thread, || held = true);
            assert_eq!((top, held), (model.last().copied(), true));
        }
        drop(thread);
        stack.flush();
        assert!(census.count().nodes >= model.len() as u64, "freed too much");
        drop(stack);
        ended(census, &S::ABOUT);
    }
}

struct OnQueue(Ops);

impl Visit for OnQueue {
    type Out = ();

    fn visit<S: Scheme>(self) {
        let census = Census::leak();
        let queue = Queue::<S>::new(census);
        let mut model = VecDeque::new();
        let mut thread = queue.thread();
        for op in self.0 {
            match op {
                Some(value) => {
                    queue.enqueue(&mut thread, value);
                    model.push_back(value);
                }
                None => assert_eq!(
                    queue.dequeue(&mut thread),
                    model.pop_front(),
                    "{}",
                    S::ABOUT.name
                ),
            }
            assert_eq!(queue.peek(&mut thread), model.front().copied());
            let mut held = false;
            let first = queue.hold(&mut thread, || held = true);
            assert_eq!((first, held), (model.front().copied(), true));
        }
        drop(thread);
        queue.flush();
        assert!(census.count().nodes > model.len() as u64, "freed too much");
        drop(queue);
        ended(census, &S::ABOUT);
    }
}

struct OnCell(Ops);

impl VisitCell for OnCell {
    type Out = ();

    fn visit<C: Cell>(self) {
        let census = Census::leak();
        let cell = C::new(7, census);
        let mut model = 7;
        let mut thread = cell.thread();
        for op in self.0 {
            match op {
                Some(value) => {
                    assert_eq!(cell.swap(&mut thread, value), model, "{}", C::ABOUT.name);
                    model = value;
                }
                None => assert_eq!(cell.get(&mut thread), model, "{}", C::ABOUT.name),
            }
            C::idle(&mut thread, || ());
            let mut held = false;
            assert_eq!(cell.hold(&mut thread, || held = true), model);
            assert!(held);
        }
        drop(thread);
        cell.flush();
        assert!(census.count().nodes >= 1, "freed too much");
        drop(cell);
        ended(census, &C::ABOUT);
    }
}

fn ended(census: &Census, about: &structures::About) {
    assert_eq!(census.dead_seen(), 0, "{}", about.name);
    if frees_all(about) {
        let count = census.count();
        assert_eq!((count.nodes, count.bytes), (0, 0), "{}", about.name);
        assert_eq!(count.made, count.freed, "{}", about.name);
    }
}

fn ops() -> impl Strategy<Value = Ops> {
    prop::collection::vec(prop::option::of(any::<u64>()), 0..scaled(200, 12))
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: scaled(64, 2) as u32,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_stack_is_a_vec(ops in ops()) {
        for about in linked() {
            prop_assert!(dispatch(about.name, OnStack(ops.clone())).is_some());
        }
    }

    #[test]
    fn a_queue_is_a_deque(ops in ops()) {
        for about in linked() {
            prop_assert!(dispatch(about.name, OnQueue(ops.clone())).is_some());
        }
    }

    #[test]
    fn a_cell_is_a_variable(ops in ops()) {
        for about in schemes() {
            prop_assert!(dispatch_cell(about.name, OnCell(ops.clone())).is_some());
        }
    }
}
