//! What became of the tables.
//!
//! Floor 3 (`phash`). Owns the numbers; tables report to it.

use crate::sync::{Mutex, lock};
use percpu::sync::atomic::Ordering::Relaxed;
use percpu::sync::atomic::Statistic;
use std::time::{Duration, Instant};

/// Tables made, put into use and freed, and how long that took.
#[derive(Debug)]
pub struct Census {
    pub(crate) made: Statistic,
    pub(crate) freed: Statistic,
    in_use: Mutex<Vec<Duration>>,
    until_freed: Mutex<Vec<Duration>>,
}

impl Census {
    pub(crate) fn new() -> Self {
        Census {
            made: Statistic::new(0),
            freed: Statistic::new(0),
            in_use: Mutex::default(),
            until_freed: Mutex::default(),
        }
    }

    /// Tables made so far.
    #[must_use]
    pub fn made(&self) -> u64 {
        // Relaxed (both): for people and tests.
        self.made.load(Relaxed)
    }

    /// Tables freed so far.
    #[must_use]
    pub fn freed(&self) -> u64 {
        self.freed.load(Relaxed)
    }

    /// Replacements completed so far.
    #[must_use]
    pub fn completed(&self) -> usize {
        lock(&self.in_use).len()
    }

    /// Of each completed replacement: from the request until the new table was the one in use.
    #[must_use]
    pub fn in_use_after(&self) -> Vec<Duration> {
        lock(&self.in_use).clone()
    }

    /// Of each table that was replaced and freed: from the request until it was freed.
    #[must_use]
    pub fn freed_after(&self) -> Vec<Duration> {
        lock(&self.until_freed).clone()
    }

    /// A table that was asked for at `asked` is the one in use.
    pub(crate) fn in_use(&self, asked: Instant) {
        lock(&self.in_use).push(asked.elapsed());
    }

    /// A table is freed; `replaced`: when its successor was asked for.
    pub(crate) fn free(&self, replaced: Option<Instant>) {
        // Relaxed: for people and tests.
        self.freed.fetch_add(1, Relaxed);
        if let Some(asked) = replaced {
            lock(&self.until_freed).push(asked.elapsed());
        }
    }
}
