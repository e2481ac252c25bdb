//! Floor 3, bench-suite. Owns the description of one run, which travels to the child process as JSON.
//! Touches nothing else.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Workload {
    /// Protect, dereference, release.
    Read,
    /// Allocate, swap, retire.
    Write,
    /// One reclaim pass beside idle threads.
    Scan,
    /// A reader parked inside protection.
    Stall,
}

impl Workload {
    /// All of them, in the order of the tour.
    pub(crate) const ALL: [Workload; 4] = [
        Workload::Read,
        Workload::Write,
        Workload::Scan,
        Workload::Stall,
    ];

    /// The name of the subcommand and of the records.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Workload::Read => "read",
            Workload::Write => "write",
            Workload::Scan => "scan",
            Workload::Stall => "stall",
        }
    }
}

/// Where threads run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Pin {
    /// Thread i on the i-th allowed CPU, round robin.
    Core,
    /// Wherever the scheduler likes.
    None,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Job {
    /// What is measured.
    pub(crate) workload: Workload,
    /// Of which variant.
    pub(crate) variant: String,
    /// All threads of the point (for `scan`: those that sit idle).
    pub(crate) threads: usize,
    /// Reading threads.
    pub(crate) readers: usize,
    /// Writing threads.
    pub(crate) writers: usize,
    /// Which repetition, from 0.
    pub(crate) run: usize,
    /// Place in the interleaved order, from 0.
    pub(crate) order: usize,
    /// What the order was drawn from.
    pub(crate) seed: u64,
    /// How long to measure.
    pub(crate) time: Duration,
    /// How long to run before measuring.
    pub(crate) warmup: Duration,
    /// Thread placement.
    pub(crate) pin: Pin,
    /// Shortened: not for claims.
    pub(crate) quick: bool,
}
