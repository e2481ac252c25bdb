//! Floor 3, bench-suite. `hpbench structures` from outside.

mod common;

use common::{FAST, came_off, complaint, hpbench, measure, measure_for, records, run, text};
use serde_json::Value;

/// The schemes that are listed.
const SCHEMES: [&str; 12] = [
    "hp",
    "hp-membarrier",
    "hp-fence",
    "rcu",
    "rcu-thread",
    "rcu-qsbr",
    "haphazard",
    "crossbeam-epoch",
    "seize",
    "sdd",
    "leak",
    "arc",
];

/// Few keys: unoptimised programs are slow.
const FEW: [&str; 2] = ["--key-range", "256"];

fn number(record: &Value, name: &str) -> f64 {
    record["params"][name]
        .as_f64()
        .unwrap_or_else(|| panic!("{name}: {record}"))
}

#[test]
fn every_structure_under_every_scheme() {
    let records = measure(&[&["structures", "--ds", "all", "--get-rate", "50"][..], &FEW].concat());
    for ds in ["cell", "stack", "queue", "list", "hash", "skip"] {
        let of: Vec<&Value> = records
            .iter()
            .filter(|record| record["params"]["ds"] == ds)
            .collect();
        assert_eq!(of.len(), SCHEMES.len(), "{ds}");
        for record in of {
            if record["variant"] == "arc" && ds != "cell" {
                assert_eq!(record["status"], "skipped");
                assert!(record["note"].as_str().unwrap().contains("marks"));
                continue;
            }
            // On this machine a rung may be missing.
            let note = record["note"].as_str().unwrap();
            if note.contains("cannot be had here") {
                continue;
            }
            assert!(came_off(record), "{record}");
            if record["status"] == "ok" {
                assert_eq!(number(record, "dead_reads"), 0.0);
                assert!(number(record, "unreclaimed_mean") <= number(record, "unreclaimed_peak"));
                assert!(number(record, "service_p50_ns") <= number(record, "service_p99_ns"));
                assert!(number(record, "allocations_per_op") > 0.0, "{record}");
            }
        }
    }
}

/// A negative control for each check: what leaves out the publication of an address is found out.
#[test]
fn a_scheme_with_a_fault_fails_the_program() {
    let time = ["--time", "300ms", "--warmup", "5ms", "--runs", "1"];
    let arguments = [
        &[
            "structures",
            "--ds",
            "stack,list",
            "--get-rate",
            "50",
            "--key-range",
            "16",
            "--oversubscribe",
            "4",
            "--variants",
            "broken-unprotected,control",
            "--json",
            "-",
        ][..],
        &time,
    ]
    .concat();
    let output = hpbench(&arguments)
        .env("HPBENCH_ALLOW_BROKEN", "1")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", text(&output.stderr));
    for record in records(&text(&output.stdout)) {
        let broken = record["variant"] != "control";
        assert_eq!(record["status"] == "failed", broken, "{record}");
        assert!(broken || came_off(&record), "{record}");
        if broken {
            assert!(number(&record, "dead_reads") > 0.0, "{record}");
        }
    }
    let refused = run(&["structures", "--variants", "broken-unprotected"]);
    assert!(complaint(&refused, 2).contains("broken-unprotected"));
}

#[test]
fn the_mix_is_checked_against_what_was_asked() {
    let records = measure_for(
        &["--runs", "1", "--time", "250ms", "--warmup", "5ms"],
        &[
            "structures",
            "--ds",
            "stack,hash",
            "--get-rate",
            "0,90,100",
            "--key-range",
            "256",
            "--dist",
            "zipf",
            "--variants",
            "hp,crossbeam-epoch",
        ],
    );
    assert_eq!(records.len(), 12);
    for record in &records {
        assert_eq!(record["status"], "ok", "{record}");
        let asked = number(record, "get_rate");
        assert!((number(record, "gets_percent") - asked).abs() <= 1.0);
        let updates = number(record, "inserts_percent") + number(record, "removes_percent");
        assert!((updates + number(record, "gets_percent") - 100.0).abs() < 1e-6);
    }
}

