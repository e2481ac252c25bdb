//! Objects that were reclaimed too early, or retired while reachable.
//!
//! Bug log groups 3 and 9.

mod common;

use common::{Drops, holders, rounds};
use hp::{Atomic, Domain, Guard, HazardPointer, TimedOut};
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

/// Bug log 16: an inner protection that comes and goes does not end the outer
/// one.
#[test]
fn report_16_inner_guards_do_not_end_outer_ones() {
    let drops = Drops::new();
    let domain = Domain::new();
    let cell = Atomic::new(drops.value(1));
    let outer = cell.load().expect("a value");
    cell.take().expect("a value").retire_in(&domain);
    for n in 0..rounds(2000, 20) {
        let other = Atomic::new(drops.value(n));
        let inner = other.load().expect("a value");
        other.take().expect("a value").retire_in(&domain);
        assert_eq!(inner.get(), n);
        drop(inner);
        if n % 100 == 0 {
            domain.drain();
        }
    }
    domain.drain();
    assert_eq!(outer.get(), 1);
    assert_eq!(domain.stats().pending, 1);
    drop(outer);
    assert_eq!(domain.drain(), 1);
}

/// Bug log 19: a node whose payload was moved out.
#[test]
fn report_19_a_payload_that_was_moved_out() {
    struct Node {
        payload: ManuallyDrop<common::Counted>,
    }
    let drops = Drops::new();
    let domain = Domain::new();
    let node = Box::into_raw(Box::new(Node {
        payload: ManuallyDrop::new(drops.value(3)),
    }));
    // SAFETY: the payload is read once; its node does not drop it.
    let payload = unsafe { ManuallyDrop::take(&mut (*node).payload) };
    // SAFETY: from a box, never linked anywhere.
    unsafe { domain.retire_box(node) };
    assert_eq!(domain.drain(), 1);
    assert_eq!(drops.count(), 0);
    assert_eq!(payload.get(), 3);
    drop(payload);
    assert_eq!(drops.count(), 1);
}

/// Bug log 21: of three readers the middle one is active; waiting for its
/// object waits for it, and only for it.
#[test]
fn report_21_idle_readers_do_not_hide_an_active_one() {
    let drops = Drops::new();
    let cells: Arc<Vec<_>> = Arc::new((0..3).map(|n| Atomic::new(drops.value(n))).collect());
    let started = Arc::new(Barrier::new(4));
    let finish = Arc::new(Barrier::new(4));
    let readers: Vec<_> = (0..3)
        .map(|n| {
            let (cells, started, finish) = (
                Arc::clone(&cells),
                Arc::clone(&started),
                Arc::clone(&finish),
            );
            thread::spawn(move || {
                let guard = cells[n].load().expect("a value");
                let kept = (n == 1).then_some(guard);
                started.wait();
                finish.wait();
                kept.map(|guard| guard.get())
            })
        })
        .collect();
    started.wait();
    let mut taken: Vec<_> = cells
        .iter()
        .map(|cell| cell.take().expect("a value"))
        .collect();
    let brief = Duration::from_millis(1);
    let active = taken.remove(1);
    for idle in taken {
        assert!(idle.try_into_box(Duration::from_secs(60)).is_ok());
    }
    let active = active.try_into_box(brief).expect_err("protected");
    finish.wait();
    let seen: Vec<_> = readers
        .into_iter()
        .map(|reader| reader.join().expect("reader"))
        .collect();
    assert_eq!(seen, [None, Some(1), None]);
    assert_eq!(active.into_box().get(), 1);
}

