//! Floor 3, bench-suite. Owns the tables: one per workload and point, with the ratio to its reference; as text for the
//! terminal. May ask the workload for its columns.
//!
//! Where there are three runs and more, the spread gives way to the interval of the median (`± 95 %`, its further end;
//! `± range` of fewer than five), and the interval of the ratio to the reference and the verdict follow. On the terminal what would make the table
//! wider than [`WIDTH`] is left out, the interval of the ratio first; the page has it all.

use super::disturbed;
use super::judge::{self, Judgement, judged};
use super::markdown::Matrix;
use super::record::{Record, Status};
use super::summary::{Group, Sweep, along, families};
use super::theirs;
use super::view::{Column, Row, View};
use crate::workloads::Workload;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::iter;

/// What stands where a figure does not exist.
const NOTHING: &str = "-";

/// Columns of the terminal.
const WIDTH: usize = 110;

/// The name, rate, time and ratio stay, with the spread, however wide they are.
const LEAST_COLUMNS: usize = 5;

/// The workload's column that the interval replaces.
const SPREAD: &str = "spread";

/// The columns that are not the workload's, with what the intervals are called.
fn of_intervals(called: &str) -> [String; 3] {
    let short = called.trim_end_matches(" interval");
    [
        format!("± {short}"),
        format!("ratio {short}"),
        "verdict".to_owned(),
    ]
}

/// One table: a point, a row for each variant.
#[derive(Debug)]
pub(crate) struct Table {
    /// All that tells its point apart beside threads and pauses; mostly empty.
    pub(crate) point: String,
    /// What the ratios refer to.
    reference: String,
    /// Where the point is, then the names of the columns.
    pub(crate) heads: Vec<String>,
    /// A variant's name, then its figures.
    pub(crate) rows: Vec<Vec<String>>,
    /// Remarks on variants.
    pub(crate) notes: Vec<String>,
    /// How many of the last columns may be left out.
    optional: usize,
}

/// Runs that gave no figure, with their reason.
#[derive(Debug)]
pub(crate) struct LeftOut {
    /// Failed or skipped.
    pub(crate) status: Status,
    /// Variants with the same reason.
    pub(crate) variants: String,
    /// The reason.
    pub(crate) why: String,
}

/// What the tables of a workload show.
pub(crate) fn meaning(view: &View, reference: &str) -> String {
    if reference == view.reference {
        return view.meaning.to_owned();
    }
    // The words on ratios are those of the usual reference.
    let rest = view.meaning.split("; ").filter(|words| {
        let ratios = words.starts_with("x ") || words.contains("against that of");
        !ratios
    });
    let rest: Vec<&str> = rest.collect();
    format!("{}; ratios: against {reference}", rest.join("; "))
}

/// The table of `workload` as text.
pub(crate) fn render(records: &[Record], workload: Workload, asked: Option<&str>) -> String {
    let mut text = String::new();
    let all = judged(records, workload, asked);
    let view = &workload.kind().view;
    let meaning = format!("{}: {}", workload.name(), meaning(view, &all.reference));
    let _ = writeln!(text, "\n{}", wrapped(&meaning));
    let mut point = String::new();
    let named = |at: usize| {
        let group = all.groups.get(at)?;
        theirs::named(workload.name(), group)
    };
    for (at, table) in tables(&all, view).iter().enumerate() {
        if table.point != point {
            point.clone_from(&table.point);
            let _ = writeln!(text, "  {point}:");
        }
        text.push_str(&table.text());
        let next = named(at + 1).map(|next| &raw const *next.table);
        // The same figures of others stand once, below the last table that they belong to.
        if let Some(named) = named(at)
            && next != Some(&raw const *named.table)
        {
            text.push_str(&align(&named.rows()));
            let _ = writeln!(text, "{}", wrapped(&format!("  note: {}", named.caveat())));
        }
    }
    for sweep in along(&all.groups, view.plot.over) {
        text.push_str(&swept(workload, view, &sweep, &all.reference));
    }
    for out in left_out(records, workload) {
        let _ = writeln!(
            text,
            "  {}: {}: {}",
            out.status.name(),
            out.variants,
            out.why
        );
    }
    text
}

