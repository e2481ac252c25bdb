//! Floor 3, bench-suite. Owns `hpbench compare A B`: the same points in two files of records, with a verdict each.
//! May read the two files; measures nothing.
//!
//! The estimate is the ratio of the medians of the rates, B to A, with the interval of `bootstrap`. *Faster* and
//! *slower* are said where it leaves out 1, the ratio is further from it than noise, and Holm's correction over all
//! points of the files lets it count; of too few runs nothing is said. A limit that nothing could go beyond, because there
//! are too few runs, is a usage error and not a pass.

use super::bootstrap::{Ratio, Verdict, called, can_decide, needed, verdicts};
use super::facts::identity;
use super::record::{Record, Status};
use super::stats::median;
use super::summary::Apart;
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

/// What tells points apart beside workload, variant and threads.
const KEYS: [&str; 6] = ["readers", "writers", "hold_ns", "idle", "pin", "point"];

/// Rates of the runs of each point.
type Rates = BTreeMap<Point, Vec<f64>>;

/// The runs of a file that have a rate.
fn read(path: &Path) -> Result<Vec<Record>, Trouble> {
    let usage = |why: String| Trouble::Usage(format!("{}: {why}", path.display()));
    let text = fs::read_to_string(path).map_err(|error| usage(error.to_string()))?;
    let mut records = Vec::new();
    for (n, line) in text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.is_empty())
    {
        let record = Record::parse(line).map_err(|why| usage(format!("line {}: {why}", n + 1)))?;
        if record.status == Status::Ok && record.ops_per_s > 0.0 {
            records.push(record);
        }
    }
    if records.is_empty() {
        return Err(usage("no run in it has a rate".to_owned()));
    }
    Ok(records)
}

/// A machine: its name, and what tells it from others of that name.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Made<'a> {
    name: &'a str,
    id: Option<&'a str>,
}

impl Made<'_> {
    fn of(record: &Record) -> Made<'_> {
        Made {
            name: record.text("machine").unwrap_or("unknown machine"),
            id: record.text("machine_id"),
        }
    }

    /// Where one of them has no more than a name, that decides.
    fn same(&self, other: &Self) -> bool {
        match (self.id, other.id) {
            (Some(one), Some(other)) => one == other,
            _ => self.name == other.name,
        }
    }
}

/// The machines of some runs, sorted.
fn machines(records: &[Record]) -> Vec<Made<'_>> {
    let mut all: Vec<Made<'_>> = Vec::new();
    for made in records.iter().map(Made::of) {
        if !all.iter().any(|known| known.same(&made)) {
            all.push(made);
        }
    }
    all.sort();
    all
}

fn names(machines: &[Made<'_>]) -> String {
    let name = |made: &Made<'_>| match made.id {
        Some(id) => format!("{} ({id})", made.name),
        None => made.name.to_owned(),
    };
    machines.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// `apart`: what differs within one of the files. The machine, where a file has `several`.
fn point(record: &Record, apart: &[&Apart], several: bool) -> Point {
    let mut more: Vec<String> = KEYS
        .iter()
        .filter_map(|key| Some(format!("{key}={}", record.params.get(*key)?)))
        .collect();
    for words in apart.iter().map(|apart| apart.words(record)) {
        if !words.is_empty() && !more.contains(&words) {
            more.push(words);
        }
    }
    if several {
        more.push(format!("machine={}", identity(record).unwrap_or_default()));
    }
    (
        record.workload.name().to_owned(),
        record.variant.clone(),
        record.threads,
        more.join(" "),
    )
}

/// Both sides, point by point.
fn rates(a: &[Record], b: &[Record], several: bool) -> (Rates, Rates) {
    let (of_a, of_b) = (Apart::of(a), Apart::of(b));
    let side = |records: &[Record]| {
        let mut rates = Rates::new();
        for record in records {
            let point = point(record, &[&of_a, &of_b], several);
            rates.entry(point).or_default().push(record.ops_per_s);
        }
        rates
    };
    (side(a), side(b))
}

/// Why no point could be told to be slower: `a` and `b` are the runs of each point on both sides.
fn too_few(points: &[(usize, usize)]) -> Option<String> {
    let family = points.iter().filter(|&&(a, b)| can_decide(a, b, 1)).count();
    if points.iter().any(|&(a, b)| can_decide(a, b, family.max(1))) {
        return None;
    }
    let (most_a, most_b) = (
        points.iter().map(|runs| runs.0).max()?,
        points.iter().map(|runs| runs.1).max()?,
    );
    Some(format!(
        "--fail-if needs {} runs of each point to decide {}, in both files; there are {most_a} and {most_b}",
        needed(points.len()),
        super::human::plural(points.len(), "point"),
    ))
}

/// The same before anything is measured: `planned` are records without results.
pub(crate) fn cannot_fail(saved: &[Record], planned: &[Record], runs: usize) -> Option<String> {
    let ran = |record: &&Record| record.status == Status::Ok && record.ops_per_s > 0.0;
    let saved: Vec<Record> = saved.iter().filter(ran).cloned().collect();
    let (a, b) = rates(&saved, planned, false);
    let common = |(point, rates): (&Point, &Vec<f64>)| Some((b.get(point)?, rates.len()).1);
    let points: Vec<_> = a.iter().filter_map(common).map(|n| (n, runs)).collect();
    too_few(&points)
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
    let (on_a, on_b) = (machines(&a), machines(&b));
    let all_in = |some: &[Made<'_>], others: &[Made<'_>]| {
        some.iter()
            .all(|one| others.iter().any(|other| one.same(other)))
    };
    let same = all_in(&on_a, &on_b) && all_in(&on_b, &on_a);
    let several = on_a.len().max(on_b.len()) > 1;
    if !same && !ask.force {
        return Err(Trouble::Usage(format!(
            "the files are from different machines ({} and {}); --force compares them all the same",
            names(&on_a),
            names(&on_b)
        )));
    }
    if !same && several {
        return Err(Trouble::Usage(format!(
            "a file is from several machines ({} and {}): they have no common median",
            names(&on_a),
            names(&on_b)
        )));
    }
    let (a, b) = rates(&a, &b, several);
    let common: Vec<_> = a
        .iter()
        .filter_map(|(point, rates)| Some((point, rates, b.get(point)?)))
        .collect();
    let mut alone = a.len() - common.len();
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
    let interval = called(ratios.iter().map(|ratio| ratio.runs)).unwrap_or("interval");
    let heads = ["point", "A", "B", "B / A", interval, "runs", "verdict"];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    let runs: Vec<_> = judged
        .iter()
        .map(|(_, a, b, _)| (a.len(), b.len()))
        .collect();
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
    alone += b.keys().filter(|point| !a.contains_key(*point)).count();
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
    if let Some(why) = ask.fail_if.and_then(|_| too_few(&runs)) {
        return Err(Trouble::Usage(why));
    }
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
