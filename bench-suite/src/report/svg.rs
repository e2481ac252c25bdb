//! Floor 3, bench-suite. Owns the plots: as what the figures of a workload are drawn.
//! May ask the workload for them, and touch `plotters` through the two drawing modules below. SVG only: no fonts or
//! libraries of the system.
//!
//! Few thread counts become bars, variants sorted; many become lines over a logarithmic axis.

mod bars;
mod lines;

use super::record::Record;
use super::summary::{Group, groups};
use super::view::{Figure, Plot};
use crate::workloads::Workload;
use plotters::style::RGBColor;

/// One variant's figure.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bar {
    variant: String,
    value: f64,
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

/// The plot of `workload`, or nothing if no run gave a figure.
pub(crate) fn render(records: &[Record], workload: Workload) -> Option<String> {
    let chart = chart(&groups(records, workload), &workload.kind().view.plot)?;
    let same_threads = chart
        .panels
        .windows(2)
        .any(|pair| pair[0].threads == pair[1].threads);
    Some(if chart.panels.len() > MOST_PANELS && !same_threads {
        lines::draw(&chart)
    } else {
        bars::draw(&chart)
    })
}

fn panel(title: String, group: &Group, figure: Figure) -> Option<Panel> {
    let bars: Vec<Bar> = group
        .points
        .iter()
        .filter_map(|point| {
            Some(Bar {
                variant: point.variant.clone(),
                value: figure(point)?,
            })
        })
        .filter(|bar| bar.value.is_finite())
        .collect();
    (!bars.is_empty()).then_some(Panel {
        title,
        threads: group.threads,
        bars,
    })
}

fn chart(groups: &[Group], plot: &'static Plot) -> Option<Chart> {
    let mut panels: Vec<Panel> = groups
        .iter()
        .flat_map(|group| {
            (plot.panels)(group)
                .into_iter()
                .filter_map(move |(title, figure)| panel(title, group, figure))
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

/// `hp` and its rungs in one strong hue, `rcu` and its flavours in another, the limit in grey, the others apart from
/// each other.
fn colour(variant: &str) -> RGBColor {
    match variant {
        "hp" => RGBColor(200, 30, 45),
        "hp-held" => RGBColor(232, 110, 90),
        "hp-membarrier" => RGBColor(240, 150, 120),
        "hp-fence" => RGBColor(245, 185, 160),
        "rcu" => RGBColor(20, 90, 200),
        "rcu-thread" => RGBColor(70, 140, 235),
        "rcu-qsbr" => RGBColor(120, 175, 245),
        "liburcu-memb" => RGBColor(200, 120, 0),
        "liburcu-qsbr" => RGBColor(235, 160, 40),
        "liburcu-bp" => RGBColor(250, 195, 90),
        "none" | "heavy-barrier" => RGBColor(140, 140, 140),
        "haphazard" => RGBColor(31, 119, 180),
        "haphazard-per-op" => RGBColor(130, 180, 220),
        "crossbeam-epoch" => RGBColor(44, 140, 60),
        "seize" => RGBColor(148, 103, 189),
        "arc-swap" => RGBColor(140, 86, 75),
        "sdd" => RGBColor(227, 119, 194),
        "kovan" => RGBColor(188, 160, 20),
        "hazarc" => RGBColor(23, 170, 190),
        "refcount" => RGBColor(90, 90, 160),
        "mutex" => RGBColor(70, 70, 70),
        "rwlock" => RGBColor(110, 130, 110),
        _ => RGBColor(0, 0, 0),
    }
}

/// What this repository is about stands out.
fn is_ours(variant: &str) -> bool {
    matches!(variant, "hp" | "rcu" | "rcu-thread" | "rcu-qsbr")
}

/// Grey of axes and grids.
const GRID: RGBColor = RGBColor(225, 225, 225);
/// Text.
const INK: RGBColor = RGBColor(40, 40, 40);

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
        let svg = render(&all(threads), Workload::Read).unwrap();
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
        assert!(render(&records, Workload::Stall).unwrap().contains("mutex"));
    }

    #[test]
    fn nothing_gives_no_plot() {
        assert!(render(&[], Workload::Read).is_none());
    }
}
