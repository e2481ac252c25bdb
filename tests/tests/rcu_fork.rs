//! `rcu-lite` and forks: the child waits for no thread that it does not have.
//!
//! Bug log 47.
#![cfg(target_os = "linux")]

use rcu_lite::{Callbacks, Flavor, QsbrRcu, Rcu, RcuCell, ThreadRcu, Timeout};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use tests::fork::{SetWhenDropped, in_child, wait_for};
use tests::rcu_smoke::{self, Value};

const SHORT: Duration = Duration::from_millis(20);
const LONG: Duration = Duration::from_secs(8);

/// The process-wide flavours have readers that stay inside: one test at a
/// time.
static ALONE: Mutex<()> = Mutex::new(());

/// Everything that a child does with values of its own.
fn use_everything<F: Flavor + Clone>(flavor: &F) {
    let dropped = Arc::new(AtomicUsize::new(0));
    for mode in [
        Callbacks::Manual,
        Callbacks::Inline { threshold: 4 },
        Callbacks::Worker,
    ] {
        flavor.set_callbacks(mode);
        dropped.store(0, Ordering::SeqCst);
        let cell = RcuCell::new_in(Value::new(0, &dropped), flavor.clone());
        for n in 1..=100 {
            let guard = flavor.read();
            let seen = cell.load(&guard);
            cell.replace(Value::new(n, &dropped));
            assert_eq!(seen.check(), n - 1);
        }
        flavor.synchronize();
        flavor.cond_synchronize(flavor.start_poll());
        flavor.barrier();
        assert_eq!(dropped.load(Ordering::SeqCst), 100, "{mode:?}");
    }
    let other = flavor.clone();
    let thread = thread::spawn(move || {
        drop(other.read());
        other.synchronize();
    });
    thread.join().expect("a thread of the child");
}

/// Three threads are inside at the fork. The child waits for none of them, nor
/// does its child; the forking thread's own section protects in both.
fn threads_inside_at_the_fork<F: Flavor + Clone>(flavor: &F) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let dropped = Arc::new(AtomicUsize::new(0));
    let cell = RcuCell::new_in(Value::new(1, &dropped), flavor.clone());
    let (held, done) = (Barrier::new(4), AtomicBool::new(false));
    thread::scope(|scope| {
        for depth in 1..=3 {
            let (held, done, cell, dropped) = (&held, &done, &cell, &dropped);
            scope.spawn(move || {
                let guards: Vec<_> = (0..depth).map(|_| flavor.read()).collect();
                let seen = cell.load(&guards[0]);
                held.wait();
                wait_for(done);
                assert_eq!(seen.check(), 1, "the parent's readers go on");
                assert_eq!(dropped.load(Ordering::SeqCst), 0);
                drop(guards);
            });
        }
        held.wait();
        let finish = SetWhenDropped(&done);
        // Outside in the parent: the child has no reader at all.
        let outside = in_child(|| {
            use_everything(flavor);
            in_child(|| {
                use_everything(flavor);
                in_child(|| use_everything(flavor)).expect("third level");
            })
            .expect("second level");
            use_everything(flavor);
        });
        // Inside: that section, and only that, is the child's.
        let guard = flavor.read();
        let seen = cell.load(&guard);
        cell.replace(Value::new(2, &dropped));
        let elsewhere = |limit| {
            thread::scope(|scope| {
                let waiter = scope.spawn(|| flavor.synchronize_timeout(limit));
                waiter.join().expect("a waiter")
            })
        };
        let inside = in_child(|| {
            assert_eq!(elsewhere(SHORT), Err(Timeout::ReadersRemain));
            assert_eq!((seen.check(), dropped.load(Ordering::SeqCst)), (1, 0));
            in_child(|| {
                assert_eq!(
                    elsewhere(SHORT),
                    Err(Timeout::ReadersRemain),
                    "second level"
                );
                assert_eq!(seen.check(), 1);
                // SAFETY: the child's copy, dropped once; the child ends by
                // `_exit`.
                drop(unsafe { std::ptr::read(&raw const guard) });
                assert_eq!(elsewhere(LONG), Ok(()));
                use_everything(flavor);
            })
            .expect("second level");
            // SAFETY: as above.
            drop(unsafe { std::ptr::read(&raw const guard) });
            assert_eq!(elsewhere(LONG), Ok(()));
            use_everything(flavor);
        });
        assert_eq!(elsewhere(SHORT), Err(Timeout::ReadersRemain), "the parent");
        drop(guard);
        drop(finish);
        outside.expect("no reader");
        inside.expect("the forking thread's section");
    });
    flavor.set_callbacks(Callbacks::Worker);
    flavor.barrier();
    assert_eq!(dropped.load(Ordering::SeqCst), 1);
}

