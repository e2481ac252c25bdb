//! A value that was taken out of a cell and that readers may still hold.
//!
//! Floor 2 (`hp`), safe level, over [`crate::domain`].

use crate::domain::{Domain, TimedOut, synchronize, synchronize_timeout};
use crate::retired::Retired;
use core::fmt;
use core::marker::PhantomData;
use core::ops::Deref;
use core::ptr::NonNull;
use core::time::Duration;

/// A value that no new reader can find, owned by whoever unlinked it.
///
/// Dropping it retires the value to the global domain.
#[must_use = "dropping it retires the value to the global domain; say so with `drop` or `retire_in`"]
pub struct Unlinked<T: Send + 'static> {
    object: NonNull<T>,
    _owns: PhantomData<Box<T>>,
}

// SAFETY: it gives `&T` (which readers on other threads may hold too, hence
// `Sync`) and drops or moves out the value wherever it is (`Send`).
unsafe impl<T: Send + Sync + 'static> Send for Unlinked<T> {}
// SAFETY: `&Unlinked` gives `&T` only.
unsafe impl<T: Send + Sync + 'static> Sync for Unlinked<T> {}

impl<T: Send + 'static> Unlinked<T> {
    /// # Safety
    ///
    /// `object` came from a box, is unlinked, and is the caller's to give.
    #[inline]
    pub(crate) unsafe fn new(object: NonNull<T>) -> Self {
        Self {
            object,
            _owns: PhantomData,
        }
    }

    fn into_raw(self) -> NonNull<T> {
        core::mem::ManuallyDrop::new(self).object
    }

    /// Retires the value to `domain`.
    ///
    /// # Panics, Progress
    ///
    /// As [`Domain::retire_box`].
    pub fn retire_in(self, domain: &Domain) {
        // SAFETY: from a box, unlinked, ours; `T: Send`.
        unsafe { domain.retire_box(self.into_raw().as_ptr()) }
    }

    /// Waits until no guard protects the value, then gives it back.
    ///
    /// Waits for ever if the caller itself holds such a guard; see
    /// [`synchronize`].
    #[must_use]
    pub fn into_box(self) -> Box<T> {
        synchronize(self.object.as_ptr().cast());
        // SAFETY: from a box; unlinked, and nobody protects it any more.
        unsafe { Box::from_raw(self.into_raw().as_ptr()) }
    }

    /// As [`into_box`](Self::into_box), for at most `timeout`.
    ///
    /// # Errors
    ///
    /// The value itself, if a guard still protects it then.
    pub fn try_into_box(self, timeout: Duration) -> Result<Box<T>, Self> {
        match synchronize_timeout(self.object.as_ptr().cast(), timeout) {
            // SAFETY: as in `into_box`.
            Ok(()) => Ok(unsafe { Box::from_raw(self.into_raw().as_ptr()) }),
            Err(TimedOut) => Err(self),
        }
    }
}

impl<T: Send + 'static> Deref for Unlinked<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: owned, and not retired before this is gone.
        unsafe { self.object.as_ref() }
    }
}

impl<T: Send + 'static> Drop for Unlinked<T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: from a box, unlinked, and nobody uses this value again.
        Domain::global().retire(unsafe { Retired::boxed(self.object.as_ptr()) });
    }
}

impl<T: Send + fmt::Debug + 'static> fmt::Debug for Unlinked<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Unlinked").field(&**self).finish()
    }
}
