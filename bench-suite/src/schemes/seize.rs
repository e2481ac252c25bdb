//! Floor 3, bench-suite. Owns the variant `seize`: Hyaline-style batches in a collector of its own.
//! May touch the `seize` crate.

use super::{About, Object, Scheme};
use seize::{Collector, Guard, reclaim};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A cell with the collector beside it, as the crate's guide lays it out.
#[derive(Debug)]
pub(crate) struct Seize {
    collector: Collector,
    cell: AtomicPtr<Object>,
}

impl Scheme for Seize {
    const ABOUT: About = About::new(
        "seize",
        "seize 0.5: enter, protect, leave; default batch size",
        "per operation: `Collector::enter`, with the thread's cached reservation (fairest: owned guards cost more)",
    );

    type Reader<'a> = ();

    fn new(first: Object) -> Self {
        Seize {
            collector: Collector::new(),
            cell: AtomicPtr::new(Box::into_raw(Box::new(first))),
        }
    }

    fn reader(&self) {}

    #[inline(always)]
    fn read(&self, _: &mut ()) -> bool {
        let guard = self.collector.enter();
        let object = guard.protect(&self.cell, Ordering::Acquire);
        // SAFETY: the cell is never null, and what it held is retired to this collector, so `guard` keeps it alive.
        unsafe { (*object).is_alive() }
    }

    fn hold(&self, _: &mut (), inside: impl FnOnce()) -> bool {
        let guard = self.collector.enter();
        let object = guard.protect(&self.cell, Ordering::Acquire);
        inside();
        // SAFETY: as in `read`; the guard is alive to the end of the function.
        let alive = unsafe { (*object).is_alive() };
        drop(guard);
        alive
    }

    #[inline]
    fn write(&self, object: Object) {
        let old = self
            .cell
            .swap(Box::into_raw(Box::new(object)), Ordering::AcqRel);
        // SAFETY: the swap unlinked `old`, this thread does not touch it again, and it came from `Box::into_raw`.
        unsafe { self.collector.retire(old, reclaim::boxed) };
    }

    fn pass(&self) {
        self.collector.enter().flush();
    }
}

impl Drop for Seize {
    fn drop(&mut self) {
        let last = std::mem::replace(self.cell.get_mut(), ptr::null_mut());
        // SAFETY: `&mut self` proves that no reader or writer is left, and the pointer came from `Box::into_raw`.
        drop(unsafe { Box::from_raw(last) });
    }
}
