//! Floor 3, bench-suite. `hpbench` on a machine of two sockets with SMT, as `ci/guest.sh` boots one; `HP_GUEST` says
//! which, as `SOCKETS:CORES:THREADS`.
#![cfg(target_os = "linux")]

mod common;

use common::{complaint, hpbench, records, run, text};
use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

/// Sockets, cores of each, threads of each core.
fn expected() -> (usize, usize, usize) {
    let text = std::env::var("HP_GUEST").expect("HP_GUEST=SOCKETS:CORES:THREADS");
    let numbers: Vec<usize> = text
        .split(':')
        .map(|n| n.parse().expect("a number"))
        .collect();
    let [sockets, cores, threads] = numbers[..] else {
        panic!("HP_GUEST={text}")
    };
    (sockets, cores, threads)
}

/// Where a CPU is, by the kernel's own files.
fn place(cpu: usize) -> (usize, usize) {
    let number = |name: &str| -> usize {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/{name}");
        let text = fs::read_to_string(path).expect("sysfs");
        text.trim().parse().expect("a number")
    };
    (number("physical_package_id"), number("core_id"))
}

/// The order in which a policy places threads: each entry a set of CPUs.
fn order(pin: &str) -> Vec<Vec<usize>> {
    let output = run(&[
        "read",
        "--quick",
        "--variants",
        "hp",
        "--pin",
        pin,
        "--dry-run",
    ]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let plan = text(&output.stdout);
    let line = plan
        .lines()
        .find_map(|l| l.strip_prefix("threads in turn on CPUs: "));
    let line = line.unwrap_or_else(|| panic!("no order in {plan}"));
    let cpus = |words: &str| -> Vec<usize> {
        let parts = words.split(',').flat_map(|part| {
            let (from, to) = part.split_once('-').unwrap_or((part, part));
            from.parse::<usize>().expect("a CPU")..=to.parse::<usize>().expect("a CPU")
        });
        parts.collect()
    };
    line.split_whitespace().map(cpus).collect()
}

fn distinct<T: Ord>(items: impl Iterator<Item = T>) -> usize {
    items.collect::<BTreeSet<_>>().len()
}

#[test]
#[ignore = "for the guest of ci/guest.sh"]
fn the_topology_is_read() {
    let (sockets, cores, threads) = expected();
    let output = run(&["machine", "--json", "-"]);
    let sheet: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a sheet");
    let cpu = &sheet["cpu"];
    for (name, number) in [
        ("sockets", sockets),
        ("cores", sockets * cores),
        ("cores_per_socket", cores),
        ("threads_per_core", threads),
        ("cpus_online", sockets * cores * threads),
        ("cpus_allowed", sockets * cores * threads),
    ] {
        assert_eq!(cpu[name], number, "{name}: {cpu}");
    }
    let output = run(&["capabilities"]);
    let said = text(&output.stdout);
    let line = |name: &str| {
        let line = said.lines().find(|line| line.starts_with(name));
        line.unwrap_or_else(|| panic!("no {name} in {said}"))[name.len()..]
            .trim()
            .to_owned()
    };
    assert_eq!(line("rung"), "rseq");
    assert_eq!(line("line index"), "cpu_id");
    assert_eq!(line("packages"), sockets.to_string());
    assert_eq!(
        line("possible CPUs"),
        (sockets * cores * threads).to_string()
    );
}

#[test]
#[ignore = "for the guest of ci/guest.sh"]
fn each_policy_places_threads_as_it_says() {
    let (sockets, cores, threads) = expected();
    let (all_cores, all) = (sockets * cores, sockets * cores * threads);
    let flat = |pin: &str| -> Vec<usize> {
        let order = order(pin);
        assert!(order.iter().all(|cpus| cpus.len() == 1), "{pin}: {order:?}");
        let order: Vec<_> = order.concat();
        assert_eq!(distinct(order.iter()), all, "{pin}: each CPU once");
        assert_eq!(order.len(), all, "{pin}");
        order
    };
    let order_of = flat("core-first");
    let first: Vec<_> = order_of[..all_cores]
        .iter()
        .map(|&cpu| place(cpu))
        .collect();
    assert_eq!(
        distinct(first.iter()),
        all_cores,
        "a core of its own for each: {order_of:?}"
    );
    assert!(
        first[..cores].iter().all(|place| place.0 == first[0].0),
        "one socket first: {order_of:?}"
    );
    let order_of = flat("spread");
    for pair in order_of[..all_cores].windows(2) {
        assert_ne!(
            place(pair[0]).0,
            place(pair[1]).0,
            "another socket each time: {order_of:?}"
        );
    }
    assert_eq!(flat("pu"), (0..all).collect::<Vec<_>>());
    let pairs = order("smt-pair");
    for (n, cpus) in pairs.iter().enumerate() {
        assert_eq!(cpus.len(), threads, "{pairs:?}");
        assert_eq!(
            distinct(cpus.iter().map(|&cpu| place(cpu))),
            1,
            "one core: {pairs:?}"
        );
        // Threads take turns: as many entries in a row as the core has CPUs, or one.
        assert!(
            n == 0 || pairs.len() == all_cores || pairs.len() == all,
            "{pairs:?}"
        );
    }
}

/// What `--dry-run` says is what threads are bound to.
#[test]
#[ignore = "for the guest of ci/guest.sh"]
fn threads_are_bound_as_planned() {
    for pin in ["core-first", "spread"] {
        let mut wanted: Vec<String> = order(pin)[..4]
            .iter()
            .map(|cpus| cpus[0].to_string())
            .collect();
        wanted.sort();
        let mut parent = Command::new(env!("CARGO_BIN_EXE_hpbench"))
            .args([
                "read",
                "--variants",
                "hp",
                "--threads",
                "4",
                "--runs",
                "1",
                "--time",
                "20s",
                "--pin",
                pin,
            ])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("starts");
        let bound = || {
            let children = format!("/proc/{0}/task/{0}/children", parent.id());
            let list = fs::read_to_string(children).unwrap_or_default();
            let child = list.split_whitespace().next()?.to_owned();
            let mut cpus: Vec<String> = fs::read_dir(format!("/proc/{child}/task"))
                .ok()?
                .filter_map(|task| {
                    let status = fs::read_to_string(task.ok()?.path().join("status")).ok()?;
                    let line = status
                        .lines()
                        .find(|line| line.starts_with("Cpus_allowed_list:"))?;
                    let cpus = line.split_whitespace().nth(1)?.to_owned();
                    cpus.parse::<usize>().is_ok().then_some(cpus)
                })
                .collect();
            cpus.sort();
            Some(cpus)
        };
        let mut found = None;
        for _ in 0..150 {
            thread::sleep(Duration::from_millis(100));
            found = bound();
            if found.as_ref() == Some(&wanted) {
                break;
            }
        }
        parent.kill().expect("ends");
        parent.wait().expect("ends");
        assert_eq!(found, Some(wanted), "{pin}");
    }
}

/// Sweeps up to all CPUs; passes over the lines of all of them.
#[test]
#[ignore = "for the guest of ci/guest.sh"]
fn a_sweep_over_all_cpus() {
    let (sockets, cores, threads) = expected();
    let all = (sockets * cores * threads).to_string();
    for workload in ["read", "scan"] {
        let arguments = [
            workload,
            "--threads",
            &format!("1,{all}"),
            "--variants",
            "hp,haphazard",
            "--runs",
            "1",
            "--time",
            "300ms",
            "--warmup",
            "50ms",
            "--json",
            "-",
        ];
        let output = run(&arguments);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let records = records(&text(&output.stdout));
        let records: Vec<_> = records
            .iter()
            .filter(|r| r["workload"] == workload)
            .collect();
        assert_eq!(records.len(), 4);
        for record in records {
            assert_eq!(record["status"], "ok", "{record}");
            assert_eq!(
                record["params"]["dead_reads"].as_u64().unwrap_or(0),
                0,
                "{record}"
            );
        }
    }
}

/// The kernel before 6.17 has no futex hash of a process's own: one line, exit 3.
#[test]
#[ignore = "for the guest of ci/guest.sh"]
fn no_private_futex_hash_is_told() {
    let output = hpbench(&["futex-hash", "-b", "4", "-t", "1", "-r", "1"])
        .output()
        .expect("runs");
    let line = complaint(&output, 3);
    assert!(line.contains("no futex hash of a process's own"), "{line}");
    let output = run(&["futex-hash", "-t", "2", "--quick", "--time", "200ms"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
}
