//! A count in two halves: the cell counts who loads, the object who has left.
//!
//! Floor 3 (`refcounts`). Owns the cell's word and its objects.
//!
//! # Words
//!
//! ```text
//! cell     63 ………… 48 47 …………………………… 0
//!          external    address of the object, 0 = empty
//! object   internal: BIAS while it is in a cell, plus and minus
//! ```
//!
//! One addition takes the address and counts the load, so no object is freed
//! between the two. What is referenced is the sum:
//!
//! What an empty cell counts means nothing: it wraps, and a swap throws it away.
//!
//! | the object | references are | who changes what |
//! |---|---|---|
//! | in the cell | external + internal − BIAS | load: external + 1. Release: external − 1 if the cell still holds the object and counts anything; else internal − 1 |
//! | replaced, not merged (inside a replacement) | the external count that was swapped out + internal − BIAS | release: internal − 1 |
//! | merged: internal += external − BIAS | internal | release: internal − 1; who leaves 0 frees |
//!
//! # Why it is right
//!
//! * **The bias** keeps the internal count from 0 until the replacer has merged
//!   what the cell had counted: before that a zero says nothing. Whoever brings
//!   the merged count to zero, a release or the merging itself, frees.
//! * **A release may take another load's place in the cell.** Only the sum
//!   matters: the other finds the cell counting nothing and goes to the object.
//! * **Folding.** 16 bits count 65 535 loads. From a threshold on a loader moves
//!   the external count to the object: *first* adds it there, *then* takes it
//!   out of the cell, and undoes the addition if that fails. For an instant
//!   references are counted twice, which is safe; the other way round a
//!   replacement in between would free the object under its holders.
//! * The same object is never put into a cell twice, so an address that a
//!   holder of it finds in the cell means that it was never replaced.
//!
//! # Orderings
//!
//! *Publish* (swap, Release) pairs with the load (Acquire). *Leave*, by either
//! count, is Release. The swap (Acquire) takes what left by the cell, *Merge*
//! (Release) hands it on, and who frees is Acquire on the internal count. The
//! fold's exchange is Release: the object's half is counted before the cell's
//! is gone.
//!
//! Source: split reference counts (Williams, *C++ Concurrency in Action*;
//! folly's `AtomicSharedPtr`); adding before taking is this project's proof
//! obligation, model `split`.

use crate::{BarrierLost, Thread, Tracker};
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ops::Deref;
use core::ptr::{self, NonNull};
use percpu::sync::atomic::{AtomicU64, Ordering};

/// One external reference.
const ONE: u64 = 1 << 48;
const ADDRESS: u64 = ONE - 1;
/// In the internal count while the object is in a cell.
const BIAS: u64 = 1 << 62;

fn address(word: u64) -> u64 {
    word & ADDRESS
}

fn external(word: u64) -> u64 {
    word >> 48
}

struct Node<T> {
    internal: AtomicU64,
    value: T,
}

impl<T> Node<T> {
    /// The node of a word, if there is one.
    fn at(word: u64) -> Option<NonNull<Self>> {
        NonNull::new(ptr::with_exposed_provenance_mut(address(word) as usize))
    }

    /// Changes the internal count; frees at zero. Whether it did.
    ///
    /// # Safety
    ///
    /// The caller gives back references that it has, and uses them no more.
    unsafe fn change(this: NonNull<Self>, by: u64) -> bool {
        // SAFETY: the caller's references keep it alive until here.
        let internal = unsafe { &this.as_ref().internal };
        // Release: "Leave" (and "Merge"), pairs with the Acquire below.
        let old = internal.fetch_add(by, Ordering::Release);
        if old.wrapping_add(by) != 0 {
            return false;
        }
        // Acquire: pairs with every "Leave" and "Merge".
        internal.load(Ordering::Acquire);
        // SAFETY: no reference is left, and the bias is off: the cell has none.
        unsafe { Self::free(this) };
        true
    }

    #[cfg(not(loom))]
    unsafe fn free(this: NonNull<Self>) {
        // SAFETY: from a box, see `Slot::word_of`; the caller is the last.
        drop(unsafe { Box::from_raw(this.as_ptr()) });
    }

    /// Leaves the memory: a model whose code is broken on purpose must fail and
    /// not crash.
    #[cfg(loom)]
    unsafe fn free(this: NonNull<Self>) {
        // SAFETY: the caller is the last.
        unsafe { ptr::drop_in_place(&raw mut (*this.as_ptr()).value) };
    }
}

/// A reference to an object of a [`Slot`]. To be [released](Slot::release) at
/// the slot, which is cheaper, or dropped.
pub struct Loaded<T: Send + Sync>(NonNull<Node<T>>);

