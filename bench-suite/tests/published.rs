//! Floor 3, bench-suite. `hpbench published` from outside: all numbers of the collected tables are in, and bad names
//! are refused. The copy of the tables in `tests/data` was made by hand from the five documents.

mod common;

use common::{complaint, run, text};
use serde_json::Value;

const TABLES: &str = include_str!("data/seed_tables.json");

/// All numbers of a value, those in names of keys included if the whole name is one.
fn numbers(value: &Value, all: &mut Vec<f64>) {
    match value {
        Value::Number(number) => all.extend(number.as_f64()),
        Value::Array(items) => items.iter().for_each(|item| numbers(item, all)),
        Value::Object(map) => {
            for (name, item) in map {
                all.extend(name.parse::<f64>().ok());
                numbers(item, all);
            }
        }
        _ => {}
    }
}

fn set(id: &str) -> Value {
    let output = run(&["published", id, "--json", "-"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let sets: Value = serde_json::from_str(&text(&output.stdout)).unwrap();
    assert_eq!(sets.as_array().unwrap().len(), 1);
    sets[0].clone()
}

#[test]
fn every_collected_number_is_in() {
    let tables: Value = serde_json::from_str(TABLES).unwrap();
    let mut seen = 0;
    for (name, table) in tables.as_object().unwrap() {
        let id = name.split('_').next().unwrap();
        let (mut wanted, mut here) = (Vec::new(), Vec::new());
        numbers(table, &mut wanted);
        numbers(&set(id), &mut here);
        seen += wanted.len();
        // As often as it is wanted: each one found is used up.
        for number in wanted {
            let place = here.iter().position(|&h| h == number);
            assert!(place.is_some(), "{id}: {number} is missing");
            here.swap_remove(place.unwrap());
        }
    }
    assert!(seen > 200, "{seen}");
}

#[test]
fn rows_stand_where_the_documents_have_them() {
    let cell = |set: &Value, table: &str, key: &Value, column: usize| -> f64 {
        let tables = set["tables"].as_array().unwrap();
        let table = tables.iter().find(|t| t["name"] == table).unwrap();
        let rows = table["rows"].as_array().unwrap();
        let row = rows.iter().find(|row| row["key"] == *key).unwrap();
        row["values"][column].as_f64().unwrap()
    };
    let tables: Value = serde_json::from_str(TABLES).unwrap();
    let four = set("seed004");
    for (threads, speedup) in tables["seed004_lazy_mm"]["speedup_pct"]
        .as_object()
        .unwrap()
    {
        let key = Value::from(threads.parse::<u64>().unwrap());
        assert_eq!(Some(cell(&four, "speedup", &key, 0)), speedup.as_f64());
    }
    let zero = set("seed000");
    for (buckets, runs) in tables["seed000_perf_futex_hash"]["raw"]
        .as_object()
        .unwrap()
    {
        let key = match buckets.parse::<u64>() {
            Ok(buckets) => Value::from(buckets),
            Err(_) => Value::from("global 65536"),
        };
        for (index, run) in runs.as_array().unwrap().iter().enumerate() {
            assert_eq!(
                Some(cell(&zero, "buckets, each run", &key, 2 * index)),
                run.as_f64()
            );
        }
    }
    let three = set("seed003");
    for (machine, short) in [
        ("256 cores 2xNUMA", "256 cores"),
        ("144 cores 4xNUMA", "144 cores"),
    ] {
        for row in tables["seed003_schbench"][machine].as_array().unwrap() {
            let (buckets, immutable) = (row["hbs"].as_u64().unwrap(), row["immutable"] == 1);
            let kind = match (buckets, immutable) {
                (0, _) => "global",
                (_, true) => "immutable",
                (_, false) => "refcounted",
            };
            let key = Value::from(format!("{kind} {buckets}"));
            assert_eq!(Some(cell(&three, short, &key, 0)), row["rps"].as_f64());
        }
    }
}

#[test]
fn lists_and_tables_say_whose_they_are() {
    let list = text(&run(&["published"]).stdout);
    for id in [
        "seed000",
        "seed001",
        "seed002",
        "seed003",
        "seed004",
        "external-lazy-mm",
        "external-hazptr",
    ] {
        assert!(list.contains(id), "{list}");
        let table = text(&run(&["published", id]).stdout);
        for words in [
            "PUBLISHED BY OTHERS",
            "not measured by this program",
            "Errata",
            "What it cannot",
        ] {
            assert!(table.contains(words), "{id}: {words}");
        }
    }
    assert!(list.contains("(external)"));
}

#[test]
fn bad_input_is_one_line() {
    for (arguments, word) in [
        (vec!["published", "seed005"], "seed005"),
        (vec!["published", "seed004", "--threads", "2"], "--threads"),
        (vec!["published", "--csv", "-"], "--csv"),
        (vec!["published", "seed004", "seed003"], "seed003"),
    ] {
        let line = complaint(&run(&arguments), 2);
        assert!(line.contains(word), "{line}");
    }
    assert_eq!(
        run(&["published", "--json", "/no/such/place/x"])
            .status
            .code(),
        Some(1)
    );
}
