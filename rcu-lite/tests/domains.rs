//! The end of a domain: everything that waits is run, whoever ends it, and
//! nothing hangs.

mod common;

use common::{Case, Drops, Reader, SHORT, eventually, modes, rounds, within};
use rcu_lite::{Callbacks, QsbrRcu, Rcu, RcuCell, ThreadRcu, Timeout};
use std::sync::{Arc, mpsc};
use std::thread;

/// Bug log 1 and the bad day: all run before drop returns, in each
/// mode, also what other threads queued and what callbacks queue.
#[test]
fn a_domain_dropped_with_callbacks_waiting() {
    for mode in modes() {
        for _ in 0..rounds(20, 1) {
            let drops = Drops::new();
            let rcu = Arc::new(Rcu::with_callbacks(mode));
            let threads: Vec<_> = (0..3)
                .map(|_| {
                    let (rcu, drops) = (Arc::clone(&rcu), drops.clone());
                    thread::spawn(move || {
                        for n in 0..30 {
                            drop(rcu.read());
                            rcu.defer_drop(Box::new(drops.value(n)));
                        }
                    })
                })
                .collect();
            for thread in threads {
                thread.join().expect("a thread");
            }
            let rcu = Arc::into_inner(rcu).expect("the last handle");
            within("dropping a domain", move || drop(rcu));
            assert_eq!(drops.count(), 90, "{mode:?}");
        }
    }
}

/// A batch was taken and left behind because a reader was inside.
#[test]
fn a_domain_dropped_in_the_middle_of_a_pass() {
    for mode in modes() {
        let drops = Drops::new();
        let rcu = Rcu::with_callbacks(mode);
        thread::scope(|scope| {
            let (entered, inside) = mpsc::channel();
            let (leave, left) = mpsc::channel::<()>();
            let rcu = &rcu;
            scope.spawn(move || {
                let guard = rcu.read();
                entered.send(()).expect("the test");
                let _ = left.recv();
                drop(guard);
            });
            inside.recv().expect("inside");
            for n in 0..200 {
                rcu.defer_drop(Box::new(drops.value(n)));
            }
            assert_eq!(rcu.synchronize_timeout(SHORT), Err(Timeout::ReadersRemain));
            assert_eq!(drops.count(), 0);
            drop(leave);
        });
        drop(rcu);
        assert_eq!(drops.count(), 200, "{mode:?}");
    }
}

/// Bug log 65: a guard that was forgotten stops grace periods, not the end.
#[test]
fn report_65_a_forgotten_guard_and_the_end_of_its_domain() {
    for mode in modes() {
        let drops = Drops::new();
        let rcu = Rcu::with_callbacks(mode);
        std::mem::forget(rcu.read());
        for n in 0..200 {
            rcu.defer_drop(Box::new(drops.value(n)));
        }
        let cookie = rcu.start_poll();
        assert!(!rcu.poll(&cookie));
        assert_eq!(rcu.synchronize_timeout(SHORT), Err(Timeout::ReadersRemain));
        assert_eq!(drops.count(), 0);
        within("dropping a domain", move || drop(rcu));
        assert_eq!(drops.count(), 200, "{mode:?}");
    }
}

/// Callbacks that panic as the domain ends.
#[test]
fn a_domain_dropped_with_callbacks_that_panic() {
    for mode in modes() {
        let drops = Drops::new();
        let rcu = Rcu::with_callbacks(mode);
        // Held up, so that they are there at the end.
        std::mem::forget(rcu.read());
        for n in 0..20 {
            let value = drops.value(n);
            rcu.call(move || assert!(value.get().is_multiple_of(2), "on purpose"));
        }
        drop(rcu);
        assert_eq!(drops.count(), 20, "{mode:?}");
    }
}

/// Bug log 1: the end comes from a callback of another domain, of any flavour
/// and in any mode.
#[test]
fn report_1_a_domain_dropped_by_a_callback_of_another() {
    fn check<F: Case>() {
        let outer = F::alone();
        for outer_mode in modes() {
            for mode in modes() {
                outer.only(outer_mode);
                let drops = Drops::new();
                let inner = Rcu::with_callbacks(mode);
                for n in 0..3 {
                    inner.defer_drop(Box::new(drops.value(n)));
                }
                outer.defer_drop(Box::new(inner));
                let flavor = outer.clone();
                within("a domain dropped by a callback", move || flavor.barrier());
                assert_eq!(drops.count(), 3, "{outer_mode:?} {mode:?}");
            }
        }
    }
    check::<Arc<Rcu>>();
    check::<&'static Rcu>();
    check::<ThreadRcu>();
    check::<QsbrRcu>();
}

