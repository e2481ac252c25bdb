//! Records of threads: where each one says whether it is inside, and since
//! when.
//!
//! Floor 2 (`rcu-lite`), raw layer. Owns the epoch and the list of records of
//! one flavour. Which thread has which record is the flavour's business.
//!
//! # The word of a record
//!
//! | bits | hold |
//! |---|---|
//! | 0–15 | how often the thread is inside; 0: quiescent, whatever the rest |
//! | 16–63 | the epoch that it saw when it was last found quiescent |
//!
//! The global epoch has the same form with a 1 in the low bits, so that
//! entering stores what it loaded.
//!
//! # Grace period
//!
//! Count the epoch up – barrier – wait until every record is quiescent or has
//! the new epoch. The epoch does not repeat within a sleep (48 bits: at a grace
//! period a microsecond, nine years), so one turn is enough where a single
//! phase bit needs two: a thread that loads the epoch, sleeps through several
//! grace periods and then stores it, stores an old one and is waited for.
//!
//! # Orderings
//!
//! *Enter* stores the word, then the flavour's barrier; *turn*, then the
//! reclaimer's barrier, then *look*: the look sees the store, or the reader
//! sees everything before the turn. A reader that has the new epoch loaded it
//! with Acquire from the Release of *turn*, and so sees the unlinking as well.
//! *Leave*, and every store of the word, is Release and pairs with the Acquire
//! of *look*: what the thread read before happens before the freeing. (Entering
//! is Release too, because it may overwrite a leaving that nobody has looked
//! at.)
//!
//! # Records come and go
//!
//! A record is pushed once (Release, after its first word was stored) and stays
//! in the list for ever; a thread that exits gives it back and another takes
//! it. The list is read after the barrier. A push that the barrier does not
//! cover belongs to a reader that begins after it.

use crate::grace::Readers;
use core::ptr;
use percpu::barrier::BarrierLost;
use percpu::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

/// How often a thread may be inside.
pub(crate) const DEEPEST: u64 = 0xffff;
/// One epoch.
const EPOCH: u64 = DEEPEST + 1;

/// Whether the epoch of `word` is that of `epoch`. During a grace period no
/// other one is newer, so "not older" need not be asked, which would halve the
/// range of what may safely wrap.
fn is_current(word: u64, epoch: u64) -> bool {
    (word ^ epoch) & !DEEPEST == 0
}

/// Nobody has the record.
const FREE: usize = 0;
/// A thread has it.
const OWNED: usize = 1;
/// Its thread has ended while it was inside; free as soon as it is quiescent,
/// which may be never.
const ABANDONED: usize = 2;

/// One thread's place.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Record {
    word: AtomicU64,
    /// For the owner: `qsbr` counts what keeps the thread online here.
    pub(crate) holders: AtomicUsize,
    /// [`FREE`], [`OWNED`] or [`ABANDONED`].
    owned: AtomicUsize,
    next: *const Record,
}

// SAFETY: `next` never changes after the record was published.
unsafe impl Sync for Record {}
// SAFETY: as above.
unsafe impl Send for Record {}

impl Record {
    fn new(next: *const Record) -> Self {
        Self {
            word: AtomicU64::new(0),
            holders: AtomicUsize::new(0),
            owned: AtomicUsize::new(OWNED),
            next,
        }
    }

    /// The word, as its owner knows it.
    #[inline(always)]
    pub(crate) fn word(&self) -> u64 {
        // Relaxed: only the owner stores it.
        self.word.load(Ordering::Relaxed)
    }

    /// Enters for the first time, or announces a quiescent state: `epoch` is
    /// what [`Records::epoch`] returned. Needs the flavour's barrier behind it
    /// if the record was quiescent.
    #[inline(always)]
    pub(crate) fn set(&self, epoch: u64) {
        // Release: "Enter", see the module's page.
        self.word.store(epoch, Ordering::Release);
    }

