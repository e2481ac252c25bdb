//! Floor 3, bench-suite. `--save`, `--baseline` and `hpbench baselines` from outside: words, files and codes.

mod common;

use common::{complaint, hpbench, records, text};
use std::fs;
use std::path::Path;
use std::process::Output;

/// As many runs as a verdict needs.
const POINTS: [&str; 7] = [
    "read",
    "--threads",
    "1",
    "--variants",
    "none,mutex",
    "--runs",
    "5",
];

fn run(home: &Path, arguments: &[&str]) -> Output {
    let fast = ["--time", "50ms", "--warmup", "0s"];
    let measures = ["read", "--quick"]
        .iter()
        .any(|word| arguments.contains(word));
    let more: &[&str] = if measures { &fast } else { &[] };
    hpbench(&[arguments, more].concat())
        .env("HPBENCH_HOME", home)
        .current_dir(home)
        .output()
        .unwrap()
}

fn said(output: &Output) -> String {
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// Scales the rates of a file of records.
fn scale(path: &Path, factor: f64) {
    let lines: String = records(&fs::read_to_string(path).unwrap())
        .into_iter()
        .map(|mut record| {
            let rate = record["ops_per_s"].as_f64().unwrap() * factor;
            record["ops_per_s"] = rate.into();
            format!("{record}\n")
        })
        .collect();
    fs::write(path, lines).unwrap();
}

#[test]
fn records_are_kept_and_compared_with() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    assert!(said(&run(home, &["baselines"])).contains("no baseline in"));
    let first = said(&run(home, &[&POINTS[..], &["--save", "main"]].concat()));
    assert!(first.contains("saved as baseline main:"), "{first}");
    let file = home.join("baselines/main.jsonl");
    let kept = records(&fs::read_to_string(&file).unwrap());
    assert_eq!(kept.len(), 10);
    assert!(kept[0]["params"]["machine_record"].is_object());
    assert!(kept[1]["params"].get("machine_record").is_none());
    let second = said(&run(home, &[&POINTS[..], &["--save", "main"]].concat()));
    assert!(second.contains("over the one that was there"), "{second}");
    assert_eq!(
        fs::read_dir(home.join("baselines")).unwrap().count(),
        1,
        "no .part is left"
    );

    let list = said(&run(home, &["baselines"]));
    let row = list.lines().find(|line| line.contains("main")).unwrap();
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(
        (cells[0], &cells[3..6]),
        ("main", &["2", "10", "read"][..]),
        "{list}"
    );

    let with = [&POINTS[..], &["--baseline", "main"]].concat();
    let table = said(&run(home, &with));
    assert!(
        table.contains("against baseline main") && table.contains("verdict"),
        "{table}"
    );
    assert!(table.contains("read none, 1 threads"), "{table}");
    // With records on the standard output the comparison goes where the tables go.
    let output = run(home, &[&with[..], &["--json", "-"]].concat());
    assert_eq!(records(&text(&output.stdout)).len(), 10);
    assert!(text(&output.stderr).contains("against baseline main"));

    // So much faster in the past: slower now, whatever else runs beside.
    scale(&file, 1e4);
    let output = run(
        home,
        &[
            &with[..],
            &["--fail-if", ">5%", "--save", "now", "--json", "x.jsonl"],
        ]
        .concat(),
    );
    assert!(
        complaint(&output, 1).contains("is slower by "),
        "{output:?}"
    );
    assert!(
        text(&output.stdout).contains("saved as baseline now"),
        "kept all the same"
    );
    assert_eq!(
        records(&fs::read_to_string(home.join("x.jsonl")).unwrap()).len(),
        10
    );
    scale(&file, 1e-8);
    said(&run(home, &[&with[..], &["--fail-if", ">5%"]].concat()));
}

#[test]
fn the_tour_has_them_too() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let tour = ["--quick", "--variants", "mutex", "--threads", "2"];
    let told = said(&run(home, &[&tour[..], &["--save", "tour"]].concat()));
    assert!(told.contains("saved as baseline tour"), "{told}");
    let told = said(&run(home, &[&tour[..], &["--baseline", "tour"]].concat()));
    assert!(
        told.contains("against baseline tour") && told.contains("too few runs"),
        "{told}"
    );
}

