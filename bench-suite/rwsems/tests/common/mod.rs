//! What the tests of locks share.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test file uses its part of this"
)]

use rwsems::futex::{Futex, Os, Refused, Word};
use rwsems::{RwSem, VisitLock};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// Ends the program if what runs beside it hangs: a lost wake-up must fail, not
/// wait for ever.
pub struct Watchdog(Arc<AtomicBool>);

impl Watchdog {
    pub fn new(what: &'static str) -> Self {
        let done = Arc::new(AtomicBool::new(false));
        let theirs = Arc::clone(&done);
        std::thread::spawn(move || {
            let start = Instant::now();
            while !theirs.load(SeqCst) {
                if start.elapsed() > Duration::from_secs(120) {
                    eprintln!("HANGS: {what}");
                    std::process::abort();
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        Watchdog(done)
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// Runs `test` with every lock that can be had here.
pub fn for_each_lock(test: impl VisitLock<Out = ()> + Copy) {
    for about in rwsems::all().iter().filter(|about| about.locks) {
        if about.pi && rwsems::futex::pi_available().is_err() {
            continue;
        }
        rwsems::dispatch_lock(about.name, test).expect("a lock");
    }
}

/// Returns from every other wait without having waited, and refuses PI futexes
/// for a while.
#[derive(Debug)]
pub struct Restless;

fn next() -> usize {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    CALLS.fetch_add(1, SeqCst)
}

impl Futex for Restless {
    fn wait(word: &Word, expected: u32) {
        if next().is_multiple_of(2) {
            std::thread::yield_now();
        } else {
            Os::wait(word, expected);
        }
    }

    fn lock_pi(word: &Word) -> Result<(), Refused> {
        match next() % 4 {
            0 => Err(Refused::Again),
            1 => Err(Refused::Interrupted),
            _ => Os::lock_pi(word),
        }
    }
}

/// Threads that read and write; nobody meets whom it must not. Returns the most
/// readers that were inside together.
pub fn storm<L: RwSem>(lock: &L, readers: usize, writers: usize, rounds: usize) -> usize {
    let (inside, writing) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let (most, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let name = L::ABOUT.name;
    let reading = |n: usize| {
        for round in 0..rounds {
            let guard = if (round + n).is_multiple_of(7) {
                match lock.try_read() {
                    Some(guard) => guard,
                    None => continue,
                }
            } else {
                lock.read()
            };
            let now = inside.fetch_add(1, SeqCst) + 1;
            most.fetch_max(now, SeqCst);
            assert_eq!(writing.load(SeqCst), 0, "{name}: a writer beside a reader");
            if round % 5 == 0 {
                std::thread::yield_now();
            }
            assert_eq!(writing.load(SeqCst), 0, "{name}: a writer beside a reader");
            inside.fetch_sub(1, SeqCst);
            drop(guard);
        }
        done.fetch_add(1, SeqCst);
    };
    let write = |n: usize| {
        for round in 0..rounds {
            let guard = if (round + n).is_multiple_of(5) {
                match lock.try_write() {
                    Some(guard) => guard,
                    None => continue,
                }
            } else {
                lock.write()
            };
            assert_eq!(writing.fetch_add(1, SeqCst), 0, "{name}: two writers");
            assert_eq!(inside.load(SeqCst), 0, "{name}: a reader beside a writer");
            if round % 3 == 0 {
                std::thread::yield_now();
            }
            assert_eq!(inside.load(SeqCst), 0, "{name}: a reader beside a writer");
            writing.fetch_sub(1, SeqCst);
            drop(guard);
        }
        done.fetch_add(1, SeqCst);
    };
    std::thread::scope(|scope| {
        for n in 0..readers {
            scope.spawn(move || reading(n));
        }
        for n in 0..writers {
            scope.spawn(move || write(n));
        }
    });
    assert_eq!(done.load(SeqCst), readers + writers, "{name}");
    // Free again.
    drop(
        lock.try_write()
            .unwrap_or_else(|| panic!("{name}: not free")),
    );
    drop(
        lock.try_read()
            .unwrap_or_else(|| panic!("{name}: not free")),
    );
    most.load(SeqCst)
}
