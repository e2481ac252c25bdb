//! A little of everything, in well under a second: what must work in every
//! environment.

use hp::{Atomic, Domain, HazardPointer};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// What the suite did.
#[derive(Clone, Copy, Debug)]
pub struct Report {
    /// Protections by the concurrent readers.
    pub reads: usize,
    /// Values that the writers retired.
    pub retired: usize,
    /// Values that were dropped.
    pub dropped: usize,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "reads={} retired={} dropped={}",
            self.reads, self.retired, self.dropped
        )
    }
}

/// `domain`'s counters, and which rung, as fields of a summary line.
#[must_use]
pub fn describe(domain: &Domain) -> String {
    let stats = domain.stats();
    let here = percpu::capabilities();
    format!(
        "rung={} index={} pending={} barrier_failures={} overflow={}",
        here.rung, here.index, stats.pending, stats.barrier_failures, stats.overflow_acquires
    )
}

struct Value<'a> {
    left: usize,
    right: usize,
    dropped: &'a AtomicUsize,
}

impl Value<'_> {
    fn check(&self) -> usize {
        assert_eq!(self.left, !self.right, "a dead value");
        self.left
    }
}

impl Drop for Value<'_> {
    fn drop(&mut self) {
        self.check();
        self.right = self.left;
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

fn value(n: usize) -> Value<'static> {
    static DROPPED: AtomicUsize = AtomicUsize::new(0);
    Value {
        left: n,
        right: !n,
        dropped: &DROPPED,
    }
}

/// Runs the suite with `threads` readers and as many writers for `rounds`
/// stores each.
///
/// # Panics
///
/// If anything is not as it should be.
#[must_use]
pub fn run(threads: usize, rounds: usize) -> Report {
    alone();
    let cell = Atomic::new(value(0));
    let dropped = value(0).dropped;
    let before = dropped.load(Ordering::SeqCst);
    let stop = AtomicBool::new(false);
    let reads = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut mine = 0;
                while mine == 0 || !stop.load(Ordering::Relaxed) {
                    let guards: Vec<_> = (0..mine % 11)
                        .map(|_| cell.load().expect("a value"))
                        .collect();
                    for guard in &guards {
                        guard.check();
                    }
                    cell.load().expect("a value").check();
                    mine += 1;
                    if mine % 64 == 0 {
                        thread::yield_now();
                    }
                }
                reads.fetch_add(mine, Ordering::Relaxed);
            });
        }
        let writers: Vec<_> = (0..threads)
            .map(|_| scope.spawn(|| (1..=rounds).for_each(|n| cell.store(value(n)))))
            .collect();
        for writer in writers {
            writer.join().expect("writer");
        }
        stop.store(true, Ordering::Relaxed);
    });
    Domain::global().drain();
    let retired = threads * rounds;
    let gone = dropped.load(Ordering::SeqCst) - before;
    assert_eq!(gone, retired, "one drain drops all that was retired");
    drop(cell.into_inner());
    Report {
        reads: reads.into_inner(),
        retired,
        dropped: gone,
    }
}

/// What one thread can check by itself.
fn alone() {
    let domain = Domain::new();
    let cell = Atomic::new(41u64);
    let mut guards: Vec<_> = (0..20).map(|_| cell.load().expect("a value")).collect();
    let address = guards[0].as_ptr();
    let mut seen = 0;
    hp::scan(address.cast(), |_| seen += 1).expect("a barrier");
    assert_eq!(seen, 20, "every guard is visible");
    guards[3].detach();
    let clone = guards[3].clone();
    let unlinked = cell.take().expect("a value");
    let unlinked = unlinked
        .try_into_box(Duration::from_millis(1))
        .expect_err("guarded");
    unlinked.retire_in(&domain);
    domain.drain();
    assert_eq!(domain.stats().pending, 1);
    drop(guards);
    assert_eq!(*clone, 41);
    drop(clone);
    domain.drain();
    assert_eq!(domain.stats().pending, 0);

    let source = AtomicPtr::new(Box::into_raw(Box::new(7u64)));
    let mut hazard = HazardPointer::new();
    let object = hazard.protect(&source);
    source.store(std::ptr::null_mut(), Ordering::Release);
    // SAFETY: from a box, unlinked by the store above.
    unsafe { domain.retire_box(object) };
    domain.drain();
    // SAFETY: protected.
    assert_eq!(unsafe { *object }, 7);
    hazard.reset();
    domain.drain();
    assert_eq!(domain.stats().pending, 0);
}
