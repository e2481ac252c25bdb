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
//! | `hashes` | the kernel's hashes as variants, of `schbench` too |
//! | `kind` | the workload: a run as a record |
//! | `run` | one run |
//! | `text` | the original's words |

pub(crate) mod hashes;
mod kernel;
mod kind;
mod run;
mod text;

use crate::cli::{List, Options};
use crate::command::{self, say};
use crate::engine::job::Pin;
use crate::engine::sysroot::Root;
use crate::parse;
use crate::trouble::Trouble;
use crate::workloads::{Ask as Points, Workload};
pub(crate) use kind::KIND;
use run::{Churn, Plan};
use std::time::Duration;

/// More buckets than this are a mistake.
const MOST_BUCKETS: usize = 1 << 24;

/// Of the original's output, if nothing is said.
const SECONDS: u64 = 10;
const SETTLE: Duration = Duration::from_millis(200);

/// What is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// A line for each hash and number of buckets
    Table,
    /// The original's own words
    Original,
}

/// What to run.
#[derive(Debug, clap::Args)]
pub(crate) struct Ask {
    /// Threads [default: as many as CPUs are online]
    #[arg(short = 't', value_name = "N", value_parser = parse::crew)]
    crew: Option<usize>,
    /// Seconds that a run takes [default: --time; of the original's output 10]
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
    /// [default: global, the kernel's choice, and 1024; of the original's output -1]
    #[arg(short = 'b', value_name = "LIST", allow_hyphen_values = true, value_parser = |text: &str| buckets(text).map(List))]
    buckets: Option<List<Option<usize>>>,
    /// Immutable hash (kernels 6.16-rc only)
    #[arg(short = 'I')]
    immutable: bool,
    /// Pause between the last thread's creation and the start, in the place of a warm-up [default: --warmup; of the
    /// original's output 200ms]
    #[arg(long, value_name = "TIME", value_parser = parse::duration)]
    settle: Option<Duration>,
    /// One more thread that sets the size to twice as much and back, TIME apart, like 5ms
    #[arg(long, value_name = "TIME", value_parser = parse::duration)]
    churn: Option<Duration>,
    /// Table, or the original's output: one run
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

/// The subcommand.
pub(crate) fn command(ask: &Ask, options: &Options) -> Result<(), Trouble> {
    match ask.format {
        Format::Table => table(ask, options),
        Format::Original => original(ask, options),
    }
}

/// The course of the other workloads.
fn table(ask: &Ask, options: &Options) -> Result<(), Trouble> {
    for (own, given, theirs, too) in [
        (
            "-t",
            ask.crew.is_some(),
            "--threads",
            options.threads.is_some(),
        ),
        (
            "-r",
            ask.seconds.is_some(),
            "--time",
            options.time.is_some(),
        ),
        (
            "--settle",
            ask.settle.is_some(),
            "--warmup",
            options.warmup.is_some(),
        ),
        ("-S", ask.shared, "--variants", options.variants.is_some()),
    ] {
        if given && too {
            return usage(&format!(
                "{own} and {theirs} say the same, only one of them can be given"
            ));
        }
    }
    if options.pin.is_some() {
        return usage("--pin: has no meaning for futex-hash, thread i is on the i-th online CPU");
    }
    if options.window.is_some() {
        return usage(
            "--window: has no meaning for futex-hash, threads count at the end, as the original's",
        );
    }
    let sizes = ask.buckets.as_ref().map_or(&[][..], |list| &list.0);
    if options.variants.is_some() && sizes.iter().any(|size| matches!(size, None | Some(0))) {
        return usage(
            "-b 0 (global), -b -1 (auto) and --variants say the same, only one of them can be given",
        );
    }
    refuse(ask, sizes)?;
    let mut options = options.clone();
    options.pin = Some(Pin::Pu);
    options.time = options.time.or(ask.seconds.map(Duration::from_secs));
    options.warmup = options.warmup.or(ask.settle);
    if ask.shared {
        options.variants = Some(List(vec![kind::SHARED.to_owned()]));
    }
    let mut buckets = hashes::chosen(sizes, ask.immutable, &mut options);
    if buckets.is_empty() {
        buckets.push(kind::BUCKETS);
    }
    let threads = options.threads.as_ref().map(|list| list.0.clone());
    let online = || vec![ask.crew.unwrap_or_else(|| kernel::online().len())];
    let asked = Points {
        threads: Some(threads.unwrap_or_else(online)),
        more: Some(buckets.iter().map(|&n| kind::point(ask, n)).collect()),
        ..Points::default()
    };
    command::workload(Workload::FutexHash, &asked, &options)
}

/// The original's course: one run, in this process.
fn original(ask: &Ask, options: &Options) -> Result<(), Trouble> {
    options.without_runs_but(
        "the original's output (use -t, -r and --settle)",
        &["--dry-run"],
    )?;
    let sizes = ask.buckets.as_ref().map_or(&[None][..], |list| &list.0);
    if sizes.len() > 1 {
        return usage("-b: the original's output has one size, a list is for --format table");
    }
    refuse(ask, sizes)?;
    let plan = Plan {
        threads: ask.crew.unwrap_or_else(|| kernel::online().len()),
        time: Duration::from_secs(ask.seconds.unwrap_or(SECONDS)),
        futexes: ask.futexes as usize,
        silent: ask.silent,
        shared: ask.shared,
        lock_memory: ask.lock_memory,
        buckets: sizes[0],
        immutable: ask.immutable,
        settle: ask.settle.unwrap_or(SETTLE),
        churn: ask.churn.map(|pause| Churn { pause }),
    };
    if options.dry_run {
        let all = (plan.time + plan.settle).as_secs_f64();
        return say(&format!("1 run of {all:.1} s\n"));
    }
    Root::here().measurable()?;
    let outcome = run::perform(&plan)?;
    say(&text::original(&plan, &outcome))?;
    match outcome.unexpected {
        0 => Ok(()),
        n => Err(Trouble::Correctness(format!(
            "futex-hash: {}",
            unexpected(n)
        ))),
    }
}

fn unexpected(calls: u64) -> String {
    format!("{calls} calls did not fail with EAGAIN, as each should")
}

fn usage(text: &str) -> Result<(), Trouble> {
    Err(Trouble::Usage(text.to_owned()))
}

/// What cannot be, on any machine or on this one.
fn refuse(ask: &Ask, sizes: &[Option<usize>]) -> Result<(), Trouble> {
    if ask.crew == Some(0) {
        return usage("invalid value '0' for '-t <N>': a run needs at least 1 thread");
    }
    if ask.churn.is_some() && sizes.contains(&Some(0)) {
        return usage("--churn: the global hash (-b 0) is never replaced");
    }
    if ask.immutable && !kernel::knows_immutable() {
        return usage(
            "-I: this kernel has no immutable futex hash (only release candidates of 6.16 had it); the model has: hpbench phash --variants immutable",
        );
    }
    if ask.immutable
        && (ask.churn.is_some()
            || sizes.is_empty()
            || !sizes.iter().all(|size| size.is_some_and(|n| n > 0)))
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
