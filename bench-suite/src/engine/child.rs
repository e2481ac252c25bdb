//! Floor 3, bench-suite. Owns the isolation of runs: each one is a process of its own.
//! May touch processes and the environment.
//!
//! The process is the unit of replication: no run inherits another one's heap, participant lists, idle records or
//! garbage, and a scheme that crashes fails its run instead of ending the program. It is also the only way to force a
//! rung, which is chosen once per process. The parent starts itself with a hidden subcommand and one [`Job`] as JSON;
//! the child prints one record. A run that hangs is ended by an alarm in the child, so that the parent can wait
//! without waking up.

use super::job::Job;
use crate::report::record::{Record, Status};
use crate::schemes::About;
use crate::trouble::Trouble;
use std::ffi::OsString;
use std::process::{Command, ExitStatus, Stdio};

/// The hidden subcommand.
pub(crate) const SUBCOMMAND: &str = "run-one";

/// The variable that forces a rung.
pub(crate) const RUNG_VARIABLE: &str = "HP_BARRIER";

/// Runs `job` in a child process, with `more` options, and returns its record.
pub(crate) fn run(job: &Job, about: &About, more: &[OsString]) -> Result<Record, Trouble> {
    let program = std::env::current_exe().map_err(|error| {
        Trouble::Environment(format!(
            "cannot find this program to start it again: {error}"
        ))
    })?;
    let encoded = serde_json::to_string(job).expect("a job is plain data");
    let mut command = Command::new(program);
    command
        .arg(SUBCOMMAND)
        .arg(encoded)
        .args(more)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    if let Some(rung) = about.rung {
        command.env(RUNG_VARIABLE, rung);
    }
    let output = command
        .output()
        .map_err(|error| Trouble::Environment(format!("cannot start a child process: {error}")))?;
    let last_words = last_words(&output.stderr);
    if output.status.success() {
        return serde_json::from_slice(&output.stdout).map_err(|error| {
            Trouble::Environment(format!(
                "the child process for {} gave no record: {error}",
                job.variant
            ))
        });
    }
    if matches!(output.status.code(), Some(1..=3)) {
        let why = last_words.strip_prefix("hpbench: ").unwrap_or(&last_words);
        return Err(Trouble::Environment(why.to_owned()));
    }
    let mut record = Record::empty(job);
    record.status = Status::Failed;
    record.note = format!("{}; {last_words}", ending(output.status));
    Ok(record)
}

/// What the child said on its standard error, as one line.
pub(crate) fn last_words(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let lines = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with("note: "));
    let line: String = lines
        .collect::<Vec<_>>()
        .join(" ")
        .chars()
        .take(300)
        .collect();
    if line.is_empty() {
        "without a message".to_owned()
    } else {
        line
    }
}

/// How a process ended, in words.
fn ending(status: ExitStatus) -> String {
    #[cfg(unix)]
    {
        use std::os::unix::process::ExitStatusExt;
        match status.signal() {
            Some(libc::SIGALRM) => return "the run did not finish in time".to_owned(),
            Some(signal) => return format!("the run was killed by signal {signal}"),
            None => {}
        }
    }
    format!("the run ended with {status}")
}

/// In the child: a panic of any thread ends the run. The others may wait for that one: at the gate, for its answer, for
/// its end.
pub(crate) fn end_on_panic() {
    let told = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        told(panic);
        // What a panic of the main thread ends with; without destructors, which the other threads are in the way of.
        #[cfg(unix)]
        // SAFETY: takes a number and does not come back.
        unsafe {
            libc::_exit(101)
        }
        #[cfg(not(unix))]
        std::process::exit(101)
    }));
}

/// How long a run of fixed work may take, in seconds: nobody knows before how long it should.
const FIXED_WORK: u64 = 24 * 60 * 60;

/// After how many seconds a run hangs.
fn patience(job: &Job) -> u64 {
    match job.time.is_zero() {
        true => FIXED_WORK,
        false => 60 + (job.time + job.warmup).as_secs() + job.threads as u64 / 20,
    }
}

/// In the child: die of an alarm when the run takes far longer than it should.
pub(crate) fn set_alarm(job: &Job) {
    let seconds = patience(job);
    #[cfg(unix)]
    // SAFETY: `alarm` takes a number and touches no memory; the default action of its signal ends the process.
    unsafe {
        libc::alarm(u32::try_from(seconds).unwrap_or(u32::MAX));
    }
    #[cfg(not(unix))]
    let _ = seconds;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slow is not wrong: only what has a time can exceed it.
    #[test]
    fn fixed_work_takes_as_long_as_it_takes() {
        use crate::cli::Cli;
        use crate::points::Points;
        use crate::workloads::{Ask, Workload};
        use clap::Parser;
        use std::time::Duration;
        let options = Cli::parse_from(["hpbench", "--time", "90s", "--warmup", "30s"]).options;
        let ask = Ask {
            threads: Some(vec![40]),
            ..Ask::default()
        };
        let mut job = Points::of(Workload::Read, &ask, &options).jobs.remove(0);
        assert_eq!(patience(&job), 60 + 120 + 2);
        job.time = Duration::ZERO;
        assert_eq!(patience(&job), FIXED_WORK);
    }

    #[test]
    fn last_words_are_one_line() {
        let panic = b"\nthread 'x' panicked at here:\nwhat happened\nnote: run with more\n";
        assert_eq!(
            last_words(panic),
            "thread 'x' panicked at here: what happened"
        );
        assert_eq!(last_words(b""), "without a message");
    }
}
