//! Sections where there are none: every one misses, callers go portable.
//!
//! Floor 1 (`percpu`); touches nothing.

use super::{Claimed, MISSED, Miss, NO_INDEX, NOT_COUNTED};
use crate::line::Line;
use crate::sync::atomic::{AtomicPtr, AtomicUsize};

pub(super) const AVAILABLE: bool = false;

#[inline(always)]
pub(super) unsafe fn claim_and_load(_: *const Line, _: &AtomicPtr<()>) -> Claimed {
    Claimed {
        slot: core::ptr::null(),
        value: core::ptr::without_provenance_mut(1),
    }
}

#[inline(always)]
pub(super) unsafe fn claim_rest_and_load(lines: *const Line, src: &AtomicPtr<()>) -> Claimed {
    // SAFETY: asks nothing of the caller.
    unsafe { claim_and_load(lines, src) }
}

#[inline(always)]
pub(super) unsafe fn search_and_load(
    _: *const Line,
    _: usize,
    _: usize,
    _: usize,
    _: &AtomicPtr<()>,
    _: usize,
) -> Result<(*const AtomicUsize, *mut ()), Miss> {
    Err(Miss::Unregistered)
}

#[inline(always)]
pub(super) unsafe fn load_into(_: &AtomicPtr<()>, _: &AtomicUsize) -> *mut () {
    MISSED
}

#[inline(always)]
pub(super) unsafe fn load_into_masked(_: &AtomicPtr<()>, _: &AtomicUsize, _: usize) -> *mut () {
    MISSED
}

#[inline(always)]
pub(super) unsafe fn claim(
    _: *const Line,
    _: usize,
    _: usize,
    _: usize,
    _: usize,
) -> Result<*const AtomicUsize, Miss> {
    Err(Miss::Unregistered)
}

#[inline(always)]
pub(super) unsafe fn load_and_add(_: *const Line, _: &AtomicUsize) -> usize {
    NOT_COUNTED
}

#[inline(always)]
pub(super) unsafe fn add(_: *const Line, _: usize) -> bool {
    false
}

#[inline(always)]
pub(super) unsafe fn check_and_add(
    _: &AtomicUsize,
    _: usize,
    _: *const Line,
    _: usize,
    _: usize,
    _: usize,
) -> Result<(), Miss> {
    Err(Miss::Unregistered)
}

#[inline(always)]
pub(super) fn index_hint() -> usize {
    NO_INDEX
}

/// Nothing to enable: the rseq rung is never chosen in this build.
#[cfg(all(target_os = "linux", not(miri)))]
pub(crate) fn enable(_: isize, _: isize) {}

/// No area, no registration.
#[cfg(all(target_os = "linux", not(miri)))]
pub(crate) fn cpu_id_at(_: isize) -> i32 {
    -1
}
