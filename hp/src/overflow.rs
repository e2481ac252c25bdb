//! Overflow slots: where protections go when the CPU's line cannot take them.
//!
//! Floor 2 (`hp`), raw layer. Owns the records, their list, and the choice of
//! a slot in them; touches the calling thread's [`Thread`] handle.
//!
//! # Purpose
//!
//! A thread comes here when all slots of its CPU are taken, when it cannot run
//! sections (lower rungs, not registered), when it holds a protection for long
//! (`HazardPointer`, `Guard::detach`) or when it clones a guard. Acquiring a
//! slot never fails.
//!
//! # Records
//!
//! A record has 8 slots. It is in one of three states (`owner`):
//!
//! | owner | who claims in it | how |
//! |---|---|---|
//! | `UNOWNED` | nobody; a thread may take it | exchange of `owner` |
//! | `OWNED` | its thread | find a `FREE` word, store |
//! | `SHARED` | everybody | compare-exchange `FREE` → `RESERVED` |
//!
//! A thread takes a record at its first overflow and gives it back when it
//! exits; the next thread finds it by walking the list, so that the number of
//! records is the largest number of threads that overflowed at one time, not
//! the number of threads that ever lived. Slots that are still held when the
//! record changes hands (guards that went to other threads) are simply not
//! `FREE`. Taking a record is an exchange of its own owner word; there is no
//! free list and hence no ABA.
//!
//! Shared records serve whoever has no handle: thread teardown, a signal
//! handler that interrupts its own thread's claim, the ninth guard of a
//! thread. The first `POOL` of them are part of the list's head, so that the
//! first 64 such claims allocate nothing.
//!
//! # Clones
//!
//! A clone of an overflow guard shares its slot: `extra` counts the clones.
//! (Were a clone to take a slot of its own, protection could move to a place
//! that a scan in progress has already passed.)
//!
//! # Orderings
//!
//! * *Link* (Release exchange of `head`) – pairs with the Acquire load of
//!   `head` in a scan and in `claim`.
//! * *Publish* (Release store of an address) – pairs with the scanner's Acquire
//!   load; Release because the claim must hand on what the slot's previous
//!   holder released (it read `FREE` with Acquire).
//! * *Recheck* (Acquire load of the source after the light barrier) – pairs
//!   with the heavy barrier between unlinking and scanning: either the recheck
//!   sees the unlinking or the scan sees the slot.

use crate::ptr_eq::ptr_eq;
use crate::slot::{FREE, RESERVED, SlotRef, is_address};
use core::cell::Cell;
use core::ptr::{self, NonNull};
use percpu::barrier::Rung;
use percpu::line::INACTIVE;
use percpu::section;
use percpu::sync::atomic::{AtomicPtr, AtomicUsize, Ordering, Statistic, compiler_fence};

/// Slots of a record.
#[cfg(not(loom))]
pub(crate) const SLOTS: usize = 8;
/// Slots of a record under loom.
#[cfg(loom)]
pub(crate) const SLOTS: usize = 1;

/// Shared records that need no allocation.
#[cfg(not(loom))]
const POOL: usize = 8;
/// Shared records that need no allocation under loom.
#[cfg(loom)]
const POOL: usize = 1;

/// Interrupted sections before a claim goes on without one.
const RESTARTS: usize = 64;

/// Protections that skip the CPU's line after it was found full.
const SKIP: u32 = 32;

const UNOWNED: usize = 0;
const OWNED: usize = 1;
const SHARED: usize = 2;

/// More clones than this abort, as in `std::sync::Arc`: they can only come
/// from leaked guards.
const MAX_EXTRA: usize = i32::MAX as usize;

