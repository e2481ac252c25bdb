//! Values whose destructors panic, in the structures. A file of its own: such a
//! panic goes to whoever reclaims, which would be the other tests.

#![cfg(feature = "structures")]

mod common;

use common::Drops;
use hp::Domain;
use hp::structures::{Map, Stack};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A value whose drop panics.
struct Bad(#[allow(dead_code, reason = "dropped")] common::Counted);

impl Drop for Bad {
    fn drop(&mut self) {
        panic!("a bad value");
    }
}

#[test]
fn a_destructor_that_panics_loses_nothing_else() {
    map();
    stack();
}

fn map() {
    let drops = Drops::new();
    let map: Map<u32, Bad> = (0..10).map(|n| (n, Bad(drops.value(1)))).collect();
    for n in 0..5 {
        // Whether it panics here depends on whether a pass is due.
        let _ = catch_unwind(AssertUnwindSafe(|| map.remove(&n)));
    }
    assert_eq!(map.len(), 5);
    let _ = catch_unwind(AssertUnwindSafe(|| drop(map)));
    let mut panics = 0;
    while drops.count() < 10 {
        panics += usize::from(catch_unwind(|| Domain::global().drain()).is_err());
        assert!(panics <= 10, "no progress");
    }
}

fn stack() {
    let drops = Drops::new();
    let fill = || -> Stack<Bad> { (0..3).map(|_| Bad(drops.value(1))).collect() };
    let stack = fill();
    assert!(catch_unwind(AssertUnwindSafe(|| drop(stack.pop()))).is_err());
    assert_eq!(drops.count(), 1, "dropped by whoever popped it");
    let reduced = catch_unwind(AssertUnwindSafe(|| {
        let mut all = stack.take_all();
        std::mem::forget(all.next());
        drop(all); // one is left
    }));
    assert!(reduced.is_err() && stack.is_empty());
    assert_eq!(drops.count(), 2);
    // The memory of nodes is reclaimed without a panic.
    Domain::global().drain();
    let one: Stack<Bad> = fill();
    drop(one.pop().map(std::mem::ManuallyDrop::new));
    std::mem::forget(one.pop());
    assert!(catch_unwind(AssertUnwindSafe(|| drop(one))).is_err());
    assert_eq!(drops.count(), 3);
}
