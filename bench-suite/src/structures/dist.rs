//! Floor 3, bench-suite. Owns which operations a thread of `structures` does, on which keys. Touches nothing else.
//!
//! One random number decides an operation: its upper half the key, its lower half the kind. So a uniform draw costs a
//! few nanoseconds. Draws by Zipf's law are made before the run, [`DRAWN`] of them for each thread, and gone through
//! again and again: drawing one takes longer than some of the operations.

use std::sync::Arc;

/// Keys drawn beforehand by a thread.
const DRAWN: usize = 1 << 17;

/// How often keys are taken.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Dist {
    /// All alike.
    Uniform,
    /// The n-th most frequent in proportion to n to the minus this.
    Zipf(f64),
}

/// What benchmarks of key-value stores use (YCSB).
const USUAL: f64 = 0.99;

impl Dist {
    /// `uniform`, `zipf`, or `zipf:1.2`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "uniform" => Ok(Dist::Uniform),
            None if text == "zipf" => Ok(Dist::Zipf(USUAL)),
            Some(("zipf", exponent)) => match exponent.parse::<f64>() {
                Ok(s) if s > 0.0 && s <= 10.0 => Ok(Dist::Zipf(s)),
                _ => Err(format!("zipf:{exponent}: an exponent above 0, at most 10")),
            },
            _ => Err("not uniform, zipf or zipf:EXPONENT".to_owned()),
        }
    }

    /// As [`parse`](Self::parse) reads it.
    pub(crate) fn word(self) -> String {
        match self {
            Dist::Uniform => "uniform".to_owned(),
            Dist::Zipf(USUAL) => "zipf".to_owned(),
            Dist::Zipf(s) => format!("zipf:{s}"),
        }
    }
}

/// SplitMix64.
#[derive(Debug, Clone)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Random(seed)
    }

    #[inline(always)]
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// Draws by Zipf's law, from the sums of the shares.
#[derive(Debug)]
pub(super) struct Zipf {
    sums: Vec<f64>,
    /// Coprime to the number of keys: spreads the frequent ones over all of them.
    spread: u64,
}

impl Zipf {
    pub(super) fn new(range: u64, s: f64) -> Self {
        let mut sum = 0.0;
        let sums: Vec<f64> = (1..=range)
            .map(|rank| {
                sum += (rank as f64).powf(-s);
                sum
            })
            .collect();
        let gcd = |mut a: u64, mut b: u64| {
            while b != 0 {
                (a, b) = (b, a % b);
            }
            a
        };
        let spread = (0x9e37_79b1..).find(|&by| gcd(by, range) == 1);
        Zipf {
            sums,
            spread: spread.expect("a prime above the range is one"),
        }
    }

    fn rank(&self, random: &mut Random) -> usize {
        let all = self.sums.last().expect("there are keys");
        let at = (random.next() >> 11) as f64 / (1u64 << 53) as f64 * all;
        self.sums.partition_point(|&sum| sum <= at)
    }

    fn key(&self, rank: usize) -> u64 {
        // Below 2^24 each: no overflow.
        rank as u64 * self.spread % self.sums.len() as u64
    }
}

/// Where keys come from.
#[derive(Debug, Clone)]
enum Keys {
    Uniform(u64),
    Drawn(Arc<[u32]>, usize),
}

/// What one operation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    Get,
    Insert,
    Remove,
}

/// The operations of one thread.
#[derive(Debug, Clone)]
pub(super) struct Load {
    random: Random,
    keys: Keys,
    /// Gets have a number below this, of 31 bits.
    gets: u32,
}

impl Load {
    /// `get` percent gets, the rest half and half; keys below `range`.
    pub(super) fn new(seed: u64, get: u64, range: u64, zipf: Option<&Zipf>) -> Self {
        let mut random = Random::new(seed);
        let keys = match zipf {
            None => Keys::Uniform(range),
            Some(zipf) => {
                let draw = |_| zipf.key(zipf.rank(&mut random)) as u32;
                Keys::Drawn((0..DRAWN).map(draw).collect(), 0)
            }
        };
        Load {
            random,
            keys,
            gets: ((get << 31) / 100) as u32,
        }
    }

