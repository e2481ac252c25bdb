//! Memory under thread churn: records are reused, so the number of threads
//! that ever lived does not matter. A binary of its own, because it counts
//! every allocation of its process.
//!
//! Bug log 5.

use rcu_lite::{Callbacks, Flavor, QsbrRcu, Rcu, RcuCell, ThreadRcu};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
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

/// One test at a time: the count is the process's.
static ALONE: Mutex<()> = Mutex::new(());

fn threads<F: Flavor + Clone>(flavor: &F, waves: usize) {
    let cell = Arc::new(RcuCell::new_in(0u64, flavor.clone()));
    for _ in 0..waves {
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let cell = Arc::clone(&cell);
                thread::spawn(move || {
                    let guard = cell.flavor().read();
                    let seen = *cell.load(&guard);
                    cell.replace(seen + 1);
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("a short life");
        }
    }
    flavor.barrier();
}

/// Bug log 5: 3 000 short threads a flavour, two at a time.
#[test]
fn report_5_thousands_of_short_threads() {
    fn check<F: Flavor + Clone>(name: &str, flavor: F) {
        let waves = if cfg!(miri) { 8 } else { 1500 };
        flavor.set_callbacks(Callbacks::Manual);
        // Whatever is allocated once: a block for each of the shards that the
        // threads are spread over, and for those that are being run.
        threads(&flavor, 60);
        threads(&flavor, 60);
        let before = LIVE.load(Ordering::Relaxed);
        threads(&flavor, waves);
        let grown = LIVE.load(Ordering::Relaxed) - before;
        // A record a thread is 128 bytes: 384 kB in all. Vectors may double.
        assert!(grown < 192 * 1024, "{name}: {grown} bytes");
        assert_eq!(flavor.stats().pending, 0, "{name}");
    }
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    check("thread", ThreadRcu);
    check("qsbr", QsbrRcu);
    check("global", Rcu::global());
}

/// Late sections, in a thread's end, give their records back as well.
#[test]
fn report_5_records_of_late_sections() {
    thread_local! {
        static LATE: Late = const { Late };
    }
    struct Late;
    impl Drop for Late {
        fn drop(&mut self) {
            let (a, b) = (ThreadRcu.read(), ThreadRcu.read());
            let (c, d) = (QsbrRcu.read(), QsbrRcu.online());
            drop((a, c, b, d));
        }
    }
    let wave = |count: usize| {
        for _ in 0..count {
            let thread = thread::spawn(|| {
                // Ends after the library's own.
                LATE.with(|_| ());
                drop((ThreadRcu.read(), QsbrRcu.read()));
            });
            thread.join().expect("a short life");
        }
    };
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let count = if cfg!(miri) { 5 } else { 1000 };
    wave(count / 4);
    let before = LIVE.load(Ordering::Relaxed);
    wave(count);
    let grown = LIVE.load(Ordering::Relaxed) - before;
    // Two or three records a thread would be 256 to 384 kB.
    assert!(grown < 128 * 1024, "{grown} bytes");
}
