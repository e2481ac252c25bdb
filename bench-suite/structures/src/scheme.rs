//! What a way to keep nodes alive has to offer.
//!
//! Floor 3 (`structures`). Owns the traits; `schemes` fills them in, the structures are generic over them. Calls are
//! monomorphised: a structure is compiled once for each scheme.
//!
//! Three parts, by how long they live:
//!
//! | part | lives as long as | has |
//! |---|---|---|
//! | [`Scheme`] | the structure | what threads share: domain, collector |
//! | [`Thread`] | a thread's use of the structure | what a thread keeps between operations: slots, participant |
//! | [`Guard`] | an operation | the protection |
//!
//! # Slots
//!
//! A scheme that protects one object at a time ([`Protects::Object`](crate::Protects)) has `K` slots a thread, numbered
//! from 0. A number is the structure's name for a slot: *renaming* (in a walk, the current node becomes the previous
//! one) is an exchange of two numbers in the structure's own variables and costs nothing. There is no copying from slot
//! to slot: a scan in progress may have passed the one before it was filled and reach the other after it was cleared.
//!
//! # Validation
//!
//! What [`Guard::protect`] returns was found in `src` while it was protected. That suffices where `src` is cleared or
//! changed before the object is retired. Where it is not (a queue's dead node goes on pointing to its successor), the
//! structure looks again at a word that is, with [`Guard::unchanged`]. Schemes that protect everything answer `true`
//! without looking.
//!
//! Where the structure follows a pointer only after an exchange of its own has succeeded, which could not have if the node
//! had been unlinked before, the exchange is the validation: then [`Guard::announce`] is enough. It needs no fence even
//! where `protect` does. Whoever retires the node found, by an exchange that acquires, what that exchange released, and
//! with it the slot.

use crate::{About, Node};
use percpu::sync::atomic::AtomicPtr;

/// A way to keep nodes alive, as one structure uses it.
pub trait Scheme: Send + Sync + Sized + 'static {
    /// What people and structures should know of it.
    const ABOUT: About;

    /// A thread's part, with `K` slots.
    type Thread<'a, const K: usize>: Thread
    where
        Self: 'a;

    /// What one structure needs.
    fn new() -> Self;

    /// The calling thread's part. Not for the inner loop.
    fn thread<const K: usize>(&self) -> Self::Thread<'_, K>;

    /// Room for a node, and the node in it.
    #[inline(always)]
    fn alloc<T: Node>(node: T) -> *mut T {
        Box::into_raw(Box::new(node))
    }

    /// Frees a node at once.
    ///
    /// # Safety
    ///
    /// * It came from [`alloc`](Self::alloc) and was neither freed nor retired.
    /// * Nobody else has it: it was never published, or no other thread uses the structure any more.
    unsafe fn free<T: Node>(node: *mut T) {
        // SAFETY: the caller's.
        drop(unsafe { Box::from_raw(node) });
    }

    /// Frees what can be freed now, as well as the scheme knows how. Called by a thread that has no part of this scheme
    /// at the time (it might wait for itself).
    fn flush(&self);

    /// The documented bound on retired nodes that wait while `threads` threads, each with `slots` slots, use the
    /// structure; `None` where there is none.
    fn bound(&self, threads: usize, slots: usize) -> Option<usize> {
        let _ = (threads, slots);
        None
    }
}

/// What a thread keeps between operations.
pub trait Thread {
    /// The protection of one operation.
    type Guard<'g>: Guard
    where
        Self: 'g;

    /// Begins an operation that follows pointers.
    fn pin(&mut self) -> Self::Guard<'_>;

    /// Called after an operation that needed no protection. For schemes that wait for each thread to say that it is
    /// between operations.
    #[inline(always)]
    fn quiescent(&mut self) {}

    /// Runs `pause`, in which the thread sleeps between operations.
    fn idle<R>(&mut self, pause: impl FnOnce() -> R) -> R {
        pause()
    }
}

/// The protection of one operation. Ends when dropped; references to nodes must be gone by then.
pub trait Guard {
    /// The pointer in `src`, tag bits included; its node, if any, stays alive until the slot is used again or cleared, or
    /// the guard is dropped. See the module for what the structure owes.
    ///
    /// Tag bits are the low bits that the type's alignment leaves. Acquire: pairs with whatever published the node.
    fn protect<T>(&mut self, slot: usize, src: &AtomicPtr<T>) -> *mut T;

    /// Whether `src` still holds `seen`, after the last `protect`. Schemes that protect everything need not know.
    fn unchanged<T>(&self, src: &AtomicPtr<T>, seen: *mut T) -> bool;

    /// Puts `node`, tag bits or not, into a slot, without making sure of anything; see the module. Not for following it
    /// before an exchange with Release has shown that it was not unlinked.
    fn announce<T>(&mut self, slot: usize, node: *mut T);

    /// Ends the protection of one slot early.
    fn clear(&mut self, slot: usize);

    /// Hands over an unlinked node, which is freed when nobody can have it any more.
    ///
    /// # Safety
    ///
    /// * It came from [`Scheme::alloc`] of this scheme, and is neither retired again nor freed.
    /// * It is unlinked: an operation that begins from now on cannot find it, and one that has begun validates.
    unsafe fn retire<T: Node>(&mut self, node: *mut T);
}

/// The bits of a `*mut T` that are no part of the address.
#[must_use]
pub const fn tag_bits<T>() -> usize {
    align_of::<T>() - 1
}

/// The pointer without its tag bits.
#[inline(always)]
#[must_use]
pub fn untagged<T>(pointer: *mut T) -> *mut T {
    pointer.map_addr(|address| address & !tag_bits::<T>())
}
