//! Floor 3, bench-suite. Owns `hpbench model --validate`: what the model says of runs of `lazy-mm think`, beside what was
//! measured. May read records.
//!
//! A thread of `think` goes round the model's network with nothing shared but the line of the count: r = 0, f = 1. Its
//! think time Z is what an operation of `hp-asym` takes alone, from the same file, since that is all of an operation but
//! the count. So with one thread the model only adds the cost of the count's own instructions; with more, it predicts.
//! How many transfers an operation needs is not known from the code: a grab and a drop are two locked instructions on one
//! line, which nobody may take in between (n = 1) or somebody may (n = 2). Both are shown.
//!
//! The think time is constant and the model's is exponential, transfers are ping-pong between two and threads keep a line
//! for bursts: misses are to be expected, and are what this is for.

use super::LABEL;
use super::lazy::{Params, predict};
use super::machine::Description;
use crate::published::show::columns;
use crate::report::facts::by_machine;
use crate::report::human;
use crate::report::record::{Record, Status};
use crate::report::stats::median;
use crate::report::summary::Apart;
use crate::trouble::Trouble;
use crate::workloads::Workload;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// The two that are compared.
const COUNTED: &str = "refcount";
const FREE: &str = "hp-asym";

/// A miss is small below so many percentage points, or this share of the effect.
const SMALL_PP: f64 = 2.0;
const SMALL_SHARE: f64 = 0.1;

/// Transfers an operation.
const TRANSFERS: [f64; 2] = [1.0, 2.0];

/// One think time and number of threads.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    think_ns: u64,
    threads: usize,
    /// What else the runs were made with: how often the mm was replaced, and what differs within the file.
    conditions: String,
    /// Runs of the one with fewer.
    runs: usize,
    /// Z.
    alone_ns: f64,
    measured_pct: f64,
    /// For one and for two transfers an operation.
    predicted_pct: [f64; 2],
    /// Model − measured.
    residual_pp: [f64; 2],
}

impl Row {
    fn is_small(&self, which: usize) -> bool {
        let allowed = SMALL_PP.max(SMALL_SHARE * self.measured_pct.abs());
        self.residual_pp[which].abs() <= allowed
    }
}

/// All of a file.
#[derive(Debug, Serialize)]
pub(super) struct Validation {
    what: &'static str,
    machine: Description,
    /// Where the records were made.
    measured_on: Vec<String>,
    rows: Vec<Row>,
    /// Points that are not compared, and why.
    left_out: Vec<String>,
}

/// The records of `think` in a file.
fn read(path: &Path) -> Result<Vec<Record>, Trouble> {
    let shown = path.display();
    let trouble = |why: String| Trouble::Usage(format!("--validate {shown}: {why}"));
    let text = std::fs::read_to_string(path)
        .map_err(|error| trouble(format!("cannot be read: {error}")))?;
    let mut records = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let record =
            Record::parse(line).map_err(|why| trouble(format!("line {}: {why}", index + 1)))?;
        if record.workload == Workload::Think && record.status == Status::Ok {
            records.push(record);
        }
    }
    if records.is_empty() {
        return Err(trouble(
            "no finished runs of think (hpbench lazy-mm think --variants refcount,hp-asym --json FILE)"
                .to_owned(),
        ));
    }
    Ok(records)
}

/// Predicts each point of `path`.
pub(super) fn validate(path: &Path, machine: Description) -> Result<Validation, Trouble> {
    let records = read(path)?;
    let machines = by_machine(&records);
    if machines.len() > 1 {
        return Err(Trouble::Usage(format!(
            "--validate {}: the runs are from {} machines, which have no common median; give one machine's",
            path.display(),
            machines.len()
        )));
    }
    let validation = compare(&records, machine);
    if validation.rows.is_empty() {
        return Err(Trouble::Usage(format!(
            "--validate {}: {}",
            path.display(),
            validation.left_out.join("; ")
        )));
    }
    Ok(validation)
}

/// The replacement of the mm, and what differs within the file.
fn conditions(record: &Record, apart: &Apart) -> String {
    let swap = record.number("swap_ms").map(|ms| format!("swap {ms} ms"));
    let words = swap.into_iter().chain([apart.words(record)]);
    words
        .filter(|words| !words.is_empty())
        .collect::<Vec<_>>()
        .join(", ")
}

