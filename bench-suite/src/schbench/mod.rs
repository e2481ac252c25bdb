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
//! | `kind`, `words` | the workloads: a run as a record; the options of a point |
//! | `show` | text, table, JSON |

mod clock;
mod crew;
mod delay;
mod futex;
mod goal;
mod hash;
mod histogram;
pub(crate) mod kind;
mod limits;
mod plan;
mod queue;
mod show;
#[cfg(test)]
mod tests;
mod watch;
mod words;
mod work;

pub(crate) use plan::Ask;

use crate::cli::Options;
use crate::command::{self, say};
use crate::engine::job::Pin;
use crate::engine::{interrupt, pin, sysroot::Root};
use crate::futexhash::hashes;
use crate::report::sink::Target;
use crate::trouble::Trouble;
use crate::workloads::{Ask as Points, Workload};
use crew::{Crew, Running};
use plan::{Format, On, Pacing, Plan, Slots};
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;
use watch::{Event, Outcome};

/// What a thread takes beside its matrices and pages: its histograms and the touched part of its stack.
const THREAD_BYTES: u64 = 64 << 10;

/// What a thread maps beside: its stack, that of its signal handlers, guards.
const THREAD_MAPPED: u64 = crew::STACK as u64 + (96 << 10);

/// What the process maps beside its threads: the program, the libraries, the allocator's arenas.
const BASE_MAPPED: u64 = 256 << 20;

/// The subcommand.
pub(crate) fn command(ask: &Ask, options: &Options) -> Result<(), Trouble> {
    let format = ask.format.unwrap_or(match ask.results {
        Some(_) => Format::Run,
        None => Format::Table,
    });
    match format {
        Format::Table => table(ask, options),
        Format::Run | Format::Original => original(ask, format, options),
    }
}

/// The course of the other workloads.
fn table(ask: &Ask, options: &Options) -> Result<(), Trouble> {
    let usage = |text: &str| Err(Trouble::Usage(text.to_owned()));
    for (option, given) in [
        ("-j", ask.results.is_some()),
        ("-J", ask.jobname.is_some()),
        ("-A", ask.auto_rps.is_some()),
        ("-z", ask.zero > 0),
    ] {
        if given {
            return usage(&format!("{option}: is for --format run and original"));
        }
    }
    let said_twice = |own: &str, given: bool, theirs: &str, too: bool| match given && too {
        true => usage(&format!(
            "{own} and {theirs} say the same, only one of them can be given"
        )),
        false => Ok(()),
    };
    said_twice(
        "-t",
        ask.workers.is_some(),
        "--threads",
        options.threads.is_some(),
    )?;
    said_twice(
        "-r",
        ask.runtime.is_some(),
        "--time",
        options.time.is_some(),
    )?;
    said_twice(
        "-w",
        ask.warm.is_some(),
        "--warmup",
        options.warmup.is_some(),
    )?;
    if options.pin.is_some() {
        return usage("--pin: has no meaning for schbench (use -M and -W)");
    }
    let mut options = options.clone();
    let seconds = |n: Option<u64>| n.map(Duration::from_secs);
    options.time = options.time.or(seconds(ask.runtime));
    options.warmup = options.warmup.or(seconds(ask.warm));
    options.pin = Some(Pin::None);
    let whole = |time: Duration| time.subsec_nanos() == 0;
    let usual = Duration::from_secs(u64::from(!options.quick && options.budget.is_none()));
    let time = options.time.unwrap_or(usual);
    if ask.rps.is_some_and(|n| n > 0)
        && ask.pacing == Pacing::Original
        && (time.is_zero() || !whole(time))
    {
        return usage(
            "-R: the original's pace sends the requests of a second at its start: --time must be whole seconds (or --pacing open)",
        );
    }
    let buckets = match ask.on {
        On::Kernel => {
            for (option, given) in [
                ("--buckets (use -H)", ask.buckets.is_some()),
                ("--replace-every", ask.replace_every.is_some()),
            ] {
                if given {
                    return usage(&format!("{option}: is for --on phash"));
                }
            }
            kernel_hashes(ask, &mut options)?
        }
        On::Phash if ask.hash.is_some() => {
            return usage("-H: is for the kernel's hash, --on phash has --buckets");
        }
        On::Phash => ask
            .buckets
            .as_ref()
            .map_or(Vec::new(), |list| list.0.clone()),
    };
    let buckets = match buckets.is_empty() {
        true => vec![kind::BUCKETS],
        false => buckets,
    };
    let here = pin::allowed();
    let plan = Plan::of(ask, &here)?;
    let words = words::of(ask);
    let more = buckets
        .iter()
        .map(|&buckets| kind::point(&words, buckets, ask.replace_every));
    let asked = Points {
        threads: match &options.threads {
            Some(list) => Some(list.0.clone()),
            None => Some(vec![plan.workers]),
        },
        more: Some(more.collect()),
        ..Points::default()
    };
    if !options.dry_run {
        let have = limits::Have::look();
        for &workers in asked.threads.iter().flatten() {
            have.allows(need(&Plan {
                workers,
                ..plan.clone()
            }))?;
        }
    }
    command::workload(
        match ask.on {
            On::Kernel => Workload::Schbench,
            On::Phash => Workload::SchbenchPhash,
        },
        &asked,
        &options,
    )
}

/// What `-H` and `-I` say as variants and sizes.
fn kernel_hashes(ask: &Ask, options: &mut Options) -> Result<Vec<usize>, Trouble> {
    let slots = ask.hash.as_ref().map_or(&[][..], |list| &list.0);
    let sizes: Vec<Option<usize>> = slots
        .iter()
        .map(|slots| match *slots {
            Slots::Auto => None,
            Slots::Set(n) => Some(n as usize),
        })
        .collect();
    if ask.immutable && !sizes.iter().any(|size| size.is_some_and(|n| n > 0)) {
        return Err(Trouble::Usage("-I: needs -H with a number".to_owned()));
    }
    let sizes = hashes::chosen(&sizes, ask.immutable, options);
    if let Some(&first) = sizes.first() {
        hash::has(first as u32, ask.immutable)?;
    }
    Ok(sizes)
}

/// One run in this process.
fn original(ask: &Ask, format: Format, options: &Options) -> Result<(), Trouble> {
    if options.json.is_some() {
        return Err(Trouble::Usage(
            "--json: one run writes the original's JSON, use -j".to_owned(),
        ));
    }
    options.without_runs_but(
        "--format run and original (use -t, -r and -w)",
        &["--dry-run"],
    )?;
    if ask.on == On::Phash {
        return Err(Trouble::Usage(
            "--on phash: is for --format table".to_owned(),
        ));
    }
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
    if slots.len() > 1 {
        return Err(Trouble::Usage(
            "-H: one run has one hash, a list is for --format table".to_owned(),
        ));
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
    one(ask, format == Format::Original, plan, &have, file)
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
fn one(
    ask: &Ask,
    original: bool,
    plan: Plan,
    have: &limits::Have,
    file: Option<Target>,
) -> Result<(), Trouble> {
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
