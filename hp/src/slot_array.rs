//! The kernel's interface: a domain of slots of one's own, one slot a CPU.
//!
//! Floor 2 (`hp`), kernel level. Owns its slots; shares nothing with the
//! process-wide ones. For those who port code written against the kernel's
//! `hp.h` (Desnoyers, 2024), and for models of what the kernel does with it.
//!
//! | kernel | here |
//! |---|---|
//! | `hp_allocate(slots, addr)` | [`SlotArray::allocate`], [`SlotArray::allocate_at`] |
//! | `hp_dereference_allocate(slots, &p)` | [`SlotArray::dereference_allocate`], [`SlotArray::dereference_allocate_at`] |
//! | `hp_ctx_addr(ctx)` | [`Allocated::address`] |
//! | `hp_retire(ctx)` | dropping the [`Allocated`] |
//! | `hp_scan(slots, addr, callback)` | [`SlotArray::scan`] |
//! | `hp_scan(slots, addr, NULL)` | [`SlotArray::synchronize`] |
//!
//! As there, allocating fails when the slot is taken, and the caller falls
//! back (to a reference count, to waiting, …). Unlike there, nothing keeps the
//! caller on its CPU: the slot is the one it was allocated from, wherever the
//! thread runs later.
//!
//! # Orderings
//!
//! As in [`crate::slots`] and [`crate::overflow`]: the claim commits by
//! section (Release), or by compare-exchange (*Take*, AcqRel) in an array with
//! explicit indices and on the lower rungs; *Clear* is a Release store; the
//! scanner reads with Acquire after its heavy barrier. An array is claimed by
//! sections only or by compare-exchange only, never both.

use crate::overflow::publish_and_recheck;
use crate::slot::{FREE, RESERVED, is_address};
use core::marker::PhantomData;
use core::ptr;
use percpu::barrier::{BarrierLost, Rung, heavy, rung};
use percpu::line::Line;
use percpu::section::{self, Miss};
use percpu::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use percpu::wait::Backoff;

/// Interrupted sections before an allocation reports failure.
const RESTARTS: usize = 64;

/// Slots of one's own, one a CPU, each on its own 128-byte line.
#[derive(Debug)]
pub struct SlotArray {
    lines: Box<[Line]>,
    explicit: bool,
}

impl SlotArray {
    /// One slot for each possible CPU; claims go to the running CPU's.
    ///
    /// On the lower rungs a thread has a slot by its number instead (two
    /// threads may then share one).
    #[must_use]
    pub fn per_cpu() -> Self {
        Self::with_lines(percpu::possible_cpus(), false)
    }

    /// `len` slots that are claimed by index, for callers who know which CPU
    /// (or simulated CPU) they are.
    ///
    /// # Panics
    ///
    /// If `len` is 0.
    #[must_use]
    pub fn with_len(len: usize) -> Self {
        assert!(len > 0, "a slot array needs a slot");
        Self::with_lines(len, true)
    }

    fn with_lines(len: usize, explicit: bool) -> Self {
        let lines: Box<[Line]> = (0..len).map(|_| Line::new()).collect();
        for line in &lines {
            // Relaxed: published with the array.
            line.words()[0].store(FREE, Ordering::Relaxed);
        }
        Self { lines, explicit }
    }

    /// Number of slots.
    #[must_use]
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    fn slot(&self, index: usize) -> &AtomicUsize {
        &self.lines[index].words()[0]
    }