/// Eight overflow slots.
#[derive(Debug)]
#[repr(C, align(256))]
pub(crate) struct Record {
    /// First cache line: what scans read and claims write.
    slots: [AtomicUsize; SLOTS],
    /// Second cache line: clones beyond the first guard, per slot. As wide as
    /// a slot, so that a slot's count lies at a fixed distance from it.
    extra: [AtomicUsize; SLOTS],
    owner: AtomicUsize,
    next: AtomicPtr<Record>,
    /// Times that a slot of this record was taken. A statistic.
    acquires: Statistic,
}

impl Record {
    /// A record of the pool: shared, though its owner word does not say so
    /// (nobody asks it).
    #[cfg(not(loom))]
    const fn pooled() -> Self {
        Self::with(INACTIVE, UNOWNED)
    }

    /// A record of the pool.
    #[cfg(loom)]
    fn pooled() -> Self {
        Self::with(INACTIVE, UNOWNED)
    }

    /// A record for the list.
    fn new(owner: usize) -> Self {
        Self::with(FREE, owner)
    }

    #[cfg(not(loom))]
    const fn with(word: usize, owner: usize) -> Self {
        Self {
            slots: if word == INACTIVE {
                [const { AtomicUsize::new(INACTIVE) }; SLOTS]
            } else {
                [const { AtomicUsize::new(FREE) }; SLOTS]
            },
            extra: [const { AtomicUsize::new(0) }; SLOTS],
            owner: AtomicUsize::new(owner),
            next: AtomicPtr::new(ptr::null_mut()),
            acquires: Statistic::new(0),
        }
    }

    #[cfg(loom)]
    fn with(word: usize, owner: usize) -> Self {
        Self {
            slots: std::array::from_fn(|_| AtomicUsize::new(word)),
            extra: std::array::from_fn(|_| AtomicUsize::new(0)),
            owner: AtomicUsize::new(owner),
            next: AtomicPtr::new(ptr::null_mut()),
            acquires: Statistic::new(0),
        }
    }

    #[cfg(loom)]
    pub(crate) fn slots(&self) -> &[AtomicUsize; SLOTS] {
        &self.slots
    }

    /// One more guard on slot `index`, which the caller's guard holds.
    pub(crate) fn retain(&self, index: usize) {
        // Relaxed: the caller's guard keeps the slot; nothing is published.
        let old = self.extra[index].fetch_add(1, Ordering::Relaxed);
        if old > MAX_EXTRA {
            std::process::abort();
        }
    }

    /// Distance in bytes from a slot to the count of its clones.
    #[cfg(not(loom))]
    pub(crate) const TO_EXTRA: usize =
        core::mem::offset_of!(Self, extra) - core::mem::offset_of!(Self, slots);

    /// The count of slot `index`'s clones.
    #[cfg(loom)]
    pub(crate) fn extra(&self, index: usize) -> &AtomicUsize {
        &self.extra[index]
    }

    fn free_slot(&self) -> Option<usize> {
        // Acquire: pairs with "Clear"; see "Publish".
        self.slots
            .iter()
            .position(|slot| slot.load(Ordering::Acquire) == FREE)
    }
}

/// One guard less on `slot`, whose clones `extra` counts; the last one frees
/// the slot.
#[inline(always)]
pub(crate) fn release(slot: &AtomicUsize, extra: &AtomicUsize) {
    // Acquire: pairs with the AcqRel below, so that the last guard's "Clear"
    // carries what the other clones did.
    let mut count = extra.load(Ordering::Acquire);
    while count != 0 {
        // AcqRel: Release hands this guard's uses to the last one; Acquire
        // takes those of the clones that left before.
        match extra.compare_exchange(count, count - 1, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return,
            Err(now) => count = now,
        }
    }
    // Release: "Clear", as for a CPU's slot. Nobody can clone meanwhile: that
    // takes a guard, and this was the last.
    slot.store(FREE, Ordering::Release);
}

