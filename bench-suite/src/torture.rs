//! Floor 3, bench-suite. Owns `hpbench torture`: the crate `torture`, scheme by scheme, each in a process of its own
//! that may crash or hang. May start processes.

use crate::cli::{List, Options};
use crate::command::say;
use crate::engine::interrupt;
use crate::machine::Stamp;
use crate::parse;
use crate::report::record::SCHEMA;
use crate::report::sink::Target;
use crate::report::{human, table};
use crate::trouble::Trouble;
use serde_json::{Value, json};
use std::io::{IsTerminal, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use torture::{About, Dimension, Plan, Progress};

/// More threads than this are a mistake.
const MOST: usize = 4096;

/// What a process may take beyond its time and its watchdog: threads that end, what waits.
const GRACE: Duration = Duration::from_secs(60);

/// What to run.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Dimensions, all on unless --only or --without says otherwise:
  sleep       readers sleep while they protect
  handover    what one thread protects another releases, later
  signal      readers are interrupted by a handler that reads as well
  overcommit  four readers for each CPU instead of one (two at least)
  affinity    readers and writers are moved from CPU to CPU, one each millisecond
  churn       readers come, read fifty times, and end
  stutter     everybody pauses and goes on at the same time
  starve      readers protect up to forty times at once: slots run out

A reader may see ages 0 (published) and 1 (unlinked while it held on); anything older, a freed payload, an element that
was reclaimed twice or never, and a thread that makes no progress end the run: exit code 4, with its state. The rung is
chosen as always (HP_BARRIER=fence|membarrier|rseq).")]
pub(crate) struct Ask {
    /// What to torture, like hp,rcu; a scheme with a planted fault (broken-wait and so on) by its name only
    /// [default: all that have none]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = scheme)]
    scheme: Vec<&'static str>,
    /// Threads that read all the time [default: one for each CPU, with overcommit four]
    #[arg(long, value_name = "N", value_parser = crew)]
    readers: Option<usize>,
    /// Threads that replace all the time
    #[arg(long, value_name = "N", value_parser = crew, default_value_t = 2)]
    writers: usize,
    /// These dimensions and no others, like sleep,churn; none for none
    #[arg(long, value_name = "LIST", value_parser = |text: &str| dimensions(text).map(List), conflicts_with = "without")]
    only: Option<List<Dimension>>,
    /// All dimensions but these
    #[arg(long, value_name = "LIST", value_parser = |text: &str| dimensions(text).map(List))]
    without: Option<List<Dimension>>,
    /// A thread that does nothing for so long hangs
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse::positive_duration)]
    watchdog: Duration,
    /// One scheme in this process, as the parent asks for it
    #[arg(long, hide = true, value_name = "SCHEME", value_parser = scheme)]
    inside: Option<&'static str>,
}

fn scheme(text: &str) -> Result<&'static str, String> {
    if let Some(about) = torture::find(text) {
        return Ok(about.name);
    }
    let known: Vec<_> = sound().map(|about| about.name).collect();
    Err(format!("unknown scheme, known are {}", known.join(", ")))
}

/// Those without a planted fault, and without what only the tests need.
fn sound() -> impl Iterator<Item = &'static About> {
    let all = torture::all().iter();
    all.filter(|about| about.fault.is_none() && about.name != "control")
}

fn crew(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count @ 1..=MOST) => Ok(count),
        _ => Err(format!("not a number of threads from 1 to {MOST}")),
    }
}

fn dimensions(text: &str) -> Result<Vec<Dimension>, String> {
    if text == "none" {
        return Ok(Vec::new());
    }
    text.split(',')
        .map(|name| {
            Dimension::find(name).ok_or_else(|| {
                let known = Dimension::ALL.map(Dimension::name).join(", ");
                format!("unknown dimension '{name}', known are {known}")
            })
        })
        .collect()
}

