//! Floor 3, bench-suite. Owns the plots: as what the figures of a workload are drawn.
//! May ask the workload for them, and touch `plotters` through the two drawing modules below. SVG only: no fonts or
//! libraries of the system.
//!
//! Few thread counts become bars, variants sorted; many become lines over a logarithmic axis. Beside that overview a
//! sweep over threads, or over the parameter that a workload names, gives pictures of its own, see `sweep`.

mod bars;
mod beside;
mod canvas;
mod curves;
mod latency;
mod scale;
mod style;
mod sweep;

use super::bootstrap::Interval;
use super::facts::Facts;
use super::judge::{intervals, judged};
use super::record::Record;
use super::summary::{Group, along, without};
use super::theirs::{self, Topology};
use super::view::{Figure, Plot};
use crate::workloads::Workload;
use style::THEIRS;
pub(crate) use sweep::Drawn;

/// One variant's figure.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bar {
    variant: String,
    value: f64,
    /// Of the median, of three runs and more.
    interval: Option<Interval>,
}

/// Figures that belong side by side.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Panel {
    title: String,
    threads: usize,
    bars: Vec<Bar>,
}

/// A plot before it is drawn.
pub(crate) struct Chart {
    plot: &'static Plot,
    panels: Vec<Panel>,
}

/// More panels than this become lines.
const MOST_PANELS: usize = 2;

/// The pictures of `workload`: first the overview, a chart of bars for each point in words with few groups; then those
/// of its sweeps. Nothing if no run gave a figure.
pub(crate) fn pictures(
    records: &[Record],
    workload: Workload,
    asked: Option<&str>,
    topology: Option<Topology>,
) -> Vec<Drawn> {
    let all = judged(records, workload, asked);
    let view = &workload.kind().view;
    // A long sweep over a parameter is for lines.
    let sweeps = along(&all.groups, view.plot.over);
    let swept = |family: &[&Group]| {
        let has = |group: &Group| {
            let mut long = sweeps
                .iter()
                .filter(|sweep| sweep.groups.len() > MOST_PANELS);
            long.any(|sweep| sweep.groups.iter().any(|one| std::ptr::eq(*one, group)))
        };
        family.iter().all(|group| has(group))
    };
    let mut drawn: Vec<Drawn> = Vec::new();
    for plot in std::iter::once(&view.plot).chain(view.plot.also) {
        let mut bars: Vec<Drawn> = joined(&all.groups, plot)
            .iter()
            .filter(|family| !swept(family))
            .filter_map(|family| Some((family, chart(family, workload.name(), plot)?)))
            .filter(|(_, chart)| chart.is_for_bars())
            .map(|(family, chart)| Drawn {
                kind: plot.name.to_owned(),
                caption: match intervals(family.iter().copied()) {
                    Some(called) => format!("medians over the runs; thin strokes: their {called}s"),
                    None => "medians over the runs".to_owned(),
                } + &published(workload, family),
                svg: bars::draw(&chart),
            })
            .collect();
        if bars.len() > 1 {
            for (index, one) in bars.iter_mut().enumerate() {
                let dash = if plot.name.is_empty() { "" } else { "-" };
                one.kind = format!("{}{dash}{}", plot.name, index + 1);
            }
        }
        drawn.extend(bars);
    }
    drawn.extend(sweep::pictures(&sweep::Source {
        name: workload.name(),
        view,
        all: &all,
        topology,
    }));
    drawn
}

/// Groups whose bars share a picture, in their order.
fn joined<'a>(groups: &'a [Group], plot: &Plot) -> Vec<Vec<&'a Group>> {
    let mut families: Vec<(String, Vec<&Group>)> = Vec::new();
    for group in groups {
        let words = without(&group.point, plot.joins);
        match families.iter_mut().find(|(point, _)| *point == words) {
            Some((_, family)) => family.push(group),
            None => families.push((words, vec![group])),
        }
    }
    families.into_iter().map(|(_, family)| family).collect()
}

/// What a caption says of the bars of others.
fn published(workload: Workload, family: &[&Group]) -> String {
    let named = family
        .iter()
        .filter_map(|group| theirs::named(workload.name(), group));
    named.map(|named| format!("; {}", named.caveat())).collect()
}

