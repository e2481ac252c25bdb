//! Hazard pointers in per-CPU slots: safe memory reclamation whose reader needs
//! no fence, no retry and no registration.
//!
//! Floor 2 of the workspace, over `percpu`; knows nothing of `rcu-lite`.
//!
//! A reader puts the address that it uses into a slot; whoever wants to free an
//! object first looks into all slots. Here the slots belong to CPUs, and on Linux
//! a load is *one restartable section*: slot free – load the pointer – store it
//! into the slot. Reclaimers issue a process-wide barrier that restarts every
//! section in flight, so readers need no fence and no second look. Where that
//! cannot be had, publish-and-recheck runs in per-thread slots behind the same
//! interface ([rungs](#rungs)).
//!
//! # Example
//!
//! ```
//! use hp::Atomic;
//!
//! static CONFIG: Atomic<String> = Atomic::null();
//!
//! CONFIG.store("first".to_string());
//! let config = CONFIG.load().unwrap(); // protected: no lock, no reference count
//! CONFIG.store("second".to_string());  // "first" is retired, and waits for the guard
//! assert_eq!(*config, "first");
//! assert_eq!(*CONFIG.load().unwrap(), "second");
//! ```
//!
//! # Three levels
//!
//! | level | items | `unsafe` | for |
//! |---|---|---|---|
//! | safe | [`Atomic`], [`Guard`], [`Unlinked`] | none | a value that many threads read and few replace |
//! | structure | [`HazardPointer`], [`Domain`], [`synchronize`], [`scan`], [`light_barrier`], [`ptr_eq()`] | yes | authors of lock-free structures |
//! | kernel | [`SlotArray`], [`Allocated`] | little | code written against the kernel's proposed `hp.h` |
//!
//! # Structures
//!
//! With the feature `structures` (off by default; no dependencies) the module
//! `hp::structures` has a stack and a hash map that grows: lock-free, without
//! `unsafe` for their user, and reading the map gives [`Guard`]s.
//!
//! # Guarantees
//!
//! **Progress.** [`Atomic::load`] and [`HazardPointer::protect`] are wait-free on the
//! rseq rung (but for threads that are not registered, and after 128 interruptions
//! in a row) and lock-free on the others, where a retry means that the value
//! changed. Dropping a guard is wait-free, dropping one of several clones and
//! retiring are lock-free. A reader never waits for a writer, a writer never for
//! a reader, unless it asks to ([`synchronize`], [`Unlinked::into_box`]).
//!
//! **Bound.** In one domain at most (shards + 1 + threads inside retire, reclaim or
//! drain) × 4096 objects wait, plus those that the last pass
//! found protected ([`Domain::pending_bound`]), also if a reader stalls for ever. Not counted: what
//! running deleters have just retired.
//!
//! **Memory.** Nothing on the heap for a thread that never overflowed (and about
//! 40 bytes of its static thread-local storage, like every thread). 128 bytes for
//! each CPU line in use, 256 bytes for each overflow record; there are as many
//! records as threads overflowed at one time. A record is for 8 slots. Loading and
//! releasing allocate nothing in the steady state, and neither does retiring.
//!
//! **No lifetimes.** A [`Guard`] borrows nothing: it may outlive its cell and its
//! domain, be stored, and (if `T: Sync`) be sent to and dropped by another thread.
//! Slots belong to the process, so that a guard protects its object whatever
//! domain that is retired to.
//!
//! # Rungs
//!
//! | rung | reader | reclaimer | where |
//! |---|---|---|---|
//! | [`Rung::Rseq`] | one section | `membarrier` that restarts sections | x86-64 Linux ≥ 5.10, glibc ≥ 2.35 |
//! | [`Rung::Membarrier`] | publish, compiler fence, recheck | `membarrier` | Linux ≥ 4.14 |
//! | [`Rung::Fence`] | publish, `SeqCst` fence, recheck | `SeqCst` fence | everywhere |
//!
//! Chosen once a process, at the first use or by [`init`]. `HP_BARRIER=membarrier`
//! or `fence` in the environment forces a lower one; with `fence` the kernel is not
//! asked anything. `percpu::capabilities()` tells which one runs and why.
//!
//! If the kernel refuses a barrier that it granted before, nothing is freed and
//! [`Stats::barrier_failures`] counts. If it comes back, all goes on.
//!
//! # What it does not do
//!
//! * A guard protects one object, not what that points to in turn. One guard for a
//!   whole traversal is the business of RCU and epochs.
//! * Retired values are dropped later and on any thread: `T: Send + 'static`. What
//!   waits in the global domain when the process ends is not dropped.
//! * [`synchronize`] and its kin wait for ever for a guard that the caller holds
//!   itself; there are forms with a timeout.
//! * No `no_std`, no promotion of a guard to shared ownership.
//!
//! # Bad days
//!
//! **Thread exit.** A thread owns nothing that its exit could lose. Guards may be
//! dropped by other threads and by destructors of thread-locals, which may also
//! protect and retire; nothing here panics during teardown.
//!
//! **Panics.** A deleter's panic goes to the caller of the operation that reclaimed;
//! the rest of the batch is kept.
//!
//! **Signals.** Loading, protecting with an existing [`HazardPointer`] and releasing
//! may be used in a signal handler that interrupts a prepared thread
//! ([`init_thread`]). Retiring is not async-signal-safe.
//!
//! **Fork.** The child never hangs. What vanished threads protected stays protected,
//! unless the child calls [`after_fork_in_child`].
//!
//! **Forgotten guards** keep their object and their slot; nothing else.
//!
//! # Coming from elsewhere
//!
//! From `arc-swap`: [`Atomic`] is a cell without the `Arc`; old values are dropped
//! later. From `crossbeam-epoch` and `seize`: one guard an object instead of one a
//! section, and a stalled reader holds up one object instead of all. From
//! `haphazard`: no holder to keep, guards are owned, domains and guards cannot be
//! mixed up. The README compares call by call.

