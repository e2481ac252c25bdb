//! The word that holds the decided rung.
//!
//! Floor 1 (`percpu`). Owns the word; asks nobody. Apart from `choose` so that
//! the model `decision` runs the same two accesses.
//!
//! | word | meaning | may become |
//! |---|---|---|
//! | 0 | undecided: nobody acts | a rung |
//! | 1, 2, 3 | [`Rung`] | – |

use super::Rung;
use crate::sync::atomic::{AtomicU8, Ordering};

/// A rung that is decided once.
#[derive(Debug)]
pub(crate) struct Choice(AtomicU8);

impl Choice {
    #[cfg(not(loom))]
    pub(crate) const fn new() -> Self {
        Self(AtomicU8::new(0))
    }

    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        Self(AtomicU8::new(0))
    }

    /// The rung, if it is decided.
    #[inline(always)]
    pub(crate) fn get(&self) -> Option<Rung> {
        // Acquire: pairs with the Release half of "Decide": the registration
        // with the kernel happens before any use of the rung.
        Rung::from_u8(self.0.load(Ordering::Acquire))
    }

    /// Decides for `mine` if nobody has decided. `Err` has the winner's rung.
    pub(crate) fn settle(&self, mine: Rung) -> Result<(), Rung> {
        // AcqRel ("Decide"): Release publishes the registration to whoever
        // reads the rung; Acquire on failure takes the winner's.
        match self
            .0
            .compare_exchange(0, mine as u8, Ordering::AcqRel, Ordering::Acquire)
        {
            Ok(_) => Ok(()),
            Err(theirs) => Err(Rung::from_u8(theirs).unwrap_or(Rung::Fence)),
        }
    }
}
