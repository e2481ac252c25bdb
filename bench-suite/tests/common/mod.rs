//! Floor 3, bench-suite. What the outside tests share: starting the program and reading what it says.
#![allow(dead_code, reason = "each test file uses its part of this")]

use assert_cmd::Command;
use serde_json::Value;
use std::process::Output;

/// Options that make runs short.
pub(crate) const FAST: [&str; 6] = ["--quick", "--time", "20ms", "--warmup", "2ms", "--seed=7"];

/// The workloads, as the program names them.
pub(crate) const WORKLOADS: [&str; 8] = [
    "read",
    "write",
    "scan",
    "stall",
    "grace",
    "defer",
    "phash",
    "structures",
];

/// The workloads of `lazy-mm`, as `--list` and the tour name them.
pub(crate) const LAZY_MM: &[&str] = if cfg!(target_os = "linux") {
    &["think", "track", "sched"]
} else {
    &["think", "sched"]
};

/// Trackers that `lazy-mm` compares, those of `variants` that have namesakes there too.
pub(crate) const TRACKERS: [&str; 12] = [
    "none",
    "refcount",
    "rcuref",
    "percpu-ref",
    "split-count",
    "hp-mb",
    "hp-asym",
    "shootdown",
    "haphazard",
    "crossbeam-epoch",
    "seize",
    "rcu",
];
/// The workload of the locks.
pub(crate) const OTHERS: &[&str] = if cfg!(target_os = "linux") {
    &[
        "rwsem",
        "ref",
        "rcuscale",
        "whack",
        "futex-hash",
        "schbench",
        "schbench-phash",
    ]
} else {
    &[]
};

/// How `phash` protects its table, those of `variants` that have namesakes there too.
pub(crate) const TABLES: [&str; 11] = [
    "global",
    "immutable",
    "refcount",
    "rcuref",
    "percpu-ref",
    "futex-ref",
    "split-count",
    "hp",
    "rcu",
    "crossbeam-epoch",
    "seize",
];

/// What `rwsem` compares, on the one system that it runs on.
pub(crate) const LOCKS: &[&str] = if cfg!(target_os = "linux") {
    &[
        "vanilla",
        "pi-single",
        "pi-multi",
        "rwbase",
        "std",
        "parking-lot",
        "percpu",
        "vma-refcount",
        "vma-hp",
        "vma-rcu",
    ]
} else {
    &[]
};

/// A snapshot's text: numbers with their units, widths and lines of dashes become one sign each.
pub(crate) fn redacted(text: &str) -> String {
    let mut lines = Vec::new();
    for line in text.lines() {
        let words = line.split_whitespace().map(|word| {
            let mut out = String::new();
            let mut digits = false;
            for c in word.chars() {
                let number = c.is_ascii_digit() || (digits && c == '.');
                if number && !digits {
                    out.push('N');
                } else if !number {
                    out.push(c);
                }
                digits = number;
            }
            if out.len() > 2 && out.chars().all(|c| c == '-') {
                "---".to_owned()
            } else {
                out
            }
        });
        const UNITS: [&str; 7] = ["ns", "µs", "ms", "s", "k", "M", "G"];
        let mut kept: Vec<String> = Vec::new();
        for word in words {
            let bare = word.trim_end_matches([',', ';']);
            if UNITS.contains(&bare) && kept.last().is_some_and(|last| last == "N") {
                let mark = &word[bare.len()..];
                kept.last_mut().expect("just seen").push_str(mark);
            } else {
                kept.push(word);
            }
        }
        lines.push(kept.join(" "));
    }
    lines.join("\n")
}

/// The variants that are listed in this build.
pub(crate) fn variants() -> impl Iterator<Item = &'static str> {
    const ALWAYS: [&str; 20] = [
        "none",
        "heavy-barrier",
        "hp",
        "hp-membarrier",
        "hp-fence",
        "hp-held",
        "rcu",
        "rcu-thread",
        "rcu-qsbr",
        "haphazard",
        "haphazard-per-op",
        "crossbeam-epoch",
        "seize",
        "arc-swap",
        "sdd",
        "kovan",
        "hazarc",
        "refcount",
        "mutex",
        "rwlock",
    ];
    let optional: &[&str] = if cfg!(feature = "liburcu") {
        &["liburcu-memb", "liburcu-qsbr", "liburcu-bp"]
    } else {
        &[]
    };
    ALWAYS.into_iter().chain(optional.iter().copied())
}

/// The program with an environment of its own.
pub(crate) fn hpbench(arguments: &[&str]) -> Command {
    let mut command = Command::cargo_bin("hpbench").expect("the binary is built with the tests");
    command
        .args(arguments)
        .env_remove("HP_BARRIER")
        .env_remove("HPBENCH_SYSFS")
        .env_remove("HPBENCH_HOME")
        .env_remove("HPBENCH_ALLOW_BROKEN");
    command
}

/// Runs it to its end.
pub(crate) fn run(arguments: &[&str]) -> Output {
    hpbench(arguments).output().expect("it starts")
}

/// Output as text.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("output is UTF-8")
}

/// The one line on the standard error.
pub(crate) fn complaint(output: &Output, code: i32) -> String {
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.starts_with("hpbench: "), "{stderr}");
    stderr
}

/// Parses JSON lines.
pub(crate) fn records(lines: &str) -> Vec<Value> {
    lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("each line is one JSON object"))
        .collect()
}

/// Runs shortly with `--json -` and returns the records.
pub(crate) fn measure(arguments: &[&str]) -> Vec<Value> {
    measure_for(&FAST, arguments)
}

/// Runs as `options` say with `--json -` and returns the records.
pub(crate) fn measure_for(options: &[&str], arguments: &[&str]) -> Vec<Value> {
    let all: Vec<&str> = arguments
        .iter()
        .chain(options)
        .chain(&["--json", "-"])
        .copied()
        .collect();
    let output = run(&all);
    assert!(output.status.success(), "{}", text(&output.stderr));
    records(&text(&output.stdout))
}

/// Whether a run took its course: beside other tests a run of some ms may get no CPU, and then has no figure.
pub(crate) fn came_off(record: &Value) -> bool {
    let note = record["note"].as_str().unwrap_or_default();
    match record["status"].as_str() {
        Some("ok") => true,
        Some("skipped") => note.contains("no operation was completed"),
        _ => false,
    }
}
