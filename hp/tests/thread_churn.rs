//! Memory under thread churn: records are reused, so the number of threads
//! that ever lived does not matter. A binary of its own, because it counts
//! every allocation of its process.
//!
//! Bug log 5.

use hp::{Atomic, Domain, HazardPointer};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, Ordering};
use std::thread;

static LIVE: AtomicIsize = AtomicIsize::new(0);

struct Counting;

// SAFETY: everything is the system allocator's; counting changes nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: the caller's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: the caller's contract.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// One short life: a guard from a line, nine in overflow slots, a held slot,
/// one retired object.
fn life(cell: &Atomic<u64>) {
    let guards: Vec<_> = (0..9).map(|_| cell.load().expect("a value")).collect();
    let mut hazard = HazardPointer::new();
    hazard.protect_raw(guards[0].as_ptr().cast());
    let mut detached = cell.load().expect("a value");
    detached.detach();
    cell.store(*guards[0] + 1);
}

/// Bug log 5: 10 000 short threads, four at a time.
#[test]
fn report_5_ten_thousand_short_threads() {
    const AT_ONCE: usize = 4;
    let waves = if cfg!(miri) { 8 } else { 2500 };
    let cell = Arc::new(Atomic::new(0u64));
    let wave = |count: usize| {
        for _ in 0..count {
            let threads: Vec<_> = (0..AT_ONCE)
                .map(|_| {
                    let cell = Arc::clone(&cell);
                    thread::spawn(move || life(&cell))
                })
                .collect();
            for thread in threads {
                thread.join().expect("a short life");
            }
        }
        Domain::global().drain();
    };
    // Whatever is allocated once: records for four threads, shards, vectors.
    wave(waves / 4);
    let before = LIVE.load(Ordering::Relaxed);
    wave(waves);
    let grown = LIVE.load(Ordering::Relaxed) - before;
    // A record a thread would be 256 bytes each, 2.56 MB in all. Vectors may
    // still double.
    assert!(grown < 512 * 1024, "{grown} bytes for {waves} waves");
    assert_eq!(Domain::global().stats().pending, 0);
}
