//! `rcu-lite`, a little of everything in well under a second: what must work
//! in every environment.

use rcu_lite::{Callbacks, Flavor, QsbrRcu, Rcu, RcuCell, RcuList, ThreadRcu, Timeout};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// What the suite did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Report {
    /// Sections of the concurrent readers.
    pub reads: usize,
    /// Values that the writers replaced.
    pub replaced: usize,
    /// Values that were dropped.
    pub dropped: usize,
    /// Grace periods.
    pub grace_periods: u64,
    /// Callbacks that still wait.
    pub pending: u64,
    /// Barriers that the kernel refused.
    pub barriers_lost: u64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "reads={} replaced={} dropped={} grace_periods={} pending={} barriers_lost={}",
            self.reads,
            self.replaced,
            self.dropped,
            self.grace_periods,
            self.pending,
            self.barriers_lost
        )
    }
}

/// Which rung, as fields of a summary line.
#[must_use]
pub fn describe() -> String {
    let here = percpu::capabilities();
    format!("rung={} index={}", here.rung, here.index)
}

/// A value that knows when it is dead.
#[derive(Debug)]
pub struct Value {
    left: usize,
    right: usize,
    dropped: Arc<AtomicUsize>,
}

impl Value {
    /// A value, whose drop is counted.
    #[must_use]
    pub fn new(n: usize, dropped: &Arc<AtomicUsize>) -> Self {
        Self {
            left: n,
            right: !n,
            dropped: Arc::clone(dropped),
        }
    }

    /// What it was made with.
    ///
    /// # Panics
    ///
    /// If it is dead.
    pub fn check(&self) -> usize {
        assert_eq!(self.left, !self.right, "a dead value");
        self.left
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        self.check();
        self.right = self.left;
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

/// Runs the suite for all flavours, with `threads` readers and as many
/// writers, for `rounds` replacements each.
///
/// # Panics
///
/// If anything is not as it should be.
#[must_use]
pub fn run(threads: usize, rounds: usize) -> Report {
    let mut report = Report::default();
    let mut add = |one: Report| {
        report.reads += one.reads;
        report.replaced += one.replaced;
        report.dropped += one.dropped;
        report.grace_periods += one.grace_periods;
        report.pending += one.pending;
        report.barriers_lost += one.barriers_lost;
    };
    add(one(&Arc::new(Rcu::new()), threads, rounds));
    add(one(&Rcu::global(), threads, rounds));
    add(one(&ThreadRcu, threads, rounds));
    add(one(&QsbrRcu, threads, rounds));
    handles();
    report
}

/// The suite for one flavour, all of whose callbacks are the caller's.
///
/// # Panics
///
/// As [`run`].
#[must_use]
pub fn one<F: Flavor + Clone>(flavor: &F, threads: usize, rounds: usize) -> Report {
    alone(flavor);
    let before = flavor.stats();
    let dropped = Arc::new(AtomicUsize::new(0));
    let cell = RcuCell::new_in(Value::new(0, &dropped), flavor.clone());
    let list = RcuList::new_in(flavor.clone());
    let stop = AtomicBool::new(false);
    let reads = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut mine = 0;
                while mine == 0 || !stop.load(Ordering::Relaxed) {
                    let guard = flavor.read();
                    let seen = cell.load(&guard);
                    let inner = flavor.read();
                    list.iter(&inner).for_each(|value: &Value| {
                        value.check();
                    });
                    drop(inner);
                    if mine % 64 == 0 {
                        thread::yield_now();
                    }
                    seen.check();
                    mine += 1;
                }
                reads.fetch_add(mine, Ordering::Relaxed);
            });
        }
        let writers: Vec<_> = (0..threads)
            .map(|me| {
                let (cell, list, dropped) = (&cell, &list, &dropped);
                scope.spawn(move || {
                    for n in 1..=rounds {
                        if n % 2 == 0 {
                            cell.replace(Value::new(n, dropped));
                        } else {
                            cell.update(|old| {
                                old.check();
                                Value::new(n, dropped)
                            });
                        }
                        if n % 16 == 0 {
                            list.push_front(Value::new(me, dropped));
                            assert!(list.remove_first(|value| value.check() == me));
                        }
                        if n % 256 == 0 {
                            flavor.synchronize();
                        }
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.join().expect("writer");
        }
        stop.store(true, Ordering::Relaxed);
    });
    flavor.barrier();
    // (An update that lost drops what it had made; that is counted as well.)
    let replaced = threads * (rounds + rounds / 16);
    let gone = dropped.load(Ordering::SeqCst);
    assert!(gone >= replaced, "{gone} of {replaced} after a barrier");
    drop((cell, list));
    let stats = flavor.stats();
    assert_eq!(stats.run - before.run, replaced as u64);
    assert_eq!(
        Arc::strong_count(&dropped),
        1,
        "every value that was made is gone"
    );
    Report {
        reads: reads.into_inner(),
        replaced,
        dropped: (stats.run - before.run) as usize,
        grace_periods: stats.grace_periods - before.grace_periods,
        pending: stats.pending,
        barriers_lost: stats.barriers_lost,
    }
}

/// What one thread (and a helper) can check by itself.
fn alone<F: Flavor + Clone>(flavor: &F) {
    const SHORT: Duration = Duration::from_millis(5);
    let elsewhere = |limit| {
        let flavor = flavor.clone();
        thread::spawn(move || flavor.synchronize_timeout(limit))
            .join()
            .expect("a waiter")
    };
    let dropped = Arc::new(AtomicUsize::new(0));
    for mode in [
        Callbacks::Manual,
        Callbacks::Inline { threshold: 2 },
        Callbacks::Worker,
    ] {
        flavor.set_callbacks(mode);
        dropped.store(0, Ordering::SeqCst);
        let cell = RcuCell::new_in(Value::new(1, &dropped), flavor.clone());
        let outer = flavor.read();
        let inner = flavor.read();
        let seen = cell.load(&outer);
        cell.replace(Value::new(2, &dropped));
        let cookie = flavor.start_poll();
        assert!(!flavor.poll(&cookie));
        drop(inner);
        assert_eq!(elsewhere(SHORT), Err(Timeout::ReadersRemain));
        assert_eq!((seen.check(), dropped.load(Ordering::SeqCst)), (1, 0));
        drop(outer);
        assert_eq!(elsewhere(Duration::from_secs(60)), Ok(()));
        flavor.cond_synchronize(cookie.clone());
        assert!(flavor.poll(&cookie));
        flavor.call(|| ());
        flavor.defer_drop(Box::<str>::from("text"));
        flavor.barrier();
        assert_eq!(dropped.load(Ordering::SeqCst), 1);
        assert_eq!(cell.into_inner().check(), 2);
        flavor.drain();
        assert_eq!(flavor.stats().pending, 0);
    }
}

/// What only one flavour has.
fn handles() {
    let rcu = Rcu::global();
    let guard = rcu.read();
    let clone = guard.clone();
    thread::spawn(move || drop(guard)).join().expect("a thread");
    assert!(rcu.synchronize_timeout(Duration::ZERO).is_err());
    drop(clone);
    rcu.synchronize();
    let cell = RcuCell::new_in(1, QsbrRcu);
    let mut online = QsbrRcu.online();
    assert_eq!(*cell.load(&online.read()), 1);
    assert!(online.quiescent_state());
    online.synchronize();
    online.offline(|| QsbrRcu.barrier());
}
