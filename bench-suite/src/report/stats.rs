//! Floor 3, bench-suite. Owns the statistics over repetitions. Touches nothing else.

/// The median; of an even number of values the mean of the middle two. `None` of none.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[middle]),
        _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
    }
}

/// (max - min) / median: how far the repetitions lie apart. `None` of fewer than two, or around zero.
pub(crate) fn spread(values: &[f64]) -> Option<f64> {
    let middle = median(values)?;
    if values.len() < 2 || middle == 0.0 {
        return None;
    }
    let max = values.iter().copied().max_by(f64::total_cmp)?;
    let min = values.iter().copied().min_by(f64::total_cmp)?;
    Some((max - min) / middle)
}

/// Standard deviation of `values` as a share of their mean (of the sample, so divided by n - 1). `None` of fewer than
/// two, or around zero.
///
/// Over the rates of runs this is what records and reports call `sd_runs`: how far one run lies from the next.
pub(crate) fn relative_sd(values: &[f64]) -> Option<f64> {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    if values.len() < 2 || mean == 0.0 {
        return None;
    }
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((squares / (n - 1.0)).sqrt() / mean)
}

/// Standard error of the mean as a share of the mean.
///
/// Over the rates of runs it is called `sem_runs`, over the counts of the threads of one run `sem_threads`: the second
/// says how evenly the threads fared, and nothing about how the next run would come out. The two are never mixed.
pub(crate) fn relative_sem(values: &[f64]) -> Option<f64> {
    Some(relative_sd(values)? / (values.len() as f64).sqrt())
}

/// The value below which a share `q` of the sorted `values` lies (nearest rank).
pub(crate) fn quantile(sorted: &[u64], q: f64) -> Option<u64> {
    let rank = (q * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
        assert_eq!(median(&[9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
    }

    #[test]
    fn spreads() {
        assert_eq!(spread(&[1.0]), None);
        assert_eq!(spread(&[0.0, 0.0]), None);
        assert_eq!(spread(&[9.0, 10.0, 12.0]), Some(0.3));
    }

    #[test]
    fn deviations_and_errors() {
        // Mean 10, squares 4 + 0 + 4, over n - 1 = 2.
        let values = [8.0, 10.0, 12.0];
        assert!((relative_sd(&values).unwrap() - 0.2).abs() < 1e-12);
        assert!((relative_sem(&values).unwrap() - 0.2 / 3f64.sqrt()).abs() < 1e-12);
        assert_eq!(relative_sd(&[5.0]), None);
        assert_eq!(relative_sem(&[1.0, -1.0]), None);
    }

    #[test]
    fn quantiles() {
        let sorted: Vec<u64> = (1..=100).collect();
        assert_eq!(quantile(&sorted, 0.5), Some(50));
        assert_eq!(quantile(&sorted, 0.99), Some(99));
        assert_eq!(quantile(&sorted, 1.0), Some(100));
        assert_eq!(quantile(&[7], 0.01), Some(7));
        assert_eq!(quantile(&[], 0.5), None);
    }
}
