//! CPU lines are opened by whoever meets them first, whatever that thread did
//! before. In a process of its own, because opening happens once.

use hp::{Atomic, Domain, Rung};
use tests::machine;

/// Found by reading: a thread with an overflow record took a line that nobody
/// had opened for a full one, and stayed on the overflow path of that CPU.
#[test]
fn a_prepared_thread_opens_the_lines_that_it_meets() {
    if hp::init() != Rung::Rseq {
        return;
    }
    // Takes an overflow record before any line is opened.
    hp::init_thread();
    let cell = Atomic::new(1u32);
    let all = machine::allowed_cpus();
    for cpu in &all {
        machine::set_affinity(0, std::slice::from_ref(cpu)).expect("one of the allowed CPUs");
        let before = Domain::global().stats().overflow_acquires;
        for _ in 0..10_000 {
            assert_eq!(cell.load().as_deref(), Some(&1));
        }
        let overflowed = Domain::global().stats().overflow_acquires - before;
        assert!(
            overflowed < 1000,
            "CPU {cpu}: {overflowed} of 10000 loads overflowed"
        );
    }
    machine::set_affinity(0, &all).expect("as before");
}
