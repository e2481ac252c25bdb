//! Floor 3, bench-suite. Owns the object that every scheme protects: its canary, its poison and the count of the living.
//! Touches nothing else.
//!
//! A freed object is poisoned before its memory goes back, so a reader that got hold of a dead one sees something
//! other than the canary (poison, or whatever the allocator put there) unless the block has been reused for another
//! object meanwhile. The canary is the last word: allocators keep their own links in the first words of a free block.
//!
//! **Orderings.** All accesses are Relaxed. Whether the reader sees the constructor's store is the scheme's business
//! (it publishes with Release, reads with Acquire); whether it sees the poison is luck, and only in a broken scheme.

use std::cell::Cell;
use std::hint::black_box;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering::Relaxed};

const POISON: u64 = 0xdead_0b7e_c700_dead;

/// What readers dereference: 24 bytes.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Object {
    serial: u64,
    census: Option<&'static Census>,
    canary: AtomicU64,
}

impl Object {
    /// What the canary of a living object is.
    pub(crate) const ALIVE: u64 = 0x11fe_600d_0b7e_c7ed;

    /// Where the canary is, for readers that are not compiled here.
    #[cfg(feature = "liburcu")]
    pub(crate) const CANARY_OFFSET: usize = std::mem::offset_of!(Object, canary);

    /// A living object. `census` counts it from here to its drop; speed workloads pass `None`.
    #[inline]
    pub(crate) fn new(serial: u64, census: Option<&'static Census>) -> Self {
        if let Some(census) = census {
            census.born();
        }
        Object {
            serial,
            census,
            canary: AtomicU64::new(Self::ALIVE),
        }
    }

    /// The dereference that readers pay for: true while the object lives.
    #[inline(always)]
    pub(crate) fn is_alive(&self) -> bool {
        self.canary.load(Relaxed) == Self::ALIVE
    }

    /// Marks the object dead without freeing it (what `drop` does first).
    #[inline]
    pub(crate) fn poison(&self) {
        self.canary.store(POISON, Relaxed);
        // The optimiser may not conclude that nobody looks at a block that is about to be freed.
        black_box(&self.canary);
    }

    /// Undoes [`poison`](Self::poison): for the variant that recycles its objects.
    pub(crate) fn revive(&self) {
        self.canary.store(Self::ALIVE, Relaxed);
    }

    /// The number given at birth.
    #[cfg(test)]
    pub(crate) fn serial(&self) -> u64 {
        self.serial
    }
}

impl Drop for Object {
    #[inline]
    fn drop(&mut self) {
        black_box(self.serial);
        self.poison();
        if let Some(census) = self.census {
            census.died();
        }
    }
}

/// Number of count lines. A thread among the first `LINES - 1` has one to itself; later ones share the last.
const LINES: usize = 64;

/// Two cache lines, so that the prefetcher of the neighbouring line does not join counters either.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Line {
    born: AtomicU64,
    died: AtomicU64,
}

/// Counts living objects, the same way for all schemes: constructor and destructor report here.
#[derive(Debug)]
pub(crate) struct Census {
    lines: [Line; LINES],
    peak: AtomicI64,
}

impl Census {
    /// A census that is never freed: schemes may drop objects as late as at process exit.
    pub(crate) fn leak() -> &'static Self {
        Box::leak(Box::new(Census {
            lines: std::array::from_fn(|_| Line::default()),
            peak: AtomicI64::new(0),
        }))
    }

    #[inline]
    fn born(&self) {
        let index = my_line();
        bump(&self.lines[index].born, index);
    }

    #[inline]
    fn died(&self) {
        let index = my_line();
        bump(&self.lines[index].died, index);
    }

    /// Objects alive now. Deaths are read first, so that a race shows at most a few too many, never too few.
    pub(crate) fn living(&self) -> i64 {
        let used = NEXT_LINE.load(Relaxed).min(LINES);
        let died: u64 = self.lines[..used]
            .iter()
            .map(|line| line.died.load(Relaxed))
            .sum();
        let born: u64 = self.lines[..used]
            .iter()
            .map(|line| line.born.load(Relaxed))
            .sum();
        born as i64 - died as i64
    }

    /// Objects that died so far.
    pub(crate) fn dead(&self) -> u64 {
        let used = NEXT_LINE.load(Relaxed).min(LINES);
        self.lines[..used]
            .iter()
            .map(|line| line.died.load(Relaxed))
            .sum()
    }

    /// Takes a sample for the peak, and returns it.
    pub(crate) fn sample(&self) -> i64 {
        let living = self.living();
        if living > self.peak.load(Relaxed) {
            self.peak.fetch_max(living, Relaxed);
        }
        living
    }

    /// The largest sample.
    pub(crate) fn peak(&self) -> i64 {
        self.peak.load(Relaxed)
    }
}

/// A line with one owner needs no locked instruction; the shared last one does.
#[inline]
fn bump(counter: &AtomicU64, index: usize) {
    if index < LINES - 1 {
        counter.store(counter.load(Relaxed) + 1, Relaxed);
    } else {
        counter.fetch_add(1, Relaxed);
    }
}

static NEXT_LINE: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Without a destructor, so that objects may die in the destructors of other thread-locals.
    static LINE: Cell<usize> = const { Cell::new(usize::MAX) };
}

#[inline]
fn my_line() -> usize {
    LINE.with(|line| {
        if line.get() == usize::MAX {
            line.set(NEXT_LINE.fetch_add(1, Relaxed).min(LINES - 1));
        }
        line.get()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn poison_is_seen_and_undone() {
        let object = Object::new(7, None);
        assert!(object.is_alive());
        assert_eq!(object.serial(), 7);
        object.poison();
        assert!(!object.is_alive());
        object.revive();
        assert!(object.is_alive());
    }

    #[test]
    fn census_counts_from_several_threads() {
        let census = Census::leak();
        let kept: Vec<Object> = std::thread::scope(|scope| {
            let crews: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        (0..100)
                            .map(|i| Object::new(i, Some(census)))
                            .filter(|o| o.serial() % 2 == 0)
                            .collect::<Vec<_>>()
                    })
                })
                .collect();
            crews.into_iter().flat_map(|c| c.join().unwrap()).collect()
        });
        assert_eq!(census.sample(), 200);
        assert_eq!(census.dead(), 200);
        drop(kept);
        assert_eq!(census.sample(), 0);
        assert_eq!(census.peak(), 200);
    }
}