    /// Enters once more, being inside.
    #[inline(always)]
    pub(crate) fn nest(&self, word: u64) {
        // Release: as "Enter". A look that reads this store instead of the one
        // that entered must learn the same from it: a plain store cuts the
        // release sequence.
        self.word.store(word + 1, Ordering::Release);
    }

    /// Leaves once.
    #[inline(always)]
    pub(crate) fn leave(&self) {
        // Release: "Leave", pairs with "Look".
        self.word.store(self.word() - 1, Ordering::Release);
    }

    /// Leaves altogether.
    #[inline(always)]
    pub(crate) fn clear(&self) {
        // Release: "Leave", pairs with "Look".
        self.word.store(0, Ordering::Release);
    }

    /// Whether the thread that left the record is still inside: nobody else has
    /// it before that one is not.
    #[cfg(not(loom))]
    pub(crate) fn is_left_inside(&self) -> bool {
        // Relaxed: the caller is the thread that left it.
        self.owned.load(Ordering::Relaxed) == ABANDONED && self.depth() > 0
    }

    /// How often the owner is inside.
    pub(crate) fn depth(&self) -> u64 {
        self.word() & DEEPEST
    }
}

/// The epoch and the records of a flavour.
#[derive(Debug)]
pub(crate) struct Records {
    epoch: Epoch,
    head: AtomicPtr<Record>,
}

/// Alone on its cache line: all readers load it.
#[derive(Debug)]
#[repr(align(128))]
struct Epoch(AtomicU64);

