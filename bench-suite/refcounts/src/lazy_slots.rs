//! A hazard slot a CPU for the address space that the CPU has lazily: what the
//! kernel patch puts in the place of a count.
//!
//! Floor 3 (`refcounts`). Owns one word a CPU. Not a count, but what a count is
//! measured against; it is here because this crate builds under loom.
//!
//! # Protocol
//!
//! | step | who | access |
//! |---|---|---|
//! | *Grab* | the CPU, while it still is a user of the object | [`light`](Fences::light), then stores the address in its own slot |
//! | *Leave* | the caller: the CPU gives up being a user | a Release RMW on the count of users, outside of this module |
//! | *Clear* | the CPU, after its last use | `light`, then stores null |
//! | *Last* | the caller: the count of users reaches zero | an Acquire of every *Leave* |
//! | *Find* | whoever was the last | [`heavy`](Fences::heavy), then looks at every slot |
//!
//! Only a CPU writes its own slot, so a grab is a load and a store where
//! `hp::SlotArray`, whose slots any thread may claim, needs a compare-exchange.
//! A CPU that grabs is a user of the object, so the object exists and nothing
//! is read again after the store.
//!
//! # Orderings
//!
//! *Grab* comes before *Leave* in the CPU's program, and *Leave* before *Last*
//! by the count: so *Find* sees this grab or what the CPU did after it. That
//! is all the order that the scan needs: no model fails without the fences.
//! The kernel has them for its `membarrier`, which looks at what CPUs run.
//! They are here because the kernel pays for them, and because the pair with a
//! process-wide barrier is what hazard pointers cost where no count of users
//! stands beside them.
//!
//! *Clear* is Release and so is *Grab*, and *Find* is Acquire: whichever of
//! the CPU's later stores it meets in the slot, the uses before it are over.
//!
//! Source: M. Desnoyers, "sched+mm: Track lazy active mm existence with hazard
//! pointers", 2024.

use crate::BarrierLost;
use crate::sync::Padded;
use core::marker::PhantomData;
use percpu::barrier;
use percpu::sync::atomic::{AtomicUsize, Ordering, fence};

const FREE: usize = 0;

/// What stands before the accesses of both sides.
pub trait Fences: Send + Sync + 'static {
    /// Before *Grab* and before *Clear*.
    fn light();

    /// Before *Find*.
    ///
    /// # Errors
    ///
    /// [`BarrierLost`]: nothing may be freed.
    fn heavy() -> Result<(), BarrierLost>;
}

/// Full fences on both sides, as in the kernel.
#[derive(Debug)]
pub struct Symmetric;

impl Fences for Symmetric {
    #[inline(always)]
    fn light() {
        // SeqCst: what the kernel's membarrier needs; nothing here does, see above.
        fence(Ordering::SeqCst);
    }

    #[inline]
    fn heavy() -> Result<(), BarrierLost> {
        // SeqCst: as above.
        fence(Ordering::SeqCst);
        Ok(())
    }
}

/// A compiler fence for the CPU, one process-wide barrier for the scanner.
#[derive(Debug)]
pub struct Asymmetric;

impl Fences for Asymmetric {
    #[inline(always)]
    fn light() {
        barrier::light();
    }

    #[inline]
    fn heavy() -> Result<(), BarrierLost> {
        barrier::heavy()
    }
}

/// The slots of `0..cpus`, each on a line of its own.
#[derive(Debug)]
pub struct LazySlots<F> {
    slots: Box<[Padded<AtomicUsize>]>,
    fences: PhantomData<F>,
}

impl<F: Fences> LazySlots<F> {
    /// Free slots.
    #[must_use]
    pub fn new(cpus: usize) -> Self {
        Self {
            slots: (0..cpus).map(|_| Padded(AtomicUsize::new(FREE))).collect(),
            fences: PhantomData,
        }
    }

    /// *Grab*: called by the thread that plays `cpu`, which is a user of the
    /// object at `address`. Whether the slot was free, as it must be: a CPU has
    /// one lazy object at a time.
    ///
    /// # Progress
    ///
    /// Wait-free.
    #[inline(always)]
    pub fn grab(&self, cpu: usize, address: usize) -> bool {
        let slot = &self.slots[cpu];
        F::light();
        // Relaxed: the slot is this CPU's.
        let free = slot.load(Ordering::Relaxed) == FREE;
        // Release: "Grab", pairs with "Find": uses of what was here before.
        slot.store(address, Ordering::Release);
        free
    }

    /// *Clear*: called by the thread that plays `cpu`.
    ///
    /// # Progress
    ///
    /// Wait-free and async-signal-safe.
    #[inline(always)]
    pub fn clear(&self, cpu: usize) {
        F::light();
        // Release: "Clear", pairs with "Find".
        self.slots[cpu].store(FREE, Ordering::Release);
    }

    /// *Find*: calls `on_match` for every CPU whose slot holds `address`, once
    /// for each. Waits for nobody.
    ///
    /// # Errors
    ///
    /// [`BarrierLost`]: nothing was looked at.
    pub fn find(&self, address: usize, mut on_match: impl FnMut(usize)) -> Result<(), BarrierLost> {
        F::heavy()?;
        for cpu in 0..self.slots.len() {
            if self.has(cpu, address) {
                on_match(cpu);
            }
        }
        Ok(())
    }

    /// Whether the slot of `cpu` holds `address`.
    #[must_use]
    #[inline]
    pub fn has(&self, cpu: usize, address: usize) -> bool {
        // Acquire: "Find", pairs with "Grab" and "Clear".
        self.slots[cpu].load(Ordering::Acquire) == address
    }

    /// What the slot of `cpu` holds; 0 if nothing. For checks.
    #[must_use]
    #[inline(always)]
    pub fn get(&self, cpu: usize) -> usize {
        // Relaxed: its CPU knows it, others only look.
        self.slots[cpu].load(Ordering::Relaxed)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn found(slots: &LazySlots<impl Fences>, address: usize) -> Vec<usize> {
        let mut found = Vec::new();
        slots.find(address, |cpu| found.push(cpu)).unwrap();
        found
    }

    #[test]
    fn a_scan_finds_who_has_it_and_nobody_else() {
        let slots = LazySlots::<Symmetric>::new(3);
        assert!(slots.grab(0, 16));
        assert!(slots.grab(2, 16));
        assert!(slots.grab(1, 32));
        assert_eq!(found(&slots, 16), [0, 2]);
        assert_eq!(slots.get(1), 32);
        slots.clear(0);
        assert_eq!(found(&slots, 16), [2]);
        slots.clear(2);
        assert_eq!(found(&slots, 16), []);
    }

    #[test]
    fn a_second_grab_finds_the_slot_busy() {
        let slots = LazySlots::<Asymmetric>::new(1);
        assert!(slots.grab(0, 16));
        assert!(!slots.grab(0, 16), "not cleared");
        slots.clear(0);
        assert!(slots.grab(0, 16));
    }
}
