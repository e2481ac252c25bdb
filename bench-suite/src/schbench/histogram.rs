//! Floor 3, bench-suite. Owns the histogram of `schbench` and its percentiles. Touches nothing else.
//!
//! The buckets are the original's: 19 groups of 256. Values below 512 have a bucket each; from there on a value keeps its
//! nine leading bits, and a bucket answers for its values with the middle of its range (wrong by 0.2 % at most). What
//! is too large for the last group lands in the last bucket; `min` and `max` are exact.
//!
//! A worker adds, main reads and zeroes at any time: all accesses are Relaxed, nothing is published through them.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

const BITS: u32 = 8;
const GROUPS: usize = 19;
const LEN: usize = GROUPS << BITS;

/// What is printed.
pub(super) const PERCENTILES: [f64; 5] = [20.0, 50.0, 90.0, 99.0, 99.9];

/// The bucket of `value`.
fn index(value: u32) -> usize {
    let leading = u32::BITS - value.leading_zeros();
    let dropped = leading.saturating_sub(BITS + 1);
    // What is left has its leading bit at `BITS` (or below, where nothing was dropped): groups follow each other.
    let index = ((dropped as usize) << BITS) + (value >> dropped) as usize;
    index.min(LEN - 1)
}

/// The value that bucket `index` answers with.
fn middle(index: usize) -> u32 {
    if index < 2 << BITS {
        return index as u32;
    }
    let dropped = (index >> BITS) - 1;
    let kept = (index & ((1 << BITS) - 1)) | (1 << BITS);
    ((kept << dropped) + ((1usize << dropped) >> 1)) as u32
}

/// Counts, on lines of their own.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Histogram {
    buckets: Box<[AtomicU32]>,
    count: AtomicU64,
    /// `u32::MAX` as long as there is none.
    min: AtomicU32,
    max: AtomicU32,
}

impl Histogram {
    pub(super) fn new() -> Self {
        Histogram {
            buckets: (0..LEN).map(|_| AtomicU32::new(0)).collect(),
            count: AtomicU64::new(0),
            min: AtomicU32::new(u32::MAX),
            max: AtomicU32::new(0),
        }
    }

    /// One sample. The thread that owns the histogram is the only one that adds.
    pub(super) fn add(&self, value: u64) {
        let value = u32::try_from(value).unwrap_or(u32::MAX);
        if value > self.max.load(Relaxed) {
            self.max.store(value, Relaxed);
        }
        if value < self.min.load(Relaxed) {
            self.min.store(value, Relaxed);
        }
        self.buckets[index(value)].fetch_add(1, Relaxed);
        self.count.fetch_add(1, Relaxed);
    }

    /// Forgets all samples. One that is added meanwhile may be half forgotten, as in the original.
    pub(super) fn zero(&self) {
        for bucket in &self.buckets {
            bucket.store(0, Relaxed);
        }
        self.count.store(0, Relaxed);
        self.min.store(u32::MAX, Relaxed);
        self.max.store(0, Relaxed);
    }
}

/// The samples of several histograms.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sum {
    buckets: Vec<u64>,
    min: u32,
    max: u32,
}

/// One line of the output.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Line {
    pub(super) percentile: f64,
    pub(super) value: u32,
    /// Samples since the line before.
    pub(super) samples: u64,
}

impl Sum {
    pub(super) fn new() -> Self {
        Sum {
            buckets: vec![0; LEN],
            min: u32::MAX,
            max: 0,
        }
    }

