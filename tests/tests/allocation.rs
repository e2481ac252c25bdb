//! Layout, and what costs memory. A binary of its own, whose allocator counts
//! the requests of each thread.
//!
//! Bug log 70.
#![cfg(target_os = "linux")]

use hp::{Atomic, Domain, HazardPointer, Rung};
use percpu::line::{Line, Lines, MAX_LINES, STRIDE, WORDS};
use std::sync::{Mutex, PoisonError};
use std::thread;
use tests::counting::{Counting, requests};
use tests::machine::{allowed_cpus, set_affinity};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// One measurement at a time, so that nobody else's slots fill the line.
static ALONE: Mutex<()> = Mutex::new(());

/// Runs `f` on a fresh thread that stays on one CPU, with nobody beside it.
fn measured<R: Send>(f: impl FnOnce() -> R + Send) -> R {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    thread::scope(|scope| {
        scope
            .spawn(|| {
                set_affinity(0, &allowed_cpus()[..1]).expect("one CPU");
                f()
            })
            .join()
            .expect("measured")
    })
}

/// Requests that `f` makes on this thread.
fn count(f: impl FnOnce()) -> (usize, usize) {
    let before = requests();
    f();
    let after = requests();
    (after.0 - before.0, after.1 - before.1)
}

/// Bug log 70: lines are one stride each, aligned to it, wherever they lie.
#[test]
fn report_70_lines_are_aligned() {
    assert_eq!(STRIDE, 128);
    assert_eq!((size_of::<Line>(), align_of::<Line>()), (128, 128));
    assert_eq!(WORDS * size_of::<usize>(), STRIDE);
    static TABLE: Lines = Lines::new();
    for line in TABLE.all().iter().take(65) {
        assert_eq!(std::ptr::from_ref(line).addr() % STRIDE, 0);
    }
    assert_eq!(size_of_val(TABLE.all()), MAX_LINES * STRIDE);
    let boxed: Vec<Box<Line>> = (0..9).map(|_| Box::new(Line::new())).collect();
    assert!(
        boxed
            .iter()
            .all(|line| std::ptr::from_ref(&**line).addr() % STRIDE == 0)
    );
}

/// The counter counts, or the other tests prove nothing.
#[test]
fn the_counter_counts() {
    let (calls, bytes) = measured(|| count(|| drop(std::hint::black_box(vec![0u8; 1000]))));
    assert_eq!((calls, bytes), (1, 1000));
}

/// Protect and release ask for nothing, in slots of every kind.
#[test]
fn protecting_allocates_nothing() {
    measured(|| {
        let cell = Atomic::new(7u64);
        let mut hazard = HazardPointer::new();
        let mut held = Vec::with_capacity(32);
        let mut round = || {
            for width in [1, 2, 8, 9, 16] {
                held.extend((0..width).filter_map(|_| cell.load()));
                held[0].detach();
                let clone = held[0].clone();
                hazard.protect_raw(clone.as_ptr().cast());
                drop(clone);
                held.clear();
                hazard.reset();
            }
        };
        // The first time a thread overflows it may take a record.
        round();
        assert_eq!(count(|| (0..1000).for_each(|_| round())), (0, 0));
    });
}

fn retire_keys(domain: &Domain, n: usize) {
    for key in 1..=n {
        // SAFETY: the deleter does nothing.
        unsafe { domain.retire_key(key << 8, |_| ()) };
    }
}

/// Retiring and draining ask for nothing once the vectors have grown.
#[test]
fn retiring_allocates_nothing_in_the_steady_state() {
    measured(|| {
        // Manual, so that the length of a batch does not depend on how long a
        // barrier takes here.
        let domain = Domain::manual();
        let batch = || {
            retire_keys(&domain, 5000);
            assert_eq!(domain.drain(), 5000);
        };
        (0..4).for_each(|_| batch());
        assert_eq!(count(|| (0..50).for_each(|_| batch())), (0, 0));
    });
}

/// Retiring that reclaims by itself: vectors grow with the threshold, up to
/// its limit, however much is retired.
#[test]
fn retiring_grows_to_a_limit() {
    measured(|| {
        let domain = Domain::new();
        let (calls, bytes) = count(|| retire_keys(&domain, 1_000_000));
        assert!(domain.stats().scans > 100, "it reclaimed by itself");
        assert!(calls <= 64, "{calls}");
        assert!(bytes <= 2 << 20, "{bytes}");
    });
}

/// A thread that never overflows costs nothing, from its first protection on;
/// where there are no sections, every thread overflows and the next one takes
/// over its record.
#[test]
fn a_thread_costs_nothing() {
    // Deciding the rung costs once, not once a thread.
    hp::init();
    let cell = Atomic::new(7u64);
    let one = || {
        measured(|| {
            count(|| {
                for _ in 0..1000 {
                    assert_eq!(cell.load().as_deref(), Some(&7));
                }
            })
        })
    };
    let first = one();
    let second = one();
    if hp::rung() == Rung::Rseq {
        assert_eq!(first, (0, 0));
        assert_eq!(second, (0, 0));
    } else {
        assert!(second.1 < 128, "no record of its own: {second:?}");
    }
}
