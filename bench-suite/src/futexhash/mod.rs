//! Floor 3, bench-suite. Owns `hpbench futex-hash`: `perf bench futex hash`, for real: threads that call FUTEX_WAIT on
//! words that have changed, so that each call hashes, takes the bucket's lock and fails. May touch the kernel.
//!
//! Options, defaults, placement, loop and figures follow the kernel's tool (`tools/perf/bench/futex-hash.c`; semantics
//! only): thread i runs on the (i mod n)-th online CPU whatever mask was inherited; its words are its own; the clock
//! starts before the first thread is made; a thread's rate is its operations over *whole* seconds; the figure is the
//! mean over the threads, not the total. Added: a pause before the start, since a resize that the kernel has begun when
//! the last thread was made may otherwise never come to its end; runs, whose spread is not the original's ±; sweeps;
//! and a thread that changes the size all the time, which keeps the kernel counting references in one place.
//!
//! | file | owns |
//! |---|---|
//! | `kernel` | the system calls |
//! | `run` | one run, in a process of its own |
//! | `text` | the original's words, and the table |

pub(crate) mod hashes;
mod kernel;
pub(crate) mod run;
mod text;

use crate::cli::{List, Options};
use crate::command::say;
use crate::engine::interrupt;
use crate::engine::plan::Random;
use crate::parse;
use crate::report::sink::Target;
use crate::trouble::Trouble;
use run::{Churn, Outcome, Plan};
use serde::Serialize;
use std::time::Duration;

/// More buckets than this are a mistake.
const MOST_BUCKETS: usize = 1 << 24;

/// What is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// One line for each number of buckets
    Table,
    /// The original's own words, for each run
    Original,
}

/// What to run.
#[derive(Debug, clap::Args)]
pub(crate) struct Ask {
    /// Threads [default: as many as CPUs are online]
    #[arg(short = 't', value_name = "N", value_parser = parse::crew)]
    crew: Option<usize>,
    /// Seconds that a run takes [default: 10; quick 1]
    #[arg(short = 'r', value_name = "N", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: Option<u64>,
    /// Futexes of each thread
    #[arg(short = 'f', value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    futexes: u32,
    /// No line for each thread, and no look at what the calls return
    #[arg(short = 's')]
    silent: bool,
    /// Shared futexes instead of private ones: always in the global hash
    #[arg(short = 'S', conflicts_with_all = ["buckets", "churn"])]
    shared: bool,
    /// Lock all memory
    #[arg(short = 'm')]
    lock_memory: bool,
    /// Buckets of the process's own hash, a list or series like 2..131072:x2; 0 is the global hash, -1 what the kernel
    /// chooses
    #[arg(short = 'b', value_name = "LIST", default_value = "-1", allow_hyphen_values = true, value_parser = |text: &str| buckets(text).map(List))]
    buckets: List<Option<usize>>,
    /// Immutable hash (kernels 6.16-rc only)
    #[arg(short = 'I')]
    immutable: bool,
    /// Pause between the last thread's creation and the start
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = parse::duration)]
    settle: Duration,
    /// One more thread that sets the size to twice as much and back, TIME apart, like 5ms
    #[arg(long, value_name = "TIME", value_parser = parse::duration)]
    churn: Option<Duration>,
    /// Table, or the original's output (1 run unless --runs says otherwise)
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

/// Sizes that the kernel takes: zero, or powers of two from two on; -1 leaves it to the kernel.
fn buckets(text: &str) -> Result<Vec<Option<usize>>, String> {
    let mut all = Vec::new();
    for part in text.split(',') {
        if part == "-1" {
            all.push(None);
            continue;
        }
        for size in parse::sizes(part, MOST_BUCKETS)? {
            if size == 1 || (size != 0 && !size.is_power_of_two()) {
                return Err(format!(
                    "{size} buckets: it takes a power of two from 2 on (or 0, the global hash)"
                ));
            }
            if !all.contains(&Some(size)) {
                all.push(Some(size));
            }
        }
    }
    Ok(all)
}

/// One run of `--json`.
#[derive(Serialize)]
struct Line<'a> {
    command: &'static str,
    #[serde(flatten)]
    plan: &'a Plan,
    per_thread: f64,
    sem_threads_percent: f64,
    total: f64,
    #[serde(flatten)]
    outcome: &'a Outcome,
}

