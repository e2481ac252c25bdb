//! Garbage that is lost or late when a thread, a structure or a domain goes,
//! and everything that runs while a thread is being torn down.
//!
//! Bug log groups 1 and 2.

mod common;

use common::{Drops, drain_global_until, holders, retire, rounds};
use hp::{Atomic, Domain, Guard, HazardPointer};
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

/// Bug log 1: nobody comes by any more after the structure went.
#[test]
fn report_1_dropping_a_domain_drops_its_garbage() {
    let drops = Drops::new();
    let domain = Domain::new();
    for n in 0..3 {
        retire(&domain, drops.value(n));
    }
    assert_eq!(drops.count(), 0, "below the threshold nothing happens");
    drop(domain);
    assert_eq!(drops.count(), 3);
}

/// Bug log 1: one drain is enough.
#[test]
fn report_1_one_drain_drops_everything() {
    let drops = Drops::new();
    let domain = Domain::new();
    for n in 0..3 {
        retire(&domain, drops.value(n));
    }
    assert_eq!(domain.drain(), 3);
    assert_eq!(drops.count(), 3);
    let stats = domain.stats();
    assert_eq!((stats.retired, stats.reclaimed, stats.pending), (3, 3, 0));
}

/// Bug log 1: the values of a dropped structure of cells.
#[test]
fn report_1_cells_of_a_dropped_structure() {
    struct Table {
        rows: Vec<Atomic<common::Counted>>,
    }
    let drops = Drops::new();
    let table = Table {
        rows: (0..5).map(|n| Atomic::new(drops.value(n))).collect(),
    };
    table.rows[0].store(drops.value(9));
    drop(table.rows[1].take());
    drop(table);
    drain_global_until(|| drops.count() == 6);
    assert_eq!(drops.count(), 6);
}

/// Bug log 1: the domain goes from inside a deleter of another domain.
#[test]
fn report_1_a_domain_dropped_by_a_deleter() {
    let drops = Drops::new();
    let inner = Domain::new();
    for n in 0..3 {
        retire(&inner, drops.value(n));
    }
    let outer = Domain::new();
    retire(&outer, inner);
    outer.drain();
    drain_global_until(|| drops.count() == 3);
    assert_eq!(drops.count(), 3);
}

/// Bug log 1, inside the global domain: the objects were retired before the
/// drain began, so it must not return before they are gone.
#[test]
fn report_1_a_domain_dropped_by_a_deleter_of_the_global_domain() {
    let drops = Drops::new();
    let inner = Domain::new();
    for n in 0..3 {
        retire(&inner, drops.value(n));
    }
    retire(Domain::global(), inner);
    drain_global_until(|| drops.count() == 3);
    assert_eq!(drops.count(), 3, "handed over and forgotten");
}

/// Bug log 2: what a thread that is gone retired.
#[test]
fn report_2_garbage_of_a_joined_thread() {
    let drops = Drops::new();
    let domain = Arc::new(Domain::new());
    let worker = {
        let (drops, domain) = (drops.clone(), Arc::clone(&domain));
        thread::spawn(move || retire(&domain, drops.value(1)))
    };
    worker.join().expect("worker");
    assert_eq!(domain.drain(), 1);
    assert_eq!(drops.count(), 1);
}

/// Bug log 4: a drain that meets retirers who are leaving returns, and
/// nothing is lost.
#[test]
fn report_4_drain_against_threads_that_leave() {
    let drops = Drops::new();
    let domain = Arc::new(Domain::new());
    let threads = rounds(64, 4);
    let each = rounds(50, 5);
    for _ in 0..threads / 4 {
        let workers: Vec<_> = (0..4)
            .map(|_| {
                let (drops, domain) = (drops.clone(), Arc::clone(&domain));
                thread::spawn(move || {
                    for n in 0..each {
                        retire(&domain, drops.value(n));
                    }
                })
            })
            .collect();
        domain.drain();
        for worker in workers {
            worker.join().expect("worker");
        }
    }
    domain.drain();
    assert_eq!(drops.count(), threads / 4 * 4 * each);
    assert_eq!(domain.stats().pending, 0);
}

/// Bug log 6: every kind of guard protects, and every kind lets go.
#[test]
fn report_6_every_kind_of_guard_protects_and_lets_go() {
    fn check(name: &str, make: impl FnOnce(&Atomic<common::Counted>) -> Box<dyn std::any::Any>) {
        let drops = Drops::new();
        let domain = Domain::new();
        let cell = Atomic::new(drops.value(7));
        let guard = make(&cell);
        cell.take().expect("a value").retire_in(&domain);
        assert_eq!(domain.drain(), 0, "{name}: freed while protected");
        assert_eq!(drops.count(), 0, "{name}: freed while protected");
        drop(guard);
        assert_eq!(domain.drain(), 1, "{name}: kept for ever");
        assert_eq!(drops.count(), 1, "{name}: dropped once");
    }
    check("load", |cell| Box::new(cell.load()));
    check("ninth", |cell| {
        Box::new((0..9).map(|_| cell.load()).collect::<Vec<_>>())
    });
    check("seventeenth", |cell| {
        Box::new((0..17).map(|_| cell.load()).collect::<Vec<_>>())
    });
    check("detached", |cell| {
        let mut guard = cell.load();
        guard.as_mut().expect("a value").detach();
        Box::new(guard)
    });
    check("clone, original gone", |cell| Box::new(cell.load().clone()));
    check("clone of a detached guard", |cell| {
        let mut guard = cell.load().expect("a value");
        guard.detach();
        Box::new(guard.clone())
    });
    check("mapped", |cell| {
        Box::new(cell.load().map(|guard| guard.map(|_| &())))
    });
    check("hazard pointer", |cell| {
        let guard = cell.load().expect("a value");
        let mut hazard = HazardPointer::new();
        hazard.protect_raw(guard.as_ptr().cast());
        drop(guard);
        Box::new(hazard)
    });
}

