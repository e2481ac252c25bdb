//! Floor 3, bench-suite. The workloads `grace` and `defer` from outside: their records say what they measured.
//! Asserts no speed: only shapes, words and counts.

mod common;

use common::{measure, measure_for, run, text};
use serde_json::Value;

/// Runs for longer and longer until every run completed an operation: a loaded machine needs its time for the first.
fn measure_calm(arguments: &[&str]) -> Vec<Value> {
    let mut records = Vec::new();
    for time in ["--time=200ms", "--time=2s", "--time=10s"] {
        records = measure_for(&["--quick", time, "--warmup=10ms"], arguments);
        if records.iter().all(|record| record["ops"] != 0) {
            break;
        }
    }
    records
}

fn param(record: &Value, key: &str) -> f64 {
    record["params"][key]
        .as_f64()
        .unwrap_or_else(|| panic!("{key}: {record}"))
}

#[test]
fn a_grace_record_has_ordered_percentiles_and_says_what_was_measured() {
    let arguments = [
        "grace",
        "--threads=0,1",
        "--hold=0",
        "--variants=heavy-barrier,hp,crossbeam-epoch,haphazard,rcu,rcu-thread,rcu-qsbr",
    ];
    for record in measure_calm(&arguments) {
        assert!(common::came_off(&record), "{record}");
        let variant = record["variant"].as_str().unwrap();
        let blocks = variant == "heavy-barrier" || variant.starts_with("rcu");
        let measured = if blocks {
            "synchronize"
        } else {
            "retire to free"
        };
        assert_eq!(record["params"]["measured"], measured, "{record}");
        let over_percpu = blocks || variant == "hp";
        assert_eq!(
            record["params"]["rung"].is_string(),
            over_percpu,
            "{record}"
        );
        assert_eq!(record["params"]["hold_by"], "no pause");
        assert!(record["ops"].as_u64().unwrap() > 0, "{record}");
        let quantiles =
            ["p50_ns", "p90_ns", "p99_ns", "p999_ns", "max_ns"].map(|key| param(&record, key));
        assert!(quantiles[0] > 0.0, "{record}");
        assert!(quantiles.is_sorted(), "{record}");
        let mean = record["ns_per_op"].as_f64().unwrap();
        assert!(mean > 0.0 && mean <= quantiles[4], "{record}");
        assert_eq!(record["reads_per_s"].is_number(), record["threads"] == 1);
    }
}

#[test]
fn grace_crosses_readers_holds_and_idle_threads() {
    let records = measure(&[
        "grace",
        "--threads",
        "0,1",
        "--hold",
        "0,1us,100us",
        "--idle",
        "0,3",
        "--variants",
        "hp",
    ]);
    let mut points: Vec<_> = records
        .iter()
        .map(|record| {
            let number = |key| param(record, key) as u64;
            (number("readers"), number("hold_ns"), number("idle"))
        })
        .collect();
    points.sort_unstable();
    // Without readers nobody holds.
    let expected = [
        (0, 0, 0),
        (0, 0, 3),
        (1, 0, 0),
        (1, 0, 3),
        (1, 1_000, 0),
        (1, 1_000, 3),
        (1, 100_000, 0),
        (1, 100_000, 3),
    ];
    assert_eq!(points, expected);
    for record in records {
        let how = match param(&record, "hold_ns") as u64 {
            0 => "no pause",
            1_000 => "spin",
            _ => "sleep",
        };
        assert_eq!(record["params"]["hold_by"], how);
    }
}

#[test]
fn a_grace_period_waits_for_the_reader_that_holds() {
    let arguments = [
        "grace",
        "--threads=1",
        "--hold=1ms",
        "--variants=crossbeam-epoch,hp,rcu,rcu-thread,rcu-qsbr",
    ];
    // The reader is inside nearly all the time, so most were waited for.
    for record in measure_calm(&arguments) {
        assert!(param(&record, "p50_ns") > 50_000.0, "{record}");
    }
}

#[test]
fn a_defer_record_counts_what_was_queued_and_what_ran() {
    for threads in ["1", "2"] {
        for record in measure(&["defer", "--threads", threads]) {
            if record["status"] == "skipped" {
                assert_ne!(record["note"], "");
                continue;
            }
            assert!(common::came_off(&record), "{record}");
            let calls = param(&record, "calls");
            assert!(calls > 0.0 && calls >= record["ops"].as_f64().unwrap());
            assert_eq!(calls, param(&record, "ran"), "{record}");
            assert!(param(&record, "peak_backlog") <= calls);
            assert!(param(&record, "flush_s") >= 0.0);
            #[cfg(unix)]
            assert!(param(&record, "cpu_ns_per_call") > 0.0);
        }
    }
}

#[cfg(feature = "liburcu")]
#[test]
fn liburcu_takes_part_where_it_is_compared() {
    let variants = "--variants=liburcu-memb,liburcu-qsbr,liburcu-bp";
    for point in [
        &["read", "--threads=1,2"][..],
        &["grace", "--threads=0,1", "--hold=0,100us", "--idle=0,4"],
        &["defer", "--threads=1,2"],
    ] {
        for record in measure_calm(&[point, &[variants]].concat()) {
            assert!(common::came_off(&record), "{record}");
            assert!(record["ops"].as_u64().unwrap() > 0, "{record}");
        }
    }
}

#[test]
fn the_tables_name_their_columns() {
    let output = run(&[
        "grace",
        "--quick",
        // A loaded machine may give a shorter run no CPU, and then there is no figure.
        "--time=500ms",
        "--threads=0",
        "--variants=heavy-barrier",
    ]);
    let table = text(&output.stdout);
    for word in ["no reader", "p50", "p99.9", "x barrier", "sync", "1.00"] {
        assert!(table.contains(word), "{word}: {table}");
    }
}
