//! Threads that end: sections, handles and callbacks in destructors of
//! thread-locals, guards that are kept in thread-locals, records that others
//! take over.
//!
//! Bug log groups 1 and 2.

mod common;

use common::{Case, Drops, HANG, Reader, SHORT, flavours, rounds, within};
#[cfg(all(unix, not(miri)))]
use rcu_lite::ThreadRcu;
use rcu_lite::{Callbacks, QsbrRcu, Rcu, RcuCell, Timeout};
use std::any::Any;
use std::cell::RefCell;
use std::sync::{Arc, mpsc};
use std::thread;

flavours!(
    report_9_10_everything_in_a_destructor,
    report_9_10_a_destructor_is_the_first_use,
    report_2_threads_that_end_with_callbacks_queued,
    report_13_a_guard_kept_until_after_the_librarys_own_end,
    report_13_a_guard_kept_until_before_it,
    report_14_records_of_threads_that_ended,
);

thread_local! {
    /// Runs what is in it when the thread ends.
    static LAST: RefCell<Option<Last>> = const { RefCell::new(None) };
    /// Keeps what is in it until the thread ends.
    static KEPT: RefCell<Vec<Box<dyn Any>>> = const { RefCell::new(Vec::new()) };
}

struct Last(Option<Box<dyn FnOnce()>>);

impl Drop for Last {
    fn drop(&mut self) {
        if let Some(f) = self.0.take() {
            f();
        }
    }
}

fn at_the_end(f: impl FnOnce() + 'static) {
    LAST.set(Some(Last(Some(Box::new(f)))));
}

/// Bug log 9 and 10: the library's own thread-local is there before or after
/// the destructor's, so it ends after or before it.
fn report_9_10_everything_in_a_destructor<F: Case>() {
    let rcu = F::alone();
    for library_first in [true, false] {
        let drops = Drops::new();
        let cell = Arc::new(RcuCell::new_in(drops.value(0), rcu.clone()));
        let (flavor, made) = (rcu.clone(), drops.clone());
        within("a thread's end", move || {
            let (f, c, d) = (flavor.clone(), Arc::clone(&cell), made.clone());
            let last = move || {
                for n in 1..=3 {
                    let outer = f.read();
                    let inner = f.read();
                    assert_eq!(c.load(&outer).get(), n - 1);
                    c.replace(d.value(n));
                    drop(outer);
                    let seen = c.load(&inner);
                    assert_eq!(
                        f.synchronize_timeout_elsewhere(),
                        Err(Timeout::ReadersRemain)
                    );
                    assert_eq!(seen.get(), n);
                    if F::PANICS_INSIDE {
                        let said = common::message(|| f.synchronize());
                        assert!(said.contains("it would wait for itself"), "{said}");
                    }
                    drop(inner);
                    assert_eq!(f.synchronize_timeout(HANG), Ok(()));
                    f.synchronize();
                }
                c.update(|old| d.value(old.get() + 1));
                f.barrier();
                assert_eq!(d.count(), 4);
            };
            if library_first {
                drop(flavor.read());
                at_the_end(last);
            } else {
                at_the_end(last);
                drop(flavor.read());
            }
        });
        rcu.barrier();
        assert_eq!(drops.count(), 5, "library first: {library_first}");
    }
}

trait Elsewhere {
    fn synchronize_timeout_elsewhere(&self) -> Result<(), Timeout>;
}

impl<F: Case> Elsewhere for F {
    fn synchronize_timeout_elsewhere(&self) -> Result<(), Timeout> {
        let flavor = self.clone();
        within("a timeout", move || flavor.synchronize_timeout(SHORT))
    }
}

/// Bug log 10: the thread's first use of the library is in a destructor.
fn report_9_10_a_destructor_is_the_first_use<F: Case>() {
    let rcu = F::alone();
    let drops = Drops::new();
    let cell = Arc::new(RcuCell::new_in(drops.value(0), rcu.clone()));
    for n in 1..=rounds(20, 2) {
        let (f, c, d) = (rcu.clone(), Arc::clone(&cell), drops.clone());
        within("a thread's end", move || {
            at_the_end(move || {
                let guard = f.read();
                let seen = c.load(&guard);
                c.replace(d.value(n));
                assert_eq!(seen.get(), n - 1);
                drop(guard);
                f.call(|| ());
            });
        });
        assert_eq!(
            rcu.synchronize_timeout(HANG),
            Ok(()),
            "nobody is left inside"
        );
    }
    rcu.barrier();
    assert_eq!(drops.count(), rounds(20, 2));
}

