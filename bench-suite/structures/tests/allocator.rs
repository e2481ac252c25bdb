//! What each scheme asks of the allocator for a retirement.
//!
//! One test: the counters are the whole process's.

mod common;

use common::linked;
use structures::alloc::{Calls, Counting, calls, watch};
use structures::{Census, Scheme, Stack, Visit, dispatch};

#[global_allocator]
static COUNTING: Counting = Counting;

const PAIRS: u64 = common::scaled(20_000, 100) as u64;

struct OnStack;

impl Visit for OnStack {
    type Out = (Calls, Calls);

    /// What it takes to push and pop: cold, and once warm.
    fn visit<S: Scheme>(self) -> (Calls, Calls) {
        let stack = Stack::<S>::new(Census::leak());
        let mut thread = stack.thread();
        let mut part = || {
            let before = calls();
            for value in 0..PAIRS {
                stack.push(&mut thread, value);
                assert_eq!(stack.pop(&mut thread), Some(value));
            }
            let after = calls();
            Calls {
                allocations: after.allocations - before.allocations,
                frees: after.frees - before.frees,
            }
        };
        (part(), part())
    }
}

#[test]
fn retiring_allocates_only_where_the_scheme_must() {
    drop(std::hint::black_box(Box::new(1)));
    assert_eq!(calls().allocations, 0, "not watched yet");
    watch();
    let before = calls();
    let boxed = std::hint::black_box(Box::new(1));
    assert!(calls().allocations > before.allocations);
    drop(boxed);
    assert!(calls().frees > before.frees);

    for about in linked() {
        let (_, warm) = dispatch(about.name, OnStack).expect("listed");
        // A node for each pair. haphazard allocates a record for each retirement; the others a block now and then.
        let least = if about.name == "haphazard" { 2 } else { 1 } * PAIRS;
        let slack = PAIRS / 10 + 50;
        assert!(
            (least..least + slack).contains(&warm.allocations),
            "{}: {} allocations for {PAIRS} nodes",
            about.name,
            warm.allocations
        );
        println!("{}: {warm:?}", about.name);
    }
}