    /// The next one, and its key.
    #[inline(always)]
    pub(super) fn next(&mut self) -> (Op, u64) {
        let random = self.random.next();
        let low = random as u32;
        let op = if low >> 1 < self.gets {
            Op::Get
        } else if low & 1 == 0 {
            Op::Insert
        } else {
            Op::Remove
        };
        let key = match &mut self.keys {
            Keys::Uniform(range) => ((random >> 32) * *range) >> 32,
            Keys::Drawn(keys, at) => {
                *at = (*at + 1) % DRAWN;
                u64::from(keys[*at])
            }
        };
        (op, key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for (text, dist) in [
            ("uniform", Dist::Uniform),
            ("zipf", Dist::Zipf(0.99)),
            ("zipf:1.2", Dist::Zipf(1.2)),
        ] {
            assert_eq!(Dist::parse(text), Ok(dist));
            assert_eq!(dist.word(), text);
        }
        for bad in [
            "",
            "zipf:",
            "zipf:0",
            "zipf:-1",
            "zipf:nan",
            "pareto",
            "uniform:2",
        ] {
            assert!(Dist::parse(bad).is_err(), "{bad}");
        }
    }

    /// Against the law: the share of rank n is n^-s over the sum of all.
    #[test]
    fn zipf_draws_are_as_frequent_as_the_law_says() {
        const RANGE: u64 = 1000;
        const DRAWS: u32 = 400_000;
        for s in [0.5, 0.99, 1.5] {
            let zipf = Zipf::new(RANGE, s);
            let mut random = Random::new(7);
            let mut counts = vec![0u32; RANGE as usize];
            for _ in 0..DRAWS {
                counts[zipf.rank(&mut random)] += 1;
            }
            let all: f64 = (1..=RANGE).map(|rank| (rank as f64).powf(-s)).sum();
            for rank in [1, 2, 3, 10, 100] {
                let share = f64::from(rank).powf(-s) / all;
                let expected = share * f64::from(DRAWS);
                let seen = f64::from(counts[rank as usize - 1]);
                // Five standard deviations.
                assert!(
                    (seen - expected).abs() < 5.0 * expected.sqrt(),
                    "s {s}, rank {rank}: {seen} of {expected}"
                );
            }
        }
    }

    #[test]
    fn each_rank_has_a_key_of_its_own() {
        for range in [1, 2, 1000, 0x9e37_79b1 % 100_000, 65_536] {
            let zipf = Zipf::new(range, 1.0);
            let mut keys: Vec<u64> = (0..range as usize).map(|rank| zipf.key(rank)).collect();
            keys.sort_unstable();
            assert!(keys.into_iter().eq(0..range), "{range}");
        }
    }

    #[test]
    fn the_mix_is_the_one_asked_for() {
        const DRAWS: u32 = 400_000;
        for get in [0, 1, 50, 90, 100] {
            let mut load = Load::new(3, get, 64, None);
            let (mut gets, mut inserts, mut keys) = (0, 0, vec![0u32; 64]);
            for _ in 0..DRAWS {
                let (op, key) = load.next();
                keys[key as usize] += 1;
                gets += u32::from(op == Op::Get);
                inserts += u32::from(op == Op::Insert);
            }
            let share = |n: u32| f64::from(n) / f64::from(DRAWS) * 100.0;
            assert!((share(gets) - get as f64).abs() < 0.5, "{get}: {gets}");
            let half = (100 - get) as f64 / 2.0;
            assert!((share(inserts) - half).abs() < 0.5, "{get}: {inserts}");
            let each = DRAWS / 64;
            assert!(
                keys.iter().all(|&n| n.abs_diff(each) < each / 4),
                "{keys:?}"
            );
        }
    }
}
