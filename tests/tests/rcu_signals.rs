//! Sections in signal handlers, and waits under signals.
//!
//! Bug log group 14 and number 85, by child processes.
#![cfg(target_os = "linux")]

use std::process::Command;
use tests::child::{Outcome, run};

const RUNGS: [&str; 3] = ["rseq", "membarrier", "fence"];

fn child(rung: &str, arguments: &[&str]) -> Outcome {
    run(
        Command::new(env!("CARGO_BIN_EXE_rcu-child")).args(arguments),
        &[("HP_BARRIER", rung)],
    )
    .expect_ok()
}

/// Bug log 90: a handler reads while the thread that it interrupts enters,
/// leaves, replaces and waits, on the same CPU; and while it does nothing.
#[test]
fn report_90_a_handler_reads() {
    for rung in RUNGS {
        for flavor in ["flavor=own", "flavor=rcu", "flavor=thread"] {
            for only in ["only-handler=no", "only-handler=yes"] {
                let outcome = child(rung, &["signals", "ms=400", flavor, only]);
                assert!(outcome.number("runs") > 10, "{outcome}");
                assert!(outcome.number("rounds") > 10, "{outcome}");
                assert_eq!(outcome.number("wrong"), 0, "{outcome}");
                assert_eq!(outcome.number("allocated"), 0, "in the handler: {outcome}");
                assert_eq!(outcome.number("pending"), 0, "{outcome}");
            }
        }
    }
}

/// The same for a thread of `QsbrRcu` that has been online before.
#[test]
fn report_90_a_handler_goes_online() {
    for only in ["only-handler=no", "only-handler=yes"] {
        let outcome = child("fence", &["signals", "ms=400", "flavor=qsbr", only]);
        assert!(outcome.number("runs") > 10, "{outcome}");
        assert_eq!(outcome.number("wrong"), 0, "{outcome}");
        assert_eq!(outcome.number("allocated"), 0, "in the handler: {outcome}");
        assert_eq!(outcome.number("pending"), 0, "{outcome}");
    }
}

/// Bug log 85: every wait ends, none early, under a signal a millisecond.
#[test]
fn report_85_waiting_under_signals() {
    for rung in RUNGS {
        for flavor in ["flavor=rcu", "flavor=thread", "flavor=qsbr"] {
            let outcome = child(rung, &["wait", "ms=500", flavor]);
            assert!(outcome.number("waits") > 10, "{outcome}");
            assert!(outcome.number("signals") > 10, "{outcome}");
        }
    }
}
