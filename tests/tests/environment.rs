//! What the machine, the kernel or a sandbox can take away: every rung works,
//! says which it is and why.
//!
//! Bug log groups 12, 13 and parts of 2 and 15, by child processes.
#![cfg(target_os = "linux")]

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::Command;
use tests::child::{Outcome, run};
use tests::seccomp::{Answer, install, install_commands};

const RUNGS: [&str; 3] = ["rseq", "membarrier", "fence"];

/// Keeps glibc from registering threads, so that it makes no `rseq(2)` either.
const NO_RSEQ: (&str, &str) = ("GLIBC_TUNABLES", "glibc.pthread.rseq=0");

fn child(arguments: &[&str], environment: &[(&str, &str)]) -> Outcome {
    run(
        Command::new(env!("CARGO_BIN_EXE_hp-child")).args(arguments),
        environment,
    )
}

/// As [`child`], with calls (or some of their commands) refused from before the
/// program's first instruction.
fn filtered(
    calls: &[(libc::c_long, Option<&[i32]>)],
    errno: i32,
    arguments: &[&str],
    environment: &[(&str, &str)],
) -> Outcome {
    let calls: Vec<_> = calls
        .iter()
        .map(|&(call, commands)| (call, commands.map(<[i32]>::to_vec)))
        .collect();
    let mut program = Command::new(env!("CARGO_BIN_EXE_hp-child"));
    program.args(arguments);
    // SAFETY: the child only installs filters; what that allocates is freed,
    // and this thread held no lock at the fork.
    unsafe {
        program.pre_exec(move || {
            for (call, commands) in &calls {
                match commands {
                    None => install(&[*call], Answer::Errno(errno))?,
                    Some(first) => install_commands(*call, first, None, Answer::Errno(errno))?,
                }
            }
            Ok(())
        });
    }
    run(&mut program, environment)
}

fn rank(rung: &str) -> usize {
    RUNGS
        .iter()
        .position(|name| *name == rung)
        .unwrap_or_else(|| panic!("{rung} is no rung"))
}

/// The best rung of this machine, of which the others are forced lower ones.
fn best() -> String {
    child(&["smoke", "rounds=10"], &[])
        .expect_ok()
        .field("rung")
        .to_string()
}

/// Every rung can be forced, none is better than what there is.
#[test]
fn each_rung_runs_the_smoke_suite() {
    let best = rank(&best());
    for rung in RUNGS {
        let outcome = child(&["smoke"], &[("HP_BARRIER", rung)]).expect_ok();
        let got = outcome.field("rung");
        assert_eq!(rank(got), best.max(rank(rung)), "{outcome}");
        assert!(outcome.number("retired") == outcome.number("dropped"));
        assert!(outcome.text.contains(&format!("HP_BARRIER={rung}")));
        assert_eq!(outcome.field("index") == "none", got != "rseq", "{outcome}");
    }
}

/// A value that is no rung is told, not obeyed.
#[test]
fn a_bad_rung_is_reported() {
    let best = best();
    let outcome = child(&["smoke", "rounds=10"], &[("HP_BARRIER", "fast")]).expect_ok();
    assert_eq!(outcome.field("rung"), best);
    let why = outcome
        .text
        .lines()
        .find(|line| line.starts_with("why"))
        .expect("capabilities say why");
    assert!(why.contains("HP_BARRIER=fast ignored"), "{why}");
}

/// Bug log 81: glibc did not register.
#[test]
fn report_81_without_rseq() {
    let outcome = child(&["smoke"], &[NO_RSEQ]).expect_ok();
    assert!(
        rank(outcome.field("rung")) >= rank("membarrier"),
        "{outcome}"
    );
    assert!(outcome.text.contains("no rseq rung"), "{outcome}");
    assert!(outcome.text.contains("thread registered  no"), "{outcome}");
    // Also when it is asked for by name.
    let outcome = child(&["smoke"], &[NO_RSEQ, ("HP_BARRIER", "rseq")]).expect_ok();
    assert_ne!(outcome.field("rung"), "rseq");
}

/// Bug log 80: a sandbox that refuses `membarrier`, in both usual ways.
#[test]
fn report_80_membarrier_is_refused() {
    for (filter, told) in [("enosys", "ENOSYS"), ("eperm", "EPERM")] {
        let filter = format!("filter={filter}");
        for environment in [
            &[][..],
            &[NO_RSEQ][..],
            &[("HP_BARRIER", "rseq")][..],
            &[("HP_BARRIER", "membarrier")][..],
        ] {
            let outcome = child(&["smoke", &filter], environment).expect_ok();
            assert_eq!(outcome.field("rung"), "fence", "{outcome}");
            assert!(outcome.text.contains(told), "{outcome}");
            assert_eq!(outcome.number("barrier_failures"), 0, "{outcome}");
        }
    }
}

/// Bug log 80: a sandbox that kills. `HP_BARRIER=fence` asks nothing, not even
/// which commands there are. (Without it the child dies, or this proves
/// nothing.)
#[test]
fn report_80_a_filter_that_kills() {
    let environment = [NO_RSEQ, ("HP_BARRIER", "fence")];
    let outcome = child(&["smoke", "filter=kill"], &environment).expect_ok();
    assert_eq!(outcome.field("rung"), "fence");
    assert!(
        outcome.text.contains("membarrier mask    none"),
        "{outcome}"
    );
    let control = child(&["smoke", "filter=kill"], &[NO_RSEQ]);
    assert_eq!(control.status.signal(), Some(libc::SIGSYS), "{control}");
}