/// What a thread remembers: its record, and whether it is inside a claim.
///
/// Plain cells: only the own thread (and a signal handler on it) looks.
#[derive(Debug)]
pub(crate) struct Thread {
    record: Cell<*const Record>,
    /// Set while the thread chooses a slot of its record; a signal handler
    /// that finds it set uses a shared slot.
    busy: Cell<bool>,
    /// Protections that will not look at the CPU's line first.
    skip: Cell<u32>,
    /// Thread teardown has given the record back; no new one is taken.
    over: Cell<bool>,
    /// The record's home for the `Drop` of the model's handle.
    #[cfg(loom)]
    _not_send: core::marker::PhantomData<*const ()>,
}

impl Thread {
    /// A thread that has never overflowed.
    pub(crate) const fn new() -> Self {
        Self {
            record: Cell::new(ptr::null()),
            busy: Cell::new(false),
            skip: Cell::new(0),
            over: Cell::new(false),
            #[cfg(loom)]
            _not_send: core::marker::PhantomData,
        }
    }

    /// Whether to go straight to the overflow record this time.
    #[inline]
    pub(crate) fn skips_the_line(&self) -> bool {
        let left = self.skip.get();
        if left == 0 {
            return false;
        }
        self.skip.set(left - 1);
        true
    }

    /// Remembers that all slots of the line are taken.
    pub(crate) fn found_the_line_full(&self) {
        self.skip.set(SKIP);
    }

    /// Gives the record back. Slots of it may still be held.
    pub(crate) fn leave(&self) {
        self.over.set(true);
        let record = self.record.replace(ptr::null());
        if !record.is_null() {
            // Release: pairs with the Acquire exchange of the next owner, who
            // must see which slots are held.
            // SAFETY: records are never freed.
            unsafe { (*record).owner.store(UNOWNED, Ordering::Release) };
        }
    }
}

/// A slot that nobody else can take, still without an address.
struct Empty {
    slot: SlotRef,
    /// What the slot holds now, and must hold again if nothing is protected.
    idle: usize,
}

/// All overflow records of a set of slots.
#[derive(Debug)]
pub(crate) struct Overflow {
    head: AtomicPtr<Record>,
    pool: [Record; POOL],
    /// Records of the pool that were ever used; a scan reads that many.
    pool_used: AtomicUsize,
}

