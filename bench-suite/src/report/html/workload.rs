//! Floor 3, bench-suite. Owns one workload on the page: meaning, failures, tables, pictures, theirs beside, spreads, what
//! was skipped. May ask for tables and pictures.

use super::super::judge::{self, Judgement, change, judged};
use super::super::markdown::Matrix;
use super::super::record::{Record, Status};
use super::super::stats::{median, relative_sd, relative_sem};
use super::super::summary::{Point, Sweep, sweeps};
use super::super::theirs::{self, Topology};
use super::super::view::View;
use super::super::{human, svg, table};
use super::{escape, grid};
use crate::workloads::Workload;
use serde_json::Value;
use std::fmt::Write;

/// More tables than this are folded, below one table of the whole sweep.
const MOST_TABLES: usize = 4;

/// The part of the page that is about `workload`.
pub(super) fn section(
    records: &[Record],
    workload: Workload,
    asked: Option<&str>,
    topology: Option<Topology>,
    id: &str,
) -> String {
    let view = &workload.kind().view;
    let all = judged(records, workload, asked);
    let mut text = format!(
        "<section id=\"{}\">\n<h3>{}</h3>\n<p>{}.</p>\n",
        escape(id),
        escape(workload.name()),
        escape(&table::meaning(view, &all.reference))
    );
    let out = table::left_out(records, workload);
    for failed in out.iter().filter(|out| out.status == Status::Failed) {
        let _ = writeln!(
            text,
            "<p class=\"failed\">FAILED, in no figure: {}: {}</p>",
            escape(&failed.variants),
            escape(&failed.why)
        );
    }
    let tables = table::tables(&all, view);
    let fold = tables.len() > MOST_TABLES;
    if fold {
        for sweep in sweeps(&all.groups, view.plot.over) {
            text.push_str(&matrix(workload, view, &sweep, &all.reference));
        }
        let _ = writeln!(
            text,
            "<details><summary>All figures of {}</summary>",
            human::plural(tables.len(), "point")
        );
    }
    let mut point = String::new();
    for (table, group) in tables.into_iter().zip(&all.groups) {
        if table.point != point {
            point.clone_from(&table.point);
            let _ = writeln!(text, "<h4>{}</h4>", escape(&point));
        }
        text.push_str(&grid("figures", &table.heads, &table.rows));
        list(&mut text, table.notes.into_iter());
        if let Some(named) = theirs::named(workload.name(), group) {
            let rows = named.rows();
            let _ = writeln!(
                text,
                "<div class=\"theirs\"><p class=\"note\">{}</p>\n{}</div>",
                escape(&named.caveat()),
                grid("figures", &rows[0], &rows[1..])
            );
        }
    }
    if fold {
        text.push_str("</details>\n");
    }
    for drawn in svg::pictures(records, workload, asked, topology) {
        let _ = writeln!(
            text,
            "<figure role=\"img\" aria-label=\"{}\">{}<figcaption>{}</figcaption></figure>",
            escape(&format!("{} {}", workload.name(), drawn.kind)),
            drawn.svg.trim(),
            escape(&drawn.caption)
        );
    }
    text.push_str(&beside(workload, &all));
    text.push_str(&spreads(view, &all));
    let skipped = out.iter().filter(|out| out.status == Status::Skipped);
    list(
        &mut text,
        skipped.map(|out| format!("skipped: {}: {}", out.variants, out.why)),
    );
    text.push_str("</section>\n");
    text
}

/// A long sweep in one table.
fn matrix(workload: Workload, view: &View, sweep: &Sweep<'_>, reference: &str) -> String {
    let matrix = Matrix::of(workload, view, sweep, reference, false);
    let what = sweep.what();
    let colon = if what.is_empty() { "" } else { ": " };
    format!(
        "<h4>Over {}{colon}{}</h4>\n<p class=\"note\">Medians, and the change against {}.</p>\n{}",
        escape(sweep.over.unwrap_or("threads")),
        escape(&what),
        escape(reference),
        grid("figures", &matrix.heads, &matrix.rows)
    )
}

fn list(text: &mut String, lines: impl Iterator<Item = String>) {
    let mut lines = lines.peekable();
    if lines.peek().is_none() {
        return;
    }
    text.push_str("<ul class=\"note\">");
    for line in lines {
        let _ = write!(text, "<li>{}</li>", escape(&line));
    }
    text.push_str("</ul>\n");
}

