//! What became of the nodes: how many live, how many bytes they have, and whether anybody looked at a dead one.
//!
//! Floor 3 (`structures`). Owns the numbers and what each node carries of them; touches nothing else.
//!
//! A node carries a [`Life`]: its canary, and the census that it is counted in from birth to death. All schemes count the
//! same way, in the node's constructor and destructor, into a line of the thread's own.
//!
//! A freed node is poisoned before its memory goes back, so that a reader which got hold of a dead one sees something
//! other than the canary, unless the block is a new node by then. Nodes put their life behind the first two words:
//! allocators keep their own links there.
//!
//! **Orderings.** All Relaxed. Whether a reader sees the constructor's canary is the scheme's business (published with
//! Release, read with Acquire); whether it sees the poison is luck, and only in a broken scheme. The numbers are for
//! people.

use std::cell::Cell;
use std::hint::black_box;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};

const ALIVE: u32 = 0x600d_11fe;
const POISON: u32 = 0xdead_0b1e;

/// What a scheme retires.
pub trait Node: Send + 'static {
    /// The node's life.
    fn life(&self) -> &Life;
}

/// What a node carries: its canary and the census that counts it.
#[derive(Debug)]
#[repr(C)]
pub struct Life {
    census: &'static Census,
    bytes: u32,
    canary: AtomicU32,
}

impl Life {
    /// The life of a node of `bytes` bytes, which is born.
    #[inline]
    #[must_use]
    pub fn new(census: &'static Census, bytes: usize) -> Self {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let line = my_line();
        bump(&census.lines[line].born, 1, line);
        bump(&census.lines[line].bytes_born, u64::from(bytes), line);
        Life {
            census,
            bytes,
            canary: AtomicU32::new(ALIVE),
        }
    }

    /// Marks the node dead without freeing it: what the destructor does first.
    pub(crate) fn poison(&self) {
        self.canary.store(POISON, Relaxed);
        // The optimiser may not conclude that nobody looks at a block that is about to be freed.
        black_box(&self.canary);
    }
}

impl Drop for Life {
    #[inline]
    fn drop(&mut self) {
        self.poison();
        let line = my_line();
        let lines = &self.census.lines[line];
        bump(&lines.died, 1, line);
        bump(&lines.bytes_died, u64::from(self.bytes), line);
    }
}

/// Lines of counters. A thread among the first `LINES - 1` has one to itself; later ones share the last.
const LINES: usize = if cfg!(miri) { 4 } else { 64 };

/// Two cache lines, so that the prefetcher of the neighbouring line does not join counters either.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Line {
    born: AtomicU64,
    died: AtomicU64,
    bytes_born: AtomicU64,
    bytes_died: AtomicU64,
}

/// Counts living nodes.
#[derive(Debug)]
pub struct Census {
    lines: [Line; LINES],
    dead_seen: AtomicU64,
}

/// Living nodes and their bytes, and how often the allocator was called for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// Nodes made and not freed.
    pub nodes: u64,
    /// Their bytes, without what schemes and allocators add.
    pub bytes: u64,
    /// Nodes made so far.
    pub made: u64,
    /// Nodes freed so far.
    pub freed: u64,
}

impl Census {
    /// A census that is never freed: schemes may free nodes as late as at the end of the process.
    #[must_use]
    pub fn leak() -> &'static Self {
        /// So that leak checkers see that it is not lost.
        static ALL: Mutex<Vec<&'static Census>> = Mutex::new(Vec::new());
        let census: &'static Census = Box::leak(Box::new(Census {
            lines: std::array::from_fn(|_| Line::default()),
            dead_seen: AtomicU64::new(0),
        }));
        ALL.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(census);
        census
    }

    /// Whether a node lives: what a structure asks after each pointer that it follows. A dead one is counted, here and not
    /// in the census that the node names: a dead node's words cannot be trusted.
    #[inline(always)]
    pub fn look(&self, life: &Life) -> bool {
        let alive = life.canary.load(Relaxed) == ALIVE;
        if !alive {
            self.dead_seen.fetch_add(1, Relaxed);
        }
        alive
    }

    /// How many dead nodes were looked at. Anything but 0 is a use after free.
    #[must_use]
    pub fn dead_seen(&self) -> u64 {
        self.dead_seen.load(Relaxed)
    }

    /// The numbers now. Deaths are read first, so that a race shows at most a few too many, never too few.
    #[must_use]
    pub fn count(&self) -> Count {
        let used = NEXT_LINE.load(Relaxed).min(LINES);
        let sum = |of: fn(&Line) -> &AtomicU64| -> u64 {
            self.lines[..used]
                .iter()
                .map(|line| of(line).load(Relaxed))
                .fold(0, u64::wrapping_add)
        };
        let freed = sum(|line| &line.died);
        let bytes_freed = sum(|line| &line.bytes_died);
        let made = sum(|line| &line.born);
        let bytes = sum(|line| &line.bytes_born);
        Count {
            nodes: made.saturating_sub(freed),
            bytes: bytes.saturating_sub(bytes_freed),
            made,
            freed,
        }
    }
}

/// A line with one owner needs no locked instruction; the shared last one does.
#[inline(always)]
fn bump(counter: &AtomicU64, by: u64, line: usize) {
    if line < LINES - 1 {
        counter.store(counter.load(Relaxed).wrapping_add(by), Relaxed);
    } else {
        counter.fetch_add(by, Relaxed);
    }
}

static NEXT_LINE: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Without a destructor, so that nodes may die in the destructors of other thread-locals.
    static LINE: Cell<usize> = const { Cell::new(usize::MAX) };
}

#[inline(always)]
fn my_line() -> usize {
    LINE.with(|line| match line.get() {
        usize::MAX => {
            line.set(NEXT_LINE.fetch_add(1, Relaxed).min(LINES - 1));
            line.get()
        }
        known => known,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_census_counts_from_several_threads() {
        let census = Census::leak();
        let kept: Vec<Life> = std::thread::scope(|scope| {
            let crews: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        let mut kept = Vec::new();
                        for i in 0..100 {
                            let life = Life::new(census, 40);
                            assert!(census.look(&life));
                            if i % 2 == 0 {
                                kept.push(life);
                            }
                        }
                        kept
                    })
                })
                .collect();
            crews.into_iter().flat_map(|c| c.join().unwrap()).collect()
        });
        let count = census.count();
        assert_eq!(
            count,
            Count {
                nodes: 200,
                bytes: 8000,
                made: 400,
                freed: 200
            }
        );
        kept[0].poison();
        assert_eq!((census.look(&kept[0]), census.dead_seen()), (false, 1));
        assert_eq!((census.look(&kept[1]), census.dead_seen()), (true, 1));
        drop(kept);
        assert_eq!(census.count().nodes, 0);
        assert_eq!(census.count().bytes, 0);
    }
}
