//! Floor 3, bench-suite. Owns least squares by simplex search, the comparison of fits, and a small random generator.
//! Touches nothing: numbers only. Everything is deterministic.

/// A small generator with a well-mixed 64-bit state (the SplitMix64 recurrence).
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// Equal seeds give equal sequences.
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

    /// Evenly in [0, 1).
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Below `n`, which is not 0.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        ((self.unit() * n as f64) as usize).min(n - 1)
    }

    /// Evenly in `low..=high` on a logarithmic scale; both above 0.
    pub(crate) fn between(&mut self, low: f64, high: f64) -> f64 {
        if low >= high {
            return low;
        }
        (low.ln() + (high / low).ln() * self.unit()).exp()
    }
}

/// The positive numbers at which `badness` is least, and how bad it is there. Searches their logarithms by
/// Nelder and Mead's simplex from each of `starts`, and once more from the best end.
pub(crate) fn minimise(starts: &[&[f64]], badness: &dyn Fn(&[f64]) -> f64) -> (Vec<f64>, f64) {
    let in_logs = |logs: &[f64]| {
        let plain: Vec<f64> = logs.iter().map(|x| x.exp()).collect();
        let bad = badness(&plain);
        if bad.is_finite() { bad } else { f64::MAX }
    };
    let logs = |start: &[f64]| start.iter().map(|x| x.ln()).collect::<Vec<_>>();
    let best = starts
        .iter()
        .map(|start| simplex(&logs(start), 0.3, &in_logs))
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .expect("a search starts somewhere");
    let best = simplex(&best.0, 0.05, &in_logs);
    (best.0.iter().map(|x| x.exp()).collect(), best.1)
}

fn simplex(start: &[f64], step: f64, badness: &dyn Fn(&[f64]) -> f64) -> (Vec<f64>, f64) {
    let n = start.len();
    let mut corners: Vec<(Vec<f64>, f64)> = (0..=n)
        .map(|corner| {
            let mut at = start.to_vec();
            if let Some(x) = corner.checked_sub(1) {
                at[x] += step;
            }
            let bad = badness(&at);
            (at, bad)
        })
        .collect();
    for _ in 0..200 * n {
        corners.sort_by(|a, b| a.1.total_cmp(&b.1));
        let spread = (0..n)
            .map(|i| (corners[n].0[i] - corners[0].0[i]).abs())
            .fold(0.0, f64::max);
        if spread < 1e-7 {
            break;
        }
        let centre: Vec<f64> = (0..n)
            .map(|i| corners[..n].iter().map(|c| c.0[i]).sum::<f64>() / n as f64)
            .collect();
        let towards = |share: f64| {
            let at: Vec<f64> = (0..n)
                .map(|i| centre[i] + share * (corners[n].0[i] - centre[i]))
                .collect();
            let bad = badness(&at);
            (at, bad)
        };
        let reflected = towards(-1.0);
        if reflected.1 < corners[0].1 {
            let far = towards(-2.0);
            corners[n] = if far.1 < reflected.1 { far } else { reflected };
        } else if reflected.1 < corners[n - 1].1 {
            corners[n] = reflected;
        } else {
            let near = if reflected.1 < corners[n].1 {
                towards(-0.5)
            } else {
                towards(0.5)
            };
            if near.1 < corners[n].1.min(reflected.1) {
                corners[n] = near;
            } else {
                let best = corners[0].0.clone();
                for corner in &mut corners[1..] {
                    for (x, to) in corner.0.iter_mut().zip(&best) {
                        *x = to + 0.5 * (*x - to);
                    }
                    corner.1 = badness(&corner.0);
                }
            }
        }
    }
    corners.sort_by(|a, b| a.1.total_cmp(&b.1));
    corners.swap_remove(0)
}

/// How good a fit is, with normal residuals of one unknown variance.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub(crate) struct Quality {
    /// Points.
    pub(crate) points: usize,
    /// Free numbers, without the variance.
    pub(crate) free: usize,
    /// Root of the mean square of the residuals.
    pub(crate) rms: f64,
    /// Logarithm of the greatest likelihood.
    pub(crate) log_likelihood: f64,
    /// Akaike's criterion; the variance counts as free.
    pub(crate) aic: f64,
    /// The same, corrected for few points; infinite where there are too few.
    pub(crate) aicc: Option<f64>,
}

