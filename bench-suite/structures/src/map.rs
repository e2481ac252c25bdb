//! What the ordered list, the hash map and the skip list have in common.
//!
//! Floor 3 (`structures`). Owns the trait, what a scan tells, and the mark: the lowest bit of a node's own `next`. A marked
//! node is removed; its `next` is not changed any more.

use crate::{Census, Kind, Protects, Scheme, Thread};

/// What came of a walk over all elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    /// Elements visited.
    pub elements: u64,
    /// How often the way was lost, because the node stood on was removed, and had to be found again from the last key.
    /// Always 0 where a protection keeps everything.
    pub restarts: u64,
}

/// A map from numbers to numbers.
pub trait Map: Send + Sync + Sized + 'static {
    /// How its nodes are kept alive.
    type Scheme: Scheme;

    /// What a thread keeps between operations.
    type Thread<'a>: Thread
    where
        Self: 'a;

    /// Which structure it is.
    const KIND: Kind;

    /// Empty. `elements` are expected at a time (for a table's size); nodes are counted in `census`.
    fn new(elements: usize, census: &'static Census) -> Self;

    /// The calling thread's part.
    fn thread(&self) -> Self::Thread<'_>;

    /// The value under `key`.
    fn get(&self, thread: &mut Self::Thread<'_>, key: u64) -> Option<u64>;

    /// Puts `value` under `key`, if nothing is there; says whether it did.
    fn insert(&self, thread: &mut Self::Thread<'_>, key: u64, value: u64) -> bool;

    /// Takes out what is under `key`.
    fn remove(&self, thread: &mut Self::Thread<'_>, key: u64) -> Option<u64>;

    /// Visits all elements, in one operation: a long read. What is there all the time is visited exactly once; what comes or
    /// goes meanwhile, once or not at all. Keys ascend (in a hash map: within each chain).
    fn scan(&self, thread: &mut Self::Thread<'_>, visit: impl FnMut(u64, u64)) -> Scan;

    /// Runs `pause` while one of the elements, if there are any, is protected, then looks at it again.
    fn hold(&self, thread: &mut Self::Thread<'_>, pause: impl FnOnce());

    /// Frees what can be freed now; see [`Scheme::flush`].
    fn flush(&self);

    /// The scheme.
    fn scheme(&self) -> &Self::Scheme;
}

/// Whether an operation may walk over removed nodes: what its protection keeps includes them and all that they led to.
pub(crate) const fn keeps_everything<S: Scheme>() -> bool {
    matches!(S::ABOUT.protects, Protects::Everything | Protects::Nothing)
}

/// Whether a `next` says that its node is removed.
#[inline(always)]
pub(crate) fn is_marked<T>(next: *mut T) -> bool {
    next.addr() & 1 != 0
}

/// The same `next`, saying that its node is removed.
#[inline(always)]
pub(crate) fn marked<T>(next: *mut T) -> *mut T {
    next.map_addr(|address| address | 1)
}