    /// Puts `address`, which the caller already holds safely, into the running
    /// CPU's slot. `None` if the slot is taken, the thread cannot run sections
    /// on the rseq rung, or `address` is null.
    ///
    /// # Panics
    ///
    /// If this array was made with [`with_len`](Self::with_len).
    ///
    /// # Progress
    ///
    /// Wait-free.
    #[must_use]
    pub fn allocate(&self, address: *const ()) -> Option<Allocated<'_>> {
        self.check(false);
        if !is_address(address.addr()) {
            return None;
        }
        if rung() != Rung::Rseq {
            return self.take(self.portable_index(), address);
        }
        for _ in 0..RESTARTS {
            // SAFETY: the lines live as long as the array, whose slots are
            // claimed by sections only on this rung.
            match unsafe {
                section::claim(self.lines.as_ptr(), self.lines.len(), 0, 1, address.addr())
            } {
                Ok(slot) => return Some(self.allocated(slot)),
                Err(Miss::Restarted) => {}
                Err(_) => return None,
            }
        }
        None
    }

    /// Loads `src` into the running CPU's slot. `None` as for
    /// [`allocate`](Self::allocate), or if the source is null.
    ///
    /// # Panics, Progress
    ///
    /// As [`allocate`](Self::allocate); on the lower rungs lock-free.
    #[must_use]
    pub fn dereference_allocate<T>(&self, src: &AtomicPtr<T>) -> Option<(Allocated<'_>, *mut T)> {
        self.check(false);
        let erased = erase(src);
        if rung() != Rung::Rseq {
            return self.load_at(self.portable_index(), src);
        }
        for _ in 0..RESTARTS {
            // SAFETY: as in `allocate`.
            match unsafe {
                section::search_and_load(
                    self.lines.as_ptr(),
                    self.lines.len(),
                    0,
                    1,
                    erased,
                    usize::MAX,
                )
            } {
                Ok((slot, value)) => return Some((self.allocated(slot), value.cast())),
                Err(Miss::Restarted) => {}
                Err(_) => return None,
            }
        }
        None
    }

    /// As [`allocate`](Self::allocate), in slot `index`.
    ///
    /// # Panics
    ///
    /// If this array was made with [`per_cpu`](Self::per_cpu), or `index` is
    /// out of range.
    #[must_use]
    pub fn allocate_at(&self, index: usize, address: *const ()) -> Option<Allocated<'_>> {
        self.check(true);
        self.take(index, address)
    }

    /// As [`dereference_allocate`](Self::dereference_allocate), in slot
    /// `index`.
    ///
    /// # Panics
    ///
    /// As [`allocate_at`](Self::allocate_at).
    #[must_use]
    pub fn dereference_allocate_at<T>(
        &self,
        index: usize,
        src: &AtomicPtr<T>,
    ) -> Option<(Allocated<'_>, *mut T)> {
        self.check(true);
        self.load_at(index, src)
    }

    fn take(&self, index: usize, address: *const ()) -> Option<Allocated<'_>> {
        if !is_address(address.addr()) {
            return None;
        }
        let slot = self.slot(index);
        // AcqRel: "Take"; Acquire pairs with "Clear". Relaxed on failure.
        slot.compare_exchange(FREE, address.addr(), Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
            .then(|| self.allocated(slot))
    }

    fn load_at<T>(&self, index: usize, src: &AtomicPtr<T>) -> Option<(Allocated<'_>, *mut T)> {
        let slot = self.slot(index);
        // Acquire: "Take", pairs with "Clear"; the address comes by "Publish".
        slot.compare_exchange(FREE, RESERVED, Ordering::Acquire, Ordering::Relaxed)
            .ok()?;
        let value = publish_and_recheck(erase(src), slot, usize::MAX, FREE, rung()).ok()?;
        Some((self.allocated(slot), value.as_ptr().cast()))
    }

    fn allocated(&self, slot: *const AtomicUsize) -> Allocated<'_> {
        Allocated {
            slot,
            _array: PhantomData,
        }
    }

    fn check(&self, explicit: bool) {
        assert!(
            self.explicit == explicit,
            "this array is claimed {}",
            if self.explicit {
                "by index: use `allocate_at`"
            } else {
                "by the running CPU: use `allocate`"
            }
        );
    }

    fn portable_index(&self) -> usize {
        crate::thread::token() % self.lines.len()
    }

    /// Heavy barrier, then one look at each slot: calls `on_match(index)` for
    /// each one that holds `address`. Waits for nobody.
    ///
    /// # Errors
    ///
    /// [`BarrierLost`]: nothing was looked at.
    pub fn scan(
        &self,
        address: *const (),
        mut on_match: impl FnMut(usize),
    ) -> Result<(), BarrierLost> {
        heavy()?;
        for (index, line) in self.lines.iter().enumerate() {
            // Acquire: pairs with the claim's commit and with "Clear".
            if line.words()[0].load(Ordering::Acquire) == address.addr() {
                on_match(index);
            }
        }
        Ok(())
    }

    /// Heavy barrier, then waits until no slot holds `address`.
    ///
    /// # Errors
    ///
    /// [`BarrierLost`]: nothing was waited for.
    pub fn synchronize(&self, address: *const ()) -> Result<(), BarrierLost> {
        heavy()?;
        for line in &self.lines {
            let mut backoff = Backoff::new();
            // Acquire: as in `scan`.
            while line.words()[0].load(Ordering::Acquire) == address.addr() {
                backoff.snooze();
            }
        }
        Ok(())
    }

    /// Clears slot `index` for its holder, as the kernel's interrupt does on
    /// the CPU that it stops from using an object.
    ///
    /// # Safety
    ///
    /// The holder no longer uses the object, and its [`Allocated`] is forgotten
    /// (`mem::forget`) instead of dropped.
    pub unsafe fn clear(&self, index: usize) {
        // Release: "Clear".
        self.slot(index).store(FREE, Ordering::Release);
    }
}

