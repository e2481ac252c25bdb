//! Floor 3, bench-suite. The program from outside: what it measures, and what goes to which stream.
//! Asserts no speed: only shapes, words and codes.

mod common;

use common::{
    FAST, LAZY_MM, LOCKS, OTHERS, TABLES, TRACKERS, WORKLOADS, hpbench, measure, records, run,
    text, variants,
};
use serde_json::Value;
use std::fs;

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
        assert!(common::came_off(record), "{record}");
        let (ops, elapsed, rate) = (&record["ops"], &record["elapsed_s"], &record["ops_per_s"]);
        let product = elapsed.as_f64().unwrap() * rate.as_f64().unwrap();
        // (A loaded machine may get nothing done in so short a run.)
        let ops = ops.as_f64().unwrap();
        assert!((product - ops).abs() <= 1e-6 * ops, "{record}");
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
    // Those of ctxsw.
    let modes: &[&str] = if cfg!(target_os = "linux") {
        &["threads", "processes"]
    } else {
        &[]
    };
    let names = WORKLOADS
        .iter()
        .chain(LAZY_MM)
        .chain(&TRACKERS)
        .chain(OTHERS)
        .chain(&TABLES)
        .chain(LOCKS)
        .chain(modes);
    for name in names.copied().chain(["capabilities"]).chain(variants()) {
        assert!(
            list.lines()
                .any(|line| line.split_whitespace().next() == Some(name)),
            "{name}"
        );
    }
    assert!(!list.contains("broken"));
    // Each variant says how it is used.
    let named = |line: &&str| line.starts_with("  ") && !line.starts_with("   ");
    let at = list.find("\nVariants (how").expect("their heading");
    let variants = list[at..].lines().filter(named).count();
    let known = self::variants().count() + TRACKERS.len() + TABLES.len() + LOCKS.len();
    assert!(variants >= known + modes.len(), "{variants}");
    let says = |line: &&str| line.trim_start().starts_with("holder: ");
    assert_eq!(list.lines().filter(says).count(), variants);
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
    for workload in WORKLOADS {
        let point: &[&str] = match workload {
            "stall" => &["--threads", "2"],
            "grace" => &["--threads", "1", "--hold", "0"],
            "structures" => &["--threads", "1", "--ds", "stack"],
            _ => &["--threads", "1"],
        };
        let records = measure(&[&[workload], point].concat());
        // The hash has schemes of its own.
        let expected = match workload {
            "phash" => 11,
            "structures" => 12,
            _ => variants().count(),
        };
        assert_eq!(records.len(), expected, "{workload}");
        for record in &records {
            assert_ne!(record["status"], "failed", "{record}");
            assert!(record["status"] == "ok" || record["note"] != "", "{record}");
            assert_eq!(record["params"]["quick"], true);
        }
        assert!(
            records
                .iter()
                .any(|record| record["variant"] == "crossbeam-epoch" && common::came_off(record)),
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
        "20ms",
        "--warmup",
        "0s",
        "--variants",
        "hp,none,haphazard,mutex,crossbeam-epoch,std,heavy-barrier,own-one,global",
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
    let workloads: Vec<&str> = WORKLOADS
        .iter()
        .chain(LAZY_MM)
        .chain(OTHERS)
        .copied()
        .collect();
    let pictures: Vec<String> = workloads.iter().map(|w| format!("{w}.svg")).collect();
    let results = ["results.jsonl", "results.csv", "report.html"].map(String::from);
    for name in results.iter().chain(&pictures) {
        assert!(place.join(name).is_file(), "{name}");
        assert!(stdout.contains(name), "{name}");
    }
    assert_eq!(
        fs::read_dir(&place).unwrap().count(),
        results.len() + pictures.len(),
        "no .part is left"
    );
    for workload in workloads {
        assert!(stdout.contains(&format!("\n{workload}: ")), "{workload}");
    }
    assert!(stdout.starts_with("machine: ") && stdout.contains("hp rung: "));
    let lines = records(&fs::read_to_string(place.join("results.jsonl")).unwrap());
    assert!(lines.len() > 16);
}

#[test]
fn a_dry_run_measures_and_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.jsonl");
    let output = run(&[
        "read",
        "--dry-run",
        "--variants",
        "mutex,none",
        "--threads",
        "1..4:x2",
        "--runs",
        "3",
        "--json",
        file.to_str().unwrap(),
    ]);
    assert!(output.status.success());
    let plan = text(&output.stdout);
    assert!(plan.starts_with("18 runs: 6 points"), "{plan}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// Runs that are in the file are not run again; what was cut off is.
#[test]
fn a_sweep_is_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sweep.jsonl");
    let sweep = |runs: &str| {
        let arguments = [
            &[
                "read",
                "--variants",
                "mutex",
                "--threads",
                "1,2",
                "--runs",
                runs,
                "--resume",
                file.to_str().unwrap(),
            ][..],
            &["--time", "200ms", "--warmup", "0s"],
        ]
        .concat();
        let output = run(&arguments);
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(text(&output.stdout).contains("2 threads"));
        fs::read_to_string(&file).unwrap()
    };
    let first = sweep("1");
    assert_eq!(first.lines().count(), 2);
    assert_eq!(sweep("1"), first, "nothing is run again");
    let second = sweep("2");
    assert!(second.starts_with(&first));
    assert_eq!(second.lines().count(), 4);
    fs::write(&file, &second[..second.len() - 40]).unwrap();
    let mended = sweep("2");
    assert_eq!(mended.lines().count(), 4);
    assert!(mended.starts_with(&first));

    for (content, word) in [
        ("{\"schema\":99}\n", "schema 99"),
        ("not a record\n", "line 1"),
    ] {
        fs::write(&file, content).unwrap();
        let output = run(&["read", "--quick", "--resume", file.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(2));
        let complaint = text(&output.stderr);
        assert!(complaint.contains(word), "{complaint}");
        assert_eq!(complaint.lines().count(), 1, "{complaint}");
        assert_eq!(
            fs::read_to_string(&file).unwrap(),
            content,
            "left as it was"
        );
    }
}

/// The run in progress is finished and kept.
#[cfg(unix)]
#[test]
fn an_interrupted_sweep_keeps_what_is_in() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("sweep.jsonl");
    let child = std::process::Command::new(assert_cmd::cargo::cargo_bin!("hpbench"))
        .args([
            "read",
            "--variants",
            "mutex",
            "--threads",
            "1",
            "--runs",
            "1000",
        ])
        .args(["--time", "100ms", "--warmup", "0s", "--resume"])
        .arg(&file)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    while fs::read_to_string(&file).map_or(0, |text| text.lines().count()) < 2 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    // SAFETY: a signal to a child that has not been waited for.
    unsafe { libc::kill(child.id().try_into().unwrap(), libc::SIGINT) };
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let lines = records(&fs::read_to_string(&file).unwrap());
    assert!(lines.len() >= 2 && lines.len() < 1000);
    assert!(lines.iter().all(common::came_off));
    let said = text(&output.stderr);
    assert!(
        said.contains(&format!("{} of 1000 runs are in", lines.len())),
        "{said}"
    );
}