    pub(super) fn of<'a>(all: impl IntoIterator<Item = &'a Histogram>) -> Self {
        let mut sum = Sum::new();
        for one in all {
            for (sum, bucket) in sum.buckets.iter_mut().zip(&one.buckets) {
                *sum += u64::from(bucket.load(Relaxed));
            }
            sum.min = sum.min.min(one.min.load(Relaxed));
            sum.max = sum.max.max(one.max.load(Relaxed));
        }
        sum
    }

    /// Samples.
    pub(super) fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// The least; zero of none.
    pub(super) fn min(&self) -> u32 {
        if self.min == u32::MAX { 0 } else { self.min }
    }

    pub(super) fn max(&self) -> u32 {
        self.max
    }

    /// The lines for [`PERCENTILES`]: for each the first bucket up to which there are that many samples. Zeros of none.
    pub(super) fn lines(&self) -> [Line; PERCENTILES.len()] {
        let count = self.count() as f64;
        let (mut at, mut seen, mut told) = (0, self.buckets[0], 0);
        PERCENTILES.map(|percentile| {
            while (seen as f64) < percentile / 100.0 * count && at + 1 < LEN {
                at += 1;
                seen += self.buckets[at];
            }
            let samples = seen - told;
            told = seen;
            Line {
                percentile,
                value: middle(at),
                samples,
            }
        })
    }

    /// The value for one of [`PERCENTILES`].
    pub(super) fn percentile(&self, percentile: f64) -> u32 {
        let lines = self.lines();
        let found = lines.iter().find(|line| line.percentile == percentile);
        found.map_or(0, |line| line.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The first value that the last bucket cannot tell from larger ones.
    const TOO_LARGE: u32 = 1 << 26;

    fn of(values: &[u32]) -> Sum {
        let histogram = Histogram::new();
        for &value in values {
            histogram.add(u64::from(value));
        }
        Sum::of([&histogram])
    }

    #[test]
    fn small_values_are_exact_and_large_ones_near() {
        for value in (0..512).chain([513, 1000, 99_999, 1 << 20, TOO_LARGE - 1]) {
            let told = middle(index(value));
            let wrong = f64::from(told.abs_diff(value));
            if value < 512 {
                assert_eq!(told, value);
            }
            assert!(wrong <= f64::from(value) / 512.0, "{value} told as {told}");
        }
        assert_eq!(index(u32::MAX), LEN - 1);
        assert_eq!(index(TOO_LARGE - 1), LEN - 1);
        assert!((1..TOO_LARGE >> 8).all(|n| index(n << 8) >= index((n << 8) - 1)));
    }

    #[test]
    fn none_are_zeros() {
        let sum = of(&[]);
        assert_eq!((sum.count(), sum.min(), sum.max()), (0, 0, 0));
        assert!(sum.lines().iter().all(|l| l.value == 0 && l.samples == 0));
    }

    #[test]
    fn zeroed_is_new() {
        let histogram = Histogram::new();
        histogram.add(7);
        histogram.add(u64::MAX);
        assert_eq!(Sum::of([&histogram]).max(), u32::MAX);
        histogram.zero();
        assert_eq!(Sum::of([&histogram]), Sum::new());
    }

    proptest! {
        /// What a sorted vector says: the first value with at least that share of all values up to it.
        #[test]
        fn percentiles_are_those_of_a_sorted_vector(
            mut values in prop::collection::vec(prop_oneof![0..600u32, 0..TOO_LARGE], 1..400),
            split in 0..400usize,
        ) {
            let (left, right) = values.split_at(split.min(values.len()));
            let histograms = [Histogram::new(), Histogram::new()];
            for (histogram, part) in histograms.iter().zip([left, right]) {
                part.iter().for_each(|&value| histogram.add(u64::from(value)));
            }
            let sum = Sum::of(&histograms);
            values.sort_unstable();
            let n = values.len() as f64;
            prop_assert_eq!(sum.count(), values.len() as u64);
            prop_assert_eq!((sum.min(), sum.max()), (values[0], values[values.len() - 1]));
            let mut up_to = 0;
            for line in sum.lines() {
                let rank = (0..values.len())
                    .find(|i| (i + 1) as f64 >= line.percentile / 100.0 * n)
                    .unwrap();
                let exact = values[rank];
                let wrong = f64::from(line.value.abs_diff(exact));
                prop_assert!(wrong <= f64::from(exact) / 512.0, "{} for {exact}", line.value);
                up_to += line.samples;
                // All that share the bucket are in.
                let in_bucket = values.iter().filter(|&&v| index(v) <= index(exact)).count();
                prop_assert_eq!(up_to, in_bucket as u64);
            }
        }
    }
}
