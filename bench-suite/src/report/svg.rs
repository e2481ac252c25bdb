//! Floor 3, bench-suite. Owns the plots: which figure of a workload is drawn, and as what.
//! May touch `plotters` through the two drawing modules below. SVG only: no fonts or libraries of the system.
//!
//! Few thread counts become bars, variants sorted; many become lines over a logarithmic axis.

mod bars;
mod lines;

use super::record::Record;
use super::summary::{Group, Point, REFERENCE, groups};
use crate::engine::job::Workload;
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
#[derive(Debug)]
pub(crate) struct Chart {
    title: String,
    /// What the axis shows, with its unit and which end is better.
    axis: &'static str,
    /// What the panels are ordered by.
    threads_axis: &'static str,
    log: bool,
    /// One scale for all panels: they show the same figure.
    shared: bool,
    format: fn(f64) -> String,
    panels: Vec<Panel>,
}

/// More panels than this become lines.
const MOST_PANELS: usize = 2;

/// The plot of `workload`, or nothing if no run gave a figure.
pub(crate) fn render(records: &[Record], workload: Workload) -> Option<String> {
    let chart = chart(&groups(records, workload), workload)?;
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

fn panel(title: String, group: &Group, figure: impl Fn(&Point) -> Option<f64>) -> Option<Panel> {
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

fn plural(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

fn chart(groups: &[Group], workload: Workload) -> Option<Chart> {
    let mut panels = Vec::new();
    for group in groups {
        let threads = plural(group.threads, "thread");
        let (readers, writers) = (
            plural(group.shape.0, "reader"),
            plural(group.shape.1, "writer"),
        );
        match workload {
            Workload::Read => panels.extend(panel(threads, group, Point::rate)),
            Workload::Write if group.shape.0 == 0 => panels.extend(panel(
                format!("{writers} alone: writes"),
                group,
                Point::rate,
            )),
            Workload::Write => {
                panels.extend(panel(
                    format!("{readers} + {writers}: writes"),
                    group,
                    Point::rate,
                ));
                panels.extend(panel(
                    format!("{readers} + {writers}: reads"),
                    group,
                    Point::reads,
                ));
            }
            Workload::Scan => panels.extend(panel(format!("{threads} idle"), group, Point::ns)),
            Workload::Stall => {
                panels.extend(panel(format!("1 parked reader + {writers}"), group, |p| {
                    p.param("peak_unreclaimed")
                }))
            }
        }
    }
    for panel in &mut panels {
        let descending = matches!(workload, Workload::Read | Workload::Write);
        panel.bars.sort_by(|a, b| {
            if descending {
                b.value.total_cmp(&a.value)
            } else {
                a.value.total_cmp(&b.value)
            }
        });
    }
    let (title, axis, log, format): (_, _, _, fn(f64) -> String) = match workload {
        Workload::Read => (
            "read: protect + dereference + release",
            "operations per second (more is better)",
            false,
            super::human::count,
        ),
        Workload::Write => (
            "write: allocate + swap + retire",
            "operations per second (more is better)",
            false,
            super::human::count,
        ),
        Workload::Scan => (
            "scan: one reclaim pass beside idle threads",
            "time per pass (less is better, logarithmic)",
            true,
            super::human::nanoseconds,
        ),
        Workload::Stall => (
            "stall: one reader parked inside protection",
            "peak of objects waiting for reclaim (fewer is better, logarithmic)",
            true,
            super::human::count,
        ),
    };
    let threads_axis = if workload == Workload::Scan {
        "idle threads"
    } else {
        "threads"
    };
    (!panels.is_empty()).then(|| Chart {
        title: title.to_owned(),
        axis,
        threads_axis,
        log,
        shared: workload == Workload::Scan,
        format,
        panels,
    })
}

/// `hp` and its rungs in one strong hue, the limit in grey, the others apart from each other.
fn colour(variant: &str) -> RGBColor {
    match variant {
        "hp" => RGBColor(200, 30, 45),
        "hp-held" => RGBColor(232, 110, 90),
        "hp-membarrier" => RGBColor(240, 150, 120),
        "hp-fence" => RGBColor(245, 185, 160),
        "none" => RGBColor(140, 140, 140),
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

fn is_reference(variant: &str) -> bool {
    variant == REFERENCE
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
