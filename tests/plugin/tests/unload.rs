//! A shared library that uses the crates is loaded, used and unloaded.
//!
//! Bug log 93.
#![cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]

use std::path::PathBuf;
use std::process::Command;

const RUNGS: [&str; 3] = ["fence", "membarrier", "rseq"];

/// Beside this test's own program: cargo built it as the package's library.
fn library() -> PathBuf {
    let mut path = std::env::current_exe().expect("a path");
    path.set_file_name("libhp_plugin.so");
    assert!(path.exists(), "{} is not there", path.display());
    path
}

struct Outcome {
    rung: usize,
    work: u32,
    reads: u32,
    mapped: bool,
}

fn host(order: &str, rung: &str) -> Outcome {
    let output = Command::new(env!("CARGO_BIN_EXE_plugin-host"))
        .arg(library())
        .arg(order)
        .env("HP_BARRIER", rung)
        .output()
        .expect("the host starts");
    let text = format!(
        "{order}, {rung}, {}:\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.status.success(), "{text}");
    let number = |name: &str| -> u32 {
        text.split_ascii_whitespace()
            .find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
            .unwrap_or_else(|| panic!("no {name} in {text}"))
            .parse()
            .expect("a number")
    };
    assert_eq!(number("left"), 0, "{text}");
    Outcome {
        rung: number("rung") as usize,
        work: number("work"),
        reads: number("reads"),
        mapped: number("mapped") == 1,
    }
}

/// Three loads, three threads, 300 rounds each; a library that stayed counts on.
const WORK: u32 = 900;

/// Bug log 93: its threads ended before, while the crates' own workers were
/// there; they keep the library.
#[test]
fn report_93_unloaded_after_its_threads() {
    for rung in RUNGS {
        let outcome = host("before", rung);
        assert!(outcome.work == WORK || outcome.work == 3 * WORK);
    }
}

/// Bug log 93: nothing is left of it, so it goes; on the rung with sections it
/// stays, for the kernel may still look at their descriptors.
#[test]
fn report_93_unloaded_when_all_is_quiet() {
    for rung in RUNGS {
        let outcome = host("idle", rung);
        let stays = RUNGS[outcome.rung] == "rseq";
        assert_eq!(outcome.mapped, stays, "{rung}");
        assert_eq!(outcome.work, if stays { 3 * WORK } else { WORK }, "{rung}");
    }
}

/// Bug log 93: its threads end after it; their thread-locals keep it.
#[test]
fn report_93_unloaded_before_its_threads() {
    for rung in RUNGS {
        let outcome = host("after", rung);
        assert!(outcome.mapped, "{rung}: its thread-locals have code in it");
        assert_eq!(outcome.work, 3 * WORK);
    }
}

/// Bug log 93: a thread that only read is moved aside after the unloading, with
/// the descriptor of its last section in its registered area. (Without the pin
/// the kernel ends the process by SIGSEGV.)
#[test]
fn report_93_a_reader_that_goes_on() {
    for rung in RUNGS {
        let outcome = host("reader", rung);
        assert_eq!(outcome.reads, 3000, "{rung}");
    }
}