/// Domains in domains in domains.
#[test]
fn domains_that_own_each_other() {
    let drops = Drops::new();
    let mut outer = Rcu::with_callbacks(Callbacks::Manual);
    outer.defer_drop(Box::new(drops.value(0)));
    for n in 1..rounds(50, 5) {
        let next = Rcu::with_callbacks(Callbacks::Manual);
        next.defer_drop(Box::new(drops.value(n)));
        next.defer_drop(Box::new(outer));
        outer = next;
    }
    drop(outer);
    assert_eq!(drops.count(), rounds(50, 5));
}

/// The last handle is in a callback of that very domain, which its worker
/// runs: the worker ends it.
#[test]
#[cfg_attr(miri, ignore = "a worker may outlive the test")]
fn the_last_handle_in_a_callback_of_its_own_domain() {
    for round in 0..20 {
        let drops = Drops::new();
        let rcu = Arc::new(Rcu::new());
        let reader = Reader::inside(&rcu);
        for n in 0..10 {
            let handle = Arc::clone(&rcu);
            let value = drops.value(n);
            let more = drops.clone();
            rcu.call(move || {
                value.get();
                // While it goes, others come: those have to be run as well.
                handle.defer_drop(Box::new(more.value(n)));
                drop(handle);
            });
        }
        let last = Arc::downgrade(&rcu);
        // The reader's thread has a handle until it ends.
        drop(rcu);
        assert_eq!(drops.count(), 0);
        reader.leave();
        eventually("the worker ends the domain", || drops.count() == 20);
        assert!(last.upgrade().is_none(), "round {round}");
    }
}

/// The same, after the mode was changed away from the worker's.
#[test]
#[cfg_attr(miri, ignore = "a worker may outlive the test")]
fn the_last_handle_in_a_callback_after_the_mode_changed() {
    for mode in modes() {
        let drops = Drops::new();
        let rcu = Arc::new(Rcu::new());
        let reader = Reader::inside(&rcu);
        let (handle, more) = (Arc::clone(&rcu), drops.clone());
        rcu.call(move || {
            handle.set_callbacks(mode);
            for n in 0..10 {
                handle.defer_drop(Box::new(more.value(n)));
            }
            drop(handle);
        });
        // The worker has taken it, or will.
        thread::sleep(SHORT);
        drop(rcu);
        reader.leave();
        eventually(&format!("all run, {mode:?}"), || drops.count() == 10);
    }
}

/// A cell that owns its domain, in a callback of that domain.
#[test]
#[cfg_attr(miri, ignore = "a worker may outlive the test")]
fn a_cell_with_the_last_handle_in_a_callback() {
    let drops = Drops::new();
    let rcu = Arc::new(Rcu::new());
    let cell = RcuCell::new_in(drops.value(0), Arc::clone(&rcu));
    let reader = Reader::inside(&rcu);
    cell.replace(drops.value(1));
    rcu.call(move || {
        cell.replace(drops_value(&cell));
        drop(cell);
    });
    drop(rcu);
    reader.leave();
    eventually("all dropped", || drops.count() == 3);

    fn drops_value(cell: &RcuCell<common::Counted, Arc<Rcu>>) -> common::Counted {
        let guard = cell.flavor().read();
        cell.load(&guard).sibling(2)
    }
}

/// Made and ended over and over, with readers of the moment.
#[test]
fn many_short_domains() {
    let drops = Drops::new();
    for n in 0..rounds(300, 5) {
        let mode = modes()[n % modes().len()];
        let rcu = Rcu::with_callbacks(mode);
        thread::scope(|scope| {
            scope.spawn(|| drop(rcu.read()));
            rcu.defer_drop(Box::new(drops.value(n)));
            if n % 3 == 0 {
                rcu.synchronize();
            }
        });
        drop(rcu);
        assert_eq!(drops.count(), n + 1);
    }
}
