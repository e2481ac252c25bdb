//! Floor 3, bench-suite. Owns what is said of a point against its reference: the interval of its main figure, the ratio
//! with its interval, the verdict. Touches points only.
//!
//! The main figure is that of the workload's first panel, and the picture says which end of it is better. All points of
//! a workload are judged together, so that a long sweep does not find a *faster* by chance.

use super::bootstrap::{Interval, Ratio, Verdict, called, verdicts};
use super::stats::median;
use super::summary::{Group, groups};
use super::view::{Figure, Plot, View};
use super::{human, record::Record};
use crate::workloads::Workload;

/// What is known of a point's main figure.
#[derive(Debug, Clone, Default)]
pub(crate) struct Judged {
    /// Median over the runs.
    pub(crate) median: Option<f64>,
    /// Interval of that median, of three runs and more.
    pub(crate) interval: Option<Interval>,
    /// Runs that have the figure.
    pub(crate) runs: usize,
    /// Against the reference, as the figure is: of times, less than 1 is better. Nothing for the reference itself.
    pub(crate) ratio: Option<Ratio>,
    /// In words; nothing for the reference itself.
    pub(crate) verdict: Option<&'static str>,
}

/// The main figure of a group.
pub(crate) fn figure(plot: &Plot, group: &Group) -> Option<Figure> {
    (plot.panels)(group).first().map(|&(_, figure)| figure)
}

/// What ratios refer to: what was asked for if it ran here, or what the workload says.
pub(crate) fn reference<'a>(view: &View, groups: &[Group], asked: Option<&'a str>) -> &'a str {
    match asked {
        Some(name) if groups.iter().any(|group| group.point(name).is_some()) => name,
        _ => view.reference,
    }
}

/// The points of a workload, judged against `reference`.
pub(crate) fn judged(records: &[Record], workload: Workload, asked: Option<&str>) -> Judgement {
    let mut groups = groups(records, workload);
    let view = &workload.kind().view;
    let reference = reference(view, &groups, asked).to_owned();
    judge(&mut groups, &view.plot, &reference);
    Judgement { groups, reference }
}

/// What the intervals of `groups` are called, where there is one.
pub(crate) fn intervals<'a>(groups: impl IntoIterator<Item = &'a Group>) -> Option<&'static str> {
    let points = groups.into_iter().flat_map(|group| &group.points);
    called(points.map(|point| point.judged.runs))
}

/// Groups whose points are judged, and against what.
pub(crate) struct Judgement {
    /// As [`groups`] has them.
    pub(crate) groups: Vec<Group>,
    /// The variant that ratios refer to.
    pub(crate) reference: String,
}

fn judge(groups: &mut [Group], plot: &Plot, reference: &str) {
    // One family: every point beside a reference.
    let family = groups
        .iter()
        .filter(|group| group.point(reference).is_some())
        .map(|group| group.points.len() - 1)
        .sum::<usize>()
        .max(1);
    let mut places = Vec::new();
    let mut ratios = Vec::new();
    for (at, group) in groups.iter_mut().enumerate() {
        let Some(figure) = figure(plot, group) else {
            continue;
        };
        let base = group.point(reference).map(|point| point.runs(figure));
        for (index, point) in group.points.iter_mut().enumerate() {
            let runs = point.runs(figure);
            point.judged.median = median(&runs);
            point.judged.interval = Interval::of_median(&runs);
            point.judged.runs = runs.len();
            if point.variant == reference {
                continue;
            }
            let Some(ratio) = base
                .as_ref()
                .and_then(|base| Ratio::of(base, &runs, family))
            else {
                continue;
            };
            point.judged.ratio = Some(ratio);
            places.push((at, index));
            // Of rates, so that more is better.
            ratios.push(if plot.descending {
                ratio
            } else {
                ratio.inverse()
            });
        }
    }
    for ((at, index), verdict) in places.into_iter().zip(verdicts(&ratios)) {
        groups[at].points[index].judged.verdict = Some(word(verdict, plot));
    }
}

/// *Faster* is a word for rates and times; of objects there are fewer or more.
fn word(verdict: Verdict, plot: &Plot) -> &'static str {
    let counts = !plot.descending && !is_time(plot);
    match verdict {
        Verdict::Faster if counts => "fewer",
        Verdict::Slower if counts => "more",
        verdict => verdict.name(),
    }
}

