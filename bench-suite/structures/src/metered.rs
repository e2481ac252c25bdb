//! Any scheme, with the time that retirements take.
//!
//! Floor 3 (`structures`). Owns the meter; the scheme under it does the work.
//!
//! A retirement is where a scheme does its part of the work on the calling thread: hand over, now and then a pass or a
//! barrier, and free what came out. One retirement in [`EVERY`], drawn at random, is timed with two readings of the
//! clock; the others cost a countdown. At random, because a pass comes at every so many-th retirement, and a meter in
//! step with it would see all of them or none.
//!
//! What it does not see: the part of reclamation that schemes do in `pin` or when a protection ends (`crossbeam-epoch`
//! does some in one pin of 128), and what they do on threads of their own (`rcu-lite`).

use crate::scheme::{Guard, Scheme, Thread};
use crate::{About, Node};
use percpu::sync::atomic::AtomicPtr;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// One retirement in about so many is timed.
pub const EVERY: u32 = 16;

/// What the threads that have ended did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meter {
    /// Retirements.
    pub retired: u64,
    /// Those of them that were timed.
    pub timed: u64,
    /// Time that these took, with the two readings of the clock around each.
    pub ns: u64,
}

impl Meter {
    /// Mean time of a retirement in nanoseconds, less what a reading of the `clock` takes. `None`: none was timed.
    #[must_use]
    pub fn mean_ns(&self, clock: f64) -> Option<f64> {
        (self.timed > 0).then(|| (self.ns as f64 / self.timed as f64 - clock).max(0.0))
    }
}

/// A scheme whose retirements are timed.
pub struct Metered<S> {
    scheme: S,
    done: Mutex<Meter>,
}

impl<S: Scheme> fmt::Debug for Metered<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, metered", S::ABOUT.name)
    }
}

impl<S> Metered<S> {
    /// What the threads did whose parts have been dropped.
    pub fn meter(&self) -> Meter {
        *self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Scheme> Scheme for Metered<S> {
    const ABOUT: About = S::ABOUT;

    type Thread<'a, const K: usize> = Counting<'a, S::Thread<'a, K>>;

    fn new() -> Self {
        Metered {
            scheme: S::new(),
            done: Mutex::default(),
        }
    }

    fn thread<const K: usize>(&self) -> Self::Thread<'_, K> {
        Counting {
            thread: self.scheme.thread(),
            draw: Draw::new(),
            done: &self.done,
        }
    }

    #[inline(always)]
    fn alloc<T: Node>(node: T) -> *mut T {
        S::alloc(node)
    }

    unsafe fn free<T: Node>(node: *mut T) {
        // SAFETY: the caller's.
        unsafe { S::free(node) }
    }

    fn flush(&self) {
        self.scheme.flush();
    }

    fn bound(&self, threads: usize, slots: usize) -> Option<usize> {
        self.scheme.bound(threads, slots)
    }
}

/// Which retirements are timed, and what they took.
#[derive(Debug)]
struct Draw {
    left: u32,
    random: u32,
    meter: Meter,
}

impl Draw {
    fn new() -> Self {
        Draw {
            left: EVERY,
            random: 0x9e37_79b9,
            meter: Meter::default(),
        }
    }

    /// Draws anew how many are passed over: as often fewer as more than [`EVERY`].
    #[cold]
    fn again(&mut self) {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 17;
        self.random ^= self.random << 5;
        self.left = 1 + (self.random >> 8) % (2 * EVERY - 1);
    }
}

/// A thread's part, with its meter.
#[derive(Debug)]
pub struct Counting<'a, T> {
    thread: T,
    draw: Draw,
    done: &'a Mutex<Meter>,
}

impl<T> Drop for Counting<'_, T> {
    fn drop(&mut self) {
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        let own = self.draw.meter;
        done.retired += own.retired;
        done.timed += own.timed;
        done.ns += own.ns;
    }
}

impl<T: Thread> Thread for Counting<'_, T> {
    type Guard<'g>
        = Timing<'g, T::Guard<'g>>
    where
        Self: 'g;

    #[inline(always)]
    fn pin(&mut self) -> Self::Guard<'_> {
        Timing {
            guard: self.thread.pin(),
            draw: &mut self.draw,
        }
    }

    #[inline(always)]
    fn quiescent(&mut self) {
        self.thread.quiescent();
    }

    fn idle<R>(&mut self, pause: impl FnOnce() -> R) -> R {
        self.thread.idle(pause)
    }
}

/// The protection of one operation, which may retire.
#[derive(Debug)]
pub struct Timing<'g, G> {
    guard: G,
    draw: &'g mut Draw,
}

impl<G: Guard> Guard for Timing<'_, G> {
    #[inline(always)]
    fn protect<T>(&mut self, slot: usize, src: &AtomicPtr<T>) -> *mut T {
        self.guard.protect(slot, src)
    }

    #[inline(always)]
    fn unchanged<T>(&self, src: &AtomicPtr<T>, seen: *mut T) -> bool {
        self.guard.unchanged(src, seen)
    }

    #[inline(always)]
    fn announce<T>(&mut self, slot: usize, node: *mut T) {
        self.guard.announce(slot, node);
    }

    #[inline(always)]
    fn clear(&mut self, slot: usize) {
        self.guard.clear(slot);
    }

    #[inline(always)]
    unsafe fn retire<T: Node>(&mut self, node: *mut T) {
        self.draw.meter.retired += 1;
        self.draw.left -= 1;
        if self.draw.left > 0 {
            // SAFETY: the caller's.
            return unsafe { self.guard.retire(node) };
        }
        let start = Instant::now();
        // SAFETY: the caller's.
        unsafe { self.guard.retire(node) };
        let ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.draw.meter.timed += 1;
        self.draw.meter.ns = self.draw.meter.ns.saturating_add(ns);
        self.draw.again();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schemes::{Hp, Leak, Native};
    use crate::{Census, Stack};

    fn after<S: Scheme>(pairs: u64) -> Meter {
        let stack = Stack::<Metered<S>>::new(Census::leak());
        let mut thread = stack.thread();
        for value in 0..pairs {
            stack.push(&mut thread, value);
            assert_eq!(stack.pop(&mut thread), Some(value));
        }
        assert_eq!(
            stack.scheme().meter(),
            Meter::default(),
            "before the thread ends"
        );
        drop(thread);
        stack.scheme().meter()
    }

    #[test]
    fn one_retirement_in_sixteen_is_timed() {
        let pairs = if cfg!(miri) { 200 } else { 16_000 };
        for meter in [after::<Hp<Native>>(pairs), after::<Leak>(pairs)] {
            assert_eq!(meter.retired, pairs);
            let expected = pairs / u64::from(EVERY);
            assert!(
                (expected / 2..expected * 2).contains(&meter.timed),
                "{meter:?}"
            );
            assert!(meter.mean_ns(0.0).is_some_and(|ns| ns > 0.0), "{meter:?}");
        }
    }

    #[test]
    fn the_clock_is_taken_off() {
        let meter = Meter {
            retired: 100,
            timed: 10,
            ns: 1000,
        };
        assert_eq!(meter.mean_ns(30.0), Some(70.0));
        assert_eq!(meter.mean_ns(130.0), Some(0.0));
        assert_eq!(Meter::default().mean_ns(0.0), None);
    }
}
