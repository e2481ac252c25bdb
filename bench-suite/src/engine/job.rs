//! Floor 3, bench-suite. Owns the description of one run, which travels to the child process as JSON.
//! Touches the names of the workloads only.

use crate::workloads::Workload;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// What the options of one workload ask, by name. Together with the threads they are what makes a point.
pub(crate) type Params = BTreeMap<String, Value>;

/// Threads of a point, and what they do between operations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Shape {
    /// All threads of the point, as `--threads` counts them.
    pub(crate) threads: usize,
    /// Reading threads.
    pub(crate) readers: usize,
    /// Writing threads.
    pub(crate) writers: usize,
    /// Pauses, in workloads that have them.
    pub(crate) pauses: Option<Pauses>,
    /// What else the workload's options ask.
    pub(crate) more: Params,
}

/// Threads that do nothing, with or without protection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pauses {
    /// How long each reader holds its protection.
    pub(crate) hold: Duration,
    /// Threads that have read once, keep their reader state and sleep.
    pub(crate) idle: usize,
}

/// Where threads run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Pin {
    /// One CPU of each core first, cache by cache and socket by socket; then their siblings
    #[value(alias = "core")]
    #[serde(alias = "core")]
    CoreFirst,
    /// All CPUs of core i together, core by core: what will-it-scale does
    SmtPair,
    /// The i-th CPU by its number
    Pu,
    /// As far apart as can be: socket after socket, cache after cache
    Spread,
    /// Wherever the scheduler likes
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
    /// Pauses, in workloads that have them.
    pub(crate) pauses: Option<Pauses>,
    /// What else the workload's options ask.
    #[serde(default, skip_serializing_if = "Params::is_empty")]
    pub(crate) more: Params,
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
