//! The pipe-age torture of every flavour of `rcu-lite`, and the proof that it
//! can fail.
//!
//! The engine is `tests::rcu_torture`. To look for trouble longer than a test
//! may: `rcu-torture --time 600 --readers 16 --churn --shuffle --stutter
//! --seed 7`.
#![cfg(target_os = "linux")]

use std::process::Command;
use std::sync::{Mutex, PoisonError};
use tests::child::{Outcome, run};

fn child(environment: &[(&str, &str)], arguments: &[&str]) -> Outcome {
    // One at a time: each has more threads than small machines have CPUs.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let outcome = run(
        Command::new(env!("CARGO_BIN_EXE_rcu-torture")).args(arguments),
        environment,
    );
    println!("{}", outcome.text);
    outcome
}

fn numbers(outcome: &Outcome, field: &str) -> Vec<u64> {
    outcome
        .field(field)
        .split(',')
        .map(|n| n.parse().expect("a number"))
        .collect()
}

fn check(outcome: Outcome) -> Outcome {
    let outcome = outcome.expect_ok();
    let ages = numbers(&outcome, "pipe");
    assert_eq!(ages.len(), 11, "{outcome}");
    assert!(ages[0] > 100, "{outcome}");
    assert!(ages[2..].iter().all(|&n| n == 0), "{outcome}");
    for wrong in ["too_old", "mberrors", "poisoned", "lost_calls", "pending"] {
        assert_eq!(outcome.number(wrong), 0, "{wrong}: {outcome}");
    }
    assert_eq!(
        outcome.number("boxes"),
        outcome.number("freed"),
        "{outcome}"
    );
    let updates = numbers(&outcome, "updates");
    assert!(updates.iter().all(|&n| n > 0), "in every way: {outcome}");
    assert!(outcome.number("recycled") > 0, "{outcome}");
    assert!(outcome.number("fakes") > 0, "{outcome}");
    assert!(outcome.number("grace_periods") > 10, "{outcome}");
    outcome
}

const RUNGS: [&str; 3] = ["rseq", "membarrier", "fence"];

fn torture(flavor: &str, seed: usize) {
    // This machine's best rung, the calm plan; then each rung, the wild one.
    let seed = seed.to_string();
    let calm = ["--flavor", flavor, "--ms", "1200", "--seed", &seed];
    let outcome = check(child(&[], &calm));
    assert_eq!(outcome.number("handed") > 0, flavor == "rcu", "{outcome}");
    for rung in RUNGS {
        let wild = [
            "--flavor",
            flavor,
            "--ms",
            "1500",
            "--seed",
            &seed,
            "--readers",
            "8",
            "--churn",
            "--shuffle",
            "--stutter",
        ];
        let outcome = check(child(&[("HP_BARRIER", rung)], &wild));
        for what in ["churned", "moved", "stutters"] {
            assert!(outcome.number(what) > 0, "{what}: {outcome}");
        }
    }
}

#[test]
fn ages_of_rcu() {
    torture("rcu", 1);
}

#[test]
fn ages_of_thread_rcu() {
    torture("thread", 2);
}

#[test]
fn ages_of_qsbr_rcu() {
    torture("qsbr", 3);
}

/// Lines by concurrency id, as on machines with very many CPUs.
#[test]
fn ages_with_lines_by_concurrency_id() {
    let plan = ["--flavor", "rcu", "--ms", "1200", "--churn", "--shuffle"];
    check(child(&[("HP_INDEX", "mm_cid")], &plan));
}

/// The negative controls: a writer that does not wait, and one that waits for
/// a grace period that began too early, are found out.
#[test]
fn broken_writers_are_found_out() {
    for (broken, flavor) in [
        ("nowait", "rcu"),
        ("nowait", "thread"),
        ("nowait", "qsbr"),
        ("early-cookie", "rcu"),
        ("early-cookie", "thread"),
        ("early-cookie", "qsbr"),
    ] {
        // Chance decides when, not whether: again, if it was not shown.
        let found = (1..=5).any(|seed: u32| {
            let seed = seed.to_string();
            let outcome = child(
                &[],
                &[
                    "--flavor",
                    flavor,
                    "--ms",
                    "1500",
                    "--readers",
                    "6",
                    "--seed",
                    &seed,
                    "--broken",
                    broken,
                ],
            );
            let found = outcome.number("too_old") > 0;
            let verdict = if found { "failed" } else { "ok" };
            assert_eq!(outcome.field("result"), verdict, "{outcome}");
            assert_eq!(outcome.status.code(), Some(i32::from(found)), "{outcome}");
            found
        });
        assert!(found, "{broken} of {flavor} was not noticed");
    }
}