// SAFETY: shares the value, and may be the one that drops it.
unsafe impl<T: Send + Sync> Send for Loaded<T> {}
// SAFETY: gives out `&T` only.
unsafe impl<T: Send + Sync> Sync for Loaded<T> {}

impl<T: Send + Sync> Deref for Loaded<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: counted, so alive.
        unsafe { &self.0.as_ref().value }
    }
}

impl<T: Send + Sync> Drop for Loaded<T> {
    fn drop(&mut self) {
        // SAFETY: gives back its own reference.
        unsafe { Node::change(self.0, 1u64.wrapping_neg()) };
    }
}

impl<T: Send + Sync + core::fmt::Debug> core::fmt::Debug for Loaded<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("Loaded").field(&**self).finish()
    }
}

/// A cell with an object that is counted while others have it. External counts
/// are folded from `FOLD` on.
pub struct Slot<T: Send + Sync, const FOLD: u64 = 0x4000> {
    word: AtomicU64,
    owns: PhantomData<Box<Node<T>>>,
}

// SAFETY: shares values and drops them on any thread.
unsafe impl<T: Send + Sync, const FOLD: u64> Send for Slot<T, FOLD> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync, const FOLD: u64> Sync for Slot<T, FOLD> {}

impl<T: Send + Sync, const FOLD: u64> Slot<T, FOLD> {
    /// A cell with `value`.
    #[must_use]
    pub fn new(value: T) -> Self {
        const { assert!(FOLD > 0 && FOLD <= 0x8000) };
        Self {
            word: AtomicU64::new(Self::word_of(value)),
            owns: PhantomData,
        }
    }

    /// # Panics
    ///
    /// If the allocator gives out addresses of more than 48 bits.
    fn word_of(value: T) -> u64 {
        let node = Box::into_raw(Box::new(Node {
            internal: AtomicU64::new(BIAS),
            value,
        }));
        let address = node.expose_provenance() as u64;
        assert_eq!(address & !ADDRESS, 0, "an address of more than 48 bits");
        address
    }

    /// A reference to the object, if there is one.
    ///
    /// # Progress
    ///
    /// Wait-free, but for a fold, which retries when others change the cell.
    #[inline]
    pub fn load(&self) -> Option<Loaded<T>> {
        // Acquire: pairs with "Publish".
        let old = self.word.fetch_add(ONE, Ordering::Acquire);
        // What an empty cell counts means nothing; it wraps, and is swapped out.
        let node = Node::at(old)?;
        if external(old) + 1 >= FOLD {
            self.fold(node, old + ONE);
        }
        Some(Loaded(node))
    }

    /// Moves the external count to `node`, to which the caller has a reference.
    #[cold]
    #[inline(never)]
    fn fold(&self, node: NonNull<Node<T>>, mut now: u64) {
        // SAFETY: the caller has a reference.
        let internal = unsafe { &node.as_ref().internal };
        while Node::at(now) == Some(node) && external(now) >= FOLD {
            let moved = external(now);
            // Relaxed: ordered by the exchange.
            internal.fetch_add(moved, Ordering::Relaxed);
            // Release: pairs with the Acquire of the swap, whose merging must
            // find the addition.
            match self.word.compare_exchange(
                now,
                address(now),
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                Err(seen) => now = seen,
            }
            // Relaxed: cannot be the last, the caller has a reference.
            internal.fetch_sub(moved, Ordering::Relaxed);
        }
    }

    /// Gives a reference back. Whether it was the last and the object is freed.
    /// (A reference that another slot has given is safe to give back here.)
    ///
    /// # Progress
    ///
    /// Lock-free: retries when others load from or release to the cell.
    #[inline]
    pub fn release(&self, held: Loaded<T>) -> bool {
        let node = ManuallyDrop::new(held).0;
        // Relaxed: a guess; the exchange decides.
        let mut now = self.word.load(Ordering::Relaxed);
        while Node::at(now) == Some(node) && external(now) > 0 {
            // Release: "Leave", pairs with the Acquire of the swap.
            match self.word.compare_exchange_weak(
                now,
                now - ONE,
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return false,
                Err(seen) => now = seen,
            }
        }
        // SAFETY: gives back the reference of `held`.
        unsafe { Node::change(node, 1u64.wrapping_neg()) }
    }

    /// Replaces the object; nobody waits for anybody. Whether the old one was
    /// freed here (or there was none); if not, the last release frees it.
    ///
    /// # Progress
    ///
    /// Wait-free.
    pub fn replace(&self, value: T) -> bool {
        self.put_in(Self::word_of(value))
    }

    /// Empties the cell. As [`replace`](Self::replace).
    ///
    /// # Progress
    ///
    /// Wait-free.
    pub fn clear(&self) -> bool {
        self.put_in(0)
    }

