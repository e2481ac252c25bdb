//! Reclaim passes in flight: who is inside one, and waiting for those that
//! are.
//!
//! Floor 2 (`hp`), raw layer. Owns the nesting mark of a thread and the count
//! of passes of a domain; frees nothing itself.
//!
//! # Nesting
//!
//! A deleter may retire, protect, synchronize and drop guards. It must not
//! start another pass on its thread: a chain of a million objects would be a
//! million frames deep. [`Nesting`] marks the thread while deleters run;
//! retiring then only queues. A `drain` that is running looks again when it is
//! done; a pass that a retirement began leaves it to the next one.
//!
//! # Counting
//!
//! `drain` must wait for batches that other threads took before it was called.
//! Passes count themselves in one of two counters, chosen by a phase; the
//! drainer flips the phase and waits for the old counter to fall to zero, so
//! that a stream of new passes cannot hold it up. A pass re-checks the phase
//! after counting itself, hence after the flip nobody joins the old counter.
//!
//! * *Join* (RMW of the counter, then *Check*, an AcqRel RMW that leaves the
//!   phase as it is) – pairs with *Flip* (AcqRel RMW of the phase, then load of
//!   the counter). Check and Flip are RMWs of one word, so one comes first: if
//!   Check does, Flip acquires the count; if Flip does, Check sees the new
//!   phase. (No sequentially consistent access is needed, which loom could not
//!   model.)
//! * *Leave* (Release RMW) – pairs with the drainer's Acquire load: what the
//!   pass freed is freed before `drain` returns. Counters are changed by RMWs
//!   only, so a later count does not hide an earlier Leave.
//!
//! Counters carry the process generation, so that a forked child does not wait
//! for the passes of threads that it does not have.

use percpu::fork::generation;
use percpu::sync::atomic::{AtomicUsize, Ordering};

/// Whether the thread is inside a pass, and how much was retired there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Nesting {
    pub(crate) inside: bool,
    pub(crate) retired: usize,
}

impl Nesting {
    pub(crate) const NONE: Self = Self {
        inside: false,
        retired: 0,
    };
}

const COUNT_BITS: u32 = usize::BITS / 2;
const COUNT: usize = (1 << COUNT_BITS) - 1;

fn tag() -> usize {
    generation() << COUNT_BITS
}

/// Passes of one domain that are running.
#[derive(Debug)]
pub(crate) struct Flight {
    phase: AtomicUsize,
    running: [AtomicUsize; 2],
    /// 0, or the generation of the drainer that is flipping.
    flipping: AtomicUsize,
}

impl Flight {
    #[cfg(not(loom))]
    pub(crate) const fn new() -> Self {
        Self {
            phase: AtomicUsize::new(0),
            running: [const { AtomicUsize::new(0) }; 2],
            flipping: AtomicUsize::new(0),
        }
    }

    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        Self {
            phase: AtomicUsize::new(0),
            running: std::array::from_fn(|_| AtomicUsize::new(0)),
            flipping: AtomicUsize::new(0),
        }
    }

    /// Counts a pass in; it leaves when the answer is dropped.
    pub(crate) fn join(&self) -> Joined<'_> {
        let tag = tag();
        // Relaxed: a guess.
        let mut side = self.phase.load(Ordering::Relaxed) & 1;
        loop {
            self.add(side, tag);
            // AcqRel: "Check".
            let now = self.phase.fetch_or(0, Ordering::AcqRel) & 1;
            if now == side {
                return Joined {
                    flight: self,
                    side,
                    tag,
                };
            }
            self.leave(side, tag);
            side = now;
        }
    }

    fn add(&self, side: usize, tag: usize) {
        let word = &self.running[side];
        // A guess: nobody is inside.
        let mut now = tag;
        loop {
            // A count of another generation is that of threads that are gone.
            let new = if now & !COUNT == tag {
                now + 1
            } else {
                tag | 1
            };
            // Relaxed: released by "Check".
            match word.compare_exchange_weak(now, new, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return,
                Err(other) => now = other,
            }
        }
    }

    /// Takes back one `add` of the same `tag`.
    fn leave(&self, side: usize, tag: usize) {
        // In the child of a fork inside a deleter the count is that of the
        // parent, and no more counts.
        if tag == self::tag() {
            // Release: "Leave".
            self.running[side].fetch_sub(1, Ordering::Release);
        }
    }

    /// Waits until every pass that had joined before the call has left.
    ///
    /// # Progress
    ///
    /// Blocks for those passes, hence for the deleters they run.
    pub(crate) fn wait(&self) {
        let generation = generation();
        let mut backoff = percpu::wait::Backoff::new();
        // A guess: nobody flips.
        let mut holder = 0;
        // Acquire: pairs with the Release at the end: one drainer at a time,
        // in order.
        while let Err(now) =
            self.flipping
                .compare_exchange(holder, generation, Ordering::Acquire, Ordering::Relaxed)
        {
            // Another generation's drainer is gone; its place is free.
            holder = if now == generation { 0 } else { now };
            if now == generation {
                backoff.snooze();
            }
        }
        // AcqRel: "Flip".
        let old = self.phase.fetch_xor(1, Ordering::AcqRel) & 1;
        let tag = tag();
        loop {
            // Acquire: pairs with "Leave".
            let now = self.running[old].load(Ordering::Acquire);
            if now & !COUNT != tag || now & COUNT == 0 {
                break;
            }
            backoff.snooze();
        }
        // Release: as above.
        self.flipping.store(0, Ordering::Release);
    }
}

/// A pass that is counted.
#[derive(Debug)]
pub(crate) struct Joined<'a> {
    flight: &'a Flight,
    side: usize,
    tag: usize,
}

impl Joined<'_> {
    pub(crate) fn flight(&self) -> &Flight {
        self.flight
    }
}

impl Drop for Joined<'_> {
    fn drop(&mut self) {
        self.flight.leave(self.side, self.tag);
    }
}

/// Marks the thread as inside a pass; unmarks it when dropped, also while
/// unwinding.
#[derive(Debug)]
pub(crate) struct Inside(());

impl Inside {
    /// `None` if the thread is inside a pass already.
    pub(crate) fn enter() -> Option<Self> {
        if crate::thread::nesting().inside {
            return None;
        }
        crate::thread::set_nesting(Nesting {
            inside: true,
            retired: 0,
        });
        Some(Self(()))
    }

    /// Objects that this pass's deleters have retired so far.
    pub(crate) fn retired(&self) -> usize {
        crate::thread::nesting().retired
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        crate::thread::set_nesting(Nesting::NONE);
    }
}
