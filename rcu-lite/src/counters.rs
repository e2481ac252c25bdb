//! Readers of the per-CPU flavour: who is inside, counted by phase.
//!
//! Floor 2 (`rcu-lite`), raw layer. Owns the phase and the counters of one
//! domain; touches the running CPU's line through `percpu::section`.
//!
//! # Words
//!
//! Every line, and every shared line, holds five counters:
//!
//! | word | counts |
//! |---|---|
//! | 0, 1 | readers that entered in phase 0, 1 |
//! | 2, 3 | readers that left, having entered in phase 0, 1 |
//! | 4 | readers that left, having entered in both |
//!
//! Words wrap; only differences of sums matter. A reader may leave on another
//! CPU, or in another thread, than it entered on.
//!
//! # Reader, with sections
//!
//! One restartable section: *load the phase, add 1 to the own CPU's word*; to
//! leave, one more. No barrier, no retry but after an interruption.
//!
//! # Reader, without
//!
//! Load the phase – count in it (an atomic addition in one of the shared
//! lines) – light barrier – load the phase again. If it has changed, the count
//! may have come too late for the grace period that ended that phase: count in
//! the other phase **as well**, light barrier, go on. No third look is needed:
//! whoever turns from now on waits for one of the two. So a reader never
//! retries.
//!
//! # Grace period
//!
//! Turn the phase – heavy barrier – wait until as many have left the old phase
//! as have entered it. **One** turn is enough:
//!
//! * A section that loaded the old phase has committed before the barrier (its
//!   count is seen) or starts again and loads the new phase – and, with it,
//!   sees what was unlinked before the turn.
//! * Without sections the barrier falls before the reader's light barrier
//!   (then its second look sees the new phase, and what it reads is what was
//!   there after the unlinking) or behind it (then its count is seen). If the
//!   second look finds the number of the phase unchanged because the phase has
//!   been turned twice, the reader sees what the second turn's caller unlinked.
//!
//! A reader that begins after the turn counts in the new phase, so no grace
//! period waits for a reader that began after it. (Without sections: but for
//! one that loaded the phase before.)
//!
//! # The sum
//!
//! First all words of leaving (*Left*, Acquire), then all words of entering. A
//! leaving that is counted has its entering counted too, for it happened
//! before. So equal sums mean that everyone whose entering the barrier made
//! visible has left. In the other order a reader that enters in the meantime
//! and leaves would stand for one that is still inside.
//!
//! # Orderings
//!
//! *Left* is Release (the commit of a section, or an atomic addition) and pairs
//! with the Acquire of the sum: the reader's accesses happen before the
//! freeing. Entering needs no ordering of its own but for the barriers. The
//! phase is loaded with Acquire and turned with Release: a reader that sees
//! the new phase sees what was unlinked before.
//!
//! Source: SRCU's split counters (Linux), with the flip made safe by the
//! restarting barrier instead of a second flip; counting in both phases is
//! this project's.

use crate::grace::Readers;
use percpu::barrier::{BarrierLost, Rung, heavy, light_on, rung};
use percpu::line::{INACTIVE, Lines, WORDS};
use percpu::section::{self, NO_INDEX, NOT_COUNTED};
use percpu::sync::atomic::{AtomicUsize, Ordering};

/// Counters in a line.
const COUNTERS: usize = 5;
/// Added to the number of the phase (or [`BOTH`]) gives the word of leaving.
const LEFT: usize = 2;
/// Entered in both phases.
const BOTH: usize = 2;
/// What a line's word starts at: any value but `INACTIVE`.
const OPEN: usize = 1;
/// Interrupted sections before a reader counts in a shared line.
const RESTARTS: usize = 64;

const _: () = assert!(LEFT + BOTH < COUNTERS && COUNTERS <= WORDS);

/// Lines that threads share where sections do not run.
#[cfg(not(loom))]
const SHARED: usize = 16;
#[cfg(loom)]
const SHARED: usize = 1;

/// How often a word of a CPU's line was counted up. (A line may be announced
/// and not open yet.)
fn counted(word: usize) -> usize {
    if word == INACTIVE {
        0
    } else {
        word.wrapping_sub(OPEN)
    }
}

/// What a reader has to count when it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Entered(usize);

#[derive(Debug)]
#[repr(align(128))]
struct SharedLine {
    words: [AtomicUsize; COUNTERS],
}

/// Alone on its cache line: all readers load it, grace periods store it.
#[derive(Debug)]
#[repr(align(128))]
struct Phase(AtomicUsize);

/// The counters of one domain. All zeroes at first, so that a table that is
/// allocated zeroed, or static, costs memory only where it is used.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Counters {
    lines: Lines,
    shared: [SharedLine; SHARED],
    phase: Phase,
}

