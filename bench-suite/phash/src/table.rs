//! The table: buckets, each with a count of waiters, a spin lock and a list of waiters.
//!
//! Floor 3 (`phash`). Owns the buckets. Knows nothing of how a table is protected, nor of its successor: whoever calls
//! has protected it.
//!
//! # One operation
//!
//! ```text
//! waiter                                    waker
//!   waiters += 1            "Announce"        the word is changed
//!   lock                                      fence             "Changed"
//!   moved? then give up                       waiters == 0? then nobody waits
//!   word == expected? queue                   lock; moved? then give up
//!   unlock                                    take waiters out; waiters -= as many
//!   not queued: waiters -= 1                  unlock; wake them
//! ```
//!
//! A waker that finds no waiter announced skips the lock. Either it sees the announcement, or the waiter sees the
//! changed word: announcement, look at the word and the waker's fence are SeqCst.
//!
//! # Moving
//!
//! A replacement moves one bucket after the other: under its lock the bucket is marked `MOVED`, for ever, and its
//! waiters are queued in the new table, each where it belongs there. So at any time one bucket speaks for a word: the
//! old one until it is marked; then the new one, which is in use when all are. Who meets a mark gives up, waits for that,
//! and comes back.
//!
//! The mark is also in the count of waiters, which is then never zero again: a waker that found the old table must not
//! believe a zero, since waiters have been announcing themselves in the new one. (The mark is SeqCst, and happens before
//! every announcement in the new table: a fence that is before the mark in the one order of SeqCst is before them.)
//!
//! Source: `kernel/futex/` (Linux), from its description; buckets that say they have moved are this project's. The
//! kernel moves waiters when nobody uses the old table, which schemes without a count cannot know.

use crate::census::Census;
use crate::park::Parker;
use percpu::sync::UnsafeCell;
use percpu::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
use percpu::sync::{spin_loop, yield_now};
use percpu::wait::Backoff;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// In the count of waiters: the bucket's waiters are in the next table.
const MOVED: u32 = 1 << 31;

/// What a live table carries, and what it is overwritten with.
const ALIVE: u64 = 0x5eed_7ab1_e0f0_75e5;
const DEAD: u64 = 0xdead_7ab1_edea_d7ab;

/// Looks at a taken lock before the processor is given away: the holder may need it.
const SPINS: u32 = 128;

/// A queued thread.
struct Waiter {
    key: usize,
    parker: Arc<Parker>,
}

/// What the lock guards.
#[derive(Default)]
struct Inside {
    moved: bool,
    list: Vec<Waiter>,
}

/// One bucket, on a line of its own.
#[repr(align(64))]
struct Bucket {
    waiters: AtomicU32,
    locked: AtomicU32,
    inside: UnsafeCell<Inside>,
}

// SAFETY: `inside` is touched under the lock only.
unsafe impl Send for Bucket {}
// SAFETY: as above.
unsafe impl Sync for Bucket {}

impl Bucket {
    fn new() -> Self {
        Bucket {
            waiters: AtomicU32::new(0),
            locked: AtomicU32::new(0),
            inside: UnsafeCell::new(Inside::default()),
        }
    }

    #[inline(always)]
    fn with<R>(&self, f: impl FnOnce(&mut Inside) -> R) -> R {
        // Acquire: pairs with "Unlock".
        while self
            .locked
            .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            self.wait_for_lock();
        }
        // SAFETY: the lock is held.
        let out = self.inside.with_mut(|inside| f(unsafe { &mut *inside }));
        // Release: "Unlock".
        self.locked.store(0, Ordering::Release);
        out
    }

    #[cold]
    #[inline(never)]
    fn wait_for_lock(&self) {
        let mut spins = 0;
        // Relaxed: the exchange decides.
        while self.locked.load(Ordering::Relaxed) != 0 {
            spins += 1;
            #[cfg(loom)]
            percpu::sim::looked_in_vain();
            if spins % SPINS == 0 {
                yield_now();
            } else {
                spin_loop();
            }
        }
    }

    /// A waiter is about to look, or is queued.
    #[inline(always)]
    fn announce(&self) {
        // SeqCst: "Announce", before the look at the word.
        self.waiters.fetch_add(1, Ordering::SeqCst);
        // loom takes a SeqCst access for an AcqRel one.
        #[cfg(loom)]
        fence(Ordering::SeqCst);
    }

    /// Takes back `n` announcements.
    #[inline(always)]
    fn leave(&self, n: u32) {
        // Relaxed: too many announced costs a waker a look, nothing else.
        self.waiters.fetch_sub(n, Ordering::Relaxed);
    }
}