#[test]
fn report_47_thread_rcu_with_threads_inside() {
    threads_inside_at_the_fork(&ThreadRcu);
}

#[test]
fn report_47_qsbr_rcu_with_threads_inside() {
    threads_inside_at_the_fork(&QsbrRcu);
}

/// A handle: online in the child as well, and it can announce and go offline.
#[test]
fn report_47_a_handle_across_the_fork() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let (held, done) = (Barrier::new(3), AtomicBool::new(false));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let online = QsbrRcu.online();
                held.wait();
                wait_for(&done);
                drop(online);
            });
        }
        held.wait();
        let finish = SetWhenDropped(&done);
        let mut online = QsbrRcu.online();
        let elsewhere = |limit| {
            let waiter = thread::spawn(move || QsbrRcu.synchronize_timeout(limit));
            waiter.join().expect("a waiter")
        };
        let outcome = in_child(|| {
            assert_eq!(elsewhere(SHORT), Err(Timeout::ReadersRemain));
            assert!(online.quiescent_state());
            online.synchronize();
            assert_eq!(elsewhere(SHORT), Err(Timeout::ReadersRemain));
            online.offline(|| use_everything(&QsbrRcu));
        });
        assert_eq!(elsewhere(SHORT), Err(Timeout::ReadersRemain));
        drop(online);
        drop(finish);
        outcome.expect("child");
    });
    QsbrRcu.synchronize();
}

/// `Rcu`: the counts of vanished readers stay until they are forgotten. It is
/// said, and bounded.
#[test]
fn report_47_rcu_with_threads_inside() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for in_progress in [false, true] {
        static RCU: [Rcu; 2] = [const { Rcu::with_callbacks(Callbacks::Manual) }; 2];
        let rcu = &RCU[usize::from(in_progress)];
        let dropped = Arc::new(AtomicUsize::new(0));
        let cell = RcuCell::new_in(Value::new(1, &dropped), rcu);
        let (held, done) = (Barrier::new(4), AtomicBool::new(false));
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let guards = (rcu.read(), rcu.read());
                    held.wait();
                    wait_for(&done);
                    assert_eq!(cell.load(&guards.0).check(), 2);
                    drop(guards);
                });
            }
            held.wait();
            let finish = SetWhenDropped(&done);
            cell.replace(Value::new(2, &dropped));
            if in_progress {
                assert_eq!(rcu.synchronize_timeout(SHORT), Err(Timeout::ReadersRemain));
            }
            let outcome = in_child(|| {
                assert_eq!(rcu.synchronize_timeout(SHORT), Err(Timeout::ReadersRemain));
                assert!(!rcu.poll(&rcu.start_poll()));
                // Another domain is not concerned.
                use_everything(&Rcu::global());
                // SAFETY: the forked child's only thread, with no guard.
                unsafe { rcu.after_fork_in_child() };
                assert_eq!(rcu.synchronize_timeout(LONG), Ok(()));
                rcu.drain();
                assert_eq!(dropped.load(Ordering::SeqCst), 1);
                use_everything(&rcu);
                // And again, with a reader of the child's own.
                let guard = rcu.read();
                assert_eq!(rcu.synchronize_timeout(SHORT), Err(Timeout::ReadersRemain));
                drop(guard);
                in_child(|| use_everything(&rcu)).expect("second level");
                use_everything(&rcu);
            });
            assert_eq!(rcu.synchronize_timeout(SHORT), Err(Timeout::ReadersRemain));
            assert_eq!(dropped.load(Ordering::SeqCst), 0, "the parent goes on");
            drop(finish);
            outcome.expect("child");
        });
        rcu.barrier();
        assert_eq!(dropped.load(Ordering::SeqCst), 1);
    }
}

