//! `hp::structures::Stack`: what its documentation says, one sentence a test.

#![cfg(feature = "structures")]

mod common;

use common::Drops;
use hp::Domain;
use hp::structures::Stack;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

#[test]
fn last_in_first_out() {
    let stack = Stack::new();
    assert!(stack.is_empty() && stack.pop().is_none() && stack.peek().is_none());
    stack.push(1);
    stack.push(2);
    assert_eq!(stack.peek(), Some(2));
    assert_eq!(
        (stack.pop(), stack.pop(), stack.pop()),
        (Some(2), Some(1), None)
    );
    static SHARED: Stack<u8> = Stack::new();
    SHARED.push(1);
    assert_eq!(SHARED.pop(), Some(1));
}

#[test]
fn an_owner_iterates_and_changes() {
    let mut stack: Stack<_> = ["a", "b", "c"].map(String::from).into_iter().collect();
    for text in &mut stack {
        text.push('!');
    }
    if let Some(top) = stack.peek_mut() {
        top.insert(0, '>');
    }
    stack.extend(["d".to_string()]);
    (&stack).extend(["e".to_string()]);
    assert_eq!(stack.pop().as_deref(), Some("e"));
    assert_eq!(
        stack.into_iter().collect::<Vec<_>>(),
        ["d", ">c!", "b!", "a!"]
    );
}

#[test]
fn take_all_takes_what_is_there() {
    let stack: Stack<u32> = (0..4).collect();
    let mut all = stack.take_all();
    stack.push(9);
    assert_eq!(all.next(), Some(3));
    drop(all);
    assert_eq!(stack.pop(), Some(9));
    assert!(stack.is_empty());
    assert_eq!(format!("{stack:?}"), "Stack { is_empty: true, .. }");
}

#[test]
fn every_value_is_dropped_once_and_at_once() {
    let drops = Drops::new();
    let stack: Stack<_> = (0..10).map(|n| drops.value(n)).collect();
    for n in (7..10).rev() {
        assert_eq!(stack.pop().unwrap().get(), n);
    }
    assert_eq!(drops.count(), 3, "by whoever popped it");
    drop(stack.take_all().nth(1));
    assert_eq!(drops.count(), 10);
    stack.push(drops.value(0));
    stack.clear();
    stack.push(drops.value(0));
    drop(stack);
    assert_eq!(drops.count(), 12);
    Domain::global().drain();
    assert_eq!(drops.count(), 12, "not again with the nodes");
}

#[test]
fn values_may_borrow_and_their_nodes_outlive_what_they_borrowed() {
    let count = AtomicUsize::new(0);
    struct Counts<'a>(&'a AtomicUsize);
    impl Drop for Counts<'_> {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    {
        let stack: Stack<_> = (0..3).map(|_| Counts(&count)).collect();
        drop(stack.pop());
    }
    assert_eq!(count.into_inner(), 3);
    // The popped node is freed now; its value's lifetime is long over.
    Domain::global().drain();
}

#[test]
fn values_need_not_be_sync() {
    let stack = Stack::new();
    stack.push(std::cell::Cell::new(1));
    let value = thread::scope(|scope| scope.spawn(|| stack.pop().map(|c| c.get())).join());
    assert_eq!(value.unwrap(), Some(1));
}

#[test]
fn zero_sized_and_over_aligned_values() {
    #[derive(Clone, Copy, Debug, PartialEq)]
    #[repr(align(128))]
    struct Wide(u8);
    let stack: Stack<()> = (0..3).map(|_| ()).collect();
    assert_eq!(stack.into_iter().count(), 3);
    let stack: Stack<Wide> = (0..3).map(Wide).collect();
    assert_eq!(stack.peek(), Some(Wide(2)));
    assert_eq!(stack.pop(), Some(Wide(2)));
    Domain::global().drain();
}