impl Quality {
    /// Of `residuals` after fitting `free` numbers.
    pub(crate) fn of(residuals: &[f64], free: usize) -> Self {
        let points = residuals.len();
        let n = points as f64;
        let mean = residuals.iter().map(|r| r * r).sum::<f64>() / n;
        let log_likelihood = -0.5 * n * ((2.0 * std::f64::consts::PI * mean).ln() + 1.0);
        let k = free as f64 + 1.0;
        let aic = 2.0 * k - 2.0 * log_likelihood;
        let room = n - k - 1.0;
        Quality {
            points,
            free,
            rms: mean.sqrt(),
            log_likelihood,
            aic,
            aicc: (room > 0.0).then(|| aic + 2.0 * k * (k + 1.0) / room),
        }
    }
}

/// The chance that a χ² variable with one degree of freedom exceeds `x`: erfc(√(x/2)), by the rational approximation
/// 7.1.26 of Abramowitz and Stegun (error below 2e-7).
pub(crate) fn chi_square_tail(x: f64) -> f64 {
    if x <= 0.0 {
        return 1.0;
    }
    let z = (x / 2.0).sqrt();
    let t = 1.0 / (1.0 + 0.327_591_1 * z);
    let poly = [
        1.061_405_429,
        -1.453_152_027,
        1.421_413_741,
        -0.284_496_736,
        0.254_829_592,
    ]
    .iter()
    .fold(0.0, |sum, c| sum * t + c);
    poly * t * (-z * z).exp()
}

/// The values below which shares `low` and `high` of `values` lie (interpolated); `None` of none.
pub(crate) fn band(values: &mut [f64], low: f64, high: f64) -> Option<(f64, f64)> {
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    let at = |share: f64| {
        let place = share * last as f64;
        let below = place.floor() as usize;
        let above = (below + 1).min(last);
        values[below] + (values[above] - values[below]) * (place - below as f64)
    };
    Some((at(low), at(high)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bottom_is_found() {
        let valley = |x: &[f64]| (x[0] - 3.0).powi(2) + 100.0 * (x[1] - x[0] * x[0] / 3.0).powi(2);
        let (at, bad) = minimise(&[&[1.0, 1.0], &[10.0, 0.1]], &valley);
        assert!(
            (at[0] - 3.0).abs() < 1e-3 && (at[1] - 3.0).abs() < 1e-3 && bad < 1e-6,
            "{at:?} {bad}"
        );
        let (one, _) = minimise(&[&[50.0]], &|x| (x[0] - 0.02).abs());
        assert!((one[0] - 0.02).abs() < 1e-6);
    }

    #[test]
    fn nonsense_is_avoided() {
        let (at, _) = minimise(&[&[1.0]], &|x| if x[0] < 2.0 { f64::NAN } else { x[0] });
        assert!(at[0] > 0.0);
    }

    #[test]
    fn tails() {
        assert!((chi_square_tail(3.841) - 0.05).abs() < 1e-4);
        assert!((chi_square_tail(6.635) - 0.01).abs() < 1e-4);
        assert_eq!(chi_square_tail(0.0), 1.0);
    }

    #[test]
    fn quality_by_hand() {
        let quality = Quality::of(&[1.0, -1.0, 1.0, -1.0], 1);
        assert_eq!((quality.rms, quality.points), (1.0, 4));
        assert!(
            (quality.log_likelihood + 2.0 * ((2.0 * std::f64::consts::PI).ln() + 1.0)).abs()
                < 1e-12
        );
        assert!((quality.aicc.unwrap() - quality.aic - 12.0).abs() < 1e-12);
        assert_eq!(Quality::of(&[1.0, 2.0], 1).aicc, None);
    }

    #[test]
    fn bands() {
        let mut values = [3.0, 1.0, 2.0];
        assert_eq!(band(&mut values, 0.0, 1.0), Some((1.0, 3.0)));
        assert_eq!(band(&mut values, 0.25, 0.5), Some((1.5, 2.0)));
        assert_eq!(band(&mut [], 0.0, 1.0), None);
    }

    #[test]
    fn draws() {
        let mut random = Random::new(1);
        for _ in 0..1000 {
            assert!(random.below(3) < 3);
            let x = random.between(2.0, 8.0);
            assert!((2.0..=8.0).contains(&x));
        }
        assert_eq!(random.between(5.0, 5.0), 5.0);
    }
}
