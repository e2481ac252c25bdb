//! Floor 3, bench-suite. `hpbench schbench` from outside: words, JSON, refusals, Ctrl-C, the table over hash sizes.

#![cfg(target_os = "linux")]

mod common;

use common::{complaint, hpbench, run, text};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A run of a second with little to do.
const SHORT: [&str; 9] = ["schbench", "-r", "1", "-t", "2", "-n", "1", "-F", "16"];

fn short<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&SHORT[..], more].concat()
}

/// Numbers become N, runs of spaces one.
fn redacted(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        let c = if c.is_ascii_digit() { 'N' } else { c };
        if !(c == 'N' && out.ends_with('N') || c == ' ' && out.ends_with(' ')) {
            out.push(c);
        }
    }
    out.replace("N.N", "N").replace("-N", "N")
}

#[test]
fn the_originals_words() {
    let output = run(&short(&["--format", "original", "-M", "0"]));
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(output.stdout.is_empty());
    insta::assert_snapshot!(redacted(&said), @r"
    Wakeup Latencies percentiles (usec) runtime N (s) (N total samples)
    	 Nth: N (N samples)
    	 Nth: N (N samples)
    	* Nth: N (N samples)
    	 Nth: N (N samples)
    	 min=N, max=N
    Request Latencies percentiles (usec) runtime N (s) (N total samples)
    	 Nth: N (N samples)
    	 Nth: N (N samples)
    	* Nth: N (N samples)
    	 Nth: N (N samples)
    	 min=N, max=N
    RPS percentiles (requests) runtime N (s) (N total samples)
    	 Nth: N (N samples)
    	* Nth: N (N samples)
    	 Nth: N (N samples)
    	 min=N, max=N
    average rps: N
    sched delay: message N (usec) worker N (usec)
    Futex HBs: N immutable: N
    # over measured time: N requests/s (N in N s)
    ");
}

#[test]
fn json_has_the_standard_output_to_itself() {
    let output = run(&short(&["-j", "-", "-J", "mine", "-L", "-s", "0"]));
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["normal"]["jobname"], "mine");
    assert!(
        json["normal"]["cmdline"]
            .as_str()
            .unwrap()
            .ends_with("-s 0")
    );
    assert_eq!(json["int"]["runtime"], 1);
    let number = |group: &str, name: &str| json[group][name].as_f64().unwrap();
    let int = |name: &str| number("int", name);
    assert!(int("request_latency_pct50.0") <= int("request_latency_pct99.9"));
    assert!(int("rps_max") > 0.0);
    // The run is a second long.
    let average = number("hpbench", "average_rps");
    assert!((average - number("hpbench", "loops")).abs() < 1e-6);
    assert!(number("hpbench", "measured_requests") <= average);
    assert!((0.9..30.0).contains(&number("hpbench", "measured_s")));
}

#[test]
fn an_open_loop_and_a_pipe() {
    // More than can be answered: each sleeps for 50 ms.
    let output = run(&short(&[
        "-R", "200", "--pacing", "open", "-s", "50000", "--format", "run",
    ]));
    let said = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(said.contains("request, from when it was due"), "{said}");
    assert!(said.contains("no answer at the end"), "{said}");
    let output = run(&[
        "schbench", "-r", "1", "-p", "4096", "-t", "2", "--format", "original",
    ]);
    let said = text(&output.stderr);
    assert!(said.contains("avg worker transfer:"), "{said}");
    assert!(!said.contains("Request Latencies"), "{said}");
}

#[test]
fn more_message_threads_than_cpus() {
    let output = run(&[
        "schbench", "-r", "1", "-m", "300", "-M", "auto", "-t", "1", "-n", "0", "-s", "20000",
        "--format", "run",
    ]);
    let said = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    // Nobody tests this on more CPUs than that.
    assert!(said.contains("wrapped round"), "{said}");
}

