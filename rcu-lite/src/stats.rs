//! Numbers of a domain, for people and for back-pressure.
//!
//! Floor 2 (`rcu-lite`); touches nothing.

use core::time::Duration;

/// A snapshot. The numbers are read one after the other, while others work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Grace periods that have ended.
    pub grace_periods: u64,
    /// Callbacks (and deferred drops) that were ever queued.
    pub queued: u64,
    /// Callbacks that have been run.
    pub run: u64,
    /// Callbacks that wait for their grace period, or to be run.
    pub pending: u64,
    /// Callbacks that panicked (they count as run).
    pub panicked: u64,
    /// Callbacks that this forked process inherited and cannot run: a thread
    /// that it does not have was queueing or running them. (Neither run nor
    /// pending.)
    pub lost: u64,
    /// The longest grace period so far.
    pub longest: Duration,
    /// Barriers that the kernel refused although it had granted them. While
    /// that lasts no grace period ends and nothing is freed.
    pub barriers_lost: u64,
    /// Whether a worker thread exists at this moment.
    pub worker: bool,
}
