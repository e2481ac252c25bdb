//! Floor 3, bench-suite. `hpbench rwsem` and `hpbench inversion` from outside.

#![cfg(target_os = "linux")]

mod common;

use common::{LOCKS, complaint, measure_for, records, redacted, run, text};

/// Long enough for every thread to have run on a machine that does other things, too.
const SHORT: [&str; 5] = ["--quick", "--time", "250ms", "--warmup", "5ms"];

#[test]
fn every_lock_around_a_page_fault() {
    let records = measure_for(
        &SHORT,
        &[
            "rwsem",
            "--threads",
            "2",
            "--writers",
            "1",
            "--write-rate",
            "500",
        ],
    );
    assert_eq!(records.len(), LOCKS.len());
    for record in &records {
        assert_eq!(record["status"], "ok", "{record}");
        let params = &record["params"];
        let number = |key: &str| {
            params[key]
                .as_f64()
                .unwrap_or_else(|| panic!("{key}: {record}"))
        };
        assert!(
            number("faults") >= record["ops"].as_f64().unwrap(),
            "{record}"
        );
        assert_eq!((number("readers"), number("writers")), (2.0, 1.0));
        assert!(number("wait_p50_ns") <= number("wait_p99_ns"));
        assert!(number("hold_p50_ns") <= number("hold_p999_ns"));
        assert!((0.0..=1.0).contains(&number("fairness")));
        assert_eq!(number("dead_reads"), 0.0);
        assert_eq!(params["point"], "body=fault, write_rate=500");
    }
}

#[test]
fn nothing_inside_and_no_writers() {
    let records = measure_for(
        &SHORT,
        &[
            "rwsem",
            "--threads",
            "1",
            "--body",
            "none",
            "--variants",
            "vanilla,vma-hp",
        ],
    );
    assert_eq!(records.len(), 2);
    for record in &records {
        assert_eq!(record["status"], "ok", "{record}");
        assert!(record["ops"].as_u64().unwrap() > 0);
        assert!(record["params"].get("faults_per_op").is_none());
        assert!(record["params"].get("writes").is_none());
    }
}

#[test]
fn the_table() {
    let arguments = [
        &[
            "rwsem",
            "--threads",
            "1",
            "--writers",
            "1",
            "--variants",
            "vanilla",
        ],
        &SHORT[..],
    ];
    let output = run(&arguments.concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    // How wide it is, and so which columns stay, depends on the figures.
    for words in [
        "rwsem: readers around a page fault",
        "1 reader + 1 writer",
        "reads/s",
        "x vanilla",
        "hold p50",
        "min/max",
        "writes/s",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
}

#[test]
fn bad_options_are_one_line() {
    for (arguments, words) in [
        (vec!["rwsem", "--write-rate", "5"], "--writers"),
        (
            vec!["rwsem", "--writers", "1", "--write-rate", "0"],
            "--write-rate",
        ),
        (vec!["rwsem", "--writers", "x"], "--writers"),
        (vec!["rwsem", "--body", "huge"], "--body"),
        (vec!["rwsem", "--threads", "0"], "--threads"),
        (vec!["rwsem", "--variants", "mutex"], "rwsem has no 'mutex'"),
        (
            vec!["read", "--variants", "pi-multi"],
            "read has no 'pi-multi'",
        ),
        (vec!["inversion", "--hold", "1s"], "--hold"),
        (vec!["inversion", "--burn", "0s"], "--burn"),
        (vec!["inversion", "--locks", "vma-hp"], "pi-single"),
        (vec!["inversion", "--threads", "2"], "--threads"),
        (vec!["inversion", "--inside", "vanilla", "x"], "--inside"),
    ] {
        let said = complaint(&run(&arguments), 2);
        assert!(said.contains(words), "{said}");
    }
}

/// With the right to real-time priorities: who inherits, and who does not. Without it, the reason.
#[test]
fn an_inversion_is_measured_or_refused_with_the_reason() {
    let short = [
        "inversion",
        "--hold",
        "5ms",
        "--burn",
        "40ms",
        "--runs",
        "3",
    ];
    let output = run(&[&short[..], &["--locks", "rwbase"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    if said.starts_with("inversion: skipped: ") {
        assert!(
            said.contains("real-time") && said.lines().count() == 1,
            "{said}"
        );
        return;
    }
    insta::assert_snapshot!("inversion_table", redacted(&said));
    let output = run(&[&short[..], &["--locks", "rwbase,pi-multi", "--json", "-"]].concat());
    let records = records(&text(&output.stdout));
    assert_eq!(records.len(), 2 * 4 * 3, "{records:?}");
    let inverted = |lock: &str, case: &str| {
        let of = records
            .iter()
            .filter(|r| r["variant"] == lock && r["case"] == case);
        of.filter(|record| record["inverted"] == true).count() >= 2
    };
    assert!(inverted("rwbase", "writer behind a reader"));
    assert!(!inverted("rwbase", "reader behind the writer"));
    assert!(!inverted("pi-multi", "writer behind a reader"));
}
