//! Floor 3, bench-suite. Owns the tracker `refcount`: one count on a line of the mm's own, `mmgrab` and `mmdrop` of the
//! kernel. May touch the crate `refcounts`.
//!
//! The kernel's decrement is fully ordered, this one is Release (and Acquire for the last): on x86-64 both are the same
//! locked instruction, elsewhere this one is the cheaper.

use super::counted::Which;
use crate::schemes::About;
use refcounts::plain::Plain;

/// One word.
pub(crate) struct Refcount;

impl Which for Refcount {
    const ABOUT: About = About::new(
        "refcount",
        "one count in the mm, as the kernel has it: one locked addition to grab, one to drop",
        "a reference per lazy holder",
    );
    type Count = Plain;
}
