//! Floor 3, bench-suite. Owns the variant `mutex`: the standard mutex around a box.
//! Touches only the object.

use super::{About, Object, Scheme};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A boxed object under a mutex; the old one is freed after unlocking.
#[derive(Debug)]
pub(crate) struct Locked(Mutex<Box<Object>>);

impl Locked {
    fn lock(&self) -> MutexGuard<'_, Box<Object>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Scheme for Locked {
    const ABOUT: About = About::new(
        "mutex",
        "std::sync::Mutex<Box<_>>: lock, dereference, unlock",
        "per operation: the lock",
    )
    .without_waiting("no deferred reclaim: writers free at once");

    type Reader<'a> = ();

    fn new(first: Object) -> Self {
        Locked(Mutex::new(Box::new(first)))
    }

    fn reader(&self) {}

    #[inline(always)]
    fn read(&self, _: &mut ()) -> bool {
        self.lock().is_alive()
    }

    fn hold(&self, _: &mut (), inside: impl FnOnce()) -> bool {
        let object = self.lock();
        inside();
        object.is_alive()
    }

    #[inline]
    fn write(&self, object: Object) {
        let new = Box::new(object);
        let old = std::mem::replace(&mut *self.lock(), new);
        drop(old);
    }
}
