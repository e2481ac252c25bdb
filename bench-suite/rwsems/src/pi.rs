//! A mutex that is a PI futex: who holds it runs at least at the priority of
//! the most urgent thread that waits.
//!
//! Floor 3 (`rwsems`). Owns one word; waits through `futex`.
//!
//! # The word
//!
//! | bits 0 … 29 | bit 30 | bit 31 |
//! |---|---|---|
//! | number of the thread that owns it, 0 for none | its last owner has ended | somebody waits in the kernel |
//!
//! Taking it when it is 0 and giving it back when nobody waits is one
//! compare-exchange each; everything else is the kernel's `FUTEX_LOCK_PI` and
//! `FUTEX_UNLOCK_PI`, which hand it to the most urgent waiter.
//!
//! # A dead owner
//!
//! If a thread ends while it owns the word,
//! * and somebody waits in the kernel, the kernel hands it on with bit 30 set;
//! * and somebody comes later, the kernel finds no such thread and says so. The
//!   caller then takes the word over itself, by an exchange from the value that
//!   it had seen before it asked.
//!
//! Both are answered with [`Taken::FromTheDead`]: what the lock guards may be
//! half done. Not noticed: an owner whose number another thread has by now; then
//! the wait lasts as long as that one lives. (A robust list would know, but the
//! one that a thread has belongs to the C library.)
//!
//! # Orderings
//!
//! *Lock* is Acquire and pairs with *Unlock*, Release. The kernel's own changes
//! are fully ordered.
//!
//! Source: `Documentation/locking/pi-futex.rst` and `futex(2)` (Linux, Ingo Molnar
//! and Thomas Gleixner 2006).

use crate::futex::{Futex, Os, Refused, Word};
use crate::os::{OWNER, OWNER_DIED, WAITERS, thread_id};
use core::marker::PhantomData;
use percpu::sync::atomic::{Ordering, Statistic};
use percpu::wait::Backoff;

/// How the lock came to the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Taken {
    /// The last owner gave it back.
    Clean,
    /// The last owner has ended inside.
    FromTheDead,
}

/// The mutex, without what it guards.
#[derive(Debug)]
pub struct PiMutex<F: Futex = Os> {
    word: Word,
    deaths: Statistic,
    futex: PhantomData<F>,
}