fn compare(records: &[Record], machine: Description) -> Validation {
    type Rates<'a> = BTreeMap<(u64, usize, String), BTreeMap<&'a str, Vec<f64>>>;
    let mut rates = Rates::new();
    let mut measured_on = Vec::new();
    let apart = Apart::of(records);
    for record in records {
        let think = record.number("think_ns").unwrap_or(0.0) as u64;
        let variants = rates
            .entry((think, record.threads, conditions(record, &apart)))
            .or_default();
        let runs = variants.entry(record.variant.as_str()).or_default();
        runs.push(record.ops_per_s);
        if let Some(machine) = record.text("machine")
            && !measured_on.iter().any(|seen| seen == machine)
        {
            measured_on.push(machine.to_owned());
        }
    }
    // Runs that did nothing tell nothing.
    let rate = |point: &(u64, usize, String), variant: &str| {
        median(rates.get(point)?.get(variant)?).filter(|&rate| rate > 0.0)
    };
    let (mut rows, mut left_out) = (Vec::new(), Vec::new());
    for (point, variants) in &rates {
        let (think_ns, threads, conditions) = point;
        let (&think_ns, &threads) = (think_ns, threads);
        let mut name = format!("Z = {think_ns} ns, {}", human::plural(threads, "thread"));
        if !conditions.is_empty() {
            name.push_str(&format!(", {conditions}"));
        }
        let (Some(counted), Some(free)) = (rate(point, COUNTED), rate(point, FREE)) else {
            left_out.push(format!("{name}: needs runs of {COUNTED} and of {FREE}"));
            continue;
        };
        let Some(alone) = rate(&(think_ns, 1, conditions.clone()), FREE) else {
            left_out.push(format!(
                "{name}: needs a run of {FREE} with one thread, for Z"
            ));
            continue;
        };
        if threads > machine.cores() {
            left_out.push(format!(
                "{name}: more than the machine's {} cores, where threads wait for each other and not for the line",
                machine.cores()
            ));
            continue;
        }
        let alone_ns = 1e9 / alone;
        let measured_pct = (free / counted - 1.0) * 100.0;
        let predicted_pct = TRANSFERS.map(|transfers| {
            let params = Params {
                think_ns: alone_ns,
                transfers,
                shared: 0.0,
                idle: Vec::new(),
                ..Params::of(&machine)
            };
            predict(&params, threads).speedup_pct
        });
        rows.push(Row {
            think_ns,
            threads,
            conditions: conditions.clone(),
            runs: variants[COUNTED].len().min(variants[FREE].len()),
            alone_ns,
            measured_pct,
            predicted_pct,
            residual_pp: predicted_pct.map(|predicted| predicted - measured_pct),
        });
    }
    Validation {
        what: LABEL,
        machine,
        measured_on,
        rows,
        left_out,
    }
}

