//! `sdd`: scalable delayed deallocation, an epoch scheme.
//!
//! Floor 3 (`structures`). May touch the `sdd` crate.
//!
//! The crate retires what it has allocated without a further allocation, and arbitrary closures with one. So nodes are
//! allocated by it, and each keeps the crate's handle behind it, one word, from which the owner is made again when the
//! node is retired.

use super::section::only_loads;
use crate::scheme::{Guard, Scheme, Thread};
use crate::{About, Node, Protects};
use ::sdd::{Owned, RawPtr};
use std::mem::MaybeUninit;

/// A node, first, so that its address is this one's too; and how to own it again.
#[repr(C)]
struct Kept<T: 'static> {
    node: T,
    me: MaybeUninit<RawPtr<'static, Kept<T>>>,
}

/// Nothing of its own: the crate's collectors belong to threads.
#[derive(Debug)]
pub struct Sdd;

/// The owner of a node.
///
/// # Safety
///
/// The node came from `alloc`, and this is called once.
#[inline(always)]
unsafe fn owner<T: Node>(node: *mut T) -> Option<Owned<Kept<T>>> {
    // SAFETY: a node is the first member of what `alloc` made, which filled in `me`.
    unsafe { Owned::from_raw((*node.cast::<Kept<T>>()).me.assume_init()) }
}

impl Scheme for Sdd {
    const ABOUT: About = About::new(
        "sdd",
        Protects::Everything,
        "sdd 4: guard, loads, drop; nodes are allocated by the crate, plus one word",
        "per operation: a Guard, with the thread's cached collector",
    );

    type Thread<'a, const K: usize> = Reader;

    fn new() -> Self {
        Sdd
    }

    fn thread<const K: usize>(&self) -> Reader {
        Reader
    }

    #[inline(always)]
    fn alloc<T: Node>(node: T) -> *mut T {
        let owned = Owned::new(Kept {
            node,
            me: MaybeUninit::uninit(),
        });
        let kept = owned.as_ptr().cast_mut();
        let raw = owned.into_raw();
        // SAFETY: just made, and not published.
        unsafe { (*kept).me.write(raw) };
        kept.cast()
    }

    unsafe fn free<T: Node>(node: *mut T) {
        // SAFETY: the caller's: nobody else has it.
        if let Some(owner) = unsafe { owner(node) } {
            // SAFETY: as above.
            unsafe { owner.drop_in_place() };
        }
    }

    fn flush(&self) {
        // Each moves the epoch by one at most; a node waits for three.
        for _ in 0..4 {
            let guard = ::sdd::Guard::new();
            guard.set_has_garbage();
            guard.accelerate();
        }
    }
}

/// Nothing: the crate finds the thread's collector.
#[derive(Debug)]
pub struct Reader;

impl Thread for Reader {
    type Guard<'g> = Inside;

    #[inline(always)]
    fn pin(&mut self) -> Inside {
        Inside(::sdd::Guard::new())
    }
}

/// A guard of the crate.
#[derive(Debug)]
pub struct Inside(::sdd::Guard);

impl Guard for Inside {
    only_loads!();

    #[inline(always)]
    unsafe fn retire<T: Node>(&mut self, node: *mut T) {
        let _ = &self.0;
        // SAFETY: the caller's. Dropping the owner hands the node to the thread's collector.
        drop(unsafe { owner(node) });
    }
}
