//! Floor 3, bench-suite. Owns `hpbench ref`: what one acquire and release costs beside other readers, as the kernel's refscale
//! measures it, in user space. May touch the schemes, the reference counts, threads and affinity.
//!
//! Written from a description of `kernel/rcu/refscale.c` (2025); parameters, course and output are kept, its code is not.
//! What differs, and why: barriers hold readers back here (there, only the last to arrive looks at all); interrupts stay
//! on and readers keep their priority, so a reader that is preempted counts the time away; a pair of our schemes
//! includes a look at the object.
//!
//! | file | owns |
//! |---|---|
//! | `types` | which scale type is what here, and which cannot be |
//! | `subject` | the pairs that are measured |
//! | `kind` | the workload: a run as a record |
//! | `run` | readers, barriers, times |
//! | `show` | the original's output |

mod kind;
mod run;
mod show;
mod subject;
mod types;

use crate::cli::{List, Options};
use crate::command::{self, say};
use crate::engine::job::Pin;
use crate::engine::{interrupt, pin, sysroot::Root};
use crate::parse;
use crate::trouble::Trouble;
use crate::workloads::{Ask as Points, Workload};
pub(crate) use kind::KIND;
use run::Setup;
use std::time::Duration;
use subject::Delay;

/// The original's defaults.
const LOOPS: u64 = 10_000;
const RUNS: u64 = 30;

/// What is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// One line for each type and number of readers
    Table,
    /// The original's words
    Original,
}

/// What to run.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Ask {
    /// What to measure, like rcu,hp,refcnt, or all [default: all; of the original's output rcu]
    #[arg(long = "scale-type", alias = "scale_type", value_name = "LIST", value_parser = |text: &str| types::list(text).map(List))]
    types: Option<List<&'static types::Type>>,
    /// Show which scale type is what here, and which cannot be
    #[arg(long)]
    list_types: bool,
    /// Pairs in a loop
    #[arg(long, value_name = "N", default_value_t = LOOPS, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    loops: u64,
    /// Readers: a list, the same as --threads; -1 is 75 % of the CPUs [default: -1]
    #[arg(long, value_name = "LIST", allow_hyphen_values = true, value_parser = |text: &str| readers(text).map(List))]
    nreaders: Option<List<usize>>,
    /// Experiments
    #[arg(long, value_name = "N", default_value_t = RUNS, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    nruns: u64,
    /// Nanoseconds between acquire and release: a list
    #[arg(long, value_name = "LIST", default_value = "0", value_delimiter = ',', value_parser = clap::value_parser!(u64).range(0..=1_000_000_000))]
    readdelay: Vec<u64>,
    /// Seconds before the first experiment
    #[arg(long, value_name = "S", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=3600))]
    holdoff: u64,
    /// Objects of typesafe_*: a list; 0 is one a CPU, -N is N a CPU
    #[arg(long, alias = "lookup_instances", value_name = "LIST", default_value = "0", value_delimiter = ',', allow_hyphen_values = true, value_parser = clap::value_parser!(i64).range(-65_536..=1_048_576))]
    lookup_instances: Vec<i64>,
    /// Table, or the original's output
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

/// `-1`, or as of `--threads`.
fn readers(text: &str) -> Result<Vec<usize>, String> {
    if text == "-1" {
        // As the original adds it up.
        let cpus = pin::allowed().len();
        return Ok(vec![(cpus / 2 + cpus / 4).max(1)]);
    }
    let counts = parse::counts(text)?;
    if counts.contains(&0) {
        return Err("at least 1 reader (-1: 75 % of the CPUs)".to_owned());
    }
    Ok(counts)
}

impl Ask {
    /// Each delay and number of objects that is asked for, once.
    fn bodies(&self) -> Vec<(u64, i64)> {
        let mut all = Vec::new();
        for &delay in &self.readdelay {
            for &objects in &self.lookup_instances {
                if !all.contains(&(delay, objects)) {
                    all.push((delay, objects));
                }
            }
        }
        all
    }
}

/// Objects of `typesafe_*`.
fn instances(asked: i64, cpus: usize) -> usize {
    match asked {
        0 => cpus,
        n if n < 0 => n.unsigned_abs() as usize * cpus,
        n => n as usize,
    }
}

