//! A held slot, for authors of lock-free structures.
//!
//! Floor 2 (`hp`), structure level, over [`crate::slots`].

use crate::overflow;
use crate::slot::{RESERVED, SlotRef, is_address};
use crate::slots::{ALL_BITS, SLOTS};
use core::ptr::{self, NonNull};
use percpu::sync::atomic::{AtomicPtr, Ordering};

/// A hazard pointer: a slot that stays this owner's between protections.
///
/// It protects one address at a time; each protection replaces the last.
/// Everything is raw: what a returned pointer may be used for, and for how
/// long, is the structure's business. Any thread may use and drop it.
///
/// # Example
///
/// ```
/// use hp::{Domain, HazardPointer};
/// use std::sync::atomic::{AtomicPtr, Ordering::*};
///
/// let head = AtomicPtr::new(Box::into_raw(Box::new(41)));
/// let mut hazard = HazardPointer::new();
/// let node = hazard.protect(&head);
/// assert_eq!(unsafe { *node }, 41);                   // protected
/// let old = head.swap(std::ptr::null_mut(), AcqRel);  // unlinked
/// unsafe { Domain::global().retire_box(old) };        // dropped when no slot holds it
/// hazard.reset();
/// ```
#[derive(Debug)]
pub struct HazardPointer {
    slot: core::mem::ManuallyDrop<SlotRef>,
}

// SAFETY: a slot may be filled and released by any thread, one at a time; all
// methods that store take `&mut self`.
unsafe impl Send for HazardPointer {}
// SAFETY: `&HazardPointer` gives nothing but its state as text.
unsafe impl Sync for HazardPointer {}

/// Why [`HazardPointer::try_protect`] did not protect.
pub enum ProtectError<T> {
    /// The source holds another pointer by now; this one.
    Changed(*mut T),
    /// The address is not a multiple of the type's alignment (a tagged pointer,
    /// for which there is [`HazardPointer::protect_tagged`]), or is one of the
    /// two largest, which no object has.
    Misaligned(*mut T),
}

impl<T> core::fmt::Display for ProtectError<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Changed(now) => write!(f, "the source holds {now:p} by now"),
            Self::Misaligned(p) => write!(f, "{p:p} is misaligned or tagged"),
        }
    }
}

impl<T> core::error::Error for ProtectError<T> {}

// By hand: deriving would ask the pointee for each of these.
impl<T> core::fmt::Debug for ProtectError<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Changed(now) => f.debug_tuple("Changed").field(now).finish(),
            Self::Misaligned(p) => f.debug_tuple("Misaligned").field(p).finish(),
        }
    }
}

impl<T> Clone for ProtectError<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for ProtectError<T> {}

impl<T> PartialEq for ProtectError<T> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Changed(a), Self::Changed(b)) | (Self::Misaligned(a), Self::Misaligned(b)) => {
                ptr::eq(*a, *b)
            }
            _ => false,
        }
    }
}

impl<T> Eq for ProtectError<T> {}

fn erased<T>(src: &AtomicPtr<T>) -> &AtomicPtr<()> {
    // SAFETY: `AtomicPtr<T>` and `AtomicPtr<()>` are one pointer word.
    unsafe { &*ptr::from_ref(src).cast() }
}

impl HazardPointer {
    /// Takes an overflow slot. Never fails.
    ///
    /// # Progress
    ///
    /// Lock-free; allocates 256 bytes when no record has a free slot.
    #[must_use]
    pub fn new() -> Self {
        Self {
            slot: core::mem::ManuallyDrop::new(crate::thread::with(|thread| {
                SLOTS.hold(thread, RESERVED)
            })),
        }
    }

    /// `N` hazard pointers. They are independent: each can be moved out and
    /// dropped by itself.
    #[must_use]
    pub fn array<const N: usize>() -> [Self; N] {
        core::array::from_fn(|_| Self::new())
    }

