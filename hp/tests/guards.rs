//! What a guard is: clones, moves, parts, and what unlinked values allow.

mod common;

use common::{Drops, OnDrop, holders, retire, rounds};
use hp::{Atomic, Domain, Guard};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// Clones go in every order, on two threads; the object goes with the last.
#[test]
fn clones_go_in_every_order() {
    let orders: [[usize; 3]; 6] = [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ];
    for detach_first in [false, true] {
        for order in orders {
            let drops = Drops::new();
            let domain = Domain::new();
            let cell = Atomic::new(drops.value(4));
            let mut first = cell.load().expect("a value");
            if detach_first {
                first.detach();
            }
            let second = first.clone();
            let third = second.clone();
            let mut guards = [Some(first), Some(second), Some(third)];
            cell.take().expect("a value").retire_in(&domain);
            for (n, which) in order.into_iter().enumerate() {
                assert_eq!(domain.drain(), 0, "{order:?} after {n}");
                let guard = guards[which].take().expect("not yet gone");
                if n == 1 {
                    thread::spawn(move || assert_eq!(guard.get(), 4))
                        .join()
                        .expect("other thread");
                }
            }
            assert_eq!(domain.drain(), 1, "{order:?}");
            assert_eq!(drops.count(), 1);
        }
    }
}

/// Clones of one slot made and dropped by two threads at once.
#[test]
fn clones_race_on_one_slot() {
    let drops = Drops::new();
    let domain = Domain::new();
    let cell = Atomic::new(drops.value(4));
    let mut first = cell.load().expect("a value");
    first.detach();
    let object = first.as_ptr().addr();
    cell.take().expect("a value").retire_in(&domain);
    thread::scope(|scope| {
        for _ in 0..2 {
            let mine = first.clone();
            scope.spawn(move || {
                for _ in 0..rounds(20_000, 50) {
                    let clone = mine.clone();
                    assert_eq!(clone.get(), 4);
                }
            });
        }
        assert_eq!(domain.drain(), 0);
        drop(first);
    });
    assert_eq!(holders(std::ptr::without_provenance::<()>(object)), 0);
    assert_eq!(domain.drain(), 1);
}

/// A protection that moves to an overflow slot is never absent.
#[test]
fn detaching_never_uncovers() {
    let drops = Drops::new();
    let domain = Domain::new();
    let stop = AtomicBool::new(false);
    let slot: Atomic<common::Counted> = Atomic::new(drops.value(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                if let Some(mut guard) = slot.load() {
                    let value = guard.get();
                    guard.detach();
                    assert_eq!(guard.get(), value);
                    let clone = guard.clone();
                    drop(guard);
                    assert_eq!(clone.get(), value);
                }
            }
        });
        for n in 1..rounds(3000, 20) {
            if let Some(old) = slot.swap(drops.value(n)) {
                old.retire_in(&domain);
            }
            domain.reclaim(usize::MAX);
        }
        stop.store(true, Ordering::Relaxed);
    });
    domain.drain();
    assert_eq!(drops.count(), rounds(3000, 20) - 1);
}

/// A mapped guard protects the whole, and is the part's guard.
#[test]
fn a_mapped_guard_keeps_the_whole() {
    let drops = Drops::new();
    let domain = Domain::new();
    let cell = Atomic::new((drops.value(1), vec![1u8, 2, 3]));
    let whole = cell.load().expect("a value");
    let address = whole.as_ptr();
    let part: Guard<[u8]> = whole.map(|pair| &pair.1[1..]);
    let clone = part.clone();
    cell.take().expect("a value").retire_in(&domain);
    // Two slots, or one that the clone shares.
    assert!((1..=2).contains(&holders(address)));
    drop(part);
    assert_eq!(holders(address), 1);
    assert_eq!(domain.drain(), 0);
    assert_eq!(&*clone, [2, 3]);
    drop(clone);
    assert_eq!(domain.drain(), 1);
    assert_eq!(drops.count(), 1);
}

/// Changing in place is refused while anybody looks, and only then.
#[test]
fn get_mut_waits_for_no_one_and_disturbs_no_one() {
    let mut cell = Atomic::new(5u32);
    let guard = cell.load().expect("a value");
    assert!(cell.get_mut().is_none(), "guarded");
    assert_eq!(*guard, 5);
    drop(guard);
    *cell.get_mut().expect("nobody looks") += 1;
    assert_eq!(*cell.load().expect("a value"), 6);
    assert!(Atomic::<u32>::null().get_mut().is_none());
    assert_eq!(cell.into_inner().as_deref(), Some(&6));
    assert!(Atomic::<u32>::null().into_inner().is_none());
}

/// What was unlinked can be read, waited for, or retired by being dropped.
#[test]
fn unlinked_values() {
    let drops = Drops::new();
    let cell = Atomic::new(drops.value(1));
    let guard = cell.load();
    let unlinked = cell.take().expect("a value");
    assert_eq!(unlinked.get(), 1, "readable while others hold it");
    let unlinked = unlinked
        .try_into_box(Duration::from_millis(1))
        .expect_err("guarded");
    drop(guard);
    let back = unlinked
        .try_into_box(Duration::from_secs(600))
        .expect("nobody holds it");
    assert_eq!(back.get(), 1);
    assert_eq!(drops.count(), 0);
    drop(back);
    assert_eq!(drops.count(), 1);
    // Dropping retires, and a guard still holds.
    let cell = Atomic::new(drops.value(2));
    let guard = cell.load().expect("a value");
    drop(cell.take());
    Domain::global().drain();
    assert_eq!(guard.get(), 2);
    drop(guard);
    Domain::global().drain();
    assert_eq!(drops.count(), 2);
    // Storing a box that came out of a cell.
    let cell = Atomic::new(drops.value(3));
    let back = cell.take().expect("a value").into_box();
    cell.store(back);
    assert_eq!(cell.load().expect("a value").get(), 3);
}

/// A deleter runs after the last guard is gone, never before.
#[test]
fn a_deleter_sees_no_guard_of_its_object() {
    let domain = Domain::new();
    let seen = Arc::new(AtomicUsize::new(usize::MAX));
    let cell: Atomic<OnDrop<_>> = {
        let seen = Arc::clone(&seen);
        Atomic::new(OnDrop(move || {
            seen.store(1, Ordering::SeqCst);
        }))
    };
    let guard = cell.load();
    cell.take().expect("a value").retire_in(&domain);
    retire(&domain, 0u8);
    assert_eq!(domain.drain(), 1);
    assert_eq!(seen.load(Ordering::SeqCst), usize::MAX);
    drop(guard);
    assert_eq!(domain.drain(), 1);
    assert_eq!(seen.load(Ordering::SeqCst), 1);
}

/// Found by reading: an exchange freed through the pointer of the guard that it
/// was given, which may be read through only. (Miri sees the difference.)
#[test]
fn an_exchange_frees_through_the_cells_own_pointer() {
    let drops = Drops::new();
    let domain = Domain::new();
    let cell = Atomic::new(drops.value(6));
    let same = cell.load().expect("a value").map(|whole| whole);
    let old = cell
        .compare_exchange(Some(&same), None)
        .expect("still the same value")
        .expect("a value");
    drop(same);
    old.retire_in(&domain);
    assert_eq!(domain.drain(), 1);
    assert!(cell.is_null());
}
