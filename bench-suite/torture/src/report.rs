//! What was seen.
//!
//! Floor 3. Plain data.

use crate::{Dimension, Failure};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// Ages that the histogram tells apart, as in `rcutorture`; older ones count
/// as the last.
pub const AGES: usize = 11;

/// How far a run is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Since the start.
    pub elapsed: Duration,
    /// Reads so far.
    pub reads: u64,
    /// Updates so far.
    pub updates: u64,
    /// Elements that wait for their readers.
    pub waiting: u64,
}

/// What was seen. Counts are of the whole run.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The flavour.
    pub scheme: &'static str,
    /// Which barrier pair was in use.
    pub rung: String,
    /// What slots are indexed by on that rung.
    pub index: String,
    /// As planned.
    pub seed: u64,
    /// How long it ran.
    pub seconds: f64,
    /// Threads that read all the time.
    pub readers: usize,
    /// Threads that replaced all the time.
    pub writers: usize,
    /// What was on.
    pub dimensions: Vec<Dimension>,
    /// Of those, what the flavour has no use for, with the reason.
    pub not_applicable: BTreeMap<&'static str, &'static str>,
    /// Looks at protected elements, by age.
    pub ages: [u64; AGES],
    /// Times that a reader protected something, by how.
    pub reads: BTreeMap<&'static str, u64>,
    /// Elements that were replaced, by how the old one was reclaimed.
    pub updates: BTreeMap<&'static str, u64>,
    /// Times that a reader slept while it protected.
    pub sleeps: u64,
    /// Protections that another thread released.
    pub handed_over: u64,
    /// Reads in a signal handler.
    pub in_handler: u64,
    /// Times that a reader protected more than eight elements at once.
    pub starved: u64,
    /// Readers that came and went.
    pub churned: u64,
    /// Times that a thread was moved to a CPU.
    pub moved: u64,
    /// Pauses of everybody.
    pub stutters: u64,
    /// Elements that were unlinked.
    pub unlinked: u64,
    /// Elements that were reclaimed.
    pub reclaimed: u64,
    /// Elements that were used again.
    pub recycled: u64,
    /// The most that had been unlinked and not reclaimed, as writers saw it.
    pub peak_waiting: u64,
    /// What the scheme itself counts.
    pub facts: BTreeMap<&'static str, u64>,
    /// Whether somebody ended it early.
    pub interrupted: bool,
    /// The first thing that went wrong.
    pub failure: Option<Failure>,
}

impl Report {
    /// Looks at elements that nobody should have had.
    #[must_use]
    pub fn too_old(&self) -> u64 {
        self.ages[2..].iter().sum()
    }

    /// Reads of all kinds.
    #[must_use]
    pub fn all_reads(&self) -> u64 {
        self.reads.values().sum()
    }

    /// Updates of all kinds.
    #[must_use]
    pub fn all_updates(&self) -> u64 {
        self.updates.values().sum()
    }
}
