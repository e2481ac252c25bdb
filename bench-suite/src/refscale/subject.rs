//! Floor 3, bench-suite. Owns the pairs that `ref` measures: those of the schemes, those of the reference counts, and the
//! original's own that no scheme has. May touch `schemes`, `refcounts`, `rcu-lite` and the clock.

use crate::schemes::{Object, Scheme};
use rcu_lite::Rcu;
use refcounts::{Thread, Tracker};
use std::hint::black_box;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::time::{Duration, Instant};

/// How long a reader holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Delay {
    spins: u64,
}

impl Delay {
    /// Counts how many pauses of this CPU take that long.
    pub(super) fn of(time: Duration) -> Self {
        const SAMPLE: u64 = 20_000;
        if time.is_zero() {
            return Delay { spins: 0 };
        }
        // The best of some: whoever was preempted meanwhile would make the delay short.
        let best = (0..8)
            .map(|_| {
                let start = Instant::now();
                Delay { spins: SAMPLE }.pass();
                start.elapsed()
            })
            .min()
            .unwrap_or_default();
        let each = best.as_secs_f64() / SAMPLE as f64;
        Delay {
            spins: ((time.as_secs_f64() / each.max(1e-10)) as u64).max(1),
        }
    }

    /// Whether there is none.
    pub(super) fn is_none(self) -> bool {
        self.spins == 0
    }

    #[inline]
    pub(super) fn pass(self) {
        for _ in 0..self.spins {
            std::hint::spin_loop();
        }
    }
}

/// What readers acquire and release.
pub(super) trait Subject: Send + Sync {
    /// What a reader keeps between pairs.
    type Reader<'a>
    where
        Self: 'a;

    /// For reader number `me`.
    fn reader(&self, me: usize) -> Self::Reader<'_>;

    /// Acquire, `inside`, release. False if the object was dead.
    fn pair(&self, reader: &mut Self::Reader<'_>, inside: impl FnOnce()) -> bool;

    /// `count` pairs with nothing inside; how many objects were dead.
    fn pairs(&self, reader: &mut Self::Reader<'_>, count: u64) -> u64 {
        let mut dead = 0;
        for _ in 0..count {
            dead += u64::from(!self.pair(reader, || ()));
        }
        dead
    }
}

/// A scheme's own pair: protect, look at the object, release.
#[derive(Debug)]
pub(super) struct Of<S>(S);

impl<S: Scheme> Of<S> {
    pub(super) fn new() -> Self {
        Of(S::new(Object::new(0, None)))
    }
}

impl<S: Scheme> Subject for Of<S> {
    type Reader<'a>
        = S::Reader<'a>
    where
        S: 'a;

    fn reader(&self, _: usize) -> S::Reader<'_> {
        self.0.reader()
    }

    #[inline(always)]
    fn pair(&self, reader: &mut S::Reader<'_>, inside: impl FnOnce()) -> bool {
        self.0.hold(reader, inside)
    }

    #[inline(always)]
    fn pairs(&self, reader: &mut S::Reader<'_>, count: u64) -> u64 {
        self.0.read_batch(reader, count)
    }
}

/// A reference to an object that is known to be alive, and back.
#[derive(Debug)]
pub(super) struct Counted<T>(T);

impl<T: Tracker> Counted<T> {
    pub(super) fn new() -> Self {
        Counted(T::new())
    }
}

impl<T: Tracker> Subject for Counted<T> {
    type Reader<'a> = Thread;

    fn reader(&self, me: usize) -> Thread {
        Thread::at(me)
    }

    #[inline(always)]
    fn pair(&self, thread: &mut Thread, inside: impl FnOnce()) -> bool {
        match self.0.get(thread) {
            Some(held) => {
                inside();
                // The initial reference is still there: it was not the last.
                !self.0.put(thread, held)
            }
            None => false,
        }
    }
}

/// A word alone on its lines.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Word(AtomicU64);

/// `refcnt`: one more and one less on one word.
#[derive(Debug, Default)]
pub(super) struct Refcnt(Word);

impl Subject for Refcnt {
    type Reader<'a> = ();

    fn reader(&self, _: usize) {}

    #[inline(always)]
    fn pair(&self, (): &mut (), inside: impl FnOnce()) -> bool {
        self.0.0.fetch_add(1, Relaxed);
        inside();
        self.0.0.fetch_sub(1, Release) > 0
    }
}

/// `acqrel`: a load that acquires of a word that all share, a store that releases of one's own.
#[derive(Debug, Default)]
pub(super) struct AcquireRelease(Word);

impl Subject for AcquireRelease {
    type Reader<'a> = Word;

    fn reader(&self, _: usize) -> Word {
        Word::default()
    }

    #[inline(always)]
    fn pair(&self, own: &mut Word, inside: impl FnOnce()) -> bool {
        let seen = self.0.0.load(Acquire);
        inside();
        black_box(&own.0).store(seen + 1, Release);
        true
    }
}

/// `clock`: one reading of the clock.
#[derive(Debug)]
pub(super) struct Clock;

impl Subject for Clock {
    type Reader<'a> = ();

    fn reader(&self, _: usize) {}

    #[inline(always)]
    fn pair(&self, (): &mut (), inside: impl FnOnce()) -> bool {
        black_box(Instant::now());
        inside();
        true
    }
}