/// The published table of the workload beside what was measured here, for each sweep that it is comparable with.
fn beside(workload: Workload, all: &Judgement) -> String {
    let mut text = String::new();
    let view = &workload.kind().view;
    for sweep in sweeps(&all.groups, view.plot.over) {
        let theirs = theirs::of(workload.name(), &sweep);
        let Some(theirs) = theirs.filter(|theirs| theirs.reference == all.reference) else {
            continue;
        };
        let heads = [
            sweep.axis(view).to_owned(),
            format!("theirs, {}", theirs.machine),
            format!("here, {}", theirs.variant),
        ];
        let row = |&(place, percent): &(u64, f64)| {
            let mut groups = sweep.groups.iter();
            let here = groups
                .find(|group| sweep.place(group) == place)
                .and_then(|group| group.point(theirs.variant)?.judged.change());
            let published = change(1.0 + percent / 100.0);
            vec![
                place.to_string(),
                match theirs.figure(place) {
                    Some(figure) => format!("{}, {published}", (view.plot.format)(figure)),
                    None => published,
                },
                here.unwrap_or_else(|| "-".to_owned()),
            ]
        };
        let rows: Vec<Vec<String>> = theirs.speedup.iter().map(row).collect();
        let what = sweep.what();
        let comma = if what.is_empty() { "" } else { ", " };
        let _ = writeln!(
            text,
            "<div class=\"theirs\"><h4>Theirs beside: {} against {}{comma}{}</h4>\n<p class=\"note\">{}</p>\n{}</div>",
            escape(theirs.variant),
            escape(theirs.reference),
            escape(&what),
            escape(&theirs.caveat(sweep.point())),
            grid("figures", &heads, &rows)
        );
    }
    text
}

/// Counts of the threads of a run, where its record has them: `thread_ops` as a list of numbers, or `per_thread` as a
/// list of objects with `ops`.
fn thread_counts(record: &Record) -> Option<Vec<f64>> {
    let list = ["thread_ops", "per_thread"]
        .iter()
        .find_map(|key| record.params.get(*key)?.as_array())?;
    let count = |value: &Value| value.as_f64().or_else(|| value.get("ops")?.as_f64());
    list.iter().map(count).collect()
}

/// How far runs, and threads of a run, lie apart: each under its own name.
fn spreads(view: &View, all: &Judgement) -> String {
    let percent = |share: Option<f64>| {
        share.map_or("-".to_owned(), |share| format!("{:.2} %", share * 100.0))
    };
    let row = |title: &str, point: &Point| {
        let rates = point.runs(Point::rate);
        let threads: Vec<f64> = point
            .records()
            .iter()
            .filter_map(|record| relative_sem(&thread_counts(record)?))
            .collect();
        let interval = point.judged.interval.map_or("-".to_owned(), |interval| {
            format!(
                "{} - {}",
                (view.plot.format)(interval.low),
                (view.plot.format)(interval.high)
            )
        });
        let median_of = point.judged.median.map(view.plot.format);
        vec![
            point.variant.clone(),
            title.to_owned(),
            rates.len().to_string(),
            median_of.unwrap_or_else(|| "-".to_owned()),
            interval,
            percent(relative_sd(&rates)),
            percent(relative_sem(&rates)),
            percent(median(&threads)),
        ]
    };
    let rows: Vec<Vec<String>> = all
        .groups
        .iter()
        .flat_map(|group| {
            let title = group.title(view);
            group.points.iter().map(move |point| row(&title, point))
        })
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let heads = [
        "variant",
        "point",
        "runs",
        "median",
        judge::intervals(&all.groups).unwrap_or("interval"),
        "sd_runs",
        "sem_runs",
        "sem_threads",
    ]
    .map(str::to_owned);
    format!(
        "<details><summary>Spreads of {}</summary>\n<p class=\"note\">Of the workload's main figure: median and its \
         interval. Of the rates: sd_runs, the standard deviation over runs; sem_runs, the standard error of their mean; \
         sem_threads, the standard error over the threads of one run (median over the runs), which says nothing about \
         how runs differ. All in per cent of the mean.</p>\n{}</details>\n",
        human::plural(rows.len(), "point"),
        grid("figures", &heads, &rows)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::record::tests::sample;
    use serde_json::json;

    #[test]
    fn threads_and_runs_are_told_apart() {
        let mut records: Vec<Record> = [8, 10, 12]
            .iter()
            .enumerate()
            .map(|(run, &ops)| sample(Workload::Read, "hp", 2, run, ops))
            .collect();
        records[0].set("thread_ops", json!([90, 100, 110]));
        records[1].set(
            "per_thread",
            json!([{ "ops": 90 }, { "ops": 100 }, { "ops": 110 }]),
        );
        let text = section(&records, Workload::Read, None, None, "x");
        // sd 2 of 10; over the square root of 3; threads: sd 10 of 100, over the same.
        for share in ["20.00 %", "11.55 %", "5.77 %"] {
            assert!(text.contains(share), "{share}: {text}");
        }
    }

    #[test]
    fn failures_are_red_and_skips_have_reasons() {
        let mut failed = sample(Workload::Read, "broken", 1, 0, 1);
        failed.judge(3);
        let mut skipped = sample(Workload::Read, "hp", 1, 0, 1);
        skipped.status = Status::Skipped;
        skipped.remark("no <rung>");
        let text = section(&[failed, skipped], Workload::Read, None, None, "x");
        assert!(text.contains("class=\"failed\">FAILED"), "{text}");
        assert!(text.contains("broken: 3 reads met a dead object"), "{text}");
        assert!(text.contains("skipped: hp: no &lt;rung&gt;"), "{text}");
        assert!(!text.contains("<figure"), "a failed run is in no picture");
    }
}
