//! Floor 3, bench-suite. Owns `hpbench model`: what queueing models of contention predict, beside what was published.
//! May touch the published numbers, a calibration and the terminal.
//!
//! | file | owns |
//! |---|---|
//! | `mva` | exact solution of closed queueing networks |
//! | `fit` | least squares, comparison of fits, bootstrap draws |
//! | `machine` | descriptions of machines |
//! | `lazy` | seed004: lazy-mm tracking against threads; [`predict`] |
//! | `bucket` | seed000: futex hash against buckets |
//! | `refcount` | seed002, seed003: one shared reference count |
//! | `validate` | runs of `lazy-mm think`, predicted and measured |
//! | `show`, `draw` | tables, SVG |
//!
//! The rule of this room: a prediction is labelled as one, in every table, file and picture.

mod bucket;
mod draw;
pub(crate) mod fit;
mod lazy;
mod machine;
mod mva;
mod refcount;
mod show;
mod validate;

use crate::calibrate::Calibration;
use crate::cli::Options;
use crate::command::say;
use crate::published;
use crate::report::sink::{Target, collide, not_an_input};
use crate::trouble::Trouble;
use clap::{Args, ValueEnum};
use lazy::{Bands, Explanation};
use lazy::{Params, Prediction, predict};
use machine::Description;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// What stands on everything that leaves this room.
pub(crate) const LABEL: &str = "PREDICTION of a model, not a measurement";

/// Bands of more replicates than this are a mistake.
const MOST_REPLICATES: u64 = 100_000;

/// Options of the command.
#[derive(Debug, Args)]
pub(crate) struct Ask {
    /// Whose costs: seed004, this (calibrated now), or a file (TOML, or of calibrate --json) [default: seed004]
    #[arg(long, value_name = "seed004|this|FILE")]
    machine: Option<String>,
    /// Which published table to predict
    #[arg(long, value_enum, default_value_t = Table::Seed004)]
    table: Table,
    /// Predict the runs of lazy-mm think in FILE (records of --json or --resume), and show both [machine: this]
    #[arg(long, value_name = "FILE", conflicts_with_all = ["table", "fit", "svg"])]
    validate: Option<PathBuf>,
    /// Fit the free numbers to the published points, and compare with other explanations
    #[arg(long)]
    fit: bool,
    /// Replicates behind the bands; 0 for none
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u64).range(0..=MOST_REPLICATES))]
    bootstrap: u64,
    /// The picture: theirs as points, ours as a line in its band
    #[arg(long, value_name = "FILE|-")]
    svg: Option<PathBuf>,
}

/// The published tables with a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Table {
    /// Futex hash against buckets
    Seed000,
    /// Reference count of the private futex hash
    Seed002,
    /// The same under schbench
    Seed003,
    /// Lazy-mm tracking against threads
    Seed004,
}

/// A row of the table of seed004.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Row {
    /// N, and what the model says.
    #[serde(flatten)]
    pub(crate) prediction: Prediction,
    /// Theirs.
    pub(crate) published_pct: Option<f64>,
    /// Ours − theirs, if theirs is of this machine.
    pub(crate) residual_pp: Option<f64>,
    /// 95 %, within the cores.
    pub(crate) band_pct: Option<(f64, f64)>,
}

/// The table of seed004, for one machine.
#[derive(Debug, Serialize)]
pub(crate) struct Speedups {
    /// The machine.
    pub(crate) machine: Description,
    /// Whether Z/n and r were fitted here.
    pub(crate) fitted: bool,
    /// What the predictions were made with.
    pub(crate) params: Params,
    /// One a number of threads.
    pub(crate) rows: Vec<Row>,
    /// How far the predictions can be trusted, as far as the draws tell.
    pub(crate) bands: Option<Bands>,
    /// The published points within the cores.
    pub(crate) points: Vec<lazy::Point>,
    /// The fit to them and its rivals.
    pub(crate) explanations: Vec<Explanation>,
}

#[derive(Serialize)]
struct Output<'a, T: Serialize> {
    what: &'static str,
    table: &'static str,
    seed: u64,
    published: &'a published::Source,
    prediction: T,
}

