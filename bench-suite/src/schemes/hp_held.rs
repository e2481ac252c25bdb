//! Floor 3, bench-suite. Owns the variant `hp-held`: the structure level of `hp`, re-protecting a slot held all along.
//! May touch `hp`.

use super::{About, Object, Scheme};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A raw cell whose readers keep one `HazardPointer` each.
#[derive(Debug)]
pub(crate) struct HpHeld(AtomicPtr<Object>);

impl Scheme for HpHeld {
    const ABOUT: About = About::new(
        "hp-held",
        "re-protecting one held HazardPointer per operation, as list traversals do",
        "cached: one HazardPointer per thread, reset after each read",
    )
    .over_percpu();

    type Reader<'a> = hp::HazardPointer;

    fn new(first: Object) -> Self {
        HpHeld(AtomicPtr::new(Box::into_raw(Box::new(first))))
    }

    fn reader(&self) -> hp::HazardPointer {
        hp::HazardPointer::new()
    }

    #[inline(always)]
    fn read(&self, slot: &mut hp::HazardPointer) -> bool {
        let object = slot.protect(&self.0);
        // SAFETY: the cell is never null, `slot` protects the object until `reset` below, and whoever unlinks it
        // retires it to `hp`.
        let alive = unsafe { (*object).is_alive() };
        slot.reset();
        alive
    }

    fn hold(&self, slot: &mut hp::HazardPointer, inside: impl FnOnce()) -> bool {
        let object = slot.protect(&self.0);
        inside();
        // SAFETY: as in `read`; the slot is not reset before the reference is gone.
        let alive = unsafe { (*object).is_alive() };
        slot.reset();
        alive
    }

    #[inline]
    fn write(&self, object: Object) {
        // AcqRel: releases the new object to readers, and hands the old one's history to the retire.
        let old = self
            .0
            .swap(Box::into_raw(Box::new(object)), Ordering::AcqRel);
        // SAFETY: the swap unlinked `old`, which came from `Box::into_raw` and is retired by nobody else.
        unsafe { hp::Domain::global().retire_box(old) };
    }

    fn pass(&self) {
        hp::Domain::global().reclaim(usize::MAX);
    }

    fn flush(&self) {
        hp::Domain::global().drain();
    }

    fn bound(&self, writers: usize) -> Option<usize> {
        Some(hp::Domain::global().pending_bound(writers))
    }
}

impl Drop for HpHeld {
    fn drop(&mut self) {
        let last = std::mem::replace(self.0.get_mut(), ptr::null_mut());
        // SAFETY: `&mut self` proves that no reader or writer is left, and the pointer came from `Box::into_raw`.
        drop(unsafe { Box::from_raw(last) });
    }
}
