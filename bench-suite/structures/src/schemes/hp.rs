//! `hp`, `hp-membarrier`, `hp-fence`: held hazard pointers.
//!
//! Floor 3 (`structures`). A thread keeps its `HazardPointer`s; each structure has a domain of its own.
//!
//! The three run the same code. The rung is a property of the process: whoever wants a forced one asks for it in the
//! environment of a child.

use crate::scheme::{Guard, Scheme, Thread, tag_bits, untagged};
use crate::{About, Node, Protects};
use ::hp::{Domain, HazardPointer};
use percpu::sync::atomic::{AtomicPtr, Ordering};
use std::fmt::Debug;
use std::marker::PhantomData;

/// Which rung the process is expected to be on.
pub trait Rung: Debug + Send + Sync + 'static {
    /// The scheme on that rung.
    const ABOUT: About;
}

const fn about(name: &'static str, measures: &'static str) -> About {
    About::new(
        name,
        Protects::Object,
        measures,
        "cached: the thread's HazardPointers, reset at the end of each operation",
    )
    .over_percpu()
}

/// Whatever rung the process has.
#[derive(Debug)]
pub struct Native;

impl Rung for Native {
    const ABOUT: About = about(
        "hp",
        "hazard pointers of this project, on the rung that this machine offers",
    );
}

/// The membarrier rung.
#[derive(Debug)]
pub struct Membarrier;

impl Rung for Membarrier {
    const ABOUT: About = About {
        rung: Some("membarrier"),
        ..about(
            "hp-membarrier",
            "hp forced to the membarrier rung: publish, compiler fence, re-read",
        )
    };
}

/// The fence rung.
#[derive(Debug)]
pub struct Fence;

impl Rung for Fence {
    const ABOUT: About = About {
        rung: Some("fence"),
        ..about(
            "hp-fence",
            "hp forced to the fence rung: publish, full fence, re-read",
        )
    };
}

/// A domain.
#[derive(Debug)]
pub struct Hp<R> {
    domain: Domain,
    rung: PhantomData<R>,
}

impl<R: Rung> Scheme for Hp<R> {
    const ABOUT: About = R::ABOUT;

    type Thread<'a, const K: usize> = Holder<'a, K>;

    fn new() -> Self {
        Hp {
            domain: Domain::new(),
            rung: PhantomData,
        }
    }

    fn thread<const K: usize>(&self) -> Holder<'_, K> {
        Holder {
            slots: HazardPointer::array(),
            domain: &self.domain,
        }
    }

    fn flush(&self) {
        self.domain.drain();
    }

    fn bound(&self, threads: usize, slots: usize) -> Option<usize> {
        // What a pass found protected is at most what all slots can hold.
        Some(self.domain.pending_bound(threads) + threads * slots)
    }
}

/// A thread's slots.
#[derive(Debug)]
pub struct Holder<'a, const K: usize> {
    slots: [HazardPointer; K],
    domain: &'a Domain,
}

impl<const K: usize> Thread for Holder<'_, K> {
    type Guard<'g>
        = Held<'g, K>
    where
        Self: 'g;

    #[inline(always)]
    fn pin(&mut self) -> Held<'_, K> {
        Held {
            slots: &mut self.slots,
            used: 0,
            domain: self.domain,
        }
    }
}

/// The slots of one operation.
#[derive(Debug)]
pub struct Held<'g, const K: usize> {
    slots: &'g mut [HazardPointer; K],
    /// Slots below this may hold something.
    used: usize,
    domain: &'g Domain,
}

impl<const K: usize> Guard for Held<'_, K> {
    #[inline(always)]
    fn protect<T>(&mut self, slot: usize, src: &AtomicPtr<T>) -> *mut T {
        self.used = self.used.max(slot + 1);
        self.slots[slot].protect_tagged(src, tag_bits::<T>())
    }

    #[inline(always)]
    fn unchanged<T>(&self, src: &AtomicPtr<T>, seen: *mut T) -> bool {
        // Acquire: not before `protect` has filled the slot. On the rungs without a fence the reclaimer's barrier stands
        // between an earlier look here and a slot that its scan misses.
        ::hp::ptr_eq(src.load(Ordering::Acquire), seen)
    }

    #[inline(always)]
    fn announce<T>(&mut self, slot: usize, node: *mut T) {
        self.used = self.used.max(slot + 1);
        self.slots[slot].protect_raw(untagged(node).cast());
    }

    #[inline(always)]
    fn clear(&mut self, slot: usize) {
        self.slots[slot].reset();
    }

    #[inline(always)]
    unsafe fn retire<T: Node>(&mut self, node: *mut T) {
        // SAFETY: the caller's; nodes are boxes.
        unsafe { self.domain.retire_box(node) }
    }
}

impl<const K: usize> Drop for Held<'_, K> {
    #[inline(always)]
    fn drop(&mut self) {
        for slot in self.slots.iter_mut().take(self.used) {
            slot.reset();
        }
    }
}
