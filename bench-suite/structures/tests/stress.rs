//! Many threads: whatever was put in comes out once, in the order that the structure promises, and nobody looks at a dead
//! node.

mod common;

use common::{frees_all, linked, scaled, schemes};
use std::collections::HashMap;
use std::thread;
use structures::{
    About, Cell, Census, Queue, Scheme, Stack, Visit, VisitCell, dispatch, dispatch_cell,
};

const THREADS: usize = 4;
const EACH: usize = scaled(20_000, 12);

/// A value that names its maker and its turn.
fn value(maker: usize, turn: usize) -> u64 {
    (maker as u64) << 32 | turn as u64
}

fn ended(census: &Census, about: &About) {
    assert_eq!(
        census.dead_seen(),
        0,
        "{}: a dead node was looked at",
        about.name
    );
    if frees_all(about) {
        let count = census.count();
        assert_eq!((count.nodes, count.bytes), (0, 0), "{}", about.name);
    }
}

/// Each value of each maker once.
fn each_once(taken: impl Iterator<Item = u64>, about: &About) {
    let mut seen = HashMap::new();
    for value in taken {
        *seen.entry(value).or_insert(0) += 1;
    }
    assert_eq!(seen.len(), THREADS * EACH, "{}: values lost", about.name);
    assert!(
        seen.values().all(|times| *times == 1),
        "{}: a value came out twice",
        about.name
    );
    assert!(
        (0..THREADS).all(|maker| (0..EACH).all(|turn| seen.contains_key(&value(maker, turn)))),
        "{}: a value that nobody put in",
        about.name
    );
}

struct OnStack;

impl Visit for OnStack {
    type Out = ();

    fn visit<S: Scheme>(self) {
        let census = Census::leak();
        let stack = Stack::<S>::new(census);
        let taken: Vec<Vec<u64>> = thread::scope(|scope| {
            let crew: Vec<_> = (0..THREADS)
                .map(|maker| {
                    let stack = &stack;
                    scope.spawn(move || {
                        let mut thread = stack.thread();
                        let mut taken = Vec::new();
                        for turn in 0..EACH {
                            stack.push(&mut thread, value(maker, turn));
                            stack.peek(&mut thread);
                            if turn % 3 != 0 {
                                taken.extend(stack.pop(&mut thread));
                            }
                        }
                        taken
                    })
                })
                .collect();
            crew.into_iter().map(|t| t.join().unwrap()).collect()
        });
        let mut thread = stack.thread();
        let rest: Vec<u64> = std::iter::from_fn(|| stack.pop(&mut thread)).collect();
        drop(thread);
        each_once(taken.into_iter().flatten().chain(rest), &S::ABOUT);
        stack.flush();
        drop(stack);
        ended(census, &S::ABOUT);
    }
}

struct OnQueue;

impl Visit for OnQueue {
    type Out = ();

    fn visit<S: Scheme>(self) {
        let census = Census::leak();
        let queue = Queue::<S>::new(census);
        let taken: Vec<Vec<u64>> = thread::scope(|scope| {
            let crew: Vec<_> = (0..THREADS)
                .map(|maker| {
                    let queue = &queue;
                    scope.spawn(move || {
                        let mut thread = queue.thread();
                        let mut taken = Vec::new();
                        for turn in 0..EACH {
                            queue.enqueue(&mut thread, value(maker, turn));
                            queue.peek(&mut thread);
                            if turn % 3 != 0 {
                                taken.extend(queue.dequeue(&mut thread));
                            }
                        }
                        taken
                    })
                })
                .collect();
            crew.into_iter().map(|t| t.join().unwrap()).collect()
        });
        let mut thread = queue.thread();
        let rest: Vec<u64> = std::iter::from_fn(|| queue.dequeue(&mut thread)).collect();
        drop(thread);
        // What one taker got of one maker is in the maker's order.
        for taken in taken.iter().chain([&rest]) {
            let mut last = [None; THREADS];
            for value in taken {
                let maker = (value >> 32) as usize;
                assert!(
                    last[maker] < Some(*value),
                    "{}: not first in, first out",
                    S::ABOUT.name
                );
                last[maker] = Some(*value);
            }
        }
        each_once(taken.into_iter().flatten().chain(rest), &S::ABOUT);
        queue.flush();
        drop(queue);
        ended(census, &S::ABOUT);
    }
}

struct OnCell;

impl VisitCell for OnCell {
    type Out = ();

    fn visit<C: Cell>(self) {
        const FIRST: u64 = u64::MAX;
        let census = Census::leak();
        let cell = C::new(FIRST, census);
        // Every thread swaps and reads. Each number is taken out once, by the swap that replaced it.
        let taken: Vec<Vec<u64>> = thread::scope(|scope| {
            let crew: Vec<_> = (0..THREADS)
                .map(|maker| {
                    let cell = &cell;
                    scope.spawn(move || {
                        let mut thread = cell.thread();
                        let mut taken = Vec::new();
                        for turn in 0..EACH {
                            let seen = cell.get(&mut thread);
                            assert!(seen == FIRST || (seen >> 32) < THREADS as u64);
                            taken.push(cell.swap(&mut thread, value(maker, turn)));
                        }
                        taken
                    })
                })
                .collect();
            crew.into_iter().map(|t| t.join().unwrap()).collect()
        });
        let mut thread = cell.thread();
        let last = cell.get(&mut thread);
        drop(thread);
        let mut taken: Vec<u64> = taken.into_iter().flatten().collect();
        let first = taken.iter().position(|value| *value == FIRST);
        taken.swap_remove(first.expect("the first number was replaced"));
        each_once(taken.into_iter().chain([last]), &C::ABOUT);
        cell.flush();
        drop(cell);
        ended(census, &C::ABOUT);
    }
}

#[test]
fn a_stack_loses_and_doubles_nothing() {
    for about in linked() {
        dispatch(about.name, OnStack).expect("listed");
    }
}

#[test]
fn a_queue_keeps_the_order() {
    for about in linked() {
        dispatch(about.name, OnQueue).expect("listed");
    }
}

#[test]
fn a_cell_hands_each_number_on_once() {
    for about in schemes() {
        dispatch_cell(about.name, OnCell).expect("listed");
    }
}

/// All of this again, in processes of their own, on the rungs that are forced there.
#[test]
#[cfg(all(target_os = "linux", not(miri)))]
fn on_the_rungs_that_are_forced() {
    const CHILD: &str = "STRUCTURES_CHILD";
    if std::env::var_os(CHILD).is_some() {
        return;
    }
    for about in structures::schemes::listed().filter(|about| about.rung.is_some()) {
        let out = std::process::Command::new(std::env::current_exe().unwrap())
            .env("HP_BARRIER", about.rung.unwrap())
            .env("STRUCTURES_ONLY", about.name)
            .env(CHILD, "1")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&out.stdout);
        assert!(out.status.success(), "{}: {text}", about.name);
        assert!(text.contains("4 passed"), "{}: {text}", about.name);
    }
}