#[test]
fn a_reader_that_stays_inside() {
    let records = measure_for(
        &["--runs", "1", "--time", "400ms", "--warmup", "20ms"],
        &[
            "structures",
            "--ds",
            "hash",
            "--get-rate",
            "0",
            "--key-range",
            "256",
            "--stall",
            "forever",
            "--variants",
            "hp,crossbeam-epoch",
        ],
    );
    let of = |name: &str| {
        let mut all = records.iter();
        all.find(|record| record["variant"] == name).unwrap()
    };
    let (hp, epoch) = (of("hp"), of("crossbeam-epoch"));
    assert!(
        number(hp, "unreclaimed_peak") <= number(hp, "pending_bound"),
        "{hp}"
    );
    // Everything that was removed waits: what waits at the end is a large part of all removals.
    let removed = epoch["ops"].as_f64().unwrap() * number(epoch, "removes_percent") / 100.0;
    assert!(number(epoch, "unreclaimed_end") > removed * 0.1, "{epoch}");
    assert!(number(epoch, "unreclaimed_last") > 1.5 * number(epoch, "unreclaimed_first"));
}

#[test]
fn stalls_churn_and_a_schedule() {
    let records = measure_for(
        &["--runs", "1", "--time", "300ms", "--warmup", "20ms"],
        &[
            "structures",
            "--ds",
            "queue,list",
            "--key-range",
            "64",
            "--stall",
            "10ms",
            "--churn",
            "10ms",
            "--rate",
            "500",
            "--variants",
            "hp,rcu-qsbr,seize,leak",
        ],
    );
    assert_eq!(records.len(), 8);
    for record in &records {
        assert_eq!(record["status"], "ok", "{record}");
        assert!(number(record, "threads_started") > 4.0, "{record}");
        assert!(number(record, "p50_ns") <= number(record, "p99_ns"));
        assert!(number(record, "p99_ns") <= number(record, "max_ns"));
        assert!(number(record, "rate_kept_percent") > 10.0, "{record}");
        assert_eq!(record["params"]["stall"], "10ms");
    }
}

#[test]
fn long_walks_see_every_element() {
    let records = measure_for(
        &["--runs", "1", "--time", "250ms", "--warmup", "5ms"],
        &[
            "structures",
            "--ds",
            "all",
            "--long-reads",
            "1",
            "--key-range",
            "512",
            "--get-rate",
            "0",
            "--variants",
            "hp,haphazard,rcu,sdd",
        ],
    );
    let mut walked = 0;
    for record in &records {
        let ds = record["params"]["ds"].as_str().unwrap();
        if !["list", "hash", "skip"].contains(&ds) {
            assert_eq!(record["status"], "skipped", "{record}");
            assert!(record["note"].as_str().unwrap().contains("no walk"));
            continue;
        }
        assert!(came_off(record), "{record}");
        if record["status"] == "ok" && number(record, "walks_per_s") > 0.0 {
            walked += 1;
            // Half of the keys, more or less: those that come and go.
            let each = number(record, "elements_per_walk");
            assert!((64.0..448.0).contains(&each), "{record}");
        }
    }
    assert!(walked >= 6, "{walked} of 12 walked");
}

#[test]
fn what_makes_no_sense_is_refused_in_one_line() {
    for (arguments, named) in [
        (&["--ds", "tree"][..], "tree"),
        (&["--get-rate", "101"], "101"),
        (&["--stall", "often"], "often"),
        (&["--dist", "pareto"], "pareto"),
        (&["--ds", "stack", "--key-range", "64"], "--key-range"),
        (&["--ds", "queue", "--long-reads", "1"], "--long-reads"),
        (
            &["--oversubscribe", "2", "--threads", "2"],
            "--oversubscribe",
        ),
        (&["--variants", "mutex"], "mutex"),
    ] {
        let all = [&["structures"], arguments].concat();
        let line = complaint(&run(&all), 2);
        assert!(line.contains(named), "{line}");
    }
}

#[test]
fn pictures_of_throughput_and_of_what_waits() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = [
        &[
            "structures",
            "--ds",
            "stack,hash",
            "--key-range",
            "64",
            "--variants",
            "hp,leak",
            "--plot",
            "p.svg",
            "--report",
            "page.html",
        ][..],
        &FAST,
    ]
    .concat();
    let output = hpbench(&arguments)
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let page = std::fs::read_to_string(folder.path().join("page.html")).unwrap();
    for words in [
        "structures: throughput",
        "structures: nodes that wait",
        "ds=stack",
        "ds=hash",
    ] {
        assert!(page.contains(words), "{words}");
    }
}
