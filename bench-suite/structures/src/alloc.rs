//! How often the allocator is called.
//!
//! Floor 3 (`structures`). Owns the counters. A program that wants to know makes [`Counting`] its global allocator; the
//! census knows of nodes only, and this of what schemes allocate beside them.
//!
//! The counters are per thread, as the census's are: a call costs a plain addition more, and until [`watch`] is called
//! only a look at a flag.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};

/// A thread among the first `LINES - 1` has one to itself; later ones share the last.
const LINES: usize = 64;

/// Two cache lines.
#[repr(align(128))]
struct Line {
    allocations: AtomicU64,
    frees: AtomicU64,
}

static COUNTERS: [Line; LINES] = [const {
    Line {
        allocations: AtomicU64::new(0),
        frees: AtomicU64::new(0),
    }
}; LINES];

static WATCHED: AtomicBool = AtomicBool::new(false);

/// From now on calls are counted.
pub fn watch() {
    WATCHED.store(true, Relaxed);
}

static NEXT_LINE: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Constant and without a destructor: nothing is allocated for it.
    static LINE: Cell<usize> = const { Cell::new(usize::MAX) };
}

#[inline(always)]
fn bump(of: fn(&Line) -> &AtomicU64) {
    if WATCHED.load(Relaxed) {
        count(of);
    }
}

#[inline(always)]
fn count(of: fn(&Line) -> &AtomicU64) {
    let index = LINE.with(|line| match line.get() {
        usize::MAX => {
            line.set(NEXT_LINE.fetch_add(1, Relaxed).min(LINES - 1));
            line.get()
        }
        known => known,
    });
    let counter = of(&COUNTERS[index]);
    // Relaxed: for people. A line with one owner needs no locked instruction.
    if index < LINES - 1 {
        counter.store(counter.load(Relaxed).wrapping_add(1), Relaxed);
    } else {
        counter.fetch_add(1, Relaxed);
    }
}

/// Calls of the allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calls {
    /// Blocks asked for, also to grow others.
    pub allocations: u64,
    /// Blocks given back, also to grow others.
    pub frees: u64,
}

/// Calls since [`watch`], in the whole process. Zero unless [`Counting`] is the allocator.
#[must_use]
pub fn calls() -> Calls {
    let sum = |of: fn(&Line) -> &AtomicU64| {
        COUNTERS
            .iter()
            .map(|line| of(line).load(Relaxed))
            .fold(0, u64::wrapping_add)
    };
    // Frees first, as in the census.
    let frees = sum(|line| &line.frees);
    Calls {
        allocations: sum(|line| &line.allocations),
        frees,
    }
}

/// The system's allocator, with its calls counted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counting;

// SAFETY: all is left to the system's allocator; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        bump(|line| &line.allocations);
        // SAFETY: the caller's.
        unsafe { System.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        bump(|line| &line.allocations);
        // SAFETY: the caller's.
        unsafe { System.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        bump(|line| &line.frees);
        // SAFETY: the caller's.
        unsafe { System.dealloc(block, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        bump(|line| &line.allocations);
        bump(|line| &line.frees);
        // SAFETY: the caller's.
        unsafe { System.realloc(block, layout, size) }
    }
}