/// A taken slot of a [`SlotArray`]; dropping it clears the slot. Any thread
/// may do that.
#[derive(Debug)]
#[must_use = "dropping it ends the protection"]
pub struct Allocated<'a> {
    slot: *const AtomicUsize,
    _array: PhantomData<&'a SlotArray>,
}

// SAFETY: the slot may be cleared by any thread; nothing else is done with it.
unsafe impl Send for Allocated<'_> {}
// SAFETY: `&Allocated` only reads the slot.
unsafe impl Sync for Allocated<'_> {}

impl Allocated<'_> {
    fn word(&self) -> &AtomicUsize {
        // SAFETY: the array outlives this.
        unsafe { &*self.slot }
    }

    /// The address that is protected.
    #[must_use]
    pub fn address(&self) -> *const () {
        // Relaxed: the slot is this holder's.
        ptr::without_provenance(self.word().load(Ordering::Relaxed))
    }
}

impl Drop for Allocated<'_> {
    fn drop(&mut self) {
        // Release: "Clear".
        self.word().store(FREE, Ordering::Release);
    }
}

fn erase<T>(src: &AtomicPtr<T>) -> &AtomicPtr<()> {
    // SAFETY: `AtomicPtr<T>` and `AtomicPtr<()>` are one pointer word.
    unsafe { &*ptr::from_ref(src).cast() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_slot_is_found_and_cleared() {
        let array = SlotArray::with_len(3);
        let value = 5u32;
        let address = ptr::from_ref(&value).cast();
        let held = array.allocate_at(1, address).expect("free");
        assert!(array.allocate_at(1, address).is_none(), "one slot a CPU");
        assert_eq!(held.address(), address);
        let mut seen = vec![];
        array.scan(address, |index| seen.push(index)).unwrap();
        assert_eq!(seen, [1]);
        drop(held);
        array.scan(address, |_| panic!("cleared")).unwrap();
        array.synchronize(address).unwrap();
    }

    #[test]
    fn a_source_is_loaded_into_the_slot() {
        let mut value = 5u32;
        let src = AtomicPtr::new(&raw mut value);
        let null = AtomicPtr::new(ptr::null_mut::<u32>());
        let array = SlotArray::with_len(2);
        let (held, object) = array.dereference_allocate_at(0, &src).unwrap();
        assert_eq!(
            (object, held.address()),
            (&raw mut value, (&raw const value).cast())
        );
        drop(held);
        assert!(array.dereference_allocate_at(0, &null).is_none());
        assert!(
            array.dereference_allocate_at(0, &src).is_some(),
            "null leaves it free"
        );
    }

    #[test]
    fn the_running_cpu_has_one_slot() {
        let array = SlotArray::per_cpu();
        let mut value = 5u32;
        let src = AtomicPtr::new(&raw mut value);
        // Between enabling and first use the thread may be told that sections
        // are not on yet.
        let held = loop {
            if let Some(held) = array.allocate((&raw const value).cast()) {
                break held;
            }
        };
        let mut seen = 0;
        array.scan(held.address(), |_| seen += 1).unwrap();
        assert_eq!(seen, 1);
        drop(held);
        let (held, object) = loop {
            if let Some(found) = array.dereference_allocate(&src) {
                break found;
            }
        };
        assert_eq!(object, &raw mut value);
        assert!(array.allocate(ptr::null()).is_none());
        drop(held);
    }

    #[test]
    #[should_panic(expected = "use `allocate_at`")]
    fn the_two_kinds_of_claim_do_not_mix() {
        let _ = SlotArray::with_len(1).allocate(ptr::without_provenance(64));
    }
}
