//! What all counts have in common, so that a workload can use each to track
//! one shared object.
//!
//! Floor 3 (`refcounts`). Owns the trait; the schemes implement it.

use crate::{BarrierLost, Thread};

/// The references to one object. Begins with one, the *initial* reference.
///
/// What is counted here is not owned: who is told that it was the last frees
/// the object. (A [`Slot`](crate::split::Slot) frees its own.)
pub trait Tracker: Send + Sync + Sized + 'static {
    /// What a get hands to the put that gives it back.
    type Held: Send;

    /// The name in tables.
    const NAME: &'static str;

    /// A count that holds the initial reference.
    fn new() -> Self;

    /// One more reference, for a caller that knows the object to be alive: it
    /// holds one, or the object is not killed before this returns. `None` if
    /// the scheme notices that it is dead. ([`Slot`](crate::split::Slot) says
    /// `None` as soon as it is killed: references come from the cell, not from
    /// references.)
    fn get(&self, thread: &Thread) -> Option<Self::Held>;

    /// One more reference unless the last one has gone.
    fn try_get(&self, thread: &Thread) -> Option<Self::Held>;

    /// Gives a reference back. Whether it was the last.
    fn put(&self, thread: &Thread, held: Self::Held) -> bool;

    /// Tears down: gives the initial reference back, once. On return the last
    /// put will be noticed, whoever does it. Whether this was the last.
    ///
    /// # Errors
    ///
    /// [`BarrierLost`]: counts stay unknown, nobody is told that it was the
    /// last. May be called again.
    fn kill(&self, thread: &Thread) -> Result<bool, BarrierLost>;

    /// References now, for tests: exact while nobody gets or puts. A saturated
    /// count is `usize::MAX`.
    fn count(&self) -> usize;
}