impl Overflow {
    #[cfg(not(loom))]
    pub(crate) const fn new() -> Self {
        Self {
            head: AtomicPtr::new(ptr::null_mut()),
            pool: [const { Record::pooled() }; POOL],
            pool_used: AtomicUsize::new(0),
        }
    }

    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        Self {
            head: AtomicPtr::new(ptr::null_mut()),
            pool: std::array::from_fn(|_| Record::pooled()),
            pool_used: AtomicUsize::new(0),
        }
    }

    /// Protects what `src` points to, in an overflow slot.
    ///
    /// `mask` clears tag bits: the slot holds the masked address, the caller
    /// gets the whole value; a masked null is `None`.
    ///
    /// # Progress
    ///
    /// Wait-free where sections run; elsewhere lock-free (a retry means that
    /// the source changed).
    pub(crate) fn protect(
        &self,
        thread: &Thread,
        src: &AtomicPtr<()>,
        mask: usize,
    ) -> Option<(SlotRef, NonNull<()>)> {
        if mask == usize::MAX {
            match protect_own(thread, src, percpu::barrier::rung()) {
                Own::Protected(slot, value) => return Some((slot, value)),
                Own::Null => return None,
                Own::NotNow => {}
            }
        }
        self.with_empty(thread, |empty| {
            match fill(src, empty.slot.word(), mask, empty.idle) {
                Ok(value) => Ok((empty.slot, value)),
                Err(_) => Err(empty),
            }
        })
    }

    /// Takes an overflow slot for `word`: an address that the caller already
    /// protects, or [`RESERVED`].
    pub(crate) fn hold(&self, thread: &Thread, word: usize) -> SlotRef {
        let held = self.with_empty(thread, |empty| {
            // Release: "Publish".
            empty.slot.word().store(word, Ordering::Release);
            Ok(empty.slot)
        });
        match held {
            Some(slot) => slot,
            None => unreachable!("the closure always keeps the slot"),
        }
    }

    /// Finds an empty slot and runs `f` on it; `Err` gives the slot back.
    fn with_empty<R>(
        &self,
        thread: &Thread,
        f: impl FnOnce(Empty) -> Result<R, Empty>,
    ) -> Option<R> {
        if !thread.busy.replace(true) {
            compiler_fence(Ordering::SeqCst);
            if let Some(slot) = self.own_slot(thread) {
                let answer = f(Empty { slot, idle: FREE });
                compiler_fence(Ordering::SeqCst);
                thread.busy.set(false);
                return answer.ok();
            }
            thread.busy.set(false);
        }
        match f(Empty {
            slot: self.shared_slot(),
            idle: RESERVED,
        }) {
            Ok(answer) => Some(answer),
            Err(empty) => {
                empty.slot.release();
                None
            }
        }
    }

    /// A free slot of the thread's own record, which it takes if it has none.
    fn own_slot(&self, thread: &Thread) -> Option<SlotRef> {
        let mut record = thread.record.get();
        if record.is_null() {
            if thread.over.get() || !crate::thread::arm_exit(thread) {
                return None;
            }
            record = self.take_record().as_ptr();
            thread.record.set(record);
        }
        let pointer = NonNull::new(record.cast_mut())?;
        // SAFETY: records are never freed.
        let record = unsafe { pointer.as_ref() };
        let index = record.free_slot()?;
        record.count();
        Some(SlotRef::overflow(pointer, index))
    }

    /// An unowned record of the list, or a new one.
    fn take_record(&self) -> NonNull<Record> {
        let mut found = None;
        self.for_each_record(|record, pointer| {
            // Relaxed look, then an Acquire exchange: pairs with the Release of
            // the thread that left the record.
            if found.is_none()
                && record.owner.load(Ordering::Relaxed) == UNOWNED
                && record
                    .owner
                    .compare_exchange(UNOWNED, OWNED, Ordering::Acquire, Ordering::Relaxed)
                    .is_ok()
            {
                found = Some(pointer);
            }
        });
        found.unwrap_or_else(|| self.link(Record::new(OWNED)))
    }

    /// Adds a record to the list, for ever.
    fn link(&self, record: Record) -> NonNull<Record> {
        let record = NonNull::from(Box::leak(Box::new(record)));
        // Relaxed: a guess, checked by the exchange.
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            // SAFETY: not yet shared; nobody else writes `next`.
            // Relaxed: published by "Link".
            unsafe { record.as_ref().next.store(head, Ordering::Relaxed) };
            // Release: "Link". Relaxed on failure: the value is a guess again.
            match self.head.compare_exchange_weak(
                head,
                record.as_ptr(),
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return record,
                Err(now) => head = now,
            }
        }
    }

    /// A slot of a shared record, reserved by compare-exchange.
    fn shared_slot(&self) -> SlotRef {
        let take = |record: &Record, pointer: NonNull<Record>| {
            record.slots.iter().enumerate().find_map(|(index, slot)| {
                // Relaxed look; Acquire exchange: pairs with "Clear". The
                // address is stored by "Publish" later. (The pool's slots are
                // `INACTIVE` at first, so that the static is all zeroes.)
                let now = slot.load(Ordering::Relaxed);
                ((now == FREE || now == INACTIVE)
                    && slot
                        .compare_exchange(now, RESERVED, Ordering::Acquire, Ordering::Relaxed)
                        .is_ok())
                .then(|| {
                    // Relaxed: a statistic.
                    record.acquires.fetch_add(1, Ordering::Relaxed);
                    SlotRef::overflow(pointer, index)
                })
            })
        };
        for (n, record) in self.pool.iter().enumerate() {
            if let Some(slot) = take(record, NonNull::from(record)) {
                // Release: as "Link", before any address is published here.
                self.pool_used.fetch_max(n + 1, Ordering::Release);
                return slot;
            }
        }
        let mut found = None;
        self.for_each_record(|record, pointer| {
            // Relaxed: a shared record stays shared, and is born so.
            if found.is_none() && record.owner.load(Ordering::Relaxed) == SHARED {
                found = take(record, pointer);
            }
        });
        found.unwrap_or_else(|| {
            let record = Record::new(SHARED);
            // Relaxed: published by "Link".
            record.slots[0].store(RESERVED, Ordering::Relaxed);
            SlotRef::overflow(self.link(record), 0)
        })
    }

    fn for_each_record(&self, mut f: impl FnMut(&Record, NonNull<Record>)) {
        // Acquire: pairs with "Link".
        let mut next = self.head.load(Ordering::Acquire);
        while let Some(pointer) = NonNull::new(next) {
            // SAFETY: linked records are never freed.
            let record = unsafe { pointer.as_ref() };
            f(record, pointer);
            // Acquire is not needed: `next` is written before "Link" only, and
            // that was acquired. (Relaxed.)
            next = record.next.load(Ordering::Relaxed);
        }
    }

    /// Calls `f` with every slot word that holds an address.
    pub(crate) fn for_each_protected(&self, mut f: impl FnMut(&AtomicUsize, usize)) {
        let mut look = |record: &Record| {
            for slot in &record.slots {
                // Acquire: pairs with "Publish" and "Clear".
                let word = slot.load(Ordering::Acquire);
                if is_address(word) {
                    f(slot, word);
                }
            }
        };
        // Acquire: pairs with the Release in `shared_slot`.
        for record in &self.pool[..self.pool_used.load(Ordering::Acquire)] {
            look(record);
        }
        self.for_each_record(|record, _| look(record));
    }

    /// Times that an overflow slot was taken.
    pub(crate) fn acquires(&self) -> u64 {
        // Relaxed: statistics.
        let mut sum = 0;
        for record in &self.pool {
            sum += record.acquires.load(Ordering::Relaxed);
        }
        self.for_each_record(|record, _| sum += record.acquires.load(Ordering::Relaxed));
        sum
    }

    /// Forgets the clones of slots that nobody holds. For a process with one
    /// thread.
    #[cfg(not(loom))]
    pub(crate) fn forget_clones(&self) {
        let forget = |record: &Record| {
            for (slot, extra) in record.slots.iter().zip(&record.extra) {
                // Relaxed: there is one thread.
                if slot.load(Ordering::Relaxed) == FREE {
                    extra.store(0, Ordering::Relaxed);
                }
            }
        };
        self.pool.iter().for_each(forget);
        self.for_each_record(|record, _| forget(record));
    }
}

