//! One shared count: the baseline of baselines.
//!
//! Floor 3 (`refcounts`). Owns one word.
//!
//! # Zones
//!
//! ```text
//! 0          1 ……………………… 0x7fff_ffff  0x8000_0000 …… 0xc000_0000 …… 0xffff_ffff
//! ├── free ──┼──────── live ─────────┼──────────────── saturated ─────────────┤
//!                                                    ^ parked here
//! ```
//!
//! | state | get | get unless zero | put |
//! |---|---|---|---|
//! | free | saturates (the caller has no reference: a leak is better than a use after free) | fails | saturates |
//! | live, n | n + 1 | n + 1 | n − 1; the one that leaves 0 is the last |
//! | saturated | parks | succeeds | parks, never last: the object leaks |
//!
//! A count that leaves the live zone by overflow has 2^30 steps to either end
//! of the saturated one, so racing threads cannot carry it out.
//!
//! A reference is `UNIT`: with `1 << 24`, zones are as wide as those of an
//! 8-bit count. Tests and models use that.
//!
//! # Orderings
//!
//! A get carries nothing: the caller has the object already, or found it
//! through a pointer that was published. *Put* is Release and pairs with the
//! Acquire load of whoever is the last: all uses happen before the freeing.
//!
//! Source: `refcount_t` of Linux (zones), Boost and `Arc` (orderings).

use crate::{BarrierLost, Thread, Tracker};
use percpu::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// First of the saturated zone.
const SATURATED_FROM: u32 = 0x8000_0000;
/// Where a saturated count is parked.
const SATURATED: u32 = 0xc000_0000;

/// An atomic count. Begins at 1.
#[derive(Debug)]
pub struct Plain<const UNIT: u32 = 1> {
    count: AtomicU32,
}

impl<const UNIT: u32> Plain<UNIT> {
    /// References that are counted before the count saturates.
    pub const MAX: u32 = (SATURATED_FROM - 1) / UNIT;

    /// A count of `references`.
    ///
    /// # Panics
    ///
    /// If there are more than [`MAX`](Self::MAX).
    #[must_use]
    pub fn new(references: u32) -> Self {
        const { assert!(UNIT.is_power_of_two() && UNIT <= 1 << 24) };
        assert!(references <= Self::MAX);
        Self {
            count: AtomicU32::new(references * UNIT),
        }
    }

    /// One more reference; the caller has one.
    ///
    /// # Progress
    ///
    /// Wait-free.
    #[inline]
    pub fn get(&self) {
        // Relaxed: the caller has the object already.
        let old = self.count.fetch_add(UNIT, Ordering::Relaxed);
        if old == 0 || old >= SATURATED_FROM - UNIT {
            self.saturate();
        }
    }

    /// One more reference unless there is none. Whether there was one.
    ///
    /// # Progress
    ///
    /// Lock-free: an attempt fails when another thread's succeeds.
    #[inline]
    pub fn get_unless_zero(&self) -> bool {
        // Relaxed (all): the pointer that led here was published.
        let mut now = self.count.load(Ordering::Relaxed);
        loop {
            if now == 0 {
                return false;
            }
            if now >= SATURATED_FROM {
                return true;
            }
            match self.count.compare_exchange_weak(
                now,
                now + UNIT,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return true,
                Err(seen) => now = seen,
            }
        }
    }

    /// Gives a reference back. Whether it was the last.
    ///
    /// # Progress
    ///
    /// Wait-free.
    #[inline]
    pub fn put(&self) -> bool {
        // Release: "Put", pairs with the Acquire of the last one.
        let old = self.count.fetch_sub(UNIT, Ordering::Release);
        if old == UNIT {
            // Acquire: pairs with every "Put", which are one release sequence.
            self.count.load(Ordering::Acquire);
            return true;
        }
        if old == 0 || old >= SATURATED_FROM {
            self.saturate();
        }
        false
    }

    #[cold]
    #[inline(never)]
    fn saturate(&self) {
        // Relaxed: the object is never freed.
        self.count.swap(SATURATED, Ordering::Relaxed);
    }