/// `hpbench model`.
pub(crate) fn command(ask: &Ask, options: &Options) -> Result<(), Trouble> {
    let lazy = ask.table == Table::Seed004;
    let own = ["--json", "--quick", "--threads"];
    let own = if lazy { &own[..] } else { &own[..2] };
    options.without_runs_but("model", own)?;
    if let Some(path) = &ask.validate {
        return check_against(path, ask, options);
    }
    let usage = |text: String| Err(Trouble::Usage(text));
    if ask.machine.is_some() && !lazy {
        return usage("--machine: only --table seed004 is predicted for other machines".to_owned());
    }
    if ask.fit && matches!(ask.table, Table::Seed002 | Table::Seed003) {
        return usage(
            "--fit: the tables seed002 and seed003 leave no number to fit: rows predict each other"
                .to_owned(),
        );
    }
    let dash = Some(Path::new("-"));
    if options.json.as_deref() == dash && ask.svg.as_deref() == dash {
        return usage("--json - and --svg - cannot share the standard output".to_owned());
    }
    if let (Some(json), Some(svg)) = (&options.json, &ask.svg)
        && collide(json, svg)
    {
        return usage("--json and --svg cannot write the same file".to_owned());
    }
    let costs: Vec<PathBuf> = ask.machine.iter().map(PathBuf::from).collect();
    for (option, path) in [("--json", &options.json), ("--svg", &ask.svg)] {
        path.as_deref()
            .map_or(Ok(()), |path| not_an_input(option, path, &costs))?;
    }
    let open = |option: &str, path: &Option<PathBuf>| {
        path.as_deref()
            .map(|path| Target::open(option, path))
            .transpose()
    };
    let (json, svg) = (open("--json", &options.json)?, open("--svg", &ask.svg)?);
    let quiet = options.json.as_deref() == dash || ask.svg.as_deref() == dash;
    let (text, data, picture) = match ask.table {
        Table::Seed004 => {
            let speedups = speedups(ask, options)?;
            (
                show::speedups(&speedups),
                output("seed004", options, &speedups),
                draw::speedups(&speedups),
            )
        }
        Table::Seed000 => {
            let buckets = bucket::compare(ask.fit, ask.bootstrap as usize, options.seed);
            (
                show::buckets(&buckets),
                output("seed000", options, &buckets),
                draw::buckets(&buckets),
            )
        }
        Table::Seed002 => refcounts(&refcount::hash(), options),
        Table::Seed003 => refcounts(&refcount::schbench(), options),
    };
    if !quiet {
        say(&text)?;
    }
    let mut files = Vec::new();
    for (target, content) in [(json, data), (svg, picture)] {
        if let Some(mut target) = target {
            target.put(&content)?;
            files.extend(target.finish()?);
        }
    }
    if files.is_empty() || quiet {
        return Ok(());
    }
    let list: String = files
        .iter()
        .map(|file| format!("  {}\n", file.display()))
        .collect();
    say(&format!("\nwritten:\n{list}"))
}

fn output(table: &'static str, options: &Options, prediction: &impl Serialize) -> String {
    let source = &published::find(table)
        .expect("a seed has its numbers")
        .source;
    let output = Output {
        what: LABEL,
        table,
        seed: options.seed,
        published: source,
        prediction,
    };
    let mut text = serde_json::to_string_pretty(&output).expect("numbers and words");
    text.push('\n');
    text
}

fn refcounts(found: &refcount::Refcounts, options: &Options) -> (String, String, String) {
    (
        show::refcounts(found),
        output(found.table, options, found),
        draw::refcounts(found),
    )
}

/// Published speedups and their threads.
fn theirs() -> Vec<lazy::Point> {
    let series = published::table("seed004", "speedup").series(0);
    series
        .into_iter()
        .map(|(threads, speedup)| (threads as usize, speedup))
        .collect()
}

/// What `--machine` says.
fn described(machine: &str, options: &Options) -> Result<Description, Trouble> {
    match machine {
        "seed004" => Ok(Description::seed004()),
        "this" => {
            let calibration = Calibration::measure(options.quick, options.seed, |_| ())?;
            Description::measured(&calibration)
                .map_err(|why| Trouble::Environment(format!("--machine this: {why}")))
        }
        path => Description::read(Path::new(path)),
    }
}