impl Ask {
    fn plan(&self, options: &Options) -> Plan {
        let dimensions = match (&self.only, &self.without) {
            (Some(only), _) => only.0.clone(),
            (None, Some(without)) => Dimension::ALL
                .into_iter()
                .filter(|one| !without.0.contains(one))
                .collect(),
            (None, None) => Dimension::ALL.to_vec(),
        };
        Plan {
            readers: self.readers,
            writers: self.writers,
            time: options
                .time
                .unwrap_or(Duration::from_secs(if options.quick { 1 } else { 10 })),
            seed: options.seed,
            dimensions,
            watchdog: self.watchdog,
        }
    }
}

/// The subcommand.
pub(crate) fn command(ask: &Ask, options: &Options) -> Result<(), Trouble> {
    if let Some(name) = ask.inside {
        return inside(name, ask.plan(options));
    }
    options.without_runs_but(
        "torture (use --scheme, --readers, --writers)",
        &["--time", "--json", "--quick", "--dry-run"],
    )?;
    let names: Vec<&'static str> = if ask.scheme.is_empty() {
        sound().map(|about| about.name).collect()
    } else {
        ask.scheme.clone()
    };
    let plan = ask.plan(options);
    if options.dry_run {
        return say(&format!(
            "{} runs ({}), {} readers, {} writers, {:.1} s\n",
            names.len(),
            names.join(", "),
            plan.readers(),
            plan.writers,
            plan.time.as_secs_f64() * names.len() as f64
        ));
    }
    interrupt::watch();
    let mut file = match &options.json {
        Some(path) => Some(Target::open("--json", path)?),
        None => None,
    };
    let stamp = Stamp::here();
    let quiet = options.json.as_deref() == Some(Path::new("-"));
    let mut rows = vec![heading()];
    let mut notes = Vec::new();
    let mut wrong = Vec::new();
    let mut interrupted = false;
    for name in names {
        let record = start(name, &plan)?;
        interrupted |= record["interrupted"] == true || interrupt::asked();
        if let Some(file) = &mut file {
            file.put(&format!("{}\n", stamped(&record, &stamp)))?;
        }
        rows.push(row(&record));
        notes.extend(remarks(&record));
        if !record["failure"].is_null() {
            wrong.push(told(&record));
        }
        // The first wrong age ends it all, as does Ctrl-C.
        if interrupted || !wrong.is_empty() {
            break;
        }
    }
    if !quiet {
        say(&format!(
            "torture: what nobody may have, seen by nobody; {} each, {} readers, {} writers, seed {}; on: {}\n",
            human::nanoseconds(plan.time.as_nanos() as f64),
            plan.readers(),
            plan.writers,
            plan.seed,
            on(&plan),
        ))?;
        say(&table::align(&rows))?;
        for note in notes {
            say(&format!("  {note}\n"))?;
        }
    }
    if let Some(file) = file {
        file.finish()?;
    }
    if !wrong.is_empty() {
        return Err(Trouble::Correctness(wrong.join("\n")));
    }
    if interrupted {
        return Err(Trouble::Interrupted(
            "interrupted; what was seen until then stands above".to_owned(),
        ));
    }
    Ok(())
}

fn on(plan: &Plan) -> String {
    if plan.dimensions.is_empty() {
        return "nothing".to_owned();
    }
    let names: Vec<_> = plan.dimensions.iter().map(|one| one.name()).collect();
    names.join(", ")
}

fn number(record: &Value, name: &str) -> u64 {
    record[name].as_u64().unwrap_or(0)
}

fn total(record: &Value, name: &str) -> u64 {
    let map = record[name].as_object();
    map.map_or(0, |map| map.values().filter_map(Value::as_u64).sum())
}

fn heading() -> Vec<String> {
    [
        "scheme",
        "rung",
        "reads",
        "updates",
        "age 0",
        "age 1",
        "older",
        "reclaimed",
        "most waiting",
        "verdict",
    ]
    .map(str::to_owned)
    .to_vec()
}