/// Bug log 51 and 80: the kernel grants the barrier and later refuses it. What
/// waits stays; nothing is freed, nothing aborts, readers go on.
#[test]
fn report_51_80_a_barrier_that_is_lost() {
    let best = rank(&best());
    let mut tried = 0;
    for rung in ["rseq", "membarrier"] {
        if rank(rung) < best {
            eprintln!("SKIPPED: this machine has no {rung} rung");
            continue;
        }
        let outcome = child(&["late"], &[("HP_BARRIER", rung)]).expect_ok();
        assert_eq!(outcome.field("rung"), rung);
        assert!(outcome.number("refused") > 0, "{outcome}");
        tried += 1;
    }
    assert!(tried > 0 || best == rank("fence"));
}

/// Bug log 51: the kernel forgets what was registered, as after a checkpoint is
/// restored. The registration is made again, nothing is put off.
#[cfg(target_arch = "x86_64")]
#[test]
fn report_51_a_registration_that_is_forgotten() {
    let best = rank(&best());
    for rung in ["rseq", "membarrier"] {
        if rank(rung) < best {
            eprintln!("SKIPPED: this machine has no {rung} rung");
            continue;
        }
        let outcome = child(&["restored"], &[("HP_BARRIER", rung)]).expect_ok();
        assert_eq!(outcome.field("rung"), rung);
        assert_eq!(
            outcome.number("registered"),
            outcome.number("times"),
            "{outcome}"
        );
        // Two threads may be refused before one of them registers.
        assert!(
            outcome.number("refused") >= outcome.number("times"),
            "{outcome}"
        );
    }
}

/// Bug log 81: a kernel without rseq (gVisor, before 4.18), as the C library
/// meets it: the filter is there before the program.
#[test]
fn report_81_a_kernel_without_rseq() {
    for errno in [libc::ENOSYS, libc::EPERM, libc::EINVAL] {
        for (asked, rung) in [
            ("", "membarrier"),
            ("rseq", "membarrier"),
            ("fence", "fence"),
        ] {
            let outcome = filtered(
                &[(libc::SYS_rseq, None)],
                errno,
                &["smoke"],
                &[("HP_BARRIER", asked)],
            )
            .expect_ok();
            assert!(
                rank(outcome.field("rung")) >= rank(rung),
                "{errno}: {outcome}"
            );
            assert!(outcome.text.contains("thread registered  no"), "{outcome}");
        }
    }
}

/// Bug log 81: kernels from 4.18 to 5.9 have rseq, and no barrier that restarts
/// its sections; those before 4.14 have no expedited barrier at all.
#[test]
fn report_81_a_kernel_without_the_commands() {
    let rseq = [1 << 7, 1 << 8];
    let all = [1 << 3, 1 << 4, 1 << 7, 1 << 8];
    for (commands, rung) in [(&rseq[..], "membarrier"), (&all[..], "fence")] {
        for asked in ["", "rseq"] {
            let outcome = filtered(
                &[(libc::SYS_membarrier, Some(commands))],
                libc::EINVAL,
                &["smoke"],
                &[("HP_BARRIER", asked)],
            )
            .expect_ok();
            assert!(rank(outcome.field("rung")) >= rank(rung), "{outcome}");
            assert!(outcome.text.contains("EINVAL"), "{outcome}");
        }
    }
}

/// Issue 7: three thousand threads alive at once, all holding.
#[test]
fn three_thousand_threads() {
    for rung in RUNGS {
        let outcome = child(&["crowd"], &[("HP_BARRIER", rung)]).expect_ok();
        assert_eq!(outcome.number("retired"), 3000, "{outcome}");
        assert_eq!(outcome.number("pending"), 0, "{outcome}");
    }
}

/// Lines by CPU number where the kernel could do better.
#[test]
fn indexed_by_cpu_number() {
    if best() != "rseq" {
        eprintln!("SKIPPED: no rseq rung here");
        return;
    }
    for arguments in [&["smoke"][..], &["smoke", "cpu=last"][..]] {
        let outcome = child(arguments, &[("HP_INDEX", "cpu_id")]).expect_ok();
        assert_eq!(outcome.field("rung"), "rseq");
        assert_eq!(outcome.field("index"), "cpu_id", "{outcome}");
        assert!(outcome.text.contains("HP_INDEX=cpu_id"), "{outcome}");
    }
}

/// Bug log 86: the highest CPU alone, then all of them.
#[test]
fn report_86_the_highest_cpu_first() {
    for environment in [&[][..], &[("HP_INDEX", "cpu_id")][..]] {
        let _ = child(&["smoke", "cpu=last"], environment).expect_ok();
    }
}

/// Bug log 86: the affinity changes all the time.
#[test]
fn report_86_affinity_changes_under_way() {
    for rung in RUNGS {
        for index in ["", "cpu_id"] {
            let outcome = child(
                &["smoke", "shuffle=yes"],
                &[("HP_BARRIER", rung), ("HP_INDEX", index)],
            )
            .expect_ok();
            assert!(outcome.number("moves") > 0, "{outcome}");
        }
    }
}

/// Bug log 10: used by a handler that runs when the process ends.
#[test]
fn report_10_at_exit() {
    for rung in RUNGS {
        let _ = child(&["atexit"], &[("HP_BARRIER", rung)]).expect_ok();
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
            env!("CARGO_BIN_EXE_hp-child"),
            "smoke",
            "threads=2",
            "rounds=300",
        ]),
        &[],
    )
    .expect_ok();
    assert_ne!(outcome.field("rung"), "rseq", "{outcome}");
}
