//! Protections in signal handlers.
//!
//! Bug log group 14 and number 85, by child processes.
#![cfg(target_os = "linux")]

use std::process::Command;
use tests::child::{Outcome, run};

fn child(rung: &str, arguments: &[&str]) -> Outcome {
    run(
        Command::new(env!("CARGO_BIN_EXE_hp-child"))
            .arg("signals")
            .args(arguments),
        &[("HP_BARRIER", rung)],
    )
    .expect_ok()
}

fn check(outcome: &Outcome) {
    assert!(outcome.number("runs") > 10, "{outcome}");
    assert!(outcome.number("rounds") > 10, "{outcome}");
    assert_eq!(
        outcome.number("wrong"),
        0,
        "a value was not intact: {outcome}"
    );
    assert_eq!(
        outcome.number("leaked"),
        0,
        "a slot is still held: {outcome}"
    );
    assert_eq!(outcome.number("pending"), 0, "{outcome}");
}

/// Bug log 85 and 90: a handler protects while the thread it interrupts does
/// the same, or waits, on the same CPU.
#[test]
fn report_85_90_a_handler_protects() {
    for rung in ["rseq", "membarrier", "fence"] {
        let outcome = child(rung, &["ms=700"]);
        check(&outcome);
        assert_eq!(outcome.number("allocated"), 0, "in the handler: {outcome}");
    }
}

/// Bug log 90: the line is full, so the handler interrupts overflow claims
/// with overflow claims.
#[test]
fn report_90_a_handler_interrupts_overflow_claims() {
    for rung in ["rseq", "membarrier", "fence"] {
        let outcome = child(rung, &["ms=700", "full=yes"]);
        check(&outcome);
        assert!(outcome.number("overflow") > 0, "{outcome}");
        assert_eq!(outcome.number("allocated"), 0, "in the handler: {outcome}");
    }
}

/// Bug log 90: the thread was prepared, and its first protections happen in
/// the handler. They must not need the allocator, which an interrupted thread
/// may be inside of.
#[test]
fn report_90_the_first_protection_is_in_the_handler() {
    for rung in ["rseq", "membarrier", "fence"] {
        let outcome = child(rung, &["ms=300", "only-handler=yes"]);
        check(&outcome);
        assert_eq!(outcome.number("allocated"), 0, "in the handler: {outcome}");
    }
}