/// An object of the typesafe kinds: its memory stays one, whatever becomes of it.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Item {
    count: AtomicU64,
    lock: Mutex<()>,
    sequence: AtomicU64,
    /// Changes when the object becomes another.
    identity: AtomicU64,
}

/// What an object is held by.
pub(super) trait Hold: Send + Sync {
    /// Runs `inside` while the object with `identity` is held; false if it became another.
    fn held(item: &Item, identity: u64, inside: impl FnOnce()) -> bool;
}

fn same(item: &Item, identity: u64) -> bool {
    item.identity.load(Acquire) == identity
}

/// One reference more unless there is none, a second look, one less.
#[derive(Debug)]
pub(super) struct ByRef;

impl Hold for ByRef {
    #[inline(always)]
    fn held(item: &Item, identity: u64, inside: impl FnOnce()) -> bool {
        let more = |count: u64| (count > 0).then_some(count + 1);
        if item.count.fetch_update(Acquire, Relaxed, more).is_err() {
            return false;
        }
        let same = same(item, identity);
        if same {
            inside();
        }
        item.count.fetch_sub(1, AcqRel);
        same
    }
}

/// The object's lock, and a second look.
#[derive(Debug)]
pub(super) struct ByLock;

impl Hold for ByLock {
    #[inline(always)]
    fn held(item: &Item, identity: u64, inside: impl FnOnce()) -> bool {
        let _held = item.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let same = same(item, identity);
        if same {
            inside();
        }
        same
    }
}

/// The object's sequence count, before and after.
#[derive(Debug)]
pub(super) struct BySequence;

impl Hold for BySequence {
    #[inline(always)]
    fn held(item: &Item, identity: u64, inside: impl FnOnce()) -> bool {
        let before = item.sequence.load(Acquire);
        if before & 1 == 1 || !same(item, identity) {
            return false;
        }
        inside();
        std::sync::atomic::fence(Acquire);
        item.sequence.load(Relaxed) == before
    }
}

/// `typesafe_*`: in a read-side critical section of RCU, hold one of many objects that is drawn anew each time.
#[derive(Debug)]
pub(super) struct Typesafe<H> {
    items: Vec<Item>,
    hold: std::marker::PhantomData<H>,
}

impl<H> Typesafe<H> {
    pub(super) fn new(objects: usize) -> Self {
        let item = |identity| Item {
            count: AtomicU64::new(1),
            lock: Mutex::new(()),
            sequence: AtomicU64::new(0),
            identity: AtomicU64::new(identity),
        };
        Typesafe {
            items: (0..objects.max(1) as u64).map(item).collect(),
            hold: std::marker::PhantomData,
        }
    }
}

impl<H: Hold> Subject for Typesafe<H> {
    /// The state of a xorshift generator.
    type Reader<'a>
        = u64
    where
        H: 'a;

    fn reader(&self, me: usize) -> u64 {
        0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(me as u64 + 1) | 1
    }

    #[inline(always)]
    fn pair(&self, random: &mut u64, inside: impl FnOnce()) -> bool {
        *random ^= *random << 13;
        *random ^= *random >> 7;
        *random ^= *random << 17;
        let _section = Rcu::global().read();
        let item = &self.items[(*random >> 32) as usize % self.items.len()];
        let identity = item.identity.load(Relaxed);
        // Nobody changes the objects, so the first try does.
        H::held(item, identity, inside)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use refcounts::split::Slot;

    fn exercise(subject: &impl Subject) {
        let mut reader = subject.reader(1);
        let mut times = 0;
        assert!(subject.pair(&mut reader, || times += 1));
        assert_eq!(times, 1);
        assert_eq!(subject.pairs(&mut reader, 1000), 0);
    }

    #[test]
    fn pairs_leave_no_trace() {
        let refcnt = Refcnt::default();
        exercise(&refcnt);
        assert_eq!(refcnt.0.0.into_inner(), 0);
        let slot = Counted::<Slot<()>>::new();
        exercise(&slot);
        assert_eq!(slot.0.count(), 1);
        exercise(&AcquireRelease::default());
        exercise(&Clock);
        let typesafe = Typesafe::<ByRef>::new(3);
        exercise(&typesafe);
        assert!(
            typesafe
                .items
                .iter()
                .all(|item| item.count.load(Relaxed) == 1)
        );
        exercise(&Typesafe::<ByLock>::new(0));
        exercise(&Typesafe::<BySequence>::new(2));
    }

    #[test]
    fn what_is_not_the_same_is_not_held() {
        let items = Typesafe::<ByRef>::new(1);
        let item = &items.items[0];
        let never = || panic!("held");
        for held in [ByRef::held(item, 9, never), ByLock::held(item, 9, never)] {
            assert!(!held);
        }
        assert!(!BySequence::held(item, 9, never));
        assert!(!BySequence::held(item, 0, || item
            .sequence
            .store(2, Relaxed)));
        item.count.store(0, Relaxed);
        assert!(!ByRef::held(item, 0, never));
    }

    #[test]
    fn delays_take_time() {
        assert!(Delay::of(Duration::ZERO).is_none());
        let delay = Delay::of(Duration::from_micros(200));
        let start = Instant::now();
        delay.pass();
        assert!(start.elapsed() > Duration::from_micros(50));
    }
}
