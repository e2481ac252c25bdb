//! Floor 3, bench-suite. `hpbench lazy-mm think` and `track` from outside: every tracker in every mode, the promised
//! parameters, trackers that break invariants on purpose, and bad input. (`sched` has a file of its own.)

#![cfg(target_os = "linux")]

mod common;

use common::{TRACKERS, complaint, hpbench, measure, run, text};
use serde_json::Value;

/// What each record must say, beside what the workload adds.
fn check(record: &Value) {
    let params = &record["params"];
    let name = &record["variant"];
    assert!(common::came_off(record), "{record}");
    assert_eq!(params["invariants"], "I1-I6 held", "{name}");
    for number in [
        "teardowns",
        "swap_ms",
        "interrupts",
        "peak_unreclaimed",
        "freed_at_end",
        "locked_per_op",
        "fences_per_op",
    ] {
        assert!(params[number].is_number(), "{name}: {number}");
    }
    let locked = params["locked_per_op"].as_u64().unwrap();
    let fences = params["fences_per_op"].as_u64().unwrap();
    match name.as_str().unwrap() {
        "none" => {
            assert!(params.get("teardown_p50_ns").is_none(), "never freed");
            assert_eq!(params["freed_at_end"], params["teardowns"]);
            assert_eq!((locked, fences), (0, 0));
        }
        "refcount" | "rcuref" | "split-count" => assert_eq!((locked, fences), (2, 0)),
        "hp-mb" | "shootdown" => assert_eq!((locked, fences), (0, 2)),
        _ => {}
    }
    if params["teardowns"].as_u64() > params["freed_at_end"].as_u64() {
        let at = |key: &str| params[key].as_f64().unwrap();
        assert!(at("teardown_p50_ns") > 0.0, "{record}");
        assert!(at("teardown_p50_ns") <= at("teardown_p90_ns"));
        assert!(at("teardown_p90_ns") <= at("teardown_p99_ns"));
        assert!(at("teardown_p99_ns") <= at("teardown_max_ns"));
        assert!(at("peak_unreclaimed") >= 1.0);
    }
}

/// A run of some ms beside other tests may get no CPU at all; all together do, and of each tracker some.
fn something_was_done(records: &[Value]) {
    let torn = |record: &Value| record["params"]["teardowns"].as_u64().unwrap();
    assert!(records.iter().map(torn).sum::<u64>() > 0);
    for tracker in TRACKERS {
        let runs = records.iter().filter(|r| r["variant"] == tracker);
        let ops: u64 = runs.map(|r| r["ops"].as_u64().unwrap()).sum();
        assert!(ops > 0, "{tracker}");
    }
}

#[test]
fn thinking_with_every_tracker() {
    let records = measure(&[
        "lazy-mm",
        "think",
        "--think",
        "0,1us",
        "--threads",
        "1,2",
        "--swap",
        "1ms",
    ]);
    assert_eq!(records.len(), TRACKERS.len() * 4);
    something_was_done(&records);
    for record in &records {
        check(record);
        let params = &record["params"];
        assert_eq!(record["workload"], "think");
        assert_eq!(params["scope"], "model");
        assert_eq!(params["swap_ms"], 1.0);
        let asked = params["think_ns"].as_f64().unwrap();
        let measured = params["think_ns_measured"].as_f64().unwrap();
        if asked == 0.0 {
            assert_eq!(measured, 0.0);
        } else {
            assert!((asked * 0.3..asked * 3.0).contains(&measured), "{record}");
            // Nobody is quicker than his thinking.
            let ns = record["ns_per_op"].as_f64();
            assert!(ns.is_none_or(|ns| ns > 0.5 * measured), "{record}");
        }
        let point = format!("swap_ms=1.0, think_ns={asked}");
        assert_eq!(params["point"], point.as_str());
    }
}

#[test]
fn a_hand_over_with_every_tracker() {
    for (mode, grab, bind) in [
        ("both", "always", "core"),
        ("threads", "idle", "none"),
        ("processes", "idle", "cpu"),
    ] {
        let records = measure(&[
            "lazy-mm",
            "track",
            "--threads",
            "1,3",
            "--mode",
            mode,
            "--grab",
            grab,
            "--bind",
            bind,
            "--swap",
            "1ms",
        ]);
        let modes = if mode == "both" { 2 } else { 1 };
        assert_eq!(records.len(), TRACKERS.len() * 2 * modes);
        something_was_done(&records);
        for record in &records {
            let params = &record["params"];
            assert_eq!(record["workload"], "track");
            assert_eq!(params["scope"], "real pipes, tracker in user space");
            assert_eq!(
                (&params["grab"], &params["bind"]),
                (&grab.into(), &bind.into())
            );
            assert!(mode == "both" || params["mode"] == mode);
            let pin = match bind {
                "core" => "smt-pair",
                "cpu" => "pu",
                _ => "none",
            };
            assert_eq!(params["pin"], pin, "where it ran");
            if record["ops"] != 0 {
                let each = params["per_thread"].as_array().expect("a pair each");
                let sum: u64 = each.iter().filter_map(Value::as_u64).sum();
                assert_eq!(record["ops"], sum);
            }
            // Not told if nobody blocked.
            let share = params["grabbed_share"].as_f64();
            let least = if grab == "always" { 1.0 } else { 0.0 };
            assert!(
                share.is_none_or(|share| (least..=1.0).contains(&share)),
                "{record}"
            );
            check(record);
            assert_eq!(record["ops"].as_u64().unwrap() % 2, 0, "round trips");
        }
        for wanted in ["threads", "processes"] {
            let seen = records.iter().any(|r| r["params"]["mode"] == wanted);
            assert_eq!(seen, mode == "both" || mode == wanted);
        }
    }
}