/// `--validate`.
fn check_against(path: &Path, ask: &Ask, options: &Options) -> Result<(), Trouble> {
    options.without_runs_but("model --validate", &["--json", "--quick"])?;
    if let Some(json) = &options.json {
        not_an_input("--json", json, &[path.to_owned()])?;
    }
    let machine = described(ask.machine.as_deref().unwrap_or("this"), options)?;
    let found = validate::validate(path, machine)?;
    let Some(json) = &options.json else {
        return say(&validate::show(&found));
    };
    if json != Path::new("-") {
        say(&validate::show(&found))?;
    }
    let mut target = Target::open("--json", json)?;
    let mut data = serde_json::to_string_pretty(&found).expect("numbers and words");
    data.push('\n');
    target.put(&data)?;
    match target.finish()? {
        Some(file) => say(&format!("\nwritten:\n  {}\n", file.display())),
        None => Ok(()),
    }
}

fn speedups(ask: &Ask, options: &Options) -> Result<Speedups, Trouble> {
    let machine = described(ask.machine.as_deref().unwrap_or("seed004"), options)?;
    let published = theirs();
    let same_machine = machine.compares_with.is_some();
    let cores = machine.cores();
    // Where f(N) is a guess, points tell nothing of Z/n and r.
    let points: Vec<lazy::Point> = published
        .iter()
        .copied()
        .filter(|point| point.0 <= cores)
        .collect();
    if ask.fit && !same_machine {
        return Err(Trouble::Usage(
            "--fit: the published points are of another machine (its description has no compares_with = \"seed004\")".to_owned(),
        ));
    }
    if ask.fit && points.len() < 4 {
        return Err(Trouble::Usage(format!(
            "--fit: only {} published points lie within {cores} cores",
            points.len()
        )));
    }
    let threads: Vec<usize> = match &options.threads {
        Some(list) => list.0.clone(),
        None if same_machine => published.iter().map(|point| point.0).collect(),
        None => doubling(cores),
    };
    let described = Params::of(&machine);
    let mut explanations = Vec::new();
    let params = if ask.fit {
        let (params, found) = lazy::fit(&described, &points);
        explanations.push(found);
        explanations.extend(lazy::rivals(&described, &points));
        params
    } else {
        described
    };
    let fitted_to = ask.fit.then_some(points.as_slice());
    let bands = lazy::bands(
        &machine,
        fitted_to,
        &threads,
        ask.bootstrap as usize,
        options.seed,
    );
    let rows = threads
        .iter()
        .enumerate()
        .map(|(index, &threads)| {
            let prediction = predict(&params, threads);
            let published_pct = published
                .iter()
                .find(|point| point.0 == threads)
                .map(|point| point.1);
            Row {
                residual_pp: published_pct
                    .filter(|_| same_machine)
                    .map(|theirs| prediction.speedup_pct - theirs),
                published_pct,
                band_pct: bands
                    .as_ref()
                    .map(|bands| bands.speedup_pct[index])
                    // Beyond the cores all hangs on f(N), which is not drawn.
                    .filter(|_| threads <= cores),
                prediction,
            }
        })
        .collect();
    Ok(Speedups {
        machine,
        fitted: ask.fit,
        params,
        rows,
        bands,
        points,
        explanations,
    })
}

/// 1, 2, 3, 6, 12, … up to the cores, the cores, twice and four times as many.
fn doubling(cores: usize) -> Vec<usize> {
    let mut threads: Vec<usize> = [1, 2]
        .into_iter()
        .chain((0..usize::BITS - 2).map(|power| 3 << power))
        .collect();
    threads.retain(|&n| n < cores);
    threads.extend([cores, 2 * cores, 4 * cores]);
    threads
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_for_a_machine() {
        assert_eq!(doubling(1), [1, 2, 4]);
        assert_eq!(doubling(2), [1, 2, 4, 8]);
        assert_eq!(doubling(192), [1, 2, 3, 6, 12, 24, 48, 96, 192, 384, 768]);
    }
}
