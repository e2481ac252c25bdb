//! Floor 3, bench-suite. Owns `hpbench whack`: whack_mmap_sem, for real: threads that touch random bytes of one large
//! buffer that nobody has touched before, so that the kernel's page faults run beside each other. May start processes.
//!
//! What a thread does, how it is placed and what is timed follow the original's description (Clark Williams; its source
//! has no licence and was not used): thread i on CPU i modulo the CPUs; a start and a stop barrier with the main thread;
//! `buffer[random() % size]++`, so many times; the time from before the start barrier to after the stop barrier, in
//! microseconds. `random()` stays below 2^31, so of a larger buffer only the first 2 GiB are reached; and it takes one
//! lock of the C library for the whole process, which `--prng per-thread` leaves out.
//!
//! | file | owns |
//! |---|---|
//! | `kind` | the workload: a run as a record |
//! | `once` | one run |
//! | `memory` | how much a run will touch, and whether that is there |
//! | `show` | what `-v` says |

mod kind;
mod memory;
mod once;
mod show;

use crate::cli::{List, Options};
use crate::command::{self, say};
use crate::engine::job::Pin;
use crate::engine::sysroot::Root;
use crate::engine::{interrupt, pin};
use crate::trouble::Trouble;
use crate::workloads::{Ask as Points, Workload};
pub(crate) use kind::KIND;
use once::Config;

/// The original's defaults.
const BYTES: u64 = 4096 << 20;
const WRITES: u64 = 10_000;

/// What is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// Statistics over the runs, theirs beside them
    Table,
    /// The original's line, one a run
    Original,
}

/// Where random numbers come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, clap::ValueEnum)]
pub(crate) enum Prng {
    /// random() of the C library, as the original: one lock for all threads
    LibcLocked,
    /// A generator of each thread's own, with the same range
    PerThread,
}

/// Huge pages for the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, clap::ValueEnum)]
pub(crate) enum Thp {
    /// None: the buffer is advised MADV_NOHUGEPAGE
    Never,
    /// No advice: the system's setting decides, as for the original
    Madvise,
    /// Asked for: the buffer is advised MADV_HUGEPAGE
    Always,
}

/// What the buffer is for the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, clap::ValueEnum)]
pub(crate) enum Vma {
    /// One mapping, as the original's
    One,
    /// A mapping for each thread, which stays in it; together they have the pages that the one has within reach
    PerThread,
}

