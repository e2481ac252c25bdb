//! Floor 3, bench-suite. Owns the variant `none`: no protection at all, the limit that no scheme can beat.
//! Touches only the object.
//!
//! `read` is a plain load and a dereference. `write` frees the old object at once, which is right only as long as
//! nobody reads; beside readers there is nothing honest to measure, so those runs are skipped.

use super::{About, Object, Scheme, Support};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// An unprotected cell.
#[derive(Debug)]
pub(crate) struct Plain(AtomicPtr<Object>);

const UNSAFE_WITH_READERS: &str = "without protection nothing may be freed beside readers";

impl Scheme for Plain {
    const ABOUT: About = About {
        write_with_readers: Support::No(UNSAFE_WITH_READERS),
        stall: Support::No(UNSAFE_WITH_READERS),
        ..About::new(
            "none",
            "plain load and dereference; write: swap and free at once (writers alone)",
            "none: the limit",
        )
        .without_waiting("nothing is ever retired")
    };

    type Reader<'a> = ();

    fn new(first: Object) -> Self {
        Plain(AtomicPtr::new(Box::into_raw(Box::new(first))))
    }

    fn reader(&self) {}

    #[inline(always)]
    fn read(&self, _: &mut ()) -> bool {
        // Acquire: pairs with the AcqRel swap in `write` (here, with the creation of the cell).
        let object = self.0.load(Ordering::Acquire);
        // SAFETY: workloads that read this variant never write it (`write_with_readers` and `stall` are refused), so
        // the object is the one that `new` put there, and it lives until the cell is dropped.
        unsafe { (*object).is_alive() }
    }

    fn hold(&self, reader: &mut (), inside: impl FnOnce()) -> bool {
        inside();
        self.read(reader)
    }

    #[inline]
    fn write(&self, object: Object) {
        let old = self
            .0
            .swap(Box::into_raw(Box::new(object)), Ordering::AcqRel);
        // SAFETY: the swap made this thread the only owner of `old`, which came from `Box::into_raw`; no reader exists.
        drop(unsafe { Box::from_raw(old) });
    }
}

impl Drop for Plain {
    fn drop(&mut self) {
        let last = std::mem::replace(self.0.get_mut(), ptr::null_mut());
        // SAFETY: `&mut self` proves that no reader or writer is left, and the pointer came from `Box::into_raw`.
        drop(unsafe { Box::from_raw(last) });
    }
}