/// A sweep over a parameter in one table, with what others published of it.
fn swept(workload: Workload, view: &View, sweep: &Sweep<'_>, reference: &str) -> String {
    let matrix = Matrix::of(workload, view, sweep, reference, false);
    let rows: Vec<Vec<String>> = iter::once(matrix.heads).chain(matrix.rows).collect();
    let mut text = format!(
        "  over {}: {}; medians, change against {reference}\n{}",
        sweep.axis(view),
        sweep.what(),
        align(&rows)
    );
    if let Some(theirs) = theirs::of(workload.name(), sweep) {
        let note = format!("  note: {}", theirs.caveat(sweep.point()));
        let _ = writeln!(text, "{}", wrapped(&note));
    }
    text
}

/// The tables of a workload, one for each group.
pub(crate) fn tables(all: &Judgement, view: &View) -> Vec<Table> {
    let mut tables = Vec::new();
    for family in families(&all.groups) {
        tables.extend(
            family
                .iter()
                .map(|group| table(view, group, family, &all.reference)),
        );
    }
    tables
}

fn table(view: &View, group: &Group, family: &[Group], reference: &str) -> Table {
    let called = judge::intervals([group]);
    let columns: Vec<&Column> = (view.columns)(group)
        .iter()
        .filter(|column| !(called.is_some() && column.head == SPREAD))
        .collect();
    let more: Vec<String> = called.map(of_intervals).into_iter().flatten().collect();
    let intervals = more.len();
    let heads = iter::once((view.title)(group))
        .chain(
            columns
                .iter()
                .map(|column| head(column.head, view, reference)),
        )
        .chain(more);
    let row = |point| {
        let place = Row {
            point,
            reference: group.point(reference),
            all: family,
        };
        let figures = columns.iter().map(|column| (column.cell)(&place));
        let judged = &point.judged;
        let more = [
            judged.plus_minus(),
            judged.ratio_interval(),
            judged.verdict.map(str::to_owned),
        ];
        iter::once(point.variant.clone())
            .chain(
                figures
                    .chain(more.into_iter().take(intervals))
                    .map(|cell| cell.unwrap_or_else(|| NOTHING.to_owned())),
            )
            .collect()
    };
    let notes = notes(group).into_iter();
    Table {
        point: group.point.clone(),
        reference: reference.to_owned(),
        heads: heads.collect(),
        rows: group.points.iter().map(row).collect(),
        notes: notes.chain(disturbed::lines(&group.points)).collect(),
        // The interval of the median has the place of the spread and stays.
        optional: intervals.saturating_sub(1),
    }
}

/// The notes of a group's runs, those that several variants have once.
fn notes(group: &Group) -> Vec<String> {
    let mut by: Vec<(&str, Vec<&str>)> = Vec::new();
    for point in &group.points {
        for note in point.notes() {
            match by.iter_mut().find(|(known, _)| *known == note) {
                Some((_, variants)) => variants.push(&point.variant),
                None => by.push((note, vec![&point.variant])),
            }
        }
    }
    let line = |(note, variants): (&str, Vec<&str>)| {
        if variants.len() > 1 && variants.len() == group.points.len() {
            format!("all: {note}")
        } else {
            format!("{}: {note}", variants.join(", "))
        }
    };
    by.into_iter().map(line).collect()
}

