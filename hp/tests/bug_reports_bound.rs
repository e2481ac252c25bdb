//! Unbounded garbage, stuck reclaimers, counters that go wrong.
//!
//! Bug log group 4, and the counters of every domain.

mod common;

use common::{Drops, retire, rounds};
use hp::{Atomic, Domain};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

/// Bug log 29: one reader parks inside a protection while a million objects
/// are retired.
#[test]
#[cfg_attr(miri, ignore = "needs a threshold's worth of objects, minutes there")]
fn report_29_a_parked_reader_holds_up_one_object() {
    let domain = Domain::new();
    let cell = Atomic::new(0usize);
    let parked = cell.load().expect("a value");
    cell.take().expect("a value").retire_in(&domain);
    let bound = domain.pending_bound(1) as u64 + 1;
    let mut highest = 0;
    let total = rounds(1_000_000, 1500);
    for n in 0..total {
        retire(&domain, n);
        if n % 64 == 0 {
            highest = highest.max(domain.stats().pending);
        }
    }
    assert!(highest <= bound, "{highest} waited, the bound is {bound}");
    assert_eq!(*parked, 0);
    domain.drain();
    assert_eq!(domain.stats().pending, 1);
    drop(parked);
    domain.drain();
    let stats = domain.stats();
    assert_eq!((stats.pending, stats.reclaimed), (0, total as u64 + 1));
}

/// Bug log 29: many objects are protected at once; what waits is those, and
/// the bound.
#[test]
#[cfg_attr(miri, ignore = "needs a threshold's worth of objects, minutes there")]
fn report_29_protected_objects_come_on_top_of_the_bound() {
    let protected = rounds(5000, 30);
    let drops = Drops::new();
    let domain = Domain::new();
    let guards: Vec<_> = (0..protected)
        .map(|n| {
            let cell = Atomic::new(drops.value(n));
            let guard = cell.load().expect("a value");
            cell.take().expect("a value").retire_in(&domain);
            guard
        })
        .collect();
    let bound = (domain.pending_bound(1) + protected) as u64;
    for n in 0..rounds(50_000, 1200) {
        retire(&domain, n);
        if n % 64 == 0 {
            assert!(domain.stats().pending <= bound);
        }
    }
    for (n, guard) in guards.iter().enumerate() {
        assert_eq!(guard.get(), n);
    }
    domain.drain();
    assert_eq!(domain.stats().pending, protected as u64);
    drop(guards);
    assert_eq!(domain.drain(), protected);
    assert_eq!(drops.count(), protected);
}

/// Counts how many of its kind are alive, and the highest number ever.
/// (`stats` cannot tell: its two numbers are of two instants, between which
/// other threads may have gone far.)
#[derive(Debug, Default)]
struct Census {
    alive: AtomicU64,
    highest: AtomicU64,
}

struct Citizen(Arc<Census>);

impl Citizen {
    fn new(census: &Arc<Census>) -> Self {
        let alive = census.alive.fetch_add(1, Ordering::Relaxed) + 1;
        census.highest.fetch_max(alive, Ordering::Relaxed);
        Self(Arc::clone(census))
    }
}

impl Drop for Citizen {
    fn drop(&mut self) {
        self.0.alive.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Bug log 7 and 29: threads that only retire, without any drain, stay under
/// the bound that is documented for their number.
#[test]
#[cfg_attr(miri, ignore = "needs a threshold's worth of objects, minutes there")]
fn report_7_29_retirers_alone_stay_under_the_bound() {
    for threads in 1..=4usize {
        let domain = Domain::new();
        let census = Arc::new(Census::default());
        let each = rounds(400_000, 700) / threads;
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    for _ in 0..each {
                        retire(&domain, Citizen::new(&census));
                    }
                });
            }
        });
        // Each thread has one that is not yet retired.
        let bound = (domain.pending_bound(threads) + threads) as u64;
        let highest = census.highest.load(Ordering::Relaxed);
        assert!(
            highest <= bound,
            "{threads} threads: {highest} waited, the bound is {bound}"
        );
        domain.drain();
        let stats = domain.stats();
        assert_eq!((stats.pending, stats.retired), (0, (each * threads) as u64));
        assert_eq!(census.alive.load(Ordering::Relaxed), 0);
    }
}

/// Bug log 29: a caller with a small budget gets on although some of what
/// waits is protected.
#[test]
fn report_29_a_small_budget_is_not_stuck_on_protected_objects() {
    let drops = Drops::new();
    let domain = Domain::manual();
    for n in 0..9 {
        retire(&domain, drops.value(n));
    }
    let cell = Atomic::new(drops.value(9));
    let guard = cell.load().expect("a value");
    cell.take().expect("a value").retire_in(&domain);
    for n in 10..19 {
        retire(&domain, drops.value(n));
    }
    let mut freed = 0;
    for _ in 0..200 {
        let now = domain.reclaim(1);
        assert!(now <= 1, "the budget is an upper limit");
        freed += now;
    }
    assert_eq!(freed, 18, "everything but the protected one");
    assert_eq!(guard.get(), 9);
    drop(guard);
    domain.drain();
    assert_eq!(drops.count(), 19);
}

