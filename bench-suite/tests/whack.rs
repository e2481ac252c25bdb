//! Floor 3, bench-suite. `hpbench whack` from outside.

#![cfg(target_os = "linux")]

mod common;

use common::{complaint, records, redacted, run, text};
use std::process::Command;

/// As short as it gets.
const SMALL: [&str; 7] = ["whack", "-t", "2", "-m", "1048576", "-w", "100"];

fn whack(more: &[&str]) -> std::process::Output {
    run(&[&SMALL, more].concat())
}

/// Without the setting of this system.
fn anywhere(said: &[u8]) -> String {
    let mut said = text(said);
    for setting in ["always", "madvise", "never", "unknown"] {
        said = said.replace(&format!("(system: {setting})"), "(system: SETTING)");
    }
    said
}

#[test]
fn the_originals_line() {
    let output = whack(&["--format", "original"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    let number = said.strip_suffix(" us\n").expect("its unit");
    assert!(number.parse::<u64>().unwrap() > 0);
    let output = whack(&["--format", "original", "--runs", "3", "-v"]);
    assert_eq!(text(&output.stdout).lines().count(), 3);
    insta::assert_snapshot!("whack_verbose", redacted(&anywhere(&output.stderr)));
}

/// The original seeds `random` with the size, so that one thread draws the same numbers in every run.
#[test]
fn indexes_are_printed_and_come_again() {
    let indexes = |size: &str| -> Vec<u64> {
        let arguments = [
            "whack", "-t", "1", "-m", size, "-w", "50", "-d", "--format", "original",
        ];
        let output = run(&arguments);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let said = text(&output.stdout);
        let mut lines: Vec<&str> = said.lines().collect();
        assert!(lines.pop().unwrap().ends_with(" us"));
        lines.iter().map(|line| line.parse().unwrap()).collect()
    };
    let first = indexes("1000000");
    assert_eq!(first.len(), 50);
    assert!(first.iter().all(|&index| index < 1_000_000));
    assert_eq!(first, indexes("1000000"));
    assert_ne!(first, indexes("1000001"));
    // Beyond 2 GiB nothing is ever touched.
    assert!(indexes("4294967296").iter().all(|&index| index < 1 << 31));
}

#[test]
fn the_table_has_theirs_beside_it() {
    let output = whack(&[
        "--runs",
        "2",
        "--prng",
        "libc-locked,per-thread",
        "--vma",
        "one,per-thread",
    ]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    for words in [
        "locked-one",
        "locked-many",
        "own-one",
        "own-many",
        "MIN us",
        "STDEV",
        "of writes",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert!(!said.contains("theirs"), "another size: {said}");
    // Theirs stand beside what was measured as theirs were.
    let seed = [
        "whack", "-t", "24", "-w", "100000", "-m", "1048576", "--runs", "1",
    ];
    let output = run(&[&seed[..], &["--prng", "per-thread", "--vma", "one"]].concat());
    let said = text(&output.stdout);
    assert!(
        said.contains("theirs: rt-multi") && said.contains("17210953"),
        "{said}"
    );
    assert!(
        said.contains("\n  own-one ") && !said.contains("\n  locked-one "),
        "{said}"
    );
}

#[test]
fn every_run_is_a_record() {
    let output = whack(&["--runs", "2", "--prng", "libc-locked", "--json", "-"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let records = records(&text(&output.stdout));
    assert_eq!(records.len(), 4);
    for record in &records {
        assert_eq!(record["ops"], 200);
        let params = &record["params"];
        assert_eq!(
            (&params["bytes"], &params["writes"]),
            (&1048576.into(), &100.into())
        );
        let faults = params["faults"].as_u64().unwrap();
        // 256 pages in reach, 200 writes: some 140 of them, and what the threads themselves need.
        assert!((100..=400).contains(&faults), "{record}");
        let us = params["us"].as_f64().unwrap();
        assert!(params["start_skew_s"].as_f64().unwrap() * 1e6 <= us);
        assert_eq!(params["placement"].as_array().unwrap().len(), 2);
    }
    for vma in ["one", "per-thread"] {
        let of = |record: &&serde_json::Value| record["params"]["vma"] == vma;
        assert_eq!(records.iter().filter(of).count(), 2);
    }
}

#[test]
fn a_plan_says_what_is_needed() {
    let output = run(&[
        "whack",
        "-t",
        "24",
        "-w",
        "100000",
        "--runs",
        "100",
        "--dry-run",
        "--format",
        "original",
    ]);
    assert!(output.status.success());
    let plan = text(&output.stdout);
    assert!(plan.starts_with("100 runs of 24 threads; "), "{plan}");
    assert!(plan.contains("reaches 2048 MiB"), "{plan}");
}

/// Not even the addresses can be had.
#[test]
fn memory_that_cannot_be_had_is_one_line() {
    let program = assert_cmd::cargo::cargo_bin("hpbench");
    let output = Command::new("sh")
        .args(["-c", "ulimit -v 2000000 && exec \"$0\" whack -t 1 -w 10"])
        .arg(program)
        .output()
        .unwrap();
    let said = complaint(&output, 3);
    assert!(said.contains("-m") && said.contains("4294967296"), "{said}");
}

#[test]
fn bad_options_are_one_line() {
    for (more, word) in [
        (vec!["-t", "0"], "-t"),
        (vec!["-t", "5000"], "-t"),
        (vec!["-t", "x"], "-t"),
        (vec!["-m", "100"], "-m"),
        (vec!["-m", "4G"], "-m"),
        (vec!["-w", "0"], "-w"),
        (vec!["--prng", "rand"], "--prng"),
        (vec!["--thp", "sometimes"], "--thp"),
        (vec!["--vma", "two"], "--vma"),
        (vec!["--runs", "0"], "--runs"),
        (vec!["--threads", "2", "-t", "2"], "-t"),
        (vec!["--variants", "own-one", "--vma", "one"], "--vma"),
        (vec!["--pin", "none"], "--pin"),
        (vec!["-d"], "-d"),
        (vec!["--time", "1s"], "--time"),
        (
            vec!["--format", "original", "--vma", "one,per-thread"],
            "--vma",
        ),
        (vec!["--format", "original", "--json", "-"], "--json"),
    ] {
        let output = run(&[&["whack"], more.as_slice()].concat());
        let said = complaint(&output, 2);
        assert!(said.contains(word), "{said}");
    }
}