/// The subcommand.
pub(crate) fn command(ask: &Ask, options: &Options) -> Result<(), Trouble> {
    if ask.list_types {
        options.without_runs("ref --list-types")?;
        return say(&types::show());
    }
    match ask.format {
        Format::Table => table(ask, options),
        Format::Original => original(ask, options),
    }
}

/// The course of the other workloads.
fn table(ask: &Ask, options: &Options) -> Result<(), Trouble> {
    let usage = |text: String| Err(Trouble::Usage(text));
    for (own, given, theirs, too) in [
        (
            "--nreaders",
            ask.nreaders.is_some(),
            "--threads",
            options.threads.is_some(),
        ),
        (
            "--scale-type",
            ask.types.is_some(),
            "--variants",
            options.variants.is_some(),
        ),
    ] {
        if given && too {
            return usage(format!(
                "{own} and {theirs} say the same, only one of them can be given"
            ));
        }
    }
    options.without(
        "ref (use --loops and --nruns)",
        &["--time", "--warmup", "--budget", "--window", "--pin"],
    )?;
    if ask.holdoff > 0 {
        return usage("--holdoff: is for --format original".to_owned());
    }
    let mut options = options.clone();
    options.pin = Some(Pin::Pu);
    // How long it takes is what is measured.
    options.time = Some(Duration::ZERO);
    options.warmup = options.time;
    if let Some(types) = &ask.types {
        let names = types.0.iter().map(|kind| kind.name.to_owned());
        options.variants = Some(List(names.collect()));
    }
    let threads = options.threads.as_ref().or(ask.nreaders.as_ref());
    let threads = match threads {
        Some(list) => list.0.clone(),
        None => readers("-1").expect("as the original"),
    };
    let point = |(delay, objects)| kind::params(ask.loops, ask.nruns, delay, objects);
    let asked = Points {
        threads: Some(threads),
        more: Some(ask.bodies().into_iter().map(point).collect()),
        ..Points::default()
    };
    command::workload(Workload::Ref, &asked, &options)
}

/// The original's course, in this process.
fn original(ask: &Ask, options: &Options) -> Result<(), Trouble> {
    options.without_runs_but(
        "the original's output (use --nreaders, --nruns, --loops)",
        &["--dry-run"],
    )?;
    let cpus = pin::allowed();
    let rcu = types::list("rcu").expect("it is a type");
    let all = ask.types.as_ref().map_or(&rcu, |list| &list.0);
    let usual = readers("-1").expect("as the original");
    let counts = ask.nreaders.as_ref().map_or(&usual, |list| &list.0);
    let mut points = Vec::new();
    for body in ask.bodies() {
        for &readers in counts {
            points.extend(all.iter().map(|kind| (body, readers, kind)));
        }
    }
    if options.dry_run {
        return say(&format!(
            "{} points of {} experiments, {} pairs each, after as many to warm up\n",
            points.len(),
            ask.nruns,
            ask.loops + 1
        ));
    }
    Root::here().measurable()?;
    interrupt::watch();
    if ask.holdoff > 0 {
        std::thread::sleep(Duration::from_secs(ask.holdoff));
    }
    for ((delay, objects), readers, kind) in points {
        let setup = Setup {
            loops: ask.loops,
            readers,
            runs: ask.nruns as usize,
            delay: Delay::of(Duration::from_nanos(delay)),
            cpus: cpus.clone(),
        };
        say(&show::parameters(kind.name, ask, readers, delay, objects))?;
        let objects = instances(objects, cpus.len());
        let times = types::visit(kind, objects, kind::Measure(&setup))?;
        if let Some(dead) = times.dead() {
            return Err(Trouble::Correctness(format!(
                "{}: {dead} reads of a dead object",
                kind.name
            )));
        }
        say(&show::original(kind.name, ask.loops, &times))?;
        if interrupt::asked() {
            return Err(Trouble::Interrupted(
                "interrupted; finished experiments are shown above".to_owned(),
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_the_original_takes_them() {
        let cpus = pin::allowed().len();
        assert_eq!(readers("-1"), Ok(vec![(cpus / 2 + cpus / 4).max(1)]));
        assert_eq!(readers("1,3"), Ok(vec![1, 3]));
        assert!(readers("0").is_err() && readers("-2").is_err() && readers("").is_err());
        assert_eq!(instances(0, 6), 6);
        assert_eq!(instances(-3, 6), 18);
        assert_eq!(instances(7, 6), 7);
    }
}