// loom builds leave out the safe and the kernel level, and with them the callers
// of much of the rest.
#![cfg_attr(loom, allow(dead_code, unused_imports))]

mod overflow;
mod pass;
mod ptr_eq;
mod reclaim;
mod retired;
mod shard;
mod slot;
mod slots;
mod thread;
mod unlink;

#[cfg(all(test, loom))]
mod models;

#[cfg(any(feature = "structures", all(test, loom)))]
pub mod structures;

#[cfg(not(loom))]
mod atomic;
/// The chapters whose code must compile and run.
#[cfg(all(doctest, not(loom)))]
mod book {
    #[doc = include_str!("../../docs/src/getting-started.md")]
    struct GettingStarted;
}
#[cfg(all(doctest, not(loom)))]
mod compile_fail;
mod domain;
#[cfg(not(loom))]
mod fork;
#[cfg(not(loom))]
mod guard;
mod hazard;
#[cfg(not(loom))]
mod slot_array;
pub mod sync;
#[cfg(not(loom))]
mod unlinked;
#[cfg(loom)]
pub mod verify;

#[cfg(not(loom))]
pub use atomic::{Atomic, CompareExchangeError};
pub use domain::{Domain, Stats, TimedOut, scan, synchronize, synchronize_timeout};
#[cfg(not(loom))]
pub use fork::after_fork_in_child;
#[cfg(not(loom))]
pub use guard::Guard;
pub use hazard::{HazardPointer, ProtectError};
pub use percpu::barrier::{BarrierLost, Rung, light as light_barrier, rung};
pub use ptr_eq::{hide, ptr_eq};
#[cfg(not(loom))]
pub use slot_array::{Allocated, SlotArray};
pub use slots::Place;
#[cfg(not(loom))]
pub use unlinked::Unlinked;

/// Decides the rung now, so that the first protection need not.
///
/// Takes the kernel's registration, which can cost milliseconds in a process
/// with many threads, out of the first request.
#[cfg(not(loom))]
pub fn init() -> Rung {
    percpu::barrier::rung()
}

/// Prepares the calling thread for protecting in signal handlers: decides the
/// rung and takes the thread's overflow record now, since neither is
/// async-signal-safe. Afterwards [`Atomic::load`], [`HazardPointer`]'s methods
/// and releasing are, in handlers that interrupt this thread, as long as the
/// process holds no more than 64 shared overflow slots beyond each prepared
/// thread's own 8.
///
/// Nobody else needs this. Allocates 256 bytes if no thread that exited has
/// left a record.
#[cfg(not(loom))]
pub fn init_thread() {
    init();
    drop(HazardPointer::new());
}
