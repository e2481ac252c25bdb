//! Floor 3, bench-suite. Owns the variant `rwlock`: the standard reader-writer lock around a box.
//! Touches only the object.

use super::{About, Object, Scheme};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

/// A boxed object under a reader-writer lock; the old one is freed after unlocking.
#[derive(Debug)]
pub(crate) struct RwLocked(RwLock<Box<Object>>);

impl RwLocked {
    fn shared(&self) -> RwLockReadGuard<'_, Box<Object>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Scheme for RwLocked {
    const ABOUT: About = About::new(
        "rwlock",
        "std::sync::RwLock<Box<_>>: read lock, dereference, unlock",
        "per operation: the lock",
    )
    .without_waiting("no deferred reclaim: writers free at once");

    type Reader<'a> = ();

    fn new(first: Object) -> Self {
        RwLocked(RwLock::new(Box::new(first)))
    }

    fn reader(&self) {}

    #[inline(always)]
    fn read(&self, _: &mut ()) -> bool {
        self.shared().is_alive()
    }

    fn hold(&self, _: &mut (), inside: impl FnOnce()) -> bool {
        let object = self.shared();
        inside();
        object.is_alive()
    }

    #[inline]
    fn write(&self, object: Object) {
        let new = Box::new(object);
        let old = std::mem::replace(
            &mut *self.0.write().unwrap_or_else(PoisonError::into_inner),
            new,
        );
        drop(old);
    }
}
