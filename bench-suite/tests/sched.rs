//! Floor 3, bench-suite. `lazy-mm sched` from outside: what its records say, what breaks its invariants, what it
//! refuses. Asserts no speed.

mod common;

use common::{TRACKERS, complaint, hpbench, records, run, text};
use serde_json::Value;

/// Long enough for a few tear-downs on a loaded machine.
const SHORT: [&str; 4] = ["--quick", "--time=100ms", "--warmup=5ms", "--seed=7"];

fn sched(more: &[&str]) -> Vec<Value> {
    let arguments = [&["lazy-mm", "sched", "--json", "-"], &SHORT[..], more].concat();
    let output = run(&arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    records(&text(&output.stdout))
}

#[test]
fn every_tracker_keeps_its_invariants() {
    for ipi in ["mailbox", "signal"] {
        let found = sched(&["--threads", "2", "--exit-every", "5", "--ipi", ipi]);
        let mut names: Vec<_> = found
            .iter()
            .map(|r| r["variant"].as_str().unwrap())
            .collect();
        names.sort_unstable();
        let mut wanted = TRACKERS;
        wanted.sort_unstable();
        assert_eq!(names, wanted);
        for record in found {
            assert!(common::came_off(&record), "{record}");
            let params = &record["params"];
            assert_eq!(params["invariants"], "I1-I6 held", "{record}");
            assert_eq!(params["scope"], "model");
            assert_eq!(params["ipi"], ipi);
            assert_eq!(params["exit_every"], 5);
            assert_eq!(params["kthread_share"], 50);
            assert!(params["peak_unreclaimed"].is_number(), "{record}");
            assert!(params["interrupts_per_teardown"].is_number(), "{record}");
        }
    }
}

#[test]
fn latencies_are_in_order() {
    let options = [
        "--threads",
        "1",
        "--exit-every",
        "2",
        "--variants",
        "refcount,hp-mb",
    ];
    for record in sched(&options) {
        let quantile = |name: &str| {
            record["params"][name]
                .as_f64()
                .unwrap_or_else(|| panic!("{record}"))
        };
        let quantiles = ["p50", "p90", "p99", "max"].map(|q| quantile(&format!("teardown_{q}_ns")));
        assert!(quantiles[0] > 0.0 && quantiles.is_sorted(), "{record}");
    }
}

/// Each hidden tracker makes one mistake; the run fails, and names what it broke.
#[test]
fn each_invariant_is_broken_by_its_mutant_and_named() {
    for invariant in 1..=6 {
        let variant = format!("broken-i{invariant}");
        for ipi in ["mailbox", "signal"] {
            // An interrupt too many takes another CPU.
            let arguments = [
                "lazy-mm",
                "sched",
                "--threads",
                "2",
                "--exit-every",
                "20",
                "--ipi",
                ipi,
                "--variants",
                &variant,
            ];
            let output = hpbench(&[&arguments[..], &SHORT].concat())
                .env("HPBENCH_ALLOW_BROKEN", "1")
                .output()
                .unwrap();
            let line = complaint(&output, 4);
            assert!(
                line.contains(&format!("I{invariant} broken")),
                "{variant}: {line}"
            );
        }
    }
}

/// A thread that panics ends the run at once; nobody waits for it until an alarm.
#[test]
fn a_panic_ends_the_run() {
    for workload in ["sched", "track", "think"] {
        let start = std::time::Instant::now();
        let arguments = ["lazy-mm", workload, "--threads", "2"];
        let output = hpbench(&[&arguments[..], &SHORT].concat())
            .args(["--variants", "broken-panic"])
            .env("HPBENCH_ALLOW_BROKEN", "1")
            .env("RUST_BACKTRACE", "0")
            .output()
            .unwrap();
        let line = complaint(&output, 4);
        assert!(line.contains("broken on purpose"), "{workload}: {line}");
        assert!(start.elapsed().as_secs() < 50, "{workload}");
    }
}

#[test]
fn mutants_are_refused_and_not_listed() {
    let output = run(&["lazy-mm", "sched", "--variants", "broken-i2"]);
    assert!(complaint(&output, 2).contains("broken-i2"));
}

#[test]
fn bad_values_are_named() {
    for (option, value) in [
        ("--kthread-share", "101"),
        ("--kthread-share", "-1"),
        ("--mms", "0"),
        ("--exit-every", "often"),
        ("--work", "1000001"),
        ("--ipi", "carrier-pigeon"),
        ("--variants", "mutex"),
        ("--threads", "0"),
    ] {
        let output = run(&["lazy-mm", "sched", &format!("{option}={value}")]);
        let line = complaint(&output, 2);
        assert!(line.contains(option) && line.contains(value), "{line}");
    }
}

#[test]
fn options_make_points_that_a_resumed_file_tells_apart() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sched.jsonl");
    let resume = [
        "--resume",
        file.to_str().unwrap(),
        "--threads",
        "1",
        "--variants",
        "refcount",
    ];
    for (options, lines) in [
        (&[][..], 1),
        (&["--exit-every", "7"], 2),
        (&["--ipi", "signal"], 3),
        (&["--exit-every", "7"], 3),
    ] {
        sched(&[&resume[..], options].concat());
        let text = std::fs::read_to_string(&file).unwrap();
        assert_eq!(text.lines().count(), lines, "{options:?}");
    }
}
