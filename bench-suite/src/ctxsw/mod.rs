//! Floor 3, bench-suite. Owns `hpbench ctxsw`: will-it-scale's `context_switch1`, for real: pairs that hand one byte
//! back and forth through two pipes. May touch threads, processes, pipes and the kernel's idle counters.
//!
//! What one task does, how it is placed and what is counted follow will-it-scale (its `main.c` and
//! `tests/context_switch1.c`; semantics only): task i runs on core i, on all CPUs of that core (`-m`: on the i-th CPU;
//! `-n`: anywhere); its partner is made by the bound task and shares its CPUs; a round trip counts two; six seconds are
//! discarded; the average is the sum of the measured seconds over their number. With threads all tasks share one
//! address space; with processes each has its own.
//!
//! That is the course of `--format original` and `--csv-wis`. Otherwise it is a workload as the others are (`kind`), with
//! their options, times and files: what stands for an option of theirs is translated here.
//!
//! | file | owns |
//! |---|---|
//! | `kind` | the workload: a run as a record |
//! | `pipes` | the two pipes of a pair, and what goes through them (`lazy-mm track` has the same) |
//! | `pairs` | the tasks: threads or processes, their counters and end |
//! | `sample` | the seconds of the original: what main reads and prints |

mod kind;
mod pairs;
pub(crate) mod pipes;
mod sample;

use crate::cli::{List, Options};
use crate::command::{self, say};
use crate::engine::job::Pin;
use crate::engine::sysroot::Root;
use crate::engine::{interrupt, room};
use crate::parse;
use crate::report::sink::Target;
use crate::trouble::Trouble;
use crate::workloads::{self, Workload};
pub(crate) use kind::KIND;
use pairs::Mode;
pub(crate) use sample::idle_entries;
use std::path::PathBuf;
use std::time::Duration;

/// Tasks that the original takes at most.
const MOST_TASKS: usize = 2048;

/// Seconds that the original measures if nothing else is said.
const SECONDS: u64 = 5;

/// What is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// A table for each task count
    Table,
    /// The original's own words
    Original,
}

/// Which of the original's two programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Which {
    /// One address space
    Threads,
    /// One address space each
    Processes,
    /// One after the other
    Both,
}

/// What to run.
#[derive(Debug, clap::Args)]
pub(crate) struct Ask {
    /// Tasks, each with a partner; the same as --threads [default: 1,2; of the original's output 1]
    #[arg(short = 't', value_name = "LIST", value_parser = tasks)]
    tasks: Option<List<usize>>,
    /// Measured seconds, after six that are discarded [default: --time and --warmup; of the original's output 5]
    #[arg(short = 's', value_name = "N", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: Option<u64>,
    /// Bind task i to the i-th CPU instead of the i-th core (--pin pu)
    #[arg(short = 'm', conflicts_with = "anywhere")]
    per_cpu: bool,
    /// Bind nothing (--pin none)
    #[arg(short = 'n')]
    anywhere: bool,
    /// Threads, processes, or both [default: both; of the original's output threads]
    #[arg(long, value_enum)]
    mode: Option<Which>,
    /// Table, or the original's output
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// The columns of will-it-scale's runner into FILE (measures threads and processes)
    #[arg(long, value_name = "FILE|-")]
    csv_wis: Option<PathBuf>,
}

/// The value of `-t`: one range, whatever number is out of it.
fn tasks(text: &str) -> Result<List<usize>, String> {
    let number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match parse::counts(text) {
        Ok(counts) if counts.iter().all(|n| (1..=MOST_TASKS).contains(n)) => Ok(List(counts)),
        Err(why) if !number => Err(why),
        _ => Err(format!("1 to {MOST_TASKS} tasks")),
    }
}

impl Ask {
    /// The binding asked for; usually that of the original.
    fn pin(&self, options: &Options) -> Pin {
        match (self.per_cpu, self.anywhere) {
            (true, _) => Pin::Pu,
            (_, true) => Pin::None,
            _ => options.pin.unwrap_or(Pin::SmtPair),
        }
    }

    /// The options of a workload, with what stands for them here.
    fn translated(&self, options: &Options) -> Result<Options, Trouble> {
        let pinned = options.pin.is_some();
        for (own, given, theirs, too) in [
            (
                "-t",
                self.tasks.is_some(),
                "--threads",
                options.threads.is_some(),
            ),
            (
                "-s",
                self.seconds.is_some(),
                "--time",
                options.time.is_some(),
            ),
            ("-m", self.per_cpu, "--pin", pinned),
            ("-n", self.anywhere, "--pin", pinned),
            (
                "--mode",
                self.mode.is_some(),
                "--variants",
                options.variants.is_some(),
            ),
        ] {
            if given && too {
                return Err(Trouble::Usage(format!(
                    "{own} and {theirs} say the same, only one of them can be given"
                )));
            }
        }
        let mut options = options.clone();
        options.pin = Some(self.pin(&options));
        if let Some(tasks) = &self.tasks {
            options.threads = Some(tasks.clone());
        }
        if let Some(seconds) = self.seconds {
            let discarded = Duration::from_secs(sample::DISCARDED);
            options.time = Some(Duration::from_secs(seconds));
            options.warmup = options.warmup.or(Some(discarded));
        }
        match self.mode {
            Some(Which::Threads) => options.variants = Some(List(vec![kind::THREADS.to_owned()])),
            Some(Which::Processes) => {
                options.variants = Some(List(vec![kind::PROCESSES.to_owned()]))
            }
            Some(Which::Both) | None => {}
        }
        Ok(options)
    }
}