impl Counters {
    #[cfg(not(loom))]
    pub(crate) const fn new() -> Self {
        Self {
            lines: Lines::new(),
            shared: [const {
                SharedLine {
                    words: [const { AtomicUsize::new(0) }; COUNTERS],
                }
            }; SHARED],
            phase: Phase(AtomicUsize::new(0)),
        }
    }

    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        Self {
            lines: Lines::new(),
            shared: std::array::from_fn(|_| SharedLine {
                words: std::array::from_fn(|_| AtomicUsize::new(0)),
            }),
            phase: Phase(AtomicUsize::new(0)),
        }
    }

    /// Enters, on the straight way. `None`: take [`enter_cold`](Self::enter_cold).
    #[inline(always)]
    pub(crate) fn enter(&self) -> Option<Entered> {
        // SAFETY: `first` of a table that outlives the call; the phase is 0 or
        // 1; open words are changed by sections only.
        let word = unsafe { section::load_and_add(self.lines.first(), &self.phase.0) };
        (word != NOT_COUNTED).then_some(Entered(word))
    }

    /// Leaves.
    ///
    /// # Progress
    ///
    /// Wait-free.
    #[inline(always)]
    pub(crate) fn leave(&self, entered: Entered) {
        let word = LEFT + entered.0;
        // SAFETY: as in `enter`; `word` is at most 4.
        if !unsafe { section::add(self.lines.first(), word) } {
            self.leave_cold(word);
        }
    }

    /// Enters where the straight way did not do: first use of the CPU's line,
    /// an interruption, no sections.
    ///
    /// # Progress
    ///
    /// Wait-free.
    #[cold]
    #[inline(never)]
    pub(crate) fn enter_cold(&self) -> Entered {
        // Decides the rung if nobody has: before the first reader reads.
        let rung = rung();
        if rung == Rung::Rseq {
            for _ in 0..RESTARTS {
                if !self.open_own_line() {
                    break;
                }
                if let Some(entered) = self.enter() {
                    return entered;
                }
            }
        }
        self.enter_shared(rung)
    }

    #[cold]
    #[inline(never)]
    fn leave_cold(&self, word: usize) {
        if rung() == Rung::Rseq {
            for _ in 0..RESTARTS {
                if !self.open_own_line() {
                    break;
                }
                // SAFETY: as in `leave`.
                if unsafe { section::add(self.lines.first(), word) } {
                    return;
                }
            }
        }
        // Release: "Left".
        self.own_shared().words[word].fetch_add(1, Ordering::Release);
    }

    /// Opens the running CPU's line. `false` where there is none.
    fn open_own_line(&self) -> bool {
        let index = section::index_hint();
        if index == NO_INDEX {
            return false;
        }
        // Relaxed: opening twice does no harm.
        if self.lines.all()[index].words()[COUNTERS - 1].load(Ordering::Relaxed) == INACTIVE {
            self.lines.activate(index, COUNTERS, OPEN);
        }
        true
    }

    fn enter_shared(&self, rung: Rung) -> Entered {
        let words = &self.own_shared().words;
        // Relaxed: a guess; the second look decides.
        let phase = self.phase.0.load(Ordering::Relaxed);
        // Relaxed: the barriers make it visible in time.
        words[phase].fetch_add(1, Ordering::Relaxed);
        light_on(rung);
        // Acquire: "Phase", pairs with "Turn".
        if self.phase.0.load(Ordering::Acquire) == phase {
            return Entered(phase);
        }
        // Relaxed: as above.
        words[1 - phase].fetch_add(1, Ordering::Relaxed);
        light_on(rung);
        Entered(BOTH)
    }

    #[cfg(not(loom))]
    fn own_shared(&self) -> &SharedLine {
        &self.shared[crate::local::token() % SHARED]
    }

    #[cfg(loom)]
    fn own_shared(&self) -> &SharedLine {
        &self.shared[0]
    }

    /// Forgets every reader.
    ///
    /// # Safety
    ///
    /// No reader is inside, and nobody enters or leaves meanwhile: what was
    /// entered before is never left.
    #[cfg(not(loom))]
    pub(crate) unsafe fn reset(&self) {
        // Relaxed (all): the caller is alone.
        self.lines.for_each_active(|_, line| {
            for word in &line.words()[..COUNTERS] {
                word.store(OPEN, Ordering::Relaxed);
            }
        });
        for line in &self.shared {
            for word in &line.words {
                word.store(0, Ordering::Relaxed);
            }
        }
    }

    /// Lets the shared counters start at `value`: tests let them wrap.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn start_shared_at(&self, value: usize) {
        for line in &self.shared {
            // Entered once from `value` on, and left once or not: each word
            // starts at the same number, and word 4 counts for both phases.
            for word in &line.words[..4] {
                word.store(value, Ordering::Relaxed);
            }
        }
    }
}

impl Readers for Counters {
    fn turn(&self) {
        // Relaxed: only the leader stores it.
        let old = self.phase.0.load(Ordering::Relaxed);
        // Release: "Turn", pairs with "Phase".
        self.phase.0.store(1 - old, Ordering::Release);
    }

    fn barrier(&self) -> Result<(), BarrierLost> {
        heavy()
    }

    fn drained(&self) -> bool {
        // Relaxed: the leader's own store, or ordered by the lock.
        let old = 1 - self.phase.0.load(Ordering::Relaxed);
        let mut inside = 0usize;
        for left in [LEFT + old, LEFT + BOTH] {
            // Acquire (both): "Left", see the module's page for the order.
            self.lines.for_each_active(|_, line| {
                let left = line.words()[left].load(Ordering::Acquire);
                inside = inside.wrapping_sub(counted(left));
            });
            for line in &self.shared {
                inside = inside.wrapping_sub(line.words[left].load(Ordering::Acquire));
            }
        }
        // Relaxed (both): an entering that matters is visible by the barrier,
        // or by the leaving that was read above.
        self.lines.for_each_active(|_, line| {
            let entered = line.words()[old].load(Ordering::Relaxed);
            inside = inside.wrapping_add(counted(entered));
        });
        for line in &self.shared {
            inside = inside.wrapping_add(line.words[old].load(Ordering::Relaxed));
        }
        inside == 0
    }
}
