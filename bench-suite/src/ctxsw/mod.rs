//! Floor 3, bench-suite. Owns `hpbench ctxsw`: will-it-scale's `context_switch1`, for real: pairs that hand one byte
//! back and forth through two pipes. May touch threads, processes, pipes and the kernel's idle counters.
//!
//! What one task does, how it is placed and what is counted follow will-it-scale (its `main.c` and
//! `tests/context_switch1.c`; semantics only): task i runs on core i, on all CPUs of that core (`-m`: on the i-th CPU;
//! `-n`: anywhere); its partner is made by the bound task and shares its CPUs; a round trip counts two; six seconds are
//! discarded; the average is the sum of the measured seconds over their number. With threads all tasks share one
//! address space; with processes each has its own.
//!
//! | file | owns |
//! |---|---|
//! | `pipes` | the two pipes of a pair, and what goes through them (`lazy-mm track` has the same) |
//! | `pairs` | the tasks: threads or processes, their counters and end |
//! | `sample` | the seconds: what main reads and prints |

mod pairs;
pub(crate) mod pipes;
mod sample;

use crate::cli::Options;
use crate::command::say;
use crate::engine::{interrupt, room};
use crate::parse;
use crate::report::human;
use crate::report::sink::Target;
use crate::trouble::Trouble;
use pairs::{Binding, Mode};
use sample::Outcome;
pub(crate) use sample::idle_entries;
use std::path::PathBuf;

/// Tasks that the original takes at most.
const MOST_TASKS: usize = 2048;

/// What is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// One line for each task count
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
    /// Tasks, each with a partner: a list as of --threads
    #[arg(short = 't', value_name = "LIST", default_value = "1", value_parser = |text: &str| parse::counts(text).map(crate::cli::List))]
    tasks: crate::cli::List<usize>,
    /// Measured seconds, after six that are discarded
    #[arg(short = 's', value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    seconds: u64,
    /// Bind task i to the i-th CPU instead of the i-th core
    #[arg(short = 'm', conflicts_with = "anywhere")]
    per_cpu: bool,
    /// Bind nothing
    #[arg(short = 'n')]
    anywhere: bool,
    /// Threads, processes, or both
    #[arg(long, value_enum, default_value = "threads")]
    mode: Which,
    /// Table, or the original's output
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// The columns of will-it-scale's runner into FILE (measures threads and processes)
    #[arg(long, value_name = "FILE|-")]
    csv_wis: Option<PathBuf>,
}

/// The subcommand.
pub(crate) fn command(ask: &Ask, options: &Options) -> Result<(), Trouble> {
    options.without_runs("ctxsw (use -t and -s)", false)?;
    for &tasks in &ask.tasks.0 {
        if tasks == 0 || tasks > MOST_TASKS {
            return Err(Trouble::Usage(format!(
                "invalid value '{tasks}' for '-t <LIST>': 1 to {MOST_TASKS} tasks"
            )));
        }
    }
    let binding = match (ask.per_cpu, ask.anywhere) {
        (true, _) => Binding::Cpu,
        (_, true) => Binding::None,
        _ => Binding::Core,
    };
    let which = if ask.csv_wis.is_some() {
        Which::Both
    } else {
        ask.mode
    };
    let modes: &[Mode] = match which {
        Which::Threads => &[Mode::Threads],
        Which::Processes => &[Mode::Processes],
        Which::Both => &[Mode::Processes, Mode::Threads],
    };
    let most = ask.tasks.0.iter().copied().max().unwrap_or(1);
    pipes::allow_files(most)?;
    let mut file = match &ask.csv_wis {
        Some(path) => Some(Target::open("--csv-wis", path)?),
        None => None,
    };
    if options.dry_run {
        let runs = ask.tasks.0.len() * modes.len();
        let each = ask.seconds + sample::DISCARDED;
        return say(&format!(
            "{runs} runs of {each} s, {} s in all\n",
            runs as u64 * each
        ));
    }
    // Each task has a partner; their stacks are small.
    room::check("-t", 2 * most, 64 << 10).map_err(Trouble::Environment)?;
    interrupt::watch();
    let mut wis = Wis::default();
    if ask.format == Format::Table && file.is_none() {
        say(
            "context_switch1: one-way messages per second through pipes, two for each round trip\n",
        )?;
        say(
            "  mode       tasks      average  per task      min s      max s  idle entries/op  idle\n",
        )?;
    }
    for &tasks in &ask.tasks.0 {
        let mut row = [None, None];
        for &mode in modes {
            let original = ask.format == Format::Original && file.is_none();
            let outcome = sample::measure(mode, binding, tasks, ask.seconds, original)?;
            if ask.format == Format::Table && file.is_none() {
                say(&line(mode, tasks, &outcome))?;
            }
            row[usize::from(mode == Mode::Threads)] = Some((outcome.average, outcome.idle_percent));
            if interrupt::asked() {
                return Err(Trouble::Interrupted(
                    "interrupted; finished runs are shown above".to_owned(),
                ));
            }
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

fn line(mode: Mode, tasks: usize, outcome: &Outcome) -> String {
    let idle = |value: Option<f64>, digits: usize| {
        value.map_or("-".to_owned(), |value| format!("{value:.digits$}"))
    };
    format!(
        "  {:<10}{:>6}{:>13}{:>10}{:>11}{:>11}{:>17}{:>6}\n",
        mode.name(),
        tasks,
        human::count(outcome.average as f64),
        human::count(outcome.average as f64 / tasks as f64),
        human::count(outcome.least as f64),
        human::count(outcome.most as f64),
        idle(outcome.idle_per_op, 3),
        idle(outcome.idle_percent, 0) + " %",
    )
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