/// The table.
pub(super) fn show(found: &Validation) -> String {
    let cost = &found.machine.transfer_ns;
    let mut text = format!(
        "{LABEL}; only the column that says so was measured\nlazy-mm think: speedup of {FREE} over {COUNTED}; r = 0, f = 1, Z = what an operation of {FREE} takes alone\nmachine of the model: {} (own line {} ns{})\nmachine of the runs: {}\n\n",
        found.machine.name,
        human::digits(cost.core.value),
        cost.ccx.map_or(String::new(), |ccx| format!(
            ", same cache {} ns",
            human::digits(ccx.value)
        )),
        match found.measured_on.as_slice() {
            [] => "not told".to_owned(),
            all => all.join(" and "),
        },
    );
    let heading = [
        "think ns",
        "threads",
        "runs",
        "Z ns",
        "measured %",
        "model % (n = 1)",
        "model % (n = 2)",
        "residuals pp",
        "conditions",
    ];
    let signed = |value: f64| format!("{:+.1}", (value * 10.0).round() / 10.0 + 0.0);
    let mut table = vec![heading.map(str::to_owned).to_vec()];
    for row in &found.rows {
        table.push(vec![
            row.think_ns.to_string(),
            row.threads.to_string(),
            row.runs.to_string(),
            human::digits(row.alone_ns),
            signed(row.measured_pct),
            signed(row.predicted_pct[0]),
            signed(row.predicted_pct[1]),
            row.residual_pp.map(signed).join(", "),
            row.conditions.clone(),
        ]);
    }
    text.push_str(&columns(&table));
    for (which, transfers) in TRANSFERS.iter().enumerate() {
        let small = found.rows.iter().filter(|row| row.is_small(which)).count();
        text.push_str(&format!(
            "  n = {transfers}: {small} of {} points within {SMALL_PP} pp or {} % of the effect\n",
            found.rows.len(),
            SMALL_SHARE * 100.0
        ));
    }
    text.push_str("  residual = model - measured. With one thread nothing is shared, and the model only adds the count's own cost to Z.\n");
    for why in &found.left_out {
        text.push_str(&format!("  left out: {why}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::record::tests::sample;

    fn run(variant: &str, think_ns: u64, threads: usize, ops: u64) -> Record {
        let mut record = sample(Workload::Think, variant, threads, 0, ops);
        record.set("think_ns", think_ns);
        record.set("machine", "here");
        record
    }

    /// Runs made by the model itself are predicted without a miss.
    #[test]
    fn what_the_model_would_do_is_what_it_predicts() {
        let machine = Description::seed004();
        let alone = 1_000_000;
        let params = Params {
            think_ns: 1e9 / alone as f64,
            transfers: 2.0,
            shared: 0.0,
            idle: Vec::new(),
            ..Params::of(&machine)
        };
        let mut records = Vec::new();
        for threads in [1, 2, 48] {
            let says = predict(&params, threads);
            for (variant, rate) in [(FREE, says.free_per_s), (COUNTED, says.counted_per_s)] {
                records.push(run(variant, 1000, threads, rate.round() as u64));
            }
        }
        let found = compare(&records, machine);
        assert_eq!(found.rows.len(), 3);
        assert!(found.left_out.is_empty() && found.measured_on == ["here"]);
        for row in &found.rows {
            assert!(row.residual_pp[1].abs() < 0.01, "{row:?}");
            assert!(row.residual_pp[0] < -0.1, "{row:?}");
            assert!(row.is_small(1));
        }
        assert!(!found.rows[2].is_small(0), "{found:?}");
        let text = show(&found);
        assert!(text.starts_with(LABEL));
        assert!(text.contains("n = 2: 3 of 3 points"), "{text}");
    }

    #[test]
    fn replacements_are_points_of_their_own() {
        let mut records = Vec::new();
        for (swap, free) in [(1, 100), (10, 300)] {
            for (variant, ops) in [(FREE, free), (COUNTED, 50)] {
                let mut record = run(variant, 0, 1, ops);
                record.set("swap_ms", f64::from(swap));
                records.push(record);
            }
        }
        let found = compare(&records, Description::seed004());
        let rows: Vec<_> = found
            .rows
            .iter()
            .map(|row| row.measured_pct.round())
            .collect();
        assert_eq!(rows, [100.0, 500.0]);
        let text = show(&found);
        assert!(
            text.contains("swap 1 ms") && text.contains("swap 10 ms"),
            "{text}"
        );
    }

    #[test]
    fn machines_are_not_mixed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.jsonl");
        let mut records = [run(FREE, 0, 1, 100), run(COUNTED, 0, 1, 50)];
        records[1].set("machine", "there");
        let lines: String = records.iter().map(Record::to_line).collect();
        std::fs::write(&path, lines).unwrap();
        let trouble = validate(&path, Description::seed004()).unwrap_err();
        assert_eq!(trouble.code(), 2);
        assert!(trouble.to_string().contains("2 machines"), "{trouble}");
    }

    #[test]
    fn points_without_a_partner_are_left_out() {
        let records = [
            run(FREE, 0, 1, 100),
            run(COUNTED, 0, 1, 50),
            run(FREE, 5, 1, 100),
            run(FREE, 7, 2, 100),
            run(COUNTED, 7, 2, 100),
            run(FREE, 0, 999, 100),
            run(COUNTED, 0, 999, 100),
        ];
        let found = compare(&records, Description::seed004());
        assert_eq!(found.rows.len(), 1);
        assert!((found.rows[0].measured_pct - 100.0).abs() < 1e-9);
        let why = found.left_out.join("\n");
        for words in ["needs runs of refcount", "for Z", "192 cores"] {
            assert!(why.contains(words), "{why}");
        }
    }
}
