//! Lock-free structures over hazard pointers, with a safe interface.
//!
//! Floor 2 (`hp`), safe level; feature `structures`. Built on the slots and the
//! global domain as [`Atomic`](crate::Atomic) is, and no part of what `hp`
//! itself needs.
//!
//! | | what | reading | writing |
//! |---|---|---|---|
//! | [`Stack`] | last in, first out | – | lock-free; one allocation a push |
//! | [`Map`] | hash map that grows | lock-free | lock-free; one allocation an insertion |
//!
//! **Nobody waits.** No operation takes a lock, and a thread that stops in the
//! middle of one holds up nobody. Growing a map copies nothing.
//!
//! **Bound.** What a thread can keep from being freed is what it protects: at
//! most three nodes inside an operation, one for an iterator, and those that it
//! holds guards of. Everything else that was removed is freed as the [`Domain`](crate::Domain) says, also
//! while a reader stalls for ever.
//!
//! **Guards have no lifetime.** A [`Guard`](crate::Guard) that a map returns
//! may outlive the entry and the map, be stored, and (if the value is `Sync`)
//! be sent.
//!
//! **User code.** `Hash`, `Eq`, closures and destructors may panic, and may use
//! the same structure: nothing is locked while they run, and nothing is half
//! done. A panic of a destructor that runs because memory is reclaimed goes to
//! the operation that reclaimed, as everywhere in `hp`, whose own effect stays.
//! Removed entries are dropped later and on any thread.

pub(crate) mod count;
pub(crate) mod keep;
pub(crate) mod list;
pub(crate) mod stack;
pub(crate) mod table;

#[cfg(all(doctest, not(loom)))]
mod compile_fail;
#[cfg(not(loom))]
mod map;
#[cfg(not(loom))]
mod map_iter;
#[cfg(not(loom))]
mod map_std;

#[cfg(not(loom))]
pub use map::Map;
#[cfg(not(loom))]
pub use map_iter::MapIter;
#[cfg(not(loom))]
pub use stack::{IntoIter as StackIntoIter, IterMut as StackIterMut, Stack, TakeAll};
