//! A protected reference.
//!
//! Floor 2 (`hp`), safe level, over [`crate::slots`].

use crate::slot::{Held, SlotRef};
use crate::slots::SLOTS;
use core::fmt;
use core::marker::PhantomData;
use core::ops::Deref;
use core::ptr::NonNull;

/// Keeps the object it points to from being reclaimed.
///
/// A guard borrows nothing: it may outlive the cell it was loaded from, be
/// returned, stored, and (when `T` allows) sent to and dropped by another
/// thread. It protects its object only, not what that object points to in
/// turn.
///
/// A guard occupies a slot of the CPU on which it was loaded (8 a CPU; more go
/// to overflow slots). Before holding it long – across an `.await`, a lock, a
/// system call – [`detach`](Self::detach) it, so that others on that CPU keep
/// their quick path. Correctness does not depend on it.
///
/// A guard that is forgotten ([`core::mem::forget`]) keeps its object and its
/// slot for ever; nothing else.
///
/// # Progress
///
/// Dropping a guard is wait-free: one store. Dropping one of several clones is
/// lock-free.
pub struct Guard<T: ?Sized> {
    slot: Held,
    object: NonNull<T>,
    _like_a_reference: PhantomData<*const T>,
}

// SAFETY: a guard is a shared reference that keeps its object alive by a slot
// that any thread may release. It never drops the object, so `T: Send` is not
// needed here (it is where objects are retired).
unsafe impl<T: ?Sized + Sync> Send for Guard<T> {}
// SAFETY: as above; `&Guard` gives `&T` and clones.
unsafe impl<T: ?Sized + Sync> Sync for Guard<T> {}

impl<T> Guard<T> {
    /// # Safety
    ///
    /// `slot` protects `object`, which was alive when it was protected, and
    /// whoever retires `object` respects slots.
    #[inline(always)]
    pub(crate) unsafe fn new(slot: SlotRef, object: NonNull<T>) -> Self {
        Self {
            slot: Held(slot),
            object,
            _like_a_reference: PhantomData,
        }
    }
}

impl<T: ?Sized> Guard<T> {
    /// As [`new`](Self::new), of a slot that gives itself back and of a part
    /// of the object that it protects.
    ///
    /// # Safety
    ///
    /// As [`new`](Self::new).
    #[cfg(feature = "structures")]
    #[inline(always)]
    pub(crate) unsafe fn of_part(slot: Held, object: NonNull<T>) -> Self {
        Self {
            slot,
            object,
            _like_a_reference: PhantomData,
        }
    }

    /// Moves the protection from the CPU's slot to an overflow slot. Does
    /// nothing if it is there already.
    ///
    /// # Progress
    ///
    /// Lock-free; allocates 256 bytes when a thread overflows for the first
    /// time and no thread that exited has left a record.
    pub fn detach(&mut self) {
        crate::thread::with(|thread| SLOTS.move_out(thread, &mut self.slot.0));
    }

    /// The address of the object.
    #[must_use]
    pub fn as_ptr(&self) -> *const T {
        self.object.as_ptr()
    }
}

impl<T: ?Sized + 'static> Guard<T> {
    /// A guard of a part of the object. The whole object stays protected.
    ///
    /// Both types are `'static`, so that `part` cannot return anything that it
    /// did not find in the object (or that lives for ever anyway).
    ///
    /// # Example
    ///
    /// ```
    /// let cell = hp::Atomic::new((1, "one".to_string()));
    /// let name = cell.load().unwrap().map(|pair| pair.1.as_str());
    /// assert_eq!(&*name, "one");
    /// ```
    pub fn map<U: ?Sized + 'static>(self, part: impl FnOnce(&T) -> &U) -> Guard<U> {
        let object = NonNull::from(part(&self));
        Guard {
            slot: self.slot,
            object,
            _like_a_reference: PhantomData,
        }
    }
}

impl<T: ?Sized> Clone for Guard<T> {
    /// A second guard of the same object, in an overflow slot; clones of a
    /// detached guard share its slot.
    ///
    /// # Progress
    ///
    /// As [`detach`](Self::detach). Aborts the process after 2^31 clones that
    /// were never dropped.
    fn clone(&self) -> Self {
        Self {
            slot: Held(crate::thread::with(|thread| {
                SLOTS.share(thread, &self.slot.0)
            })),
            object: self.object,
            _like_a_reference: PhantomData,
        }
    }
}

impl<T: ?Sized> Deref for Guard<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the slot keeps the object alive for as long as the guard.
        unsafe { self.object.as_ref() }
    }
}

impl<T: ?Sized> AsRef<T> for Guard<T> {
    fn as_ref(&self) -> &T {
        self
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Guard<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Guard").field(&&**self).finish()
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for Guard<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized> fmt::Pointer for Guard<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Pointer::fmt(&self.object, f)
    }
}
