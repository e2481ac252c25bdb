//! `arc`: the cell of `arc-swap`, whose readers count references or owe them.
//!
//! Floor 3 (`structures`). May touch the `arc-swap` crate. A cell of its own and no [`Scheme`](crate::Scheme): references
//! are taken through the crate's cell, not through a pointer word in which a structure could keep a mark.

use crate::cell::{Cell, Object};
use crate::{About, Census, Protects, Support};
use arc_swap::ArcSwap;
use std::fmt;
use std::sync::Arc;

/// What people should know of it.
pub(super) const ABOUT: About = About {
    linked: Support::No(
        "references are counted through arc-swap's own cell, not through a pointer word in which linked structures keep their marks",
    ),
    ..About::new(
        "arc",
        Protects::Counted,
        "arc-swap 1: `ArcSwap::load`, the old object dropped with its last reference",
        "per operation: a Guard, with the thread's cached debt list",
    )
};

/// The cell.
pub struct ArcCell {
    object: ArcSwap<Object>,
    census: &'static Census,
}

impl fmt::Debug for ArcCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ArcCell")
    }
}

impl Cell for ArcCell {
    const ABOUT: About = ABOUT;

    type Thread<'a> = ();

    fn new(first: u64, census: &'static Census) -> Self {
        ArcCell {
            object: ArcSwap::from_pointee(Object::new(first, census)),
            census,
        }
    }

    fn thread(&self) {}

    #[inline]
    fn get(&self, thread: &mut ()) -> u64 {
        self.hold(thread, || ())
    }

    #[inline]
    fn swap(&self, (): &mut (), value: u64) -> u64 {
        let new = Arc::new(Object::new(value, self.census));
        self.object.swap(new).value
    }

    fn idle<R>((): &mut (), pause: impl FnOnce() -> R) -> R {
        pause()
    }

    #[inline(always)]
    fn hold(&self, (): &mut (), pause: impl FnOnce()) -> u64 {
        let object = self.object.load();
        pause();
        self.census.look(&object.life);
        object.value
    }

    fn flush(&self) {}
}