#[cfg(loom)]
impl Drop for Overflow {
    fn drop(&mut self) {
        let mut next = self.head.load(Ordering::Relaxed);
        while !next.is_null() {
            // SAFETY: the model is over; every record came from a box.
            let record = unsafe { Box::from_raw(next) };
            next = record.next.load(Ordering::Relaxed);
        }
    }
}

/// What [`protect_own`] did.
pub(crate) enum Own {
    Protected(SlotRef, NonNull<()>),
    Null,
    /// No record yet, no free slot in it, inside a claim already, or
    /// interrupted: take the long way.
    NotNow,
}

/// Protects what `src` points to in the thread's own record, if that is quick.
///
/// # Progress
///
/// As [`Overflow::protect`].
#[inline(always)]
pub(crate) fn protect_own(thread: &Thread, src: &AtomicPtr<()>, rung: Rung) -> Own {
    let Some(record) = NonNull::new(thread.record.get().cast_mut()) else {
        return Own::NotNow;
    };
    if thread.busy.get() {
        return Own::NotNow;
    }
    thread.busy.set(true);
    compiler_fence(Ordering::SeqCst);
    // SAFETY: records are never freed.
    let answer = unsafe { record.as_ref() }.protect(record, src, rung);
    compiler_fence(Ordering::SeqCst);
    thread.busy.set(false);
    answer
}

