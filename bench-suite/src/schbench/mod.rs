//! Floor 3, bench-suite. Owns `hpbench schbench`: Chris Mason's scheduler benchmark for real, on the running kernel's
//! futexes and scheduler. May touch threads, affinity, futexes, `prctl` and `/proc`.
//!
//! Written from a description of the program (github.com/masoncl/schbench, 2025); its options, loops, histograms and words are
//! kept, its code is not. What differs is said where it differs, and in the book (`docs/src/schbench.md`).
//!
//! | file | owns |
//! |---|---|
//! | `plan` | options, defaults, which CPUs |
//! | `hash`, `limits` | the futex hash of the process; what keeps threads from starting |
//! | `futex` | the word with two states, posting and waiting |
//! | `crew`, `queue`, `work` | message threads and workers, requests, products under a lock |
//! | `clock`, `histogram`, `delay`, `goal` | time, percentiles, scheduling delays, the pace of `-A` |
//! | `watch` | the seconds of a run |
//! | `sweep` | a table over the sizes of the hash, a process a run |
//! | `show` | text, table, JSON |

mod clock;
mod crew;
mod delay;
mod futex;
mod goal;
mod hash;
mod histogram;
mod limits;
mod plan;
mod queue;
mod show;
mod sweep;
#[cfg(test)]
mod tests;
mod watch;
mod work;

pub(crate) use plan::Ask;

use crate::cli::Options;
use crate::command::say;
use crate::engine::{interrupt, pin, sysroot::Root};
use crate::report::sink::Target;
use crate::trouble::Trouble;
use crew::{Crew, Running};
use plan::{Format, Plan, Slots};
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use watch::{Event, Outcome};

/// What a thread takes beside its matrices and pages: its histograms and the touched part of its stack.
const THREAD_BYTES: u64 = 64 << 10;

/// What a thread maps beside: its stack, that of its signal handlers, guards.
const THREAD_MAPPED: u64 = crew::STACK as u64 + (96 << 10);

/// What the process maps beside its threads: the program, the libraries, the allocator's arenas.
const BASE_MAPPED: u64 = 256 << 20;

/// The subcommand.
pub(crate) fn command(ask: &Ask, options: &Options) -> Result<(), Trouble> {
    if options.json.is_some() {
        return Err(Trouble::Usage(
            "--json: schbench writes the original's JSON, use -j".to_owned(),
        ));
    }
    let runs = options.runs;
    // A table of runs, but no other option of runs.
    options.without_runs_but("schbench (use -t, -r and -w)", &["--runs", "--dry-run"])?;
    let plan = Plan::of(ask, &pin::allowed())?;
    let need = need(&plan);
    if options.dry_run {
        return say(&format!(
            "{}; {} threads, {} MiB\n",
            plan::short(&plan),
            need.threads,
            need.memory >> 20
        ));
    }
    Root::here().measurable()?;
    let slots = ask.hash.as_ref().map_or(&[Slots::Auto][..], |list| &list.0);
    if slots.len() > 1 || runs.is_some() {
        return sweep::command(ask, &plan, slots, runs.unwrap_or(1));
    }
    if let Slots::Set(slots) = slots[0] {
        hash::set(slots, ask.immutable)?;
    } else if ask.immutable {
        return Err(Trouble::Usage("-I: needs -H with a number".to_owned()));
    }
    let have = limits::Have::look();
    have.allows(need)?;
    let file = match &ask.results {
        Some(path) => Some(Target::open("-j", path)?),
        None => None,
    };
    interrupt::watch();
    one(ask, plan, &have, file)
}

fn need(plan: &Plan) -> limits::Need {
    let workers = (plan.messengers * plan.workers) as u64;
    let matrices = if plan.operations > 0 {
        3 * 8 * (plan.edge as u64).pow(2)
    } else {
        0
    };
    let page = plan.pipe.unwrap_or(0) as u64;
    let threads = plan.threads() as u64;
    let memory = workers * (matrices + page) + threads * THREAD_BYTES;
    limits::Need {
        threads: threads + 1,
        memory,
        mapped: memory + threads * THREAD_MAPPED + BASE_MAPPED,
    }
}

/// One run in this process.
fn one(ask: &Ask, plan: Plan, have: &limits::Have, file: Option<Target>) -> Result<(), Trouble> {
    let original = ask.format == Format::Original;
    let to_stdout = ask.results.as_deref() == Some(Path::new("-"));
    if original {
        for note in &plan.notes {
            complain(&format!("# {note}\n"))?;
        }
        if ask.workers.is_none_or(|n| n == 0) {
            complain(&format!("setting worker threads to {}\n", plan.workers))?;
        }
        if plan.message_cpus.is_some() && ask.message_cpus == Some(plan::Cpus::Auto) {
            complain("auto pinning message and worker threads\n")?;
        }
    }
    let start = clock::ns();
    let need = need(&plan);
    let blame = |(started, error): (usize, io::Error)| match error.kind() {
        // A binding.
        io::ErrorKind::Other => Trouble::Environment(error.to_string()),
        _ => have.blame(started, need, &error),
    };
    let running = Running::start(Crew::new(plan.clone(), futex::Kernel)).map_err(blame)?;
    let outcome = watch::watch(running, start, &blame, &mut |event| match event {
        Event::WarmedUp => complain("warmup done, zeroing stats\n"),
        Event::Report(sight) if original => complain(&show::original_report(sight)),
        Event::Report(sight) => complain(&show::short_report(sight)),
    })?;
    let hash = hash::State::look();
    if original {
        complain(&show::original(&plan, &outcome, hash))?;
    } else {
        let text = show::table(&plan, &outcome, hash);
        if to_stdout {
            complain(&text)?
        } else {
            say(&text)?
        }
    }
    if let Some(mut file) = file {
        let json = show::json(&header(ask), &plan, &outcome, hash);
        file.put(&format!("{json}\n"))?;
        if let Some(path) = file.finish()? {
            complain(&format!("written: {}\n", path.display()))?;
        }
    }
    verdict(&outcome)
}

fn verdict(outcome: &Outcome) -> Result<(), Trouble> {
    if outcome.interrupted {
        return Err(Trouble::Interrupted(format!(
            "interrupted after {:.1} s; what was measured is shown above",
            outcome.measured.1
        )));
    }
    Ok(())
}

/// Writes to the standard error, where the original writes everything.
fn complain(text: &str) -> Result<(), Trouble> {
    io::stderr()
        .lock()
        .write_all(text.as_bytes())
        .map_err(|error| Trouble::write("standard error", &error))
}

fn header(ask: &Ask) -> show::Header {
    let line =
        |path: &str| fs::read_to_string(path).map_or(String::new(), |text| text.trim().to_owned());
    let sched_ext = match line("/sys/kernel/sched_ext/state").as_str() {
        "" | "disabled" => String::new(),
        _ => line("/sys/kernel/sched_ext/root/ops"),
    };
    let words: Vec<String> = std::env::args_os()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    show::Header {
        release: line("/proc/sys/kernel/osrelease"),
        hostname: line("/proc/sys/kernel/hostname"),
        jobname: ask.jobname.clone(),
        sched_ext: if sched_ext.is_empty() {
            "disabled".to_owned()
        } else {
            sched_ext
        },
        cmdline: words.join(" "),
        time: std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |since| since.as_secs()),
    }
}
