//! Floor 3, bench-suite. `hpbench model` from outside: predictions are labelled, files are written, and bad input is one
//! line with exit code 2.

mod common;

use common::{complaint, run, text};
use serde_json::Value;
use std::fs;
use std::path::Path;

const LABEL: &str = "PREDICTION of a model, not a measurement";
const SEED004: &str = include_str!("../src/model/machines/seed004.toml");

#[test]
fn the_published_table_with_residuals() {
    let output = run(&["model", "--machine", "seed004", "--bootstrap", "50"]);
    let table = text(&output.stdout);
    assert!(table.starts_with(LABEL), "{table}");
    let row: Vec<&str> = table
        .lines()
        .find(|line| line.trim_start().starts_with("192 "))
        .unwrap()
        .split_whitespace()
        .collect();
    assert_eq!(row[1], "+28.0");
    let (model, residual): (f64, f64) = (row[2].parse().unwrap(), row[3].parse().unwrap());
    assert!((model - 28.0 - residual).abs() < 0.11, "{row:?}");
    assert!((20.0..32.0).contains(&model), "{row:?}");
}

#[test]
fn json_and_svg_say_prediction() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for table in ["seed000", "seed002", "seed003", "seed004"] {
        let (json, svg) = (
            path(&format!("{table}.json")),
            path(&format!("{table}.svg")),
        );
        let output = run(&[
            "model",
            "--table",
            table,
            "--bootstrap",
            "10",
            "--json",
            &json,
            "--svg",
            &svg,
        ]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(text(&output.stdout).starts_with(LABEL));
        let data: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
        assert_eq!(
            (&data["what"], &data["table"]),
            (&LABEL.into(), &table.into())
        );
        assert!(!data["prediction"]["rows"].as_array().unwrap().is_empty());
        let picture = fs::read_to_string(&svg).unwrap();
        assert!(
            picture.contains(LABEL) && picture.contains("theirs, published"),
            "{table}"
        );
    }
}

#[test]
fn the_fit_compares_explanations() {
    let output = run(&["model", "--fit", "--bootstrap", "2", "--json", "-"]);
    let data: Value = serde_json::from_str(&text(&output.stdout)).unwrap();
    let prediction = &data["prediction"];
    let all = prediction["explanations"].as_array().unwrap();
    let rms = |words: &str| {
        let one = all
            .iter()
            .find(|one| one["name"].as_str().unwrap().contains(words))
            .unwrap();
        one["quality"]["rms"].as_f64().unwrap()
    };
    assert!((1.5..2.1).contains(&rms("cost by distance")));
    assert!(rms("single server") > 3.0 * rms("cost by distance"));
    assert!(rms("no effect") > rms("single server"));
    assert_eq!(prediction["fitted"], true);
    let text = text(&run(&["model", "--fit", "--bootstrap", "0"]).stdout);
    assert!(text.contains("USL") && text.contains("2 ln Λ"), "{text}");
}

#[test]
fn a_machine_of_ones_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    let mine = "name = \"mine\"\nsockets = 1\ncores_per_socket = 4\ncores_per_ccx = 4\nthreads_per_core = 1\n\
                [transfer_ns]\ncore = 5\nccx = 20.5\n[round_trip]\nthink_ns = 1000\ntransfers = 2\nshared = 0\n";
    fs::write(&path, mine).unwrap();
    let path = path.to_str().unwrap();
    let table = text(&run(&["model", "--machine", path, "--threads", "1,4,9"]).stdout);
    assert!(table.contains("another machine"), "{table}");
    // One pair: S = n t / Z.
    let row = table
        .lines()
        .find(|line| line.trim_start().starts_with("1 "))
        .unwrap();
    assert!(row.contains("+1.0"), "{row}");
    let line = complaint(&run(&["model", "--machine", path, "--fit"]), 2);
    assert!(line.contains("another machine"), "{line}");
}

