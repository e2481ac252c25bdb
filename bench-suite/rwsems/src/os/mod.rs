//! The system under the locks.
//!
//! Floor 3 (`rwsems`). Two siblings with the same functions: `linux` makes the
//! futex calls, `sim` does what they do with a mutex and a condition variable:
//! for loom, for Miri, and where there are no futexes.

#[cfg(all(target_os = "linux", not(any(loom, miri))))]
mod linux;
#[cfg(not(all(target_os = "linux", not(any(loom, miri)))))]
mod sim;

#[cfg(all(target_os = "linux", not(any(loom, miri))))]
pub(crate) use linux::*;
#[cfg(not(all(target_os = "linux", not(any(loom, miri)))))]
pub(crate) use sim::*;

/// Bit of a PI futex: somebody waits in the kernel.
pub(crate) const WAITERS: u32 = 1 << 31;
/// Bit of a PI futex: its last owner ended without giving it back.
pub(crate) const OWNER_DIED: u32 = 1 << 30;
/// The rest of a PI futex: its owner's thread number.
pub(crate) const OWNER: u32 = !(WAITERS | OWNER_DIED);