/// What to run.
#[derive(Debug, clap::Args)]
pub(crate) struct Ask {
    /// Threads [default: two for each CPU]
    #[arg(short = 't', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    tasks: Option<u32>,
    /// Bytes of the buffer; random() reaches the first 2 GiB
    #[arg(short = 'm', value_name = "BYTES", default_value_t = BYTES, value_parser = clap::value_parser!(u64).range(4096..=1 << 46))]
    bytes: u64,
    /// Writes of each thread
    #[arg(short = 'w', value_name = "N", default_value_t = WRITES, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    writes: u64,
    /// Say what is run, on the standard error
    #[arg(short = 'v')]
    verbose: bool,
    /// Print each index (with --format original)
    #[arg(short = 'd')]
    debug: bool,
    /// Where random numbers come from, a list [default: both; of the original's output libc-locked]
    #[arg(long, value_enum, value_delimiter = ',')]
    prng: Vec<Prng>,
    /// Huge pages for the buffer
    #[arg(long, value_enum, default_value = "never")]
    thp: Thp,
    /// One mapping, or one for each thread, a list [default: both; of the original's output one]
    #[arg(long, value_enum, value_delimiter = ',')]
    vma: Vec<Vma>,
    /// Table, or the original's output
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

/// The subcommand.
pub(crate) fn command(ask: &Ask, options: &Options) -> Result<(), Trouble> {
    match ask.format {
        Format::Table => table(ask, options),
        Format::Original => original(ask, options),
    }
}

fn usage(text: &str) -> Result<(), Trouble> {
    Err(Trouble::Usage(text.to_owned()))
}

/// The course of the other workloads.
fn table(ask: &Ask, options: &Options) -> Result<(), Trouble> {
    let lists = !ask.prng.is_empty() || !ask.vma.is_empty();
    for (own, given, theirs, too) in [
        (
            "-t",
            ask.tasks.is_some(),
            "--threads",
            options.threads.is_some(),
        ),
        (
            "--prng and --vma",
            lists,
            "--variants",
            options.variants.is_some(),
        ),
    ] {
        if given && too {
            return usage(&format!(
                "{own} and {theirs} say the same, only one of them can be given"
            ));
        }
    }
    for (option, given) in [
        ("--time", options.time.is_some()),
        ("--warmup", options.warmup.is_some()),
        ("--budget", options.budget.is_some()),
        ("--window", options.window.is_some()),
        ("--pin", options.pin.is_some()),
    ] {
        if given {
            return usage(&format!(
                "{option}: has no meaning for whack (use -t, -m, -w and --runs)"
            ));
        }
    }
    if ask.debug {
        return usage("-d: is for --format original");
    }
    let threads = match (&options.threads, ask.tasks) {
        (Some(list), _) => list.0.clone(),
        (None, Some(threads)) => vec![threads as usize],
        (None, None) => vec![2 * pin::allowed().len()],
    };
    let mut options = options.clone();
    options.pin = Some(Pin::Pu);
    // How long it takes is what is measured.
    options.time = Some(std::time::Duration::ZERO);
    options.warmup = options.time;
    if lists {
        let all = configs(ask, 1);
        let names = all.iter().map(|config| kind::name(config.prng, config.vma));
        options.variants = Some(List(names.map(str::to_owned).collect()));
    }
    for &threads in &threads {
        for config in configs(ask, threads) {
            memory::check(&memory::need(&config), memory::available())?;
            if ask.verbose {
                eprintln!("{}", show::describe(&config, &memory::huge_pages_setting()));
            }
        }
    }
    let asked = Points {
        threads: Some(threads),
        more: Some(vec![kind::point(ask)]),
        ..Points::default()
    };
    command::workload(Workload::Whack, &asked, &options)
}

/// The original's course, in this process.
fn original(ask: &Ask, options: &Options) -> Result<(), Trouble> {
    options.without_runs_but("the original's output (use -t)", &["--dry-run", "--runs"])?;
    if ask.prng.len() > 1 || ask.vma.len() > 1 {
        return usage(
            "--format original: one --prng and one --vma, or its lines would not say whose they are",
        );
    }
    let cpus = pin::allowed();
    let config = Config {
        threads: ask.tasks.map_or(2 * cpus.len(), |threads| threads as usize),
        bytes: ask.bytes,
        writes: ask.writes,
        debug: ask.debug,
        prng: ask.prng.first().copied().unwrap_or(Prng::LibcLocked),
        thp: ask.thp,
        vma: ask.vma.first().copied().unwrap_or(Vma::One),
    };
    let runs = options.runs.unwrap_or(1);
    let need = memory::need(&config);
    memory::check(&need, memory::available())?;
    if options.dry_run {
        return say(&format!(
            "{runs} runs of {} threads; {need}\n",
            config.threads
        ));
    }
    Root::here().measurable()?;
    if ask.verbose {
        eprintln!("{}", show::describe(&config, &memory::huge_pages_setting()));
    }
    interrupt::watch();
    for run in 0..runs {
        if interrupt::asked() {
            return Err(Trouble::Interrupted(format!(
                "interrupted: {run} of {runs} runs are in"
            )));
        }
        say(&format!("{} us\n", once::run(&config)?.us))?;
    }
    Ok(())
}

/// One for each generator and kind of buffer.
fn configs(ask: &Ask, threads: usize) -> Vec<Config> {
    let or = |empty: bool| if empty { 2 } else { 0 };
    let prngs = [Prng::LibcLocked, Prng::PerThread];
    let vmas = [Vma::One, Vma::PerThread];
    let prngs = ask.prng.iter().chain(&prngs[..or(ask.prng.is_empty())]);
    let mut configs = Vec::new();
    for &prng in prngs {
        for &vma in ask.vma.iter().chain(&vmas[..or(ask.vma.is_empty())]) {
            let config = Config {
                threads,
                bytes: ask.bytes,
                writes: ask.writes,
                debug: false,
                prng,
                thp: ask.thp,
                vma,
            };
            if !configs.contains(&config) {
                configs.push(config);
            }
        }
    }
    configs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::Parser;

    fn ask(arguments: &[&str]) -> Ask {
        let all = ["hpbench", "whack"].iter().chain(arguments);
        let cli = Cli::try_parse_from(all).unwrap();
        match cli.command {
            Some(crate::cli::Command::Whack(ask)) => ask,
            _ => unreachable!(),
        }
    }

    #[test]
    fn the_originals_defaults() {
        let ask = ask(&[]);
        assert_eq!((ask.bytes, ask.writes), (4096 << 20, 10_000));
        let configs = configs(&ask, 24);
        assert_eq!(configs.len(), 4);
        assert_eq!(configs[0].prng, Prng::LibcLocked);
        assert_eq!((configs[0].vma, configs[0].thp), (Vma::One, Thp::Never));
    }

    #[test]
    fn lists_are_crossed() {
        let ask = ask(&[
            "--prng",
            "libc-locked,per-thread,libc-locked",
            "--vma",
            "one,per-thread",
        ]);
        assert_eq!(configs(&ask, 2).len(), 4);
    }
}
