//! `rcu-lite` where the machine, the kernel or a sandbox takes something away.
//!
//! Bug log groups 12 and 13 and parts of 2 and 15, by child processes.
#![cfg(target_os = "linux")]

use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use tests::child::{Outcome, run};

const RUNGS: [&str; 3] = ["rseq", "membarrier", "fence"];

/// Keeps glibc from registering threads, so that it makes no `rseq(2)` either.
const NO_RSEQ: (&str, &str) = ("GLIBC_TUNABLES", "glibc.pthread.rseq=0");

fn child(arguments: &[&str], environment: &[(&str, &str)]) -> Outcome {
    run(
        Command::new(env!("CARGO_BIN_EXE_rcu-child")).args(arguments),
        environment,
    )
}

fn rank(rung: &str) -> usize {
    RUNGS
        .iter()
        .position(|name| *name == rung)
        .unwrap_or_else(|| panic!("{rung} is no rung"))
}

fn best() -> String {
    child(&["smoke", "rounds=20"], &[])
        .expect_ok()
        .field("rung")
        .to_string()
}

/// The rungs with a barrier of the kernel's that this machine has.
fn rungs_with_a_barrier() -> Vec<&'static str> {
    let best = rank(&best());
    let rungs: Vec<_> = RUNGS[..2]
        .iter()
        .copied()
        .filter(|rung| rank(rung) >= best)
        .collect();
    if rungs.len() < 2 {
        eprintln!("SKIPPED in part: this machine's best rung is {best}");
    }
    rungs
}

fn check_smoke(outcome: Outcome) -> Outcome {
    let outcome = outcome.expect_ok();
    assert_eq!(
        outcome.number("replaced"),
        outcome.number("dropped"),
        "{outcome}"
    );
    assert_eq!(outcome.number("pending"), 0, "{outcome}");
    assert_eq!(outcome.number("barriers_lost"), 0, "{outcome}");
    outcome
}

/// Every rung, forced.
#[test]
fn each_rung_runs_the_smoke_suite() {
    let best = rank(&best());
    for rung in RUNGS {
        let outcome = check_smoke(child(&["smoke"], &[("HP_BARRIER", rung)]));
        assert_eq!(
            rank(outcome.field("rung")),
            best.max(rank(rung)),
            "{outcome}"
        );
    }
    for index in ["mm_cid", "cpu_id"] {
        check_smoke(child(&["smoke"], &[("HP_INDEX", index)]));
    }
}

/// Bug log 81: glibc did not register.
#[test]
fn report_81_without_rseq() {
    for environment in [&[NO_RSEQ][..], &[NO_RSEQ, ("HP_BARRIER", "rseq")]] {
        let outcome = check_smoke(child(&["smoke"], environment));
        assert_ne!(outcome.field("rung"), "rseq", "{outcome}");
    }
}

/// Bug log 80 and 84: a sandbox that refuses `membarrier`; one that kills, of
/// which nothing is asked on the fence rung.
#[test]
fn report_80_84_membarrier_is_refused() {
    for filter in ["filter=enosys", "filter=eperm"] {
        for environment in [&[][..], &[NO_RSEQ][..], &[("HP_BARRIER", "rseq")][..]] {
            let outcome = check_smoke(child(&["smoke", filter], environment));
            assert_eq!(outcome.field("rung"), "fence", "{outcome}");
        }
    }
    let environment = [NO_RSEQ, ("HP_BARRIER", "fence")];
    check_smoke(child(&["smoke", "filter=kill"], &environment));
    let control = child(&["smoke", "filter=kill"], &[NO_RSEQ]);
    assert_eq!(control.status.signal(), Some(libc::SIGSYS), "{control}");
}

/// Bug log 51 and 80: granted, then refused. Nothing is freed, everybody is
/// told, readers go on, the flavour without barriers works.
#[test]
fn report_51_80_a_barrier_that_is_lost() {
    for rung in rungs_with_a_barrier() {
        let outcome = child(&["late"], &[("HP_BARRIER", rung)]).expect_ok();
        assert_eq!(outcome.field("rung"), rung);
        assert!(outcome.number("refused") > 0, "{outcome}");
    }
}

/// Bug log 51: the kernel forgets what was registered, as after a checkpoint is
/// restored. The registration is made again, no grace period is put off.
#[cfg(target_arch = "x86_64")]
#[test]
fn report_51_a_registration_that_is_forgotten() {
    for rung in rungs_with_a_barrier() {
        let outcome = child(&["restored"], &[("HP_BARRIER", rung)]).expect_ok();
        assert_eq!(outcome.field("rung"), rung);
        assert_eq!(
            outcome.number("registered"),
            outcome.number("times"),
            "{outcome}"
        );
    }
}

/// Issue 7: three thousand threads inside a section at once, in each flavour.
#[test]
fn three_thousand_threads() {
    for rung in RUNGS {
        let outcome = child(&["crowd"], &[("HP_BARRIER", rung)]).expect_ok();
        assert_eq!(outcome.number("passed"), 9000, "{outcome}");
    }
}

/// A domain that ends has no readers: it ends without a barrier.
#[test]
fn report_51_80_domains_end_without_a_barrier() {
    for rung in rungs_with_a_barrier() {
        let _ = child(&["late-domains"], &[("HP_BARRIER", rung)]).expect_ok();
    }
}

/// Refused to one thread: another one finishes what it began.
#[test]
fn report_51_80_a_barrier_that_comes_back() {
    for rung in rungs_with_a_barrier() {
        let _ = child(&["recover"], &[("HP_BARRIER", rung)]).expect_ok();
    }
}

/// No worker can be started: those who ask run the callbacks.
#[test]
fn no_thread_can_be_started() {
    // (A leak checker would need a thread at the end.)
    let environment = [("ASAN_OPTIONS", "detect_leaks=0")];
    let _ = child(&["threadless"], &environment).expect_ok();
}

/// Bug log 86: the highest CPU alone, then all of them.
#[test]
fn report_86_the_highest_cpu_first() {
    for environment in [&[][..], &[("HP_INDEX", "cpu_id")][..]] {
        check_smoke(child(&["smoke", "cpu=last"], environment));
    }
}

/// Bug log 10: used by a handler that runs when the process ends.
#[test]
fn report_10_at_exit() {
    for rung in RUNGS {
        check_smoke(child(&["atexit"], &[("HP_BARRIER", rung)]));
    }
}

/// Bug log 4 (a hang at shutdown): `main` ends with work left.
#[test]
fn report_4_a_process_that_ends_with_callbacks_queued() {
    for _ in 0..10 {
        let _ = child(&["leave"], &[]).expect_ok();
    }
}

/// Bug log 2: nothing is lost or read after its end, says valgrind, whose
/// programs have no rseq.
#[test]
fn report_2_under_valgrind() {
    let found = Command::new("valgrind").arg("--version").output();
    if !found.is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: valgrind is not installed");
        return;
    }
    let outcome = run(
        Command::new("valgrind").args([
            "--error-exitcode=9",
            "--leak-check=full",
            "--errors-for-leak-kinds=definite",
            "--quiet",
            "--fair-sched=yes",
            env!("CARGO_BIN_EXE_rcu-child"),
            "smoke",
            "threads=2",
            "rounds=100",
        ]),
        &[],
    );
    assert_ne!(check_smoke(outcome).field("rung"), "rseq");
}
