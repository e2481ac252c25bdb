//! Floor 3, bench-suite. Owns `hpbench inversion`: the priority inversion of `rwsems::probe`, lock by lock, each run in
//! a process of its own with an alarm. May start processes.

use crate::cli::Options;
use crate::command::say;
use crate::engine::interrupt;
use crate::parse;
use crate::report::sink::Target;
use crate::report::stats::median;
use crate::report::{human, table};
use crate::trouble::Trouble;
use rwsems::probe::{self, Case, Found, LONGEST, Work};
use serde::{Deserialize, Serialize};
use std::process::{Command, Stdio};
use std::time::Duration;

/// A run that hangs ends after this: far more than all its work.
const ALARM: u32 = 20;

/// What to run.
#[derive(Debug, clap::Args)]
pub(crate) struct Ask {
    /// What low does inside from when high waits, like 20ms; at most 200ms
    #[arg(long, value_name = "TIME", default_value = "20ms", value_parser = work)]
    hold: Duration,
    /// What mid does, which has nothing to do with the lock; at most 200ms
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = work)]
    burn: Duration,
    /// Locks, like rwbase,pi-multi [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = lock)]
    locks: Vec<&'static str>,
    /// One lock and case in this process, as the parent asks for it
    #[arg(long, hide = true, num_args = 2, value_names = ["LOCK", "CASE"])]
    inside: Option<Vec<String>>,
}

fn work(text: &str) -> Result<Duration, String> {
    let time = parse::positive_duration(text)?;
    if time > LONGEST {
        return Err(format!(
            "at most {LONGEST:?}: it has a CPU to itself for so long"
        ));
    }
    Ok(time)
}

fn locks() -> impl Iterator<Item = &'static str> {
    let locks = rwsems::all().iter().filter(|about| about.locks);
    locks.map(|about| about.name)
}

fn lock(text: &str) -> Result<&'static str, String> {
    locks().find(|name| *name == text).ok_or_else(|| {
        let known: Vec<_> = locks().collect();
        format!("unknown lock, known are {}", known.join(", "))
    })
}

/// What one run says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Answer {
    Found { waited_ns: u64, inverted: bool },
    Refused(String),
}

impl From<Result<Found, String>> for Answer {
    fn from(outcome: Result<Found, String>) -> Self {
        match outcome {
            Ok(found) => Answer::Found {
                waited_ns: u64::try_from(found.waited.as_nanos()).unwrap_or(u64::MAX),
                inverted: found.inverted,
            },
            Err(why) => Answer::Refused(why),
        }
    }
}

/// The subcommand.
pub(crate) fn command(ask: &Ask, options: &Options) -> Result<(), Trouble> {
    if let Some(inside) = &ask.inside {
        return one(ask, &inside[0], &inside[1]);
    }
    options.without_runs_but(
        "inversion (use --locks, --hold, --burn)",
        &["--runs", "--json", "--quick", "--dry-run"],
    )?;
    let runs = options.runs.unwrap_or(if options.quick { 1 } else { 5 });
    let names: Vec<&'static str> = if ask.locks.is_empty() {
        locks().collect()
    } else {
        ask.locks.clone()
    };
    if options.dry_run {
        let count = runs * names.len() * Case::ALL.len();
        let each = ask.hold + ask.burn;
        return say(&format!(
            "{count} runs, {:.1} s at most\n",
            2.0 * each.as_secs_f64() * count as f64
        ));
    }
    if let Err(why) = probe::available() {
        return say(&format!("inversion: skipped: {why}\n"));
    }
    interrupt::watch();
    let mut file = match &options.json {
        Some(path) => Some(Target::open("--json", path)?),
        None => None,
    };
    let mut rows = vec![heading()];
    let mut notes = Vec::new();
    for &name in &names {
        let mut row = vec![name.to_owned()];
        for case in Case::ALL {
            let mut waits = Vec::new();
            let mut inverted = 0;
            for run in 0..runs {
                match start(ask, name, case)? {
                    Answer::Found {
                        waited_ns,
                        inverted: this,
                    } => {
                        waits.push(waited_ns as f64);
                        inverted += usize::from(this);
                        if let Some(file) = &mut file {
                            file.put(&line(ask, name, case, run, waited_ns, this))?;
                        }
                    }
                    Answer::Refused(why) => {
                        notes.push(why);
                        break;
                    }
                }
                if interrupt::asked() {
                    return Err(Trouble::Interrupted("interrupted".to_owned()));
                }
            }
            row.push(cell(&waits, inverted));
        }
        rows.push(row);
    }
    let to_stdout = options.json.as_deref() == Some(std::path::Path::new("-"));
    if !to_stdout {
        say(&format!(
            "inversion: how long the urgent thread waits for the lock; low works {} inside, mid {} beside; one CPU, SCHED_FIFO 10, 20, 30; median of {runs} run(s), in brackets how often mid went first\n",
            human::nanoseconds(ask.hold.as_nanos() as f64),
            human::nanoseconds(ask.burn.as_nanos() as f64),
        ))?;
        say(&table::align(&rows))?;
        notes.sort();
        notes.dedup();
        for note in notes {
            say(&format!("  skipped: {note}\n"))?;
        }
    }
    match file {
        Some(file) => file.finish().map(|_| ()),
        None => Ok(()),
    }
}

