//! Floor 3, bench-suite. The program from outside: bad input, exit codes, what goes to which stream.
//! Asserts no speed: only shapes, words and codes.

use assert_cmd::Command;
use serde_json::Value;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

const FAST: [&str; 6] = ["--quick", "--time", "5ms", "--warmup", "1ms", "--seed=7"];

fn hpbench(arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("hpbench").expect("the binary is built with the tests");
    command
        .args(arguments)
        .env_remove("HP_BARRIER")
        .env_remove("HPBENCH_ALLOW_BROKEN");
    command
}

fn run(arguments: &[&str]) -> Output {
    hpbench(arguments).output().expect("it starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("output is UTF-8")
}

/// The one line on the standard error.
fn complaint(output: &Output, code: i32) -> String {
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.starts_with("hpbench: "), "{stderr}");
    stderr
}

fn records(lines: &str) -> Vec<Value> {
    lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("each line is one JSON object"))
        .collect()
}

/// Runs with `--json -` and returns the records.
fn measure(arguments: &[&str]) -> Vec<Value> {
    let all: Vec<&str> = arguments
        .iter()
        .chain(&FAST)
        .chain(&["--json", "-"])
        .copied()
        .collect();
    let output = run(&all);
    assert!(output.status.success(), "{}", text(&output.stderr));
    records(&text(&output.stdout))
}

#[test]
fn bad_values_are_usage_errors_that_name_option_and_value() {
    for (arguments, words) in [
        (vec!["read", "--threads", "0"], ["--threads", "'0'"]),
        (vec!["read", "--threads", "1,,2"], ["--threads", "'1,,2'"]),
        (vec!["read", "--threads", "abc"], ["--threads", "'abc'"]),
        (
            vec!["read", "--threads", "1000000"],
            ["--threads", "'1000000'"],
        ),
        (vec!["--time", "0s"], ["--time", "'0s'"]),
        (vec!["read", "--time", "1"], ["--time", "'1'"]),
        (vec!["read", "--warmup", "soon"], ["--warmup", "'soon'"]),
        (vec!["read", "--runs", "0"], ["--runs", "'0'"]),
        (vec!["read", "--seed", "x"], ["--seed", "'x'"]),
        (vec!["read", "--pin", "socket"], ["--pin", "'socket'"]),
        (
            vec!["read", "--variants", "hp,,mutex"],
            ["--variants", "'hp,,mutex'"],
        ),
        (
            vec!["read", "--variants", "hpp"],
            ["--variants", "did you mean 'hp'"],
        ),
        (
            vec!["read", "--variants", "broken"],
            ["--variants", "'broken'"],
        ),
        (vec!["write", "--writers", "0"], ["--writers", "'0'"]),
        (
            vec!["write", "--writers", "1", "--threads", "2"],
            ["--threads", "--writers"],
        ),
        (vec!["stall", "--threads", "1"], ["--threads", "'1'"]),
        (
            vec!["read", "--json", "-", "--csv", "-"],
            ["--json -", "--csv -"],
        ),
        (vec!["read", "--csv", "x", "--json", "x"], ["--json", "'x'"]),
        (
            vec!["capabilities", "--csv", "-"],
            ["--csv", "capabilities"],
        ),
        (vec!["raed"], ["raed", "read"]),
        (vec!["read", "--thread", "1"], ["--thread", "--threads"]),
        (vec!["read", "--threads"], ["--threads", "value"]),
    ] {
        let output = run(&arguments);
        let line = complaint(&output, 2);
        assert!(output.stdout.is_empty(), "{arguments:?}");
        for word in words {
            assert!(line.contains(word), "{arguments:?}: {line}");
        }
    }
}