/// Bug log 22 and 23: a protection is visible to a scan as soon as it exists,
/// also the first one of a thread and the first one in a record.
#[test]
fn report_22_23_a_scan_sees_every_new_protection() {
    for _ in 0..rounds(50, 3) {
        thread::spawn(|| {
            let cell = Atomic::new(5u64);
            let mut held: Vec<Guard<u64>> = Vec::new();
            for n in 1..=20 {
                held.push(cell.load().expect("a value"));
                assert_eq!(holders(held[0].as_ptr()), n);
            }
            let object = held[0].as_ptr();
            while held.pop().is_some() {
                assert_eq!(holders(object), held.len());
            }
            drop(cell.into_inner());
        })
        .join()
        .expect("reader");
    }
}

/// Bug log 24: the parent's deleter retires a child that somebody protects.
#[test]
fn report_24_a_child_outlives_its_parent() {
    struct Parent {
        child: Atomic<common::Counted>,
        _own: common::Counted,
    }
    let (children, parents) = (Drops::new(), Drops::new());
    let parent = Atomic::new(Parent {
        child: Atomic::new(children.value(8)),
        _own: parents.value(9),
    });
    let child = {
        let guard = parent.load().expect("a parent");
        guard.child.load().expect("a child")
    };
    parent.store(Parent {
        child: Atomic::null(),
        _own: parents.value(10),
    });
    Domain::global().drain();
    assert_eq!(parents.count(), 1);
    assert_eq!(children.count(), 0);
    assert_eq!(child.get(), 8);
    drop(child);
    Domain::global().drain();
    assert_eq!(children.count(), 1);
}

/// Bug log 25: a guard knows no domain; it holds whatever domain its object is
/// retired to.
#[test]
fn report_25_domains_cannot_be_mixed_up() {
    let drops = Drops::new();
    let domains = [Domain::new(), Domain::new(), Domain::manual()];
    let cells: Vec<_> = (0..4).map(|n| Atomic::new(drops.value(n))).collect();
    let guards: Vec<_> = cells
        .iter()
        .map(|cell| cell.load().expect("a value"))
        .collect();
    for (cell, domain) in cells.iter().zip(domains.iter().chain([Domain::global()])) {
        cell.take().expect("a value").retire_in(domain);
        domain.drain();
    }
    assert_eq!(drops.count(), 0);
    for (n, guard) in guards.iter().enumerate() {
        assert_eq!(guard.get(), n);
    }
    drop(guards);
    for domain in domains.iter().chain([Domain::global()]) {
        domain.drain();
    }
    assert_eq!(drops.count(), 4);
}

/// Bug log 26: a failed exchange gives back the box that it was given.
#[test]
fn report_26_a_failed_exchange_returns_the_new_box() {
    let drops = Drops::new();
    let cell = Atomic::new(drops.value(1));
    let other = Atomic::new(drops.value(2));
    let foreign = other.load();
    for expected in [None, foreign.as_ref()] {
        let new = Box::new(drops.value(3));
        let address: *const common::Counted = &raw const *new;
        let failed = cell
            .compare_exchange(expected, Some(new))
            .expect_err("the cell holds another value");
        let back = failed.new.expect("the box that was given");
        assert_eq!(&raw const *back, address);
        assert_eq!(back.get(), 3);
        let current = failed.current.expect("what the cell holds");
        assert_eq!(current.get(), 1);
        assert_eq!(
            current.as_ptr(),
            cell.load().expect("a value").as_ptr(),
            "the cell was not touched"
        );
    }
    assert_eq!(drops.count(), 2, "the two boxes that came back");
    drop(foreign);
    // An empty cell that should hold something, and the removal that fails.
    let empty = Atomic::null();
    let guard = cell.load();
    let failed = empty
        .compare_exchange(guard.as_ref(), Some(Box::new(drops.value(4))))
        .expect_err("empty");
    assert!(failed.current.is_none());
    assert_eq!(failed.new.expect("the box").get(), 4);
    assert!(empty.is_null());
    let failed = cell.compare_exchange(None, None).expect_err("not empty");
    assert!(failed.new.is_none());
    drop((guard, failed, cell, other));
    Domain::global().drain();
    assert_eq!(drops.count(), 5);
}

