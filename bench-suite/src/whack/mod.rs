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
//! | `once` | one run, in a process of its own |
//! | `memory` | how much a run will touch, and whether that is there |
//! | `show` | the table, theirs beside ours |

mod memory;
mod once;
mod show;

use crate::cli::Options;
use crate::command::say;
use crate::engine::plan::Random;
use crate::engine::{interrupt, pin};
use crate::report::sink::Target;
use crate::trouble::Trouble;
use once::{Config, Outcome};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::process::{Command, Stdio};

/// What is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// Statistics over the runs, theirs beside them
    Table,
    /// The original's line, one a run
    Original,
}

/// Where random numbers come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Prng {
    /// random() of the C library, as the original: one lock for all threads
    LibcLocked,
    /// A generator of each thread's own, with the same range
    PerThread,
}

/// Huge pages for the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Thp {
    /// None: the buffer is advised MADV_NOHUGEPAGE
    Never,
    /// No advice: the system's setting decides, as for the original
    Madvise,
    /// Asked for: the buffer is advised MADV_HUGEPAGE
    Always,
}

/// What the buffer is for the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
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
    #[arg(short = 'm', value_name = "BYTES", default_value_t = 4096 << 20, value_parser = clap::value_parser!(u64).range(4096..=1 << 46))]
    bytes: u64,
    /// Writes of each thread
    #[arg(short = 'w', value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    writes: u64,
    /// Say what is run, on the standard error
    #[arg(short = 'v')]
    verbose: bool,
    /// Print each index
    #[arg(short = 'd')]
    debug: bool,
    /// Where random numbers come from; several are run in turn
    #[arg(long, value_enum, value_delimiter = ',', default_value = "libc-locked")]
    prng: Vec<Prng>,
    /// Huge pages for the buffer
    #[arg(long, value_enum, default_value = "never")]
    thp: Thp,
    /// One mapping, or one for each thread; several are run in turn
    #[arg(long, value_enum, value_delimiter = ',', default_value = "one")]
    vma: Vec<Vma>,
    /// Table, or the original's output
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// One run in this process, as the parent asks for it
    #[arg(long, hide = true, value_name = "JSON")]
    inside: Option<String>,
}

/// The subcommand.
pub(crate) fn command(ask: &Ask, options: &Options) -> Result<(), Trouble> {
    if let Some(config) = &ask.inside {
        return once::inside(config);
    }
    refuse(ask, options)?;
    let cpus = pin::allowed();
    let threads = ask.tasks.map_or(2 * cpus.len(), |threads| threads as usize);
    let configs = configs(ask, threads);
    let runs = options.runs.unwrap_or(match (ask.format, options.quick) {
        // As the original: one.
        (Format::Original, _) | (_, true) => 1,
        _ => 5,
    });
    for config in &configs {
        memory::check(&memory::need(config), memory::available())?;
    }
    if options.dry_run {
        let need = memory::need(&configs[0]);
        return say(&format!(
            "{} runs of {threads} threads; {need}\n",
            runs * configs.len(),
        ));
    }
    let setting = memory::huge_pages_setting();
    if ask.verbose {
        for config in &configs {
            eprintln!("{}", show::describe(config, &setting));
        }
    }
    let mut file = match &options.json {
        Some(path) => Some(Target::open("--json", path)?),
        None => None,
    };
    interrupt::watch();
    let mut outcomes: Vec<Vec<Outcome>> = vec![Vec::new(); configs.len()];
    let mut random = Random::new(options.seed);
    for run in 0..runs {
        // Each round in an order of its own: a slow minute hits all of them.
        let mut order: Vec<usize> = (0..configs.len()).collect();
        random.shuffle(&mut order);
        for at in order {
            let outcome = start(&configs[at])?;
            if ask.format == Format::Original {
                say(&format!("{} us\n", outcome.us))?;
            }
            if let Some(file) = &mut file {
                file.put(&show::line(&configs[at], run, &setting, &outcome))?;
            }
            outcomes[at].push(outcome);
            if interrupt::asked() {
                return Err(Trouble::Interrupted(format!(
                    "interrupted: {} of {} runs are in",
                    outcomes.iter().map(Vec::len).sum::<usize>(),
                    runs * configs.len()
                )));
            }
        }
    }
    if ask.format == Format::Table && options.json.as_deref() != Some(Path::new("-")) {
        say(&show::table(&configs, &outcomes, &setting))?;
    }
    match file {
        Some(file) => file.finish().map(|_| ()),
        None => Ok(()),
    }
}