fn heading() -> Vec<String> {
    let cases = Case::ALL.iter().map(|case| case.name().to_owned());
    std::iter::once("lock".to_owned()).chain(cases).collect()
}

fn cell(waits: &[f64], inverted: usize) -> String {
    match median(waits) {
        Some(wait) => format!("{} ({inverted}/{})", human::nanoseconds(wait), waits.len()),
        None => "-".to_owned(),
    }
}

fn line(ask: &Ask, lock: &str, case: Case, run: usize, waited_ns: u64, inverted: bool) -> String {
    let value = serde_json::json!({
        "schema": crate::report::record::SCHEMA,
        "workload": "inversion",
        "variant": lock,
        "case": case.name(),
        "run": run,
        "hold_ns": ask.hold.as_nanos() as u64,
        "burn_ns": ask.burn.as_nanos() as u64,
        "waited_ns": waited_ns,
        "inverted": inverted,
    });
    format!("{value}\n")
}

/// One run in a process of its own.
fn start(ask: &Ask, lock: &str, case: Case) -> Result<Answer, Trouble> {
    let environment = |why: String| Trouble::Environment(why);
    let program = std::env::current_exe()
        .map_err(|error| environment(format!("cannot find this program: {error}")))?;
    let time = |time: Duration| format!("{}us", time.as_micros());
    let output = Command::new(program)
        .args([
            "inversion",
            "--hold",
            &time(ask.hold),
            "--burn",
            &time(ask.burn),
        ])
        .args(["--inside", lock, case.name()])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| environment(format!("cannot start a child process: {error}")))?;
    if !output.status.success() {
        return Err(Trouble::Correctness(format!(
            "inversion: {lock}, {}: the run ended with {}: {}",
            case.name(),
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        )));
    }
    serde_json::from_slice(&output.stdout)
        .map_err(|error| environment(format!("the child process gave no answer: {error}")))
}

/// In the child.
fn one(ask: &Ask, lock: &str, case: &str) -> Result<(), Trouble> {
    struct Run(Case, Work);
    impl rwsems::VisitLock for Run {
        type Out = Result<Found, String>;

        fn visit<L: rwsems::RwSem>(self) -> Self::Out {
            probe::run::<L>(self.0, self.1)
        }
    }
    interrupt::die_with_parent();
    // SAFETY: takes a number; the default action of its signal ends the process.
    unsafe { libc::alarm(ALARM) };
    let unknown = || Trouble::Usage(format!("--inside: no such run: {lock}, {case}"));
    let case = Case::ALL.into_iter().find(|known| known.name() == case);
    let work = Work {
        hold: ask.hold,
        burn: ask.burn,
    };
    let run = Run(case.ok_or_else(unknown)?, work);
    let outcome = rwsems::dispatch_lock(lock, run).ok_or_else(unknown)?;
    let answer = serde_json::to_string(&Answer::from(outcome)).expect("plain data");
    say(&format!("{answer}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_back() {
        for answer in [
            Answer::Refused("no".into()),
            Answer::Found {
                waited_ns: 5,
                inverted: true,
            },
        ] {
            let text = serde_json::to_string(&answer).unwrap();
            assert_eq!(serde_json::from_str::<Answer>(&text).unwrap(), answer);
        }
        assert_eq!(cell(&[], 0), "-");
        assert_eq!(cell(&[1e6, 3e6, 2e6], 1), "2.00 ms (1/3)");
    }

    #[test]
    fn bounds_and_names() {
        assert!(work("201ms").is_err() && work("0s").is_err());
        assert_eq!(work("200ms"), Ok(LONGEST));
        assert_eq!(lock("rwbase"), Ok("rwbase"));
        assert!(lock("vma-hp").unwrap_err().contains("pi-multi"));
    }
}
