//! Nanoseconds for a get and a put of each count. Rough: a loop and a clock,
//! the quickest of some windows, the mean over the threads.
//!
//! ```text
//! cargo run --release -p refcounts --example refcounts_cost [THREADS…]
//! ```

use refcounts::futex_ref::FutexRef;
use refcounts::percpu_ref::PercpuRef;
use refcounts::plain::{IncNotZero, Plain};
use refcounts::rcuref::RcuRef;
use refcounts::split::Slot;
use refcounts::{Thread, Tracker};
use std::hint::black_box;
use std::sync::Barrier;
use std::time::{Duration, Instant};

const BATCH: u32 = 1000;

/// Pairs of one thread in a while.
fn pairs<T: Tracker>(tracker: &T, thread: &Thread, time: Duration) -> (u64, Duration) {
    let (start, mut done) = (Instant::now(), 0);
    loop {
        for _ in 0..BATCH {
            let held = black_box(tracker).get(thread).expect("alive");
            black_box(tracker.put(thread, held));
        }
        done += u64::from(BATCH);
        let passed = start.elapsed();
        if passed >= time {
            return (done, passed);
        }
    }
}

/// Nanoseconds a pair, as each thread sees it.
fn measure<T: Tracker>(tracker: &T, threads: usize) -> f64 {
    const WINDOWS: usize = 15;
    let gate = Barrier::new(threads);
    let one = |n| {
        let thread = Thread::at(n);
        let window = || {
            gate.wait();
            let (done, passed) = pairs(tracker, &thread, Duration::from_millis(20));
            passed.as_nanos() as f64 / done as f64
        };
        std::iter::repeat_with(window)
            .take(WINDOWS)
            .fold(f64::INFINITY, f64::min)
    };
    let sum: f64 = std::thread::scope(|scope| {
        let one = &one;
        let running: Vec<_> = (0..threads).map(|n| scope.spawn(move || one(n))).collect();
        running.into_iter().map(|t| t.join().expect("a run")).sum()
    });
    sum / threads as f64
}

fn row<T: Tracker>(threads: &[usize]) {
    print!("{:<14}", T::NAME);
    for &threads in threads {
        print!("{:>10.2}", measure(&T::new(), threads));
    }
    println!();
}

fn main() {
    let mut threads: Vec<usize> = std::env::args().skip(1).flat_map(|n| n.parse()).collect();
    if threads.is_empty() {
        threads = vec![1, 2];
    }
    println!(
        "rung {}; ns for a get and a put, by threads",
        percpu::barrier::rung()
    );
    print!("{:<14}", "");
    for threads in &threads {
        print!("{threads:>10}");
    }
    println!();
    row::<Plain>(&threads);
    row::<IncNotZero>(&threads);
    row::<RcuRef>(&threads);
    row::<PercpuRef>(&threads);
    row::<Slot<()>>(&threads);
    row::<FutexRef>(&threads);
    // After the kill: what is left of the per-CPU count.
    print!("{:<14}", "percpu killed");
    for &threads in &threads {
        let count = PercpuRef::new();
        count.get(&Thread::at(0));
        count.kill().expect("barrier");
        print!("{:>10.2}", measure(&count, threads));
    }
    println!();
}
