//! After a fork: what the child inherits, and how to get rid of it.
//!
//! Floor 2 (`hp`). Clears slots; see [`after_fork_in_child`].

use crate::slots::SLOTS;

/// Frees, in a forked child, the slots of threads that the child does not
/// have.
///
/// A child inherits all slots as they were. Without this call nothing hangs
/// and nothing is freed too early: objects that vanished threads protected
/// stay, like those of a forgotten guard, and what their retire lists held at
/// the moment of the fork may leak. (`synchronize` on such an object would
/// wait for ever.)
///
/// `keep` lists the addresses that guards, hazard pointers and clones of the
/// calling thread protect; every other slot that protects something becomes
/// free. (Slots that vanished hazard pointers held without protecting
/// anything, and the records of vanished threads, are not reused.)
///
/// # Safety
///
/// * This is the child of a `fork`, and its only thread.
/// * Every guard and every [`HazardPointer`](crate::HazardPointer) that the
///   child will still use or drop protects an address in `keep`, or (for a
///   hazard pointer) nothing. Others must be forgotten
///   ([`core::mem::forget`]).
pub unsafe fn after_fork_in_child(keep: &[*const ()]) {
    SLOTS.clear_except(|address| keep.iter().any(|k| k.addr() == address));
}
