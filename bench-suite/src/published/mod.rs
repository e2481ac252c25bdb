//! Floor 3, bench-suite. Owns the published numbers: those of the five documents that the project starts from, and a
//! few of other mails, marked as such. Each with its source, machine, unit, errata, and what this project can show.
//! Touches its data file only; `command` also the terminal.
//!
//! They are always *theirs*: somebody else's machine, kernel and day. Nothing in here was measured by this program.

pub(crate) mod show;

use crate::cli::Options;
use crate::command::say;
use crate::report::sink::Target;
use crate::trouble::Trouble;
use serde::{Deserialize, Serialize};
use std::sync::OnceLock;

const DATA: &str = include_str!("data.json");

/// One document's numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Set {
    /// `seed000` … `seed004`, `external-…`.
    pub(crate) id: String,
    /// Not one of the five documents.
    pub(crate) external: bool,
    /// What was compared.
    pub(crate) title: String,
    /// The program.
    pub(crate) benchmark: String,
    /// The mail.
    pub(crate) source: Source,
    /// How the program was called.
    pub(crate) command: String,
    /// On what.
    pub(crate) machine: String,
    /// Threads of all rows, if the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) threads: Option<u32>,
    /// Length of a run, if told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) seconds: Option<u32>,
    /// What a number is the mean of, and what ± means.
    pub(crate) averaged: String,
    /// The unit of the first column.
    pub(crate) unit: String,
    /// The numbers.
    pub(crate) tables: Vec<Table>,
    /// What is wrong or misleading in the source.
    pub(crate) errata: Vec<String>,
    /// What this project can show of it.
    pub(crate) shows: Vec<String>,
    /// What it cannot.
    pub(crate) hides: Vec<String>,
}

/// Where numbers come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Source {
    /// Who measured.
    pub(crate) author: String,
    /// When it was sent.
    pub(crate) date: String,
    /// Of the mail, if the document has it.
    pub(crate) message_id: Option<String>,
    /// Of the mail.
    pub(crate) subject: String,
}

/// Rows of numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Table {
    /// Unique in its set.
    pub(crate) name: String,
    /// What the keys of the rows are.
    pub(crate) key: String,
    /// What the values of a row are.
    pub(crate) columns: Vec<String>,
    /// One row a key.
    pub(crate) rows: Vec<Row>,
    /// If it differs from table to table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) machine: Option<String>,
    /// A remark.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
    /// Length of a run, if it differs from table to table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) seconds: Option<u32>,
}

/// A key and its values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Row {
    /// What the values belong to.
    pub(crate) key: Key,
    /// One a column; nothing where nothing was published.
    pub(crate) values: Vec<Option<f64>>,
}

/// A number to plot over, or a name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Key {
    /// Threads, buckets.
    Number(u64),
    /// A kernel, a machine.
    Name(String),
}

impl Table {
    /// The value of `column` in the row `key`.
    pub(crate) fn value(&self, key: &str, column: usize) -> Option<f64> {
        let row = self.rows.iter().find(|row| row.key.to_string() == key)?;
        *row.values.get(column)?
    }

    /// `column` over the numeric keys: what a plot overlays as theirs.
    pub(crate) fn series(&self, column: usize) -> Vec<(u64, f64)> {
        let point = |row: &Row| match row.key {
            Key::Number(x) => Some((x, (*row.values.get(column)?)?)),
            Key::Name(_) => None,
        };
        self.rows.iter().filter_map(point).collect()
    }
}

impl Set {
    /// The table with this name.
    pub(crate) fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.name == name)
    }

    /// The words for the legend of a plot.
    pub(crate) fn theirs(&self) -> String {
        format!("theirs, published ({})", self.id)
    }
}

/// All sets, the five documents first.
pub(crate) fn all() -> &'static [Set] {
    static SETS: OnceLock<Vec<Set>> = OnceLock::new();
    SETS.get_or_init(|| serde_json::from_str(DATA).expect("the data file is part of the program"))
}

