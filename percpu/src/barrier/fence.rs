//! The rung that needs nothing: a sequentially consistent fence on each side.
//!
//! Floor 1 (`percpu`); touches nothing.

use crate::sync::atomic::{Ordering, fence};

/// SeqCst: pairs with `heavy`; one of the two sees the other's stores.
#[inline(always)]
pub(crate) fn light() {
    fence(Ordering::SeqCst);
}

/// SeqCst: pairs with `light`.
#[inline]
pub(crate) fn heavy() {
    fence(Ordering::SeqCst);
}