/// The subcommand.
pub(crate) fn command(ask: &Ask, options: &Options) -> Result<(), Trouble> {
    refuse(ask, options)?;
    let threads = ask.crew.unwrap_or_else(|| kernel::online().len());
    let default_runs = match ask.format {
        Format::Table if !options.quick => 3,
        _ => 1,
    };
    let runs = options.runs.unwrap_or(default_runs);
    let plan = |buckets| Plan {
        threads,
        seconds: ask.seconds.unwrap_or(if options.quick { 1 } else { 10 }),
        futexes: ask.futexes as usize,
        silent: ask.silent,
        shared: ask.shared,
        lock_memory: ask.lock_memory,
        buckets,
        immutable: ask.immutable,
        settle: ask.settle,
        churn: ask.churn.map(|pause| Churn { pause }),
        run: 0,
    };
    let mut points: Vec<(Plan, Vec<Outcome>)> = ask
        .buckets
        .0
        .iter()
        .map(|&size| (plan(size), Vec::new()))
        .collect();
    if options.dry_run {
        let each = Duration::from_secs(points[0].0.seconds) + ask.settle;
        let all = points.len() * runs;
        return say(&format!(
            "{all} runs of {:.1} s, {:.0} s in all\n",
            each.as_secs_f64(),
            each.as_secs_f64() * all as f64
        ));
    }
    let mut file = match &options.json {
        Some(path) => Some(Target::open("--json", path)?),
        None => None,
    };
    let alone = options.json.as_deref() == Some(std::path::Path::new("-"));
    let tell = |text: &str| match alone {
        true => {
            eprint!("{text}");
            Ok(())
        }
        false => say(text),
    };
    interrupt::watch();
    if ask.format == Format::Table {
        tell(&text::heading(&points[0].0, runs))?;
    }
    let mut random = Random::new(options.seed);
    'all: for run in 0..runs {
        let mut order: Vec<usize> = (0..points.len()).collect();
        if ask.format == Format::Table {
            random.shuffle(&mut order);
        }
        for index in order {
            if interrupt::asked() {
                break 'all;
            }
            let (plan, outcomes) = &mut points[index];
            plan.run = run;
            let outcome = run::apart(plan)?;
            if ask.format == Format::Original {
                tell(&text::original(plan, &outcome))?;
            }
            if let Some(file) = &mut file {
                let (per_thread, sem_threads_percent) = text::mean_and_error(&outcome.rates());
                let line = Line {
                    command: "futex-hash",
                    plan,
                    per_thread,
                    sem_threads_percent,
                    total: outcome.total(),
                    outcome: &outcome,
                };
                file.put(&(serde_json::to_string(&line).expect("plain data") + "\n"))?;
            }
            outcomes.push(outcome);
        }
    }
    let interrupted = points.iter().any(|(_, outcomes)| outcomes.len() < runs);
    points.retain(|(_, outcomes)| !outcomes.is_empty());
    if ask.format == Format::Table && !points.is_empty() {
        tell(&text::table(&points, kernel::online().len()))?;
    }
    if let Some(file) = file
        && let Some(path) = file.finish()?
    {
        tell(&format!("written:\n  {}\n", path.display()))?;
    }
    if interrupted {
        return Err(Trouble::Interrupted(
            "interrupted; finished runs are shown above".to_owned(),
        ));
    }
    verdict(&points)
}

/// Any call that did not fail as it should.
fn verdict(points: &[(Plan, Vec<Outcome>)]) -> Result<(), Trouble> {
    let unexpected: u64 = points
        .iter()
        .flat_map(|(_, outcomes)| outcomes)
        .map(|outcome| outcome.unexpected)
        .sum();
    match unexpected {
        0 => Ok(()),
        n => Err(Trouble::Correctness(format!(
            "futex-hash: {n} calls did not fail with EAGAIN, as each should"
        ))),
    }
}

/// What cannot be, on any machine or on this one.
fn refuse(ask: &Ask, options: &Options) -> Result<(), Trouble> {
    let usage = |text: &str| Err(Trouble::Usage(text.to_owned()));
    for (option, given) in [
        ("--threads (use -t)", options.threads.is_some()),
        ("--variants", options.variants.is_some()),
        ("--time (use -r)", options.time.is_some()),
        ("--warmup", options.warmup.is_some()),
        ("--budget", options.budget.is_some()),
        ("--csv", options.csv.is_some()),
        ("--resume", options.resume.is_some()),
    ] {
        if given {
            return usage(&format!("{option}: has no meaning for futex-hash"));
        }
    }
    if ask.crew == Some(0) {
        return usage("invalid value '0' for '-t <N>': a run needs at least 1 thread");
    }
    let sizes = &ask.buckets.0;
    if ask.churn.is_some() && sizes.contains(&Some(0)) {
        return usage("--churn: the global hash (-b 0) is never replaced");
    }
    if ask.immutable && !kernel::knows_immutable() {
        return usage(
            "-I: this kernel has no immutable futex hash (only release candidates of 6.16 had it); the model has: hpbench phash --variants immutable",
        );
    }
    if ask.immutable
        && (ask.churn.is_some() || !sizes.iter().all(|size| size.is_some_and(|n| n > 0)))
    {
        return usage("-I: an immutable hash needs its number of buckets (-b N) and no --churn");
    }
    if (ask.churn.is_some() || sizes.iter().any(Option::is_some))
        && let Err(error) = kernel::buckets()
    {
        return Err(Trouble::Environment(format!(
            "-b, --churn: this kernel has no futex hash of a process's own (prctl PR_FUTEX_HASH, from Linux 6.17 on): {error}"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_what_the_kernel_takes() {
        assert_eq!(buckets("-1"), Ok(vec![None]));
        assert_eq!(
            buckets("0,-1,2..16:x2,4"),
            Ok(vec![Some(0), None, Some(2), Some(4), Some(8), Some(16)])
        );
        let sweep = buckets("2..131072:x2").unwrap();
        assert_eq!((sweep.len(), sweep[16]), (17, Some(131_072)));
        for (bad, word) in [
            ("1", "power of two"),
            ("3", "power of two"),
            ("2..8", "power of two"),
            ("-2", "whole number"),
            ("", "empty"),
            ("33554432", "at most"),
            ("x", "whole number"),
        ] {
            let error = buckets(bad).unwrap_err();
            assert!(error.contains(word), "{bad}: {error}");
        }
    }
}
