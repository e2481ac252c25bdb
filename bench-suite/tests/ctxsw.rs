//! Floor 3, bench-suite. `hpbench ctxsw` from outside. (A run takes seven seconds, six of them as the original's.)

#![cfg(target_os = "linux")]

mod common;

use common::{run, text};

fn numbers(line: &str) -> [u64; 3] {
    let mut numbers = ["min:", "max:", "total:"].into_iter().zip(line.split(' '));
    let numbers = [0; 3].map(|_| {
        let (label, word) = numbers.next().unwrap();
        word.strip_prefix(label).unwrap().parse().unwrap()
    });
    assert_eq!(line.split(' ').count(), 3, "{line}");
    numbers
}

/// Line by line what will-it-scale prints, so that what reads that reads this.
#[test]
fn the_originals_words() {
    let output = run(&["ctxsw", "-t", "2", "-s", "1", "--format", "original"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 11, "{said}");
    assert_eq!(lines[0], "testcase:Context switch via pipes");
    assert_eq!((lines[1], lines[8]), ("warmup", "measurement"));
    for line in [&lines[2..8], &lines[9..10]].concat() {
        let [min, max, total] = numbers(line);
        assert!(min <= max && min + max == total, "two tasks: {line}");
    }
    let total = numbers(lines[9])[2];
    assert!(total > 0);
    assert_eq!(lines[10], format!("average:{total}"));
}

#[test]
fn the_runners_columns() {
    let output = run(&["ctxsw", "-t", "1", "-s", "1", "--csv-wis", "-"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(
        lines[0],
        "tasks,processes,processes_idle,threads,threads_idle,linear"
    );
    assert_eq!(lines[1], "0,0,100,0,100,0");
    let row: Vec<f64> = lines[2]
        .split(',')
        .map(|field| field.parse().unwrap())
        .collect();
    assert_eq!((row.len(), row[0]), (6, 1.0));
    assert!(
        row[1] > 0.0 && row[3] > 0.0 && row[5] == row[1].max(row[3]),
        "{said}"
    );
}

#[test]
fn bad_options_are_one_line() {
    for (arguments, words) in [
        (vec!["ctxsw", "-m", "-n"], "-m"),
        (vec!["ctxsw", "-t", "0"], "-t"),
        (vec!["ctxsw", "-t", "2049"], "2048"),
        (vec!["ctxsw", "-t", "4..1"], "backwards"),
        (vec!["ctxsw", "-s", "0"], "-s"),
        (vec!["ctxsw", "--runs", "3"], "--runs"),
        (vec!["ctxsw", "--format", "x"], "--format"),
    ] {
        let output = run(&arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let said = text(&output.stderr);
        assert!(said.contains(words), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}
