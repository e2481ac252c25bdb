//! Floor 3, bench-suite. Owns the one bootstrap of the program: intervals of medians and of their ratios, and verdicts
//! over a whole sweep. Touches nothing else.
//!
//! The unit is the run (a process of its own). Runs are drawn with replacement, both sides of a ratio each for itself;
//! an interval leaves out [`OUTSIDE`] of the resampled figures, half on each end. Equal input gives equal output.
//!
//! Few runs have few resamples that differ: of fewer than [`FULL`] the interval of a median is their range, covers less
//! than 95 %, and is called a range. That all runs of one side lie beyond all of the other happens by chance, too: no
//! comparison is surer than that chance, so that of 3 runs against 3 nothing is said, and of long sweeps more runs are
//! asked for, see [`needed`].

use super::stats::median;
use crate::engine::plan::Random;

/// Runs below which there is no interval.
pub(crate) const LEAST: usize = 3;

/// Runs from which an interval covers about what it says: the range of 3 holds the median in 75 % of the cases, that of
/// 4 in 88 %, that of 5 in 94 %.
pub(crate) const FULL: usize = 5;

/// Closer to 1 than this is no change, however sure.
pub(crate) const NOISE: f64 = 0.01;

/// Share of the resamples outside an interval, and of false verdicts that a sweep may have.
pub(crate) const OUTSIDE: f64 = 0.05;

/// Resamples, unless a sweep needs more of them to decide.
const RESAMPLES: usize = 2000;

/// More than this are not drawn: of more comparisons some stay undecided.
const MOST_RESAMPLES: usize = 20_000;

/// From a seed that never changes.
const SEED: u64 = 1;

/// The ends of a percentile interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Interval {
    /// Lower end.
    pub(crate) low: f64,
    /// Upper end.
    pub(crate) high: f64,
}

impl Interval {
    /// Of the resampled figures.
    fn of(mut figures: Vec<f64>) -> Self {
        figures.sort_by(f64::total_cmp);
        let at = |share: f64| figures[((figures.len() - 1) as f64 * share).round() as usize];
        Interval {
            low: at(OUTSIDE / 2.0),
            high: at(1.0 - OUTSIDE / 2.0),
        }
    }

    /// Of the median over `runs`; nothing of fewer than [`LEAST`].
    pub(crate) fn of_median(runs: &[f64]) -> Option<Self> {
        if runs.len() < LEAST {
            return None;
        }
        let mut resampled = Resampled::new(runs);
        let mut random = Random::new(SEED);
        Some(Interval::of(
            (0..RESAMPLES)
                .map(|_| resampled.median(&mut random))
                .collect(),
        ))
    }

    /// Whether both ends are on the same side of `value`.
    pub(crate) fn leaves_out(self, value: f64) -> bool {
        self.low > value || self.high < value
    }
}

/// The chance that `a` and `b` runs of the same kind lie apart, all of one side beyond all of the other: two of the ways
/// to deal them to the sides.
fn floor(a: usize, b: usize) -> f64 {
    let ways: f64 = (1..=a).map(|i| (b + i) as f64 / i as f64).product();
    (2.0 / ways).min(1.0)
}

/// Whether so many runs could ever decide the surest of `family` comparisons.
pub(crate) fn can_decide(a: usize, b: usize, family: usize) -> bool {
    a.min(b) >= LEAST && floor(a, b) <= OUTSIDE / family as f64
}

/// Runs on each side from which the surest of `family` comparisons can be decided.
pub(crate) fn needed(family: usize) -> usize {
    let enough = |&runs: &usize| can_decide(runs, runs, family.max(1));
    (LEAST..).find(enough).unwrap_or(usize::MAX)
}

/// What the intervals of medians over so many runs are called, where there is one.
pub(crate) fn called(runs: impl IntoIterator<Item = usize>) -> Option<&'static str> {
    let (mut few, mut full) = (false, false);
    for runs in runs {
        full |= runs >= FULL;
        few |= (LEAST..FULL).contains(&runs);
    }
    match (few, full) {
        (false, false) => None,
        (true, false) => Some("range"),
        (false, true) => Some("95 % interval"),
        (true, true) => Some("range or 95 % interval"),
    }
}