/// Bug log 26: the four exchanges that succeed.
#[test]
fn report_26_exchanges_that_succeed() {
    let drops = Drops::new();
    let cell = Atomic::null();
    let old = cell
        .compare_exchange(None, Some(Box::new(drops.value(1))))
        .expect("empty");
    assert!(old.is_none());
    let now = cell.load();
    let old = cell
        .compare_exchange(now.as_ref(), Some(Box::new(drops.value(2))))
        .expect("unchanged")
        .expect("the old value");
    assert_eq!(old.get(), 1);
    assert_eq!(
        old.try_into_box(Duration::ZERO).expect_err("guarded").get(),
        1
    );
    drop(now);
    let now = cell.load();
    let old = cell
        .compare_exchange(now.as_ref(), None)
        .expect("unchanged");
    drop(now);
    assert_eq!(old.expect("the old value").into_box().get(), 2);
    assert!(cell.compare_exchange(None, None).expect("empty").is_none());
    Domain::global().drain();
    assert_eq!(drops.count(), 2);
}

/// Bug log 27: the list of records grows while old threads hold theirs.
#[test]
fn report_27_records_stay_where_they_are() {
    let threads = rounds(64, 4);
    let drops = Drops::new();
    let domain = Domain::new();
    let cell = Arc::new(Atomic::new(drops.value(6)));
    let (all_hold, release) = (
        Arc::new(Barrier::new(threads + 1)),
        Arc::new(Barrier::new(threads + 1)),
    );
    let workers: Vec<_> = (0..threads)
        .map(|_| {
            let (cell, all_hold, release) = (
                Arc::clone(&cell),
                Arc::clone(&all_hold),
                Arc::clone(&release),
            );
            thread::spawn(move || {
                let mut held: Vec<_> = (0..20).map(|_| cell.load().expect("a value")).collect();
                held[0].detach();
                all_hold.wait();
                release.wait();
                assert!(held.iter().all(|guard| guard.get() == 6));
            })
        })
        .collect();
    all_hold.wait();
    let object = cell.load().expect("a value").as_ptr();
    assert_eq!(holders(object), threads * 20);
    cell.take().expect("a value").retire_in(&domain);
    assert_eq!(domain.drain(), 0);
    release.wait();
    for worker in workers {
        worker.join().expect("worker");
    }
    assert_eq!(holders(object), 0);
    assert_eq!(domain.drain(), 1);
}

/// Bug log 42: waiting for an address that the caller protects ends with an
/// error where a deadline is given.
#[test]
fn report_42_waiting_for_oneself_times_out() {
    let cell = Atomic::new(1u32);
    let guard = cell.load().expect("a value");
    let address = guard.as_ptr().cast();
    assert_eq!(
        hp::synchronize_timeout(address, Duration::from_millis(2)),
        Err(TimedOut)
    );
    assert_eq!(
        hp::synchronize_timeout(address, Duration::ZERO),
        Err(TimedOut)
    );
    drop(guard);
    assert_eq!(
        hp::synchronize_timeout(address, Duration::from_secs(600)),
        Ok(())
    );
    hp::synchronize(address);
}

/// Waiting for an address ends when its last guard goes, on whatever thread.
#[test]
fn synchronize_ends_when_the_last_guard_goes() {
    let cell = Atomic::new(11u32);
    let first = cell.load().expect("a value");
    let second = first.clone();
    let unlinked = cell.take().expect("a value");
    let address = first.as_ptr().cast::<()>().addr();
    let released = AtomicUsize::new(0);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            hp::synchronize(std::ptr::without_provenance(address));
            released.load(Ordering::SeqCst)
        });
        for guard in [first, second] {
            thread::sleep(Duration::from_millis(1));
            released.fetch_add(1, Ordering::SeqCst);
            drop(guard);
        }
        assert_eq!(waiter.join().expect("waiter"), 2);
    });
    assert_eq!(*unlinked.into_box(), 11);
}