/// Whether the figures are times.
pub(crate) fn is_time(plot: &Plot) -> bool {
    (plot.format)(1.0).ends_with("ns")
}

impl Judged {
    /// How far the ends of the interval are from the median: `±0.4 %`.
    pub(crate) fn plus_minus(&self) -> Option<String> {
        let (median, interval) = (self.median?, self.interval?);
        let far = (median - interval.low).max(interval.high - median);
        if median == 0.0 {
            return (far == 0.0).then(|| "±0 %".to_owned());
        }
        let percent = far / median * 100.0;
        Some(if percent < 9.95 {
            format!("±{percent:.1} %")
        } else {
            format!("±{percent:.0} %")
        })
    }

    /// The interval of the ratio: `0.98-1.02`. Nothing of too few runs.
    pub(crate) fn ratio_interval(&self) -> Option<String> {
        let ratio = self.ratio.filter(|r| r.runs >= super::bootstrap::LEAST)?;
        Some(format!(
            "{}-{}",
            human::ratio(ratio.interval.low),
            human::ratio(ratio.interval.high)
        ))
    }

    /// The ratio as a change in per cent, with its interval: `+4.1 % [+3.9 +4.4]`.
    pub(crate) fn change(&self) -> Option<String> {
        let ratio = self.ratio?;
        let mut text = change(ratio.of_medians);
        if ratio.runs >= super::bootstrap::LEAST {
            let bare = |value| change(value).replace(" %", "");
            text.push_str(&format!(
                " [{} {}]",
                bare(ratio.interval.low),
                bare(ratio.interval.high)
            ));
        }
        Some(text)
    }
}

/// A ratio as a change: `+4.1 %`, `-97 %`.
pub(crate) fn change(ratio: f64) -> String {
    let percent = (ratio - 1.0) * 100.0;
    if percent.abs() < 9.95 {
        format!("{percent:+.1} %")
    } else {
        format!("{percent:+.0} %")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::record::tests::sample;

    fn runs(workload: Workload, variant: &str, rates: [u64; 5]) -> Vec<Record> {
        let one = |(run, &ops): (usize, &u64)| sample(workload, variant, 2, run, ops);
        rates.iter().enumerate().map(one).collect()
    }

    #[test]
    fn points_are_judged_against_the_reference() {
        let mut records = runs(Workload::Read, "hp", [1000, 1010, 990, 1005, 995]);
        records.extend(runs(Workload::Read, "none", [2000, 2010, 1990, 2005, 1995]));
        records.extend(runs(Workload::Read, "mutex", [500, 510, 490, 505, 495]));
        records.extend(runs(Workload::Read, "rwlock", [1000, 1004, 996, 1002, 998]));
        records.extend(runs(Workload::Read, "seize", [1, 2, 3, 4, 5])[..2].to_vec());
        let of = |asked, variant: &str| {
            let all = judged(&records, Workload::Read, asked);
            all.groups[0].point(variant).unwrap().judged.clone()
        };
        assert_eq!(of(None, "none").verdict, Some("faster"));
        assert_eq!(of(None, "mutex").verdict, Some("slower"));
        assert_eq!(of(None, "rwlock").verdict, Some("no change"));
        assert_eq!(of(None, "seize").verdict, Some("too few runs"));
        assert_eq!(of(None, "hp").verdict, None);
        assert_eq!(of(None, "hp").plus_minus().unwrap(), "±1.0 %");
        assert_eq!(of(Some("none"), "hp").verdict, Some("slower"));
        assert_eq!(
            of(Some("sdd"), "none").verdict,
            Some("faster"),
            "did not run"
        );
        let change = of(None, "mutex").change().unwrap();
        assert!(change.starts_with("-50 % [-5"), "{change}");
        assert_eq!(of(None, "none").ratio_interval().unwrap(), "1.98-2.02");
    }

    /// Of times less is better; the ratio stays that of the times.
    #[test]
    fn times_are_turned_round() {
        let mut records = runs(Workload::Scan, "hp", [1000, 1010, 990, 1005, 995]);
        records.extend(runs(
            Workload::Scan,
            "seize",
            [2000, 2010, 1990, 2005, 1995],
        ));
        let all = judged(&records, Workload::Scan, None);
        let seize = &all.groups[0].point("seize").unwrap().judged;
        assert_eq!(seize.verdict, Some("faster"));
        assert!((seize.ratio.unwrap().of_medians - 0.5).abs() < 1e-9);
    }
}
