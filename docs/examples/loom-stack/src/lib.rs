//! Treiber's stack over `hp`.

use hp::sync::Life;
use hp::sync::atomic::{AtomicPtr, Ordering};
use hp::{Domain, HazardPointer};
use std::mem::ManuallyDrop;
use std::ptr;

struct Node<T> {
    /// Lets loom see that the node is freed; nothing in other builds.
    life: Life,
    next: *mut Node<T>,
    /// Moved out by whoever pops the node.
    value: ManuallyDrop<T>,
}

// SAFETY: a node is freed on any thread; nobody uses `next` then.
unsafe impl<T: Send> Send for Node<T> {}

/// What a failed exchange finds is of no use, but to the planted bug.
const FAILED: Ordering = if cfg!(feature = "planted") {
    Ordering::Acquire
} else {
    Ordering::Relaxed
};

/// A lock-free stack.
pub struct Stack<T: Send + 'static> {
    head: AtomicPtr<Node<T>>,
}

impl<T: Send + 'static> Stack<T> {
    /// An empty one.
    pub fn new() -> Self {
        Self {
            head: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Puts a value on top.
    pub fn push(&self, value: T) {
        let node = Box::into_raw(Box::new(Node {
            life: Life::new(),
            next: ptr::null_mut(),
            value: ManuallyDrop::new(value),
        }));
        let mut top = self.head.load(Ordering::Relaxed);
        loop {
            // SAFETY: nobody else has the node yet.
            unsafe { (*node).next = top };
            // Release: who finds the node finds it filled in.
            match self
                .head
                .compare_exchange(top, node, Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => return,
                Err(now) => top = now,
            }
        }
    }

    /// Takes the value on top.
    pub fn pop(&self, hazard: &mut HazardPointer) -> Option<T> {
        let mut top = hazard.protect(&self.head);
        // SAFETY: protected, hence not freed.
        while let Some(node) = unsafe { top.as_ref() } {
            node.life.touch();
            let next = node.next;
            // Relaxed: nothing is published that was not, and as a
            // read-modify-write it hands on the Release of every push.
            match self
                .head
                .compare_exchange(top, next, Ordering::Relaxed, FAILED)
            {
                Ok(_) => {
                    // SAFETY: we took the node out, so the value is ours.
                    let value = unsafe { ptr::read(&node.value) };
                    hazard.reset();
                    // SAFETY: from a box, unlinked, and retired by us alone.
                    unsafe { Domain::global().retire_box(top) };
                    return Some(ManuallyDrop::into_inner(value));
                }
                // Somebody was quicker. What is on top by now …
                #[cfg(not(feature = "planted"))]
                Err(_) => top = hazard.protect(&self.head),
                // … is known already, but nobody protects it.
                #[cfg(feature = "planted")]
                Err(now) => top = now,
            }
        }
        None
    }
}

impl<T: Send + 'static> Drop for Stack<T> {
    fn drop(&mut self) {
        let mut next = self.head.load(Ordering::Relaxed);
        while !next.is_null() {
            // SAFETY: nobody else has the stack; each node is from a box.
            let mut node = unsafe { Box::from_raw(next) };
            // SAFETY: not popped, hence not moved out.
            unsafe { ManuallyDrop::drop(&mut node.value) };
            next = node.next;
        }
    }
}

impl<T: Send + 'static> Default for Stack<T> {
    fn default() -> Self {
        Self::new()
    }
}
