//! Lookups in progress, and waiting until those that have begun are over: a
//! grace period, for the cold path of `futex_ref` only.
//!
//! Floor 3 (`refcounts`). Owns the phase and the words that count lookups.
//!
//! * **Lookup**: loads the phase – counts itself in the word of its thread and
//!   that phase – light barrier – loads the phase again. If it has changed,
//!   takes the count back and begins again.
//! * **Wait**: turns the phase – heavy barrier – waits until each word of the old
//!   phase has been seen at zero.
//!
//! If the heavy barrier falls behind the lookup's light one, the lookup's count
//! is seen: in the old phase, for had the phase been turned before, the second
//! look would have seen it, or two turns, and with the last of them everything
//! that the waiter did before. If the barrier falls before the light one, the
//! lookup sees all that too. New lookups count in the other phase, so the wait
//! ends. A lookup begins and ends in the same word, so each word can be waited
//! for by itself and no sum is needed.
//!
//! # Orderings
//!
//! The end is Release and pairs with the Acquire of the look at the words: what
//! a lookup did happens before the waiter goes on. *Turn* is Release and pairs
//! with the second look (Acquire), for the case of two turns.
//!
//! Source: SRCU (Linux). The second look instead of a second turn is that of
//! `rcu-lite`, which goes on where this one begins again.

use crate::sync::Padded;
use crate::{BarrierLost, Thread};
use percpu::barrier::{heavy, light};
use percpu::sync::atomic::{AtomicUsize, Ordering};
use percpu::wait::Backoff;

#[derive(Debug)]
pub(crate) struct Lookups {
    phase: AtomicUsize,
    words: Box<[Padded<[AtomicUsize; 2]>]>,
}

/// A lookup in progress.
#[derive(Debug)]
pub(crate) struct Lookup<'a>(&'a AtomicUsize);

impl Lookups {
    pub(crate) fn new() -> Self {
        Self {
            phase: AtomicUsize::new(0),
            words: (0..words())
                .map(|_| Padded([AtomicUsize::new(0), AtomicUsize::new(0)]))
                .collect(),
        }
    }

    /// Begins a lookup.
    ///
    /// # Progress
    ///
    /// Lock-free: begins again when a waiter has turned the phase.
    pub(crate) fn begin(&self, thread: &Thread) -> Lookup<'_> {
        let words = &self.words[thread.among(self.words.len())];
        loop {
            // Relaxed: a guess; the second look decides.
            let phase = self.phase.load(Ordering::Relaxed);
            // Relaxed: the barriers make it visible in time.
            words[phase].fetch_add(1, Ordering::Relaxed);
            let lookup = Lookup(&words[phase]);
            light();
            // Acquire: the second look, pairs with "Turn".
            if self.phase.load(Ordering::Acquire) == phase {
                return lookup;
            }
        }
    }

    /// The lookup that the setup of a model has begun and forgotten.
    #[cfg(all(test, loom))]
    pub(crate) fn resume(&self) -> Lookup<'_> {
        Lookup(&self.words[0][0])
    }

    /// Waits for all lookups that have begun. One caller at a time.
    ///
    /// # Errors
    ///
    /// [`BarrierLost`]: nothing is known of lookups.
    ///
    /// # Progress
    ///
    /// Waits for lookups, which do not wait.
    pub(crate) fn wait(&self) -> Result<(), BarrierLost> {
        // Relaxed: written by callers only, one at a time.
        let old = self.phase.load(Ordering::Relaxed);
        // Release: "Turn", pairs with the second look.
        self.phase.store(1 - old, Ordering::Release);
        heavy()?;
        for words in &self.words {
            let mut backoff = Backoff::new();
            // Acquire: pairs with the end of a lookup.
            while words[old].load(Ordering::Acquire) != 0 {
                backoff.snooze();
            }
        }
        Ok(())
    }
}

/// Each is waited for by itself, so one is enough for a model.
fn words() -> usize {
    if cfg!(loom) {
        1
    } else {
        crate::thread::shared_words()
    }
}

impl Drop for Lookup<'_> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `wait`.
        self.0.fetch_sub(1, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use percpu::sync::atomic::{AtomicBool, Ordering::SeqCst};

    #[test]
    fn a_wait_ends_after_the_lookups_that_had_begun() {
        let (lookups, over) = (Lookups::new(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let lookup = lookups.begin(&Thread::at(7));
            let waiter = scope.spawn(|| {
                lookups.wait().unwrap();
                assert!(over.load(SeqCst));
            });
            std::thread::sleep(std::time::Duration::from_millis(20));
            over.store(true, SeqCst);
            drop(lookup);
            waiter.join().unwrap();
        });
    }
}
