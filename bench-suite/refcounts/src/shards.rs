//! A sum with one addend for some threads each, which can be closed without
//! waiting.
//!
//! Floor 3 (`refcounts`). Owns the words. For threads that cannot run sections.
//!
//! # The word
//!
//! | bits 1 … | bit 0 |
//! |---|---|
//! | what was added, wrapping | closed |
//!
//! An addition is one read-modify-write, and the value that it replaces says
//! whether it counts: *open* – it is in the sum that closing takes; *closed* –
//! it is not, and the caller goes elsewhere. Closing is an exchange. So neither
//! a barrier nor a second look is needed: the word itself orders the two. What
//! late additions leave in a closed word is thrown away when it is opened.
//!
//! # Orderings
//!
//! An addition is Release and *Close* Acquire: the pasts of all puts are taken
//! along with the sum. *Open* is Release and an addition Acquire: who counts in
//! an open word finds the bias in place that opening puts there before.

use crate::Thread;
use crate::sync::Padded;
use percpu::sync::atomic::{AtomicUsize, Ordering};

const CLOSED: usize = 1;
const ONE: usize = 2;

#[derive(Debug)]
pub(crate) struct Shards {
    words: Box<[Padded<AtomicUsize>]>,
}

impl Shards {
    /// Open, all zero.
    pub(crate) fn new() -> Self {
        Self {
            words: (0..crate::thread::shared_words())
                .map(|_| Padded(AtomicUsize::new(0)))
                .collect(),
        }
    }

    /// Adds `n` (wrapping) unless closed. Whether it did.
    ///
    /// # Progress
    ///
    /// Wait-free.
    #[inline]
    pub(crate) fn add(&self, thread: &Thread, n: usize) -> bool {
        let word = &self.words[thread.among(self.words.len())];
        // AcqRel: Release pairs with "Close", Acquire with "Open".
        word.fetch_add(n.wrapping_mul(ONE), Ordering::AcqRel) & CLOSED == 0
    }

    /// Closes all words and returns the sum.
    pub(crate) fn close(&self) -> usize {
        self.words.iter().fold(0, |sum: usize, word| {
            // Acquire: "Close", pairs with the additions.
            sum.wrapping_add(value(word.swap(CLOSED, Ordering::Acquire)))
        })
    }

    /// The sum, exact while nobody adds.
    pub(crate) fn sum(&self) -> usize {
        // Relaxed: for people and tests.
        self.words
            .iter()
            .fold(0, |sum: usize, word| match word.load(Ordering::Relaxed) {
                word if word & CLOSED != 0 => sum,
                word => sum.wrapping_add(value(word)),
            })
    }

    /// Opens all words at zero.
    pub(crate) fn open(&self) {
        for word in &self.words {
            // Release: "Open", pairs with the additions. (A store would do. But
            // loom lets a store and an addition that read the value before it
            // end in either order, which no machine does.)
            word.swap(0, Ordering::Release);
        }
    }
}

/// What a word holds; may be negative, wrapped.
fn value(word: usize) -> usize {
    (word.cast_signed() >> 1).cast_unsigned()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn negative_addends_and_odd_threads() {
        let shards = Shards::new();
        assert!(shards.add(&Thread::at(0), usize::MAX));
        assert!(shards.add(&Thread::at(3), 3));
        assert_eq!(shards.sum(), 2);
        assert_eq!(shards.close(), 2);
        assert!(!shards.add(&Thread::at(3), 1));
        assert_eq!(shards.sum(), 0);
        shards.open();
        assert!(shards.add(&Thread::at(3), usize::MAX));
        assert_eq!(shards.close(), usize::MAX);
    }
}
