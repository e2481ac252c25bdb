//! The real schemes, for a second or two each: nothing is found, and everything
//! that should have happened did.
#![cfg(target_os = "linux")]

use std::time::Duration;
use torture::{Dimension, Plan, Report, all, find};

fn run(name: &str, plan: Plan) -> Report {
    let report = find(name)
        .expect("a flavour")
        .run(plan, &|| false, &mut |_| ());
    println!("{report:?}");
    report
}

/// What is true of every run in which nothing is wrong.
fn clean(report: &Report) {
    assert!(report.failure.is_none(), "{report:?}");
    assert_eq!(report.too_old(), 0, "{report:?}");
    assert!(report.ages[0] > 0, "{report:?}");
    assert_eq!(report.unlinked, report.reclaimed, "{report:?}");
    assert!(report.recycled > 0, "{report:?}");
    assert!(report.all_updates() >= report.unlinked, "{report:?}");
    for (how, count) in report.reads.iter().chain(&report.updates) {
        assert!(*count > 0, "{how} never happened: {report:?}");
    }
}

/// How often what a dimension is about took place.
fn happened(report: &Report, dimension: Dimension) -> u64 {
    match dimension {
        Dimension::Sleep => report.sleeps,
        Dimension::Handover => report.handed_over,
        Dimension::Signal => report.in_handler,
        // As many readers as the plan says; see below.
        Dimension::Overcommit => u64::from(report.readers > torture::cpus::allowed().len()),
        Dimension::Affinity => report.moved,
        Dimension::Churn => report.churned,
        Dimension::Stutter => report.stutters,
        Dimension::Starve => report.starved,
    }
}

#[test]
fn every_scheme_with_everything_on() {
    for about in all().iter().filter(|about| about.fault.is_none()) {
        let report = run(
            about.name,
            Plan {
                time: Duration::from_secs(2),
                ..Plan::default()
            },
        );
        clean(&report);
        for dimension in Dimension::ALL {
            let missing = report.not_applicable.contains_key(dimension.name());
            assert_eq!(
                happened(&report, dimension) == 0,
                missing,
                "{}: {report:?}",
                dimension.name()
            );
        }
    }
}

/// A dimension that is off does not take place.
#[test]
fn what_is_off_is_off() {
    let report = run(
        "hp",
        Plan {
            time: Duration::from_millis(500),
            dimensions: Vec::new(),
            ..Plan::default()
        },
    );
    clean(&report);
    for dimension in Dimension::ALL {
        assert_eq!(happened(&report, dimension), 0, "{}", dimension.name());
    }
    for dimension in Dimension::ALL {
        let report = run(
            "control",
            Plan {
                time: Duration::from_millis(400),
                dimensions: vec![dimension],
                ..Plan::default()
            },
        );
        for other in Dimension::ALL {
            assert_eq!(
                happened(&report, other) > 0,
                other == dimension,
                "{} with {}: {report:?}",
                other.name(),
                dimension.name()
            );
        }
    }
}

/// Somebody ends it early: it is complete all the same.
#[test]
fn an_early_end() {
    let report = find("rcu").expect("a flavour").run(
        Plan {
            time: Duration::from_secs(600),
            ..Plan::default()
        },
        &|| true,
        &mut |_| (),
    );
    assert!(report.interrupted && report.seconds < 60.0, "{report:?}");
    assert!(report.failure.is_none(), "{report:?}");
    assert_eq!(report.unlinked, report.reclaimed, "{report:?}");
}
