//! Critical sections on the running CPU's line.
//!
//! Floor 1 (`percpu`). Owns the sections; touches the thread's rseq area and
//! the words that its callers pass. Three sibling implementations with the
//! same functions:
//!
//! * `x86_64`: restartable sequences in inline assembly (Linux on x86-64),
//! * `none`: every section answers [`Miss::Unregistered`], so that callers
//!   take their portable path (every other target, Miri, ThreadSanitizer),
//! * `sim`: the same steps in loom's atomics under one loom mutex a CPU.
//!
//! A section either commits its single store or leaves no trace. It is
//! restarted (or given up, see below) when the thread is preempted, migrated,
//! signalled, or when another thread issues [`heavy`](crate::barrier::heavy)
//! on the rseq rung.
//!
//! | section | steps (all or nothing) |
//! |---|---|
//! | [`claim_and_load`] | own line; word `== free`; `v = *src`; `v != 0`; **word = v** |
//! | [`claim_rest_and_load`] | the same for the first free word of 1..8 |
//! | [`search_and_load`] | own line; first word in range `== free`; `v = *src`; `v & mask != 0`; **word = v & mask** |
//! | [`load_into`] | registered; `v = *src`; `v != 0`; **\*slot = v** |
//! | [`load_into_masked`] | registered; `v = *src`; `v & mask != 0`; **\*slot = v & mask** |
//! | [`claim`] | own line; first word in range `== free`; **word = value** |
//! | [`load_and_add`] | own line; `i = *src`; word\[i\] open; **word\[i\] += 1** |
//! | [`add`] | own line; word\[i\] open; **word\[i\] += 1** |
//! | [`check_and_add`] | own line; `*flag == expected`; **word += n** |
//!
//! # Orderings
//!
//! The test of a word is an Acquire load and the commit a Release store (both
//! plain `mov` on x86-64): the claim of a word hands on what its previous
//! owner released, although it is not a read-modify-write. The load of the
//! source is an Acquire load.
//!
//! # Progress
//!
//! An interrupted section is not retried inside the assembly: it reports
//! [`Miss::Restarted`] and the caller decides, so that a debugger that
//! single-steps cannot loop for ever. Every section is a bounded number of
//! instructions.
//!
//! Source: restartable sequences (Linux `rseq(2)`); the idea of putting the
//! slot test, the load of the source and the store into one sequence is this
//! project's.

use crate::line::Line;
use crate::sync::atomic::{AtomicPtr, AtomicUsize};

#[cfg(all(
    target_arch = "x86_64",
    target_os = "linux",
    target_pointer_width = "64",
    not(any(miri, loom, percpu_portable))
))]
#[path = "x86_64.rs"]
mod imp;

#[cfg(loom)]
#[path = "sim.rs"]
mod imp;

#[cfg(not(any(
    loom,
    all(
        target_arch = "x86_64",
        target_os = "linux",
        target_pointer_width = "64",
        not(any(miri, percpu_portable))
    )
)))]
#[path = "none.rs"]
mod imp;

/// Whether this build has sections at all.
pub const AVAILABLE: bool = imp::AVAILABLE;

/// Value that the portable implementation and a thread without registration
/// report as the running CPU's index.
pub const NO_INDEX: usize = usize::MAX;

/// Why a section did not commit. Nothing was stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Miss {
    /// The source (after masking) was null.
    Null,
    /// No free word in the range; the line is active.
    Busy,
    /// The first word of the range is inactive: this is the CPU's first use of
    /// the table. Carries the line's index.
    Inactive(usize),
    /// The thread is not registered, the rseq rung is not in use, or the CPU's
    /// index lies outside the table.
    Unregistered,
    /// Interrupted (preemption, migration, signal, heavy barrier).
    Restarted,
    /// A value that the section checks was not as expected.
    Mismatch,
}

/// What [`claim_and_load`] found. The representation is chosen so that the
/// caller's `Option` costs no instruction.
#[derive(Clone, Copy, Debug)]
pub struct Claimed {
    /// The claimed word, or null when nothing was claimed.
    pub slot: *const AtomicUsize,
    /// The loaded value. When `slot` is null: 0 if the source was null,
    /// another value if the section missed for any other reason.
    pub value: *mut (),
}

/// Claims word 0 of the running CPU's line if it holds `FREE`
/// (`usize::MAX`), for the value of `*src`. Inlined into the reader.
///
/// # Safety
///
/// `lines` is what [`Lines::first`](crate::line::Lines::first) returns, of a
/// table that outlives the call and the use of the word. Words are claimed by sections only, never by
/// compare-exchange.
#[inline(always)]
pub unsafe fn claim_and_load(lines: *const Line, src: &AtomicPtr<()>) -> Claimed {
    // SAFETY: the caller's obligations are the implementation's.
    unsafe { imp::claim_and_load(lines, src) }
}

/// As [`claim_and_load`] for the words from 1 to 7 of the line, first free one
/// first. When nothing was claimed and the source was not null, `value` is
/// [`ALL_TAKEN`] if that is the reason, and another value if the line is
/// inactive, the thread not registered, or the section was interrupted.
///
/// # Safety
///
/// As [`claim_and_load`].
#[inline(always)]
pub unsafe fn claim_rest_and_load(lines: *const Line, src: &AtomicPtr<()>) -> Claimed {
    // SAFETY: the caller's obligations are the implementation's.
    unsafe { imp::claim_rest_and_load(lines, src) }
}

/// See [`claim_rest_and_load`].
pub const ALL_TAKEN: *mut () = core::ptr::without_provenance_mut(2);