/// Draws runs with replacement, without a new vector each time.
struct Resampled<'a> {
    runs: &'a [f64],
    drawn: Vec<f64>,
}

impl<'a> Resampled<'a> {
    fn new(runs: &'a [f64]) -> Self {
        Resampled {
            runs,
            drawn: vec![0.0; runs.len()],
        }
    }

    fn median(&mut self, random: &mut Random) -> f64 {
        for place in &mut self.drawn {
            *place = self.runs[random.below(self.runs.len())];
        }
        self.drawn.sort_by(f64::total_cmp);
        let middle = self.drawn.len() / 2;
        if self.drawn.len() % 2 == 1 {
            self.drawn[middle]
        } else {
            (self.drawn[middle - 1] + self.drawn[middle]) / 2.0
        }
    }
}

/// A ratio of medians with its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Ratio {
    /// The estimate.
    pub(crate) of_medians: f64,
    /// Where it may lie.
    pub(crate) interval: Interval,
    /// Twice the share of resamples on the wrong side of 1, and at least one resample's share and [`floor`]: what says
    /// how surely the ratio is not 1.
    pub(crate) p: f64,
    /// What `p` can be at best, of so many runs.
    floor: f64,
    /// Runs on the side that has fewer.
    pub(crate) runs: usize,
}

impl Ratio {
    /// Of the median of `b` to that of `a`, judged together with `family` comparisons in all. Nothing where a side has
    /// no run or a median of `a` can be 0.
    pub(crate) fn of(a: &[f64], b: &[f64], family: usize) -> Option<Self> {
        let of_medians = median(b)? / median(a)?;
        if a.contains(&0.0) || !of_medians.is_finite() {
            return None;
        }
        // Holm asks the surest of `family` comparisons for p <= OUTSIDE / family.
        let wanted = (family as f64 / OUTSIDE).ceil() as usize;
        let resamples = wanted.clamp(RESAMPLES, MOST_RESAMPLES);
        let mut random = Random::new(SEED);
        let (mut of_a, mut of_b) = (Resampled::new(a), Resampled::new(b));
        let ratios: Vec<f64> = (0..resamples)
            .map(|_| of_b.median(&mut random) / of_a.median(&mut random))
            .collect();
        let share = |side: fn(f64) -> bool| {
            ratios.iter().filter(|&&ratio| side(ratio)).count() as f64 / resamples as f64
        };
        let wrong = share(|ratio| ratio <= 1.0).min(share(|ratio| ratio >= 1.0));
        Some(Ratio {
            of_medians,
            p: (2.0 * wrong)
                .max(floor(a.len(), b.len()))
                .clamp(1.0 / resamples as f64, 1.0),
            floor: floor(a.len(), b.len()),
            interval: Interval::of(ratios),
            runs: a.len().min(b.len()),
        })
    }

    /// The ratio the other way round: of times instead of rates.
    pub(crate) fn inverse(self) -> Self {
        Ratio {
            of_medians: 1.0 / self.of_medians,
            interval: Interval {
                low: 1.0 / self.interval.high,
                high: 1.0 / self.interval.low,
            },
            ..self
        }
    }

    /// Whether so many runs could ever decide.
    fn can_decide(self) -> bool {
        self.runs >= LEAST && self.floor <= OUTSIDE
    }

    /// What can be said, if the correction over the whole family lets it count (`holds`).
    fn verdict(self, holds: bool) -> Verdict {
        match () {
            () if !self.can_decide() => Verdict::TooFew,
            () if (self.of_medians - 1.0).abs() <= NOISE => Verdict::NoChange,
            () if !self.interval.leaves_out(1.0) => Verdict::NoChange,
            () if !holds => Verdict::Undecided,
            () if self.of_medians > 1.0 => Verdict::Faster,
            () => Verdict::Slower,
        }
    }
}

/// What a comparison ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// More of what is good, beyond noise.
    Faster,
    /// Less of it.
    Slower,
    /// Within the noise, or the interval holds 1.
    NoChange,
    /// The interval leaves out 1, but among so many comparisons one such is bound to turn up.
    Undecided,
    /// However far apart they lie, so few runs do so by chance.
    TooFew,
}