/// A pass frees at most its budget, and a budget of nothing frees nothing.
#[test]
fn a_budget_is_kept() {
    let drops = Drops::new();
    let domain = Domain::manual();
    for n in 0..100 {
        retire(&domain, drops.value(n));
    }
    assert_eq!(domain.reclaim(0), 0);
    assert_eq!(domain.reclaim(10), 10);
    assert_eq!(drops.count(), 10);
    assert_eq!(domain.stats().pending, 90);
    assert_eq!(domain.reclaim(usize::MAX), 90);
    assert_eq!(domain.reclaim(usize::MAX), 0);
    assert_eq!(drops.count(), 100);
}

/// Retiring to a manual domain never runs a deleter; anybody may run them.
#[test]
fn a_manual_domain_never_runs_a_deleter_in_retire() {
    let drops = Drops::new();
    let domain = Domain::manual();
    let total = rounds(20_000, 50);
    for n in 0..total {
        retire(&domain, drops.value(n));
    }
    assert_eq!(drops.count(), 0);
    assert_eq!(domain.stats().pending, total as u64);
    assert_eq!(domain.stats().scans, 0);
    thread::scope(|scope| {
        scope.spawn(|| assert_eq!(domain.drain(), total));
    });
    assert_eq!(drops.count(), total);
    retire(&domain, drops.value(0));
    drop(domain);
    assert_eq!(drops.count(), total + 1, "dropping the domain may");
}

/// Bug log 30: whatever the counters say at any time, nothing is negative and
/// nothing is counted twice.
#[test]
fn report_30_counters_stay_consistent_under_fire() {
    let drops = Drops::new();
    let domain = Domain::new();
    let stop = AtomicBool::new(false);
    let each = rounds(30_000, 30);
    thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut last = domain.stats();
            let mut looks = 0u64;
            while !stop.load(Ordering::Relaxed) {
                let now = domain.stats();
                assert!(now.reclaimed <= now.retired, "{now:?}");
                assert_eq!(now.pending, now.retired - now.reclaimed);
                assert!(now.retired >= last.retired, "{last:?} {now:?}");
                assert!(now.reclaimed >= last.reclaimed, "{last:?} {now:?}");
                last = now;
                looks += 1;
            }
            looks
        });
        let workers: Vec<_> = (0..3)
            .map(|k| {
                let (domain, drops) = (&domain, &drops);
                scope.spawn(move || {
                    for n in 0..each {
                        retire(domain, drops.value(n));
                        if n % 1000 == k {
                            domain.drain();
                        }
                    }
                })
            })
            .collect();
        for worker in workers {
            worker.join().expect("worker");
        }
        stop.store(true, Ordering::Relaxed);
        assert!(watcher.join().expect("watcher") > 0);
    });
    domain.drain();
    let stats = domain.stats();
    assert_eq!(stats.retired, 3 * each as u64);
    assert_eq!(stats.reclaimed, 3 * each as u64);
    assert_eq!(stats.pending, 0);
    assert_eq!(stats.barrier_failures, 0);
    assert!(stats.scans <= stats.heavy_barriers, "{stats:?}");
    assert_eq!(drops.count(), 3 * each);
}

/// Bug log 31: several threads cross the threshold of one domain together;
/// all of them return, and a drain by each at once returns too.
#[test]
#[cfg_attr(miri, ignore = "needs a threshold's worth of objects, minutes there")]
fn report_31_all_who_cross_the_threshold_return() {
    let drops = Drops::new();
    for _ in 0..rounds(20, 2) {
        let domain = Domain::new();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for n in 0..rounds(1500, 200) {
                        retire(&domain, drops.value(n));
                    }
                    domain.drain();
                });
            }
        });
        domain.drain();
        assert_eq!(domain.stats().pending, 0);
    }
    assert_eq!(drops.count(), rounds(20, 2) * 4 * rounds(1500, 200));
}

/// Passes happen by themselves: a loop that never drains scans now and then.
#[test]
#[cfg_attr(miri, ignore = "needs a threshold's worth of objects, minutes there")]
fn retiring_reclaims_by_itself() {
    let domain = Domain::new();
    for n in 0..rounds(40_000, 2500) {
        retire(&domain, n);
    }
    let stats = domain.stats();
    assert!(stats.scans > 0, "{stats:?}");
    assert!(stats.reclaimed > 0, "{stats:?}");
    assert_eq!(stats.heavy_barriers, stats.scans);
}

/// The overflow counter counts the ninth guard and what is held for long.
#[test]
fn overflow_acquires_are_counted() {
    let before = Domain::global().stats().overflow_acquires;
    let cell = Atomic::new(1u8);
    let mut guards: Vec<_> = (0..20).map(|_| cell.load().expect("a value")).collect();
    guards[0].detach();
    let after = Domain::global().stats().overflow_acquires;
    assert!(after >= before + 12, "{before} {after}");
}
