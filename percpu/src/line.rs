//! Slot lines: one line a CPU, and the set of lines that were ever used.
//!
//! Floor 1 (`percpu`). Owns the layout of a line and the life of a line
//! (inactive → active, once). What the words of a line mean belongs to the
//! crate that owns the static (`hp`'s hazard slots, `rcu-lite`'s counters).
//!
//! # Life of a line
//!
//! | state | words | who moves it on |
//! |---|---|---|
//! | inactive | all [`INACTIVE`] (0, so that a static table costs no file space and untouched pages no memory) | the first claim that meets it, on its cold path |
//! | announced | bit set in the active set, words still inactive | the same thread |
//! | active | words hold what the owner put there; never inactive again | – |
//!
//! # Orderings
//!
//! *Announce* (the bit, Release RMW) comes before *open* (each word leaves
//! `INACTIVE` by a Release compare-exchange). A claimer that finds the word
//! open reads it with Acquire, so the announcement happens before the claim.
//! A scanner issues its heavy barrier first and reads the set afterwards: a
//! claim that committed before the barrier is then covered by a bit that the
//! scanner sees. (A set bit whose line holds nothing costs one empty look.)

use crate::sync::atomic::{AtomicUsize, Ordering};

/// Value of every word of a line that no thread has used yet.
pub const INACTIVE: usize = 0;

/// Words in a line.
pub const WORDS: usize = 16;

/// Distance between two lines in bytes: two 64-byte cache lines, because the
/// adjacent-line prefetcher pulls them in pairs.
pub const STRIDE: usize = 128;

/// Lines in a process-wide table; Linux on x86-64 supports at most 8192 CPUs.
#[cfg(not(any(loom, miri)))]
pub const MAX_LINES: usize = 8192;
/// Lines in a table under Miri, which runs no sections and walks what is
/// borrowed.
#[cfg(all(miri, not(loom)))]
pub const MAX_LINES: usize = 4;
/// Lines in a table under loom.
#[cfg(loom)]
pub const MAX_LINES: usize = 2;

/// One CPU's line.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Line {
    words: [AtomicUsize; LINE_WORDS],
}

#[cfg(not(loom))]
const LINE_WORDS: usize = WORDS;
/// As many as `rcu-lite` counts in.
#[cfg(loom)]
const LINE_WORDS: usize = 6;

#[cfg(not(loom))]
const _: () = assert!(
    size_of::<Line>() == STRIDE || size_of::<usize>() < 8,
    "a line is one stride"
);

impl Line {
    /// An inactive line.
    #[cfg(not(loom))]
    #[allow(clippy::new_without_default)]
    #[must_use]
    pub const fn new() -> Self {
        Self {
            words: [const { AtomicUsize::new(INACTIVE) }; LINE_WORDS],
        }
    }

    /// An inactive line.
    #[cfg(loom)]
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Self {
            words: std::array::from_fn(|_| AtomicUsize::new(INACTIVE)),
        }
    }

    /// The words of the line.
    #[inline(always)]
    #[must_use]
    pub fn words(&self) -> &[AtomicUsize; LINE_WORDS] {
        &self.words
    }
}

const SET_WORDS: usize = MAX_LINES.div_ceil(usize::BITS as usize);

/// The lines that were ever used. Grows only.
#[derive(Debug)]
struct ActiveSet {
    /// One past the highest set word, so that a scan of a machine with few
    /// CPUs reads few words.
    len: AtomicUsize,
    bits: [AtomicUsize; SET_WORDS],
}

impl ActiveSet {
    #[cfg(not(loom))]
    const fn new() -> Self {
        Self {
            len: AtomicUsize::new(0),
            bits: [const { AtomicUsize::new(0) }; SET_WORDS],
        }
    }

    #[cfg(loom)]
    fn new() -> Self {
        Self {
            len: AtomicUsize::new(0),
            bits: std::array::from_fn(|_| AtomicUsize::new(0)),
        }
    }

