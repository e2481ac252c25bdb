//! A count with a dead zone, so that a weak get is one addition.
//!
//! Floor 3 (`refcounts`). Owns one word.
//!
//! # Zones
//!
//! The word is the number of references *minus one*, so that the last put
//! leaves the live zone and the sign bit tells all the rest.
//!
//! ```text
//! 0x0000_0000 … 0x7fff_ffff   live: 1 … 2^31 references   (ONEREF … MAXREF)
//! 0x8000_0000 … 0xbfff_ffff   saturated, parked at 0xa000_0000
//! 0xc000_0000 … 0xffff_fffe   released: dead, parked at 0xe000_0000
//! 0xffff_ffff                 NOREF: the last reference has gone, nobody has said dead
//! ```
//!
//! | word before | get | put |
//! |---|---|---|
//! | live | + 1; over the edge: parks in saturated; succeeds | − 1; from ONEREF: see NOREF |
//! | NOREF | succeeds: back to ONEREF | cannot be (a reference too many) |
//! | saturated | parks, succeeds; the object leaks | parks, not last |
//! | released | parks dead, fails | a put too many: parks dead, [`Outcome::Unbalanced`] |
//!
//! The put that leaves NOREF is not the last yet: it tries the exchange *NOREF
//! → dead*, and only who succeeds frees. If a get came between, the object is
//! alive again, and the reference's new holder will be the one that tries.
//!
//! Two rules follow.
//!
//! * **The word of the subtraction decides** whether to try the exchange, never
//!   a second look at the count. Between the two, others may have got, put and
//!   declared dead: the second look would find a put too many. (A bug that
//!   Linux had until 2025.)
//! * **A count of zero is not dead.** [`is_dead`](RcuRef::is_dead) is. At NOREF
//!   [`read`](RcuRef::read) says 0 while a get can still succeed.
//!
//! # Life of the memory
//!
//! A put between its subtraction and its exchange holds no reference, and
//! others may meanwhile get, put and be told that they were the last. So the
//! word must outlive every put that has begun: free the object after a grace
//! period of whatever protects readers, or under a hazard pointer. For the same
//! reason a get needs such a protection.
//!
//! # Orderings
//!
//! *Put* is Release; *Dead*, the exchange, is Acquire: it reads from the release
//! sequence of all puts, because every change of the word is a
//! read-modify-write. Parking is one too, so [`is_dead`](RcuRef::is_dead), which
//! is Acquire, gets the puts' pasts also from a word that a failed get has
//! parked.
//!
//! A reference is `UNIT`: with `1 << 24` zones are as wide as those of an 8-bit
//! count. Tests and models use that. Narrower ones would be wrong: gets on a
//! dead count carry it towards NOREF before they park it, and where a put of the
//! past still has its exchange to try, arriving there would make it the last
//! once more. So more gets than the 31 steps from DEAD to NOREF (2^29 with
//! `UNIT` 1) must not be under way at once. (With 4 bits the models find it.)
//!
//! Source: `rcuref_t` (Linux, Thomas Gleixner 2023); the parking by
//! read-modify-write is this project's.

use crate::{BarrierLost, Thread, Tracker};
use percpu::sync::atomic::{AtomicU32, Ordering};

const SATURATED_FROM: u32 = 0x8000_0000;
const SATURATED: u32 = 0xa000_0000;
const RELEASED: u32 = 0xc000_0000;
const DEAD: u32 = 0xe000_0000;

/// What a put has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Others have references.
    Shared,
    /// It was the last; the count is dead now.
    Last,
    /// The count is saturated: the object is never freed.
    Saturated,
    /// There was no reference to give back.
    Unbalanced,
}

/// The count. Begins live.
#[derive(Debug)]
pub struct RcuRef<const UNIT: u32 = 1> {
    word: AtomicU32,
}

impl<const UNIT: u32> RcuRef<UNIT> {
    /// References that are counted before the count saturates.
    pub const MAX: u32 = SATURATED_FROM / UNIT;
    /// No reference, not declared dead.
    const NOREF: u32 = 0u32.wrapping_sub(UNIT);

    /// A count of `references`.
    ///
    /// # Panics
    ///
    /// If there is none, or more than [`MAX`](Self::MAX).
    #[must_use]
    pub fn new(references: u32) -> Self {
        const { assert!(UNIT.is_power_of_two() && UNIT <= 1 << 24) };
        assert!((1..=Self::MAX).contains(&references));
        Self {
            word: AtomicU32::new((references - 1) * UNIT),
        }
    }

    /// One more reference unless the count is dead.
    ///
    /// # Progress
    ///
    /// Wait-free: one addition.
    #[inline]
    pub fn get(&self) -> bool {
        // Relaxed: the pointer that led here was published.
        let now = self
            .word
            .fetch_add(UNIT, Ordering::Relaxed)
            .wrapping_add(UNIT);
        now < SATURATED_FROM || self.get_cold(now)
    }

    #[cold]
    #[inline(never)]
    fn get_cold(&self, now: u32) -> bool {
        if now >= RELEASED {
            // Relaxed: keeps the release sequence of the puts alive.
            self.word.swap(DEAD, Ordering::Relaxed);
            return false;
        }
        // Relaxed: the object is never freed.
        self.word.swap(SATURATED, Ordering::Relaxed);
        true
    }

