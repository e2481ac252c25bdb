//! A lock-free stack (Treiber's) on hazard pointers.
//!
//! `cargo run -p hp --example treiber_stack`
//!
//! Several threads push distinct numbers and pop whatever they find. At the end
//! every number must have been popped exactly once, and every node freed.

use hp::{Domain, HazardPointer};
use std::mem::ManuallyDrop;
use std::process::ExitCode;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicUsize, Ordering};
use std::thread;

struct Node<T> {
    /// Moved out by the thread whose exchange removes the node.
    value: ManuallyDrop<T>,
    /// Written before the node is published, never afterwards.
    next: *mut Node<T>,
}

// SAFETY: a node is handed to whichever thread reclaims it; by then `next` is
// only a number and the value, if it is still there, may be sent.
unsafe impl<T: Send> Send for Node<T> {}

/// A stack with a domain of its own, so that its garbage can be counted.
struct Stack<T: Send + 'static> {
    head: AtomicPtr<Node<T>>,
    domain: Domain,
}

impl<T: Send + 'static> Stack<T> {
    fn new() -> Self {
        Self {
            head: AtomicPtr::new(ptr::null_mut()),
            domain: Domain::new(),
        }
    }

    fn push(&self, value: T) {
        let node = Box::into_raw(Box::new(Node {
            value: ManuallyDrop::new(value),
            next: ptr::null_mut(),
        }));
        // Relaxed: the old head is stored, not dereferenced.
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            // SAFETY: the node is this thread's until the exchange succeeds.
            unsafe { (*node).next = head };
            // Release: publishes the node to the Acquire in `protect`.
            match self
                .head
                .compare_exchange_weak(head, node, Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// `hazard` is any hazard pointer of the caller's; keeping one for many
    /// calls is cheaper than making one each time.
    fn pop(&self, hazard: &mut HazardPointer) -> Option<T> {
        loop {
            let head = hazard.protect(&self.head);
            if head.is_null() {
                return None;
            }
            // SAFETY: protected, so it is not freed; and because its address
            // cannot be reused meanwhile, the exchange below cannot mistake
            // another node for it.
            let next = unsafe { (*head).next };
            // AcqRel: the node is unlinked before it is retired.
            if self
                .head
                .compare_exchange(head, next, Ordering::AcqRel, Ordering::Relaxed)
                .is_err()
            {
                continue;
            }
            hazard.reset();
            // SAFETY: this thread's exchange removed the node, so no other
            // thread moves the value; others may only read `next`.
            let value = unsafe { ptr::read(&raw const (*head).value) };
            // SAFETY: from a box, unlinked, retired by this thread only. The
            // value does not drop with the node.
            unsafe { self.domain.retire_box(head) };
            return Some(ManuallyDrop::into_inner(value));
        }
    }
}

impl<T: Send + 'static> Drop for Stack<T> {
    fn drop(&mut self) {
        let mut hazard = HazardPointer::new();
        while self.pop(&mut hazard).is_some() {}
    }
}

const THREADS: usize = 4;
const EACH: usize = 50_000;

fn main() -> ExitCode {
    let stack = Stack::new();
    let popped: Vec<AtomicU8> = (0..THREADS * EACH).map(|_| AtomicU8::new(0)).collect();
    let empty = AtomicUsize::new(0);

    thread::scope(|scope| {
        for worker in 0..THREADS {
            let (stack, popped, empty) = (&stack, &popped, &empty);
            scope.spawn(move || {
                let mut hazard = HazardPointer::new();
                for n in 0..EACH {
                    // A box, so that a value that is dropped twice is noticed.
                    stack.push(Box::new(worker * EACH + n));
                    if n % 2 == 1 {
                        continue;
                    }
                    match stack.pop(&mut hazard) {
                        Some(value) => _ = popped[*value].fetch_add(1, Ordering::Relaxed),
                        None => _ = empty.fetch_add(1, Ordering::Relaxed),
                    }
                }
            });
        }
    });
    let mut hazard = HazardPointer::new();
    while let Some(value) = stack.pop(&mut hazard) {
        popped[*value].fetch_add(1, Ordering::Relaxed);
    }
    drop(hazard);
    stack.domain.drain();

    let wrong = popped
        .iter()
        .filter(|times| times.load(Ordering::Relaxed) != 1)
        .count();
    let stats = stack.domain.stats();
    println!(
        "{} values pushed and popped by {THREADS} threads: {wrong} not exactly once; \
         {} nodes retired, {} freed in {} passes; {} pops found the stack empty",
        THREADS * EACH,
        stats.retired,
        stats.reclaimed,
        stats.scans,
        empty.into_inner(),
    );
    if wrong == 0 && stats.retired == (THREADS * EACH) as u64 && stats.pending == 0 {
        ExitCode::SUCCESS
    } else {
        eprintln!("check failed");
        ExitCode::FAILURE
    }
}
