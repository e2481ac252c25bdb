//! `leak`: nothing is freed before the structure goes. The limit that no scheme can beat, and the memory that it costs.
//!
//! Floor 3 (`structures`). A retirement is a push to a block of the thread's own; threads hand their blocks over when
//! they end.

use super::section::only_loads;
use crate::scheme::{Guard, Scheme, Thread};
use crate::{About, Node, Protects};
use std::sync::{Mutex, PoisonError};

/// Nodes in a block.
const BLOCK: usize = 1024;

/// A node that waits for the end.
#[derive(Debug)]
struct Retired {
    node: *mut (),
    free: unsafe fn(*mut ()),
}

// SAFETY: nodes are `Send`, and nobody else has this one.
unsafe impl Send for Retired {}

unsafe fn free<T: Node>(node: *mut ()) {
    // SAFETY: the caller's: a box of `T`.
    drop(unsafe { Box::from_raw(node.cast::<T>()) });
}

/// What threads that have ended left.
#[derive(Debug)]
pub struct Leak {
    left: Mutex<Vec<Vec<Retired>>>,
}

impl Scheme for Leak {
    const ABOUT: About = About::new(
        "leak",
        Protects::Nothing,
        "plain loads; nothing is freed before the structure goes: the limit",
        "none",
    );

    type Thread<'a, const K: usize> = Leaking<'a>;

    fn new() -> Self {
        Leak {
            left: Mutex::default(),
        }
    }

    fn thread<const K: usize>(&self) -> Leaking<'_> {
        Leaking {
            scheme: self,
            retired: Blocks::default(),
        }
    }

    fn flush(&self) {}
}

impl Drop for Leak {
    fn drop(&mut self) {
        let left = self.left.get_mut().unwrap_or_else(PoisonError::into_inner);
        for retired in left.drain(..).flatten() {
            // SAFETY: retired once, and `&mut self` proves that nobody uses the structure.
            unsafe { (retired.free)(retired.node) };
        }
    }
}

/// What a thread has retired, in blocks, so that nothing is copied when there is more.
#[derive(Debug, Default)]
struct Blocks {
    full: Vec<Vec<Retired>>,
    open: Vec<Retired>,
}

impl Blocks {
    #[inline(always)]
    fn push(&mut self, retired: Retired) {
        if self.open.len() == self.open.capacity() {
            self.next_block();
        }
        self.open.push(retired);
    }

    #[cold]
    #[inline(never)]
    fn next_block(&mut self) {
        let full = std::mem::replace(&mut self.open, Vec::with_capacity(BLOCK));
        self.full.push(full);
    }
}

/// A thread's part.
#[derive(Debug)]
pub struct Leaking<'a> {
    scheme: &'a Leak,
    retired: Blocks,
}

impl Drop for Leaking<'_> {
    fn drop(&mut self) {
        let mut left = self
            .scheme
            .left
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        left.append(&mut self.retired.full);
        left.push(std::mem::take(&mut self.retired.open));
    }
}

impl Thread for Leaking<'_> {
    type Guard<'g>
        = Reaching<'g>
    where
        Self: 'g;

    #[inline(always)]
    fn pin(&mut self) -> Reaching<'_> {
        Reaching(&mut self.retired)
    }
}

/// An operation that protects nothing.
#[derive(Debug)]
pub struct Reaching<'g>(&'g mut Blocks);

impl Guard for Reaching<'_> {
    only_loads!();

    #[inline(always)]
    unsafe fn retire<T: Node>(&mut self, node: *mut T) {
        self.0.push(Retired {
            node: node.cast(),
            free: free::<T>,
        });
    }
}
