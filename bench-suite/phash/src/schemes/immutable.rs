//! `immutable`: a pointer to a table, and the promise that it never changes.
//!
//! Floor 3 (`phash`). `perf bench futex hash -I`, on kernels that had it (6.16-rc).

use crate::scheme::{About, Replaced, Replaces, Scheme};
use crate::table::Table;
use percpu::sync::atomic::{AtomicPtr, Ordering};
use refcounts::Thread;
use std::time::Instant;

/// The pointer.
#[derive(Debug)]
pub struct Immutable(AtomicPtr<Table>);

impl Scheme for Immutable {
    const ABOUT: About = About {
        name: "immutable",
        measures: "a pointer to a table that is never replaced: no protection, the limit for all others",
        replaces: Replaces::Never,
        percpu: false,
    };

    type Guard<'a> = &'a Table;

    fn new(first: Table) -> Self {
        Immutable(AtomicPtr::new(Box::into_raw(Box::new(first))))
    }

    #[inline(always)]
    fn protect<'a>(&'a self, _: &'a Thread) -> &'a Table {
        // Acquire: as those do whose pointer changes.
        // SAFETY: from `new`, freed by `drop` alone.
        unsafe { &*self.0.load(Ordering::Acquire) }
    }

    fn replace(&self, _: &Thread, _: Table, _: Option<Instant>) -> Replaced {
        Replaced::Never
    }
}

impl Drop for Immutable {
    fn drop(&mut self) {
        // Relaxed: nobody else is left.
        // SAFETY: from `new`.
        drop(unsafe { Box::from_raw(self.0.load(Ordering::Relaxed)) });
    }
}
