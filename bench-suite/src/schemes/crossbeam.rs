//! Floor 3, bench-suite. Owns the variant `crossbeam-epoch`: epochs of the default collector.
//! May touch the `crossbeam-epoch` crate.

use super::{About, Callback, Object, Scheme, Support};
use crossbeam_epoch::{Atomic, Owned, pin};
use std::sync::atomic::Ordering;

/// A cell in the default collector.
#[derive(Debug)]
pub(crate) struct Crossbeam(Atomic<Object>);

impl Scheme for Crossbeam {
    const ABOUT: About = About {
        defer: Support::Yes,
        ..About::new(
            "crossbeam-epoch",
            "crossbeam-epoch 0.9: pin, load, unpin",
            "per operation: `pin()` with the thread's cached participant, as its documentation shows",
        )
    };

    type Reader<'a> = ();

    fn new(first: Object) -> Self {
        Crossbeam(Atomic::new(first))
    }

    fn reader(&self) {}

    #[inline(always)]
    fn read(&self, _: &mut ()) -> bool {
        let guard = pin();
        // SAFETY: the cell is never null and what it held is destroyed by deferral only, so `guard` keeps it alive.
        unsafe { self.0.load(Ordering::Acquire, &guard).deref() }.is_alive()
    }

    fn hold(&self, _: &mut (), inside: impl FnOnce()) -> bool {
        let guard = pin();
        let object = self.0.load(Ordering::Acquire, &guard);
        inside();
        // SAFETY: as in `read`.
        unsafe { object.deref() }.is_alive()
    }

    #[inline]
    fn write(&self, object: Object) {
        let guard = pin();
        let old = self.0.swap(Owned::new(object), Ordering::AcqRel, &guard);
        // SAFETY: the swap unlinked `old`; nobody else destroys it.
        unsafe { guard.defer_destroy(old) };
    }

    #[inline]
    fn defer(&self, _: &mut (), callback: Callback) {
        pin().defer(move || callback.run());
    }

    fn pass(&self) {
        pin().flush();
    }
}

impl Drop for Crossbeam {
    fn drop(&mut self) {
        let last = std::mem::take(&mut self.0);
        // SAFETY: `&mut self` proves that no reader or writer is left, and the cell is never null.
        drop(unsafe { last.into_owned() });
    }
}
