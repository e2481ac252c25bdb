//! The priority inversion, with locks that prevent it and locks that do not.
//!
//! Needs the right to real-time priorities; says so and passes without it.

mod common;

use common::Watchdog;
use rwsems::VisitLock;
use rwsems::probe::{self, Case, Found, Work};
use std::time::Duration;

const WORK: Work = Work {
    hold: Duration::from_millis(10),
    burn: Duration::from_millis(60),
};

struct Probe(Case);

impl VisitLock for Probe {
    type Out = Result<Found, String>;
    fn visit<L: rwsems::RwSem>(self) -> Self::Out {
        probe::run::<L>(self.0, WORK)
    }
}

/// Three tries: the machine may stop the virtual CPU at any time.
fn inverted(name: &str, case: Case) -> bool {
    let once = || rwsems::dispatch_lock(name, Probe(case)).expect("a lock");
    let found: Vec<Found> = (0..3).map(|_| once().expect("available")).collect();
    found.iter().filter(|found| found.inverted).count() >= 2
}

#[test]
fn who_inherits_does_not_wait_for_the_middle() {
    let _watchdog = Watchdog::new("probe");
    if let Err(why) = probe::available() {
        eprintln!("SKIPPED: {why}");
        return;
    }
    let two_cpus = std::thread::available_parallelism().is_ok_and(|n| n.get() > 1);
    for (name, case, expected) in [
        ("pi-single", Case::WriterBehindReader, false),
        ("pi-single", Case::ReaderBehindWriter, false),
        ("pi-multi", Case::WriterBehindReader, false),
        ("pi-multi", Case::ReaderBehindWriter, false),
        ("pi-multi", Case::WriterBehindWriter, false),
        ("rwbase", Case::ReaderBehindWriter, false),
        ("rwbase", Case::WriterBehindWriter, false),
        // Nobody knows the readers.
        ("rwbase", Case::WriterBehindReader, true),
        ("vanilla", Case::WriterBehindReader, true),
        ("vanilla", Case::ReaderBehindWriter, true),
        ("std", Case::WriterBehindReader, true),
        ("percpu", Case::WriterBehindReader, true),
    ] {
        assert_eq!(inverted(name, case), expected, "{name}, {}", case.name());
    }
    if two_cpus {
        assert!(!inverted("pi-multi", Case::WriterBehindReaders));
    }
    let two = rwsems::dispatch_lock("pi-single", Probe(Case::WriterBehindReaders));
    assert!(two.unwrap().unwrap_err().contains("do not fit"));
}
