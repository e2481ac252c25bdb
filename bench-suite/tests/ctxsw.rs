//! Floor 3, bench-suite. `hpbench ctxsw` from outside. (A run takes seven seconds, six of them as the original's.)

#![cfg(target_os = "linux")]

mod common;

use common::{complaint, hpbench, measure_for, run, text};
use std::fs;
use std::io::Read;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const SHORT: [&str; 5] = ["--runs=1", "--time", "150ms", "--warmup", "20ms"];

fn numbers(line: &str) -> [u64; 3] {
    let mut numbers = ["min:", "max:", "total:"].into_iter().zip(line.split(' '));
    let numbers = [0; 3].map(|_| {
        let (label, word) = numbers.next().unwrap();
        word.strip_prefix(label).unwrap().parse().unwrap()
    });
    assert_eq!(line.split(' ').count(), 3, "{line}");
    numbers
}

/// Line by line what will-it-scale prints, so that what reads that reads this.
#[test]
fn the_originals_words() {
    let output = run(&["ctxsw", "-t", "2", "-s", "1", "--format", "original"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 11, "{said}");
    assert_eq!(lines[0], "testcase:Context switch via pipes");
    assert_eq!((lines[1], lines[8]), ("warmup", "measurement"));
    for line in [&lines[2..8], &lines[9..10]].concat() {
        let [min, max, total] = numbers(line);
        assert!(min <= max && min + max == total, "two tasks: {line}");
    }
    let total = numbers(lines[9])[2];
    assert!(total > 0);
    assert_eq!(lines[10], format!("average:{total}"));
}

#[test]
fn the_runners_columns() {
    let output = run(&["ctxsw", "-t", "1", "-s", "1", "--csv-wis", "-"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(
        lines[0],
        "tasks,processes,processes_idle,threads,threads_idle,linear"
    );
    assert_eq!(lines[1], "0,0,100,0,100,0");
    let row: Vec<f64> = lines[2]
        .split(',')
        .map(|field| field.parse().unwrap())
        .collect();
    assert_eq!((row.len(), row[0]), (6, 1.0));
    assert!(
        row[1] > 0.0 && row[3] > 0.0 && row[5] == row[1].max(row[3]),
        "{said}"
    );
}

#[test]
fn bad_options_are_one_line() {
    for (arguments, words) in [
        (vec!["ctxsw", "-m", "-n"], "-m"),
        (vec!["ctxsw", "-t", "0"], "-t"),
        (vec!["ctxsw", "-t", "2049"], "1 to 2048"),
        (vec!["ctxsw", "-t", "9999"], "1 to 2048"),
        (vec!["ctxsw", "-t", "4..1"], "backwards"),
        (vec!["ctxsw", "-s", "0"], "-s"),
        (
            vec!["ctxsw", "--format", "original", "--runs", "3"],
            "--runs",
        ),
        (
            vec!["ctxsw", "--format", "original", "--json", "x"],
            "--json",
        ),
        (vec!["ctxsw", "--csv-wis", "-", "--quick"], "--quick"),
        (vec!["ctxsw", "-t", "1", "--threads", "1"], "--threads"),
        (vec!["ctxsw", "-m", "--pin", "none"], "--pin"),
        (vec!["ctxsw", "--variants", "hp"], "'hp'"),
        (vec!["--variants", "processes"], "the tour"),
        (vec!["ctxsw", "--format", "x"], "--format"),
    ] {
        let output = run(&arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let said = text(&output.stderr);
        assert!(said.contains(words), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

/// The engine's course: a record for each mode, task count and run.
#[test]
fn runs_are_records() {
    let records = measure_for(&SHORT, &["ctxsw", "-t", "1,2"]);
    let mut points: Vec<_> = records
        .iter()
        .map(|record| {
            let variant = record["variant"].as_str().unwrap();
            (variant, record["threads"].as_u64().unwrap())
        })
        .collect();
    points.sort_unstable();
    let all = [
        ("processes", 1),
        ("processes", 2),
        ("threads", 1),
        ("threads", 2),
    ];
    assert_eq!(points, all);
    for record in &records {
        assert_eq!(record["workload"], "ctxsw");
        assert_eq!(record["status"], "ok", "{record}");
        let params = &record["params"];
        assert_eq!(params["pin"], "smt-pair", "the original's binding");
        if let Some(each) = params["per_thread"].as_array() {
            let sum: u64 = each.iter().map(|ops| ops.as_u64().unwrap()).sum();
            assert_eq!(record["ops"], sum);
        }
        let idle = params["idle_percent"].as_f64().unwrap();
        assert!((0.0..=100.0).contains(&idle), "{idle}");
    }
    let one = measure_for(&SHORT, &["ctxsw", "-n", "--mode=threads", "--threads=1"]);
    assert_eq!(one.len(), 1);
    assert_eq!(one[0]["params"]["pin"], "none");
}

#[test]
fn a_recorded_machine_is_not_measured() {
    let folder = tempfile::tempdir().unwrap();
    for dir in ["sys/devices/system/cpu/cpu0", "proc"] {
        fs::create_dir_all(folder.path().join(dir)).unwrap();
    }
    fs::write(folder.path().join("sys/devices/system/cpu/online"), "0\n").unwrap();
    let original = ["ctxsw", "--format=original", "-s1"];
    for arguments in [&["ctxsw"][..], &original] {
        let output = hpbench(arguments)
            .env("HPBENCH_SYSFS", folder.path())
            .output()
            .unwrap();
        assert!(complaint(&output, 2).contains("HPBENCH_SYSFS"));
    }
}

fn start(arguments: &[&str]) -> Child {
    Command::new(assert_cmd::cargo::cargo_bin("hpbench"))
        .args(arguments)
        .env_remove("HPBENCH_SYSFS")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The processes that `parent` has started.
fn children(parent: u32) -> Vec<u32> {
    let file = format!("/proc/{parent}/task/{parent}/children");
    let list = fs::read_to_string(file).unwrap_or_default();
    list.split_whitespace()
        .map(|pid| pid.parse().unwrap())
        .collect()
}

/// The same, as soon as there are so many.
fn wait_for_children(parent: u32, count: usize) -> Vec<u32> {
    let start = Instant::now();
    loop {
        let children = children(parent);
        if children.len() == count {
            return children;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "{children:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn kill(pid: u32, signal: libc::c_int) {
    // SAFETY: takes numbers; the process is one of those started here.
    assert_eq!(unsafe { libc::kill(pid as libc::pid_t, signal) }, 0);
}

fn end(child: Child) -> Output {
    child.wait_with_output().unwrap()
}

/// A rate of tasks of which one is dead is none: neither in the original's words nor in a record.
#[test]
fn a_dead_task_is_noticed() {
    let processes = ["ctxsw", "-t2", "-s60", "--mode=processes"];
    let original = [&processes[..], &["--format=original"]].concat();
    let record = [&processes[..], &["--runs=1", "--warmup=0s", "--json=-"]].concat();
    let [task, partner] = [start(&original), start(&original)];
    kill(wait_for_children(task.id(), 2)[0], libc::SIGKILL);
    let owner = wait_for_children(partner.id(), 2)[1];
    kill(wait_for_children(owner, 1)[0], libc::SIGKILL);
    for (program, how) in [(task, "SIGKILL"), (partner, "partner has gone")] {
        let output = end(program);
        let line = complaint(&output, 4);
        assert!(line.contains("2 tasks") && line.contains(how), "{line}");
        assert!(!text(&output.stdout).contains("average"));
    }
    let program = start(&record);
    let run = wait_for_children(program.id(), 1)[0];
    kill(wait_for_children(run, 2)[0], libc::SIGKILL);
    let output = end(program);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert!(text(&output.stdout).contains(r#""status":"failed""#));
}

#[test]
fn an_interrupted_run_gives_no_average() {
    let mut program = start(&["ctxsw", "-s1", "--format=original"]);
    let mut said = vec![0; "testcase:Context switch via pipes\nwarmup\n".len()];
    let out = program.stdout.as_mut().unwrap();
    out.read_exact(&mut said).unwrap();
    kill(program.id(), libc::SIGINT);
    let output = end(program);
    assert!(complaint(&output, 130).contains("no average"));
    assert!(!text(&output.stdout).contains("average"));
}