/// The one picture of `workload` that stands for it.
pub(crate) fn overview(
    records: &[Record],
    workload: Workload,
    asked: Option<&str>,
) -> Option<String> {
    let topology = Facts::of(records).topology;
    let mut all = pictures(records, workload, asked, topology).into_iter();
    all.next().map(|drawn| drawn.svg)
}

impl Chart {
    /// A sweep over many threads is for lines; groups that differ in other ways are not.
    fn is_for_bars(&self) -> bool {
        let same_threads = |pair: &[Panel]| pair[0].threads == pair[1].threads;
        let mut threads: Vec<usize> = self.panels.iter().map(|panel| panel.threads).collect();
        threads.sort_unstable();
        threads.dedup();
        let few = threads.len() <= MOST_PANELS;
        few || self.plot.joins.is_empty() && self.panels.windows(2).any(same_threads)
    }
}

/// A panel's title, with all that tells its group apart.
fn in_words(mut title: String, group: &Group) -> String {
    if !group.point.is_empty() {
        title.push_str(", ");
        title.push_str(&group.point);
    }
    title
}

/// The bars of a group; `beside`: and those of others.
fn panel(title: String, group: &Group, figure: Figure, beside: Vec<Bar>) -> Option<Panel> {
    let mut bars: Vec<Bar> = group
        .points
        .iter()
        .filter_map(|point| {
            Some(Bar {
                variant: point.variant.clone(),
                value: figure(point)?,
                interval: Interval::of_median(&point.runs(figure)),
            })
        })
        .filter(|bar| bar.value.is_finite())
        .collect();
    if bars.is_empty() {
        return None;
    }
    bars.extend(beside);
    Some(Panel {
        title,
        threads: group.threads,
        bars,
    })
}

/// What others published of the main figure.
fn of_others(workload: &str, group: &Group) -> Vec<Bar> {
    let named = theirs::named(workload, group).into_iter();
    let bar = |(name, value)| Bar {
        variant: format!("{THEIRS}{name}"),
        value,
        interval: None,
    };
    named.flat_map(|named| named.figures).map(bar).collect()
}

fn chart(groups: &[&Group], workload: &str, plot: &'static Plot) -> Option<Chart> {
    let mut panels: Vec<Panel> = groups
        .iter()
        .copied()
        .flat_map(|group| {
            let panels = (plot.panels)(group).into_iter().enumerate();
            panels.filter_map(move |(index, (title, figure))| {
                let beside = match index {
                    0 => of_others(workload, group),
                    _ => Vec::new(),
                };
                panel(in_words(title, group), group, figure, beside)
            })
        })
        .collect();
    for panel in &mut panels {
        panel.bars.sort_by(|a, b| {
            if plot.descending {
                b.value.total_cmp(&a.value)
            } else {
                a.value.total_cmp(&b.value)
            }
        });
    }
    (!panels.is_empty()).then_some(Chart { plot, panels })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::record::tests::sample;
    use crate::schemes;

    fn all(threads: &[usize]) -> Vec<Record> {
        let mut records = Vec::new();
        for (i, about) in schemes::listed().enumerate() {
            records.extend(
                threads
                    .iter()
                    .map(|&n| sample(Workload::Read, about.name, n, 0, 1_000_000 * (i as u64 + 1))),
            );
        }
        records
    }

    fn check(threads: &[usize]) {
        let svg = overview(&all(threads), Workload::Read, None).unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        for about in schemes::listed() {
            assert!(svg.contains(about.name), "{} is missing", about.name);
        }
        assert!(svg.contains("operations per second"));
    }

    #[test]
    fn bars_show_all_variants() {
        check(&[1, 2]);
    }

    #[test]
    fn lines_show_all_variants() {
        check(&[1, 2, 4, 8, 16]);
    }

    #[test]
    fn zero_fits_on_a_logarithmic_axis() {
        let mut records = vec![
            sample(Workload::Stall, "mutex", 2, 0, 1),
            sample(Workload::Stall, "hp", 2, 0, 1),
        ];
        records[0].set("peak_unreclaimed", 0);
        records[1].set("peak_unreclaimed", 1024);
        assert!(
            overview(&records, Workload::Stall, None)
                .unwrap()
                .contains("mutex")
        );
    }

    #[test]
    fn nothing_gives_no_plot() {
        assert!(overview(&[], Workload::Read, None).is_none());
    }
}
