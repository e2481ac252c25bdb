//! Floor 3, bench-suite. Owns the variant `haphazard`: hazard pointers with a cached holder per thread.
//! May touch the `haphazard` crate.

use super::{About, Object, Scheme};
use haphazard::{AtomicPtr, Domain, HazardPointer};

/// A cell in the global domain.
#[derive(Debug)]
pub(crate) struct Haphazard(AtomicPtr<Object>);

impl Haphazard {
    /// Protect with `holder`, dereference.
    #[inline(always)]
    pub(super) fn read_with(&self, holder: &mut HazardPointer<'_>) -> bool {
        self.0.safe_load(holder).is_some_and(Object::is_alive)
    }

    /// Protect with `holder`, run `inside`, dereference.
    pub(super) fn hold_with(&self, holder: &mut HazardPointer<'_>, inside: impl FnOnce()) -> bool {
        let object = self.0.safe_load(holder);
        inside();
        object.is_some_and(Object::is_alive)
    }
}

impl Scheme for Haphazard {
    const ABOUT: About = About::new(
        "haphazard",
        "haphazard 0.1: publish, full fence, re-read; threads keep their holder",
        "cached: one HazardPointer per thread, protection reset after each read (fairest for haphazard)",
    );

    type Reader<'a> = HazardPointer<'static>;

    fn new(first: Object) -> Self {
        Haphazard(AtomicPtr::from(Box::new(first)))
    }

    fn reader(&self) -> HazardPointer<'static> {
        HazardPointer::new()
    }

    #[inline(always)]
    fn read(&self, holder: &mut HazardPointer<'static>) -> bool {
        let alive = self.read_with(holder);
        holder.reset_protection();
        alive
    }

    fn hold(&self, holder: &mut HazardPointer<'static>, inside: impl FnOnce()) -> bool {
        let alive = self.hold_with(holder, inside);
        holder.reset_protection();
        alive
    }

    #[inline]
    fn write(&self, object: Object) {
        if let Some(old) = self.0.swap(Box::new(object)) {
            // SAFETY: the swap unlinked `old`, so no later load returns it; this is its only retire; the cell and its
            // readers use the global domain.
            unsafe { old.retire() };
        }
    }

    fn pass(&self) {
        Domain::global().eager_reclaim();
    }
}