impl Record {
    /// For the record's owner.
    #[inline(always)]
    fn protect(&self, this: NonNull<Record>, src: &AtomicPtr<()>, rung: Rung) -> Own {
        let Some(index) = self.free_slot() else {
            return Own::NotNow;
        };
        let slot = &self.slots[index];
        let value = if rung == Rung::Rseq {
            // SAFETY: a free slot of the record that this thread owns.
            match unsafe { section::load_into(src, slot) } {
                section::MISSED => return Own::NotNow,
                value => NonNull::new(value),
            }
        } else {
            publish_and_recheck(src, slot, usize::MAX, FREE, rung).ok()
        };
        match value {
            Some(value) => {
                self.count();
                Own::Protected(SlotRef::overflow(this, index), value)
            }
            None => Own::Null,
        }
    }

    /// Counts an acquisition by the owner.
    #[inline]
    fn count(&self) {
        // Relaxed, both: only the owner writes; a statistic.
        let acquires = self.acquires.load(Ordering::Relaxed);
        self.acquires.store(acquires + 1, Ordering::Relaxed);
    }
}

/// Protects what `src` points to in a slot that the caller owns. `Err` holds
/// the value if it is null but for its tag; the slot then holds `idle`.
#[inline(always)]
pub(crate) fn fill(
    src: &AtomicPtr<()>,
    slot: &AtomicUsize,
    mask: usize,
    idle: usize,
) -> Result<NonNull<()>, *mut ()> {
    // SAFETY: the slot is the caller's.
    let value = unsafe {
        if mask == usize::MAX {
            section::load_into(src, slot)
        } else {
            section::load_into_masked(src, slot, mask)
        }
    };
    match NonNull::new(value) {
        Some(object) if value != section::MISSED && value.addr() & mask != 0 => Ok(object),
        _ => fill_cold(src, slot, mask, idle, value),
    }
}

#[cold]
#[inline(never)]
fn fill_cold(
    src: &AtomicPtr<()>,
    slot: &AtomicUsize,
    mask: usize,
    idle: usize,
    mut value: *mut (),
) -> Result<NonNull<()>, *mut ()> {
    let mut restarts = 0;
    while value == section::MISSED && restarts < RESTARTS && section::registered() {
        // SAFETY: the slot is the caller's.
        value = unsafe { section::load_into_masked(src, slot, mask) };
        restarts += 1;
    }
    if value == section::MISSED {
        return publish_and_recheck(src, slot, mask, idle, percpu::barrier::rung());
    }
    match NonNull::new(value) {
        Some(object) if value.addr() & mask != 0 => Ok(object),
        _ => {
            // Release: "Clear" of what a held slot protected before.
            slot.store(idle, Ordering::Release);
            Err(value)
        }
    }
}

/// The portable way to protect: publish a candidate, light barrier, recheck.
#[inline(always)]
pub(crate) fn publish_and_recheck(
    src: &AtomicPtr<()>,
    slot: &AtomicUsize,
    mask: usize,
    idle: usize,
    rung: Rung,
) -> Result<NonNull<()>, *mut ()> {
    // Relaxed: a guess, never dereferenced.
    let mut guess = src.load(Ordering::Relaxed);
    loop {
        if guess.addr() & mask == 0 {
            // Release: "Clear"; the slot may have protected something before.
            slot.store(idle, Ordering::Release);
            return Err(guess);
        }
        // Release: "Publish".
        slot.store(guess.addr() & mask, Ordering::Release);
        percpu::barrier::light_on(rung);
        // Acquire: "Recheck"; the caller goes on with this second value, whose
        // publication it acquires (and whose provenance is alive).
        let value = src.load(Ordering::Acquire);
        if let Some(object) = NonNull::new(value)
            && ptr_eq(guess, value)
        {
            return Ok(object);
        }
        guess = value;
    }
}