#[test]
fn baselines_that_cannot_be_compared_with() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let folder = home.join("baselines");
    let ask = |name: &str, more: &[&str]| {
        // A minute a run: nothing may be measured first.
        hpbench(&[&POINTS[..], &["--time", "60s", "--baseline", name], more].concat())
            .env("HPBENCH_HOME", home)
            .output()
            .unwrap()
    };
    assert!(complaint(&ask("main", &[]), 2).contains("none is saved"));
    said(&run(home, &[&POINTS[..], &["--save", "main"]].concat()));
    said(&run(home, &[&POINTS[..], &["--save", "other"]].concat()));
    // Too few runs for a verdict: no limit could ever be passed.
    let few = [&POINTS[..5], &["--time", "60s", "--baseline", "main"]].concat();
    let few = hpbench(&[&few[..], &["--fail-if", ">5%"]].concat())
        .env("HPBENCH_HOME", home)
        .output()
        .unwrap();
    assert!(complaint(&few, 2).contains("--baseline main: --fail-if needs 5 runs"));
    let line = complaint(&ask("mian", &[]), 2);
    assert!(line.contains("'mian'") || line.contains("mian:"), "{line}");
    assert!(line.contains("saved are main, other"), "{line}");

    let content = fs::read_to_string(folder.join("main.jsonl")).unwrap();
    let id = records(&content)[0]["params"]["machine_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let foreign = content.replace(&id, "0123456789abcdef");
    fs::write(folder.join("foreign.jsonl"), &foreign).unwrap();
    let line = complaint(&ask("foreign", &[]), 2);
    assert!(
        line.contains("another machine") && line.contains("--force"),
        "{line}"
    );
    let forced = run(
        home,
        &[&POINTS[..], &["--baseline", "foreign", "--force"]].concat(),
    );
    assert!(said(&forced).contains("against baseline foreign"));

    fs::write(
        folder.join("old.jsonl"),
        content.replace("\"schema\":1,\"workload\"", "\"schema\":99,\"workload\""),
    )
    .unwrap();
    let line = complaint(&ask("old", &[]), 2);
    assert!(line.contains("line 1: schema 99"), "{line}");
    fs::write(folder.join("noise.jsonl"), "what is this\n").unwrap();
    assert!(complaint(&ask("noise", &[]), 2).contains("line 1"));
    fs::write(folder.join("empty.jsonl"), "").unwrap();
    assert!(complaint(&ask("empty", &[]), 2).contains("no run in it"));
    let list = said(&run(home, &["baselines"]));
    assert!(
        list.lines()
            .any(|line| line.contains("old") && line.contains("schema 99")),
        "{list}"
    );
}

#[test]
fn bad_names_and_options() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    for (arguments, words) in [
        (vec!["read", "--save", ""], ["--save", "empty"]),
        (vec!["read", "--save", "a/b"], ["'a/b'", "slashes"]),
        (vec!["read", "--save", "../x"], ["'../x'", "begin"]),
        (vec!["read", "--baseline", "a b"], ["--baseline", "'a b'"]),
        (
            vec!["read", "--fail-if", ">5%"],
            ["--fail-if", "--baseline"],
        ),
        (vec!["read", "--force"], ["--force", "--baseline"]),
        (
            vec!["read", "--baseline", "x", "--fail-if", "5"],
            ["--fail-if", "'5'"],
        ),
        (vec!["published", "--save", "x"], ["--save", "published"]),
        (
            vec!["baselines", "--baseline", "x"],
            ["--baseline", "baselines"],
        ),
        (vec!["read", "--window", "0ms"], ["--window", "'0ms'"]),
        (
            vec!["compare", "a", "b", "--window", "1s"],
            ["--window", "compare"],
        ),
    ] {
        let output = hpbench(&arguments)
            .env("HPBENCH_HOME", home)
            .output()
            .unwrap();
        let line = complaint(&output, 2);
        for word in words {
            assert!(line.contains(word), "{arguments:?}: {line}");
        }
    }
    // A folder that cannot be made is an error before anything is measured.
    fs::write(home.join("baselines"), "in the way").unwrap();
    let output = hpbench(&["read", "--time", "60s", "--save", "x"])
        .env("HPBENCH_HOME", home)
        .output()
        .unwrap();
    let line = complaint(&output, 1);
    assert!(
        line.contains("--save x") && line.contains("baselines"),
        "{line}"
    );
}
