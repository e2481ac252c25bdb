//! Each planted fault is found, by one of the signs that it should show. (That
//! the same scheme without a fault shows nothing is `clean.rs`.)
#![cfg(target_os = "linux")]

use std::time::Duration;
use torture::{About, Dimension, Plan, Report, Sign, all};

fn faults() -> impl Iterator<Item = &'static About> {
    all().iter().filter(|about| about.fault.is_some())
}

fn run(about: &About, dimensions: Vec<Dimension>) -> Report {
    // Long, for a busy machine; it ends when the fault shows, or, if the fault
    // shows at the end, soon.
    let fault = about.fault.expect("a fault");
    let at_the_end = fault.signs == [Sign::Lost];
    let report = about.run(
        Plan {
            time: Duration::from_secs(if at_the_end { 1 } else { 60 }),
            watchdog: Duration::from_secs(if fault.signs == [Sign::Hung] { 2 } else { 30 }),
            dimensions,
            ..Plan::default()
        },
        &|| false,
        &mut |_| (),
    );
    println!("{}: {report:?}", about.name);
    report
}

fn shows(about: &About, report: &Report) {
    let fault = about.fault.expect("a fault");
    let failure = report.failure.as_ref();
    let failure = failure.unwrap_or_else(|| panic!("{} was not found: {report:?}", about.name));
    assert!(
        fault.signs.contains(&failure.sign),
        "{}: {failure:?}",
        about.name
    );
    if !matches!(failure.sign, Sign::Lost | Sign::Hung) {
        assert!(failure.element.is_some(), "{failure:?}");
    }
    if !matches!(failure.sign, Sign::Lost | Sign::Twice) {
        assert!(!failure.steps.is_empty(), "{failure:?}");
    }
}

#[test]
fn with_everything_on_each_fault_is_found() {
    for about in faults() {
        shows(about, &run(about, Dimension::ALL.to_vec()));
    }
}

/// Each dimension is of use by itself: there is a fault that it finds alone.
#[test]
fn each_dimension_finds_its_fault_alone() {
    for dimension in Dimension::ALL {
        let mut found = 0;
        for about in faults() {
            if about.fault.expect("a fault").needs == Some(dimension) {
                shows(about, &run(about, vec![dimension]));
                found += 1;
            }
        }
        assert!(found > 0, "no fault for {}", dimension.name());
    }
}

/// And the faults of the others are not found without theirs, where that can
/// be said for certain.
#[test]
fn without_its_dimension_a_fault_is_hidden() {
    for about in faults() {
        let Some(needs) = about.fault.expect("a fault").needs else {
            continue;
        };
        // These need no more than a thread that is moved aside at the wrong
        // moment, which happens anyway.
        if matches!(
            needs,
            Dimension::Sleep | Dimension::Overcommit | Dimension::Affinity | Dimension::Stutter
        ) {
            continue;
        }
        let report = about.run(
            Plan {
                time: Duration::from_millis(700),
                dimensions: Vec::new(),
                ..Plan::default()
            },
            &|| false,
            &mut |_| (),
        );
        assert!(report.failure.is_none(), "{}: {report:?}", about.name);
    }
}