fn row(record: &Value) -> Vec<String> {
    let age = |n: usize| record["ages"][n].as_u64().unwrap_or(0);
    let older: u64 = (2..torture::AGES).map(age).sum();
    let rung = record["rung"].as_str().unwrap_or("-").to_owned();
    let verdict = match &record["failure"] {
        Value::Null if record["interrupted"] == true => "interrupted",
        Value::Null => "clean",
        _ => "WRONG",
    };
    vec![
        record["scheme"].as_str().unwrap_or("-").to_owned(),
        rung,
        total(record, "reads").to_string(),
        total(record, "updates").to_string(),
        age(0).to_string(),
        age(1).to_string(),
        older.to_string(),
        number(record, "reclaimed").to_string(),
        number(record, "peak_waiting").to_string(),
        verdict.to_owned(),
    ]
}

/// What happened beside reads and updates; what has no meaning for the scheme.
fn remarks(record: &Value) -> Vec<String> {
    let scheme = record["scheme"].as_str().unwrap_or("-");
    let mut text = vec![format!(
        "{scheme}: slept inside {}, handed over {}, in a handler {}, many at once {}, churned {}, moved {}, pauses {}, used again {}",
        number(record, "sleeps"),
        number(record, "handed_over"),
        number(record, "in_handler"),
        number(record, "starved"),
        number(record, "churned"),
        number(record, "moved"),
        number(record, "stutters"),
        number(record, "recycled"),
    )];
    let missing = record["not_applicable"].as_object();
    for (dimension, why) in missing.into_iter().flatten() {
        let why = why.as_str().unwrap_or("-");
        text.push(format!("{scheme}: no {dimension}: {why}"));
    }
    text
}

/// The state of a run that went wrong, in a few lines.
fn told(record: &Value) -> String {
    let failure = &record["failure"];
    let text = |name: &str| failure[name].as_str().unwrap_or("-").to_owned();
    let mut line = format!(
        "torture: {}: {}; by {} on CPU {}, {:.1} ms after the start, rung {}, seed {}",
        record["scheme"].as_str().unwrap_or("-"),
        text("sign"),
        text("thread"),
        failure["cpu"],
        failure["after_ms"].as_f64().unwrap_or(0.0),
        record["rung"].as_str().unwrap_or("-"),
        record["seed"],
    );
    if !failure["element"].is_null() {
        line.push_str(&format!(
            "; element {}, age {}, stamp {} (now {})",
            failure["element"], failure["age"], failure["stamp"], failure["stamp_now"]
        ));
    }
    let steps: Vec<_> = failure["steps"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|step| {
            format!(
                "{:.3} {}",
                step[0].as_f64().unwrap_or(0.0),
                step[1].as_str().unwrap_or("-")
            )
        })
        .collect();
    if !steps.is_empty() {
        line.push_str(&format!("\n  its last steps (ms): {}", steps.join(", ")));
    }
    line
}

fn stamped(record: &Value, stamp: &Stamp) -> Value {
    let mut whole = json!({ "schema": SCHEMA, "workload": "torture", "machine": stamp.whole() });
    if let (Some(whole), Some(record)) = (whole.as_object_mut(), record.as_object()) {
        whole.extend(record.clone());
    }
    whole
}

/// One scheme in a process of its own. What it says, or, if it says nothing any more, what became of it.
fn start(name: &'static str, plan: &Plan) -> Result<Value, Trouble> {
    let environment = |why: String| Trouble::Environment(why);
    let program = std::env::current_exe()
        .map_err(|error| environment(format!("cannot find this program: {error}")))?;
    let mut command = Command::new(program);
    command
        .arg("torture")
        .args(["--inside", name])
        .args(["--time", &micros(plan.time)])
        .args(["--watchdog", &micros(plan.watchdog)])
        .args(["--seed", &plan.seed.to_string()])
        .args(["--writers", &plan.writers.to_string()])
        .args(["--readers", &plan.readers().to_string()]);
    let names: Vec<_> = plan.dimensions.iter().map(|one| one.name()).collect();
    let only = if names.is_empty() {
        "none".to_owned()
    } else {
        names.join(",")
    };
    command.args(["--only", &only]);
    // A group of its own: Ctrl-C is for this process, which passes it on.
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| environment(format!("cannot start a child process: {error}")))?;
    let mut output = child
        .stdout
        .take()
        .ok_or_else(|| environment("no pipe".to_owned()))?;
    let reader = thread::spawn(move || {
        let mut text = String::new();
        output.read_to_string(&mut text).map(|_| text)
    });
    let status = wait(&mut child, plan.time + plan.watchdog + GRACE)?;
    let text = reader.join().ok().and_then(Result::ok).unwrap_or_default();
    match (status, serde_json::from_str::<Value>(&text)) {
        (Some(_), Ok(record)) => Ok(record),
        (status, _) => Ok(died(name, plan, status)),
    }
}

