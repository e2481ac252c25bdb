//! Floor 3, bench-suite. `hpbench torture` from outside: every rung, each way to end.
#![cfg(target_os = "linux")]

mod common;

use common::{complaint, hpbench, text};
use serde_json::Value;
use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const DIMENSIONS: [&str; 8] = [
    "sleep",
    "handover",
    "signal",
    "overcommit",
    "affinity",
    "churn",
    "stutter",
    "starve",
];

const SCHEMES: [&str; 5] = ["hp", "hp-held", "rcu", "rcu-thread", "rcu-qsbr"];

fn run(arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut program = hpbench(&["torture"]);
    for name in ["HP_INDEX", "GLIBC_TUNABLES"] {
        program.env_remove(name);
    }
    program
        .args(arguments)
        .envs(environment.iter().copied())
        .output()
        .expect("runs")
}

/// The records that a clean run of all schemes writes.
fn clean(arguments: &[&str], environment: &[(&str, &str)]) -> Vec<Value> {
    let output = run(&[&["--json", "-"], arguments].concat(), environment);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let records: Vec<Value> = text(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).expect("a record"))
        .collect();
    for record in &records {
        assert_eq!(record["workload"], "torture");
        assert!(
            record["machine"].is_object() && record["failure"].is_null(),
            "{record}"
        );
        let ages = record["ages"].as_array().expect("a histogram");
        assert!(ages[0].as_u64() > Some(0), "{record}");
        assert!(ages[2..].iter().all(|count| count == 0), "{record}");
        assert!(record["reclaimed"].as_u64() > Some(0), "{record}");
        assert_eq!(record["reclaimed"], record["unlinked"], "{record}");
    }
    records
}

/// On every rung that this machine has, and on what lower rungs there are without rseq. (Which rungs these are is said
/// by `hpbench capabilities`; a rung that is asked for and not there gives a lower one.)
#[test]
fn clean_on_every_rung() {
    let mut rungs = Vec::new();
    for environment in [
        &[("HP_BARRIER", "rseq")][..],
        &[("HP_BARRIER", "membarrier")],
        &[("HP_BARRIER", "fence")],
        &[("HP_INDEX", "cpu_id")],
        &[("HP_INDEX", "mm_cid")],
        &[("GLIBC_TUNABLES", "glibc.pthread.rseq=0")],
    ] {
        let records = clean(&["--time", "700ms"], environment);
        let schemes: Vec<_> = records.iter().map(|record| &record["scheme"]).collect();
        assert_eq!(schemes, SCHEMES);
        for record in &records {
            assert_eq!(record["rung"], records[0]["rung"]);
        }
        rungs.push(records[0]["rung"].as_str().expect("a rung").to_owned());
    }
    // Never a better one than was asked for.
    assert_ne!(rungs[1], "rseq");
    assert_eq!(rungs[2], "fence");
    assert_ne!(rungs[5], "rseq");
}

/// What is on takes place and is in the record; what is off is not.
#[test]
fn dimensions_are_switched() {
    let counted = |record: &Value, dimension: &str| {
        let number = |name: &str| record[name].as_u64().expect("a number");
        match dimension {
            "sleep" => number("sleeps"),
            "handover" => number("handed_over"),
            "signal" => number("in_handler"),
            "affinity" => number("moved"),
            "churn" => number("churned"),
            "stutter" => number("stutters"),
            "starve" => number("starved"),
            // Seen by the number of readers.
            "overcommit" => 0,
            other => panic!("{other}"),
        }
    };
    let readers = |record: &Value| record["readers"].as_u64().expect("a number");
    let all = clean(&["--time", "700ms", "--scheme", "hp"], &[]);
    for dimension in DIMENSIONS.iter().filter(|name| **name != "overcommit") {
        assert!(counted(&all[0], dimension) > 0, "{dimension}: {}", all[0]);
    }
    let none = clean(
        &["--time", "300ms", "--scheme", "hp", "--only", "none"],
        &[],
    );
    assert_eq!(none[0]["dimensions"], serde_json::json!([]));
    assert!(readers(&none[0]) < readers(&all[0]));
    for dimension in DIMENSIONS {
        assert_eq!(counted(&none[0], dimension), 0, "{dimension}");
    }
    let some = clean(
        &[
            "--time",
            "500ms",
            "--scheme",
            "hp",
            "--without",
            "churn,signal",
        ],
        &[],
    );
    assert_eq!(counted(&some[0], "churn") + counted(&some[0], "signal"), 0);
    assert!(counted(&some[0], "affinity") > 0);
}