/// The subcommand.
pub(crate) fn command(ask: &Ask, options: &Options) -> Result<(), Trouble> {
    if ask.format == Format::Original || ask.csv_wis.is_some() {
        return original(ask, options);
    }
    let options = ask.translated(options)?;
    let points = workloads::Ask {
        threads: options.threads.as_ref().map(|list| list.0.clone()),
        ..workloads::Ask::default()
    };
    if let Some(most) = points.threads.iter().flatten().copied().max()
        && !options.dry_run
    {
        let option = if ask.tasks.is_some() {
            "-t"
        } else {
            "--threads"
        };
        check_room(option, most)?;
    }
    command::workload(Workload::Ctxsw, &points, &options)
}

/// Whether so many tasks fit.
fn check_room(option: &str, tasks: usize) -> Result<(), Trouble> {
    pipes::allow_files(tasks)?;
    // Each task has a partner; their stacks are small.
    room::check(option, 2 * tasks, pipes::STACK).map_err(Trouble::Environment)
}

/// The original's course.
fn original(ask: &Ask, options: &Options) -> Result<(), Trouble> {
    let has = ["--dry-run", "--pin"];
    options.without_runs_but("the original's output (use -t and -s)", &has)?;
    let pin = ask.pin(options);
    let which = match &ask.csv_wis {
        Some(_) => Which::Both,
        None => ask.mode.unwrap_or(Which::Threads),
    };
    let modes: &[Mode] = match which {
        Which::Threads => &[Mode::Threads],
        Which::Processes => &[Mode::Processes],
        Which::Both => &[Mode::Processes, Mode::Threads],
    };
    let counts = ask.tasks.as_ref().map_or(&[1][..], |list| &list.0);
    let seconds = ask.seconds.unwrap_or(SECONDS);
    if options.dry_run {
        let runs = counts.len() * modes.len();
        let each = seconds + sample::DISCARDED;
        return say(&format!(
            "{runs} runs of {each} s, {} s in all\n",
            runs as u64 * each
        ));
    }
    Root::here().measurable()?;
    check_room("-t", counts.iter().copied().max().unwrap_or(1))?;
    let mut file = match &ask.csv_wis {
        Some(path) => Some(Target::open("--csv-wis", path)?),
        None => None,
    };
    interrupt::watch();
    let mut wis = Wis::default();
    for &tasks in counts {
        let mut row = [None, None];
        for &mode in modes {
            let outcome = sample::measure(mode, pin, tasks, seconds, file.is_none())?;
            row[usize::from(mode == Mode::Threads)] = Some((outcome.average, outcome.idle_percent));
        }
        if let (Some(file), [Some(processes), Some(threads)]) = (&mut file, row) {
            file.put(&wis.row(tasks, processes, threads))?;
        }
    }
    if let Some(file) = file
        && let Some(path) = file.finish()?
    {
        say(&format!("written:\n  {}\n", path.display()))?;
    }
    Ok(())
}

/// The file of will-it-scale's runner.
#[derive(Default)]
struct Wis {
    /// The better of the first row's two rates, for the column of linear growth; with its number of tasks.
    one: Option<(usize, u64)>,
}

impl Wis {
    const HEADING: &str =
        "tasks,processes,processes_idle,threads,threads_idle,linear\n0,0,100,0,100,0\n";

    fn row(
        &mut self,
        tasks: usize,
        processes: (u64, Option<f64>),
        threads: (u64, Option<f64>),
    ) -> String {
        let heading = if self.one.is_none() {
            Self::HEADING
        } else {
            ""
        };
        let (first, rate) = *self.one.get_or_insert((tasks, processes.0.max(threads.0)));
        let linear = rate as u128 * tasks as u128 / first as u128;
        let idle = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.2}"));
        format!(
            "{heading}{tasks},{},{},{},{},{linear}\n",
            processes.0,
            idle(processes.1),
            threads.0,
            idle(threads.1)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_tasks_has_one_range() {
        assert_eq!(tasks("1,2048").unwrap().0, [1, 2048]);
        for wrong in [
            "0",
            "2049",
            "4096",
            "9999",
            "99999999999999999999",
            "1,4096",
        ] {
            assert_eq!(tasks(wrong).unwrap_err(), "1 to 2048 tasks", "{wrong}");
        }
        assert!(tasks("4..1").unwrap_err().contains("backwards"));
    }

    #[test]
    fn the_runners_columns() {
        let mut wis = Wis::default();
        assert_eq!(
            wis.row(1, (100, Some(50.0)), (120, Some(1.25))),
            "tasks,processes,processes_idle,threads,threads_idle,linear\n0,0,100,0,100,0\n1,100,50.00,120,1.25,120\n"
        );
        assert_eq!(
            wis.row(4, (300, None), (200, Some(0.0))),
            "4,300,,200,0.00,480\n"
        );
    }
}
