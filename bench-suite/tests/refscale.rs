//! Floor 3, bench-suite. `hpbench ref` and `hpbench rcuscale` from outside: the originals' words, tables, refusals.

#![cfg(target_os = "linux")]

mod common;

use common::{complaint, run, text};
use serde_json::Value;

#[test]
fn ref_prints_the_originals_experiments() {
    let output = run(&[
        "ref",
        "--scale-type",
        "refcnt",
        "--nreaders",
        "2",
        "--nruns",
        "3",
        "--loops",
        "200",
        "--format",
        "original",
    ]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    let lines: Vec<&str> = said.lines().collect();
    assert!(
        lines[0].starts_with("refcnt-ref-scale: --- Start of test:"),
        "{said}"
    );
    assert!(
        lines[0].ends_with("nreaders=2 nruns=3 readdelay=0"),
        "{said}"
    );
    assert_eq!(lines.len(), 1 + 3 * 2 + 2 + 3, "{said}");
    let mut averages = Vec::new();
    for run in 0..3 {
        let heading = lines[1 + 2 * run];
        assert_eq!(
            heading,
            format!(
                "Experiment #{} (Format: <THREAD-NUM>:<Total loop time in ns>)",
                run + 1
            )
        );
        let sum: u64 = lines[2 + 2 * run]
            .split_terminator('\t')
            .enumerate()
            .map(|(reader, cell)| {
                let (number, ns) = cell.split_once(": ").unwrap();
                assert_eq!(number, reader.to_string());
                ns.parse::<u64>().unwrap()
            })
            .sum();
        averages.push(1000 * sum / (2 * 200));
    }
    assert!(
        lines[7].ends_with("END OF TEST. Calculating average duration per loop (nanoseconds)...")
    );
    assert_eq!(lines[8], "Runs\tTime(ns)");
    for (run, average) in averages.iter().enumerate() {
        let expected = format!("{}\t{}.{:03}", run + 1, average / 1000, average % 1000);
        assert_eq!(lines[9 + run], expected);
    }
}

#[test]
fn ref_measures_all_types() {
    let output = run(&[
        "ref",
        "--scale-type",
        "all",
        "--nreaders",
        "1,2",
        "--nruns",
        "2",
        "--loops",
        "100",
        "--runs",
        "1",
    ]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    for name in [
        "rcu",
        "hp",
        "refcnt",
        "typesafe_seqlock",
        "percpu-ref",
        "split-count",
        "seize",
    ] {
        let rows = said
            .lines()
            .filter(|line| line.starts_with("  ") && line.split_whitespace().next() == Some(name))
            .count();
        assert_eq!(rows, 2, "{name}: {said}");
    }
    let listed = text(&run(&["ref", "--list-types"]).stdout);
    assert!(
        listed.contains("not in user space:") && listed.contains("jiffies"),
        "{listed}"
    );
}

#[test]
fn rcuscale_prints_what_its_script_reads() {
    let output = run(&[
        "rcuscale",
        "--nreaders",
        "0",
        "--nwriters",
        "2",
        "--format",
        "original",
    ]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    // The script's words by position: the fifth of a duration, the ninth of the sum.
    let words = |line: &str| {
        line.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let durations: Vec<u64> = said
        .lines()
        .filter(|line| line.contains("writer-duration"))
        .map(|line| words(line)[4].parse().unwrap())
        .collect();
    assert!(durations.len() >= 200, "{said}");
    let sum = said
        .lines()
        .find(|line| line.contains(" gps: ") && line.contains("batches:"));
    assert_eq!(words(sum.unwrap())[8], durations.len().to_string());
    let min = *durations.iter().min().unwrap() as f64 / 1000.0;
    assert!(
        said.contains(&format!("Minimum grace-period duration: {min}\n")),
        "{said}"
    );
}

#[test]
fn rcuscale_has_tables() {
    let output = run(&[
        "rcuscale",
        "--scale-type",
        "all",
        "--nreaders",
        "1",
        "--nwriters",
        "1",
        "--runs",
        "1",
    ]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    for word in [
        "rcu-qsbr",
        "hp-sync",
        "hp-drain",
        "heavy-barrier",
        "theirs: shazptr",
        "x heavy-barrier",
    ] {
        assert!(said.contains(word), "{word}: {said}");
    }
    let output = run(&[
        "rcuscale",
        "--scale-type",
        "all",
        "--kfree-rcu-test",
        "--kfree-alloc-num",
        "100",
        "--kfree-loops",
        "4",
        "--runs",
        "1",
    ]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    for word in ["ns/object", "flush", "kfree_alloc_num=100, kfree_loops=4"] {
        assert!(said.contains(word), "{word}: {said}");
    }
    // Their figures are grace periods; the barrier has no objects.
    assert!(
        !said.contains("theirs") && said.contains("it frees no objects"),
        "{said}"
    );
    let output = run(&[
        "rcuscale",
        "--gp-async",
        "--gp-async-max",
        "50",
        "--runs",
        "1",
    ]);
    let said = text(&output.stdout);
    assert!(
        said.contains("barrier at the end"),
        "{}",
        text(&output.stderr)
    );
    assert!(
        said.contains("skipped: ") && said.contains("hp-sync"),
        "{said}"
    );
}

/// The workload of another name takes the same parameters, and prints the same words.
#[test]
fn grace_takes_the_parameters_of_rcuscale() {
    for command in ["grace", "rcuscale"] {
        let output = run(&[
            command,
            "--nreaders",
            "0",
            "--nwriters",
            "1",
            "--scale-type",
            "hp-sync",
            "--format",
            "original",
        ]);
        let said = text(&output.stdout);
        assert!(
            said.starts_with("hp-sync-scale:--- Start of test:"),
            "{said}"
        );
        let output = run(&[
            command,
            "--nwriters",
            "1",
            "--scale-type",
            "rcu",
            "--runs",
            "1",
            "--json",
            "-",
        ]);
        let records = common::records(&text(&output.stdout));
        assert_eq!(records[0]["workload"], "rcuscale");
        assert_eq!(records.len(), 1);
        assert!(
            records[0]["params"]["gp_p50_us"].as_f64()
                <= records[0]["params"]["gp_max_us"].as_f64()
        );
    }
    for own in [["--hold", "1us"], ["--idle", "1"]] {
        let said = complaint(&run(&[&["grace", "--nwriters", "1"], &own[..]].concat()), 2);
        assert!(said.contains(own[0]), "{said}");
    }
    // A parameter that has the usual value is there, too.
    for given in [
        ["--nreaders", "-1"],
        ["--gp-async-max", "1000"],
        ["--format", "table"],
    ] {
        let plan = text(&run(&[&["grace", "--dry-run"], &given[..]].concat()).stdout);
        assert!(plan.contains("rcuscale "), "{given:?}: {plan}");
    }
    let plan = text(&run(&["grace", "--idle", "2", "--dry-run"]).stdout);
    assert!(
        plan.contains("2 idle") && !plan.contains("rcuscale "),
        "{plan}"
    );
}

/// Each list is crossed with the others, and each point is measured.
#[test]
fn parameters_can_be_lists() {
    let records = |arguments: &[&str]| {
        let output = run(&[arguments, &["--runs", "1", "--json", "-"]].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        common::records(&text(&output.stdout))
    };
    let number = |record: &Value, name: &str| record["params"][name].as_i64().unwrap();
    let of = records(&[
        "ref",
        "--scale-type=typesafe_ref",
        "--nreaders=1,2",
        "--readdelay=0,500,0",
        "--lookup-instances=1,-2",
        "--nruns=2",
        "--loops=50",
    ]);
    let mut points: Vec<_> = of
        .iter()
        .map(|record| {
            let point = ["readers", "readdelay_ns", "lookup_instances"];
            point.map(|name| number(record, name))
        })
        .collect();
    points.sort_unstable();
    let mut expected = Vec::new();
    for readers in [1, 2] {
        expected.extend([[0, -2], [0, 1], [500, -2], [500, 1]].map(|at| [readers, at[0], at[1]]));
    }
    assert_eq!(points, expected);
    // Who holds for longer takes longer.
    for record in &of {
        let long = record["ns_per_op"].as_f64().unwrap() >= 400.0;
        assert!(long || number(record, "readdelay_ns") == 0, "{record}");
    }
    let of = records(&[
        "rcuscale",
        "--scale-type=hp-sync",
        "--nreaders=0..1",
        "--nwriters=1,2",
    ]);
    let point = |record: &Value| (number(record, "readers"), number(record, "writers"));
    let mut points: Vec<_> = of.iter().map(point).collect();
    points.sort_unstable();
    assert_eq!(points, [(0, 1), (0, 2), (1, 1), (1, 2)]);
}

#[test]
fn bad_options_are_one_line() {
    for (arguments, words) in [
        (&["ref", "--scale-type", "srcu"][..], "sleepable"),
        (&["ref", "--scale-type", "jiffies"], "kernel"),
        (&["ref", "--scale-type", "nothing"], "nothing"),
        (&["ref", "--nreaders", "0"], "--nreaders"),
        (&["ref", "--loops", "0"], "--loops"),
        (&["ref", "--threads", "2", "--nreaders", "2"], "--threads"),
        (&["ref", "--time", "1s"], "--time"),
        (&["ref", "--format", "original", "--json", "x"], "--json"),
        (&["rcuscale", "--threads", "2"], "--nreaders"),
        (
            &["rcuscale", "--format", "original", "--runs", "2"],
            "--runs",
        ),
        (&["rcuscale", "--scale-type", "mutex"], "grace period"),
        (&["rcuscale", "--scale-type", "tasks"], "switches"),
        (&["rcuscale", "--nwriters", "0"], "--nwriters"),
        (&["rcuscale", "--gp-exp"], "--gp-exp"),
        (
            &["rcuscale", "--gp-async", "--kfree-rcu-test"],
            "--gp-async",
        ),
        (
            &["rcuscale", "--gp-async", "--scale-type", "hp-sync"],
            "hp-sync",
        ),
        (
            &["rcuscale", "--kfree-rcu-test", "--kfree-nthreads", "0"],
            "--kfree-nthreads",
        ),
        (
            &[
                "rcuscale",
                "--kfree-rcu-test",
                "--scale-type",
                "heavy-barrier",
            ],
            "heavy-barrier",
        ),
    ] {
        let said = complaint(&run(arguments), 2);
        assert!(said.contains(words), "{said}");
    }
}
