//! A list of callbacks in blocks that are used again.
//!
//! Floor 2 (`rcu-lite`), raw layer; touches nothing but its own memory.
//!
//! One thread fills a list while another runs the one before. In blocks, a long
//! list is never copied to grow, and a short one stays in the caches of both.

use crate::deferred::Deferred;
use std::vec::Drain;

/// Callbacks in a block: 16 KiB.
#[cfg(not(any(loom, test)))]
const BLOCK: usize = 512;
/// A block in tests: small, so that there are several.
#[cfg(any(loom, test))]
const BLOCK: usize = 4;

/// Empty blocks that a list keeps.
const SPARE: usize = 16;

/// The list.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    /// Blocks before `open`, in order.
    full: Vec<Vec<Deferred>>,
    /// The block that is being filled.
    open: Vec<Deferred>,
    /// Empty blocks.
    spare: Vec<Vec<Deferred>>,
}

impl Calls {
    pub(crate) const fn new() -> Self {
        Self {
            full: Vec::new(),
            open: Vec::new(),
            spare: Vec::new(),
        }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.full.len() * BLOCK + self.open.len()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    #[inline]
    pub(crate) fn push(&mut self, call: Deferred) {
        // Also where there is no block yet, which has a capacity of 0.
        if self.open.len().is_multiple_of(BLOCK) {
            self.next_block();
        }
        // Never grows: a block has room for `BLOCK`.
        self.open.push(call);
    }

    #[cold]
    #[inline(never)]
    fn next_block(&mut self) {
        if self.open.is_empty() && self.open.capacity() >= BLOCK {
            return;
        }
        let block = self
            .spare
            .pop()
            .unwrap_or_else(|| Vec::with_capacity(BLOCK));
        let before = core::mem::replace(&mut self.open, block);
        if !before.is_empty() {
            self.full.push(before);
        }
    }

    /// Gives back the spare blocks.
    pub(crate) fn trim(&mut self) {
        self.spare = Vec::new();
        if self.is_empty() {
            self.open = Vec::new();
        }
    }

    /// Takes everything out, oldest first, a block at a time.
    pub(crate) fn run(&mut self, mut run: impl FnMut(Drain<'_, Deferred>)) {
        for mut block in self.full.drain(..) {
            run(block.drain(..));
            if self.spare.len() < SPARE {
                self.spare.push(block);
            }
        }
        if self.full.capacity() > 1024 {
            self.full.shrink_to(SPARE);
        }
        run(self.open.drain(..));
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn everything_is_run_in_order_and_blocks_are_kept() {
        let (tx, rx) = channel();
        let mut calls = Calls::new();
        assert!(calls.is_empty());
        for round in 0..3 {
            for n in 0..11 {
                let tx = tx.clone();
                calls.push(Deferred::new(move || tx.send(n).unwrap()));
                assert_eq!((calls.len(), calls.is_empty()), (n + 1, false));
            }
            calls.run(|block| block.for_each(Deferred::call));
            assert_eq!(
                rx.try_iter().collect::<Vec<_>>(),
                (0..11).collect::<Vec<_>>()
            );
            assert_eq!((calls.len(), calls.is_empty()), (0, true));
            assert_eq!(calls.spare.len(), 2, "round {round}");
        }
        for _ in 0..BLOCK {
            calls.push(Deferred::new(|| ()));
        }
        assert_eq!(calls.len(), BLOCK);
    }
}