#[test]
fn bad_machines_are_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bad.toml");
    let say = |content: &[u8]| {
        fs::write(&path, content).unwrap();
        complaint(&run(&["model", "--machine", path.to_str().unwrap()]), 2)
    };
    let without = |name: &str| {
        let kept: Vec<_> = SEED004
            .lines()
            .filter(|line| !line.starts_with(name))
            .collect();
        say(kept.join("\n").as_bytes())
    };
    for field in [
        "name",
        "sockets",
        "cores_per_socket",
        "cores_per_ccx",
        "threads_per_core",
        "core =",
        "remote",
        "socket =",
        "ccx",
        "think_ns",
        "transfers",
        "shared",
    ] {
        let field_name = field.trim_end_matches(" =");
        let line = without(field);
        assert!(
            line.contains("missing field") && line.contains(field_name),
            "{field}: {line}"
        );
    }
    for (content, word) in [
        (&b""[..], "missing field"),
        (b"\xff\xfe", "UTF-8"),
        (b"{", "not a calibration"),
        (
            b"{\"kind\":\"hpbench calibration\",\"schema\":7}",
            "schema 7",
        ),
        (b"sockets = = 2", "line 1"),
    ] {
        let line = say(content);
        assert!(line.contains(word) && line.contains("bad.toml"), "{line}");
    }
    let wrong = SEED004.replace("sockets = 2", "sockets = 0");
    assert!(say(wrong.as_bytes()).contains("sockets = 0"));
    let folder = folder.path().to_str().unwrap();
    assert!(complaint(&run(&["model", "--machine", folder]), 2).contains("directory"));
}

#[test]
fn bad_options_are_one_line() {
    for (arguments, word) in [
        (vec!["--machine", "seed005"], "seed005"),
        (vec!["--machine", ""], "--machine"),
        (vec!["--table", "seed001"], "seed001"),
        (vec!["--table", "seed000", "--machine", "this"], "--machine"),
        (vec!["--table", "seed002", "--fit"], "--fit"),
        (vec!["--table", "seed003", "--threads", "2"], "--threads"),
        (vec!["--threads", "0"], "--threads"),
        (vec!["--bootstrap", "many"], "--bootstrap"),
        (vec!["--bootstrap", "100001"], "--bootstrap"),
        (vec!["--csv", "x"], "--csv"),
        (vec!["--variants", "hp"], "--variants"),
        (vec!["--json", "-", "--svg", "-"], "--svg -"),
        (vec!["--json", "x", "--svg", "x"], "same file"),
    ] {
        let mut all = vec!["model"];
        all.extend(&arguments);
        let line = complaint(&run(&all), 2);
        assert!(line.contains(word), "{arguments:?}: {line}");
    }
    assert!(!Path::new("x").exists() && !Path::new("x.part").exists());
}

/// Runs of `think`, predicted and measured side by side.
#[test]
fn runs_are_predicted_and_compared() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let file = path("think.jsonl");
    let output = run(&[
        "lazy-mm",
        "think",
        "--quick",
        "--time",
        "80ms",
        "--think",
        "0,1us",
        "--threads",
        "1,2",
        "--variants",
        "refcount,hp-asym",
        "--json",
        &file,
    ]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let machine = path("two.toml");
    fs::write(&machine, SEED004.replace("compares_with = \"seed004\"", "")).unwrap();
    let output = run(&["model", "--validate", &file, "--machine", &machine]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    assert!(table.starts_with(LABEL), "{table}");
    let row = |think: &str, threads: &str| {
        table.lines().any(|line| {
            let mut words = line.split_whitespace();
            words.next() == Some(think) && words.next() == Some(threads)
        })
    };
    assert!(
        row("0", "1") && row("0", "2") && row("1000", "1") && row("1000", "2"),
        "{table}"
    );
    let output = run(&[
        "model",
        "--validate",
        &file,
        "--machine",
        &machine,
        "--json",
        "-",
    ]);
    let data: Value = serde_json::from_str(&text(&output.stdout)).unwrap();
    assert_eq!(data["what"], LABEL);
    for row in data["rows"].as_array().unwrap() {
        let at = |key: &str| row[key].as_f64().unwrap();
        let miss = row["predicted_pct"][0].as_f64().unwrap() - at("measured_pct");
        assert!(
            (miss - row["residual_pp"][0].as_f64().unwrap()).abs() < 1e-6,
            "{row}"
        );
        assert!(at("alone_ns") > 0.0);
    }
}

#[test]
fn what_cannot_be_validated_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str, content: &str| {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (empty, bad) = (path("empty", ""), path("bad", "{}\n"));
    for (file, more, words) in [
        ("no/such/file", vec![], "cannot be read"),
        (empty.as_str(), vec![], "no finished runs of think"),
        (bad.as_str(), vec![], "line 1"),
        (empty.as_str(), vec!["--fit"], "--fit"),
        (empty.as_str(), vec!["--runs", "3"], "--runs"),
    ] {
        let arguments = [
            &["model", "--machine", "seed004", "--validate", file],
            &more[..],
        ]
        .concat();
        let said = complaint(&run(&arguments), 2);
        assert!(said.contains(words), "{said}");
    }
}
