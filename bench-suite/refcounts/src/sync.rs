//! What `percpu::sync` has not: a mutex, and padding.
//!
//! Floor 3 (`refcounts`). Owns nothing. Atomics and cells come from
//! `percpu::sync` everywhere in this crate.

use core::ops::Deref;

#[cfg(loom)]
pub(crate) use loom::sync::{Mutex, MutexGuard};
#[cfg(not(loom))]
pub(crate) use std::sync::{Mutex, MutexGuard};

/// The guard, also after a holder has panicked: what the mutexes here guard is
/// changed in one step at the end of each operation.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Alone on its pair of cache lines.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Padded<T>(pub(crate) T);

impl<T> Deref for Padded<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.0
    }
}
