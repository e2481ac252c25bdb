//! Floor 3, bench-suite. Owns the tables on the terminal: one per workload, with the ratio to `hp`.
//! Touches nothing else.

use super::human::{self, count, digits, nanoseconds};
use super::record::{Record, Status};
use super::summary::{Group, Point, REFERENCE, groups, ratio};
use crate::engine::job::Workload;
use std::collections::BTreeMap;
use std::fmt::Write;

/// What stands where a figure does not exist.
const NOTHING: &str = "-";

/// The table of `workload`, empty if it has no runs.
pub(crate) fn render(records: &[Record], workload: Workload) -> String {
    let mut text = String::new();
    let all = groups(records, workload);
    let _ = writeln!(text, "\n{}: {}", workload.name(), meaning(workload));
    for group in &all {
        let mut rows = vec![heading(workload, group)];
        rows.extend(
            group
                .points
                .iter()
                .map(|point| row(workload, group, point, &all)),
        );
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

fn meaning(workload: Workload) -> &'static str {
    match workload {
        Workload::Read => {
            "protect + dereference + release; rates over all threads, ns per pair (wall time x busy CPUs / operations); more is better; x hp: rate against that of hp"
        }
        Workload::Write => {
            "allocate + swap + retire; rates over all threads, ns per write (wall time x busy CPUs / operations); more is better; x hp: rate against that of hp"
        }
        Workload::Scan => {
            "time of one reclaim pass beside idle threads; less is better; growth: against the fewest threads"
        }
        Workload::Stall => {
            "objects that wait for reclaim while one reader is parked inside protection; fewer is better"
        }
    }
}

fn heading(workload: Workload, group: &Group) -> Vec<String> {
    let vs = format!("x {REFERENCE}");
    let columns: Vec<String> = match workload {
        Workload::Read => [&threads(group), "ops/s", "ns/op", &vs, "spread"]
            .map(String::from)
            .into(),
        Workload::Write if group.shape.0 == 0 => {
            [&shape(group), "writes/s", "ns/write", &vs, "spread"]
                .map(String::from)
                .into()
        }
        Workload::Write => [
            &shape(group),
            "writes/s",
            "ns/write",
            &vs,
            "reads/s",
            &format!("reads {vs}"),
            "spread",
        ]
        .map(String::from)
        .into(),
        Workload::Scan => [
            &format!("{} idle", threads(group)),
            "time/pass",
            &format!("time {vs}"),
            "growth",
            "freed/pass",
            "spread",
        ]
        .map(String::from)
        .into(),
        Workload::Stall => [
            &shape(group),
            "peak",
            "final",
            "released",
            "bound",
            "writes/s",
        ]
        .map(String::from)
        .into(),
    };
    columns
}

fn threads(group: &Group) -> String {
    format!(
        "{} thread{}",
        group.threads,
        if group.threads == 1 { "" } else { "s" }
    )
}

fn shape(group: &Group) -> String {
    let plural = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    match group.shape {
        (0, writers) => plural(writers, "writer"),
        (readers, writers) => format!(
            "{} + {}",
            plural(readers, "reader"),
            plural(writers, "writer")
        ),
    }
}

fn row(workload: Workload, group: &Group, point: &Point, all: &[Group]) -> Vec<String> {
    let hp = group.reference();
    let show = |value: Option<f64>, format: fn(f64) -> String| {
        value.map_or_else(|| NOTHING.to_owned(), format)
    };
    let rate_spread = show(point.spread(|r| Some(r.ops_per_s)), percent);
    let name = point.variant.clone();
    let rate = show(point.rate(), count);
    let ns = show(point.ns(), nanoseconds);
    let rates = show(ratio(point.rate(), hp.and_then(Point::rate)), human::ratio);
    match workload {
        Workload::Read => vec![name, rate, ns, rates, rate_spread],
        Workload::Write if group.shape.0 == 0 => vec![name, rate, ns, rates, rate_spread],
        Workload::Write => {
            let reads = show(point.reads(), count);
            let read_ratio = show(
                ratio(point.reads(), hp.and_then(Point::reads)),
                human::ratio,
            );
            vec![name, rate, ns, rates, reads, read_ratio, rate_spread]
        }
        Workload::Scan => {
            let fewest = all
                .iter()
                .flat_map(|g| &g.points)
                .find(|p| p.variant == point.variant)
                .and_then(Point::ns);
            let time = show(ratio(point.ns(), hp.and_then(Point::ns)), human::ratio);
            let growth = show(ratio(point.ns(), fewest), human::ratio);
            let freed = show(point.param("freed_per_pass"), digits);
            vec![
                name,
                ns,
                time,
                growth,
                freed,
                show(point.spread(|r| r.ns_per_op), percent),
            ]
        }
        Workload::Stall => {
            let objects = |key| show(point.param(key), count);
            vec![
                name,
                objects("peak_unreclaimed"),
                objects("final_unreclaimed"),
                objects("released_unreclaimed"),
                objects("pending_bound"),
                rate,
            ]
        }
    }
}

fn percent(value: f64) -> String {
    format!("{:.0} %", value * 100.0)
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
fn align(rows: &[Vec<String>]) -> String {
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