fn micros(time: Duration) -> String {
    format!("{}us", time.as_micros().max(1))
}

/// Waits for the end, and passes on that somebody wants it to end. Nothing if it had to be killed.
fn wait(child: &mut Child, longest: Duration) -> Result<Option<ExitStatus>, Trouble> {
    let environment =
        |error| Trouble::Environment(format!("cannot wait for a child process: {error}"));
    let begin = Instant::now();
    let mut passed_on = false;
    loop {
        if let Some(status) = child.try_wait().map_err(environment)? {
            return Ok(Some(status));
        }
        if interrupt::asked() && !passed_on {
            passed_on = true;
            // SAFETY: a signal to our own child, which has not been waited for.
            unsafe { libc::kill(child.id().cast_signed(), libc::SIGTERM) };
        }
        if begin.elapsed() > longest {
            child.kill().map_err(environment)?;
            child.wait().map_err(environment)?;
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// What is known of a process that gave no account.
fn died(name: &str, plan: &Plan, status: Option<ExitStatus>) -> Value {
    let sign = match status {
        None => "the process hung and was killed".to_owned(),
        Some(status) => match status.signal() {
            Some(signal) => format!("the process died of signal {signal}"),
            None => format!("the process ended without an account ({status})"),
        },
    };
    json!({
        "scheme": name,
        "rung": percpu::capabilities().rung.to_string(),
        "seed": plan.seed,
        "readers": plan.readers(),
        "writers": plan.writers,
        "dimensions": plan.dimensions,
        "interrupted": interrupt::asked(),
        "failure": { "sign": sign, "thread": "unknown", "cpu": null, "after_ms": null, "steps": [] },
    })
}

/// In the child: the account as JSON, progress to the standard error if that is a terminal.
fn inside(name: &'static str, plan: Plan) -> Result<(), Trouble> {
    interrupt::die_with_parent();
    interrupt::watch();
    let about =
        torture::find(name).ok_or_else(|| Trouble::Usage(format!("--inside: no {name}")))?;
    let show = std::io::stderr().is_terminal();
    let mut tell = |progress: Progress| {
        if show {
            eprint!(
                "\r{name}: {:.0} s, {} reads, {} updates, {} waiting   ",
                progress.elapsed.as_secs_f64(),
                progress.reads,
                progress.updates,
                progress.waiting
            );
        }
    };
    let report = about.run(plan, &interrupt::asked, &mut tell);
    if show {
        eprint!("\r\x1b[K");
    }
    let text = serde_json::to_string(&report)
        .map_err(|error| Trouble::Environment(format!("cannot write an account: {error}")))?;
    say(&format!("{text}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_bounds() {
        assert_eq!(scheme("hp"), Ok("hp"));
        assert_eq!(scheme("broken-wait"), Ok("broken-wait"));
        assert!(scheme("ebr").unwrap_err().contains("rcu-qsbr"));
        assert_eq!(dimensions("none"), Ok(vec![]));
        assert_eq!(
            dimensions("sleep,churn"),
            Ok(vec![Dimension::Sleep, Dimension::Churn])
        );
        assert!(dimensions("sleep,noise").unwrap_err().contains("'noise'"));
        assert!(crew("0").is_err() && crew("4097").is_err());
        assert_eq!(crew("4096"), Ok(4096));
    }

    /// The list in the help is the list.
    #[test]
    fn the_help_names_every_dimension() {
        use clap::Args;
        let command = Ask::augment_args(clap::Command::new("torture"));
        let help = command.get_after_help().expect("a list").to_string();
        for dimension in Dimension::ALL {
            assert!(help.contains(&format!("\n  {} ", dimension.name())));
        }
    }
}
