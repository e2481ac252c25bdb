//! Floor 3, bench-suite. `hpbench futex-hash` and `hpbench phash` from outside; bug reports of groups 12 and 18 under
//! their numbers.
#![cfg(target_os = "linux")]

mod common;

use common::{complaint, measure, measure_for, records, run, text};
use serde_json::Value;
use std::process::Output;

/// Digits and addresses are not the subject.
fn without_numbers(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if !c.is_ascii_digit() {
            out.push(c);
            continue;
        }
        let mut last = c;
        while let Some(&next) = chars.peek() {
            let inside = next.is_ascii_hexdigit() || next == 'x';
            let fraction = next == '.' && last.is_ascii_digit();
            if !inside && !fraction {
                break;
            }
            last = next;
            chars.next();
        }
        out.push('N');
    }
    out
}

/// Whether this kernel lets a process have a hash of its own.
fn has_private_hash() -> bool {
    // SAFETY: numbers only.
    unsafe { libc::prctl(78, 2, 0, 0, 0) >= 0 }
}

#[test]
fn the_originals_output() {
    let output = run(&[
        "futex-hash",
        "-t",
        "2",
        "-r",
        "1",
        "-f",
        "8",
        "--format",
        "original",
    ]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let all = text(&output.stdout);
    let (body, hash) = match all.find("Futex hashing") {
        Some(at) => all.split_at(at),
        None => (all.as_str(), ""),
    };
    insta::assert_snapshot!(without_numbers(body), @r"
    # Running 'futex/hash' benchmark:
    Run summary [PID N]: N threads, each operating on N [private] futexes for N secs.

    [thread  N] futexes: N ... N [ N ops/sec ]
    [thread  N] futexes: N ... N [ N ops/sec ]

    Averaged N operations/sec (+- N%), total secs = N
    ");
    assert_eq!(hash.is_empty(), !has_private_hash(), "{all}");
}

#[test]
fn silent_and_shared() {
    let output = run(&[
        "futex-hash",
        "-t",
        "1",
        "-r",
        "1",
        "-f",
        "1",
        "-s",
        "-S",
        "--format",
        "original",
    ]);
    let all = text(&output.stdout);
    assert!(
        !all.contains("[thread") && all.contains("1 [shared] futexes for 1 secs"),
        "{all}"
    );
}

/// Records of one short run of each hash.
fn short(more: &[&str]) -> (Vec<Value>, String) {
    let line = [
        "futex-hash",
        "--time",
        "60ms",
        "--settle",
        "1ms",
        "--runs",
        "1",
        "--json",
        "-",
    ];
    let output = run(&[&line[..], more].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    (records(&text(&output.stdout)), text(&output.stderr))
}

/// One CPU: all threads on it, one thread's ± is zero.
#[test]
fn one_thread_and_more_threads_than_cpus() {
    for threads in ["1", "5"] {
        let (lines, _) = short(&["-t", threads, "--variants", "global"]);
        let params = &lines[0]["params"];
        assert_eq!(
            params["placement"].as_array().unwrap().len().to_string(),
            threads
        );
        let error = params["sem_threads_percent"].as_f64().unwrap();
        assert_eq!(error == 0.0, threads == "1", "{error}");
        // The total is that of all threads; per thread is their mean.
        let total = lines[0]["ops_per_s"].as_f64().unwrap();
        let per_thread = params["per_thread"].as_f64().unwrap();
        let sum = per_thread * threads.parse::<f64>().unwrap();
        assert!((total / sum - 1.0).abs() < 1e-6, "{total} {sum}");
    }
}

#[test]
fn sweeps_set_what_they_say() {
    if !has_private_hash() {
        return;
    }
    let (lines, table) = short(&["-t", "1", "-b", "2..8:x4,0,-1"]);
    let mut seen: Vec<(String, u64, u64)> = lines
        .iter()
        .map(|line| {
            let number = |key: &str| line["params"][key].as_u64().unwrap();
            let variant = line["variant"].as_str().unwrap().to_owned();
            (variant, number("buckets"), number("buckets_in_use"))
        })
        .collect();
    seen.sort();
    assert_eq!(seen.len(), 6, "{seen:?}");
    for (variant, asked, in_use) in &seen {
        match variant.as_str() {
            "private" => assert_eq!(asked, in_use),
            "global" => assert_eq!(*in_use, 0),
            _ => assert!(*in_use >= 16, "{seen:?}"),
        }
    }
    for words in [
        "theirs",
        "spread",
        "+- threads",
        "not measured here",
        "per thread",
    ] {
        assert!(table.contains(words), "{words}: {table}");
    }
    // Published figures beside the sizes that were asked for.
    let over = &table[table.find("over buckets").expect("a sweep")..];
    let row = over
        .lines()
        .find(|line| line.trim_start().starts_with("8 "))
        .unwrap();
    assert!(row.contains("44.7 k"), "{row}");
}

#[test]
fn a_churning_size_is_changed() {
    if !has_private_hash() {
        return;
    }
    let long = [
        "--time",
        "300ms",
        "--churn",
        "1ms",
        "--variants",
        "private,global",
    ];
    let line = [
        "futex-hash",
        "-t",
        "2",
        "--runs",
        "1",
        "--json",
        "-",
        "-b",
        "4",
    ];
    let output = run(&[&line[..], &long].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    for line in records(&text(&output.stdout)) {
        if line["variant"] == "global" {
            assert_eq!(line["status"], "skipped", "{line}");
            continue;
        }
        let number = |key: &str| line["params"][key].as_u64().unwrap();
        assert!(number("changes") > 1, "{line}");
        assert!(matches!(number("buckets_in_use"), 4 | 8), "{line}");
        assert!(number("change_p50_ns") <= number("change_max_ns"));
    }
}

/// What the engine gives all workloads: resumed runs are not run again, a page is written.
#[test]
fn records_are_resumed_and_shown() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (kept, page) = (file("kept.jsonl"), file("page.html"));
    for _ in 0..2 {
        let (lines, _) = short(&["-t", "1", "-S", "--resume", &kept, "--report", &page]);
        assert_eq!(lines.len(), 1);
    }
    let lines = std::fs::read_to_string(&kept).unwrap();
    assert_eq!(records(&lines).len(), 1, "{lines}");
    let page = std::fs::read_to_string(&page).unwrap();
    assert!(page.contains("perf bench futex hash"), "no section");
}

#[test]
fn bad_input_is_one_line() {
    for (arguments, word) in [
        (vec!["-t", "0"], "-t"),
        (vec!["-t", "x"], "-t"),
        (vec!["-b", "3"], "3 buckets"),
        (vec!["-b", "1"], "power of two"),
        (vec!["-b", "2..8"], "power of two"),
        (vec!["-b", ""], "-b"),
        (vec!["-b", "64", "-S"], "-S"),
        (vec!["-r", "0"], "-r"),
        (vec!["-f", "0"], "-f"),
        (vec!["--churn", "5ms", "-b", "0"], "--churn"),
        (vec!["--churn", "5"], "unit"),
        (vec!["--settle", "x"], "--settle"),
        (vec!["--threads", "2", "-t", "2"], "--threads"),
        (vec!["--time", "1s", "-r", "1"], "--time"),
        (vec!["--warmup", "1s", "--settle", "1s"], "--settle"),
        (vec!["--variants", "global", "-S"], "-S"),
        (vec!["--variants", "private", "-b", "8,0"], "-b 0"),
        (vec!["--variants", "global", "-b", "-1"], "-b -1"),
        (vec!["--pin", "none"], "--pin"),
        (vec!["--window", "20ms"], "--window"),
        (vec!["--format", "original", "--runs", "2"], "--runs"),
        (vec!["--format", "original", "-b", "2,4"], "-b"),
    ] {
        let all: Vec<&str> = std::iter::once("futex-hash").chain(arguments).collect();
        let line = complaint(&run(&all), 2);
        assert!(line.contains(word), "{line}");
    }
    for (arguments, word) in [
        (vec!["--buckets", "3"], "power of two"),
        (vec!["--buckets", "0"], "power of two"),
        (vec!["--futexes", "0"], "at least 1"),
        (vec!["--op-cost", "much"], "--op-cost"),
        (vec!["--op-cost", "2s"], "longer"),
        (vec!["--replace-every", "5"], "unit"),
        (vec!["--variants", "mutex"], "mutex"),
    ] {
        let all: Vec<&str> = std::iter::once("phash").chain(arguments).collect();
        let line = complaint(&run(&all), 2);
        assert!(line.contains(word), "{line}");
    }
}

/// Where the kernel has lost it, it is not ignored.
#[test]
fn immutable_is_refused_where_there_is_none() {
    // SAFETY: numbers only.
    let knows = unsafe { libc::prctl(78, 3, 0, 0, 0) >= 0 };
    if !knows {
        let line = complaint(&run(&["futex-hash", "-I", "-b", "4"]), 2);
        assert!(line.contains("-I") && line.contains("immutable"), "{line}");
    }
}

#[test]
fn a_dry_run_says_how_long() {
    let output = run(&["futex-hash", "-b", "2..16:x2", "-r", "3", "--dry-run"]);
    let said = text(&output.stdout);
    assert!(
        said.starts_with("12 runs: 4 points") && said.contains("3s after 200ms"),
        "{said}"
    );
    let output = run(&["futex-hash", "-r", "3", "--format", "original", "--dry-run"]);
    assert_eq!(text(&output.stdout), "1 run of 3.2 s\n");
}

/// Runs the program with `prctl(PR_FUTEX_HASH)` answered by `errno`, as a sandbox or an older kernel does.
fn filtered(errno: i32, arguments: &[&str]) -> Output {
    use std::os::unix::process::CommandExt;
    const RET: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let program = [
        step(LOAD, 0, 0, 0), // the call's number
        step(EQUAL, 0, 3, libc::SYS_prctl as u32),
        step(LOAD, 0, 0, 16), // its first argument
        step(EQUAL, 0, 1, 78),
        step(RET, 0, 0, libc::SECCOMP_RET_ERRNO | errno as u32),
        step(RET, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin!("hpbench"));
    command.args(arguments);
    // SAFETY: system calls only, on memory that the closure owns.
    unsafe {
        command.pre_exec(move || {
            let filter = libc::sock_fprog {
                len: program.len() as u16,
                filter: program.as_ptr().cast_mut(),
            };
            let done = libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && libc::prctl(
                    libc::PR_SET_SECCOMP,
                    libc::SECCOMP_MODE_FILTER,
                    &raw const filter,
                ) == 0;
            if done {
                Ok(())
            } else {
                Err(std::io::Error::last_os_error())
            }
        });
    }
    command.output().expect("the program starts")
}

/// A kernel without the call (6.1: EINVAL), and sandboxes (ENOSYS, EPERM): what needs it is refused in one line, what
/// does not need it runs and claims nothing.
#[test]
fn report_80_a_kernel_or_sandbox_without_the_hash_of_a_process() {
    for errno in [libc::EINVAL, libc::ENOSYS, libc::EPERM] {
        let line = complaint(&filtered(errno, &["futex-hash", "-r", "1", "-b", "16"]), 3);
        assert!(
            line.contains("-b") && line.contains("PR_FUTEX_HASH"),
            "{line}"
        );
        let line = complaint(
            &filtered(errno, &["futex-hash", "-r", "1", "--churn", "1ms"]),
            3,
        );
        assert!(line.contains("--churn"), "{line}");
        let line = complaint(
            &filtered(errno, &["futex-hash", "-r", "1", "-I", "-b", "4"]),
            2,
        );
        assert!(line.contains("-I"), "{line}");
        let output = filtered(
            errno,
            &["futex-hash", "-t", "1", "-r", "1", "--format", "original"],
        );
        let all = text(&output.stdout);
        assert!(output.status.success() && all.contains("Averaged"), "{all}");
        assert!(!all.contains("Futex hashing"), "{all}");
    }
}

/// Threads begin together, and how far apart is in the record.
#[test]
fn report_102_a_start_gate() {
    for record in measure(&["phash", "--threads", "2", "--variants", "hp,refcount"]) {
        let skew = record["params"]["start_skew_s"].as_f64().unwrap();
        assert!((0.0..1.0).contains(&skew), "{record}");
    }
}

/// The loop does what it says: no operation is faster than its atomic additions, and time between two shows.
#[test]
fn report_104_the_loop_is_not_optimised_away() {
    let long = ["--time", "100ms", "--warmup", "10ms", "--runs", "3"];
    let ns = |cost| {
        let records = measure_for(
            &long,
            &[
                "phash",
                "--threads",
                "1",
                "--variants",
                "global",
                "--op-cost",
                cost,
            ],
        );
        records
            .iter()
            .map(|record| record["ns_per_op"].as_f64().unwrap())
            .fold(f64::INFINITY, f64::min)
    };
    let (bare, spun) = (ns("none"), ns("20us"));
    assert!(bare > 1.0, "{bare}");
    assert!(spun > bare + 10_000.0, "{bare} {spun}");
    assert!(ns("syscall") > bare);
}

/// Threads are where the original puts them: on the online CPUs in turn, whatever mask was inherited.
#[test]
fn report_105_placement_is_read_back() {
    let (lines, _) = short(&["-t", "4", "--variants", "global"]);
    let cpus: Vec<u64> = lines[0]["params"]["placement"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cpu| cpu.as_u64().unwrap())
        .collect();
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap();
    let first: u64 = online
        .trim()
        .split(['-', ','])
        .next()
        .unwrap()
        .parse()
        .unwrap();
    assert_eq!(cpus[0], first);
    let mut different = cpus.clone();
    different.sort_unstable();
    different.dedup();
    let there = std::thread::available_parallelism().unwrap().get().min(4);
    assert!(different.len() >= there, "{cpus:?}");
}

/// Compared variants have the same parameters, but for what they are.
#[test]
fn report_110_variants_are_compared_with_equal_parameters() {
    let all = measure(&[
        "phash",
        "--threads",
        "1",
        "--buckets",
        "64",
        "--futexes",
        "128",
    ]);
    assert_eq!(all.len(), 11);
    for record in &all {
        let params = &record["params"];
        assert_eq!(record["status"], "ok", "{record}");
        assert_eq!(
            (&params["buckets"], &params["futexes"]),
            (&64.into(), &128.into())
        );
        assert_eq!(params["op_cost"], "none");
        let (used, shared) = (
            params["buckets_used"].as_u64().unwrap(),
            params["bucket_collisions"].as_u64().unwrap(),
        );
        assert_eq!(used + shared, 128);
        let per_thread = params["per_thread"].as_f64().unwrap();
        let total = record["ops_per_s"].as_f64().unwrap();
        let same = (per_thread - total).abs() <= 0.05 * total;
        assert!(same, "one thread: {per_thread} {total}");
    }
}

/// A replacement that is asked for is completed or counted as pending, and says how long it took.
#[test]
fn replacements_are_accounted_for() {
    let long = ["--time", "150ms", "--warmup", "10ms", "--runs", "1"];
    let all = measure_for(
        &long,
        &["phash", "--threads", "2", "--replace-every", "1ms"],
    );
    assert_eq!(all.len(), 11);
    for record in &all {
        let name = record["variant"].as_str().unwrap();
        if ["global", "immutable"].contains(&name) {
            assert_eq!(record["status"], "skipped", "{record}");
            continue;
        }
        assert_eq!(record["status"], "ok", "{record}");
        let number = |key: &str| {
            record["params"][key]
                .as_u64()
                .unwrap_or_else(|| panic!("{key}: {record}"))
        };
        let (asked, completed) = (
            number("replacements_asked"),
            number("replacements_completed"),
        );
        assert!(asked > 0);
        assert_eq!(asked, completed + number("replacements_pending"));
        assert!(number("tables_freed") <= number("tables_made"));
        if completed > 0 {
            assert!(number("replace_p50_ns") <= number("replace_max_ns"));
        }
        if ["hp", "rcu", "split-count", "crossbeam-epoch", "seize"].contains(&name) {
            assert_eq!(number("replacements_pending"), 0, "{record}");
        }
    }
}
