//! Floor 3, bench-suite. Owns the tables on the terminal: one per workload, with the ratio to its reference.
//! May ask the workload for its columns.

use super::record::{Record, Status};
use super::summary::{Group, groups};
use super::view::{Column, Row, View};
use crate::workloads::Workload;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::iter;

/// What stands where a figure does not exist.
const NOTHING: &str = "-";

/// The table of `workload`, empty if it has no runs.
pub(crate) fn render(records: &[Record], workload: Workload) -> String {
    let mut text = String::new();
    let view = &workload.kind().view;
    let all = groups(records, workload);
    let _ = writeln!(text, "\n{}: {}", workload.name(), view.meaning);
    for group in &all {
        let columns = (view.columns)(group);
        let mut rows = vec![heading(view, group, columns)];
        rows.extend(group.points.iter().map(|point| {
            let place = Row {
                point,
                reference: group.point(view.reference),
                all: &all,
            };
            row(&place, columns)
        }));
        text.push_str(&align(&rows));
        for point in &group.points {
            for note in point.notes() {
                let _ = writeln!(text, "  note: {}: {note}", point.variant);
            }
        }
    }
    text.push_str(&left_out(records, workload));
    text
}

fn heading(view: &View, group: &Group, columns: &[Column]) -> Vec<String> {
    let names = columns.iter().map(|column| column.head.to_owned());
    iter::once((view.title)(group)).chain(names).collect()
}

fn row(row: &Row<'_>, columns: &[Column]) -> Vec<String> {
    let show = |column: &Column| (column.cell)(row).unwrap_or_else(|| NOTHING.to_owned());
    iter::once(row.point.variant.clone())
        .chain(columns.iter().map(show))
        .collect()
}

/// Runs that gave no figure, with the reason, variants with the same reason together.
fn left_out(records: &[Record], workload: Workload) -> String {
    let mut reasons: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for record in records
        .iter()
        .filter(|r| r.workload == workload && r.status != Status::Ok)
    {
        let variants = reasons
            .entry((record.status.name(), &record.note))
            .or_default();
        if !variants.contains(&record.variant.as_str()) {
            variants.push(&record.variant);
        }
    }
    let mut text = String::new();
    for ((status, note), variants) in reasons {
        let _ = writeln!(text, "  {status}: {}: {note}", variants.join(", "));
    }
    text
}

/// Pads the columns: the first to the left, the others to the right. The first row is the heading.
pub(crate) fn align(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for (index, row) in rows.iter().enumerate() {
        text.push_str("  ");
        for (column, cell) in row.iter().enumerate() {
            let pad = " ".repeat(widths[column] - cell.chars().count());
            match column {
                0 if row.len() == 1 => text.push_str(cell),
                0 => text.extend([cell.as_str(), &pad]),
                _ => text.extend(["  ", &pad, cell]),
            }
        }
        text.push('\n');
        if index == 0 {
            let total = widths.iter().sum::<usize>() + 2 * columns.saturating_sub(1);
            let _ = writeln!(text, "  {}", "-".repeat(total));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::record::tests::sample;

    fn row_of<'a>(table: &'a str, variant: &str) -> Vec<&'a str> {
        let line = table
            .lines()
            .find(|line| line.trim_start().starts_with(&format!("{variant} ")))
            .unwrap();
        line.split("  ")
            .map(str::trim)
            .filter(|cell| !cell.is_empty())
            .collect()
    }

    #[test]
    fn the_ratio_is_to_the_median_of_hp() {
        let mut records: Vec<Record> = [400, 100, 200]
            .map(|ops| sample(Workload::Read, "hp", 1, 0, ops))
            .into();
        records.push(sample(Workload::Read, "mutex", 1, 0, 50));
        let table = render(&records, Workload::Read);
        assert_eq!(row_of(&table, "hp")[3], "1.00");
        assert_eq!(row_of(&table, "mutex")[3], "0.25");
        assert_eq!(row_of(&table, "mutex")[4], "-");
        assert_eq!(row_of(&table, "hp")[4], "150 %");
    }

    #[test]
    fn without_hp_there_is_no_ratio() {
        let table = render(&[sample(Workload::Read, "mutex", 1, 0, 50)], Workload::Read);
        assert_eq!(row_of(&table, "mutex")[3], "-");
    }

    #[test]
    fn scans_show_their_own_growth() {
        let records = [
            sample(Workload::Scan, "hp", 16, 0, 1_000_000),
            sample(Workload::Scan, "hp", 2048, 0, 500_000),
        ];
        let table = render(&records, Workload::Scan);
        let last = table.lines().rfind(|line| line.contains("hp ")).unwrap();
        assert!(
            last.contains("2.00 µs") && last.contains("  2.00  "),
            "{table}"
        );
    }

    #[test]
    fn what_is_left_out_is_said() {
        let mut skipped = sample(Workload::Scan, "mutex", 16, 0, 1);
        skipped.status = Status::Skipped;
        skipped.remark("no deferred reclaim");
        let other = Record {
            variant: "rwlock".into(),
            ..skipped.clone()
        };
        let table = render(&[skipped, other], Workload::Scan);
        assert!(
            table.contains("skipped: mutex, rwlock: no deferred reclaim"),
            "{table}"
        );
    }
}
