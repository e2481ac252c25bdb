//! Floor 3, bench-suite. Owns the variant `kovan`: wait-free reclamation with eras and per-slot batches.
//! May touch the `kovan` crate.

use super::{About, Object, Scheme};
use kovan::{Atomic, RetiredNode, Shared, flush, pin, retire};
use std::fmt;
use std::sync::atomic::Ordering;

/// The low-level layout that the crate asks for: its link comes first.
#[repr(C)]
struct Node {
    link: RetiredNode,
    object: Object,
}

fn node(object: Object) -> *mut Node {
    Box::into_raw(Box::new(Node {
        link: RetiredNode::new(),
        object,
    }))
}

/// A cell at the low level of the crate (`pin`, `load`, `retire`).
pub(crate) struct Kovan(Atomic<Node>);

impl fmt::Debug for Kovan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Kovan")
    }
}

impl Scheme for Kovan {
    const ABOUT: About = About::new(
        "kovan",
        "kovan 0.2.0: pin, load, unpin (later versions need a newer compiler)",
        "per operation: `pin()` with the thread's cached handle",
    );

    type Reader<'a> = ();

    fn new(first: Object) -> Self {
        Kovan(Atomic::new(node(first)))
    }

    fn reader(&self) {}

    #[inline(always)]
    fn read(&self, _: &mut ()) -> bool {
        let guard = pin();
        // SAFETY: the cell is never null and what it held is retired to `kovan`, so `guard` keeps it alive.
        unsafe { self.0.load(Ordering::Acquire, &guard).deref() }
            .object
            .is_alive()
    }

    fn hold(&self, _: &mut (), inside: impl FnOnce()) -> bool {
        let guard = pin();
        let node = self.0.load(Ordering::Acquire, &guard);
        inside();
        // SAFETY: as in `read`; the guard is alive to the end of the function.
        let alive = unsafe { node.deref() }.object.is_alive();
        drop(guard);
        alive
    }

    #[inline]
    fn write(&self, object: Object) {
        let guard = pin();
        // SAFETY: the pointer comes from `Box::into_raw` and is not shared yet.
        let new = unsafe { Shared::from_raw(node(object)) };
        let old = self.0.swap(new, Ordering::AcqRel, &guard);
        // SAFETY: the swap unlinked `old`; it starts with its `RetiredNode`, came from `Box::into_raw`, and is retired
        // once. `Object` may be dropped by any thread.
        unsafe { retire(old.as_raw()) };
    }

    fn pass(&self) {
        flush();
    }
}

impl Drop for Kovan {
    fn drop(&mut self) {
        let guard = pin();
        let last = self.0.load(Ordering::Acquire, &guard).as_raw();
        // SAFETY: `&mut self` proves that no reader or writer is left, and the pointer came from `Box::into_raw`.
        let last = unsafe { Box::from_raw(last) };
        let _ = &last.link;
    }
}