/// Bug log 7: what a deleter retires during the drain goes in the same drain.
#[test]
fn report_7_a_deleter_that_retires_one_more() {
    let drops = Drops::new();
    let domain = Arc::new(Domain::new());
    let outer = {
        let (drops, domain) = (drops.clone(), Arc::downgrade(&domain));
        common::OnDrop(move || {
            if let Some(domain) = domain.upgrade() {
                retire(&domain, drops.value(2));
            }
        })
    };
    retire(&domain, outer);
    assert_eq!(domain.drain(), 2);
    assert_eq!(drops.count(), 1);
}

thread_local! {
    static LATE: RefCell<Option<LateUser>> = const { RefCell::new(None) };
    static KEPT: RefCell<Option<Guard<common::Counted>>> = const { RefCell::new(None) };
}

/// Uses everything there is while its thread is being torn down.
struct LateUser {
    drops: Drops,
    ran: Arc<AtomicBool>,
}

impl Drop for LateUser {
    fn drop(&mut self) {
        let cell = Atomic::new(self.drops.value(3));
        let guards: Vec<_> = (0..12).map(|_| cell.load().expect("a value")).collect();
        let mut detached = cell.load().expect("a value");
        detached.detach();
        let clone = detached.clone();
        cell.store(self.drops.value(4));
        assert!(guards.iter().all(|guard| guard.get() == 3));
        assert_eq!(clone.get(), 3);
        let hazard = HazardPointer::new();
        drop((hazard, guards, detached, clone, cell));
        Domain::global().drain();
        self.ran.store(true, Ordering::SeqCst);
    }
}

/// Bug log 9 and 10: destructors of thread-locals, registered before or after
/// the library's own, on two threads at once.
#[test]
fn report_9_10_thread_locals_in_both_orders() {
    for library_first in [false, true] {
        let drops = Drops::new();
        let ran = [Arc::new(AtomicBool::new(false)), Arc::default()];
        let workers: Vec<_> = ran
            .iter()
            .map(|ran| {
                let user = LateUser {
                    drops: drops.clone(),
                    ran: Arc::clone(ran),
                };
                thread::spawn(move || {
                    // A hazard pointer is what registers the library's own.
                    if library_first {
                        drop(HazardPointer::new());
                        LATE.set(Some(user));
                    } else {
                        LATE.set(Some(user));
                        drop(HazardPointer::new());
                    }
                })
            })
            .collect();
        for worker in workers {
            worker.join().expect("teardown does not panic");
        }
        assert!(ran.iter().all(|ran| ran.load(Ordering::SeqCst)));
        drain_global_until(|| drops.count() == 4);
        assert_eq!(drops.count(), 4, "library first: {library_first}");
    }
}

/// Bug log 9: a guard in a thread-local, dropped by the teardown.
#[test]
fn report_9_a_guard_kept_in_a_thread_local() {
    for (library_first, overflow) in [(false, false), (false, true), (true, false), (true, true)] {
        let drops = Drops::new();
        let domain = Domain::new();
        let cell = Arc::new(Atomic::new(drops.value(5)));
        let worker = {
            let cell = Arc::clone(&cell);
            thread::spawn(move || {
                if library_first {
                    drop(HazardPointer::new());
                }
                KEPT.set(cell.load());
                if overflow {
                    KEPT.with_borrow_mut(|kept| kept.as_mut().expect("a value").detach());
                }
            })
        };
        worker.join().expect("worker");
        cell.take().expect("a value").retire_in(&domain);
        assert_eq!(domain.drain(), 1, "the guard went with its thread");
        assert_eq!(drops.count(), 1);
    }
}