/// `Rcu`, with nobody but the forking thread inside: its guard works in the
/// child, without being told.
#[test]
fn report_47_rcu_with_a_guard_of_the_forking_thread() {
    static RCU: Rcu = Rcu::new();
    let rcu = &RCU;
    let guard = rcu.read();
    let outcome = in_child(|| {
        assert_eq!(rcu.synchronize_timeout(SHORT), Err(Timeout::ReadersRemain));
        // SAFETY: the child's copy, dropped once; the child ends by `_exit`.
        drop(unsafe { std::ptr::read(&raw const guard) });
        assert_eq!(rcu.synchronize_timeout(LONG), Ok(()));
        use_everything(&rcu);
    });
    drop(guard);
    outcome.expect("child");
    rcu.synchronize();
}

/// Forks while other threads are inside `call`, `synchronize`, `barrier` and
/// `poll`, and the worker is at work: locks taken, passes and grace periods
/// under way.
fn forks_while_others_work<F: Flavor + Clone>(flavor: &F, forks: usize) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    flavor.set_callbacks(Callbacks::Worker);
    let dropped = Arc::new(AtomicUsize::new(0));
    let queued = AtomicUsize::new(0);
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for n in 0..2 {
            let (dropped, queued, stop) = (&dropped, &queued, &stop);
            scope.spawn(move || {
                let mut round = n;
                while !stop.load(Ordering::Relaxed) {
                    for _ in 0..20 {
                        flavor.defer_drop(Box::new(Value::new(round, dropped)));
                        queued.fetch_add(1, Ordering::Relaxed);
                    }
                    round += 1;
                    match round % 6 {
                        0 => flavor.synchronize(),
                        1 => _ = flavor.poll(&flavor.start_poll()),
                        2 => flavor.barrier(),
                        _ => {}
                    }
                }
            });
        }
        let finish = SetWhenDropped(&stop);
        let mut outcome = Ok(());
        for _ in 0..forks {
            outcome = outcome.and_then(|()| {
                in_child(|| {
                    flavor.call(|| ());
                    flavor.synchronize();
                    flavor.barrier();
                    use_everything(flavor);
                    assert_eq!(flavor.drain(), 0);
                })
            });
            thread::sleep(Duration::from_micros(500));
        }
        drop(finish);
        outcome.expect("a child that hung, or lost its own callbacks");
    });
    flavor.barrier();
    assert_eq!(dropped.load(Ordering::SeqCst), queued.into_inner());
    assert_eq!(flavor.stats().pending, 0);
}

#[test]
fn report_47_forks_while_others_use_rcu() {
    static RCU: Rcu = Rcu::new();
    forks_while_others_work(&&RCU, 40);
}

#[test]
fn report_47_forks_while_others_use_thread_rcu() {
    forks_while_others_work(&ThreadRcu, 40);
}

#[test]
fn report_47_forks_while_others_use_qsbr_rcu() {
    forks_while_others_work(&QsbrRcu, 40);
}

/// Readers come and go during the forks; the flavours that forget do.
#[test]
fn report_47_forks_while_others_read() {
    fn check<F: Flavor + Clone>(flavor: &F) {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        let outer = flavor.read();
                        thread::yield_now();
                        drop((flavor.read(), outer));
                        // A new thread, a new record.
                        if stop.load(Ordering::Relaxed) {
                            break;
                        }
                        let flavor = flavor.clone();
                        thread::spawn(move || drop(flavor.read()))
                            .join()
                            .expect("a thread");
                    }
                });
            }
            let finish = SetWhenDropped(&stop);
            let mut outcome = Ok(());
            for _ in 0..40 {
                outcome = outcome.and_then(|()| {
                    in_child(|| {
                        use_everything(flavor);
                        in_child(|| use_everything(flavor)).expect("second level");
                    })
                });
            }
            drop(finish);
            outcome.expect("a child that waited for a vanished reader");
        });
        flavor.synchronize();
    }
    check(&ThreadRcu);
    check(&QsbrRcu);
}

/// The smoke suite in a child whose parent has run it.
#[test]
fn report_47_the_smoke_suite_in_a_child() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let _ = rcu_smoke::run(2, 200);
    in_child(|| {
        let _ = rcu_smoke::run(2, 200);
        in_child(|| _ = rcu_smoke::run(2, 200)).expect("second level");
    })
    .expect("child");
}