/// The set with this id.
pub(crate) fn find(id: &str) -> Option<&'static Set> {
    all().iter().find(|set| set.id == id)
}

/// A table that the program itself names.
pub(crate) fn table(id: &str, name: &str) -> &'static Table {
    find(id)
        .and_then(|set| set.table(name))
        .expect("named by the program, checked by a test")
}

/// `hpbench published [ID]`.
pub(crate) fn command(id: Option<&str>, options: &Options) -> Result<(), Trouble> {
    options.without_runs_but("published", &["--json"])?;
    let chosen = match id {
        None => all(),
        Some(id) => std::slice::from_ref(find(id).ok_or_else(|| unknown(id))?),
    };
    match (&options.json, id) {
        (Some(path), _) => {
            let mut target = Target::open("--json", path)?;
            let mut text = serde_json::to_string_pretty(chosen).expect("numbers and words");
            text.push('\n');
            target.put(&text)?;
            target.finish().map(|_| ())
        }
        (None, None) => say(&show::list(chosen)),
        (None, Some(_)) => say(&show::sets(chosen)),
    }
}

fn unknown(id: &str) -> Trouble {
    let known: Vec<_> = all().iter().map(|set| set.id.as_str()).collect();
    Trouble::Usage(format!(
        "published: unknown set '{id}', known are {}",
        known.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_rectangular_and_named_once() {
        for set in all() {
            assert_eq!(find(&set.id), Some(set));
            assert!(
                !set.errata.is_empty() && !set.hides.is_empty(),
                "{}",
                set.id
            );
            for table in &set.tables {
                assert_eq!(set.table(&table.name), Some(table));
                for row in &table.rows {
                    assert_eq!(row.values.len(), table.columns.len(), "{}", table.name);
                }
            }
        }
        assert_eq!(all().iter().filter(|set| !set.external).count(), 5);
    }

    #[test]
    fn numbers_are_where_they_belong() {
        let speedup = table("seed004", "speedup").series(0);
        assert_eq!(speedup.len(), 11);
        assert_eq!(speedup[8], (192, 28.0));
        assert_eq!(speedup[0], (1, -0.2));
        let buckets = table("seed000", "buckets");
        assert_eq!(buckets.series(0).len(), 17);
        assert_eq!(buckets.value("512", 0), Some(1_634_940.0));
        assert_eq!(buckets.value("global 65536", 0), Some(1_868_129.33));
        assert_eq!(buckets.value("global 65536", 1), None);
        let small = table("seed002", "E5-2650");
        assert_eq!(small.value("refcounted 128", 0), Some(141_394.0));
        let large = table("seed003", "144 cores");
        assert_eq!(large.value("immutable 2048", 0), Some(2_656_228.67));
    }

    /// The means of the document are those of its runs.
    #[test]
    fn rows_are_means_of_their_runs() {
        let rows = &table("seed000", "buckets").rows;
        let runs = &table("seed000", "buckets, each run").rows;
        for row in rows {
            let runs = runs.iter().find(|runs| runs.key == row.key).unwrap();
            let mean = [0, 2, 4]
                .map(|i| runs.values[i].unwrap())
                .iter()
                .sum::<f64>()
                / 3.0;
            assert!((mean - row.values[0].unwrap()).abs() < 0.01, "{}", row.key);
        }
    }

    /// All but one; that one is in the errata.
    #[test]
    fn printed_changes_are_those_of_the_rows() {
        let mut wrong = Vec::new();
        for pair in table("seed000", "buckets").rows.windows(2) {
            if let Some(printed) = pair[1].values[1] {
                let ratio = pair[1].values[0].unwrap() / pair[0].values[0].unwrap();
                if ((ratio - 1.0) * 100.0 - printed).abs() > 1.0 {
                    wrong.push(pair[1].key.to_string());
                }
            }
        }
        assert_eq!(wrong, ["128"]);
    }
}
