//! Floor 3, bench-suite. The program from outside on bad days: bad input, full disks, dead objects, lost readers.
//! Asserts no speed: only words, files and exit codes.

mod common;

use common::{FAST, came_off, complaint, hpbench, records, run, text};
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

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
        (vec!["defer", "--threads", "0"], ["--threads", "'0'"]),
        (vec!["--threads", "0"], ["--threads", "'0'"]),
        (vec!["grace", "--threads", "x"], ["--threads", "'x'"]),
        (
            vec!["grace", "--hold", "1parsec"],
            ["--hold", "unknown unit 'parsec'"],
        ),
        (vec!["grace", "--hold", ""], ["--hold", "''"]),
        (vec!["grace", "--hold", "0,,1us"], ["--hold", "empty entry"]),
        (vec!["grace", "--hold", "5"], ["--hold", "unit is missing"]),
        (vec!["grace", "--hold", "2s"], ["--hold", "longer than 1s"]),
        (vec!["grace", "--idle", "x"], ["--idle", "'x'"]),
        (vec!["grace", "--idle", "1,"], ["--idle", "empty entry"]),
        (vec!["read", "--hold", "1us"], ["--hold", "unexpected"]),
        (
            vec!["read", "--json", "-", "--csv", "-"],
            ["--json -", "--csv -"],
        ),
        (vec!["read", "--csv", "x", "--json", "x"], ["--json", "'x'"]),
        (
            vec!["read", "--resume", "x", "--json", "./x"],
            ["--resume", "--json"],
        ),
        (
            vec!["read", "--resume", "x.part", "--csv", "x"],
            ["--resume", "--csv"],
        ),
        (
            vec!["--resume", "target/hpbench/results.jsonl"],
            ["--resume", "the tour"],
        ),
        (vec!["read", "--resume", "-"], ["--resume -", "file"]),
        (vec!["read", "--plot", "/tmp/"], ["--plot", "/tmp/"]),
        (vec!["read", "--window", "5ms"], ["--window", "10ms"]),
        (
            vec!["lazy-mm", "think", "--variants", "nosuch"],
            ["'nosuch'", "think has none, refcount"],
        ),
        (
            vec!["capabilities", "--threads", "2"],
            ["--threads", "capabilities"],
        ),
        (vec!["baselines", "--json", "x"], ["--json", "baselines"]),
        (vec!["overhead", "--json", "x"], ["--json", "overhead"]),
        (
            vec!["compare", "a", "b", "--json", "x"],
            ["--json", "compare"],
        ),
        (vec!["machine", "--pin", "none"], ["--pin", "machine"]),
        (vec!["published", "--quick"], ["--quick", "published"]),
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
        let of = |name| {
            let mut all = records.iter();
            all.find(|record| record["variant"] == name).unwrap()
        };
        assert_eq!(of("broken")["status"], "failed");
        assert!(came_off(of("mutex")), "{records:?}");
        let last = text(&output.stderr).lines().last().unwrap().to_owned();
        assert!(
            last.contains("dead object") && last.contains("broken"),
            "{last}"
        );
    }
}

#[test]
fn a_scheme_that_loses_callbacks_fails_the_program() {
    let arguments = [
        &[
            "defer",
            "--variants",
            "broken,crossbeam-epoch",
            "--json",
            "-",
        ][..],
        &FAST,
    ]
    .concat();
    let output = hpbench(&arguments)
        .env("HPBENCH_ALLOW_BROKEN", "1")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", text(&output.stderr));
    for record in records(&text(&output.stdout)) {
        let lost = record["variant"] == "broken";
        assert_eq!(record["status"] == "failed", lost, "{record}");
        assert!(lost || came_off(&record), "{record}");
        assert_eq!(
            record["note"].as_str().unwrap().contains("have run"),
            lost,
            "{record}"
        );
    }
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
