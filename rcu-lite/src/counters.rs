//! Readers of the per-CPU flavour: who is inside, and since when.
//!
//! Floor 2 (`rcu-lite`), raw layer. Owns the epoch, the phase, the slots and
//! the counters of one domain; touches the running CPU's line through
//! `percpu::section`.
//!
//! # Words
//!
//! | word of a CPU's line | holds |
//! |---|---|
//! | 0 | the *slot*: `FREE`, or the epoch in which a reader entered |
//! | 1, 2 | how many entered by counting in phase 1, 2 |
//! | 3, 4 | how many of those left, having entered in phase 1, 2 |
//! | 5 | how many left that had entered in both |
//!
//! The *shared* lines have words 1 to 5. Counts wrap; only differences of sums
//! matter. A reader may leave on another CPU, or in another thread, than it
//! entered on.
//!
//! # Reader
//!
//! 1. **Slot.** One restartable section: *own line's slot is free, load the
//!    epoch, store it in the slot*. To leave, store `FREE`: whoever holds the
//!    guard may. (It is the section with which `hp` claims a hazard pointer.)
//! 2. **Counters**, when another reader has the slot (a nested one, one that
//!    sleeps, one that was preempted). One section: *load the phase, add 1 to
//!    that word of the own line*; to leave, one more.
//! 3. **Shared counters**, where sections do not run. Load the phase – count in
//!    it (an atomic addition) – light barrier – load the phase again. If it has
//!    changed, the count may have come too late for the grace period that ended
//!    that phase: count in the other phase **as well**, light barrier, go on. No
//!    third look is needed: whoever turns from now on waits for one of the two.
//!    So a reader never retries.
//!
//! # Grace period
//!
//! Turn the phase and count up the epoch – heavy barrier – wait until no slot
//! holds another epoch, and as many have left the old phase as have entered
//! it. **One** turn is enough:
//!
//! * A section that loaded the old epoch or phase has committed before the
//!   barrier (it is seen) or starts again and loads the new one – and, with it,
//!   sees what was unlinked before the turn.
//! * Without sections the barrier falls before the reader's light barrier
//!   (then its second look sees the new phase, and what it reads is what was
//!   there after the unlinking) or behind it (then its count is seen). If the
//!   second look finds the number of the phase unchanged because the phase has
//!   been turned twice, the reader sees what the second turn's caller unlinked.
//!
//! A reader that begins after the turn has the new epoch or counts in the new
//! phase, so no grace period waits for a reader that began after it. (Without
//! sections: but for one that loaded the phase before.)
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
//! *Left* (a slot's `FREE`, the commit of a section, an atomic addition) is
//! Release and pairs with the Acquire of the look: the reader's accesses happen
//! before the freeing. A slot that changes hands hands on what its last reader
//! released (`percpu::section`). Entering needs no ordering of its own but for
//! the barriers. Epoch and phase are loaded with Acquire and turned with
//! Release: a reader that sees the new one sees what was unlinked before.
//!
//! Source: SRCU's split counters (Linux), with the flip made safe by the
//! restarting barrier instead of a second flip. Epochs in per-CPU slots, and
//! counting in both phases, are this project's.

use crate::grace::Readers;
use core::ptr::{self, NonNull};
use percpu::barrier::{BarrierLost, Rung, heavy, light_on, rung};
use percpu::line::{INACTIVE, Lines, WORDS};
use percpu::section::{self, NO_INDEX, NOT_COUNTED};
use percpu::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// What a slot holds when nobody has it.
const FREE: usize = usize::MAX;
/// Word of the slot.
const SLOT: usize = 0;
/// Words of a line that are in use.
const USED: usize = 6;
/// The phase turns between 1 and 2: it is the number of a word.
const FIRST_PHASE: usize = 1;
/// Entered in both phases.
const BOTH: usize = 3;
/// Added to the number of the phase, or to [`BOTH`], gives the word of leaving.
const LEFT: usize = 2;
/// What a line's count starts at: any value but `INACTIVE`.
const OPEN: usize = 1;
/// Interrupted sections before a reader counts in a shared line.
#[cfg(not(loom))]
const RESTARTS: usize = 64;
#[cfg(loom)]
const RESTARTS: usize = 2;

const _: () = assert!(BOTH + LEFT < USED && USED <= WORDS);

/// Lines that threads share where sections do not run.
#[cfg(not(loom))]
const SHARED: usize = 16;
#[cfg(loom)]
const SHARED: usize = 1;

/// The other phase.
fn other(phase: usize) -> usize {
    BOTH - phase
}