impl Records {
    #[cfg(not(loom))]
    pub(crate) const fn new() -> Self {
        Self::starting_at(0)
    }

    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        Self::starting_at(0)
    }

    /// Starts at another epoch: tests let it wrap.
    #[cfg(not(loom))]
    pub(crate) const fn starting_at(epoch: u64) -> Self {
        Self {
            epoch: Epoch(AtomicU64::new(epoch.wrapping_mul(EPOCH) | 1)),
            head: AtomicPtr::new(ptr::null_mut()),
        }
    }

    #[cfg(loom)]
    pub(crate) fn starting_at(epoch: u64) -> Self {
        Self {
            epoch: Epoch(AtomicU64::new(epoch.wrapping_mul(EPOCH) | 1)),
            head: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// The epoch, to be stored by a thread that is quiescent now.
    #[inline(always)]
    pub(crate) fn epoch(&self) -> u64 {
        // Acquire: pairs with "Turn".
        self.epoch.0.load(Ordering::Acquire)
    }

    /// A record for the calling thread: one that was given back, or a new one.
    ///
    /// # Progress
    ///
    /// Lock-free.
    #[cold]
    pub(crate) fn take(&'static self) -> &'static Record {
        // SAFETY: the records live as long as the static that holds them.
        unsafe { &*self.take_ptr() }
    }

    /// [`take`](Self::take) for models, whose records are not static.
    pub(crate) fn take_ptr(&self) -> *const Record {
        let mut found: *const Record = ptr::null();
        self.for_each(|record| {
            if !found.is_null() {
                return;
            }
            // Acquire: pairs with the Release of `give_back` or `abandon`: the
            // new owner's stores come after the old one's.
            let take = |from| {
                record
                    .owned
                    .compare_exchange(from, OWNED, Ordering::Acquire, Ordering::Relaxed)
            };
            let taken = match take(FREE) {
                Err(ABANDONED) if take(ABANDONED).is_ok() => {
                    // Looked at only now: before, the guard may not have been
                    // visible, or another thread may have left one of its own.
                    // Acquire: pairs with the Release of the last "Leave".
                    let quiescent = record.word.load(Ordering::Acquire) & DEEPEST == 0;
                    if !quiescent {
                        self.abandon(record);
                    }
                    quiescent
                }
                taken => taken.is_ok(),
            };
            if taken {
                found = ptr::from_ref(record);
            }
        });
        if !found.is_null() {
            return found;
        }
        // Relaxed: only the address is used.
        let mut head = self.head.load(Ordering::Relaxed);
        let record = Box::into_raw(Box::new(Record::new(head)));
        loop {
            // Release: publishes the record and, since what was there before is
            // only ever pushed in front of, the rest of the list (a
            // read-modify-write keeps the release sequence).
            match self
                .head
                .compare_exchange(head, record, Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => return record,
                Err(now) => {
                    head = now;
                    // SAFETY: not published yet, so this thread's alone.
                    unsafe { (*record).next = head };
                }
            }
        }
    }

    /// Gives `record` back, which is quiescent.
    pub(crate) fn give_back(&self, record: &Record) {
        debug_assert_eq!(record.depth(), 0);
        // Release: pairs with the Acquire of `take`.
        record.owned.store(FREE, Ordering::Release);
    }

    /// Leaves `record`, whose thread ends, to the guards that it still has.
    pub(crate) fn abandon(&self, record: &Record) {
        // Release: pairs with the Acquire of `take`.
        record.owned.store(ABANDONED, Ordering::Release);
    }

    fn for_each(&self, mut f: impl FnMut(&Record)) {
        // Acquire: pairs with the push.
        let mut at: *const Record = self.head.load(Ordering::Acquire);
        while !at.is_null() {
            // SAFETY: records are published whole and never freed before the
            // list's owner.
            let record = unsafe { &*at };
            f(record);
            at = record.next;
        }
    }

    /// In a forked child: frees the records of the threads that it does not
    /// have, all but `mine` (null or not). Those that were abandoned stay: what leaked guards
    /// protect may be anywhere, and guards of a thread in its teardown are the
    /// forking thread's, if it is that. Async-signal-safe.
    #[cfg(not(loom))]
    pub(crate) fn forget_others(&self, mine: [*const Record; 2]) {
        self.for_each(|record| {
            // Relaxed (all): the child has one thread.
            let abandoned = record.owned.load(Ordering::Relaxed) == ABANDONED;
            if !mine.contains(&ptr::from_ref(record)) && !abandoned {
                record.word.store(0, Ordering::Relaxed);
                record.holders.store(0, Ordering::Relaxed);
                record.owned.store(FREE, Ordering::Relaxed);
            }
        });
    }

    /// Records in the list, and how many of them a thread has.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn count(&self) -> (usize, usize) {
        let (mut all, mut owned) = (0, 0);
        self.for_each(|record| {
            all += 1;
            owned += usize::from(record.owned.load(Ordering::Relaxed) != FREE);
        });
        (all, owned)
    }

    /// Whether every record is quiescent or has the current epoch.
    pub(crate) fn all_current(&self) -> bool {
        // Relaxed: the leader's own store, or ordered by the lock.
        let epoch = self.epoch.0.load(Ordering::Relaxed);
        // Acquire: pairs with the push.
        let mut at: *const Record = self.head.load(Ordering::Acquire);
        while !at.is_null() {
            // SAFETY: as in `for_each`.
            let record = unsafe { &*at };
            // Acquire: "Look", pairs with "Enter" and "Leave".
            let word = record.word.load(Ordering::Acquire);
            if word & DEEPEST != 0 && !is_current(word, epoch) {
                return false;
            }
            at = record.next;
        }
        true
    }

    /// A new epoch.
    pub(crate) fn count_up(&self) {
        // Release: "Turn".
        self.epoch.0.fetch_add(EPOCH, Ordering::Release);
    }
}

impl Drop for Records {
    fn drop(&mut self) {
        // Relaxed: the list is the caller's alone.
        let mut at = self.head.load(Ordering::Relaxed);
        while !at.is_null() {
            // SAFETY: nobody has a record of a list that is being dropped, and
            // each came out of a box.
            let record = unsafe { Box::from_raw(at) };
            at = record.next.cast_mut();
        }
    }
}

/// Records whose threads and reclaimers use the process-wide barriers.
#[derive(Debug)]
pub(crate) struct Asymmetric(pub(crate) Records);

impl Readers for Asymmetric {
    fn turn(&self) {
        self.0.count_up();
    }

    fn barrier(&self) -> Result<(), BarrierLost> {
        percpu::barrier::heavy()
    }

    fn drained(&self) -> bool {
        self.0.all_current()
    }
}

/// Records whose threads and reclaimers use fences.
#[derive(Debug)]
pub(crate) struct Fenced(pub(crate) Records);

impl Readers for Fenced {
    fn turn(&self) {
        self.0.count_up();
    }

    fn barrier(&self) -> Result<(), BarrierLost> {
        // SeqCst: pairs with the fence of a thread that goes online.
        percpu::sync::atomic::fence(Ordering::SeqCst);
        Ok(())
    }

    fn drained(&self) -> bool {
        self.0.all_current()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn epochs_compare_across_the_wrap() {
        let epoch = |n: u64| n.wrapping_mul(EPOCH) | 1;
        let last = (1 << 48) - 1;
        for (then, now) in [(4, 5), (6, 5), (last, 0), (0, last), (last / 2, 0)] {
            assert!(!is_current(epoch(then), epoch(now)), "{then} {now}");
        }
        for now in [0, 5, last] {
            assert!(is_current(epoch(now), epoch(now)));
        }
        assert!(
            is_current(epoch(3) + 0xfffe, epoch(3)),
            "nesting is no epoch"
        );
        assert!(!is_current(epoch(2) + 0xfffe, epoch(3)));
    }

    #[test]
    fn records_are_reused_and_looked_at() {
        let records = Records::starting_at((1 << 48) - 1);
        let a = records.take_ptr();
        let b = records.take_ptr();
        assert_eq!(records.count(), (2, 2));
        // SAFETY: `records` lives.
        let (a, b) = unsafe { (&*a, &*b) };
        a.set(records.epoch());
        a.nest(a.word());
        assert_eq!(a.depth(), 2);
        assert!(records.all_current(), "began in this epoch");
        records.count_up();
        assert!(!records.all_current());
        b.set(records.epoch());
        a.leave();
        assert!(!records.all_current(), "still inside");
        a.leave();
        assert!(records.all_current(), "b began after the wrap");
        records.give_back(a);
        assert_eq!(records.count(), (2, 1));
        assert!(ptr::eq(records.take_ptr(), a));
        records.forget_others([a, ptr::null()]);
        assert_eq!((records.count(), b.depth()), ((2, 1), 0));
        a.set(records.epoch());
        records.abandon(a);
        let c = records.take_ptr();
        assert!(
            ptr::eq(c, b),
            "an abandoned record is not taken while inside"
        );
        a.leave();
        assert!(ptr::eq(records.take_ptr(), a));
    }

    /// Bug log 65, narrowed: epochs that wrap under readers of both flavours.
    #[test]
    fn epochs_wrap_under_readers() {
        let records = Records::starting_at((1 << 48) - 4);
        let (thread, online) = (records.take_ptr(), records.take_ptr());
        // SAFETY: `records` lives.
        let (thread, online) = unsafe { (&*thread, &*online) };
        let rung = percpu::barrier::rung();
        for _ in 0..8 {
            crate::thread::enter(&records, thread, rung);
            crate::thread::enter(&records, thread, rung);
            crate::qsbr::enter(&records, online);
            records.count_up();
            assert!(!records.all_current());
            thread.leave();
            crate::qsbr::announce(&records, online);
            assert!(!records.all_current(), "nested once, since before");
            thread.leave();
            assert!(records.all_current(), "the other one has announced");
            records.count_up();
            assert!(!records.all_current(), "and is still online");
            crate::qsbr::leave(online);
            assert!(records.all_current());
        }
    }
}
