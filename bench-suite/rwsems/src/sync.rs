//! What `percpu::sync` has not: a mutex, and padding.
//!
//! Floor 3 (`rwsems`). Owns nothing. Atomics and cells come from
//! `percpu::sync` everywhere in this crate.

use core::ops::Deref;

#[cfg(loom)]
pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
#[cfg(not(loom))]
#[allow(
    unused_imports,
    reason = "the condition variable is for where there are no futexes"
)]
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};

/// The guard, also after a holder has panicked: nothing here is poisoned.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The guard, if nobody has it.
pub(crate) fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(std::sync::TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(std::sync::TryLockError::WouldBlock) => None,
    }
}

/// Alone on its pair of cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Padded<T>(pub(crate) T);

impl<T> Deref for Padded<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.0
    }
}