/// How often a word of a CPU's line was counted up. (A line may be announced
/// and not open yet.)
fn counted(word: usize) -> usize {
    if word == INACTIVE {
        0
    } else {
        word.wrapping_sub(OPEN)
    }
}

/// What a reader has to do when it leaves: the address of its slot, or the
/// number of the phase that it counted in, or [`BOTH`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Entered(NonNull<AtomicUsize>);

// SAFETY: stands for a word that any thread may store to, or for a number.
unsafe impl Send for Entered {}
// SAFETY: as above.
unsafe impl Sync for Entered {}

impl Entered {
    #[inline(always)]
    fn counted(phase: usize) -> Self {
        let number = ptr::without_provenance_mut(phase);
        // SAFETY: phases, and `BOTH`, are not 0.
        Self(unsafe { NonNull::new_unchecked(number) })
    }

    /// The word, if the reader has a slot.
    #[inline(always)]
    fn slot(self) -> Option<NonNull<AtomicUsize>> {
        (self.0.addr().get() > BOTH).then_some(self.0)
    }
}

#[derive(Debug)]
#[repr(align(128))]
struct SharedLine {
    words: [AtomicUsize; USED],
}

/// Alone on its cache line: all readers load it, grace periods store it.
#[derive(Debug)]
#[repr(align(128))]
struct Now {
    /// A number, in the type that the section loads. Never 0 or `FREE`.
    epoch: AtomicPtr<()>,
    phase: AtomicUsize,
}

/// The readers of one domain. All zeroes at first, so that a table that is
/// allocated zeroed, or static, costs memory only where it is used; to be
/// [prepared](Self::prepare) before it has readers.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Counters {
    lines: Lines,
    shared: [SharedLine; SHARED],
    now: Now,
}

impl Counters {
    #[cfg(not(loom))]
    pub(crate) const fn new() -> Self {
        Self {
            lines: Lines::new(),
            shared: [const {
                SharedLine {
                    words: [const { AtomicUsize::new(0) }; USED],
                }
            }; SHARED],
            now: Now {
                epoch: AtomicPtr::new(ptr::null_mut()),
                phase: AtomicUsize::new(0),
            },
        }
    }

    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        let new = Self {
            lines: Lines::new(),
            shared: std::array::from_fn(|_| SharedLine {
                words: std::array::from_fn(|_| AtomicUsize::new(0)),
            }),
            now: Now {
                epoch: AtomicPtr::new(ptr::null_mut()),
                phase: AtomicUsize::new(0),
            },
        };
        new.prepare();
        new
    }

    /// Sets the first epoch and phase.
    pub(crate) fn prepare(&self) {
        // Relaxed (both): published together with the table.
        self.now
            .epoch
            .store(ptr::without_provenance_mut(1), Ordering::Relaxed);
        self.now.phase.store(FIRST_PHASE, Ordering::Relaxed);
    }

    /// Enters by the CPU's slot. `None`: take [`enter_cold`](Self::enter_cold).
    ///
    /// # Progress
    ///
    /// Wait-free.
    #[inline(always)]
    pub(crate) fn enter(&self) -> Option<Entered> {
        // SAFETY: `first` of a table that outlives the call; slots are claimed
        // by sections only. (A domain's table does not live for ever, but
        // readers borrow the domain.)
        let claimed = unsafe { section::claim_and_load(self.lines.first(), &self.now.epoch) };
        NonNull::new(claimed.slot.cast_mut()).map(Entered)
    }

    /// Enters when the slot could not be had: another reader has it, it is the
    /// first use of the CPU's line, an interruption, no sections.
    ///
    /// # Progress
    ///
    /// Wait-free.
    #[cold]
    #[inline(never)]
    pub(crate) fn enter_cold(&self) -> Entered {
        if let Some(entered) = self.enter_counted() {
            return entered;
        }
        // Decides the rung if nobody has: before the first reader reads.
        let rung = rung();
        if rung == Rung::Rseq {
            for _ in 0..RESTARTS {
                if !self.open_own_line() {
                    break;
                }
                if let Some(entered) = self.enter().or_else(|| self.enter_counted()) {
                    return entered;
                }
            }
        }
        self.enter_shared(rung)
    }

    #[inline(always)]
    fn enter_counted(&self) -> Option<Entered> {
        // SAFETY: `first` of a table that outlives the call; the phase is 1 or
        // 2 (or 0 in the table that stands for unmade ones, whose words are
        // never open); open counts are changed by sections only.
        let word = unsafe { section::load_and_add(self.lines.first(), &self.now.phase) };
        (word != NOT_COUNTED).then(|| Entered::counted(word))
    }

    /// Leaves.
    ///
    /// # Progress
    ///
    /// Wait-free.
    #[inline(always)]
    pub(crate) fn leave(&self, entered: Entered) {
        match entered.slot() {
            // SAFETY: a word of this table.
            // Release: "Left", pairs with the Acquire of the look.
            Some(slot) => unsafe { slot.as_ref() }.store(FREE, Ordering::Release),
            None => self.leave_counted(LEFT + entered.0.addr().get()),
        }
    }

    #[cold]
    #[inline(never)]
    fn leave_counted(&self, word: usize) {
        // SAFETY: as in `enter_counted`; `word` is at most 5.
        if unsafe { section::add(self.lines.first(), word) } {
            return;
        }
        if rung() == Rung::Rseq {
            for _ in 0..RESTARTS {
                if !self.open_own_line() {
                    break;
                }
                // SAFETY: as above.
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
        if self.lines.all()[index].words()[SLOT].load(Ordering::Relaxed) == INACTIVE {
            self.open(index);
        }
        true
    }

    fn open(&self, index: usize) {
        self.lines
            .activate_each(index, USED, |word| if word == SLOT { FREE } else { OPEN });
    }

    fn enter_shared(&self, rung: Rung) -> Entered {
        let words = &self.own_shared().words;
        // Relaxed: a guess; the second look decides.
        let phase = self.now.phase.load(Ordering::Relaxed);
        // Relaxed: the barriers make it visible in time.
        words[phase].fetch_add(1, Ordering::Relaxed);
        light_on(rung);
        // Acquire: "Phase", pairs with "Turn".
        if self.now.phase.load(Ordering::Acquire) == phase {
            return Entered::counted(phase);
        }
        // Relaxed: as above.
        words[other(phase)].fetch_add(1, Ordering::Relaxed);
        light_on(rung);
        Entered::counted(BOTH)
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
            line.words()[SLOT].store(FREE, Ordering::Relaxed);
            for word in &line.words()[SLOT + 1..USED] {
                word.store(OPEN, Ordering::Relaxed);
            }
        });
        for line in &self.shared {
            for word in &line.words {
                word.store(0, Ordering::Relaxed);
            }
        }
    }

    /// Opens every line: models that are not about a line's first use.
    #[cfg(all(test, loom))]
    pub(crate) fn open_all(&self) {
        for cpu in 0..percpu::line::MAX_LINES {
            self.open(cpu);
        }
    }

    /// Lets the epoch start at `value`: tests let it wrap.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn start_epoch_at(&self, value: usize) {
        self.now
            .epoch
            .store(ptr::without_provenance_mut(value), Ordering::Relaxed);
    }

    /// Lets the shared counters start at `value`: tests let them wrap.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn start_shared_at(&self, value: usize) {
        for line in &self.shared {
            // Word 5 counts for both phases, so it stays.
            for word in &line.words[FIRST_PHASE..FIRST_PHASE + 4] {
                word.store(value, Ordering::Relaxed);
            }
        }
    }
}