impl Verdict {
    /// In words.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Verdict::Faster => "faster",
            Verdict::Slower => "slower",
            Verdict::NoChange => "no change",
            Verdict::Undecided => "undecided",
            Verdict::TooFew => "too few runs",
        }
    }
}

/// The verdicts over a sweep, in the order of `ratios`: Holm's correction keeps the chance of a single false *faster*
/// or *slower* among all of them at [`OUTSIDE`].
pub(crate) fn verdicts(ratios: &[Ratio]) -> Vec<Verdict> {
    let mut order: Vec<usize> = (0..ratios.len())
        .filter(|&i| ratios[i].can_decide())
        .collect();
    order.sort_by(|&a, &b| ratios[a].p.total_cmp(&ratios[b].p));
    let mut holds = vec![false; ratios.len()];
    for (rank, &index) in order.iter().enumerate() {
        if ratios[index].p > OUTSIDE / (order.len() - rank) as f64 {
            break;
        }
        holds[index] = true;
    }
    ratios
        .iter()
        .zip(holds)
        .map(|(ratio, holds)| ratio.verdict(holds))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: [f64; 5] = [100.0, 101.0, 99.0, 100.5, 99.5];

    fn alone(a: &[f64], b: &[f64]) -> Verdict {
        verdicts(&[Ratio::of(a, b, 1).unwrap()])[0]
    }

    #[test]
    fn intervals_hold_the_median_and_stay_in_the_range() {
        let interval = Interval::of_median(&BASE).unwrap();
        assert!(99.0 <= interval.low && interval.low < 100.0);
        assert!(100.0 < interval.high && interval.high <= 101.0);
        assert_eq!(Interval::of_median(&BASE[..2]), None);
        let three = Interval::of_median(&[3.0, 1.0, 2.0]).unwrap();
        assert_eq!((three.low, three.high), (1.0, 3.0), "the range of three");
        let same = Interval::of_median(&[5.0; 3]).unwrap();
        assert_eq!((same.low, same.high), (5.0, 5.0));
    }

    #[test]
    fn verdicts_of_one_comparison() {
        let slow = BASE.map(|rate| rate * 0.9);
        let ratio = Ratio::of(&BASE, &slow, 1).unwrap();
        assert!((ratio.of_medians - 0.9).abs() < 1e-12);
        let Interval { low, high } = ratio.interval;
        assert!(low <= 0.9 && (0.9..1.0).contains(&high));
        assert_eq!(ratio.p, 2.0 / 252.0, "5 of 10 runs");
        assert_eq!(alone(&BASE, &slow), Verdict::Slower);
        assert_eq!(alone(&slow, &BASE), Verdict::Faster);
        assert_eq!(alone(&BASE, &BASE), Verdict::NoChange);
        assert_eq!(alone(&BASE[..2], &slow[..2]), Verdict::TooFew);
        assert_eq!(alone(&BASE, &slow[..2]), Verdict::TooFew);
        // Of 3 and 3 runs of the same kind a tenth lies apart like this.
        assert_eq!(alone(&BASE[..3], &slow[..3]), Verdict::TooFew);
        assert_eq!(alone(&BASE[..4], &slow[..4]), Verdict::Slower);
        // So far apart that a tenth means nothing.
        let wide = [50.0, 150.0, 100.0, 80.0, 120.0];
        assert_eq!(
            alone(&wide, &wide.map(|rate| rate * 0.9)),
            Verdict::NoChange
        );
        // Sure, and too small to matter.
        assert_eq!(alone(&[100.0; 5], &[99.5; 5]), Verdict::NoChange);
        assert_eq!(
            Ratio::of(&BASE, &slow, 1),
            Ratio::of(&BASE, &slow, 1),
            "the same again"
        );
    }

    #[test]
    fn inverses_swap_the_ends() {
        let ratio = Ratio::of(&BASE, &BASE.map(|rate| rate * 0.5), 1).unwrap();
        let inverse = ratio.inverse();
        assert!((inverse.of_medians - 2.0).abs() < 1e-12);
        assert!(inverse.interval.low <= 2.0 && 2.0 <= inverse.interval.high);
        assert_eq!(inverse.interval.low, 1.0 / ratio.interval.high);
    }

    #[test]
    fn nothing_is_divided_by_zero() {
        assert_eq!(Ratio::of(&[0.0; 3], &[1.0; 3], 1), None);
        assert_eq!(Ratio::of(&[0.0, 1.0, 2.0], &[1.0; 3], 1), None);
        assert_eq!(Ratio::of(&[], &[1.0; 3], 1), None);
    }

    /// Of many comparisons the doubtful ones no longer count, and the sure ones do.
    #[test]
    fn a_sweep_is_corrected() {
        // One run of nine lies on the other side of 1.
        let doubtful = [104.0, 98.0, 106.0, 105.0, 103.0, 104.5, 105.5, 103.5, 106.5];
        let ratio = Ratio::of(&[100.0; 5], &doubtful, 1).unwrap();
        assert!(
            ratio.p > 0.001 && ratio.p < 0.05,
            "the example is doubtful: {}",
            ratio.p
        );
        assert_eq!(verdicts(&[ratio]), [Verdict::Faster]);
        let family = 50;
        let nine = |rate: f64| [rate, rate + 1.0, rate - 1.0].repeat(3);
        let sure = Ratio::of(&nine(100.0), &nine(90.0), family).unwrap();
        let mut all = vec![Ratio::of(&[100.0; 5], &doubtful, family).unwrap(); family];
        all[7] = sure;
        let verdicts = verdicts(&all);
        assert_eq!(verdicts[7], Verdict::Slower);
        assert_eq!(
            verdicts
                .iter()
                .filter(|&&v| v == Verdict::Undecided)
                .count(),
            family - 1
        );
    }

    /// As often as promised and not more: runs of the same kind, 3 % apart.
    #[test]
    fn false_verdicts_are_rare() {
        let mut random = Random::new(7);
        let mut runs = |n: usize| -> Vec<f64> {
            let mut one = || {
                let sum: usize = (0..12).map(|_| random.below(1000)).sum();
                1000.0 + 30.0 * (sum as f64 / 1000.0 - 6.0)
            };
            (0..n).map(|_| one()).collect()
        };
        let mut wrong = |runs_each: usize, family: usize, times: usize| {
            let sweep = |_: &usize| {
                let base = runs(runs_each);
                let ratios: Vec<Ratio> = (0..family)
                    .map(|_| Ratio::of(&base, &runs(runs_each), family).unwrap())
                    .collect();
                verdicts(&ratios)
                    .iter()
                    .any(|v| matches!(v, Verdict::Faster | Verdict::Slower))
            };
            (0..times).filter(sweep).count()
        };
        assert_eq!(wrong(3, 11, 3), 0);
        assert!(wrong(5, 1, 60) <= 3);
        assert!(wrong(6, 11, 6) <= 1);
    }

    #[test]
    fn runs_that_sweeps_need() {
        let of = [1, 3, 4, 6, 7, 23, 24, 85, 86].map(needed);
        assert_eq!(of, [4, 5, 5, 5, 6, 6, 7, 7, 8]);
        assert_eq!(floor(3, 3), 0.1);
        assert_eq!(floor(0, 5), 1.0);
        assert_eq!(called([1, 2]), None);
        assert_eq!(called([2, 3, 4]), Some("range"));
        assert_eq!(called([5, 9]), Some("95 % interval"));
        assert_eq!(called([3, 9]), Some("range or 95 % interval"));
    }

    /// The floor of p is low enough for the surest of a long sweep, of runs enough.
    #[test]
    fn a_long_sweep_can_decide() {
        let many: Vec<f64> = (0..9).map(|run| 100.0 + f64::from(run)).collect();
        let slow: Vec<f64> = many.iter().map(|rate| rate * 0.8).collect();
        for family in [1, 100, 400, 1000] {
            let sure = Ratio::of(&many, &slow, family).unwrap();
            assert!(
                verdicts(&vec![sure; family])
                    .iter()
                    .all(|&v| v == Verdict::Slower),
                "{family}"
            );
        }
        let beyond = 2 * MOST_RESAMPLES;
        let sure = Ratio::of(&many, &slow, beyond).unwrap();
        assert!(
            verdicts(&vec![sure; beyond])
                .iter()
                .all(|&v| v == Verdict::Undecided)
        );
    }
}