/// What became of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempt<T> {
    /// It was made.
    Done(T),
    /// The bucket has moved: wait for the successor and come back.
    Moved,
}

/// A table of buckets.
pub struct Table {
    canary: AtomicU64,
    mask: usize,
    buckets: Box<[Bucket]>,
    /// When it was asked for.
    pub(crate) asked: Instant,
    /// When its successor was.
    replaced: OnceLock<Instant>,
    /// The successor is in use.
    superseded: AtomicBool,
    census: Arc<Census>,
}

impl Table {
    /// A table of `buckets` buckets.
    ///
    /// # Panics
    ///
    /// If that is not a power of two.
    pub(crate) fn new(buckets: usize, census: &Arc<Census>) -> Self {
        assert!(buckets.is_power_of_two(), "{buckets} buckets");
        let asked = Instant::now();
        // Relaxed: for people and tests.
        census.made.fetch_add(1, Ordering::Relaxed);
        Table {
            canary: AtomicU64::new(ALIVE),
            mask: buckets - 1,
            buckets: (0..buckets).map(|_| Bucket::new()).collect(),
            asked,
            replaced: OnceLock::new(),
            superseded: AtomicBool::new(false),
            census: Arc::clone(census),
        }
    }

    /// How many buckets there are.
    #[must_use]
    pub fn buckets(&self) -> usize {
        self.mask + 1
    }

    /// Which bucket the word at `address` has.
    #[inline(always)]
    #[must_use]
    pub fn index(&self, address: usize) -> usize {
        index(address, self.mask)
    }

    /// Whether the table has not been freed: what is asked of a table that is protected.
    #[inline(always)]
    #[must_use]
    pub fn is_alive(&self) -> bool {
        // Relaxed: a protected table does not change it.
        self.canary.load(Ordering::Relaxed) == ALIVE
    }

    /// The census that it reports to.
    pub(crate) fn census(&self) -> Arc<Census> {
        Arc::clone(&self.census)
    }

    #[inline(always)]
    fn bucket(&self, address: usize) -> &Bucket {
        &self.buckets[self.index(address)]
    }

    /// Queues the thread of `parker` on `word` if that holds `expected`; `Done(false)` if not.
    #[inline(always)]
    pub(crate) fn queue(
        &self,
        word: &AtomicU32,
        expected: u32,
        parker: &Arc<Parker>,
    ) -> Attempt<bool> {
        let key = std::ptr::from_ref(word).addr();
        let bucket = self.bucket(key);
        bucket.announce();
        let attempt = bucket.with(|inside| {
            if inside.moved {
                return Attempt::Moved;
            }
            // SeqCst: after "Announce", see the head of this file.
            if word.load(Ordering::SeqCst) != expected {
                return Attempt::Done(false);
            }
            push(inside, key, parker);
            Attempt::Done(true)
        });
        if attempt != Attempt::Done(true) {
            bucket.leave(1);
        }
        attempt
    }

    /// Takes the thread of `parker` out again; `Done(false)` if somebody else has.
    pub(crate) fn cancel(&self, key: usize, parker: &Arc<Parker>) -> Attempt<bool> {
        let bucket = self.bucket(key);
        let attempt = bucket.with(|inside| {
            if inside.moved {
                return Attempt::Moved;
            }
            let place = inside
                .list
                .iter()
                .position(|w| Arc::ptr_eq(&w.parker, parker));
            if let Some(place) = place {
                inside.list.remove(place);
            }
            Attempt::Done(place.is_some())
        });
        if attempt == Attempt::Done(true) {
            bucket.leave(1);
        }
        attempt
    }