    /// Protects what `src` points to and returns it. Null protects nothing.
    ///
    /// The pointee stays alive until the next protection, [`reset`](Self::reset)
    /// or drop, provided that it is only reclaimed through a [`Domain`] or
    /// after a [`synchronize`], once it was unlinked from `src`.
    ///
    /// # Panics
    ///
    /// In debug builds, if the pointer is misaligned (tagged): use
    /// [`protect_tagged`](Self::protect_tagged).
    ///
    /// # Progress
    ///
    /// As [`Atomic::load`](crate::Atomic::load).
    ///
    /// [`Domain`]: crate::Domain
    /// [`synchronize`]: crate::synchronize
    #[inline]
    pub fn protect<T>(&mut self, src: &AtomicPtr<T>) -> *mut T {
        let object = self.fill(src, ALL_BITS);
        debug_assert!(
            object.is_aligned(),
            "protected {object:p}, which is misaligned or tagged; use protect_tagged"
        );
        object
    }

    /// As [`protect`](Self::protect) for pointers whose bits in `tag_bits` are
    /// not part of the address. The slot holds the address without them; the
    /// returned pointer has them. A tagged null protects nothing.
    #[inline]
    pub fn protect_tagged<T>(&mut self, src: &AtomicPtr<T>, tag_bits: usize) -> *mut T {
        self.fill(src, !tag_bits)
    }

    #[inline(always)]
    fn fill<T>(&mut self, src: &AtomicPtr<T>, mask: usize) -> *mut T {
        let word = self.slot.word();
        match overflow::fill(erased(src), word, mask, RESERVED) {
            Ok(object) => object.as_ptr().cast(),
            Err(null_but_for_its_tag) => null_but_for_its_tag.cast(),
        }
    }

    /// One attempt to protect `candidate`, which was read from `src` before.
    /// On success the pointee is protected; use the returned pointer, not the
    /// candidate.
    ///
    /// # Errors
    ///
    /// [`ProtectError`]; nothing is protected then.
    ///
    /// # Progress
    ///
    /// Wait-free.
    pub fn try_protect<T>(
        &mut self,
        candidate: *mut T,
        src: &AtomicPtr<T>,
    ) -> Result<*mut T, ProtectError<T>> {
        if !candidate.is_aligned() || !(candidate.is_null() || is_address(candidate.addr())) {
            self.reset();
            return Err(ProtectError::Misaligned(candidate));
        }
        self.protect_raw(candidate.cast());
        percpu::barrier::light();
        // Acquire: "Recheck", as in `overflow`.
        let now = src.load(Ordering::Acquire);
        if crate::ptr_eq(candidate, now) {
            Ok(now)
        } else {
            self.reset();
            Err(ProtectError::Changed(now))
        }
    }

    /// Puts `address` into the slot. This alone protects nothing: the caller
    /// issues a [`light_barrier`](crate::light_barrier) and then makes sure, in
    /// its own way, that the object was not unlinked before. Null resets.
    ///
    /// That another hazard pointer protects the address meanwhile is no
    /// substitute: a scan in progress may have passed this slot before it was
    /// filled, and reach the other one after it was reset.
    ///
    /// # Panics
    ///
    /// If `address` is one of the two largest addresses, which no object has.
    #[inline]
    pub fn protect_raw(&mut self, address: *const ()) {
        if address.is_null() {
            self.reset();
            return;
        }
        assert!(
            is_address(address.addr()),
            "{address:p} is no object's address"
        );
        // Release: "Publish"; also clears what was protected before.
        self.slot.word().store(address.addr(), Ordering::Release);
    }

    /// Protects nothing; the slot stays held.
    #[inline]
    pub fn reset(&mut self) {
        // Release: "Clear".
        self.slot.word().store(RESERVED, Ordering::Release);
    }

    /// The address that is protected now.
    #[must_use]
    pub fn protected(&self) -> Option<NonNull<()>> {
        // Relaxed: the slot is this owner's.
        let word = self.slot.word().load(Ordering::Relaxed);
        is_address(word)
            .then(|| NonNull::new(ptr::without_provenance_mut(word)))
            .flatten()
    }
}

impl Default for HazardPointer {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for HazardPointer {
    fn drop(&mut self) {
        // SAFETY: taken once, here.
        unsafe { core::mem::ManuallyDrop::take(&mut self.slot) }.release();
    }
}