/// Claims the first word of `first..end` of the running CPU's line that holds
/// `FREE`, for the value of `*src` with the bits of `!mask` cleared. Returns
/// the word and the unmasked value.
///
/// # Errors
///
/// A [`Miss`] that says why nothing was claimed.
///
/// # Safety
///
/// As [`claim_and_load`] with `count` lines instead of `MAX_LINES`;
/// `first < end <= WORDS`.
#[inline]
pub unsafe fn search_and_load(
    lines: *const Line,
    count: usize,
    first: usize,
    end: usize,
    src: &AtomicPtr<()>,
    mask: usize,
) -> Result<(*const AtomicUsize, *mut ()), Miss> {
    // SAFETY: the caller's obligations are the implementation's.
    unsafe { imp::search_and_load(lines, count, first, end, src, mask) }
}

/// What [`load_into`] returns when it could not run: the thread is not
/// registered, the rseq rung is not in use, or the section was interrupted.
/// No object has this address.
pub const MISSED: *mut () = core::ptr::without_provenance_mut(usize::MAX);

/// Loads `*src` and, unless it is null, stores it into `slot`, which the
/// caller owns. Returns the value, or [`MISSED`]; when it returns null or
/// `MISSED` the slot is untouched.
///
/// # Safety
///
/// The caller owns `slot`: no other thread stores to it.
#[inline(always)]
pub unsafe fn load_into(src: &AtomicPtr<()>, slot: &AtomicUsize) -> *mut () {
    // SAFETY: the caller's obligations are the implementation's.
    unsafe { imp::load_into(src, slot) }
}

/// As [`load_into`], but stores the value with the bits of `!mask` cleared,
/// and only if that is not null. Returns the unmasked value.
///
/// # Safety
///
/// As [`load_into`].
#[inline]
pub unsafe fn load_into_masked(src: &AtomicPtr<()>, slot: &AtomicUsize, mask: usize) -> *mut () {
    // SAFETY: the caller's obligations are the implementation's.
    unsafe { imp::load_into_masked(src, slot, mask) }
}

/// Claims the first free word of `first..end` of the running CPU's line for
/// `value`, which the caller already holds safely.
///
/// # Errors
///
/// A [`Miss`] that says why nothing was claimed.
///
/// # Safety
///
/// As [`search_and_load`], without a source.
#[inline]
pub unsafe fn claim(
    lines: *const Line,
    count: usize,
    first: usize,
    end: usize,
    value: usize,
) -> Result<*const AtomicUsize, Miss> {
    // SAFETY: the caller's obligations are the implementation's.
    unsafe { imp::claim(lines, count, first, end, value) }
}

/// What [`load_and_add`] returns when it counted nothing: the word is not open
/// (the CPU's first use of the table), the thread is not registered, the rseq
/// rung is not in use, or the section was interrupted.
pub const NOT_COUNTED: usize = usize::MAX;

/// Loads the number of a word from `*src` and adds 1 (wrapping) to that word of
/// the running CPU's line, if it is open. Returns the number, or
/// [`NOT_COUNTED`]. For per-CPU phase counters. Inlined into the reader.
///
/// An open word is never [`INACTIVE`](crate::line::INACTIVE), so a counter that
/// could wrap to 0 must be opened at a value that makes this impossible in
/// practice: 1 leaves 2^64 − 1 counts.
///
/// # Safety
///
/// * `lines` is what [`Lines::first`](crate::line::Lines::first) returns, of a
///   table that outlives the call.
/// * `*src` is below [`WORDS`](crate::line::WORDS) whenever it is read.
/// * Open words are changed by sections on their own CPU only.
#[inline(always)]
pub unsafe fn load_and_add(lines: *const Line, src: &AtomicUsize) -> usize {
    // SAFETY: the caller's obligations are the implementation's.
    unsafe { imp::load_and_add(lines, src) }
}

/// Adds 1 (wrapping) to word `word` of the running CPU's line, if it is open.
/// Whether it did. The counterpart of [`load_and_add`].
///
/// # Safety
///
/// As [`load_and_add`], and `word` is below [`WORDS`](crate::line::WORDS).
#[inline(always)]
pub unsafe fn add(lines: *const Line, word: usize) -> bool {
    // SAFETY: the caller's obligations are the implementation's.
    unsafe { imp::add(lines, word) }
}

/// If `*flag == expected`, adds `n` (wrapping) to word `word` of the running
/// CPU's line. For per-CPU reference counts.
///
/// # Errors
///
/// [`Miss::Mismatch`] if the flag differs, otherwise as above.
///
/// # Safety
///
/// `lines` points to `count` lines; the words are changed on their own CPU by
/// sections only; `word < WORDS`.
#[inline]
pub unsafe fn check_and_add(
    flag: &AtomicUsize,
    expected: usize,
    lines: *const Line,
    count: usize,
    word: usize,
    n: usize,
) -> Result<(), Miss> {
    // SAFETY: the caller's obligations are the implementation's.
    unsafe { imp::check_and_add(flag, expected, lines, count, word, n) }
}

/// Index of the running CPU's line, or [`NO_INDEX`] when sections are not in
/// use or the thread is not registered. A hint: it may be stale on return.
#[inline]
#[must_use]
pub fn index_hint() -> usize {
    imp::index_hint()
}

/// Whether the calling thread can run sections now.
#[inline]
#[must_use]
pub fn registered() -> bool {
    index_hint() != NO_INDEX
}

#[cfg(all(target_os = "linux", not(any(loom, miri))))]
pub(crate) use imp::{cpu_id_at, enable};

#[cfg(all(test, not(loom)))]
mod tests;
