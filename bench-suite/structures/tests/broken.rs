//! Schemes with a fault turn the checks red; the same code without one does not.

mod common;

use common::scaled;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use structures::schemes::{
    Control, Fault, Textbook, Unannounced, Unlooking, Unprotected, Unvalidated,
};
use structures::{Cell, Census, Queue, Stack, SwapCell};

const THREADS: usize = 4;

/// How long a fault may hide.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs `work` in several threads, over and over, each time on something new, until a dead node was looked at. Gives
/// whether that came about.
fn until_dead(rounds: usize, round: impl Fn(&'static Census)) -> bool {
    let began = Instant::now();
    for _ in 0..rounds {
        let census = Census::leak();
        round(census);
        if census.dead_seen() > 0 {
            return true;
        }
        if began.elapsed() > PATIENCE {
            return false;
        }
    }
    false
}

/// Operations of a thread in a round: few, since the dead keep their memory.
const EACH: u64 = scaled(500, 20) as u64;

fn stack<F: Fault>(census: &'static Census) {
    let stack = Stack::<Textbook<F>>::new(census);
    crew(|turn| {
        let mut thread = stack.thread();
        for value in 0..EACH {
            stack.push(&mut thread, turn * EACH + value);
            stack.pop(&mut thread);
        }
    });
    assert!(!stack.scheme().retired_twice());
}

fn queue<F: Fault>(census: &'static Census) {
    let queue = Queue::<Textbook<F>>::new(census);
    crew(|turn| {
        let mut thread = queue.thread();
        for value in 0..EACH {
            queue.enqueue(&mut thread, turn * EACH + value);
            queue.dequeue(&mut thread);
        }
    });
    assert!(!queue.scheme().retired_twice());
}

/// Peeks beside dequeues.
fn peeks<F: Fault>(census: &'static Census) {
    let queue = Queue::<Textbook<F>>::new(census);
    crew(|turn| {
        let mut thread = queue.thread();
        for value in 0..EACH {
            if turn % 2 == 0 {
                queue.enqueue(&mut thread, turn * EACH + value);
                queue.dequeue(&mut thread);
            } else {
                queue.peek(&mut thread);
            }
        }
    });
}

fn cell<F: Fault>(census: &'static Census) {
    let cell = SwapCell::<Textbook<F>>::new(0, census);
    crew(|turn| {
        let mut thread = cell.thread();
        for value in 0..EACH {
            cell.swap(&mut thread, turn * EACH + value);
            cell.get(&mut thread);
        }
    });
    assert!(!cell.scheme().retired_twice());
}

/// Runs `work` in each thread, all beginning together.
fn crew(work: impl Fn(u64) + Sync) {
    let go = AtomicBool::new(false);
    thread::scope(|scope| {
        for turn in 0..THREADS as u64 {
            let (go, work) = (&go, &work);
            scope.spawn(move || {
                while !go.load(Ordering::Acquire) {
                    thread::yield_now();
                }
                work(turn);
            });
        }
        go.store(true, Ordering::Release);
    });
}

const MANY: usize = usize::MAX;

#[test]
fn without_a_fault_nobody_looks_at_the_dead() {
    let few = scaled(20, 1);
    assert!(!until_dead(few, stack::<Control>));
    assert!(!until_dead(few, queue::<Control>));
    assert!(!until_dead(few, peeks::<Control>));
    assert!(!until_dead(few, cell::<Control>));
}

#[test]
#[cfg_attr(miri, ignore = "takes many operations to show")]
fn an_unprotected_top_is_seen_dead() {
    assert!(until_dead(MANY, stack::<Unprotected>));
}

#[test]
#[cfg_attr(miri, ignore = "takes many operations to show")]
fn an_unvalidated_top_is_seen_dead() {
    assert!(until_dead(MANY, stack::<Unvalidated>));
}

#[test]
#[cfg_attr(miri, ignore = "takes many operations to show")]
fn an_unprotected_end_of_a_queue_is_seen_dead() {
    assert!(until_dead(MANY, queue::<Unprotected>));
}

#[test]
#[cfg_attr(miri, ignore = "takes many operations to show")]
fn an_unvalidated_end_of_a_queue_is_seen_dead() {
    assert!(until_dead(MANY, queue::<Unvalidated>));
}

#[test]
#[cfg_attr(miri, ignore = "takes many operations to show")]
fn a_successor_that_was_not_announced_is_seen_dead() {
    assert!(until_dead(MANY, queue::<Unannounced>));
}

#[test]
#[cfg_attr(miri, ignore = "takes many operations to show")]
fn a_peek_without_its_second_look_sees_the_dead() {
    assert!(until_dead(MANY, peeks::<Unlooking>));
}

#[test]
#[cfg_attr(miri, ignore = "takes many operations to show")]
fn an_unprotected_object_is_seen_dead() {
    assert!(until_dead(MANY, cell::<Unprotected>));
}

#[test]
#[cfg_attr(miri, ignore = "takes many operations to show")]
fn an_unvalidated_object_is_seen_dead() {
    assert!(until_dead(MANY, cell::<Unvalidated>));
}
