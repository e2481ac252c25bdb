//! What `percpu::sync` has not: a mutex, a condition, padding.
//!
//! Floor 3 (`phash`). Owns nothing. Atomics and cells come from `percpu::sync` everywhere in this crate.

use core::ops::Deref;
use std::sync::PoisonError;
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Instant;

/// The guard, also after a holder has panicked.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits on `condition`. `None`: `until` is over.
pub(crate) fn wait<'a, T>(
    condition: &Condvar,
    guard: MutexGuard<'a, T>,
    until: Option<Instant>,
) -> Option<MutexGuard<'a, T>> {
    let Some(until) = until else {
        return Some(
            condition
                .wait(guard)
                .unwrap_or_else(PoisonError::into_inner),
        );
    };
    let left = until.checked_duration_since(Instant::now())?;
    let (guard, _) = condition
        .wait_timeout(guard, left)
        .unwrap_or_else(PoisonError::into_inner);
    Some(guard)
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