/// Bug log 2: what a thread that is gone queued.
fn report_2_threads_that_end_with_callbacks_queued<F: Case>() {
    let rcu = F::alone();
    for mode in common::modes() {
        rcu.only(mode);
        let drops = Drops::new();
        let reader = Reader::inside(&rcu.flavor);
        for _ in 0..4 {
            let (flavor, drops) = (rcu.clone(), drops.clone());
            let thread = thread::spawn(move || {
                for n in 0..25 {
                    drop(flavor.read());
                    flavor.defer_drop(Box::new(drops.value(n)));
                }
            });
            thread.join().expect("a thread");
        }
        assert_eq!(drops.count(), 0);
        reader.leave();
        rcu.barrier();
        assert_eq!(drops.count(), 100, "{mode:?}");
    }
}

/// A thread that keeps a guard in a thread-local and ends.
fn keep<F: Case>(rcu: &F, library_first: bool) {
    let drops = Drops::new();
    let cell = Arc::new(RcuCell::new_in(drops.value(1), rcu.clone()));
    let (entered, inside) = mpsc::channel();
    let (go, gone) = mpsc::channel::<()>();
    let (ending, end) = mpsc::channel();
    let flavor = rcu.clone();
    let keeper = thread::spawn({
        let cell = Arc::clone(&cell);
        move || {
            if library_first {
                // `KEPT` ends first.
                drop(flavor.read());
                KEPT.with_borrow_mut(Vec::clear);
            } else {
                KEPT.with_borrow_mut(Vec::clear);
                drop(flavor.read());
            }
            // The cell and the flavour, alive for as long as the guard.
            let leaked = Box::into_raw(Box::new(flavor));
            // SAFETY: freed by `Kept`, behind the guard.
            let flavor: &'static F = unsafe { &*leaked };
            let guard = flavor.read();
            let seen: *const common::Counted = cell.load(&guard);
            entered.send(()).expect("the test");
            // Dropped in this order.
            struct Kept<F: Case> {
                guard: Option<F::Guard<'static>>,
                seen: *const common::Counted,
                flavor: *mut F,
                ending: mpsc::Sender<()>,
                gone: mpsc::Receiver<()>,
            }
            impl<F: Case> Drop for Kept<F> {
                fn drop(&mut self) {
                    self.ending.send(()).expect("the test");
                    let _ = self.gone.recv();
                    // SAFETY: loaded inside the section that `guard` is.
                    assert_eq!(unsafe { (*self.seen).get() }, 1);
                    // SAFETY: leaked by the thread, freed below.
                    let flavor = unsafe { &*self.flavor };
                    // Another section, while this one is there.
                    drop(flavor.read());
                    // SAFETY: as above.
                    assert_eq!(unsafe { (*self.seen).get() }, 1);
                    drop(self.guard.take());
                    drop(flavor.read());
                    // SAFETY: from a box; its last borrower is gone.
                    drop(unsafe { Box::from_raw(self.flavor) });
                }
            }
            KEPT.with_borrow_mut(|kept| {
                kept.push(Box::new(Kept {
                    guard: Some(guard),
                    seen,
                    flavor: leaked,
                    ending,
                    gone,
                }));
            });
        }
    });
    inside.recv_timeout(HANG).expect("inside");
    cell.replace(drops.value(2));
    end.recv_timeout(HANG).expect("the thread's end");
    // The thread is being torn down, and its section is what it was.
    let cookie = rcu.start_poll();
    assert_eq!(rcu.synchronize_timeout(SHORT), Err(Timeout::ReadersRemain));
    // A new thread does not take over what the guard needs.
    let second = Reader::inside(rcu);
    second.leave();
    assert!(!rcu.poll(&cookie));
    assert_eq!(drops.count(), 0);
    drop(go);
    keeper.join().expect("keeper");
    assert_eq!(rcu.synchronize_timeout(HANG), Ok(()));
    rcu.barrier();
    assert_eq!(drops.count(), 1);
}

fn report_13_a_guard_kept_until_before_it<F: Case>() {
    let rcu = F::alone();
    for _ in 0..3 {
        keep(&rcu.flavor, true);
    }
}

fn report_13_a_guard_kept_until_after_the_librarys_own_end<F: Case>() {
    let rcu = F::alone();
    for _ in 0..3 {
        keep(&rcu.flavor, false);
    }
}

/// Bug log 14: a thread at the same place as one that ended owns nothing of
/// its; grace periods do not wait for those who are gone.
fn report_14_records_of_threads_that_ended<F: Case>() {
    let rcu = F::alone();
    for _ in 0..rounds(200, 4) {
        let flavor = rcu.clone();
        let thread = thread::spawn(move || {
            let guard = flavor.read();
            drop(flavor.read());
            drop(guard);
        });
        thread.join().expect("a thread");
        assert_eq!(rcu.synchronize_timeout(HANG), Ok(()));
    }
    let reader = Reader::inside(&rcu.flavor);
    assert_eq!(rcu.synchronize_timeout(SHORT), Err(Timeout::ReadersRemain));
    reader.leave();
}

