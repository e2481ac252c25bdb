//! The words of a slot, and a reference to a slot that knows its kind.
//!
//! Floor 2 (`hp`), raw layer. Owns the meaning of a slot word and of releasing
//! it; touches nothing else.
//!
//! # Slot words
//!
//! | word | meaning | may become |
//! |---|---|---|
//! | `INACTIVE` (0) | no thread has used this CPU's line yet | `FREE`, once |
//! | `FREE` (all ones) | nobody's | an address, `RESERVED` |
//! | `RESERVED` (all ones but one) | held, protects nothing | an address, `FREE` |
//! | anything else | held, protects that address | `FREE`, `RESERVED`, another address |
//!
//! No object lies at the two reserved addresses: an object of size `n` at
//! address `a` needs `a + n` to be an address too. Null needs no slot.
//!
//! # Who may take a slot
//!
//! * Slots of a CPU's line: sections only (`percpu::section`).
//! * Slots of an owned overflow record: its owner thread only, by a plain store.
//! * Slots of a shared overflow record: anybody, by compare-exchange only.
//!
//! The kinds never mix, because a plain store is not atomic against another
//! thread's compare-exchange. Whoever holds a guard may release its slot.

use crate::overflow::Record;
use core::ptr::NonNull;
use percpu::sync::atomic::{AtomicUsize, Ordering};

/// Nobody's slot.
pub(crate) const FREE: usize = usize::MAX;
/// A held slot that protects nothing.
pub(crate) const RESERVED: usize = usize::MAX - 1;

/// Slots of a CPU's line that hazard pointers use: one cache line of words.
#[cfg(not(loom))]
pub(crate) const SLOTS_PER_CPU: usize = 8;
/// Slots of a CPU's line under loom.
#[cfg(loom)]
pub(crate) const SLOTS_PER_CPU: usize = 1;

/// Whether a slot word is a protected address.
#[inline(always)]
pub(crate) fn is_address(word: usize) -> bool {
    word != percpu::line::INACTIVE && word < RESERVED
}

/// A held slot: a word of a CPU's line, or a word of an overflow record.
///
/// Not `Clone`: whoever has it holds the slot.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct SlotRef(Repr);

/// Address of the word; bit 0 tells an overflow slot, so that the common
/// release is one test and one store.
#[cfg(not(loom))]
type Repr = NonNull<AtomicUsize>;

/// loom's atomics have another size and alignment, so no bit is free.
#[cfg(loom)]
#[derive(Debug)]
enum Repr {
    PerCpu(NonNull<AtomicUsize>),
    Overflow(NonNull<Record>, usize),
}

#[cfg(not(loom))]
const OVERFLOW: usize = 1;

#[cfg(not(loom))]
impl SlotRef {
    /// A slot of a CPU's line.
    #[inline(always)]
    pub(crate) fn percpu(word: NonNull<AtomicUsize>) -> Self {
        Self(word)
    }

    /// Slot `index` of an overflow record.
    #[inline]
    pub(crate) fn overflow(record: NonNull<Record>, index: usize) -> Self {
        // SAFETY: `index` is a slot of the record; the slots stand first in it.
        let word = unsafe { record.cast::<AtomicUsize>().add(index) };
        Self(word.map_addr(|a| a | OVERFLOW))
    }

    #[inline(always)]
    pub(crate) fn is_overflow(&self) -> bool {
        self.0.addr().get() & OVERFLOW != 0
    }

    /// Record and slot index of an overflow slot.
    #[inline]
    pub(crate) fn place(&self) -> (NonNull<Record>, usize) {
        debug_assert!(self.is_overflow());
        let mask = align_of::<Record>() - 1;
        let index = (self.0.addr().get() & mask) / size_of::<usize>();
        let record = self.0.map_addr(|a| {
            // An overflow slot's address is at least the record's alignment.
            core::num::NonZero::new(a.get() & !mask).unwrap_or(a)
        });
        (record.cast(), index)
    }

    /// The word.
    #[inline(always)]
    pub(crate) fn word(&self) -> &AtomicUsize {
        // SAFETY: lines and records are never freed, and clearing the kind bit
        // gives back the pointer to the word.
        unsafe { &*self.0.as_ptr().map_addr(|a| a & !OVERFLOW).cast_const() }
    }
}

#[cfg(loom)]
impl SlotRef {
    pub(crate) fn percpu(word: NonNull<AtomicUsize>) -> Self {
        Self(Repr::PerCpu(word))
    }

    pub(crate) fn overflow(record: NonNull<Record>, index: usize) -> Self {
        Self(Repr::Overflow(record, index))
    }

    pub(crate) fn is_overflow(&self) -> bool {
        matches!(self.0, Repr::Overflow(..))
    }

    pub(crate) fn place(&self) -> (NonNull<Record>, usize) {
        match self.0 {
            Repr::Overflow(record, index) => (record, index),
            Repr::PerCpu(_) => unreachable!("not an overflow slot"),
        }
    }

    pub(crate) fn word(&self) -> &AtomicUsize {
        match self.0 {
            // SAFETY: the model keeps its slots until all guards are gone.
            Repr::PerCpu(word) => unsafe { &*word.as_ptr() },
            // SAFETY: as above.
            Repr::Overflow(record, index) => unsafe { &(*record.as_ptr()).slots()[index] },
        }
    }
}

impl SlotRef {
    /// Gives the slot back.
    #[inline(always)]
    pub(crate) fn release(self) {
        if self.is_overflow() {
            self.release_overflow();
        } else {
            // Release ("Clear"): pairs with the Acquire loads of a scan and of
            // the next claim: what the holder did with the object happens
            // before the object is freed.
            self.word().store(FREE, Ordering::Release);
        }
    }

    #[cfg(not(loom))]
    #[cold]
    #[inline(never)]
    fn release_overflow(self) {
        let slot = self.word();
        // SAFETY: the reference to the slot was made from the pointer to its
        // record (`overflow`), which is never freed, and the count lies there.
        let extra = unsafe {
            &*self
                .0
                .as_ptr()
                .map_addr(|a| a & !OVERFLOW)
                .byte_add(Record::TO_EXTRA)
        };
        crate::overflow::release(slot, extra);
    }

    #[cfg(loom)]
    fn release_overflow(self) {
        let (record, index) = self.place();
        // SAFETY: the model keeps its records.
        crate::overflow::release(self.word(), unsafe { record.as_ref() }.extra(index));
    }
}

/// A held slot that gives itself back.
#[repr(transparent)]
pub(crate) struct Held(pub(crate) SlotRef);

impl Drop for Held {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: this is the only holder and is not used again.
        unsafe { core::ptr::read(&raw const self.0) }.release();
    }
}
