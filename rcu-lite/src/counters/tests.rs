//! Unit tests of `counters`.

use super::*;
use std::thread;

fn fresh() -> Box<Counters> {
    // SAFETY: zeroes are valid counters: atomic words and a null pointer.
    let counters = unsafe { Box::<Counters>::new_zeroed().assume_init() };
    counters.prepare();
    counters
}

fn enter(counters: &Counters) -> Entered {
    counters.enter().unwrap_or_else(|| counters.enter_cold())
}

/// Turns with nobody of before inside.
fn turn(counters: &Counters) {
    counters.turn();
    counters.barrier().unwrap();
}

/// Bug log 65, narrowed: shared counts that wrap in the middle.
#[test]
fn shared_counts_wrap() {
    for start in [
        usize::MAX,
        usize::MAX - 1,
        usize::MAX - 5,
        0,
        isize::MAX as usize - 2,
    ] {
        let counters = fresh();
        counters.start_shared_at(start);
        let rung = rung();
        for round in 0..6 {
            let before: Vec<_> = (0..4).map(|_| counters.enter_shared(rung)).collect();
            turn(&counters);
            assert!(!counters.drained(), "{start} {round}");
            let after = counters.enter_shared(rung);
            for (n, entered) in before.into_iter().enumerate() {
                assert!(!counters.drained(), "{n} have left");
                if n % 2 == 0 {
                    counters.leave(entered);
                } else {
                    // On another thread, and so in another line.
                    thread::scope(|s| s.spawn(|| counters.leave(entered)).join().unwrap());
                }
            }
            assert!(
                counters.drained(),
                "{start} {round}: `after` began behind the turn"
            );
            turn(&counters);
            assert!(!counters.drained(), "{start} {round}");
            counters.leave(after);
            assert!(counters.drained());
        }
    }
}

/// More left than entered on one line, the other way round on another.
#[test]
fn lines_are_summed() {
    let counters = fresh();
    counters.start_shared_at(usize::MAX - 1);
    let rung = rung();
    let entered: Vec<_> = thread::scope(|s| {
        let threads: Vec<_> = (0..20)
            .map(|_| s.spawn(|| (counters.enter_shared(rung), counters.enter_shared(rung))))
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    turn(&counters);
    let many = entered.len();
    for (n, (a, b)) in entered.into_iter().enumerate() {
        counters.leave(a);
        assert!(!counters.drained());
        thread::scope(|s| s.spawn(|| counters.leave(b)).join().unwrap());
        assert_eq!(counters.drained(), n + 1 == many);
    }
}

/// A reader that counted in both phases holds both up, and leaves once.
#[test]
fn a_reader_in_both_phases() {
    for start in [0, usize::MAX] {
        let counters = fresh();
        counters.start_shared_at(start);
        let both = || {
            for phase in [FIRST_PHASE, other(FIRST_PHASE)] {
                counters.own_shared().words[phase].fetch_add(1, Ordering::Relaxed);
            }
            Entered::counted(BOTH)
        };
        let (first, second) = (both(), both());
        for _ in 0..3 {
            turn(&counters);
            assert!(!counters.drained());
        }
        counters.leave(first);
        turn(&counters);
        assert!(!counters.drained());
        counters.leave(second);
        assert!(counters.drained());
        turn(&counters);
        assert!(counters.drained());
    }
}

/// The epoch wraps past the two numbers that it must not be, with readers
/// in slots and in counters.
#[test]
fn epochs_wrap() {
    let counters = fresh();
    counters.start_epoch_at(usize::MAX - 4);
    for _ in 0..8 {
        let slot = enter(&counters);
        let counted = enter(&counters);
        turn(&counters);
        let epoch = counters.now.epoch.load(Ordering::Relaxed).addr();
        assert!(epoch != 0 && epoch != FREE);
        assert!(!counters.drained());
        counters.leave(slot);
        assert!(!counters.drained(), "the second one is inside");
        let after = enter(&counters);
        counters.leave(counted);
        assert!(counters.drained(), "`after` began behind the turn");
        turn(&counters);
        assert!(!counters.drained());
        counters.leave(after);
        assert!(counters.drained());
    }
}

/// Readers of all ways are forgotten.
#[test]
fn reset_forgets_every_reader() {
    let counters = fresh();
    counters.start_shared_at(usize::MAX);
    let rung = rung();
    for _ in 0..3 {
        let _ = (
            enter(&counters),
            enter(&counters),
            counters.enter_shared(rung),
        );
        turn(&counters);
        assert!(!counters.drained());
        // SAFETY: those above are never left, and there are no others.
        unsafe { counters.reset() };
        assert!(counters.drained());
        turn(&counters);
        assert!(counters.drained());
    }
}