/// A handle that is kept in a thread-local; offline there while another thread
/// comes and goes.
#[test]
fn report_13_an_online_handle_kept_in_a_thread_local() {
    struct Kept(Option<rcu_lite::qsbr::Online>, &'static str);
    impl Drop for Kept {
        fn drop(&mut self) {
            let mut online = self.0.take().expect("a handle");
            assert!(online.quiescent_state(), "{}", self.1);
            let timeout = QsbrRcu.synchronize_timeout_elsewhere();
            assert_eq!(timeout, Err(Timeout::ReadersRemain), "{}", self.1);
            // Somebody else comes while this one is offline, and stays.
            let other = online.offline(|| Reader::inside(&QsbrRcu));
            assert!(online.quiescent_state(), "{}: a record of its own", self.1);
            other.leave();
            assert!(online.quiescent_state(), "{}", self.1);
            let timeout = QsbrRcu.synchronize_timeout_elsewhere();
            assert_eq!(timeout, Err(Timeout::ReadersRemain), "{}", self.1);
            online.synchronize();
            drop(online);
            assert_eq!(QsbrRcu.synchronize_timeout_elsewhere(), Ok(()));
        }
    }
    let _alone = QsbrRcu::alone();
    for (library_first, name) in [(true, "ends first"), (false, "ends last")] {
        let thread = thread::spawn(move || {
            if library_first {
                drop(QsbrRcu.online());
            }
            KEPT.with_borrow_mut(Vec::clear);
            let online = QsbrRcu.online();
            KEPT.with_borrow_mut(|kept| kept.push(Box::new(Kept(Some(online), name))));
        });
        thread.join().expect("a thread");
    }
    assert_eq!(QsbrRcu.synchronize_timeout(HANG), Ok(()));
}

/// A handle that is made in a thread's teardown: it announces, goes offline
/// and waits as any other.
#[test]
fn report_10_an_online_handle_made_in_a_destructor() {
    let _alone = QsbrRcu::alone();
    for library_first in [true, false] {
        within("a thread's end", move || {
            let last = move || {
                let mut online = QsbrRcu.online();
                assert!(common::message(|| QsbrRcu.synchronize()).contains("online"));
                let timeout = QsbrRcu.synchronize_timeout_elsewhere();
                assert_eq!(timeout, Err(Timeout::ReadersRemain));
                assert!(online.quiescent_state());
                online.synchronize();
                online.offline(|| QsbrRcu.barrier());
                assert!(common::message(|| QsbrRcu.synchronize()).contains("online"));
                let timeout = QsbrRcu.synchronize_timeout_elsewhere();
                assert_eq!(timeout, Err(Timeout::ReadersRemain));
                drop(online);
                QsbrRcu.synchronize();
            };
            if library_first {
                drop(QsbrRcu.online());
                at_the_end(last);
            } else {
                at_the_end(last);
                drop(QsbrRcu.online());
            }
        });
    }
    assert_eq!(QsbrRcu.synchronize_timeout(HANG), Ok(()));
}

/// Domains that end in a thread's end.
#[test]
fn report_1_a_domain_in_a_thread_local() {
    let drops = Drops::new();
    let made = drops.clone();
    within("a thread's end", move || {
        let rcu = Rcu::with_callbacks(Callbacks::Manual);
        for n in 0..10 {
            rcu.defer_drop(Box::new(made.value(n)));
        }
        drop(rcu.read());
        at_the_end(move || drop(rcu));
    });
    assert_eq!(drops.count(), 10);
}

/// Bug log 10: after all thread-locals, in the destructor of a `pthread_key`.
#[test]
#[cfg(all(unix, not(miri)))]
fn report_10_in_a_pthread_key_destructor() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static DONE: AtomicUsize = AtomicUsize::new(0);
    extern "C" fn last(_: *mut libc::c_void) {
        fn use_everything<F: Case>(flavor: &F) {
            let outer = flavor.read();
            drop(flavor.read());
            flavor.call(|| {
                DONE.fetch_add(1, Ordering::SeqCst);
            });
            drop(outer);
            flavor.synchronize();
        }
        use_everything(&Rcu::global());
        use_everything(&ThreadRcu);
        use_everything(&QsbrRcu);
    }
    let (_r, _t, _q) = (
        <&'static Rcu>::alone(),
        ThreadRcu::alone(),
        QsbrRcu::alone(),
    );
    let mut key = 0;
    // SAFETY: `key` is written; `last` is a static function.
    let made = unsafe { libc::pthread_key_create(&raw mut key, Some(last)) };
    assert_eq!(made, 0);
    for used_before in [false, true] {
        let thread = thread::spawn(move || {
            // SAFETY: the key exists; the value only has to be other than null.
            unsafe { libc::pthread_setspecific(key, (&raw const DONE).cast()) };
            if used_before {
                drop((Rcu::global().read(), ThreadRcu.read(), QsbrRcu.read()));
            }
        });
        thread.join().expect("a thread");
    }
    Rcu::global().barrier();
    ThreadRcu.barrier();
    QsbrRcu.barrier();
    assert_eq!(DONE.load(Ordering::SeqCst), 6);
}
