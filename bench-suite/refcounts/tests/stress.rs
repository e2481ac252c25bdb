//! Threads on each count, on every rung that can be forced here: each is a run
//! of this program of its own, because a rung is chosen once a process.

use refcounts::futex_ref::FutexRef;
use refcounts::percpu_ref::PercpuRef;
use refcounts::plain::{IncNotZero, Plain};
use refcounts::rcuref::RcuRef;
use refcounts::split::Slot;
use refcounts::{Thread, Tracker};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};

const THREADS: usize = 3;
/// Objects of each kind, one after the other.
const ROUNDS: usize = if cfg!(miri) { 4 } else { 150 };
/// Calls of each thread on an object.
const CALLS: usize = if cfg!(miri) { 8 } else { 400 };

/// One object a round. Threads get and put; half-way the initial reference
/// goes. Exactly one is the last, and nobody who has a reference meets a freed
/// object. (The memory lives on: freeing clears the canary.)
fn torture<T: Tracker>() {
    for round in 0..ROUNDS {
        let (tracker, alive) = (T::new(), AtomicBool::new(true));
        let (lasts, start) = (AtomicUsize::new(0), Barrier::new(THREADS + 1));
        let free_if = |last: bool| {
            if last {
                // Relaxed: what is tested is that the count orders it.
                assert!(alive.swap(false, Relaxed), "{}: freed twice", T::NAME);
                lasts.fetch_add(1, SeqCst);
            }
        };
        std::thread::scope(|scope| {
            for n in 0..THREADS {
                let (tracker, alive, start, free_if) = (&tracker, &alive, &start, &free_if);
                scope.spawn(move || {
                    let thread = Thread::at(n);
                    start.wait();
                    for call in 0..CALLS {
                        let Some(held) = tracker.try_get(&thread) else {
                            break;
                        };
                        assert!(alive.load(Relaxed), "{}: used after free", T::NAME);
                        let more = (call % 3 == 0).then(|| tracker.get(&thread)).flatten();
                        assert!(alive.load(Relaxed), "{}: used after free", T::NAME);
                        free_if(tracker.put(&thread, held));
                        if let Some(more) = more {
                            assert!(alive.load(Relaxed), "{}: used after free", T::NAME);
                            free_if(tracker.put(&thread, more));
                        }
                    }
                });
            }
            start.wait();
            for _ in 0..round % 7 {
                std::thread::yield_now();
            }
            free_if(tracker.kill(&Thread::at(THREADS)).expect("barrier"));
        });
        assert_eq!(lasts.load(SeqCst), 1, "{}", T::NAME);
        assert_eq!(tracker.count(), 0, "{}", T::NAME);
    }
}

#[test]
fn the_last_is_one_and_comes_last() {
    torture::<Plain>();
    torture::<IncNotZero>();
    torture::<RcuRef>();
    torture::<PercpuRef>();
    torture::<FutexRef>();
    torture::<Slot<()>>();
}

/// Switched there and back all the time, no reference is lost.
#[test]
fn percpu_ref_switched() {
    let (count, over) = (PercpuRef::new(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let users: Vec<_> = (0..THREADS)
            .map(|n| {
                let count = &count;
                scope.spawn(move || {
                    let (thread, other) = (Thread::at(n), Thread::at(n + 1));
                    for _ in 0..ROUNDS * CALLS / 4 {
                        count.get(&thread);
                        assert!(count.try_get_live(&other));
                        assert!(!count.put(&thread));
                        assert!(!count.put(&other));
                    }
                    // One each remains.
                    count.get(&thread);
                })
            })
            .collect();
        scope.spawn(|| {
            while !over.load(Relaxed) {
                count.switch_to_atomic().unwrap();
                count.switch_to_percpu();
                std::thread::yield_now();
            }
        });
        for user in users {
            user.join().unwrap();
        }
        over.store(true, Relaxed);
    });
    assert_eq!(count.count(), THREADS + 1);
    assert_eq!(count.kill(), Ok(false));
    for n in 0..THREADS {
        assert_eq!(count.put(&Thread::at(9)), n == THREADS - 1);
    }
}

/// Tables are replaced all the time; who gets one finds its contents.
#[test]
fn futex_ref_replaced() {
    const MOVED: usize = usize::MAX;
    let count = FutexRef::new();
    // Places are used alternately: each holds its table's number.
    let places = [AtomicUsize::new(0), AtomicUsize::new(MOVED)];
    let pivot = || {
        count.pivot(|from, to| {
            assert_eq!(places[from & 1].swap(MOVED, Relaxed), from);
            assert_eq!(places[to & 1].swap(to, Relaxed), MOVED);
        });
    };
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let users: Vec<_> = (0..THREADS)
            .map(|n| {
                let (count, places, pivot) = (&count, &places, &pivot);
                scope.spawn(move || {
                    let thread = Thread::at(n);
                    for _ in 0..ROUNDS * CALLS / 4 {
                        let Some(table) = count.get(&thread) else {
                            pivot();
                            continue;
                        };
                        let number = table.number();
                        assert_eq!(places[number & 1].load(Relaxed), number);
                        if count.put(&thread, table) {
                            pivot();
                        }
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            while !over.load(Relaxed) {
                if count.drop_table().unwrap() {
                    pivot();
                }
                std::thread::yield_now();
            }
        });
        for user in users {
            user.join().unwrap();
        }
        over.store(true, Relaxed);
    });
    pivot();
    let number = count.get(&Thread::at(0)).map(|table| {
        let number = table.number();
        count.put(&Thread::at(0), table);
        number
    });
    println!("{number:?} replacements");
}

/// Replaced all the time, folded often: every object is freed once, and not
/// before its holders have left. The allocator is the witness, under Miri and
/// AddressSanitizer.
#[test]
fn split_replaced() {
    let slot = Slot::<Box<usize>, 2>::new(Box::new(1));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for call in 0..ROUNDS * CALLS / 4 {
                    let Some(held) = slot.load() else { continue };
                    let more = slot.load();
                    assert!(**held > 0);
                    if call % 2 == 0 {
                        slot.release(held);
                    }
                    if let Some(more) = more {
                        assert!(**more > 0);
                        slot.release(more);
                    }
                }
            });
        }
        for n in 2..ROUNDS * CALLS / 16 {
            if n % 13 == 0 {
                slot.clear();
            }
            slot.replace(Box::new(n));
        }
    });
    assert_eq!(slot.count(), 1);
}

/// The tests above, on the rungs that this process has not chosen.
#[test]
#[cfg_attr(miri, ignore = "starts programs")]
fn on_every_rung() {
    const MARK: &str = "REFCOUNTS_STRESS_RUNG";
    if std::env::var_os(MARK).is_some() {
        return;
    }
    for (name, value) in [
        ("HP_BARRIER", "fence"),
        ("HP_BARRIER", "membarrier"),
        ("HP_BARRIER", "rseq"),
        ("GLIBC_TUNABLES", "glibc.pthread.rseq=0"),
    ] {
        let run = std::process::Command::new(std::env::current_exe().expect("this program"))
            .env(MARK, "1")
            .env(name, value)
            .output()
            .expect("a run of this program");
        assert!(
            run.status.success(),
            "{name}={value}:\n{}{}",
            String::from_utf8_lossy(&run.stdout),
            String::from_utf8_lossy(&run.stderr),
        );
    }
}
