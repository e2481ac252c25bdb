//! The stack on real threads: cargo test
#![cfg(not(loom))]

use hp::HazardPointer;
use loom_stack::Stack;
use std::thread;

#[test]
fn every_value_comes_out_once() {
    let stack = Stack::new();
    let sum: u64 = thread::scope(|scope| {
        for part in 0..2 {
            let stack = &stack;
            scope.spawn(move || (0..1000).for_each(|n| stack.push(1000 * part + n)));
        }
        let pops = |_| {
            scope.spawn(|| {
                let mut hazard = HazardPointer::new();
                let mut sum = 0;
                for _ in 0..1000 {
                    sum += loop {
                        match stack.pop(&mut hazard) {
                            Some(value) => break value,
                            None => thread::yield_now(),
                        }
                    };
                }
                sum
            })
        };
        let poppers = [0, 1].map(pops);
        poppers.map(|popper| popper.join().unwrap()).iter().sum()
    });
    assert_eq!(sum, (0..2000).sum());
}