#[test]
fn bad_options_are_one_line() {
    for (arguments, words) in [
        (&["-r", "0"][..], "-r"),
        (&["-m", "0"], "-m"),
        (&["-t", "x"], "-t"),
        (&["-M", "1-0"], "backwards"),
        (&["-W", ""], "--worker-cpus"),
        (&["-H", "3"], "power of two"),
        (&["-I"], "-H"),
        (&["-H", "auto", "-I"], "-I"),
        (&["-A", "101"], "--auto-rps"),
        (&["-R", "1", "-m", "2"], "-R"),
        (&["-p", "1", "-A", "5", "--format", "run"], "-p"),
        (&["--pacing", "open"], "--pacing"),
        (&["--split", "101"], "--split"),
        (&["--threads", "2", "-t", "2"], "--threads"),
        (&["--threads", "2", "--format", "run"], "--threads"),
        (&["--json", "x", "-j", "y"], "-j"),
        (&["--pin", "none"], "--pin"),
        (&["-A", "30"], "--format run"),
        (&["-R", "400", "--time", "500ms"], "whole seconds"),
        (&["-R", "400", "--quick"], "whole seconds"),
        (&["--buckets", "2"], "--on phash"),
        (&["--replace-every", "1ms"], "--on phash"),
        (&["--on", "phash", "-H", "2"], "--buckets"),
        (&["--on", "phash", "--format", "run"], "--on"),
        (&["--on", "phash", "--buckets", "3"], "power of two"),
        (&["--format", "run", "-H", "0,2"], "-H"),
        (&["--format", "original", "--runs", "2"], "--format"),
        (&["--auto-rule", "x"], "--auto-rule"),
        (&["-w", "30", "--format", "run"], "-w"),
    ] {
        let said = complaint(&run(&[&["schbench"], arguments].concat()), 2);
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn limits_are_named_before_anything_starts() {
    for arguments in [
        &["-m", "65536", "-t", "65536"][..],
        &["-t", "65536", "-F", "4194304"],
    ] {
        let begin = Instant::now();
        let said = complaint(&run(&[&["schbench"], arguments].concat()), 3);
        assert!(said.contains("allows") || said.contains("MiB"), "{said}");
        assert!(begin.elapsed() < Duration::from_secs(20));
    }
    let program = hpbench(&[]).get_program().to_owned();
    let output = Command::new("sh")
        .args([
            "-c",
            "ulimit -v 500000; exec \"$0\" schbench -t 3000 -n 0 -r 1",
        ])
        .arg(program)
        .output()
        .unwrap();
    assert!(complaint(&output, 3).contains("ulimit -v"));
    let said = complaint(&run(&["schbench", "-W", "9999"]), 3);
    assert!(said.contains("-W") && said.contains("9999"), "{said}");
}

/// Whatever this kernel has of it: an answer in words, never silence.
#[test]
fn the_futex_hash_is_set_or_refused() {
    let output = run(&short(&["-H", "64", "--format", "run"]));
    let has = output.status.success();
    if has {
        assert!(text(&output.stdout).contains("private, 64 buckets"));
    } else {
        assert!(complaint(&output, 3).contains("-H 64"));
    }
    let output = run(&short(&["-H", "64", "-I", "--format", "original"]));
    let said = text(&output.stderr);
    match output.status.code() {
        Some(0) => assert!(said.contains("Futex HBs: 64 immutable: 1"), "{said}"),
        Some(2) => assert!(has && complaint(&output, 2).contains("-I: this kernel has lost")),
        _ => assert!(!has && complaint(&output, 3).contains("-H 64")),
    }
}

/// Both workloads: records of all hashes that there are, what others published beside them.
#[test]
fn hashes_are_variants() {
    let line = [
        "schbench", "-L", "-n", "0", "-s", "0", "-t", "2", "--runs", "1",
    ];
    let times = ["--time", "60ms", "--warmup", "10ms", "--json", "-"];
    let of = |more: &[&str]| {
        let output = run(&[&line[..], &times, more].concat());
        let said = text(&output.stderr);
        assert!(output.status.success(), "{said}");
        (common::records(&text(&output.stdout)), said)
    };
    let names = |records: &[serde_json::Value]| {
        let names = records.iter().map(|json| json["variant"].as_str());
        names
            .map(|name| name.unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let (records, said) = of(&[]);
    let mut all = names(&records);
    all.sort_unstable();
    assert_eq!(all, ["auto", "global", "immutable", "private"]);
    assert!(said.contains("theirs: refcounted 1024"), "{said}");
    let global = records.iter().find(|json| json["variant"] == "global");
    let global = global.unwrap();
    assert!(global["ops"].as_u64() > Some(0));
    assert_eq!(global["params"]["options"], "-n 0 -s 0 -L");
    assert_eq!(global["params"]["workers"], 2);
    assert!(
        global["params"]["wakeup_p50_us"].as_u64() <= global["params"]["wakeup_p99_us"].as_u64()
    );
    let (records, _) = of(&[
        "--on",
        "phash",
        "--buckets",
        "2,64",
        "--variants",
        "hp,refcount",
    ]);
    assert_eq!(records.len(), 4);
    for record in &records {
        assert_eq!(record["status"], "ok", "{record}");
        assert_eq!(record["workload"], "schbench-phash");
    }
    let (records, _) = of(&[
        "--on",
        "phash",
        "--replace-every",
        "1ms",
        "--variants",
        "hp,global",
    ]);
    let status = |name| {
        let found = records.iter().find(|json| json["variant"] == name);
        found.unwrap()["status"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        (status("hp").as_str(), status("global").as_str()),
        ("ok", "skipped")
    );
}

#[test]
fn control_c_shows_what_there_is() {
    let binary = hpbench(&[]).get_program().to_owned();
    let child = Command::new(binary)
        .args([
            "schbench", "-r", "600", "-t", "2", "-i", "1", "--format", "run",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_secs(3));
    // SAFETY: a child that nobody has waited for.
    unsafe {
        libc::kill(child.id() as i32, libc::SIGINT);
    }
    let begin = Instant::now();
    let output = child.wait_with_output().unwrap();
    assert!(begin.elapsed() < Duration::from_secs(30));
    assert_eq!(output.status.code(), Some(130));
    let said = text(&output.stdout);
    assert!(said.contains("interrupted: over measured time"), "{said}");
    assert!(text(&output.stderr).contains("hpbench: interrupted after"));
}

#[test]
fn a_plan_starts_nothing() {
    let output = run(&[
        "schbench",
        "--dry-run",
        "-m",
        "2",
        "-t",
        "3",
        "-n",
        "0",
        "--format",
        "run",
    ]);
    assert!(
        text(&output.stdout).contains("9 threads"),
        "{}",
        text(&output.stdout)
    );
}
