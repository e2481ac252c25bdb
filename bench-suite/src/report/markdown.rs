//! Floor 3, bench-suite. Owns the speedup tables in Markdown: a row for each thread count (or what else the
//! sweep goes over), a column for each variant.
//! Touches points, and what others published.

use super::bootstrap::LEAST;
use super::facts::{Facts, by_machine};
use super::judge::{Judged, judged};
use super::record::Record;
use super::summary::{Group, Sweep, sweeps};
use super::theirs::{self, Theirs};
use super::view::View;
use super::{human, judge};
use crate::workloads::Workload;
use std::fmt::Write;

/// The tables of all sweeps in `records`, machine by machine.
pub(crate) fn render(records: &[Record], asked: Option<&str>) -> String {
    let mut text = String::new();
    let machines = by_machine(records);
    for records in &machines {
        let facts = Facts::of(records);
        for &workload in Workload::ALL {
            let all = judged(records, workload, asked);
            let view = &workload.kind().view;
            for sweep in sweeps(&all.groups, view.plot.over) {
                text.push_str(&table(workload, view, &sweep, &all.reference, &facts.name));
            }
        }
    }
    text
}

/// A cell may not hold what ends it.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn table(
    workload: Workload,
    view: &View,
    sweep: &Sweep<'_>,
    reference: &str,
    machine: &str,
) -> String {
    let what = sweep.what();
    let dash = if what.is_empty() { "" } else { ", " };
    let mut text = format!("### {}{dash}{}\n\n", workload.name(), cell(&what));
    let most = sweep
        .groups
        .iter()
        .flat_map(|group| &group.points)
        .map(|point| point.records().len())
        .max()
        .unwrap_or(0);
    let change = match judge::intervals(sweep.groups.iter().copied()) {
        Some(called) => {
            format!("change against {reference} with its {called} (bootstrap) in per cent")
        }
        None => format!("change against {reference} (fewer than {LEAST} runs: no interval)"),
    };
    let axis = view.plot.axis.replace(", logarithmic", "");
    let _ = writeln!(
        text,
        "{}: {axis}; medians of {}; {change}. Machine: {}.\n",
        view.plot.title,
        human::plural(most, "run"),
        cell(machine)
    );
    let matrix = Matrix::of(workload, view, sweep, reference, true);
    let heads: Vec<String> = matrix.heads.iter().map(|head| cell(head)).collect();
    let _ = writeln!(text, "| {} |", heads.join(" | "));
    let _ = writeln!(text, "|{}", "--:|".repeat(heads.len()));
    for row in &matrix.rows {
        let _ = writeln!(text, "| {} |", row.join(" | "));
    }
    if let Some(theirs) = theirs::of(workload.name(), sweep).filter(|t| !t.figures.is_empty()) {
        let _ = writeln!(text, "\n{}", theirs.caveat(sweep.point()));
    }
    text.push('\n');
    text
}

/// A sweep as one table.
pub(crate) struct Matrix {
    /// Threads or what else changes, the reference, the other variants, and theirs.
    pub(crate) heads: Vec<String>,
    /// One for each place on the axis.
    pub(crate) rows: Vec<Vec<String>>,
}

impl Matrix {
    /// Of the medians, and what they are against the reference.
    pub(crate) fn of(
        workload: Workload,
        view: &View,
        sweep: &Sweep<'_>,
        reference: &str,
        intervals: bool,
    ) -> Self {
        let mut variants = sweep.variants();
        // The reference first, as the table of a reader who asks what there is to gain.
        variants.sort_by_key(|name| *name != reference);
        let theirs =
            theirs::of(workload.name(), sweep).filter(|theirs| theirs.reference == reference);
        let heads = variants.iter().map(|name| {
            let mark = if *name == reference {
                " (reference)"
            } else {
                ""
            };
            format!("{name}{mark}")
        });
        let mut heads: Vec<String> = std::iter::once(sweep.axis(view).to_owned())
            .chain(heads)
            .collect();
        heads.extend(theirs.iter().flat_map(their_heads));
        let row = |group: &&Group| {
            let place = sweep.place(group);
            let mut row = vec![place.to_string()];
            row.extend(variants.iter().map(|name| {
                let point = group.point(name);
                let figure = point.and_then(|point| figure(view, &point.judged, intervals));
                figure.unwrap_or_else(|| "-".to_owned())
            }));
            if let Some(theirs) = &theirs {
                let cell = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
                if !theirs.figures.is_empty() {
                    row.push(cell(theirs.figure(place).map(view.plot.format)));
                }
                row.push(cell(theirs.change(place).map(judge::change)));
            }
            row
        };
        Matrix {
            heads,
            rows: sweep.groups.iter().map(row).collect(),
        }
    }
}

fn their_heads(theirs: &Theirs) -> Vec<String> {
    let change = format!("{} against {}", theirs.variant, theirs.reference);
    if theirs.figures.is_empty() {
        let who = format!("theirs ({}, {})", theirs.set.id, theirs.machine);
        return vec![format!("{who}: {change}")];
    }
    // Who they are is said below the table.
    vec![
        format!("theirs: {}", theirs.variant),
        format!("theirs: {change}"),
    ]
}

fn figure(view: &View, judged: &Judged, interval: bool) -> Option<String> {
    let mut text = (view.plot.format)(judged.median?);
    let bare = || Some(judge::change(judged.ratio?.of_medians));
    if let Some(change) = if interval { judged.change() } else { bare() } {
        let _ = write!(text, ", {change}");
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::record::tests::sample;

    #[test]
    fn a_row_for_each_thread_count() {
        let mut records = Vec::new();
        for threads in [1, 2] {
            for run in 0..3 {
                records.push(sample(Workload::Read, "hp", threads, run, 1000));
                records.push(sample(Workload::Read, "mutex", threads, run, 500));
            }
        }
        let text = render(&records, None);
        assert!(text.starts_with("### read\n"), "{text}");
        assert!(text.contains("| threads | hp (reference) | mutex |\n|--:|--:|--:|\n"));
        assert!(
            text.contains("| 2 | 1.00 k | 500, -50 % [-50 -50] |"),
            "{text}"
        );
        assert!(text.contains("medians of 3 runs"), "{text}");
        let other = render(&records, Some("mutex"));
        assert!(other.contains("1.00 k, +100 % [+100 +100]"), "{other}");
        assert_eq!(render(&[], None), "");
    }

    #[test]
    fn machines_are_never_in_one_table() {
        let mut records = vec![
            sample(Workload::Read, "hp", 1, 0, 10),
            sample(Workload::Read, "hp", 1, 0, 20),
        ];
        records[0].set("machine", "a|b");
        records[1].set("machine", "c");
        let text = render(&records, None);
        assert_eq!(text.matches("### read").count(), 2);
        assert!(text.contains("Machine: a\\|b."), "{text}");
    }
}