#[test]
fn places_that_cannot_be_written_are_io_errors_before_anything_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("no/such/folder/out.jsonl");
    let start = Instant::now();
    for (option, path) in [
        ("--json", missing.as_path()),
        ("--csv", missing.as_path()),
        ("--json", folder.path()),
    ] {
        let path = path.to_str().unwrap();
        let output = run(&["read", "--time", "60s", option, path]);
        let line = complaint(&output, 1);
        assert!(line.contains(option) && line.contains(path), "{line}");
        assert!(output.stdout.is_empty());
    }
    assert!(
        start.elapsed() < Duration::from_secs(50),
        "a run was started"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_io_error() {
    for option in ["--json", "--csv"] {
        let arguments = [
            &[
                "read",
                "--variants",
                "none",
                "--threads",
                "1",
                option,
                "/dev/full",
            ][..],
            &FAST,
        ]
        .concat();
        let line = complaint(&run(&arguments), 1);
        assert!(
            line.contains(option) && line.contains("/dev/full"),
            "{line}"
        );
    }
    let full = fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let arguments = [
        &[
            "read",
            "--variants",
            "none",
            "--threads",
            "1",
            "--json",
            "-",
        ][..],
        &FAST,
    ]
    .concat();
    let child = std::process::Command::new(assert_cmd::cargo::cargo_bin("hpbench"))
        .args(arguments)
        .stdout(full)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("standard output"));
}

