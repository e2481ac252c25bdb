//! What a structure asks of hazard pointers: a protection, and a place for
//! what it has unlinked.
//!
//! Floor 2 (`hp`), over [`crate::slots`] and [`crate::domain`]. Owns the trait
//! behind which the models put slots of their own, so that they run the
//! structures' code itself.

use crate::retired::Retired;
use crate::slot::{Held, RESERVED};
use crate::slots::ALL_BITS;
pub(crate) use crate::sync::Life;
use core::ptr::NonNull;
use percpu::sync::atomic::AtomicPtr;

/// Protects nodes and reclaims those that nobody protects.
pub(crate) trait Keeper {
    /// Protects what `src` points to, in a slot of its own. A tagged pointer
    /// comes back as it is; its slot protects nothing.
    fn protect(&self, src: &AtomicPtr<()>) -> Option<(Held, NonNull<()>)>;

    /// The same in a slot that the caller holds alone (no clone shares it):
    /// what it protected before, it no longer does.
    #[inline(always)]
    fn refill(&self, slot: &mut Held, src: &AtomicPtr<()>) -> Option<NonNull<()>> {
        // A word of a CPU's line will do as well as one of a record: it is not
        // FREE until it is released, and only its holder stores to it.
        crate::overflow::fill(src, slot.0.word(), ALL_BITS, RESERVED).ok()
    }

    /// A slot for an object that nobody can have retired yet: the caller owns
    /// it, or protects it already.
    fn hold(&self, address: NonNull<()>) -> Held;

    /// Hands over an unlinked node.
    fn retire(&self, node: Retired);
}

/// The slots of the process and the global domain.
#[cfg(not(loom))]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Process;

#[cfg(not(loom))]
impl Keeper for Process {
    #[inline(always)]
    fn protect(&self, src: &AtomicPtr<()>) -> Option<(Held, NonNull<()>)> {
        let (slot, value) = crate::slots::SLOTS.protect(src)?;
        Some((Held(slot), value))
    }

    fn hold(&self, address: NonNull<()>) -> Held {
        Held(crate::thread::with(|thread| {
            crate::slots::SLOTS.hold(thread, address.addr().get())
        }))
    }

    #[inline]
    fn retire(&self, node: Retired) {
        crate::Domain::global().retire(node);
    }
}