    /// Takes up to `most` waiters on the word at `key` out, the longest queued first, wakes them and says how many.
    /// The caller has passed "Changed".
    pub(crate) fn wake(&self, key: usize, most: usize) -> Attempt<usize> {
        let bucket = self.bucket(key);
        // SeqCst: after "Changed", see the head of this file.
        if bucket.waiters.load(Ordering::SeqCst) == 0 {
            return Attempt::Done(0);
        }
        // No allocation for one, which is the usual number.
        let (mut first, mut rest) = (None, Vec::new());
        let attempt = bucket.with(|inside| {
            if inside.moved {
                return Attempt::Moved;
            }
            let mut place = 0;
            while place < inside.list.len() && rest.len() + usize::from(first.is_some()) < most {
                if inside.list[place].key != key {
                    place += 1;
                    continue;
                }
                let waiter = inside.list.remove(place);
                if first.is_none() {
                    first = Some(waiter);
                } else {
                    rest.push(waiter);
                }
            }
            Attempt::Done(usize::from(first.is_some()) + rest.len())
        });
        if let Attempt::Done(taken @ 1..) = attempt {
            bucket.leave(u32::try_from(taken).expect("fewer waiters than that"));
        }
        for waiter in first.iter().chain(&rest) {
            waiter.parker.unpark();
        }
        attempt
    }

    /// Moves all waiters to `next`, which nobody uses yet, bucket by bucket.
    pub(crate) fn move_to(&self, next: &Table) {
        for bucket in &self.buckets {
            bucket.with(|inside| {
                inside.moved = true;
                // SeqCst: the mark, see the head of this file.
                bucket.waiters.fetch_or(MOVED, Ordering::SeqCst);
                for waiter in inside.list.drain(..) {
                    let home = next.bucket(waiter.key);
                    home.announce();
                    home.with(|inside| inside.list.push(waiter));
                }
            });
        }
        let _ = self.replaced.set(next.asked);
    }

    /// Says that the next table is in use.
    pub(crate) fn supersede(&self) {
        // Release: "Superseded": who looks for the table in use then does not find this one.
        self.superseded.store(true, Ordering::Release);
    }

    /// By whom met a mark, still protecting this table: until the next one is in use.
    #[cold]
    #[inline(never)]
    pub(crate) fn wait_for_successor(&self) {
        let mut backoff = Backoff::new();
        // Acquire: pairs with "Superseded".
        while !self.superseded.load(Ordering::Acquire) {
            backoff.snooze();
        }
    }

    /// Queued threads, of all buckets: exact while nobody queues, wakes or moves.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.buckets
            .iter()
            .map(|bucket| bucket.with(|inside| inside.list.len()))
            .sum()
    }

    /// Announcements, of all buckets: those queued and those about to look.
    #[must_use]
    pub fn announced(&self) -> usize {
        // Relaxed: for tests.
        self.buckets
            .iter()
            .map(|bucket| (bucket.waiters.load(Ordering::Relaxed) & !MOVED) as usize)
            .sum()
    }
}

#[cold]
#[inline(never)]
fn push(inside: &mut Inside, key: usize, parker: &Arc<Parker>) {
    parker.prepare();
    inside.list.push(Waiter {
        key,
        parker: Arc::clone(parker),
    });
}

/// "Changed": what the caller did to the word is before the look at the waiters.
#[inline(always)]
pub(crate) fn changed() {
    // SeqCst: pairs with "Announce".
    fence(Ordering::SeqCst);
}

/// The bucket of an address among `mask + 1`: words are four bytes, and neighbours should not stay neighbours.
#[inline(always)]
#[must_use]
pub fn index(address: usize, mask: usize) -> usize {
    let mut x = (address >> 2) as u64;
    x = (x ^ (x >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    x = (x ^ (x >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    (x ^ (x >> 32)) as usize & mask
}

impl Drop for Table {
    fn drop(&mut self) {
        // Relaxed: for who should not look any more.
        self.canary.store(DEAD, Ordering::Relaxed);
        self.census.free(self.replaced.get().copied());
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table")
            .field("buckets", &self.buckets())
            .field("alive", &self.is_alive())
            .finish_non_exhaustive()
    }
}
