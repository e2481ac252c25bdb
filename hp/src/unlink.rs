//! Taking an object out of the word through which readers find it.
//!
//! Floor 2 (`hp`), raw layer; touches the word only. Apart from
//! [`crate::atomic`] so that the models run the same two exchanges.
//!
//! # Orderings
//!
//! AcqRel, both. Release publishes the new object to whoever protects it;
//! Acquire takes the old one's publication (its deleter reads it), and makes
//! the unlinking come before the barrier of whoever reclaims, to whom the
//! shard's lock carries it on.

use percpu::sync::atomic::{AtomicPtr, Ordering};

/// Puts `new` in and gives what it replaced, which is unlinked now.
#[inline(always)]
pub(crate) fn unlink<T>(src: &AtomicPtr<T>, new: *mut T) -> *mut T {
    // AcqRel: see the module.
    src.swap(new, Ordering::AcqRel)
}

/// As [`unlink`], if `src` still holds `expected`. Gives the pointer that was
/// found, which may be used for more than the equal `expected` (a guard's may
/// only be read through).
#[inline(always)]
pub(crate) fn unlink_if<T>(src: &AtomicPtr<T>, expected: *mut T, new: *mut T) -> Option<*mut T> {
    // AcqRel: see the module. Relaxed on failure: what was found is not used.
    src.compare_exchange(expected, new, Ordering::AcqRel, Ordering::Relaxed)
        .ok()
}
