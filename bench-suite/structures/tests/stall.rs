//! A reader that never goes on: where there is a documented bound, what waits stays below it; where everything is
//! protected, nothing is freed any more.
//!
//! One test: the RCU domains are the whole process's.

mod common;

use common::{linked, scaled};
use std::sync::mpsc::channel;
use std::thread;
use structures::{Census, Protects, Scheme, Stack, Thread, Visit, dispatch};

const PAIRS: u64 = scaled(100_000, 60) as u64;

struct Stalled;

impl Visit for Stalled {
    /// Nodes that wait at the end.
    type Out = (u64, Option<usize>);

    fn visit<S: Scheme>(self) -> (u64, Option<usize>) {
        let census = Census::leak();
        let stack = Stack::<S>::new(census);
        let waiting = thread::scope(|scope| {
            let (inside, is_inside) = channel();
            let (go_on, may_go_on) = channel();
            stack.push(&mut stack.thread(), 7);
            let stack = &stack;
            let reader = scope.spawn(move || {
                let mut thread = stack.thread();
                stack.hold(&mut thread, || {
                    inside.send(()).unwrap();
                    may_go_on.recv().unwrap();
                })
            });
            let mut thread = stack.thread();
            thread.idle(|| is_inside.recv().unwrap());
            // The node that the reader holds goes first.
            assert_eq!(stack.pop(&mut thread), Some(7));
            for value in 0..PAIRS {
                stack.push(&mut thread, value);
                assert_eq!(stack.pop(&mut thread), Some(value));
            }
            let waiting = census.count().nodes;
            go_on.send(()).unwrap();
            thread.idle(|| assert_eq!(reader.join().unwrap(), Some(7)));
            waiting
        });
        // Nobody's any more.
        let mut thread = stack.thread();
        for value in 0..PAIRS {
            stack.push(&mut thread, value);
            stack.pop(&mut thread);
        }
        drop(thread);
        stack.flush();
        assert_eq!(census.dead_seen(), 0, "{}", S::ABOUT.name);
        if S::ABOUT.protects != Protects::Nothing {
            let left = census.count().nodes;
            assert!(
                left <= waiting.max(PAIRS) / 2,
                "{}: {left} still wait",
                S::ABOUT.name
            );
        }
        (waiting, stack.scheme().bound(2, 1))
    }
}

#[test]
fn what_waits_for_a_reader_that_sleeps() {
    for about in linked() {
        let (waiting, bound) = dispatch(about.name, Stalled).expect("listed");
        println!("{}: {waiting} wait, bound {bound:?}", about.name);
        match about.protects {
            Protects::Everything | Protects::Nothing => {
                assert!(
                    waiting > PAIRS,
                    "{}: only {waiting} wait, though a reader is inside",
                    about.name
                );
                assert_eq!(bound, None, "{}", about.name);
            }
            Protects::Object | Protects::Counted => {
                assert!(
                    waiting < PAIRS / 2 || cfg!(miri),
                    "{}: {waiting} wait for a reader of one object",
                    about.name
                );
            }
        }
        if let Some(bound) = bound {
            assert!(
                waiting as usize <= bound,
                "{}: {waiting} wait, the bound is {bound}",
                about.name
            );
        }
    }
}
