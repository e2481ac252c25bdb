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
//! | `run` | readers, barriers, times |
//! | `show` | the original's output and the table |

mod run;
mod show;
mod subject;
mod types;

use crate::cli::{List, Options};
use crate::command::say;
use crate::engine::{interrupt, pin, sysroot::Root};
use crate::parse;
use crate::trouble::Trouble;
use run::{Setup, Times};
use std::time::Duration;
use subject::{Delay, Subject};

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
    /// What to measure, like rcu,hp,refcnt, or all
    #[arg(long = "scale-type", alias = "scale_type", value_name = "LIST", default_value = "rcu", value_parser = |text: &str| types::list(text).map(List))]
    types: List<&'static types::Type>,
    /// Show which scale type is what here, and which cannot be
    #[arg(long)]
    list_types: bool,
    /// Pairs in a loop
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    loops: u64,
    /// Readers: a list as of --threads; -1 is 75 % of the CPUs
    #[arg(long, value_name = "LIST", default_value = "-1", allow_hyphen_values = true, value_parser = |text: &str| readers(text).map(List))]
    nreaders: List<usize>,
    /// Experiments
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    nruns: u64,
    /// Nanoseconds between acquire and release
    #[arg(long, value_name = "NS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=1_000_000_000))]
    readdelay: u64,
    /// Seconds before the first experiment
    #[arg(long, value_name = "S", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=3600))]
    holdoff: u64,
    /// Objects of typesafe_*: 0 is one a CPU, -N is N a CPU
    #[arg(long, alias = "lookup_instances", value_name = "N", default_value_t = 0, allow_hyphen_values = true, value_parser = clap::value_parser!(i64).range(-65_536..=1_048_576))]
    lookup_instances: i64,
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

/// Objects of `typesafe_*`.
fn instances(asked: i64, cpus: usize) -> usize {
    match asked {
        0 => cpus,
        n if n < 0 => n.unsigned_abs() as usize * cpus,
        n => n as usize,
    }
}

/// One type with one number of readers.
#[derive(Debug)]
struct Row {
    name: &'static str,
    readers: usize,
    times: Times,
}

/// The subcommand.
pub(crate) fn command(ask: &Ask, options: &Options) -> Result<(), Trouble> {
    if options.json.is_some() {
        return Err(Trouble::Usage(
            "--json: ref has a table and the original's words".to_owned(),
        ));
    }
    options.without_runs_but("ref (use --nreaders, --nruns, --loops)", &["--dry-run"])?;
    if ask.list_types {
        return say(&types::show());
    }
    let cpus = pin::allowed();
    let setup = |readers| Setup {
        loops: ask.loops,
        readers,
        runs: ask.nruns as usize,
        delay: Delay::of(Duration::from_nanos(ask.readdelay)),
        cpus: cpus.clone(),
    };
    if options.dry_run {
        let points = ask.types.0.len() * ask.nreaders.0.len();
        return say(&format!(
            "{points} points of {} experiments, {} pairs each, after as many to warm up\n",
            ask.nruns,
            ask.loops + 1
        ));
    }
    Root::here().measurable()?;
    interrupt::watch();
    if ask.holdoff > 0 {
        std::thread::sleep(Duration::from_secs(ask.holdoff));
    }
    let mut rows = Vec::new();
    for &readers in &ask.nreaders.0 {
        for kind in &ask.types.0 {
            let setup = setup(readers);
            let objects = instances(ask.lookup_instances, cpus.len());
            if ask.format == Format::Original {
                say(&show::parameters(kind.name, ask, readers))?;
            }
            let times = types::visit(kind, objects, Measure(&setup))?;
            if let Some(dead) = times.dead() {
                return Err(Trouble::Correctness(format!(
                    "{}: {dead} reads of a dead object",
                    kind.name
                )));
            }
            if ask.format == Format::Original {
                say(&show::original(kind.name, ask.loops, &times))?;
            }
            rows.push(Row {
                name: kind.name,
                readers,
                times,
            });
            if interrupt::asked() {
                break;
            }
        }
    }
    if ask.format == Format::Table {
        say(&show::table(&rows, ask.loops, &setup(1)))?;
    }
    if interrupt::asked() {
        return Err(Trouble::Interrupted(
            "interrupted; finished experiments are shown above".to_owned(),
        ));
    }
    Ok(())
}

/// What is done with a type once it is known.
struct Measure<'a>(&'a Setup);

impl types::Visit for Measure<'_> {
    type Out = Result<Times, Trouble>;

    fn visit<S: Subject>(self, subject: S) -> Self::Out {
        run::measure(&subject, self.0)
    }
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