/// What makes no sense here, or not together.
fn refuse(ask: &Ask, options: &Options) -> Result<(), Trouble> {
    let usage = |text: String| Err(Trouble::Usage(text));
    for (option, given) in [
        ("--threads", options.threads.is_some()),
        ("--variants", options.variants.is_some()),
        ("--time", options.time.is_some()),
        ("--warmup", options.warmup.is_some()),
        ("--budget", options.budget.is_some()),
        ("--csv", options.csv.is_some()),
        ("--resume", options.resume.is_some()),
    ] {
        if given {
            return usage(format!(
                "{option}: has no meaning for whack (use -t, -m, -w and --runs)"
            ));
        }
    }
    if ask.format == Format::Original {
        if ask.prng.len() > 1 || ask.vma.len() > 1 {
            return usage(
                "--format original: one --prng and one --vma, or its lines would not say whose they are"
                    .to_owned(),
            );
        }
        if options.json.as_deref() == Some(Path::new("-")) {
            return usage(
                "--json - and --format original cannot share the standard output".to_owned(),
            );
        }
    }
    Ok(())
}

/// One for each generator and kind of buffer.
fn configs(ask: &Ask, threads: usize) -> Vec<Config> {
    let mut configs = Vec::new();
    for &prng in &ask.prng {
        for &vma in &ask.vma {
            let config = Config {
                threads,
                bytes: ask.bytes,
                writes: ask.writes,
                debug: ask.debug,
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

/// One run in a process of its own. What it prints before its answer (indexes) is passed on.
fn start(config: &Config) -> Result<Outcome, Trouble> {
    let environment = |why: String| Trouble::Environment(format!("whack: {why}"));
    let program = std::env::current_exe()
        .map_err(|error| environment(format!("cannot find this program: {error}")))?;
    let encoded = serde_json::to_string(config).expect("plain data");
    let output = Command::new(program)
        .args(["whack", "--inside", &encoded])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| environment(format!("cannot start a child process: {error}")))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said
            .trim()
            .trim_start_matches("hpbench: ")
            .replace('\n', " ");
        return Err(if output.status.code() == Some(3) {
            Trouble::Environment(said)
        } else {
            Trouble::Correctness(format!(
                "whack: the run ended with {}: {said}",
                output.status
            ))
        });
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let text = text.trim_end();
    let (before, answer) = text.rsplit_once('\n').unwrap_or(("", text));
    if !before.is_empty() {
        say(&format!("{before}\n"))?;
    }
    serde_json::from_str(answer)
        .map_err(|error| environment(format!("the child process gave no answer: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::Parser;

    fn ask(arguments: &[&str]) -> (Ask, Options) {
        let all = ["hpbench", "whack"].iter().chain(arguments);
        let cli = Cli::try_parse_from(all).unwrap();
        match cli.command {
            Some(crate::cli::Command::Whack(ask)) => (ask, cli.options),
            _ => unreachable!(),
        }
    }

    #[test]
    fn the_originals_defaults() {
        let (ask, _) = ask(&[]);
        assert_eq!((ask.bytes, ask.writes), (4096 << 20, 10_000));
        let configs = configs(&ask, 24);
        assert_eq!(configs.len(), 1);
        assert_eq!(configs[0].prng, Prng::LibcLocked);
        assert_eq!((configs[0].vma, configs[0].thp), (Vma::One, Thp::Never));
    }

    #[test]
    fn lists_are_crossed() {
        let (ask, options) = ask(&[
            "--prng",
            "libc-locked,per-thread,libc-locked",
            "--vma",
            "one,per-thread",
        ]);
        assert_eq!(configs(&ask, 2).len(), 4);
        assert!(refuse(&ask, &options).is_ok());
    }
}
