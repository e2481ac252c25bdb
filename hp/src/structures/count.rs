//! How many entries there are, counted where they are changed.
//!
//! Floor 2 (`hp`). Owns the counters; people and the growth of the map read
//! them, no algorithm depends on them.

use percpu::sync::atomic::{Ordering, Statistic};

const SHARDS: usize = 8;

/// One cache line (two, for prefetchers) of the count.
#[derive(Debug)]
#[repr(align(128))]
struct Shard(Statistic);

/// A number that many threads change.
#[derive(Debug)]
pub(crate) struct Count {
    shards: [Shard; SHARDS],
}

impl Count {
    pub(crate) const fn new() -> Self {
        Self {
            shards: [const { Shard(Statistic::new(0)) }; SHARDS],
        }
    }

    /// Adds `by`; gives this shard's count of changes to look at, now and then.
    #[inline]
    pub(crate) fn add(&self, by: i64) -> i64 {
        let shard = &self.shards[crate::reclaim::shard_hint() % SHARDS];
        // Relaxed: a statistic.
        shard.0.fetch_add(by as u64, Ordering::Relaxed) as i64 + by
    }

    /// The sum. Exact while nobody changes it.
    pub(crate) fn sum(&self) -> usize {
        let sum = self.shards.iter().fold(0_u64, |sum, shard| {
            // Relaxed: a statistic.
            sum.wrapping_add(shard.0.load(Ordering::Relaxed))
        });
        // A removal may be seen and its insertion not.
        usize::try_from(sum as i64).unwrap_or(0)
    }
}
