//! Floor 3, bench-suite. Owns the numbers of others on the page, always marked as theirs. May ask `published`.

use super::{escape, grid};
use crate::published::{self, Set};
use std::fmt::Write;

/// All sets, folded.
pub(super) fn section() -> String {
    let mut text = String::from(
        "<section id=\"published\" class=\"theirs\">\n<h2>What others published</h2>\n\
         <p>Theirs: other machines, other kernels, other days. Nothing in this part was measured by this program.</p>\n",
    );
    for set in published::all() {
        text.push_str(&one(set));
    }
    text.push_str("</section>\n");
    text
}

fn one(set: &Set) -> String {
    let mut text = format!(
        "<details><summary>{}: {} (theirs)</summary>\n<p class=\"note\">{}, {}: {}. Program: {}. Machine: {}. Averaged: {}.</p>\n",
        escape(&set.id),
        escape(&set.title),
        escape(&set.source.author),
        escape(&set.source.date),
        escape(&set.source.subject),
        escape(&set.command),
        escape(&set.machine),
        escape(&set.averaged),
    );
    for table in &set.tables {
        let remark = [&table.machine, &table.note].into_iter().flatten();
        let _ = writeln!(
            text,
            "<h4>{}, theirs{}</h4>",
            escape(&table.name),
            remark.fold(String::new(), |all, more| all + ": " + &escape(more))
        );
        let heads: Vec<String> = std::iter::once(&table.key)
            .chain(&table.columns)
            .cloned()
            .collect();
        let rows: Vec<Vec<String>> = table
            .rows
            .iter()
            .map(|row| {
                let values = row
                    .values
                    .iter()
                    .map(|value| value.map_or("-".to_owned(), |value| value.to_string()));
                std::iter::once(row.key.to_string()).chain(values).collect()
            })
            .collect();
        text.push_str(&grid("figures", &heads, &rows));
    }
    text.push_str("<ul class=\"note\">");
    for erratum in &set.errata {
        let _ = write!(text, "<li>{}</li>", escape(erratum));
    }
    text.push_str("</ul></details>\n");
    text
}
