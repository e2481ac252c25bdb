//! How a thread sleeps and is woken: one real futex a thread.
//!
//! Floor 3 (`phash`). Owns the word that a thread sleeps on; may call the kernel's futex.
//!
//! The word says whether its thread is queued. Who takes the thread out of a bucket stores `AWAKE` and then wakes. A
//! sleep may return for no reason (a signal, a late wake of the wait before): the word decides, never the return. Who
//! wakes holds a share of the word, so a late wake meets no memory of another purpose.
//!
//! # Orderings
//!
//! *Awake* (Release) pairs with the Acquire of the sleeper's look: what the waker did happens before the return.

use percpu::sync::atomic::{AtomicU32, Ordering};
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

const AWAKE: u32 = 0;
const QUEUED: u32 = 1;

/// A way to sleep on a word. A type of its own so that tests can sleep badly.
pub trait Sleep: Send + Sync + fmt::Debug {
    /// Sleeps while `*word == value`, not longer than `until`. May return at any time.
    fn sleep(&self, word: &AtomicU32, value: u32, until: Option<Instant>);

    /// Wakes the thread that sleeps on `word`, after a change of it.
    fn wake(&self, word: &AtomicU32);
}

/// One thread's word, and how it sleeps on it.
#[derive(Debug)]
pub(crate) struct Parker<S: ?Sized = dyn Sleep> {
    word: AtomicU32,
    sleep: S,
}

impl Parker {
    pub(crate) fn new(sleep: impl Sleep + 'static) -> Arc<Self> {
        Arc::new(Parker {
            word: AtomicU32::new(AWAKE),
            sleep,
        })
    }

    /// Before the thread is queued, under the bucket's lock.
    pub(crate) fn prepare(&self) {
        // Relaxed: the lock hands it to whoever takes the thread out.
        self.word.store(QUEUED, Ordering::Relaxed);
    }

    /// By whom took the thread out of its bucket.
    pub(crate) fn unpark(&self) {
        // Release: "Awake".
        self.word.store(AWAKE, Ordering::Release);
        self.sleep.wake(&self.word);
    }

    /// Until [`unpark`](Self::unpark); or until `until`, then `false`.
    pub(crate) fn park(&self, until: Option<Instant>) -> bool {
        loop {
            // Acquire: pairs with "Awake".
            if self.word.load(Ordering::Acquire) == AWAKE {
                return true;
            }
            if until.is_some_and(|until| until <= Instant::now()) {
                return false;
            }
            self.sleep.sleep(&self.word, QUEUED, until);
        }
    }
}

/// The kernel's futex.
#[cfg(target_os = "linux")]
#[derive(Debug, Default)]
pub struct Futex;

#[cfg(target_os = "linux")]
impl Futex {
    /// It has no state.
    #[must_use]
    pub fn new() -> Self {
        Futex
    }
}

#[cfg(target_os = "linux")]
impl Sleep for Futex {
    fn sleep(&self, word: &AtomicU32, value: u32, until: Option<Instant>) {
        let left = until.map(|until| {
            let left = until.saturating_duration_since(Instant::now());
            libc::timespec {
                tv_sec: libc::time_t::try_from(left.as_secs()).unwrap_or(libc::time_t::MAX),
                tv_nsec: left.subsec_nanos() as libc::c_long,
            }
        });
        let left = left.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: the word and the time outlive the call. What it returns says nothing: the caller looks again.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                std::ptr::from_ref(word),
                libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
                value,
                left,
            );
        }
    }

    fn wake(&self, word: &AtomicU32) {
        // SAFETY: an address, which the kernel does not touch.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                std::ptr::from_ref(word),
                libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
                1,
            );
        }
    }
}

/// Where there is no futex: a mutex and a condition.
#[cfg(not(target_os = "linux"))]
#[derive(Debug, Default)]
pub struct Futex(crate::sync::Mutex<()>, crate::sync::Condvar);

#[cfg(not(target_os = "linux"))]
impl Futex {
    /// One for a thread.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

#[cfg(not(target_os = "linux"))]
impl Sleep for Futex {
    fn sleep(&self, word: &AtomicU32, value: u32, until: Option<Instant>) {
        let guard = crate::sync::lock(&self.0);
        // Relaxed: the caller looks again.
        if word.load(Ordering::Relaxed) == value {
            drop(crate::sync::wait(&self.1, guard, until));
        }
    }

    fn wake(&self, _: &AtomicU32) {
        drop(crate::sync::lock(&self.0));
        self.1.notify_one();
    }
}
