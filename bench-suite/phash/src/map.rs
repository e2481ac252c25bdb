//! The hash: wait, wake, replace, whatever protects the table.
//!
//! Floor 3 (`phash`). Owns the order of an operation; protects through the scheme, queues through `table`, sleeps
//! through `park`.

use crate::census::Census;
use crate::park::{Futex, Parker, Sleep};
use crate::scheme::{Replaced, Replaces, Scheme};
use crate::table::{Attempt, Table, changed};
use percpu::sync::atomic::AtomicU32;
use refcounts::Thread;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

/// What a thread brings along: the word that it sleeps on, and its number among the threads.
#[derive(Debug)]
pub struct Handle {
    parker: Arc<Parker>,
    thread: Thread,
    dead: u64,
}

impl Handle {
    /// One that sleeps on a futex of the kernel.
    #[must_use]
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Self::that_sleeps(Futex::new())
    }

    /// One that sleeps in its own way.
    #[must_use]
    pub fn that_sleeps(how: impl Sleep + 'static) -> Self {
        Handle {
            parker: Parker::new(how),
            thread: Thread::new(),
            dead: 0,
        }
    }

    /// How often a protected table was dead: any is a bug of the scheme.
    #[must_use]
    pub fn dead(&self) -> u64 {
        self.dead
    }

    #[inline(always)]
    fn look(&mut self, alive: bool) {
        if !alive {
            self.dead += 1;
        }
    }
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Somebody woke the thread.
    Woken,
    /// The word did not hold what was expected (`EAGAIN`).
    Mismatch,
    /// The time was over (`ETIMEDOUT`).
    TimedOut,
}

/// A futex hash whose table is protected by `S`.
pub struct Phash<S> {
    scheme: S,
    census: Arc<Census>,
}

impl<S: Scheme> Phash<S> {
    /// With a table of `buckets` buckets.
    ///
    /// # Panics
    ///
    /// If that is not a power of two.
    #[must_use]
    pub fn new(buckets: usize) -> Self {
        let census = Arc::new(Census::new());
        Phash {
            scheme: S::new(Table::new(buckets, &census)),
            census,
        }
    }

    /// What became of its tables; outlives it.
    #[must_use]
    pub fn census(&self) -> Arc<Census> {
        Arc::clone(&self.census)
    }

    /// Looks at the table in use.
    pub fn look<R>(&self, handle: &Handle, f: impl FnOnce(&Table) -> R) -> R {
        f(&self.scheme.protect(&handle.thread))
    }

    /// Waits until somebody wakes `word`, not longer than `until`; at once [`Wait::Mismatch`] if it does not hold
    /// `expected`. Never returns [`Wait::Woken`] for no reason.
    ///
    /// # Progress
    ///
    /// Up to a mismatch: spins for the bucket's lock, and while a replacement moves waiters.
    #[inline]
    pub fn wait(
        &self,
        handle: &mut Handle,
        word: &AtomicU32,
        expected: u32,
        until: Option<Instant>,
    ) -> Wait {
        loop {
            let table = self.scheme.protect(&handle.thread);
            let attempt = table.queue(word, expected, &handle.parker);
            if attempt == Attempt::Moved {
                table.wait_for_successor();
            }
            let alive = table.is_alive();
            drop(table);
            handle.look(alive);
            match attempt {
                Attempt::Done(false) => return Wait::Mismatch,
                Attempt::Done(true) => return self.sleep(handle, word, until),
                Attempt::Moved => {}
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn sleep(&self, handle: &mut Handle, word: &AtomicU32, until: Option<Instant>) -> Wait {
        let key = std::ptr::from_ref(word).addr();
        if handle.parker.park(until) {
            return Wait::Woken;
        }
        loop {
            let table = self.scheme.protect(&handle.thread);
            let attempt = table.cancel(key, &handle.parker);
            if attempt == Attempt::Moved {
                table.wait_for_successor();
            }
            let alive = table.is_alive();
            drop(table);
            handle.look(alive);
            match attempt {
                Attempt::Done(true) => return Wait::TimedOut,
                Attempt::Done(false) => {
                    // Somebody has taken the thread out and is about to say so.
                    handle.parker.park(None);
                    return Wait::Woken;
                }
                Attempt::Moved => {}
            }
        }
    }

    /// Wakes up to `most` threads that wait on `word`, which the caller has changed. How many.
    ///
    /// # Progress
    ///
    /// As [`wait`](Self::wait) up to a mismatch; without the lock if nobody waits in the bucket.
    #[inline]
    pub fn wake(&self, handle: &mut Handle, word: &AtomicU32, most: usize) -> usize {
        changed();
        let key = std::ptr::from_ref(word).addr();
        loop {
            let table = self.scheme.protect(&handle.thread);
            let attempt = table.wake(key, most);
            if attempt == Attempt::Moved {
                table.wait_for_successor();
            }
            let alive = table.is_alive();
            drop(table);
            handle.look(alive);
            match attempt {
                Attempt::Done(woken) => return woken,
                Attempt::Moved => {}
            }
        }
    }

    /// Replaces the table by one of `buckets` buckets; waiters go on waiting, there. Requests are carried out one after
    /// the other: this one waits for earlier ones, then, where the scheme must, for the last user of the old table.
    /// Until `until`: what [`Replaced`] says of each case. A request that is pending is never taken back.
    ///
    /// # Panics
    ///
    /// If `buckets` is not a power of two.
    ///
    /// # Progress
    ///
    /// [`Replaces`] says what it waits for.
    pub fn replace(&self, handle: &Handle, buckets: usize, until: Option<Instant>) -> Replaced {
        if S::ABOUT.replaces == Replaces::Never {
            return Replaced::Never;
        }
        let next = Table::new(buckets, &self.census);
        self.scheme.replace(&handle.thread, next, until)
    }

    /// Frees replaced tables that nobody has.
    pub fn flush(&self) {
        self.scheme.flush();
    }
}

impl<S: Scheme> fmt::Debug for Phash<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Phash")
            .field("scheme", &S::ABOUT.name)
            .field("census", &self.census)
            .finish()
    }
}