/// A planted fault: exit 4, the state of the run in the message and the record.
#[test]
fn a_wrong_age_ends_the_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("torture.jsonl");
    let output = run(
        &[
            "--scheme",
            "broken-wait,hp",
            "--time",
            "60s",
            "--seed",
            "9",
            "--json",
            file.to_str().expect("a name"),
        ],
        &[],
    );
    assert_eq!(output.status.code(), Some(4));
    let told = text(&output.stderr);
    for part in [
        "broken-wait: a reader holds",
        "rung ",
        "seed 9",
        "element ",
        "age ",
        "last steps",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let table = text(&output.stdout);
    assert!(table.contains("WRONG"), "{table}");
    // The first one ends it: the second scheme was not begun, and the record is there.
    let written = fs::read_to_string(&file).expect("the record");
    assert_eq!(written.lines().count(), 1);
    let record: Value = serde_json::from_str(&written).expect("a record");
    assert_eq!(record["scheme"], "broken-wait");
    assert!(record["failure"]["steps"].as_array().expect("steps").len() > 1);
    assert!(record["seconds"].as_f64() < Some(59.0));
}

#[test]
fn what_is_lost_and_what_hangs_is_told() {
    let output = run(&["--scheme", "broken-leak", "--time", "1s"], &[]);
    assert_eq!(output.status.code(), Some(4));
    assert!(text(&output.stderr).contains("not all been reclaimed"));
    let output = run(
        &[
            "--scheme",
            "broken-hang",
            "--time",
            "60s",
            "--watchdog",
            "2s",
        ],
        &[],
    );
    assert_eq!(output.status.code(), Some(4));
    let told = text(&output.stderr);
    assert!(told.contains("makes no progress; by writer"), "{told}");
}

/// The process of a scheme, once it is there.
fn inside(parent: u32) -> u32 {
    let children = PathBuf::from(format!("/proc/{parent}/task/{parent}/children"));
    let begin = Instant::now();
    loop {
        let list = fs::read_to_string(&children).unwrap_or_default();
        if let Some(child) = list.split_whitespace().next() {
            return child.parse().expect("a number");
        }
        assert!(begin.elapsed() < Duration::from_secs(30), "no child");
        thread::sleep(Duration::from_millis(5));
    }
}

fn send(process: u32, signal: i32) {
    // SAFETY: a signal to a process that this test started.
    assert_eq!(unsafe { libc::kill(process.cast_signed(), signal) }, 0);
}

/// Starts a long run, does something to it, waits for its end.
fn disturbed(what: impl FnOnce(u32)) -> (Option<i32>, String, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_hpbench"))
        .args(["torture", "--scheme", "hp", "--time", "300s"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    what(child.id());
    let (mut out, mut told) = (String::new(), String::new());
    child
        .stdout
        .take()
        .expect("a pipe")
        .read_to_string(&mut out)
        .expect("text");
    child
        .stderr
        .take()
        .expect("a pipe")
        .read_to_string(&mut told)
        .expect("text");
    (child.wait().expect("ends").code(), out, told)
}

/// A process that dies takes no account with it but that.
#[test]
fn a_run_that_dies_is_told() {
    let (code, table, told) = disturbed(|parent| send(inside(parent), libc::SIGKILL));
    assert_eq!(code, Some(4), "{told}");
    assert!(told.contains("hp: the process died of signal 9"), "{told}");
    assert!(table.contains("WRONG"), "{table}");
}

/// Ctrl-C: what was seen until then is shown, and the code says that it was cut short.
#[test]
fn ctrl_c_ends_it_in_order() {
    let (code, table, told) = disturbed(|parent| {
        let _ = inside(parent);
        thread::sleep(Duration::from_millis(700));
        send(parent, libc::SIGINT);
    });
    assert_eq!(code, Some(130), "{told}");
    assert!(table.contains("interrupted"), "{table}");
    assert!(told.contains("interrupted"), "{told}");
}

#[test]
fn bad_arguments_get_a_line() {
    for (arguments, part) in [
        (&["--scheme", "ebr"][..], "known are hp, hp-held"),
        (&["--only", "noise"], "unknown dimension 'noise'"),
        (&["--only", ""], "unknown dimension ''"),
        (
            &["--only", "sleep", "--without", "churn"],
            "cannot be used with",
        ),
        (&["--readers", "0"], "from 1 to 4096"),
        (&["--writers", "9999"], "from 1 to 4096"),
        (&["--watchdog", "0s"], "--watchdog"),
        (&["--time", "0s"], "--time"),
        (&["--threads", "2"], "use --scheme, --readers, --writers"),
        (&["--variants", "hp"], "use --scheme, --readers, --writers"),
        (&["--csv", "x.csv"], "--csv: has no meaning for torture"),
        (&["--json", "/nowhere/at/all"], "/nowhere/at/all"),
    ] {
        let output = run(arguments, &[]);
        let code = if arguments[0] == "--json" { 1 } else { 2 };
        let line = complaint(&output, code);
        assert!(line.contains(part), "{arguments:?}: {line}");
    }
}

#[test]
fn a_dry_run_runs_nothing() {
    let output = run(&["--dry-run", "--time", "10m"], &[]);
    assert!(output.status.success());
    let line = text(&output.stdout);
    assert!(
        line.starts_with("5 runs (hp, hp-held, rcu, rcu-thread, rcu-qsbr)"),
        "{line}"
    );
    assert!(line.contains("3000.0 s"), "{line}");
}