impl Readers for Counters {
    fn turn(&self) {
        // Relaxed (both loads): only the leader stores them.
        let phase = self.now.phase.load(Ordering::Relaxed);
        let mut epoch = self.now.epoch.load(Ordering::Relaxed).addr();
        loop {
            epoch = epoch.wrapping_add(1);
            if epoch != 0 && epoch != FREE {
                break;
            }
        }
        // Release (both): "Turn", pairs with "Phase" and with the sections'
        // loads.
        self.now.phase.store(other(phase), Ordering::Release);
        self.now
            .epoch
            .store(ptr::without_provenance_mut(epoch), Ordering::Release);
    }

    fn barrier(&self) -> Result<(), BarrierLost> {
        heavy()
    }

    fn drained(&self) -> bool {
        // Relaxed (both): the leader's own stores, or ordered by the lock.
        let epoch = self.now.epoch.load(Ordering::Relaxed).addr();
        let old = other(self.now.phase.load(Ordering::Relaxed));
        let mut held = false;
        let mut inside = 0usize;
        self.lines.for_each_active(|_, line| {
            let words = line.words();
            // Acquire: "Look", pairs with "Left".
            let slot = words[SLOT].load(Ordering::Acquire);
            // None is newer: the epoch stays as it is during a grace period.
            held |= slot != FREE && slot != INACTIVE && slot != epoch;
            for left in [LEFT + old, LEFT + BOTH] {
                // Acquire: "Look", see the module's page for the order.
                inside = inside.wrapping_sub(counted(words[left].load(Ordering::Acquire)));
            }
        });
        if held {
            return false;
        }
        for line in &self.shared {
            for left in [LEFT + old, LEFT + BOTH] {
                // Acquire: as above.
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

#[cfg(all(test, not(loom)))]
mod tests;