#[test]
fn one_mm_for_good_if_nothing_is_replaced() {
    let records = measure(&["lazy-mm", "think", "--think", "0", "--swap", "0"]);
    for record in &records {
        let params = &record["params"];
        assert!(common::came_off(record), "{record}");
        assert_eq!(params["teardowns"], 0);
        assert_eq!(params["swap_ms"], 0.0);
        assert!(params.get("teardown_p50_ns").is_none());
    }
}

/// Trackers that break an invariant: the run fails, and says which.
#[test]
fn broken_invariants_fail_the_run() {
    for workload in ["think", "track"] {
        for number in [1, 3, 4, 5, 6] {
            let variant = format!("broken-i{number}");
            let output = hpbench(&["lazy-mm", workload, "--threads", "2", "--swap", "1ms"])
                .args(["--variants", &variant, "--json", "-"])
                .args(["--quick", "--time", "80ms", "--warmup", "0s"])
                .env("HPBENCH_ALLOW_BROKEN", "1")
                .output()
                .unwrap();
            let said = text(&output.stderr);
            assert_eq!(
                output.status.code(),
                Some(4),
                "{workload} {variant}: {said}"
            );
            let name = format!("I{number} broken");
            assert!(said.contains(&name), "{workload} {variant}: {said}");
            let record: Value =
                serde_json::from_str(text(&output.stdout).lines().next().unwrap()).unwrap();
            assert_eq!(record["status"], "failed");
            let words = record["params"]["invariants"].as_str().unwrap();
            assert!(words.contains(&name), "{words}");
        }
    }
}

#[test]
fn broken_trackers_are_not_to_be_had() {
    let said = complaint(&run(&["lazy-mm", "think", "--variants", "broken-i1"]), 2);
    assert!(said.contains("broken-i1"), "{said}");
    let list = text(&run(&["--list"]).stdout);
    assert!(!list.contains("broken"), "{list}");
    for name in TRACKERS {
        assert!(list.contains(&format!("\n  {name} ")), "{name}: {list}");
    }
}

#[test]
fn bad_options_are_one_line() {
    for (arguments, words) in [
        (vec!["lazy-mm"], vec!["lazy-mm"]),
        (vec!["lazy-mm", "thick"], vec!["thick"]),
        (
            vec!["lazy-mm", "think", "--variants", "mutex"],
            vec!["think has no 'mutex'", "hp-asym", "split-count"],
        ),
        (
            vec!["lazy-mm", "track", "--variants", "no-such-tracker"],
            vec!["no-such-tracker", "track has none", "shootdown"],
        ),
        (
            vec!["lazy-mm", "think", "--think", "1"],
            vec!["--think", "unit"],
        ),
        (
            vec!["lazy-mm", "think", "--think", "1s"],
            vec!["--think", "longer than"],
        ),
        (
            vec!["lazy-mm", "think", "--think", "0,,1us"],
            vec!["--think", "empty"],
        ),
        (
            vec!["lazy-mm", "track", "--swap", "soon"],
            vec!["--swap", "soon"],
        ),
        (vec!["lazy-mm", "track", "--grab", "x"], vec!["--grab", "x"]),
        (
            vec!["lazy-mm", "track", "--threads", "0"],
            vec!["--threads", "0"],
        ),
        (
            vec!["read", "--variants", "shootdown"],
            vec!["read has no 'shootdown'"],
        ),
    ] {
        let said = complaint(&run(&arguments), 2);
        for word in words {
            assert!(said.contains(word), "{arguments:?}: {said}");
        }
    }
}

#[test]
fn a_dry_run_names_the_points() {
    let output = run(&["lazy-mm", "think", "--dry-run", "--variants", "hp-asym"]);
    let said = text(&output.stdout);
    assert!(said.starts_with("18 runs: 6 points"), "{said}");
    assert!(said.contains("think_ns 100"), "{said}");
}
