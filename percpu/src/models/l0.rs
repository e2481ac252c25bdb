//! L0: canaries that pin the limits of loom itself (0.7.3).
//!
//! Nothing here runs code of this workspace. Each test asserts what loom does
//! today where that differs from the language's memory model. When a release
//! of loom turns one red, the mitigation that it names can be reconsidered.
//!
//! Misses that make a green model less than a proof:
//!
//! * one access to a word is remembered when orders are explored – roles are
//!   permuted over threads by the harness;
//! * a fence is not a step of its own – `sync::atomic::fence` puts one before;
//! * an acquire fence takes in what *other* threads have read – modelled code
//!   uses acquire loads;
//! * a sequentially consistent fence gives happens-before – the orderings
//!   beside it are judged on the membarrier rung;
//! * no load buffering – payloads are loom's `UnsafeCell`, whose races are
//!   reported without it;
//! * a compare-exchange that fails reads the newest value, and a weak one
//!   never fails by itself;
//! * seven stores to a word are remembered – models make at most five.
//!
//! One miss makes correct code fail: sequentially consistent *accesses* are
//! acquire and release only. `pass` therefore uses read-modify-writes, and
//! readers and reclaimers use barriers.

// loom runs one thread at a time, and reports what would be a race.
#![allow(clippy::arc_with_non_send_sync)]

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicUsize, Ordering::*, fence};
use loom::thread;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

type Word = Arc<AtomicUsize>;

fn word() -> Word {
    Arc::new(AtomicUsize::new(0))
}

/// Runs `f` in every way that loom finds; its outcomes, and how many ways.
fn outcomes<T: Ord + Send + 'static>(
    f: impl Fn() -> T + Send + Sync + 'static,
) -> (BTreeSet<T>, usize) {
    crate::sim::harness::assert_unlimited();
    let seen = Arc::new(Mutex::new((BTreeSet::new(), 0)));
    let out = Arc::clone(&seen);
    loom::model::Builder::new().check(move || {
        let outcome = f();
        let mut out = out.lock().unwrap();
        out.0.insert(outcome);
        out.1 += 1;
    });
    let mut seen = seen.lock().unwrap();
    (std::mem::take(&mut seen.0), seen.1)
}

/// Whether loom reports a race (or anything else) in `f`.
fn fails(f: impl Fn() + Send + Sync + 'static) -> bool {
    let check = std::panic::AssertUnwindSafe(|| loom::model::Builder::new().check(f));
    std::panic::catch_unwind(check).is_err()
}

#[test]
fn one_access_is_remembered() {
    let racing = || {
        let x = word();
        let other = Arc::clone(&x);
        let t = thread::spawn(move || {
            let _ = other.load(SeqCst);
            other.store(1, SeqCst);
        });
        (x, t)
    };
    let (seen, ways) = outcomes(move || {
        let (x, t) = racing();
        let r = x.load(SeqCst);
        t.join().unwrap();
        r
    });
    // Should be {0, 1}.
    assert_eq!((seen, ways), (BTreeSet::from([0]), 1));
    // With the loader spawned after the thread that loads and stores, both are
    // found. That is why the harness permutes.
    let (seen, _) = outcomes(move || {
        let (x, t) = racing();
        let loader = thread::spawn(move || x.load(SeqCst));
        t.join().unwrap();
        loader.join().unwrap()
    });
    assert_eq!(seen, BTreeSet::from([0, 1]));
}

#[test]
fn a_fence_is_not_a_step() {
    let run = |step: bool| {
        outcomes(move || {
            let (a, c, s) = (word(), word(), word());
            let (a2, c2, s2) = (a.clone(), c.clone(), s.clone());
            let t = thread::spawn(move || {
                c2.store(1, Relaxed);
                a2.store(1, Relaxed);
                if step {
                    s2.fetch_add(1, Relaxed);
                }
                fence(SeqCst);
            });
            let first = a.load(Relaxed);
            if step {
                s.fetch_add(1, Relaxed);
            }
            fence(SeqCst);
            let second = c.load(Relaxed);
            t.join().unwrap();
            (first, second)
        })
        .0
    };
    // The language allows (1, 0): the fence comes after both stores.
    assert!(!run(false).contains(&(1, 0)));
    assert!(run(true).contains(&(1, 0)));
}

#[test]
fn an_acquire_fence_takes_in_what_others_have_read() {
    let relayed = |with_fence: bool| {
        fails(move || {
            let data = Arc::new(UnsafeCell::new(0));
            let (x, y) = (word(), word());
            let (d2, x2) = (data.clone(), x.clone());
            let writer = thread::spawn(move || {
                // SAFETY: loom checks.
                d2.with_mut(|d| unsafe { *d = 1 });
                x2.store(1, Release);
            });
            let y2 = y.clone();
            let relay = thread::spawn(move || {
                if x.load(Relaxed) == 1 {
                    y2.store(1, Release);
                }
            });
            if y.load(Acquire) == 1 {
                if with_fence {
                    fence(Acquire);
                }
                // SAFETY: loom checks.
                data.with(|d| unsafe { assert!(*d <= 1) });
            }
            writer.join().unwrap();
            relay.join().unwrap();
        })
    };
    // A race in the language both times.
    assert!(relayed(false));
    assert!(!relayed(true));
}

