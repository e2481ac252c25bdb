//! What to run.
//!
//! Floor 3. Owns the names of the dimensions; plain data.

use crate::cpus;
use serde::{Serialize, Serializer};
use std::time::Duration;

/// A way to misbehave, which can be switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dimension {
    /// Readers sleep while they protect.
    Sleep,
    /// What one thread protects another releases, later.
    Handover,
    /// Readers are interrupted by a handler that reads as well.
    Signal,
    /// Four readers for each CPU instead of one.
    Overcommit,
    /// Readers and writers are moved from CPU to CPU, one each millisecond.
    Affinity,
    /// Readers come, read fifty times, and end.
    Churn,
    /// Everybody pauses and goes on at the same time.
    Stutter,
    /// Readers protect up to forty times at once: slots run out.
    Starve,
}

impl Dimension {
    /// All of them, in the order of reports.
    pub const ALL: [Self; 8] = [
        Self::Sleep,
        Self::Handover,
        Self::Signal,
        Self::Overcommit,
        Self::Affinity,
        Self::Churn,
        Self::Stutter,
        Self::Starve,
    ];

    /// As the command line has it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Sleep => "sleep",
            Self::Handover => "handover",
            Self::Signal => "signal",
            Self::Overcommit => "overcommit",
            Self::Affinity => "affinity",
            Self::Churn => "churn",
            Self::Stutter => "stutter",
            Self::Starve => "starve",
        }
    }

    /// The one of that name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }
}

impl Serialize for Dimension {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// Readers for each CPU in an overcommitted run.
const OVER: usize = 4;

/// What to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Threads that read all the time; without a number, as many as there are
    /// CPUs (at least 2), four times as many with [`Dimension::Overcommit`].
    pub readers: Option<usize>,
    /// Threads that replace all the time, at least one.
    pub writers: usize,
    /// How long.
    pub time: Duration,
    /// Start of all pseudo-random choices. (What the kernel's scheduler does
    /// no seed repeats.)
    pub seed: u64,
    /// What is on.
    pub dimensions: Vec<Dimension>,
    /// A thread that does nothing for so long hangs.
    pub watchdog: Duration,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            readers: None,
            writers: 2,
            time: Duration::from_secs(10),
            seed: 1,
            dimensions: Dimension::ALL.to_vec(),
            watchdog: Duration::from_secs(30),
        }
    }
}

impl Plan {
    /// Whether a dimension is on.
    #[must_use]
    pub fn has(&self, dimension: Dimension) -> bool {
        self.dimensions.contains(&dimension)
    }

    /// Threads that read all the time.
    #[must_use]
    pub fn readers(&self) -> usize {
        self.readers.unwrap_or_else(|| {
            let cpus = cpus::allowed().len();
            if self.has(Dimension::Overcommit) {
                OVER * cpus
            } else {
                cpus.max(2)
            }
        })
    }
}
