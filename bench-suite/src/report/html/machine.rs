//! Floor 3, bench-suite. Owns what the page says before the figures: the machine, what it cannot show, how it was
//! measured, and the command. Touches records only.

use super::super::facts::Facts;
use super::super::record::{Record, Status};
use super::super::theirs::LARGE;
use super::{escape, pairs};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The words on one machine and its runs.
pub(super) fn section(facts: &Facts, records: &[Record]) -> String {
    let mut text = banner(facts);
    let _ = write!(text, "<p>{}</p>\n<h4>Machine</h4>\n", escape(&facts.name));
    let rows = pairs("pairs", &facts.rows);
    if facts.rows.len() > 26 {
        let _ = write!(
            text,
            "<details><summary>{} facts</summary>\n{rows}</details>\n",
            facts.rows.len()
        );
    } else {
        text.push_str(&rows);
    }
    text.push_str("<h4>How it was measured</h4>\n");
    text.push_str(&pairs("pairs", &measurement(records)));
    let commands: BTreeSet<&str> = records.iter().filter_map(|r| r.text("command")).collect();
    if !commands.is_empty() {
        text.push_str("<p>The same again, in a checkout with <code>cargo run --release --</code> for <code>hpbench</code>:</p>\n<pre>");
        for command in commands {
            text.push_str(&escape(command));
            text.push('\n');
        }
        text.push_str("</pre>\n");
    }
    text
}

/// What is out of reach of a small machine.
fn banner(facts: &Facts) -> String {
    let theirs = format!(
        "the published table (seed004, theirs) is from a machine with {}",
        LARGE.words()
    );
    let text = match facts.topology {
        Some(here) if here.smaller_than(LARGE) => format!(
            "This machine cannot show the knee: it has {}, while {theirs}.",
            here.words()
        ),
        Some(_) => return String::new(),
        None => format!(
            "Whether this machine can show the knee is unknown, the records do not say how large it is; {theirs}. \
             Taken as one that cannot show the knee."
        ),
    };
    format!("<p class=\"banner\">{}</p>\n", escape(&text))
}

/// What was asked for, where it is the same in all runs or takes few values.
fn measurement(records: &[Record]) -> Vec<(String, String)> {
    let mut runs: BTreeMap<(&str, &str, usize, &str), usize> = BTreeMap::new();
    for record in records.iter().filter(|r| r.status != Status::Skipped) {
        let point = record.text("point").unwrap_or_default();
        let key = (
            record.workload.name(),
            record.variant.as_str(),
            record.threads,
            point,
        );
        let most = runs.entry(key).or_default();
        *most = (*most).max(record.run + 1);
    }
    let few = |values: BTreeSet<String>| match values.len() {
        0 => None,
        1..=6 => Some(values.into_iter().collect::<Vec<_>>().join(", ")),
        n => Some(format!("{n} different values")),
    };
    let param = |key: &str, show: fn(&Value) -> Option<String>| {
        let values = records.iter().filter_map(|r| r.params.get(key));
        few(values.filter_map(show).collect())
    };
    let seconds = |value: &Value| match value.as_f64()? {
        0.0 => Some("0".to_owned()),
        s => Some(crate::report::human::nanoseconds(s * 1e9)),
    };
    let time = |value: &Value| match value.as_f64()? {
        0.0 => Some("as long as its work takes".to_owned()),
        s => Some(crate::report::human::nanoseconds(s * 1e9)),
    };
    let plain = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Null => None,
        other => Some(other.to_string()),
    };
    let repetitions = few(runs.values().map(ToString::to_string).collect());
    [
        ("runs of each point", repetitions),
        ("measured time of a run", param("time_s", time)),
        ("warm-up before", param("warmup_s", seconds)),
        (
            "order",
            Some("interleaved: each repetition of all points in a random order drawn from the seed; every run a process of its own".to_owned()),
        ),
        ("seed", param("seed", plain)),
        ("pinning", param("pin", plain)),
        ("rungs in use", param("rung", plain)),
        ("build", param("build", plain)),
        ("windows", param("window_s", seconds)),
        (
            "shortened (not for claims)",
            param("quick", |value| value.as_bool()?.then(|| "yes".to_owned())),
        ),
        (
            "intervals",
            Some("95 %, percentile bootstrap over runs; of fewer than 5 runs their range. Verdicts: beyond 1 %, the interval leaves out 1, and Holm's correction over all points of the workload lets it count; of 3 runs against 3 none, of many points more runs are needed".to_owned()),
        ),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name.to_owned(), value?)))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::record::tests::sample;
    use crate::report::theirs::Topology;
    use crate::workloads::Workload;

    #[test]
    fn the_banner_has_the_numbers() {
        let facts = |topology| Facts {
            name: "x".to_owned(),
            topology,
            rows: Vec::new(),
        };
        let small = Topology {
            sockets: 1,
            cores: 2,
            cpus: 4,
        };
        let text = banner(&facts(Some(small)));
        assert!(text.contains("cannot show the knee: it has 1 socket, 2 cores and 4 CPUs"));
        assert_eq!(banner(&facts(Some(LARGE))), "");
        assert!(banner(&facts(None)).contains("unknown"));
    }

    #[test]
    fn how_it_was_measured() {
        let records: Vec<Record> = (0..3)
            .map(|run| sample(Workload::Read, "hp", 1, run, 10))
            .collect();
        let rows = measurement(&records);
        let value = |name: &str| &rows.iter().find(|row| row.0 == name).unwrap().1;
        assert_eq!(value("runs of each point"), "3");
        assert_eq!(value("measured time of a run"), "1.00 s");
        assert_eq!(value("seed"), "9");
        assert!(rows.iter().all(|row| !row.0.contains("shortened")));
    }
}