    fn put_in(&self, word: u64) -> bool {
        // AcqRel: Release is "Publish", Acquire pairs with "Leave" by the cell.
        let old = self.word.swap(word, Ordering::AcqRel);
        let Some(node) = Node::<T>::at(old) else {
            return true;
        };
        // SAFETY: the cell's own reference, and those that it counted, which
        // from here on the object counts.
        unsafe { Node::change(node, external(old).wrapping_sub(BIAS)) }
    }

    /// References now, with the cell's own: exact while nobody loads or
    /// releases. 0 if the cell is empty.
    #[must_use]
    pub fn count(&self) -> usize {
        let Some(held) = self.load() else { return 0 };
        // Relaxed (both): for people and tests.
        let outside = external(self.word.load(Ordering::Relaxed));
        // SAFETY: referenced by `held`.
        let inside = unsafe { &held.0.as_ref().internal }.load(Ordering::Relaxed);
        self.release(held);
        // The cell's own takes the place of `held`.
        outside.wrapping_add(inside).wrapping_sub(BIAS) as usize
    }
}

impl<T: Send + Sync, const FOLD: u64> Drop for Slot<T, FOLD> {
    fn drop(&mut self) {
        self.clear();
    }
}

impl<T: Send + Sync, const FOLD: u64> core::fmt::Debug for Slot<T, FOLD> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        // Relaxed: for people.
        let word = self.word.load(Ordering::Relaxed);
        f.debug_struct("Slot")
            .field("empty", &(address(word) == 0))
            .field("external", &external(word))
            .finish_non_exhaustive()
    }
}

/// The object is the slot's own, an empty one.
impl Tracker for Slot<()> {
    type Held = Loaded<()>;
    const NAME: &'static str = "split-count";

    fn new() -> Self {
        Slot::new(())
    }

    #[inline]
    fn get(&self, _: &Thread) -> Option<Loaded<()>> {
        self.load()
    }

    #[inline]
    fn try_get(&self, _: &Thread) -> Option<Loaded<()>> {
        self.load()
    }

    #[inline]
    fn put(&self, _: &Thread, held: Loaded<()>) -> bool {
        self.release(held)
    }

    fn kill(&self, _: &Thread) -> Result<bool, BarrierLost> {
        Ok(self.clear())
    }

    fn count(&self) -> usize {
        self.count()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn the_last_release_frees() {
        let witness = Arc::new(());
        let slot = Slot::<_>::new(Arc::clone(&witness));
        let (a, b) = (slot.load().unwrap(), slot.load().unwrap());
        assert_eq!(slot.count(), 3);
        assert!(!slot.replace(Arc::clone(&witness)));
        assert_eq!(Arc::strong_count(&witness), 3);
        assert!(!slot.release(a));
        assert!(slot.release(b));
        assert_eq!(Arc::strong_count(&witness), 2);
        assert!(slot.clear());
        assert_eq!(Arc::strong_count(&witness), 1);
        assert!(slot.clear(), "empty");
        assert!(slot.load().is_none() && slot.load().is_none());
        assert_eq!(slot.count(), 0);
        assert!(slot.replace(Arc::clone(&witness)));
        assert_eq!(slot.count(), 1, "nothing is left of the loads in vain");
    }

    #[test]
    fn folded_again_and_again() {
        let witness = Arc::new(());
        let slot = Slot::<_, 3>::new(Arc::clone(&witness));
        let held: Vec<_> = (0..100).map(|_| slot.load().unwrap()).collect();
        assert_eq!(slot.count(), 101);
        assert!(!slot.replace(Arc::clone(&witness)));
        let mut freed = 0;
        for held in held {
            freed += usize::from(slot.release(held));
        }
        assert_eq!(freed, 1);
        drop(slot);
        assert_eq!(Arc::strong_count(&witness), 1);
    }

    #[test]
    fn a_reference_outlives_its_slot() {
        let witness = Arc::new(5);
        let slot = Slot::<_>::new(Arc::clone(&witness));
        let (a, b) = (slot.load().unwrap(), slot.load().unwrap());
        drop(slot);
        drop(a);
        assert_eq!(**b, 5);
        assert!(Slot::<Arc<i32>>::new(Arc::clone(&witness)).release(b));
        assert_eq!(Arc::strong_count(&witness), 1);
    }

    /// More at once than the external count could hold.
    #[test]
    #[cfg_attr(miri, ignore = "slow")]
    fn seventy_thousand_at_once() {
        let slot = Slot::<()>::new(());
        let held: Vec<_> = (0..70_000).map(|_| slot.load().unwrap()).collect();
        assert_eq!(slot.count(), 70_001);
        drop(held);
        assert_eq!(slot.count(), 1);
        assert!(slot.clear());
    }
}
