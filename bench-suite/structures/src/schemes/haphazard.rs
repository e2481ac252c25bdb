//! `haphazard`: hazard pointers with holders that threads keep.
//!
//! Floor 3 (`structures`). May touch the `haphazard` crate. One domain a structure.
//!
//! The crate's `protect` reads its own `AtomicPtr` or a plain one, but knows no tag bits. So the same steps are taken
//! here with its `protect_raw`: publish, full fence (what both its barriers are), re-read.

use crate::scheme::{Guard, Scheme, Thread, untagged};
use crate::{About, Node, Protects};
use ::haphazard::{Domain, HazardPointer};
use percpu::sync::atomic::{AtomicPtr, Ordering, fence};

/// Makes the domain's type this scheme's own.
#[derive(Debug)]
pub(super) struct Family;

/// A domain.
pub struct Haphazard(Domain<Family>);

impl std::fmt::Debug for Haphazard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Haphazard")
    }
}

impl Scheme for Haphazard {
    const ABOUT: About = About::new(
        "haphazard",
        Protects::Object,
        "haphazard 0.1: publish, full fence, re-read",
        "cached: the thread's HazardPointers, protection reset at the end of each operation (fairest for haphazard)",
    );

    type Thread<'a, const K: usize> = Holder<'a, K>;

    fn new() -> Self {
        Haphazard(Domain::new(&Family))
    }

    fn thread<const K: usize>(&self) -> Holder<'_, K> {
        Holder {
            slots: std::array::from_fn(|_| HazardPointer::new_in_domain(&self.0)),
            domain: &self.0,
        }
    }

    fn flush(&self) {
        self.0.eager_reclaim();
    }
}

/// A thread's holders.
pub struct Holder<'a, const K: usize> {
    slots: [HazardPointer<'a, Family>; K],
    domain: &'a Domain<Family>,
}

impl<const K: usize> std::fmt::Debug for Holder<'_, K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "haphazard::Holder of {K}")
    }
}

impl<'a, const K: usize> Thread for Holder<'a, K> {
    type Guard<'g>
        = Held<'g, 'a, K>
    where
        Self: 'g;

    #[inline(always)]
    fn pin(&mut self) -> Held<'_, 'a, K> {
        Held {
            slots: &mut self.slots,
            used: 0,
            domain: self.domain,
        }
    }
}

/// The holders of one operation.
pub struct Held<'g, 'a, const K: usize> {
    slots: &'g mut [HazardPointer<'a, Family>; K],
    /// Holders below this may hold something.
    used: usize,
    domain: &'a Domain<Family>,
}

impl<const K: usize> std::fmt::Debug for Held<'_, '_, K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "haphazard::Held of {K}")
    }
}

impl<const K: usize> Guard for Held<'_, '_, K> {
    #[inline(always)]
    fn protect<T>(&mut self, slot: usize, src: &AtomicPtr<T>) -> *mut T {
        self.used = self.used.max(slot + 1);
        let holder = &mut self.slots[slot];
        // Relaxed: not followed.
        let mut seen = src.load(Ordering::Relaxed);
        loop {
            // Release inside.
            holder.protect_raw(untagged(seen));
            // SeqCst: pairs with the fence before the crate's scan.
            fence(Ordering::SeqCst);
            // Acquire: pairs with the store that published the node.
            let now = src.load(Ordering::Acquire);
            // The later pointer is returned: where the addresses are equal, it may still be another object's.
            if now.addr() == seen.addr() {
                return now;
            }
            seen = now;
        }
    }

    #[inline(always)]
    fn unchanged<T>(&self, src: &AtomicPtr<T>, seen: *mut T) -> bool {
        // Acquire: after the fence of `protect`.
        src.load(Ordering::Acquire).addr() == seen.addr()
    }

    #[inline(always)]
    fn announce<T>(&mut self, slot: usize, node: *mut T) {
        self.used = self.used.max(slot + 1);
        // Release inside.
        self.slots[slot].protect_raw(untagged(node));
    }

    #[inline(always)]
    fn clear(&mut self, slot: usize) {
        self.slots[slot].reset_protection();
    }

    #[inline(always)]
    unsafe fn retire<T: Node>(&mut self, node: *mut T) {
        // SAFETY: the caller's; nodes are boxes.
        unsafe { self.domain.retire_ptr::<T, Box<T>>(node) };
    }
}

impl<const K: usize> Drop for Held<'_, '_, K> {
    #[inline(always)]
    fn drop(&mut self) {
        for holder in self.slots.iter_mut().take(self.used) {
            holder.reset_protection();
        }
    }
}