    fn insert(&self, index: usize) {
        let (word, bit) = (
            index / usize::BITS as usize,
            1 << (index % usize::BITS as usize),
        );
        // AcqRel: Release half is "Announce", see the module's orderings; the
        // Acquire half keeps `len` from being raised before the bit is set.
        self.bits[word].fetch_or(bit, Ordering::AcqRel);
        // Release: pairs with the Acquire load of `len` in `for_each`.
        self.len.fetch_max(word + 1, Ordering::Release);
    }

    fn for_each(&self, mut f: impl FnMut(usize)) {
        // Acquire: pairs with the Release of `insert`.
        let len = self.len.load(Ordering::Acquire);
        for word in 0..len {
            // Acquire: pairs with "Announce".
            let mut bits = self.bits[word].load(Ordering::Acquire);
            while bits != 0 {
                f(word * usize::BITS as usize + bits.trailing_zeros() as usize);
                bits &= bits - 1;
            }
        }
    }
}

/// A table of lines, one for each CPU (by CPU number or by `mm_cid`).
///
/// Meant to live in a `static`: it is all zeroes at first, so it occupies
/// address space only, and a page of it becomes memory when the first line on
/// it is used.
#[derive(Debug)]
#[repr(C)]
pub struct Lines {
    /// Where `cpu_id` -1 and -2 (not registered) lead; for ever inactive.
    before: [Line; 2],
    lines: [Line; MAX_LINES],
    active: ActiveSet,
}

impl Lines {
    /// A table of inactive lines.
    #[cfg(not(loom))]
    #[allow(clippy::new_without_default)]
    #[must_use]
    pub const fn new() -> Self {
        Self {
            before: [const { Line::new() }; 2],
            lines: [const { Line::new() }; MAX_LINES],
            active: ActiveSet::new(),
        }
    }

    /// A table of inactive lines.
    #[cfg(loom)]
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Self {
            before: std::array::from_fn(|_| Line::new()),
            lines: std::array::from_fn(|_| Line::new()),
            active: ActiveSet::new(),
        }
    }

    /// The first line. The pointer also covers the lines before and after it:
    /// [`MAX_LINES`] from here on, and two in front that are never opened.
    #[inline(always)]
    #[must_use]
    pub fn first(&self) -> *const Line {
        let whole = core::ptr::from_ref(self).cast::<Line>();
        // SAFETY: `before` stands first.
        let first = unsafe { whole.add(self.before.len()) };
        debug_assert_eq!(first, self.lines.as_ptr());
        first
    }

    /// All lines, used or not.
    #[inline(always)]
    #[must_use]
    pub fn all(&self) -> &[Line; MAX_LINES] {
        &self.lines
    }

    /// Announces line `index`, then opens its first `words` words: each one
    /// that is still [`INACTIVE`] becomes `open`. Idempotent; lock-free.
    ///
    /// # Panics
    ///
    /// If `index` is not below [`MAX_LINES`] or `words` exceeds the line.
    #[cold]
    pub fn activate(&self, index: usize, words: usize, open: usize) {
        self.activate_each(index, words, |_| open);
    }

    /// [`activate`](Self::activate) with a value of its own for each word,
    /// last word first: who finds word 0 open finds them all so.
    ///
    /// # Panics
    ///
    /// As [`activate`](Self::activate).
    #[cold]
    pub fn activate_each(&self, index: usize, words: usize, open: impl Fn(usize) -> usize) {
        self.active.insert(index);
        for (n, word) in self.lines[index].words[..words].iter().enumerate().rev() {
            // Release: "open", pairs with the claimer's Acquire read of the
            // word. Relaxed on failure: another thread opened it.
            let _ = word.compare_exchange(INACTIVE, open(n), Ordering::Release, Ordering::Relaxed);
        }
    }

    /// Calls `f` with each line that was ever used.
    pub fn for_each_active(&self, mut f: impl FnMut(usize, &Line)) {
        self.active.for_each(|index| f(index, &self.lines[index]));
    }
}
