//! Floor 3, bench-suite. Owns `hpbench compare A B`: the same points in two files of records, with a verdict each.
//! May read the two files; measures nothing.
//!
//! The estimate is the ratio of the medians of the rates, B to A, with the interval of `bootstrap`. *Faster* and
//! *slower* are said where it leaves out 1, the ratio is further from it than noise, and Holm's correction over all
//! points of the files lets it count; of fewer than three runs nothing is said.

use super::bootstrap::{Ratio, Verdict, verdicts};
use super::record::{Record, Status};
use super::stats::median;
use super::table;
use crate::trouble::Trouble;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// What to compare.
#[derive(Debug, clap::Args)]
pub(crate) struct Ask {
    /// Records to compare with (JSONL of --json or --resume)
    a: PathBuf,
    /// Records to judge
    b: PathBuf,
    /// Compare records of different machines, too
    #[arg(long)]
    force: bool,
    /// Exit with 1 if a point of B is slower by more than this, like '>5%'
    #[arg(long, value_name = ">N%", value_parser = limit)]
    fail_if: Option<f64>,
}

impl Ask {
    /// As another command asks.
    pub(crate) fn of(a: &Path, b: &Path, force: bool, fail_if: Option<f64>) -> Self {
        let (a, b) = (a.to_owned(), b.to_owned());
        Ask {
            a,
            b,
            force,
            fail_if,
        }
    }
}

/// `>5%` as 0.05.
pub(crate) fn limit(text: &str) -> Result<f64, String> {
    let number = text
        .strip_prefix('>')
        .and_then(|text| text.strip_suffix('%'))
        .and_then(|text| text.trim().parse::<f64>().ok());
    match number {
        Some(percent) if (0.0..=100.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("not a limit (like '>5%')".to_owned()),
    }
}

/// What a point is, in words that sort.
type Point = (String, String, usize, String);

/// Rates of the runs of each point, and the machines they are from.
struct Side {
    rates: BTreeMap<Point, Vec<f64>>,
    machines: Vec<String>,
}

fn read(path: &Path) -> Result<Side, Trouble> {
    let usage = |why: String| Trouble::Usage(format!("{}: {why}", path.display()));
    let text = fs::read_to_string(path).map_err(|error| usage(error.to_string()))?;
    let mut side = Side {
        rates: BTreeMap::new(),
        machines: Vec::new(),
    };
    for (n, line) in text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.is_empty())
    {
        let record = Record::parse(line).map_err(|why| usage(format!("line {}: {why}", n + 1)))?;
        if record.status != Status::Ok || record.ops_per_s <= 0.0 {
            continue;
        }
        let machine = record
            .text("machine")
            .unwrap_or("unknown machine")
            .to_owned();
        if !side.machines.contains(&machine) {
            side.machines.push(machine);
        }
        let more = ["readers", "writers", "hold_ns", "idle", "pin", "point"]
            .iter()
            .filter_map(|key| {
                record
                    .params
                    .get(*key)
                    .map(|value| format!("{key}={value}"))
            })
            .collect::<Vec<_>>()
            .join(" ");
        let point = (
            record.workload.name().to_owned(),
            record.variant.clone(),
            record.threads,
            more,
        );
        side.rates.entry(point).or_default().push(record.ops_per_s);
    }
    side.machines.sort();
    if side.rates.is_empty() {
        return Err(usage("no run in it has a rate".to_owned()));
    }
    Ok(side)
}

/// The subcommand: what to print, and whether a point is slower than allowed.
pub(crate) fn command(ask: &Ask) -> Result<(), Trouble> {
    tell(ask, crate::command::say)
}

/// The same to where `say` goes.
pub(crate) fn tell(
    ask: &Ask,
    say: impl FnOnce(&str) -> Result<(), Trouble>,
) -> Result<(), Trouble> {
    let (a, b) = (read(&ask.a)?, read(&ask.b)?);
    if a.machines != b.machines && !ask.force {
        return Err(Trouble::Usage(format!(
            "the files are from different machines ({} and {}); --force compares them all the same",
            a.machines.join(", "),
            b.machines.join(", ")
        )));
    }
    let mut rows = vec![
        [
            "point",
            "A",
            "B",
            "B / A",
            "95 % interval",
            "runs",
            "verdict",
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    let common: Vec<_> = a
        .rates
        .iter()
        .filter_map(|(point, rates)| Some((point, rates, b.rates.get(point)?)))
        .collect();
    let mut alone = a.rates.len() - common.len();
    let judged: Vec<_> = common
        .iter()
        .filter_map(|&(point, rates, others)| {
            Some((
                point,
                rates,
                others,
                Ratio::of(rates, others, common.len())?,
            ))
        })
        .collect();
    let ratios: Vec<Ratio> = judged.iter().map(|&(.., ratio)| ratio).collect();
    let mut worst: Option<(f64, String)> = None;
    for ((point, rates, others, ratio), verdict) in judged.into_iter().zip(verdicts(&ratios)) {
        let (workload, variant, threads, more) = point;
        let name = format!("{workload} {variant}, {threads} threads ({more})");
        let rate = |rates: &[f64]| median(rates).map_or(String::new(), super::human::count);
        if verdict == Verdict::Slower
            && worst
                .as_ref()
                .is_none_or(|(least, _)| ratio.of_medians < *least)
        {
            worst = Some((ratio.of_medians, name.clone()));
        }
        rows.push(vec![
            name,
            rate(rates),
            rate(others),
            format!("{:.3}", ratio.of_medians),
            format!("{:.3} - {:.3}", ratio.interval.low, ratio.interval.high),
            format!("{}, {}", rates.len(), others.len()),
            verdict.name().to_owned(),
        ]);
    }
    alone += b
        .rates
        .keys()
        .filter(|point| !a.rates.contains_key(*point))
        .count();
    if rows.len() == 1 {
        return Err(Trouble::Usage(
            "the files have no point in common".to_owned(),
        ));
    }
    let mut text = table::align(&rows);
    if alone > 0 {
        text.push_str(&format!("  {alone} points are in one of the files only\n"));
    }
    say(&text)?;
    match (ask.fail_if, worst) {
        (Some(limit), Some((ratio, name))) if 1.0 - ratio > limit => Err(Trouble::Io(format!(
            "{name} is slower by {:.1} %, more than {:.1} %",
            (1.0 - ratio) * 100.0,
            limit * 100.0
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits() {
        assert_eq!(limit(">5%"), Ok(0.05));
        assert_eq!(limit(">0.5%"), Ok(0.005));
        for bad in ["5%", ">5", ">x%", "", ">-1%", ">nan%", ">101%"] {
            assert!(limit(bad).is_err(), "{bad}");
        }
    }
}
