//! The pipe-age torture on every rung, and the proof that it can fail.
//!
//! The engine is `tests::torture`. To look for trouble longer than a test may:
//! `hp-child torture ms=600000 readers=16 churn=yes shuffle=yes seed=7`.
#![cfg(target_os = "linux")]

use std::process::Command;
use tests::child::{Outcome, run};

fn child(environment: &[(&str, &str)], arguments: &[&str]) -> Outcome {
    let outcome = run(
        Command::new(env!("CARGO_BIN_EXE_hp-child"))
            .arg("torture")
            .args(arguments),
        environment,
    );
    println!("{}", outcome.text);
    outcome
}

fn check(outcome: Outcome) -> Outcome {
    let outcome = outcome.expect_ok();
    let ages: Vec<u64> = outcome
        .field("pipe")
        .split(',')
        .map(|n| n.parse().expect("a number"))
        .collect();
    assert!(ages[0] > 0, "{outcome}");
    assert!(ages[2..].iter().all(|&n| n == 0), "{outcome}");
    assert_eq!(outcome.number("too_old"), 0, "{outcome}");
    assert_eq!(outcome.number("unstamped"), 0, "{outcome}");
    assert!(outcome.number("replaced") > 100, "{outcome}");
    assert!(outcome.number("recycled") > 0, "{outcome}");
    assert!(outcome.number("deferred") > 0, "{outcome}");
    assert_eq!(outcome.number("pending"), 0, "nothing is left: {outcome}");
    outcome
}

/// Readers of every kind, four of them.
#[test]
fn ages_with_steady_readers() {
    for (seed, rung) in ["rseq", "membarrier", "fence"].into_iter().enumerate() {
        let seed = format!("seed={}", seed + 1);
        check(child(
            &[("HP_BARRIER", rung)],
            &["readers=4", "ms=2000", &seed],
        ));
    }
}

/// Eight readers that are moved about, and others that come and go.
#[test]
fn ages_with_churn_and_migration() {
    for (seed, rung) in ["rseq", "membarrier", "fence"].into_iter().enumerate() {
        let seed = format!("seed={}", seed + 11);
        let outcome = check(child(
            &[("HP_BARRIER", rung)],
            &["readers=8", "ms=2000", "churn=yes", "shuffle=yes", &seed],
        ));
        assert!(outcome.number("churned") > 0, "{outcome}");
        assert!(outcome.number("moved") > 0, "{outcome}");
    }
}

/// The same with lines by concurrency id, as on machines with very many CPUs
/// (where the kernel has them).
#[test]
fn ages_with_lines_by_concurrency_id() {
    check(child(
        &[("HP_INDEX", "mm_cid")],
        &[
            "readers=6",
            "ms=2000",
            "churn=yes",
            "shuffle=yes",
            "seed=21",
        ],
    ));
}

/// The negative control: a writer that does not wait is found out.
#[test]
fn a_writer_that_does_not_wait_is_found_out() {
    let outcome = child(&[], &["readers=6", "ms=1500", "wait=no", "seed=31"]);
    assert!(outcome.status.success(), "{outcome}");
    assert!(outcome.number("too_old") > 0, "{outcome}");
    assert_eq!(outcome.field("result"), "failed", "{outcome}");
}