#[test]
fn the_tour_needs_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("target"), "in the way").unwrap();
    let output = hpbench(&["--quick"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let line = complaint(&output, 1);
    assert!(line.contains("target/hpbench"), "{line}");
}

#[test]
fn with_json_on_stdout_there_is_nothing_else() {
    let all = [
        &[
            "read",
            "--variants",
            "none,mutex,hp",
            "--threads",
            "1,2",
            "--json",
            "-",
        ][..],
        &FAST,
    ]
    .concat();
    let output = run(&all);
    assert!(output.status.success());
    let lines = records(&text(&output.stdout));
    assert_eq!(lines.len(), 6);
    for record in &lines {
        for key in [
            "schema",
            "workload",
            "variant",
            "threads",
            "run",
            "ops",
            "elapsed_s",
            "ops_per_s",
            "ns_per_op",
            "params",
            "status",
            "note",
        ] {
            assert!(record.get(key).is_some(), "{key}: {record}");
        }
        assert_eq!(record["status"], "ok");
        let (ops, elapsed, rate) = (&record["ops"], &record["elapsed_s"], &record["ops_per_s"]);
        let product = elapsed.as_f64().unwrap() * rate.as_f64().unwrap();
        assert!(
            (product / ops.as_f64().unwrap() - 1.0).abs() < 1e-6,
            "{record}"
        );
    }
    assert!(
        text(&output.stderr).contains("read:"),
        "tables go to the standard error"
    );
}

#[test]
fn with_csv_on_stdout_there_is_nothing_else() {
    let all = [
        &[
            "read",
            "--variants",
            "none,mutex",
            "--threads",
            "1",
            "--csv",
            "-",
        ][..],
        &FAST,
    ]
    .concat();
    let output = run(&all);
    let mut reader = csv::Reader::from_reader(output.stdout.as_slice());
    assert_eq!(&reader.headers().unwrap()[1], "workload");
    let rows: Vec<_> = reader
        .records()
        .map(|row| row.expect("a complete row"))
        .collect();
    assert_eq!(rows.len(), 2);
    assert!(
        rows.iter()
            .all(|row| serde_json::from_str::<Value>(&row[10]).unwrap()["seed"] == 7)
    );
}

#[test]
fn the_list_names_everything() {
    let output = run(&["--list"]);
    assert!(output.status.success());
    let list = text(&output.stdout);
    for name in [
        "none",
        "hp",
        "hp-membarrier",
        "hp-fence",
        "hp-held",
        "haphazard",
        "haphazard-per-op",
        "crossbeam-epoch",
        "seize",
        "arc-swap",
        "sdd",
        "kovan",
        "hazarc",
        "refcount",
        "mutex",
        "rwlock",
        "read",
        "write",
        "scan",
        "stall",
        "capabilities",
    ] {
        assert!(
            list.lines()
                .any(|line| line.split_whitespace().next() == Some(name)),
            "{name}"
        );
    }
    assert!(!list.contains("broken"));
    assert_eq!(list.matches("holder: ").count(), 16);
    assert_eq!(run(&["read", "--list"]).stdout, output.stdout);
}

#[test]
fn help_tells_the_exit_codes() {
    let output = run(&["--help"]);
    assert!(output.status.success());
    let help = text(&output.stdout);
    for line in ["  0  ", "  1  ", "  2  ", "  3  ", "  4  "] {
        assert!(help.contains(line), "{help}");
    }
}

#[test]
fn every_workload_runs_every_variant() {
    for workload in ["read", "write", "scan", "stall"] {
        let records = measure(&[
            workload,
            "--threads",
            if workload == "stall" { "2" } else { "1" },
        ]);
        assert_eq!(records.len(), 16);
        for record in &records {
            assert_ne!(record["status"], "failed", "{record}");
            assert!(record["status"] == "ok" || record["note"] != "", "{record}");
            assert_eq!(record["params"]["quick"], true);
        }
        assert!(
            records
                .iter()
                .any(|record| record["variant"] == "hp" && record["status"] == "ok"),
            "{records:?}"
        );
    }
}

#[test]
fn writes_and_reads_are_counted_apart() {
    let records = measure(&[
        "write",
        "--readers",
        "2",
        "--writers",
        "1",
        "--variants",
        "haphazard,none",
    ]);
    let find = |name| {
        records
            .iter()
            .find(|record| record["variant"] == name)
            .unwrap()
    };
    assert_eq!(find("haphazard")["threads"], 3);
    assert!(find("haphazard")["reads_per_s"].is_number());
    assert_eq!(find("none")["status"], "skipped");
    let alone = measure(&["write", "--variants", "haphazard"]);
    assert!(alone[0]["reads_per_s"].is_null());
}

#[test]
fn stall_counts_objects() {
    for record in measure(&["stall", "--variants", "hp,crossbeam-epoch,mutex"]) {
        assert!(record["params"]["peak_unreclaimed"].is_number(), "{record}");
        assert!(
            record["params"]["final_unreclaimed"].is_number(),
            "{record}"
        );
        assert_eq!(
            record["params"]["pending_bound"].is_number(),
            record["variant"] == "hp",
            "{record}"
        );
    }
}

#[test]
fn a_run_that_reads_dead_objects_fails_the_program() {
    for workload in [&["stall"][..], &["write", "--readers", "1"]] {
        let arguments = [
            workload,
            &["--variants", "broken,mutex", "--json", "-"],
            &FAST,
        ]
        .concat();
        let output = hpbench(&arguments)
            .env("HPBENCH_ALLOW_BROKEN", "1")
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(4), "{}", text(&output.stderr));
        let records = records(&text(&output.stdout));
        let status = |name| {
            records
                .iter()
                .find(|record| record["variant"] == name)
                .unwrap()["status"]
                .clone()
        };
        assert_eq!(status("broken"), "failed");
        assert_eq!(status("mutex"), "ok");
        let last = text(&output.stderr).lines().last().unwrap().to_owned();
        assert!(
            last.contains("dead object") && last.contains("broken"),
            "{last}"
        );
    }
}

#[test]
fn forced_rungs_are_in_force() {
    for record in measure(&[
        "read",
        "--variants",
        "hp-fence,hp-membarrier",
        "--threads",
        "1",
    ]) {
        match record["variant"].as_str().unwrap() {
            "hp-fence" => assert_eq!(record["params"]["rung"], "fence"),
            _ if record["status"] == "skipped" => {
                assert!(record["note"].as_str().unwrap().contains("membarrier"))
            }
            _ => assert_eq!(record["params"]["rung"], "membarrier"),
        }
    }
    let arguments = [
        &["read", "--variants", "hp", "--threads", "1", "--json", "-"][..],
        &FAST,
    ]
    .concat();
    let output = hpbench(&arguments)
        .env("HP_BARRIER", "fence")
        .output()
        .unwrap();
    assert_eq!(records(&text(&output.stdout))[0]["params"]["rung"], "fence");
}

