//! A sum with one addend for each CPU, behind a gate.
//!
//! Floor 3 (`refcounts`). Owns the lines; touches the running CPU's through
//! `percpu::section`.
//!
//! An addition is one restartable section: *own line; gate `== open`; word +=
//! n*. To read the sum: shut the gate, [`heavy`](percpu::barrier::heavy), add
//! up. Every section that saw the gate open is committed before the barrier or
//! starts again and finds it shut, so nothing is added afterwards. No reader
//! announces itself and nobody waits for readers: what takes the kernel a grace
//! period is one barrier here.
//!
//! # Orderings
//!
//! The commit of a section is Release; *Sum* reads the words with Acquire, so
//! that the past of every put happens before whatever follows the sum. The
//! section's load of the gate is Acquire and pairs with the Release of whoever
//! opens it: the words are zero by then.

use percpu::line::Line;
use percpu::section::{Miss, check_and_add};
use percpu::sync::atomic::{AtomicUsize, Ordering};

/// Interrupted sections before the caller has to do without.
#[cfg(not(loom))]
const RESTARTS: usize = 64;
#[cfg(loom)]
const RESTARTS: usize = 1;

/// Word of a line that is added to.
const WORD: usize = 0;

/// What became of an addition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Added {
    /// It is in the sum.
    Yes,
    /// The gate was shut.
    Shut,
    /// No sections here, the thread is not registered, or it was interrupted
    /// again and again.
    Unable,
}

#[derive(Debug)]
pub(crate) struct PerCpu {
    lines: Box<[Line]>,
}

impl PerCpu {
    pub(crate) fn new() -> Self {
        #[cfg(loom)]
        let count = percpu::line::MAX_LINES;
        #[cfg(not(loom))]
        let count = percpu::possible_cpus();
        Self {
            lines: (0..count).map(|_| Line::new()).collect(),
        }
    }

    /// Adds `n` (wrapping) if `*gate == open`.
    ///
    /// # Progress
    ///
    /// Wait-free.
    #[inline(always)]
    pub(crate) fn add(&self, gate: &AtomicUsize, open: usize, n: usize) -> Added {
        match self.section(gate, open, n) {
            Ok(()) => Added::Yes,
            Err(Miss::Mismatch) => Added::Shut,
            Err(Miss::Restarted) => self.again(gate, open, n),
            Err(_) => Added::Unable,
        }
    }

    #[inline(always)]
    fn section(&self, gate: &AtomicUsize, open: usize, n: usize) -> Result<(), Miss> {
        let lines = self.lines.as_ptr();
        // SAFETY: so many lines; `WORD` is in them; sections change them while
        // the gate is open, and nobody else does.
        unsafe { check_and_add(gate, open, lines, self.lines.len(), WORD, n) }
    }

    #[cold]
    #[inline(never)]
    fn again(&self, gate: &AtomicUsize, open: usize, n: usize) -> Added {
        for _ in 0..RESTARTS {
            match self.section(gate, open, n) {
                Ok(()) => return Added::Yes,
                Err(Miss::Mismatch) => return Added::Shut,
                Err(Miss::Restarted) => {}
                Err(_) => break,
            }
        }
        Added::Unable
    }

    /// The sum: exact if the gate is shut and a heavy barrier has passed since.
    pub(crate) fn sum(&self) -> usize {
        // Acquire: "Sum", pairs with the commits.
        self.lines.iter().fold(0, |sum: usize, line| {
            sum.wrapping_add(line.words()[WORD].load(Ordering::Acquire))
        })
    }

    /// Zeroes all lines, before the gate is opened.
    pub(crate) fn reset(&self) {
        for line in &self.lines {
            // Relaxed: published by the opening of the gate.
            line.words()[WORD].store(0, Ordering::Relaxed);
        }
    }
}