/// Bug log 10: the destructor of a `pthread_key`, which runs after all of the
/// standard library's thread-locals.
#[cfg(unix)]
#[test]
fn report_10_a_pthread_key_destructor() {
    use std::sync::atomic::AtomicUsize;
    static RUNS: AtomicUsize = AtomicUsize::new(0);

    extern "C" fn destructor(value: *mut libc::c_void) {
        // SAFETY: the thread below put a leaked box here, once.
        let drops = unsafe { Box::from_raw(value.cast::<Drops>()) };
        let cell = Atomic::new(drops.value(1));
        let guards: Vec<_> = (0..12).map(|_| cell.load()).collect();
        cell.store(drops.value(2));
        drop(guards);
        drop(cell);
        Domain::global().drain();
        RUNS.fetch_add(1, Ordering::SeqCst);
    }

    let drops = Drops::new();
    let mut key: libc::pthread_key_t = 0;
    // SAFETY: `key` is written; the destructor is a static function.
    let made = unsafe { libc::pthread_key_create(&raw mut key, Some(destructor)) };
    assert_eq!(made, 0);
    for used_before in [false, true] {
        let value = AssertSend(Box::into_raw(Box::new(drops.clone())));
        thread::spawn(move || {
            let value = value;
            if used_before {
                drop(HazardPointer::new());
            }
            // SAFETY: the key exists; its destructor takes the box over.
            assert_eq!(unsafe { libc::pthread_setspecific(key, value.0.cast()) }, 0);
        })
        .join()
        .expect("worker");
    }
    // `join` returns when the thread is gone for the kernel, hence after its
    // key destructors.
    assert_eq!(RUNS.load(Ordering::SeqCst), 2);
    drain_global_until(|| drops.count() == 4);
    assert_eq!(drops.count(), 4);
    // SAFETY: no thread uses the key any more.
    unsafe { libc::pthread_key_delete(key) };
}

#[cfg(unix)]
struct AssertSend(*mut Drops);
// SAFETY: `Drops` is `Send`, and the pointer is its only owner.
#[cfg(unix)]
unsafe impl Send for AssertSend {}

/// Bug log 11: made on one thread, dropped on one that never used the library.
#[test]
fn report_11_a_guard_dropped_by_a_stranger() {
    let drops = Drops::new();
    let domain = Domain::new();
    let cell = Atomic::new(drops.value(1));
    let guard = cell.load().expect("a value");
    let mut detached = guard.clone();
    detached.detach();
    let address = guard.as_ptr();
    cell.take().expect("a value").retire_in(&domain);
    let clones: Vec<_> = (0..3).map(|_| detached.clone()).collect();
    thread::spawn(move || {
        assert_eq!(guard.get(), 1);
        drop(guard);
        drop(detached);
        drop(clones);
    })
    .join()
    .expect("stranger");
    assert_eq!(holders(address), 0);
    assert_eq!(domain.drain(), 1);
    assert_eq!(drops.count(), 1);
}

/// Bug log 13: the guard outlives the cell and every domain it could know.
#[test]
fn report_13_a_guard_outlives_cell_and_domain() {
    let drops = Drops::new();
    let domain = Domain::new();
    let cell = Atomic::new(drops.value(1));
    let guard = cell.load().expect("a value");
    cell.take().expect("a value").retire_in(&domain);
    drop(cell);
    drop(domain);
    assert_eq!(guard.get(), 1, "handed to the global domain, alive");
    assert_eq!(drops.count(), 0);
    drain_global_until(|| drops.count() == 0);
    assert_eq!(drops.count(), 0, "still protected");
    drop(guard);
    drain_global_until(|| drops.count() == 1);
    assert_eq!(drops.count(), 1);
}

/// Bug log 14: a record that a dead thread left with a held slot is not the
/// next thread's to free.
#[test]
fn report_14_a_record_changes_hands_with_a_held_slot() {
    let drops = Drops::new();
    let domain = Domain::new();
    let cell = Arc::new(Atomic::new(drops.value(1)));
    let (send, receive) = mpsc::channel();
    {
        let cell = Arc::clone(&cell);
        thread::spawn(move || {
            let mut guard = cell.load().expect("a value");
            guard.detach();
            send.send(guard).expect("main waits");
        })
        .join()
        .expect("first owner");
    }
    let kept = receive.recv().expect("a guard");
    cell.take().expect("a value").retire_in(&domain);
    for _ in 0..rounds(20, 3) {
        thread::spawn(|| {
            let mut hazards = HazardPointer::array::<9>();
            for hazard in &mut hazards {
                hazard.reset();
            }
        })
        .join()
        .expect("next owner");
        assert_eq!(domain.drain(), 0);
        assert_eq!(kept.get(), 1);
    }
    drop(kept);
    assert_eq!(domain.drain(), 1);
}

/// A forgotten guard keeps its object for ever, and nothing else. (Miri calls
/// the kept object a leak, which is what this is about.)
#[test]
#[cfg_attr(miri, ignore = "leaks by intent")]
fn a_forgotten_guard_keeps_its_object_only() {
    let drops = Drops::new();
    let domain = Domain::new();
    let cell = Atomic::new(drops.value(1));
    let forgotten = cell.load().expect("a value");
    let object = forgotten.as_ptr();
    std::mem::forget(forgotten);
    cell.take().expect("a value").retire_in(&domain);
    for n in 0..100 {
        let cell = Atomic::new(drops.value(n));
        let guard = cell.load().expect("a value");
        cell.take().expect("a value").retire_in(&domain);
        drop(guard);
    }
    assert_eq!(domain.drain(), 100);
    assert_eq!(drops.count(), 100);
    assert_eq!(domain.stats().pending, 1);
    assert_eq!(holders(object), 1);
    drop(domain);
    assert_eq!(drops.count(), 100, "handed over, still kept");
}
