//! Process-wide asymmetric barriers: cheap `light` for readers, dear `heavy`
//! for reclaimers.
//!
//! Floor 1 (`percpu`). Owns the choice of the rung, made once a process.
//! `rseq`, `membarrier` and `fence` are siblings with the same functions:
//! `probe` (can this rung run here?), `light`, `heavy`.
//!
//! # What the pair promises
//!
//! For a light barrier L in one thread and a heavy barrier H in another, all
//! accesses before L are ordered before all accesses after H, or all accesses
//! before H before all accesses after L. Two light barriers order nothing. A
//! light barrier is neither an acquire nor a release.
//!
//! On the rseq rung H also restarts every section in flight: each section is
//! committed before H, or sees everything before H.
//!
//! | rung | light | heavy | needs |
//! |---|---|---|---|
//! | `rseq` | compiler fence (none at all in a section) | `membarrier(PRIVATE_EXPEDITED_RSEQ)` | Linux ≥ 5.10, rseq registered by the C library, `mm_cid` or `cpu_id` |
//! | `membarrier` | compiler fence | `membarrier(PRIVATE_EXPEDITED)` | Linux ≥ 4.14 |
//! | `fence` | `SeqCst` fence | `SeqCst` fence | nothing |
//!
//! # Why the choice is safe
//!
//! A reader may leave out its fence only if every later heavy barrier really
//! is one. The rung is decided before anything else happens: whoever comes
//! first, reader or reclaimer, decides, by one compare-exchange on one word;
//! nobody acts on an undecided rung and the word never changes again. (Model:
//! `l9`.)
//!
//! Source: Linux `membarrier(2)`; asymmetric fences as in C++ P1202; the
//! ladder is this project's.

mod choice;
#[cfg(not(loom))]
mod choose;
pub(crate) mod fence;
#[cfg(all(target_os = "linux", not(any(loom, miri))))]
mod linux;
#[cfg(all(target_os = "linux", not(any(loom, miri))))]
#[path = "membarrier.rs"]
mod membarrier;
#[cfg(all(target_os = "linux", not(any(loom, miri))))]
mod rseq;

#[cfg(not(loom))]
use crate::sync::atomic::{Ordering, compiler_fence};
#[cfg_attr(loom, allow(unused_imports))]
pub(crate) use choice::Choice;
#[cfg(not(loom))]
pub(crate) use choose::decision;
#[cfg(all(target_os = "linux", not(any(loom, miri))))]
pub(crate) use linux::query as membarrier_mask;
#[cfg(all(target_os = "linux", not(any(loom, miri))))]
pub(crate) use rseq::area as rseq_area;

/// Which pair of barriers is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Rung {
    /// `SeqCst` fences on both sides. Works everywhere.
    Fence = 1,
    /// `membarrier` for the reclaimer, a compiler fence for the reader, who
    /// publishes and then re-checks.
    Membarrier = 2,
    /// One-step sections for the reader, the restarting `membarrier` for the
    /// reclaimer.
    Rseq = 3,
}

impl Rung {
    /// The name that `HP_BARRIER` takes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Rung::Fence => "fence",
            Rung::Membarrier => "membarrier",
            Rung::Rseq => "rseq",
        }
    }

    fn from_u8(value: u8) -> Option<Self> {
        match value {
            1 => Some(Rung::Fence),
            2 => Some(Rung::Membarrier),
            3 => Some(Rung::Rseq),
            _ => None,
        }
    }
}

impl core::fmt::Display for Rung {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.pad(self.name())
    }
}

/// A heavy barrier could not be had: the kernel refused, also after
/// registering again. Whoever gets this must free nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BarrierLost;

impl core::fmt::Display for BarrierLost {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the kernel refused the process-wide barrier that it granted before")
    }
}

impl core::error::Error for BarrierLost {}

/// The decided rung, 0 while undecided. The only mutable word of this module.
#[cfg(not(loom))]
static RUNG: Choice = Choice::new();

/// The rung of this process. The first call decides.
///
/// # Progress
///
/// Wait-free once decided; the first call asks the environment, the C library
/// and the kernel, and is not async-signal-safe.
#[cfg(not(loom))]
#[inline]
#[must_use]
pub fn rung() -> Rung {
    match RUNG.get() {
        Some(rung) => rung,
        None => choose::decide(),
    }
}

/// The reader's half of the pair.
///
/// # Progress
///
/// Wait-free.
#[cfg(not(loom))]
#[inline(always)]
pub fn light() {
    light_on(rung());
}

/// The rung if it is decided, without deciding it.
///
/// # Progress
///
/// Wait-free.
#[cfg(not(loom))]
#[inline(always)]
#[must_use]
pub fn decided() -> Option<Rung> {
    RUNG.get()
}

/// [`light`] for a caller who has asked for the rung already.
#[cfg(not(loom))]
#[inline(always)]
pub fn light_on(rung: Rung) {
    if rung == Rung::Fence {
        fence::light();
    } else {
        // The other half is the system call of `heavy`; what is left to do
        // here is to keep the compiler from moving accesses across.
        compiler_fence(Ordering::SeqCst);
    }
}

/// The reclaimer's half of the pair, issued between unlinking and scanning.
///
/// # Errors
///
/// [`BarrierLost`] if the kernel refuses the barrier although it granted the
/// registration, and refuses to register again. The caller must then treat
/// every object as protected.
///
/// # Progress
///
/// Blocks for the inter-processor interrupts of one system call: 0.3–0.5 µs
/// alone, some µs to tens of µs (virtual machines) with other running threads.
#[cfg(not(loom))]
pub fn heavy() -> Result<(), BarrierLost> {
    match rung() {
        Rung::Fence => {
            fence::heavy();
            Ok(())
        }
        #[cfg(all(target_os = "linux", not(miri)))]
        Rung::Membarrier => membarrier::heavy(),
        #[cfg(all(target_os = "linux", not(miri)))]
        Rung::Rseq => rseq::heavy(),
        #[cfg(not(all(target_os = "linux", not(miri))))]
        Rung::Membarrier | Rung::Rseq => unreachable!("{} exists on Linux only", rung()),
    }
}

#[cfg(loom)]
pub use crate::sim::{decided, heavy, light, light_on, rung};
