//! Sections as loom sees them: the same steps, with the assembly's orderings.
//!
//! Floor 1 (`percpu`); touches the words its callers pass, under the lock of
//! the simulated CPU.

use super::{Claimed, MISSED, Miss, NOT_COUNTED};
use crate::line::{INACTIVE, Line};
use crate::sim::section;
use crate::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

pub(super) const AVAILABLE: bool = true;
const FREE: usize = usize::MAX;

/// The first free word of the CPU's line, with the test's ordering.
unsafe fn find(
    lines: *const Line,
    cpu: usize,
    first: usize,
    end: usize,
) -> Result<&'static AtomicUsize, Miss> {
    // SAFETY: the caller passes lines for every CPU, which outlive the model.
    let line = unsafe { &*lines.add(cpu) };
    for (n, word) in line.words()[first..end].iter().enumerate() {
        // Acquire: the test of a word ("mov" on x86-64).
        let now = word.load(Ordering::Acquire);
        if n == 0 && now == INACTIVE {
            return Err(Miss::Inactive(cpu));
        }
        if now == FREE {
            return Ok(word);
        }
    }
    Err(Miss::Busy)
}

pub(super) unsafe fn claim_and_load(lines: *const Line, src: &AtomicPtr<()>) -> Claimed {
    // SAFETY: the caller's obligations are the same.
    match unsafe { search_and_load(lines, crate::line::MAX_LINES, 0, 1, src, usize::MAX) } {
        Ok((slot, value)) => Claimed { slot, value },
        Err(miss) => Claimed {
            slot: core::ptr::null(),
            value: core::ptr::without_provenance_mut(usize::from(miss != Miss::Null)),
        },
    }
}

pub(super) unsafe fn claim_rest_and_load(_: *const Line, _: &AtomicPtr<()>) -> Claimed {
    // Models search all words at once, by `search_and_load`.
    Claimed {
        slot: core::ptr::null(),
        value: core::ptr::without_provenance_mut(1),
    }
}

pub(super) unsafe fn search_and_load(
    lines: *const Line,
    _count: usize,
    first: usize,
    end: usize,
    src: &AtomicPtr<()>,
    mask: usize,
) -> Result<(*const AtomicUsize, *mut ()), Miss> {
    section(|cpu| {
        // SAFETY: the caller's lines.
        let word = unsafe { find(lines, cpu, first, end) }?;
        // Acquire: the load of the source.
        let value = src.load(Ordering::Acquire);
        if value.addr() & mask == 0 {
            return Err(Miss::Null);
        }
        // Release: the commit.
        word.store(value.addr() & mask, Ordering::Release);
        Ok((core::ptr::from_ref(word), value))
    })
}

pub(super) unsafe fn load_into(src: &AtomicPtr<()>, slot: &AtomicUsize) -> *mut () {
    // SAFETY: the caller's obligations are the same.
    unsafe { load_into_masked(src, slot, usize::MAX) }
}

pub(super) unsafe fn load_into_masked(
    src: &AtomicPtr<()>,
    slot: &AtomicUsize,
    mask: usize,
) -> *mut () {
    section(|_| {
        // Acquire: the load of the source.
        let value = src.load(Ordering::Acquire);
        if value.addr() & mask != 0 {
            // Release: the commit.
            slot.store(value.addr() & mask, Ordering::Release);
        }
        Ok(value)
    })
    .unwrap_or(MISSED)
}

pub(super) unsafe fn claim(
    lines: *const Line,
    _count: usize,
    first: usize,
    end: usize,
    value: usize,
) -> Result<*const AtomicUsize, Miss> {
    section(|cpu| {
        // SAFETY: the caller's lines.
        let word = unsafe { find(lines, cpu, first, end) }?;
        // Release: the commit.
        word.store(value, Ordering::Release);
        Ok(core::ptr::from_ref(word))
    })
}

/// Adds 1 to an open word.
unsafe fn count(lines: *const Line, cpu: usize, word: usize) -> Result<(), Miss> {
    // SAFETY: the caller passes lines for every CPU, which outlive the model.
    let line = unsafe { &*lines.add(cpu) };
    let word = &line.words()[word];
    // Acquire: pairs with "open" (and "mov" on x86-64 is one). Release: the
    // commit. Only sections on this CPU change an open word.
    let now = word.load(Ordering::Acquire);
    if now == INACTIVE {
        return Err(Miss::Inactive(cpu));
    }
    word.store(now.wrapping_add(1), Ordering::Release);
    Ok(())
}

pub(super) unsafe fn load_and_add(lines: *const Line, src: &AtomicUsize) -> usize {
    section(|cpu| {
        // Acquire: the load of the source.
        let word = src.load(Ordering::Acquire);
        // SAFETY: the caller's lines.
        unsafe { count(lines, cpu, word) }?;
        Ok(word)
    })
    .unwrap_or(NOT_COUNTED)
}

pub(super) unsafe fn add(lines: *const Line, word: usize) -> bool {
    // SAFETY: the caller's lines.
    section(|cpu| unsafe { count(lines, cpu, word) }).is_ok()
}

pub(super) unsafe fn check_and_add(
    flag: &AtomicUsize,
    expected: usize,
    lines: *const Line,
    _count: usize,
    word: usize,
    n: usize,
) -> Result<(), Miss> {
    section(|cpu| {
        // Acquire: the load of the flag.
        if flag.load(Ordering::Acquire) != expected {
            return Err(Miss::Mismatch);
        }
        // SAFETY: the caller's lines.
        let word = unsafe { &(&*lines.add(cpu)).words()[word] };
        // Relaxed, Release: only sections on this CPU change the word.
        let old = word.load(Ordering::Relaxed);
        word.store(old.wrapping_add(n), Ordering::Release);
        Ok(())
    })
}

pub(super) fn index_hint() -> usize {
    crate::sim::index()
}