#[test]
fn capabilities_are_told_twice() {
    let output = run(&["capabilities"]);
    assert!(output.status.success());
    assert!(text(&output.stdout).contains("rung"));
    let output = run(&["capabilities", "--json", "-"]);
    let all = records(&text(&output.stdout));
    assert_eq!(all.len(), 1);
    for key in [
        "rung",
        "reason",
        "kernel",
        "allowed_cpus",
        "membarrier_mask",
        "rseq_feature_size",
    ] {
        assert!(all[0].get(key).is_some(), "{key}");
    }
    let fence = hpbench(&["capabilities", "--json", "-"])
        .env("HP_BARRIER", "fence")
        .output()
        .unwrap();
    assert_eq!(records(&text(&fence.stdout))[0]["rung"], "fence");
}

#[test]
fn equal_seeds_give_equal_orders() {
    let order = |seed: &str| {
        let records = measure(&[
            "read",
            "--variants",
            "none,mutex,rwlock,sdd",
            "--threads",
            "1,2",
            "--runs",
            "2",
            seed,
        ]);
        records
            .iter()
            .map(|r| format!("{} {} {}", r["run"], r["variant"], r["threads"]))
            .collect::<Vec<_>>()
    };
    let first = order("--pin=core");
    assert_eq!(first, order("--pin=none"));
    assert!(
        first[..8].iter().all(|key| key.starts_with('0'))
            && first[8..].iter().all(|key| key.starts_with('1'))
    );
}

#[test]
fn the_quick_tour_writes_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = [
        "--quick",
        "--time",
        "2ms",
        "--warmup",
        "0s",
        "--variants",
        "hp,none,haphazard,mutex",
    ];
    let output = hpbench(&arguments)
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(
        output.stderr.is_empty(),
        "no progress bar where there is no terminal"
    );
    let stdout = text(&output.stdout);
    let place = folder.path().join("target/hpbench");
    for name in [
        "results.jsonl",
        "results.csv",
        "read.svg",
        "write.svg",
        "scan.svg",
        "stall.svg",
    ] {
        assert!(place.join(name).is_file(), "{name}");
        assert!(stdout.contains(name), "{name}");
    }
    assert_eq!(fs::read_dir(&place).unwrap().count(), 6, "no .part is left");
    for workload in ["read", "write", "scan", "stall"] {
        assert!(stdout.contains(&format!("\n{workload}: ")), "{workload}");
    }
    assert!(stdout.starts_with("machine: ") && stdout.contains("hp rung: "));
    let lines = records(&fs::read_to_string(place.join("results.jsonl")).unwrap());
    assert!(lines.len() > 16);
}

#[test]
fn an_interrupted_run_leaves_its_runs_in_a_part_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.jsonl");
    let part = folder.path().join("out.jsonl.part");
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin("hpbench"))
        .args([
            "read",
            "--variants",
            "none",
            "--threads",
            "1",
            "--time",
            "20ms",
            "--warmup",
            "0s",
            "--runs",
            "10000",
        ])
        .args([Path::new("--json"), &path])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let start = Instant::now();
    while fs::read_to_string(&part).map_or(0, |text| text.lines().count()) < 2 {
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "no run reached the file"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!path.exists());
    assert!(records(&fs::read_to_string(&part).unwrap()).len() >= 2);
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin("hpbench"))
        .args([
            "read",
            "--variants",
            "none",
            "--threads",
            "1",
            "--runs",
            "20",
            "--json",
            "-",
        ])
        .args(FAST)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut stderr = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut stderr)
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{stderr}");
    assert!(
        !stderr.contains("panicked") && !stderr.contains("hpbench:"),
        "{stderr}"
    );
}
