//! The worker thread: there while there is work, blind to signals. And the
//! programs that cannot have one.
#![cfg(all(target_os = "linux", not(miri)))]

mod common;

use common::{Drops, Reader, SHORT, eventually};
use rcu_lite::{Callbacks, QsbrRcu, Rcu, ThreadRcu};
use std::fs;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Threads are counted: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    // The last test's worker may still be on its way out.
    eventually("no worker is left", || threads_named("rcu-lite").is_empty());
    one
}

/// The `status` files of this process's threads of that name.
fn threads_named(name: &str) -> Vec<String> {
    fs::read_dir("/proc/self/task")
        .expect("proc")
        .filter_map(|task| fs::read_to_string(task.ok()?.path().join("status")).ok())
        .filter(|status| status.lines().next() == Some(&format!("Name:\t{name}")))
        .collect()
}

/// Bug log 2 and 91: it comes when something is queued, goes when nothing is,
/// and comes again.
#[test]
fn the_worker_comes_and_goes() {
    let _one = alone();
    let drops = Drops::new();
    let rcu = Rcu::new();
    for round in 1..=3 {
        assert!(!rcu.stats().worker);
        assert_eq!(threads_named("rcu-lite").len(), 0);
        for n in 0..100 {
            rcu.defer_drop(Box::new(drops.value(n)));
        }
        assert!(rcu.stats().worker);
        eventually("the worker runs them", || drops.count() == 100 * round);
        assert!(threads_named("rcu-lite").len() <= 1);
        eventually("the worker leaves", || !rcu.stats().worker);
        eventually("its thread ends", || threads_named("rcu-lite").is_empty());
    }
    // Sections, waits and polls need none.
    drop(rcu.read());
    rcu.synchronize();
    assert!(rcu.poll(&rcu.start_poll()));
    assert!(!rcu.stats().worker);
}

/// One for a domain, however many queue.
#[test]
fn there_is_one_worker_a_domain() {
    let _one = alone();
    let drops = Drops::new();
    let (a, b) = (Arc::new(Rcu::new()), Arc::new(Rcu::new()));
    let (hold_a, hold_b) = (Reader::inside(&a), Reader::inside(&b));
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for n in 0..200 {
                    a.defer_drop(Box::new(drops.value(n)));
                    b.defer_drop(Box::new(drops.value(n)));
                }
            });
        }
    });
    eventually("both are there", || threads_named("rcu-lite").len() == 2);
    assert_eq!(drops.count(), 0);
    hold_a.leave();
    hold_b.leave();
    eventually("all are run", || drops.count() == 2 * 8 * 200);
    // Domains that end take their workers along.
    drop((a, b));
    eventually("both end", || threads_named("rcu-lite").is_empty());
}

/// Bug log 91: its mask has every signal but those that a thread causes itself,
/// whose handlers must run there too (found by a filter that traps
/// `membarrier`); the caller's is as it was.
#[test]
#[cfg_attr(
    not(target_arch = "x86_64"),
    ignore = "an emulator's threads show the emulator's masks"
)]
fn report_91_the_worker_takes_no_signals() {
    let _one = alone();
    let mask = |status: &str| {
        let line = status.lines().find(|line| line.starts_with("SigBlk:"));
        u64::from_str_radix(line.expect("SigBlk")[7..].trim(), 16).expect("a mask")
    };
    let mine = || mask(&fs::read_to_string("/proc/thread-self/status").expect("proc"));
    let before = mine();
    for flavor in 0..3 {
        let drops = Drops::new();
        let value = Box::new(drops.value(0));
        match flavor {
            0 => Rcu::global().defer_drop(value),
            1 => ThreadRcu.defer_drop(value),
            _ => QsbrRcu.defer_drop(value),
        }
        // (It names itself when it runs.)
        let mut workers = Vec::new();
        eventually("the worker runs", || {
            workers = threads_named("rcu-lite");
            !workers.is_empty()
        });
        assert_eq!(mine(), before, "the caller's mask");
        // All but KILL and STOP, which nobody blocks, and the C library's own.
        let bit = |signal: i32| 1u64 << (signal - 1);
        let never = bit(libc::SIGKILL) | bit(libc::SIGSTOP) | bit(32) | bit(33);
        let own = [
            libc::SIGSEGV,
            libc::SIGBUS,
            libc::SIGFPE,
            libc::SIGILL,
            libc::SIGTRAP,
            libc::SIGSYS,
        ]
        .into_iter()
        .fold(0, |bits, signal| bits | bit(signal));
        let must = !never & !own;
        for status in &workers {
            assert_eq!(mask(status) & must, must, "{status}");
            assert_eq!(mask(status) & own & !before, 0, "{status}");
        }
        eventually("dropped", || drops.count() == 1);
        eventually("its thread ends", || threads_named("rcu-lite").is_empty());
    }
}

/// `Manual` and `Inline` never start one.
#[test]
fn programs_that_want_no_thread_have_none() {
    let _one = alone();
    let drops = Drops::new();
    for mode in [Callbacks::Manual, Callbacks::Inline { threshold: 8 }] {
        let rcu = Rcu::with_callbacks(mode);
        for n in 0..1000 {
            rcu.defer_drop(Box::new(drops.value(n)));
        }
        assert_eq!(threads_named("rcu-lite").len(), 0);
        rcu.barrier();
        assert_eq!(threads_named("rcu-lite").len(), 0);
    }
    assert_eq!(drops.count(), 2000);
}

/// Queued at the very moment in which the worker leaves, again and again: it
/// is run without anybody's help.
#[test]
fn report_4_queuing_as_the_worker_leaves() {
    let _one = alone();
    let rcu = Rcu::new();
    let drops = Drops::new();
    for n in 1..=30 {
        rcu.defer_drop(Box::new(drops.value(n)));
        eventually("run", || drops.count() == n);
        // It naps 50 times a millisecond; meet it at its last nap.
        while rcu.stats().worker && n % 3 != 0 {
            thread::yield_now();
        }
        if n % 3 == 0 {
            thread::sleep(SHORT * 2 + std::time::Duration::from_millis(n as u64 % 20));
        }
    }
    eventually("the worker leaves", || !rcu.stats().worker);
}

/// A mode that was changed while the worker naps: it goes, and comes back.
#[test]
fn the_worker_obeys_the_mode() {
    let _one = alone();
    let rcu = Rcu::new();
    let drops = Drops::new();
    rcu.defer_drop(Box::new(drops.value(0)));
    assert!(rcu.stats().worker);
    rcu.set_callbacks(Callbacks::Manual);
    eventually("the worker leaves", || !rcu.stats().worker);
    let run = drops.count();
    rcu.defer_drop(Box::new(drops.value(1)));
    thread::sleep(SHORT);
    assert_eq!(drops.count(), run);
    rcu.set_callbacks(Callbacks::Worker);
    eventually("a worker runs the rest", || drops.count() == 2);
}