    /// References now; `None` if saturated.
    #[must_use]
    pub fn count(&self) -> Option<u32> {
        // Relaxed: for people and tests.
        let now = self.count.load(Ordering::Relaxed);
        (now < SATURATED_FROM).then_some(now / UNIT)
    }
}

/// As [`Plain::get_unless_zero`], for a count without zones.
#[inline]
pub(crate) fn get_unless_zero(count: &AtomicUsize) -> bool {
    // Relaxed (all): as there.
    let mut now = count.load(Ordering::Relaxed);
    while now != 0 {
        match count.compare_exchange_weak(
            now,
            now.wrapping_add(1),
            Ordering::Relaxed,
            Ordering::Relaxed,
        ) {
            Ok(_) => return true,
            Err(seen) => now = seen,
        }
    }
    false
}

/// As [`Plain::put`], for a count without zones.
#[inline]
pub(crate) fn put(count: &AtomicUsize) -> bool {
    // Release: "Put", pairs with the Acquire of the last one.
    if count.fetch_sub(1, Ordering::Release) != 1 {
        return false;
    }
    // Acquire: pairs with every "Put".
    count.load(Ordering::Acquire);
    true
}

/// A [`Plain`] count whose every get is one of
/// [`get_unless_zero`](Plain::get_unless_zero): what a lookup by weak pointers
/// pays.
#[derive(Debug)]
pub struct IncNotZero(Plain);

impl Tracker for Plain {
    type Held = ();
    const NAME: &'static str = "refcount";

    fn new() -> Self {
        Plain::new(1)
    }

    #[inline]
    fn get(&self, _: &Thread) -> Option<()> {
        self.get();
        Some(())
    }

    #[inline]
    fn try_get(&self, _: &Thread) -> Option<()> {
        self.get_unless_zero().then_some(())
    }

    #[inline]
    fn put(&self, _: &Thread, (): ()) -> bool {
        self.put()
    }

    fn kill(&self, _: &Thread) -> Result<bool, BarrierLost> {
        Ok(self.put())
    }

    fn count(&self) -> usize {
        self.count().map_or(usize::MAX, |n| n as usize)
    }
}

impl Tracker for IncNotZero {
    type Held = ();
    const NAME: &'static str = "inc-not-zero";

    fn new() -> Self {
        Self(Plain::new(1))
    }

    #[inline]
    fn get(&self, _: &Thread) -> Option<()> {
        self.0.get_unless_zero().then_some(())
    }

    #[inline]
    fn try_get(&self, _: &Thread) -> Option<()> {
        self.0.get_unless_zero().then_some(())
    }

    #[inline]
    fn put(&self, _: &Thread, (): ()) -> bool {
        self.0.put()
    }

    fn kill(&self, _: &Thread) -> Result<bool, BarrierLost> {
        Ok(self.0.put())
    }

    fn count(&self) -> usize {
        Tracker::count(&self.0)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// As wide as an 8-bit count: 127 references.
    type Tiny = Plain<{ 1 << 24 }>;

    #[test]
    fn the_last_put_says_so() {
        let count = Plain::<1>::new(1);
        count.get();
        assert!(!count.put());
        assert!(count.put());
        assert!(!count.get_unless_zero());
        assert_eq!(count.count(), Some(0));
    }

    #[test]
    fn an_overflow_saturates_for_ever() {
        let count = Tiny::new(Tiny::MAX);
        count.get();
        assert_eq!(count.count(), None);
        assert!(count.get_unless_zero());
        for _ in 0..1000 {
            assert!(!count.put());
        }
        assert_eq!(count.count(), None);
    }

    #[test]
    fn a_weak_get_may_carry_the_count_over_the_edge() {
        let count = Tiny::new(Tiny::MAX);
        assert!(count.get_unless_zero());
        assert!(!count.put());
        assert_eq!(count.count(), None, "not back into the live zone");
    }

    #[test]
    fn a_get_on_nothing_leaks_and_does_not_revive() {
        let count = Tiny::new(1);
        assert!(count.put());
        count.get();
        assert_eq!(count.count(), None);
        assert!(!count.put());
    }

    #[test]
    fn one_put_too_many_saturates() {
        let count = Tiny::new(1);
        assert!(count.put());
        assert!(!count.put());
        assert_eq!(count.count(), None);
    }
}
