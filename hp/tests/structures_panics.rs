//! Values whose destructors panic, in the structures. A file of its own: such a
//! panic goes to whoever reclaims, which would be the other tests.

#![cfg(feature = "structures")]

mod common;

use common::Drops;
use hp::Domain;
use hp::structures::{Map, Stack};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

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
    // No pass begins by itself in what Miri has time for.
    if !cfg!(miri) {
        passes();
    }
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

/// A value whose drop panics now and then.
struct Uneven(
    usize,
    #[allow(dead_code, reason = "dropped")] common::Counted,
);

impl Drop for Uneven {
    fn drop(&mut self) {
        assert!(!self.0.is_multiple_of(64), "a bad value");
    }
}

/// A pass begins in the middle of an operation, and its panic comes out of
/// that: the operation's own effect stays, and nothing is lost.
fn passes() {
    const N: usize = 20_000;
    let (drops, popped) = (Drops::new(), Drops::new());
    let map = Map::new();
    let stack = Stack::new();
    let mut panics = 0;
    let mut caught = |operation: &dyn Fn()| {
        panics += usize::from(catch_unwind(AssertUnwindSafe(operation)).is_err());
    };
    for n in 0..N {
        let key = n % 7;
        let value = std::cell::Cell::new(Some(Uneven(n, drops.value(n))));
        caught(&|| drop(value.take().and_then(|value| map.insert(key, value))));
        assert_eq!(map.get(&key).map(|value| value.0), Some(n));
        stack.push(popped.value(n));
        caught(&|| drop(stack.pop()));
        assert_eq!(popped.count(), n + 1);
        if n % 3 == 0 {
            caught(&|| drop(map.remove(&key)));
            assert!(!map.contains_key(&key));
        }
        assert_eq!(map.len(), map.iter().count());
    }
    assert!(panics > 0, "no pass began in an operation");
    let _ = catch_unwind(AssertUnwindSafe(|| drop(map)));
    let mut drains = 0;
    while drops.count() < N {
        let _ = catch_unwind(|| Domain::global().drain());
        drains += 1;
        assert!(drains <= N, "no progress");
    }
    assert_eq!(drops.count(), N);
}

/// Panics the first time only, so that unwinding can drop the rest.
struct Once<'a>(&'a AtomicUsize);

impl Drop for Once<'_> {
    fn drop(&mut self) {
        assert!(self.0.fetch_add(1, Ordering::Relaxed) != 0, "the first one");
    }
}

fn stack() {
    let uses: [fn(Stack<Once<'_>>); 5] = [
        |stack| drop(stack),
        |stack| stack.clear(),
        |stack| stack.take_all().for_each(drop),
        |stack| stack.into_iter().for_each(drop),
        |stack| while stack.pop().is_some() {},
    ];
    for case in uses {
        let dropped = AtomicUsize::new(0);
        let stack = (0..3).map(|_| Once(&dropped)).collect();
        assert!(catch_unwind(AssertUnwindSafe(|| case(stack))).is_err());
        assert_eq!(dropped.load(Ordering::Relaxed), 3);
    }
    // The memory of nodes is reclaimed without a panic.
    Domain::global().drain();
}