impl<F: Futex> PiMutex<F> {
    /// A free one.
    #[must_use]
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Self {
            word: Word::new(0),
            deaths: Statistic::new(0),
            futex: PhantomData,
        }
    }

    /// Takes it.
    ///
    /// # Panics
    ///
    /// If the caller has it, or its wait closes a circle (the kernel notices);
    /// if there are no PI futexes here and it would have to wait.
    ///
    /// # Progress
    ///
    /// Waits for the owner, who inherits the caller's priority, and for those
    /// that are more urgent or came before.
    #[inline]
    pub fn lock(&self) -> Taken {
        let me = thread_id();
        if self.grab(me) {
            return Taken::Clean;
        }
        self.lock_cold(me)
    }

    /// Takes it if it is free. Does not notice a dead owner.
    ///
    /// # Progress
    ///
    /// Wait-free.
    #[inline]
    pub fn try_lock(&self) -> bool {
        self.grab(thread_id())
    }

    #[inline(always)]
    fn grab(&self, me: u32) -> bool {
        let word = &self.word.value;
        // Acquire: "Lock", pairs with "Unlock".
        word.compare_exchange(0, me, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    #[cold]
    #[inline(never)]
    fn lock_cold(&self, me: u32) -> Taken {
        let mut backoff = Backoff::new();
        loop {
            // Relaxed: only compared.
            let seen = self.word.value.load(Ordering::Relaxed);
            match F::lock_pi(&self.word) {
                Ok(()) => return self.how(),
                Err(Refused::Interrupted) => {}
                Err(Refused::Again) => backoff.snooze(),
                Err(Refused::OwnerGone) => {
                    if seen & OWNER != 0 && self.inherit(seen, me) {
                        return self.how();
                    }
                    backoff.snooze();
                }
                Err(Refused::Deadlock) => panic!("deadlock: the thread would wait for itself"),
                Err(Refused::Missing) => panic!("no PI futexes here"),
                Err(Refused::Other(errno)) => panic!("PI futex: error {errno}"),
            }
        }
    }

    /// Takes the word over from a thread that is no more.
    fn inherit(&self, seen: u32, me: u32) -> bool {
        let mine = me | OWNER_DIED | seen & WAITERS;
        let word = &self.word.value;
        // Acquire: a "Lock" like any other. (The dead has released nothing; who
        // had it before has.)
        word.compare_exchange(seen, mine, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    fn how(&self) -> Taken {
        // Relaxed: written by the kernel on this thread's behalf, or by itself.
        if self.word.value.load(Ordering::Relaxed) & OWNER_DIED == 0 {
            return Taken::Clean;
        }
        self.deaths.fetch_add(1, Ordering::Relaxed);
        Taken::FromTheDead
    }

    /// Gives it back.
    ///
    /// # Panics
    ///
    /// If the kernel does not take it: the caller does not own it.
    ///
    /// # Progress
    ///
    /// Wait-free, if the system call is.
    #[inline]
    pub fn unlock(&self) {
        let (me, word) = (thread_id(), &self.word.value);
        debug_assert!(self.is_mine(), "given back by another thread");
        // Release: "Unlock", pairs with "Lock".
        if word
            .compare_exchange(me, 0, Ordering::Release, Ordering::Relaxed)
            .is_err()
        {
            self.unlock_cold();
        }
    }

    #[cold]
    #[inline(never)]
    fn unlock_cold(&self) {
        loop {
            match F::unlock_pi(&self.word) {
                Ok(()) => return,
                Err(Refused::Again | Refused::Interrupted) => percpu::sync::yield_now(),
                Err(why) => panic!("PI futex cannot be given back: {why:?}"),
            }
        }
    }

    /// Whether the calling thread has it.
    #[inline]
    #[must_use]
    pub fn is_mine(&self) -> bool {
        // Relaxed: nobody but this thread, or the kernel while it waits, writes
        // its number.
        self.word.value.load(Ordering::Relaxed) & OWNER == thread_id()
    }

    /// How often it was taken from a thread that had ended.
    #[must_use]
    pub fn deaths(&self) -> u64 {
        // Relaxed: for people and tests.
        self.deaths.load(Ordering::Relaxed)
    }
}

#[cfg(all(test, not(loom), target_os = "linux", not(miri)))]
mod tests {
    use super::*;
    use percpu::sync::atomic::{AtomicU32 as Count, Ordering::SeqCst};

    #[test]
    fn one_at_a_time() {
        let (mutex, inside) = (PiMutex::<Os>::new(), Count::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..5_000 {
                        assert_eq!(mutex.lock(), Taken::Clean);
                        assert_eq!(inside.fetch_add(1, SeqCst), 0);
                        inside.fetch_sub(1, SeqCst);
                        mutex.unlock();
                    }
                });
            }
        });
        assert_eq!(mutex.word.peek(), 0);
    }

    /// The owner ends, then somebody comes.
    #[test]
    fn a_dead_owner_is_found() {
        let mutex = PiMutex::<Os>::new();
        std::thread::scope(|scope| {
            scope.spawn(|| mutex.lock() == Taken::Clean);
        });
        assert!(!mutex.try_lock() && !mutex.is_mine());
        assert_eq!(mutex.lock(), Taken::FromTheDead);
        mutex.unlock();
        assert_eq!(mutex.lock(), Taken::Clean);
        mutex.unlock();
        assert_eq!((mutex.word.peek(), mutex.deaths()), (0, 1));
    }

    /// Somebody waits, then the owner ends.
    #[test]
    fn a_dying_owner_hands_on() {
        let (mutex, held) = (PiMutex::<Os>::new(), std::sync::Barrier::new(2));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _ = mutex.lock();
                held.wait();
                while mutex.word.peek() & WAITERS == 0 {
                    std::thread::yield_now();
                }
            });
            held.wait();
            assert_eq!(mutex.lock(), Taken::FromTheDead);
            mutex.unlock();
        });
        assert_eq!((mutex.word.peek(), mutex.deaths()), (0, 1));
    }

    #[test]
    #[should_panic(expected = "deadlock")]
    fn twice_is_a_deadlock() {
        let mutex = PiMutex::<Os>::new();
        let _ = mutex.lock();
        let _ = mutex.lock();
    }

    /// As the kernel may: nothing is given at first, for one reason or another.
    #[derive(Debug)]
    struct Moody;

    impl Futex for Moody {
        fn lock_pi(word: &Word) -> Result<(), Refused> {
            match mood() {
                0 => Err(Refused::Again),
                1 => Err(Refused::Interrupted),
                // Not true: the owner lives, or has given it back.
                2 if word.peek() & OWNER == 0 => Err(Refused::OwnerGone),
                _ => Os::lock_pi(word),
            }
        }

        fn unlock_pi(word: &Word) -> Result<(), Refused> {
            match mood() {
                0 => Err(Refused::Again),
                1 => Err(Refused::Interrupted),
                _ => Os::unlock_pi(word),
            }
        }
    }

    fn mood() -> u32 {
        static MOOD: Count = Count::new(0);
        MOOD.fetch_add(1, SeqCst) % 5
    }

    #[test]
    fn refusals_that_pass_are_not_the_end() {
        let (mutex, inside) = (PiMutex::<Moody>::new(), Count::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..1_000 {
                        let _ = mutex.lock();
                        assert_eq!(inside.fetch_add(1, SeqCst), 0);
                        std::thread::yield_now();
                        inside.fetch_sub(1, SeqCst);
                        mutex.unlock();
                    }
                });
            }
        });
        assert_eq!((mutex.word.peek(), mutex.deaths()), (0, 0));
    }
}
