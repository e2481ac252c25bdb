//! Floor 3, bench-suite. `hpbench calibrate` from outside. Asserts no speed: only what is in the file, and that one
//! CPU is enough.

mod common;

use common::{complaint, run, text};
use serde_json::Value;
use std::fs;

fn calibrate(arguments: &[&str]) -> Value {
    let mut all = vec!["calibrate", "--quick", "--json", "-"];
    all.extend(arguments);
    let output = run(&all);
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_str(&text(&output.stdout)).unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn the_file_is_complete_and_the_model_reads_it() {
    let calibration = calibrate(&[]);
    assert_eq!(calibration["kind"], "hpbench calibration");
    assert_eq!(calibration["quick"], true);
    assert!(calibration["machine"]["cpu_model"].is_string());
    for cost in ["rmw_ns", "fence_ns", "syscall_ns"] {
        let (low, median) = (&calibration[cost]["low"], &calibration[cost]["median"]);
        assert!(
            low.as_f64().unwrap() > 0.0 && median.as_f64() >= low.as_f64(),
            "{cost}"
        );
    }
    let cpus = calibration["places"]["cpus"].as_array().unwrap().len();
    let pairs = calibration["pairs"].as_array().unwrap();
    if cpus <= 48 {
        assert_eq!(pairs.len(), cpus * (cpus - 1) / 2);
    }
    // On a machine that is too busy for more, at least one thread was alone.
    assert_eq!(calibration["contended"][0]["threads"], 1);
    assert!(!calibration["pipes"].as_array().unwrap().is_empty());
    assert!(!calibration["missing"].as_array().unwrap().is_empty());

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("machine.json");
    fs::write(&path, calibration.to_string()).unwrap();
    let table = run(&[
        "model",
        "--machine",
        path.to_str().unwrap(),
        "--bootstrap",
        "5",
    ]);
    let table = (text(&table.stdout), text(&table.stderr));
    assert!(
        table.0.contains("PREDICTION") && table.0.contains("calibrate --quick"),
        "{table:?}"
    );
    assert!(table.0.contains("another machine"), "{table:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn one_cpu_is_enough_and_says_what_is_missing() {
    use std::os::unix::process::CommandExt;
    let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin("hpbench"));
    command.args(["calibrate", "--quick"]);
    // SAFETY: `sched_getaffinity` and `sched_setaffinity` are system calls and may be used between fork and exec; the
    // mask is on the stack.
    unsafe {
        command.pre_exec(|| {
            let mut mask: libc::cpu_set_t = std::mem::zeroed();
            libc::sched_getaffinity(0, size_of_val(&mask), &mut mask);
            let first = (0..libc::CPU_SETSIZE as usize).find(|&cpu| libc::CPU_ISSET(cpu, &mask));
            libc::CPU_ZERO(&mut mask);
            libc::CPU_SET(first.unwrap_or(0), &mut mask);
            libc::sched_setaffinity(0, size_of_val(&mask), &mask);
            Ok(())
        });
    }
    let output = command.output().unwrap();
    let table = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(
        table.contains("one CPU is allowed") && table.contains("pipe round trip, one CPU"),
        "{table}"
    );
    assert!(!table.contains("core to core, one way"), "{table}");
}

#[test]
fn bad_input_is_one_line() {
    for option in [
        "--threads=2",
        "--variants=hp",
        "--time=1s",
        "--runs=2",
        "--csv=-",
    ] {
        let line = complaint(&run(&["calibrate", option]), 2);
        assert!(line.contains(option.split('=').next().unwrap()), "{line}");
    }
    let line = complaint(&run(&["calibrate", "--json", "/no/such/place/x"]), 1);
    assert!(line.contains("/no/such/place/x"), "{line}");
}
