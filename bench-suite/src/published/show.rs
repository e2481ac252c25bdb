//! Floor 3, bench-suite. Owns published numbers as text. Touches nothing else.

use super::{Key, Set, Table};
use std::fmt::{self, Write};

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Number(n) => n.fmt(f),
            Key::Name(name) => name.fmt(f),
        }
    }
}

/// One line a set.
pub(super) fn list(sets: &[Set]) -> String {
    let mut text = String::from(
        "Published numbers: theirs, of their machines, not measured by this program (hpbench published ID shows one)\n",
    );
    for set in sets {
        let mark = if set.external { " (external)" } else { "" };
        let _ = writeln!(
            text,
            "  {:<18}{}{mark}\n  {:<18}{}, {}",
            set.id, set.title, "", set.source.author, set.source.date
        );
    }
    text
}

/// Whole sets.
pub(super) fn sets(sets: &[Set]) -> String {
    sets.iter().map(one).collect::<Vec<_>>().join("\n")
}

fn one(set: &Set) -> String {
    let mut text = String::new();
    let kind = if set.external {
        "PUBLISHED BY OTHERS, not one of the five documents"
    } else {
        "PUBLISHED BY OTHERS"
    };
    let _ = writeln!(
        text,
        "{}: {}\n{kind}; not measured by this program",
        set.id, set.title
    );
    let source = &set.source;
    let mut row = |name: &str, value: &str| {
        let _ = writeln!(text, "{name:<12}{value}");
    };
    row("author", &format!("{}, {}", source.author, source.date));
    row("mail", &source.subject);
    if let Some(id) = &source.message_id {
        row("message id", id);
    }
    row("program", &set.benchmark);
    row("command", &set.command);
    row("machine", &set.machine);
    row("averaged", &set.averaged);
    row("unit", &set.unit);
    for table in &set.tables {
        text.push_str(&numbers(table));
    }
    for (title, lines) in [
        ("Errata and caveats", &set.errata),
        ("What this project can show", &set.shows),
        ("What it cannot", &set.hides),
    ] {
        if !lines.is_empty() {
            let _ = writeln!(text, "\n{title}:");
        }
        for line in lines {
            let _ = writeln!(text, "  - {line}");
        }
    }
    text
}

fn numbers(table: &Table) -> String {
    let mut text = format!("\n{}", table.name);
    for remark in [&table.machine, &table.note].into_iter().flatten() {
        let _ = write!(text, ": {remark}");
    }
    if let Some(seconds) = table.seconds {
        let _ = write!(text, "; {seconds} s");
    }
    text.push('\n');
    let heading = std::iter::once(table.key.clone()).chain(table.columns.iter().cloned());
    let mut rows: Vec<Vec<String>> = vec![heading.collect()];
    rows.extend(table.rows.iter().map(|row| {
        let values = row.values.iter().map(|value| match value {
            Some(value) => format!("{value}"),
            None => "-".to_owned(),
        });
        std::iter::once(row.key.to_string()).chain(values).collect()
    }));
    text.push_str(&columns(&rows));
    text
}

/// Pads the columns: the first to the left, the others to the right; a line under the heading.
pub(crate) fn columns(rows: &[Vec<String>]) -> String {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..count)
        .map(|column| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        })
        .collect();
    let mut text = String::new();
    for (index, row) in rows.iter().enumerate() {
        let mut line = String::from("  ");
        for (column, cell) in row.iter().enumerate() {
            let pad = " ".repeat(widths[column] - cell.chars().count());
            match column {
                0 => line.extend([cell.as_str(), &pad]),
                _ => line.extend(["  ", &pad, cell]),
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
        if index == 0 {
            let total = widths.iter().sum::<usize>() + 2 * count.saturating_sub(1);
            let _ = writeln!(text, "  {}", "-".repeat(total));
        }
    }
    text
}