    /// Gives a reference back.
    ///
    /// # Progress
    ///
    /// Wait-free: one subtraction, and one exchange for who leaves no reference.
    #[inline]
    pub fn put_outcome(&self) -> Outcome {
        // Release: "Put", pairs with "Dead".
        let now = self
            .word
            .fetch_sub(UNIT, Ordering::Release)
            .wrapping_sub(UNIT);
        if now < SATURATED_FROM {
            return Outcome::Shared;
        }
        self.put_cold(now)
    }

    #[cold]
    #[inline(never)]
    fn put_cold(&self, now: u32) -> Outcome {
        if now == Self::NOREF {
            // Acquire: "Dead", pairs with every "Put". Relaxed on failure:
            // somebody got a reference, or somebody else declared it dead.
            return match self.word.compare_exchange(
                Self::NOREF,
                DEAD,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => Outcome::Last,
                Err(_) => Outcome::Shared,
            };
        }
        if now >= RELEASED {
            // Relaxed: as in `get_cold`.
            self.word.swap(DEAD, Ordering::Relaxed);
            return Outcome::Unbalanced;
        }
        // Relaxed: the object is never freed.
        self.word.swap(SATURATED, Ordering::Relaxed);
        Outcome::Saturated
    }

    /// Gives a reference back. Whether it was the last.
    ///
    /// # Progress
    ///
    /// Wait-free.
    #[inline]
    pub fn put(&self) -> bool {
        self.put_outcome() == Outcome::Last
    }

    /// Whether the count was declared dead: no get can succeed any more. For
    /// who frees without having been told by a put; what all holders did
    /// happens before a `true`.
    ///
    /// # Progress
    ///
    /// Wait-free.
    #[inline]
    pub fn is_dead(&self) -> bool {
        // Acquire: pairs with every "Put".
        let now = self.word.load(Ordering::Acquire);
        (RELEASED..Self::NOREF).contains(&now)
    }

    /// References now. **0 does not mean dead.** A saturated count is more than
    /// [`MAX`](Self::MAX).
    #[must_use]
    pub fn read(&self) -> u32 {
        // Relaxed: for people and tests.
        let now = self.word.load(Ordering::Relaxed);
        if now >= RELEASED { 0 } else { now / UNIT + 1 }
    }
}

impl Tracker for RcuRef {
    type Held = ();
    const NAME: &'static str = "rcuref";

    fn new() -> Self {
        RcuRef::new(1)
    }

    #[inline]
    fn get(&self, _: &Thread) -> Option<()> {
        self.get().then_some(())
    }

    #[inline]
    fn try_get(&self, _: &Thread) -> Option<()> {
        self.get().then_some(())
    }

    #[inline]
    fn put(&self, _: &Thread, (): ()) -> bool {
        self.put()
    }

    fn kill(&self, _: &Thread) -> Result<bool, BarrierLost> {
        Ok(self.put())
    }

    fn count(&self) -> usize {
        match self.read() {
            n if n > Self::MAX => usize::MAX,
            n => n as usize,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// As wide as an 8-bit count: 128 references.
    type Tiny = RcuRef<{ 1 << 24 }>;

    #[test]
    fn the_last_put_declares_it_dead() {
        let count = RcuRef::<1>::new(1);
        assert!(count.get());
        assert_eq!(count.read(), 2);
        assert_eq!(count.put_outcome(), Outcome::Shared);
        assert!(!count.is_dead());
        assert_eq!(count.put_outcome(), Outcome::Last);
        assert!(count.is_dead());
        assert!(!count.get());
        assert!(count.is_dead());
        assert_eq!(count.read(), 0);
    }

    #[test]
    fn an_overflow_saturates_for_ever() {
        let count = Tiny::new(Tiny::MAX);
        for _ in 0..1000 {
            assert!(count.get());
        }
        assert!(count.read() > Tiny::MAX);
        for _ in 0..1000 {
            assert_ne!(count.put_outcome(), Outcome::Last);
        }
        assert!(count.read() > Tiny::MAX);
        assert!(!count.is_dead());
    }

    #[test]
    fn a_put_too_many_is_noticed() {
        let count = Tiny::new(1);
        assert!(count.put());
        for _ in 0..1000 {
            assert_eq!(count.put_outcome(), Outcome::Unbalanced);
        }
        assert!(count.is_dead());
    }

    #[test]
    fn a_dead_count_stays_dead_under_gets() {
        let count = Tiny::new(1);
        assert!(count.put());
        for _ in 0..1000 {
            assert!(!count.get());
        }
        assert!(count.is_dead());
    }

    /// Both ends of each zone, by hand.
    #[test]
    fn zones() {
        let at = |word: u32| RcuRef::<1> {
            word: AtomicU32::new(word),
        };
        assert!(at(0x7fff_fffe).get());
        let edge = at(0x7fff_ffff);
        assert!(edge.get());
        assert_eq!(edge.read(), SATURATED + 1);
        assert_eq!(at(0x8000_0001).put_outcome(), Outcome::Saturated);
        assert!(at(0xbfff_fffe).get());
        assert!(!at(0xc000_0000).get());
        assert!(!at(0xffff_fffe - 1).get());
        let noref = at(0xffff_ffff);
        assert_eq!(noref.read(), 0);
        assert!(!noref.is_dead(), "no reference, but not dead");
        assert!(noref.get(), "and not too late");
        assert_eq!(noref.read(), 1);
        assert_eq!(at(0).put_outcome(), Outcome::Last);
        assert_eq!(at(0xc000_0001).put_outcome(), Outcome::Unbalanced);
    }
}