/// Bug log 59: the same address with a new content. Readers must see what was
/// published last, not what they read before at that address.
#[test]
fn report_59_a_reused_address_shows_the_new_content() {
    let block = Box::into_raw(Box::new(AtomicUsize::new(0)));
    let source = AtomicPtr::new(block);
    let mut hazard = HazardPointer::new();
    for n in 0..rounds(5000, 50) {
        let got = hazard.protect(&source);
        assert_eq!(got, block);
        // SAFETY: protected, and freed below only.
        assert_eq!(unsafe { (*got).load(Ordering::Relaxed) }, n);
        hazard.reset();
        source.store(std::ptr::null_mut(), Ordering::Release);
        assert!(hazard.protect(&source).is_null());
        hp::synchronize(block.cast_const().cast());
        // SAFETY: unlinked and waited for: this thread's alone. A new value at
        // the same address, as an allocator would place it.
        unsafe { std::ptr::write(block, AtomicUsize::new(n + 1)) };
        source.store(block, Ordering::Release);
    }
    drop(hazard);
    // SAFETY: the loop is over and nobody protects it.
    drop(unsafe { Box::from_raw(block) });
}

/// Bug log 59, with readers on another thread: a protected value never changes
/// under its reader although its address comes back all the time.
#[test]
fn report_59_readers_of_a_recycled_block() {
    const SLOTS: usize = 2;
    let blocks: [AtomicPtr<[AtomicUsize; 2]>; SLOTS] = std::array::from_fn(|_| {
        AtomicPtr::new(Box::into_raw(Box::new([
            AtomicUsize::new(0),
            AtomicUsize::new(0),
        ])))
    });
    let source = AtomicPtr::new(blocks[0].load(Ordering::Relaxed));
    let stop = AtomicBool::new(false);
    let reads = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut hazard = HazardPointer::new();
                while !stop.load(Ordering::Relaxed) {
                    let got = hazard.protect(&source);
                    // SAFETY: protected; blocks are recycled only after a wait.
                    let pair = unsafe { &*got };
                    let first = pair[0].load(Ordering::Relaxed);
                    std::hint::spin_loop();
                    let second = pair[1].load(Ordering::Relaxed);
                    assert_eq!(first, second, "recycled under a reader");
                    hazard.reset();
                    reads.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for n in 1..rounds(1000, 30) {
            let next = blocks[n % SLOTS].load(Ordering::Relaxed);
            // SAFETY: never freed before the scope ends, unlinked since the
            // round before last, and waited for then.
            let pair = unsafe { &*next };
            pair[0].store(n, Ordering::Relaxed);
            pair[1].store(n, Ordering::Relaxed);
            let old = source.swap(next, Ordering::AcqRel);
            hp::synchronize(old.cast_const().cast());
        }
        while reads.load(Ordering::Relaxed) == 0 {
            thread::yield_now();
        }
        stop.store(true, Ordering::Relaxed);
    });
    for block in blocks {
        // SAFETY: from a box; all threads are gone.
        drop(unsafe { Box::from_raw(block.into_inner()) });
    }
}

/// Bug log 65: guards that are forgotten by the thousand, clones among them.
#[test]
#[cfg_attr(miri, ignore = "leaks by intent")]
fn report_65_forgotten_clones() {
    let drops = Drops::new();
    let domain = Domain::new();
    let cell = Atomic::new(drops.value(1));
    let mut guard = cell.load().expect("a value");
    guard.detach();
    for _ in 0..70_000 {
        std::mem::forget(guard.clone());
    }
    let object = guard.as_ptr();
    cell.take().expect("a value").retire_in(&domain);
    drop(guard);
    assert_eq!(domain.drain(), 0, "kept by the forgotten clones");
    assert_eq!(holders(object), 1, "one slot for all of them");
}
