//! Floor 3, bench-suite. Owns the order of runs: which points, how often, interleaved how.
//! Touches nothing else.
//!
//! All points of repetition 0 come first in a random order, then all of repetition 1 in another one, and so on: a slow
//! minute of the machine hits all variants alike. The order depends on the seed only.

use super::job::Job;

/// A small generator with a well-mixed 64-bit state (the SplitMix64 recurrence).
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// From a seed; equal seeds give equal sequences.
    pub(crate) fn new(seed: u64) -> Self {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`, which is not 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.next()) * end as u128) >> 64) as usize
    }

    /// Shuffles by swapping each place with a random one at or below it.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            let j = self.below(i + 1);
            items.swap(i, j);
        }
    }
}

/// Repeats `points` `runs` times, each repetition in its own random order.
pub(crate) fn interleave(points: &[Job], runs: usize, seed: u64) -> Vec<Job> {
    let mut random = Random::new(seed);
    let mut plan = Vec::with_capacity(points.len() * runs);
    for run in 0..runs {
        let mut round = points.to_vec();
        random.shuffle(&mut round);
        for job in round {
            plan.push(Job {
                run,
                seed,
                order: plan.len(),
                ..job
            });
        }
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::job::{Params, Pin};
    use crate::workloads::Workload;
    use std::time::Duration;

    fn points() -> Vec<Job> {
        (0..10)
            .map(|i| Job {
                workload: Workload::Read,
                variant: format!("v{i}"),
                threads: 1,
                readers: 1,
                writers: 0,
                pauses: None,
                more: Params::new(),
                run: 0,
                order: 0,
                seed: 0,
                time: Duration::from_secs(1),
                warmup: Duration::ZERO,
                pin: Pin::None,
                quick: false,
            })
            .collect()
    }

    fn names(plan: &[Job]) -> Vec<String> {
        plan.iter().map(|job| job.variant.clone()).collect()
    }

    #[test]
    fn the_seed_decides_the_order() {
        let (a, b, c) = (
            interleave(&points(), 3, 7),
            interleave(&points(), 3, 7),
            interleave(&points(), 3, 8),
        );
        assert_eq!(a, b);
        assert_ne!(names(&a), names(&c));
    }

    #[test]
    fn every_round_holds_every_point_once() {
        let plan = interleave(&points(), 3, 1);
        assert_eq!(plan.len(), 30);
        for (run, round) in plan.chunks(10).enumerate() {
            let mut seen = names(round);
            seen.sort();
            assert_eq!(seen, names(&points()));
            assert!(round.iter().all(|job| job.run == run && job.seed == 1));
        }
        assert_ne!(names(&plan[..10]), names(&plan[10..20]));
        assert!(plan.iter().enumerate().all(|(i, job)| job.order == i));
    }
}