#[test]
fn sequentially_consistent_fences_give_happens_before() {
    let flags_only = |first: bool, second: bool| {
        fails(move || {
            let data = Arc::new(UnsafeCell::new(0));
            let step = word();
            let (d2, s2) = (data.clone(), step.clone());
            let t = thread::spawn(move || {
                // SAFETY: loom checks.
                d2.with_mut(|d| unsafe { *d = 1 });
                s2.fetch_add(1, Relaxed);
                if first {
                    fence(SeqCst);
                }
                s2.fetch_add(1, Relaxed);
            });
            // Relaxed throughout: in the language only the two fences could
            // synchronize here, by what the second thread reads between them.
            if step.fetch_add(2, Relaxed) == 2 {
                if second {
                    fence(SeqCst);
                }
                // SAFETY: loom checks.
                data.with(|d| unsafe { assert!(*d <= 1) });
            }
            t.join().unwrap();
        })
    };
    assert!(flags_only(false, false));
    assert!(flags_only(true, false));
    assert!(!flags_only(true, true));
    // The same without any word between the fences: a race in the language, a
    // happens-before for loom whenever the writer's fence ran first.
    let nothing_read = fails(|| {
        let data = Arc::new(UnsafeCell::new(0));
        let (x, done) = (word(), Arc::new(Mutex::new(false)));
        let (d2, x2, done2) = (data.clone(), x.clone(), done.clone());
        let t = thread::spawn(move || {
            // SAFETY: loom checks.
            d2.with_mut(|d| unsafe { *d = 1 });
            x2.store(1, Relaxed);
            fence(SeqCst);
            // Not a word of the model: only says which way this is.
            *done2.lock().unwrap() = true;
        });
        x.load(Relaxed);
        fence(SeqCst);
        if *done.lock().unwrap() {
            // SAFETY: loom checks.
            data.with(|d| unsafe { assert!(*d <= 1) });
        }
        t.join().unwrap();
    });
    assert!(!nothing_read);
}

#[test]
fn loads_are_not_buffered() {
    let (seen, _) = outcomes(|| {
        let (x, y) = (word(), word());
        let (x2, y2) = (x.clone(), y.clone());
        let t = thread::spawn(move || {
            let r = y2.load(Relaxed);
            x2.store(1, Relaxed);
            r
        });
        let r = x.load(Relaxed);
        y.store(1, Relaxed);
        (t.join().unwrap(), r)
    });
    // The language allows (1, 1).
    assert_eq!(seen, BTreeSet::from([(0, 0), (0, 1), (1, 0)]));
}

#[test]
fn a_failing_exchange_reads_the_newest_value() {
    let (seen, _) = outcomes(|| {
        let (x, y) = (word(), word());
        let (x2, y2) = (x.clone(), y.clone());
        let t = thread::spawn(move || {
            x2.store(1, Relaxed);
            y2.store(1, Relaxed);
        });
        let first = y.load(Relaxed);
        let second = x.compare_exchange(7, 8, Relaxed, Relaxed);
        t.join().unwrap();
        (first, second)
    });
    // The language allows (1, Err(0)), as two loads would give.
    assert!(!seen.contains(&(1, Err(0))));
}

#[test]
fn a_weak_exchange_never_fails_by_itself() {
    let (seen, ways) = outcomes(|| word().compare_exchange_weak(0, 1, Relaxed, Relaxed));
    assert_eq!((seen, ways), (BTreeSet::from([Ok(0)]), 1));
}

#[test]
fn seven_stores_are_remembered() {
    let oldest = |stores: usize| {
        outcomes(move || {
            let (x, y) = (word(), word());
            let (x2, y2) = (x.clone(), y.clone());
            let t = thread::spawn(move || {
                for n in 1..=stores {
                    x2.store(n, Relaxed);
                }
                y2.store(1, Relaxed);
            });
            let after = y.load(Relaxed);
            let value = x.load(Relaxed);
            t.join().unwrap();
            (after == 1).then_some(value)
        })
        .0
        .into_iter()
        .flatten()
        .min()
    };
    // The initial value is one of the seven.
    assert_eq!(oldest(6), Some(0));
    assert_eq!(oldest(7), Some(1));
    assert_eq!(oldest(9), Some(3));
}

#[test]
fn sequentially_consistent_accesses_are_acquire_and_release() {
    let store_buffering = |swap: bool| {
        outcomes(move || {
            let (x, y) = (word(), word());
            let (x2, y2) = (x.clone(), y.clone());
            let set = move |w: &AtomicUsize| {
                if swap {
                    w.swap(1, SeqCst);
                } else {
                    w.store(1, SeqCst);
                }
            };
            let t = thread::spawn(move || {
                set(&x2);
                y2.load(SeqCst)
            });
            set(&y);
            let r = x.load(SeqCst);
            (t.join().unwrap(), r)
        })
        .0
    };
    // The language forbids (0, 0) both times.
    assert!(store_buffering(false).contains(&(0, 0)));
    assert!(store_buffering(true).contains(&(0, 0)));
}

/// What loom must get right for the models to mean anything.
#[test]
fn release_sequences_end_at_a_plain_store() {
    let second_store = |exchange: bool| {
        fails(move || {
            let data = Arc::new(UnsafeCell::new(0));
            let x = word();
            let (d2, x2) = (data.clone(), x.clone());
            let t = thread::spawn(move || {
                // SAFETY: loom checks.
                d2.with_mut(|d| unsafe { *d = 1 });
                x2.store(1, Release);
                if exchange {
                    let _ = x2.compare_exchange(1, 2, Relaxed, Relaxed);
                } else {
                    x2.store(2, Relaxed);
                }
            });
            if x.load(Acquire) == 2 {
                // SAFETY: loom checks.
                data.with(|d| unsafe { assert!(*d <= 1) });
            }
            t.join().unwrap();
        })
    };
    assert!(second_store(false), "a plain store ends the sequence");
    assert!(!second_store(true), "a relaxed exchange goes on with it");
}
