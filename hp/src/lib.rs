//! Hazard pointers in per-CPU slots.
//!
//! Floor 2 of the workspace, over `percpu`; knows nothing of `rcu-lite`.
//! (front page follows)

// loom builds leave out the safe level, and with it the callers of much of the
// rest.
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
mod wait;

#[cfg(all(test, loom))]
mod models;

#[cfg(not(loom))]
mod atomic;
#[cfg(not(loom))]
mod domain;
#[cfg(not(loom))]
mod fork;
#[cfg(not(loom))]
mod guard;
#[cfg(not(loom))]
mod hazard;
#[cfg(not(loom))]
mod slot_array;
#[cfg(not(loom))]
mod unlinked;

#[cfg(not(loom))]
pub use atomic::{Atomic, CompareExchangeError};
#[cfg(not(loom))]
pub use domain::{Domain, Stats, TimedOut, scan, synchronize, synchronize_timeout};
#[cfg(not(loom))]
pub use fork::after_fork_in_child;
#[cfg(not(loom))]
pub use guard::Guard;
#[cfg(not(loom))]
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
/// Nobody else needs this. Allocates 128 bytes if no thread that exited has
/// left a record.
#[cfg(not(loom))]
pub fn init_thread() {
    init();
    drop(HazardPointer::new());
}