/// Words in lines of the terminal's width.
fn wrapped(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let used = lines.last().map_or(0, |line| line.chars().count());
        if used > 0 && used + 1 + word.chars().count() > WIDTH {
            lines.push(format!("  {word}"));
        } else if let Some(line) = lines.last_mut() {
            if used > 0 {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join("\n")
}

/// The name of a column of ratios ends in what they refer to.
fn head(name: &str, view: &View, reference: &str) -> String {
    match name.rsplit_once("x ") {
        Some((before, _))
            if reference != view.reference && (before.is_empty() || before.ends_with(' ')) =>
        {
            format!("{before}x {reference}")
        }
        _ => name.to_owned(),
    }
}

impl Table {
    /// For the terminal: of the optional columns the last stays longest.
    fn text(&self) -> String {
        let rows: Vec<&Vec<String>> = iter::once(&self.heads).chain(&self.rows).collect();
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
        let columns = self.heads.len();
        let fixed = columns - self.optional;
        let needs = |column: usize| width(column).unwrap_or(0) + 2;
        let mut kept: Vec<usize> = (0..fixed).collect();
        // Too wide without the optional ones, too: the workload's last columns go.
        while kept.len() > LEAST_COLUMNS
            && 2 + kept.iter().map(|&c| needs(c)).sum::<usize>() > WIDTH
        {
            kept.remove(kept.len() - 2);
        }
        let gone: Vec<&str> = (0..fixed)
            .filter(|column| !kept.contains(column))
            .map(|column| self.heads[column].as_str())
            .collect();
        let mut left = WIDTH.saturating_sub(2 + kept.iter().map(|&c| needs(c)).sum::<usize>());
        for column in (fixed..columns).rev() {
            let needs = needs(column);
            if needs > left {
                break;
            }
            left -= needs;
            kept.push(column);
        }
        kept.sort_unstable();
        let rows: Vec<Vec<String>> = rows
            .iter()
            .map(|row| kept.iter().map(|&column| row[column].clone()).collect())
            .collect();
        let mut text = align(&rows);
        if !gone.is_empty() {
            let _ = writeln!(text, "  on the page only: {}", gone.join(", "));
        }
        if self.optional > 0 && !kept.contains(&(columns - 1)) {
            text.push_str(&self.verdicts());
        }
        for note in &self.notes {
            let _ = writeln!(text, "  note: {note}");
        }
        text
    }
}

impl Table {
    /// The verdicts in a line of their own, where the table has no room for them.
    fn verdicts(&self) -> String {
        let mut by: Vec<(&str, Vec<&str>)> = Vec::new();
        for row in &self.rows {
            let [variant, .., verdict] = row.as_slice() else {
                continue;
            };
            match by.iter_mut().find(|(known, _)| known == verdict) {
                _ if verdict == NOTHING => {}
                Some((_, variants)) => variants.push(variant),
                None => by.push((verdict, vec![variant])),
            }
        }
        if by.is_empty() {
            return String::new();
        }
        let parts: Vec<String> = by
            .iter()
            .map(|(verdict, variants)| format!("{verdict}: {}", variants.join(", ")))
            .collect();
        format!("  against {}: {}\n", self.reference, parts.join("; "))
    }
}

/// Runs that gave no figure, with the reason, variants with the same reason together.
pub(crate) fn left_out(records: &[Record], workload: Workload) -> Vec<LeftOut> {
    let mut reasons: BTreeMap<(&str, &str), (Status, Vec<&str>)> = BTreeMap::new();
    for record in records
        .iter()
        .filter(|r| r.workload == workload && r.status != Status::Ok)
    {
        let (_, variants) = reasons
            .entry((record.status.name(), &record.note))
            .or_insert((record.status, Vec::new()));
        if !variants.contains(&record.variant.as_str()) {
            variants.push(&record.variant);
        }
    }
    let out = |((_, why), (status, variants)): ((&str, &str), (Status, Vec<&str>))| LeftOut {
        status,
        variants: variants.join(", "),
        why: why.to_owned(),
    };
    reasons.into_iter().map(out).collect()
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
        let table = render(&records, Workload::Read, None);
        assert_eq!(row_of(&table, "hp")[3], "1.00");
        assert_eq!(row_of(&table, "mutex")[3], "0.25");
        assert_eq!(row_of(&table, "mutex")[4], "-");
        assert_eq!(row_of(&table, "hp")[4], "±100 %");
        assert_eq!(row_of(&table, "mutex")[6], "too few runs");
        let two = render(&records[..2], Workload::Read, None);
        assert_eq!(row_of(&two, "hp")[4], "120 %", "the spread of two runs");
    }

    #[test]
    fn another_reference_is_named() {
        let records: Vec<Record> = ["hp", "mutex"]
            .iter()
            .flat_map(|name| (0..3).map(|run| sample(Workload::Read, name, 1, run, 100)))
            .collect();
        let table = render(&records, Workload::Read, Some("mutex"));
        assert!(
            table.contains("  x mutex") && !table.contains("x hp"),
            "{table}"
        );
        assert!(table.contains("ratios: against mutex"), "{table}");
        let usual = render(&records, Workload::Read, Some("sdd"));
        assert!(usual.contains("  x hp"), "did not run: {usual}");
    }

    #[test]
    fn points_in_words_have_tables_of_their_own() {
        let mut records = Vec::new();
        for point in ["grab=always", "grab=idle"] {
            let mut record = sample(Workload::Scan, "hp", 16, 0, 1000);
            record.set("point", point);
            records.push(record);
        }
        let table = render(&records, Workload::Scan, None);
        assert!(
            table.contains("  grab=always:\n  16 threads idle"),
            "{table}"
        );
        // Growth is against the fewest threads of the same point.
        assert_eq!(table.matches("1.00  ").count(), 4, "{table}");
    }

    #[test]
    fn what_does_not_fit_is_left_out() {
        let long = Table {
            heads: ["a", "b", "c", "d", "e"].map(str::to_owned).to_vec(),
            rows: vec![vec![
                "v".repeat(80),
                "1".into(),
                "2".repeat(8),
                "3".repeat(8),
                "4".repeat(8),
            ]],
            notes: Vec::new(),
            optional: 3,
            point: String::new(),
            reference: "x".to_owned(),
        };
        let text = long.text();
        assert!(text.contains("44444444") && text.contains("33333333"));
        assert!(!text.contains("22222222"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH));
        let row = |name: &str, verdict: &str| {
            vec![
                name.repeat(50),
                "1".repeat(50),
                "2".into(),
                verdict.to_owned(),
            ]
        };
        let longer = Table {
            heads: ["a", "b", "c", "verdict"].map(str::to_owned).to_vec(),
            rows: vec![
                row("v", "faster"),
                row("w", NOTHING),
                row("x", "no change"),
                row("y", "faster"),
            ],
            optional: 2,
            ..long
        };
        let (v, y) = ("v".repeat(50), "y".repeat(50));
        let line = format!(
            "  against x: faster: {v}, {y}; no change: {}\n",
            "x".repeat(50)
        );
        assert!(longer.text().ends_with(&line), "{}", longer.text());
    }

    /// A table that is too wide by itself loses its last columns, and says so; lines are wrapped, equal notes told once.
    #[test]
    fn nothing_is_wider_than_the_terminal() {
        let wide = Table {
            heads: ["a", "b", "c", "d", "e", "f", "spread"]
                .map(str::to_owned)
                .to_vec(),
            rows: vec![vec!["1".repeat(18); 7]],
            notes: Vec::new(),
            optional: 0,
            point: String::new(),
            reference: "x".to_owned(),
        };
        let text = wide.text();
        assert!(text.contains("on the page only: e, f"), "{text}");
        assert!(text.contains("spread"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH));
        let long = wrapped(&"word ".repeat(60));
        assert_eq!(long.lines().count(), 3);
        assert!(long.lines().all(|line| line.chars().count() <= WIDTH));
        let mut records: Vec<Record> = ["hp", "mutex", "none"]
            .map(|name| sample(Workload::Read, name, 1, 0, 100))
            .into();
        for record in &mut records {
            record.remark("crowded");
        }
        let table = render(&records, Workload::Read, None);
        assert_eq!(table.matches("crowded").count(), 1, "{table}");
        assert!(table.contains("note: all: crowded"), "{table}");
        records[2].remark("alone");
        let table = render(&records, Workload::Read, None);
        assert!(table.contains("note: hp, mutex: crowded\n"), "{table}");
    }

    #[test]
    fn without_hp_there_is_no_ratio() {
        let table = render(
            &[sample(Workload::Read, "mutex", 1, 0, 50)],
            Workload::Read,
            None,
        );
        assert_eq!(row_of(&table, "mutex")[3], "-");
    }

    #[test]
    fn scans_show_their_own_growth() {
        let records = [
            sample(Workload::Scan, "hp", 16, 0, 1_000_000),
            sample(Workload::Scan, "hp", 2048, 0, 500_000),
        ];
        let table = render(&records, Workload::Scan, None);
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
        let table = render(&[skipped, other], Workload::Scan, None);
        assert!(
            table.contains("skipped: mutex, rwlock: no deferred reclaim"),
            "{table}"
        );
    }
}
