//! Floor 3, bench-suite. Owns the distribution of latencies in records: how it is written, and how it is read.
//! May read a histogram.
//!
//! **The format.** A record that has a distribution carries the parameter `latency_ns`: a list of pairs
//! `[value_ns, share]`, at most [`MOST`], both ascending; `share` of the measured latencies (0 to 1) took at most
//! `value_ns` nanoseconds, and the last pair is `[maximum, 1.0]`. Records without it may have the single quantiles
//! `p50_ns`, `p90_ns`, `p99_ns`, `p999_ns` and `max_ns`, which are read as a coarse one.

use super::record::Record;
use super::summary::Point;
use hdrhistogram::Histogram;
use serde_json::Value;

/// The parameter.
pub(crate) const KEY: &str = "latency_ns";

/// Pairs in a record.
const MOST: usize = 60;

/// Latencies with the share that took no longer.
pub(crate) type Steps = Vec<(f64, f64)>;

/// Writes the distribution in `histogram` into `record`. `max` is the exact maximum: the histogram rounds.
pub(crate) fn store(record: &mut Record, histogram: &Histogram<u64>, max: u64) {
    let count = histogram.len();
    if count == 0 {
        return;
    }
    // Denser towards the tail: as many pairs for each halving of what is left.
    let halvings = (count as f64).log2().max(1.0);
    let each = ((MOST - 2) as f64 / halvings).floor().clamp(1.0, 6.0);
    let mut pairs: Vec<(u64, f64)> = Vec::new();
    for step in 0..MOST - 1 {
        let share = 1.0 - 0.5f64.powf(step as f64 / each);
        let value = histogram.value_at_quantile(share).min(max);
        let share = (histogram.count_between(0, value) as f64 / count as f64).min(1.0);
        if share >= 1.0 || value >= max {
            break;
        }
        if pairs.last().is_none_or(|last| last.0 < value) {
            pairs.push((value, share));
        }
    }
    pairs.push((max, 1.0));
    let pairs = pairs
        .into_iter()
        .map(|(value, share)| serde_json::json!([value, (share * 1e7).round() / 1e7]));
    record.set(KEY, Value::Array(pairs.collect()));
}

/// The distribution of one run, if it has one that makes sense.
pub(crate) fn read(record: &Record) -> Option<Steps> {
    let whole = record.params.get(KEY).and_then(Value::as_array);
    let steps: Steps = match whole {
        Some(pairs) => pairs
            .iter()
            .map(|pair| Some((pair.get(0)?.as_f64()?, pair.get(1)?.as_f64()?)))
            .collect::<Option<_>>()?,
        None => [
            ("p50_ns", 0.5),
            ("p90_ns", 0.9),
            ("p99_ns", 0.99),
            ("p999_ns", 0.999),
            ("max_ns", 1.0),
        ]
        .iter()
        .filter_map(|&(name, share)| Some((record.number(name)?, share)))
        .collect(),
    };
    let ascending = steps
        .windows(2)
        .all(|pair| pair[0].0 <= pair[1].0 && pair[0].1 <= pair[1].1);
    let enough = if whole.is_some() { 1 } else { 2 };
    let positive = steps.iter().all(|step| step.0 > 0.0);
    (steps.len() >= enough && ascending && positive).then_some(steps)
}

/// The distribution of a point: that of the run in the middle, by its median latency. Distributions are not averaged.
pub(crate) fn of(point: &Point) -> Option<Steps> {
    let mut runs: Vec<Steps> = point.records().iter().filter_map(read).collect();
    let middle = |steps: &Steps| {
        let at = steps.iter().find(|step| step.1 >= 0.5);
        at.map_or(f64::INFINITY, |step| step.0)
    };
    runs.sort_by(|a, b| middle(a).total_cmp(&middle(b)));
    let count = runs.len();
    (count > 0).then(|| runs.swap_remove((count - 1) / 2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::record::tests::sample;
    use crate::workloads::Workload;

    fn stored(values: impl Iterator<Item = u64>) -> (Record, Steps) {
        let mut histogram = Histogram::new_with_bounds(1, 1_000_000_000, 3).unwrap();
        let mut max = 0;
        for value in values {
            histogram.record(value).unwrap();
            max = max.max(value);
        }
        let mut record = sample(Workload::Grace, "hp", 1, 0, 1);
        store(&mut record, &histogram, max);
        let steps = read(&record).unwrap_or_default();
        (record, steps)
    }

    #[test]
    fn a_histogram_comes_back() {
        for count in [2, 10, 1000, 100_000] {
            let (record, steps) = stored(1..=count);
            assert!(steps.len() <= MOST, "{count}: {}", steps.len());
            assert_eq!(*steps.last().unwrap(), (count as f64, 1.0), "{record:?}");
            for (value, share) in steps {
                let exact = value / count as f64;
                assert!(
                    (share - exact).abs() <= 0.002 + 1.0 / count as f64,
                    "{count}: {value} {share}"
                );
            }
        }
        let (_, steps) = stored(1..=100_000);
        assert!(steps.len() > 30, "{}", steps.len());
        assert!(steps[steps.len() - 2].1 > 0.999, "the tail is in it");
    }

    #[test]
    fn nothing_stores_nothing() {
        assert!(!stored(std::iter::empty()).0.params.contains_key(KEY));
    }

    #[test]
    fn quantiles_are_a_coarse_one_and_nonsense_is_none() {
        let mut record = sample(Workload::Grace, "hp", 1, 0, 1);
        assert!(read(&record).is_none());
        record.set("p50_ns", 10);
        record.set("p99_ns", 20);
        record.set("max_ns", 30);
        assert_eq!(
            read(&record).unwrap(),
            [(10.0, 0.5), (20.0, 0.99), (30.0, 1.0)]
        );
        record.set("p99_ns", 5);
        assert!(read(&record).is_none(), "descends");
        record.set(KEY, serde_json::json!([[1, 0.5], ["x", 1.0]]));
        assert!(read(&record).is_none());
    }
}
