//! What the simulated machine orders, and what it leaves open.
//!
//! The models of the other modules are only as good as `sim`'s barriers. A
//! barrier pair that orders too little makes correct code fail, which is seen
//! at once; one that orders too much hides bugs. So these tests assert both
//! what must not happen and what must still be able to.
//!
//! Cannot show: that the kernel's barrier is what `sim` says. The stress test
//! runs on the real one.
//!
//! Rungs: each assertion says which.

use crate::barrier::Rung;
use crate::sim::{self, CPU0, World};
use crate::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

type Outcomes = BTreeSet<(usize, usize)>;

/// Two threads, two words: what the two answers can be.
fn outcomes(
    rung: Rung,
    first: fn(&AtomicUsize, &AtomicUsize) -> usize,
    second: fn(&AtomicUsize, &AtomicUsize) -> usize,
) -> Outcomes {
    let seen = Arc::new(Mutex::new(Outcomes::new()));
    let out = Arc::clone(&seen);
    loom::model::Builder::new().check(move || {
        let shared = Arc::new((
            AtomicUsize::new(0),
            AtomicUsize::new(0),
            World::new(rung, 2),
        ));
        let theirs = Arc::clone(&shared);
        let t = loom::thread::spawn(move || {
            theirs.2.enter(0, CPU0);
            first(&theirs.0, &theirs.1)
        });
        shared.2.enter(1, CPU0);
        let b = second(&shared.0, &shared.1);
        out.lock().unwrap().insert((t.join().unwrap(), b));
    });
    let seen = seen.lock().unwrap();
    seen.clone()
}

const ALL: [Rung; 3] = [Rung::Rseq, Rung::Membarrier, Rung::Fence];

#[test]
fn a_light_and_a_heavy_barrier_order_stores_before_loads() {
    for rung in ALL {
        let seen = outcomes(
            rung,
            |x, y| {
                x.store(1, Relaxed);
                sim::light();
                y.load(Relaxed)
            },
            |x, y| {
                y.store(1, Relaxed);
                sim::heavy().unwrap();
                x.load(Relaxed)
            },
        );
        assert!(!seen.contains(&(0, 0)), "{rung}: {seen:?}");
        assert_eq!(seen.len(), 3, "{rung}: {seen:?}");
    }
}

#[test]
fn two_light_barriers_order_nothing_but_on_the_fence_rung() {
    for rung in ALL {
        let seen = outcomes(
            rung,
            |x, y| {
                x.store(1, Relaxed);
                sim::light();
                y.load(Relaxed)
            },
            |x, y| {
                y.store(1, Relaxed);
                sim::light();
                x.load(Relaxed)
            },
        );
        assert_eq!(
            seen.contains(&(0, 0)),
            rung != Rung::Fence,
            "{rung}: {seen:?}"
        );
    }
}

#[test]
fn a_light_barrier_is_no_release_and_no_acquire() {
    for rung in [Rung::Rseq, Rung::Membarrier] {
        let seen = outcomes(
            rung,
            |data, flag| {
                data.store(1, Relaxed);
                sim::light();
                flag.store(1, Relaxed);
                0
            },
            |data, flag| {
                let flag = flag.load(Relaxed);
                sim::light();
                flag * 2 + data.load(Relaxed)
            },
        );
        assert!(seen.contains(&(0, 2)), "{rung}: flag without data {seen:?}");
    }
}

#[test]
fn a_section_is_wholly_before_or_wholly_after_a_heavy_barrier() {
    let seen = outcomes(
        Rung::Rseq,
        |x, y| {
            sim::section(|_| {
                x.store(1, Relaxed);
                Ok(y.load(Relaxed))
            })
            .unwrap()
        },
        |x, y| {
            y.store(1, Relaxed);
            sim::heavy().unwrap();
            x.load(Relaxed)
        },
    );
    // Before: its store is seen. After: it sees ours. Between our store and
    // the barrier: both.
    assert_eq!(seen, Outcomes::from([(0, 1), (1, 0), (1, 1)]));
}

#[test]
fn sections_on_one_cpu_do_not_mix_and_on_two_they_do() {
    let both = |plan| {
        let seen = Arc::new(Mutex::new(BTreeSet::new()));
        let out = Arc::clone(&seen);
        loom::model::Builder::new().check(move || {
            let shared = Arc::new((AtomicUsize::new(0), World::new(Rung::Rseq, 2)));
            let add = |x: &AtomicUsize| {
                sim::section(|_| {
                    let old = x.load(Relaxed);
                    x.store(old + 1, Relaxed);
                    Ok(())
                })
                .unwrap();
            };
            let theirs = Arc::clone(&shared);
            let t = loom::thread::spawn(move || {
                theirs.1.enter(0, CPU0);
                add(&theirs.0);
            });
            shared.1.enter(1, plan);
            add(&shared.0);
            t.join().unwrap();
            out.lock().unwrap().insert(shared.0.load(Relaxed));
        });
        let seen = seen.lock().unwrap();
        seen.clone()
    };
    assert_eq!(both(CPU0), BTreeSet::from([2]));
    assert_eq!(both(sim::CPU1), BTreeSet::from([1, 2]));
}
