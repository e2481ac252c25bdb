//! `crossbeam-epoch`: a pinned participant for each operation.
//!
//! Floor 3 (`phash`).

use super::at_once::AtOnce;
use crate::scheme::{About, Replaced, Replaces, Scheme};
use crate::table::Table;
use crossbeam_epoch::{Atomic, Guard, Owned, pin};
use percpu::sync::atomic::Ordering;
use refcounts::Thread;
use std::ops::Deref;
use std::time::Instant;

/// The cell, in the default collector.
#[derive(Debug)]
pub struct Crossbeam {
    table: Atomic<Table>,
    turn: AtOnce,
}

/// A pinned participant, and the table that was found.
pub struct Pinned {
    table: *const Table,
    _guard: Guard,
}

impl Deref for Pinned {
    type Target = Table;

    #[inline(always)]
    fn deref(&self) -> &Table {
        // SAFETY: found while pinned; what is replaced is destroyed by deferral.
        unsafe { &*self.table }
    }
}

impl std::fmt::Debug for Pinned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Pinned").field(&**self).finish()
    }
}

impl Scheme for Crossbeam {
    const ABOUT: About = About {
        name: "crossbeam-epoch",
        measures: "crossbeam-epoch 0.9: pinned for each operation",
        replaces: Replaces::AtOnce,
        percpu: false,
    };

    type Guard<'a> = Pinned;

    fn new(first: Table) -> Self {
        Crossbeam {
            table: Atomic::new(first),
            turn: AtOnce::default(),
        }
    }

    #[inline(always)]
    fn protect<'a>(&'a self, _: &'a Thread) -> Pinned {
        let guard = pin();
        Pinned {
            // Acquire: pairs with "Publish".
            table: self.table.load(Ordering::Acquire, &guard).as_raw(),
            _guard: guard,
        }
    }

    fn replace(&self, thread: &Thread, next: Table, _: Option<Instant>) -> Replaced {
        let replaced = self.turn.replace(
            || self.protect(thread),
            next,
            |next| {
                let guard = pin();
                // AcqRel: Release is "Publish".
                let old = self.table.swap(Owned::new(next), Ordering::AcqRel, &guard);
                // SAFETY: taken out by this thread.
                unsafe { guard.defer_destroy(old) };
            },
        );
        // As `hp` does.
        self.flush();
        replaced
    }

    fn flush(&self) {
        pin().flush();
    }
}

impl Drop for Crossbeam {
    fn drop(&mut self) {
        let last = std::mem::take(&mut self.table);
        // SAFETY: nobody else is left, and the cell is never null.
        drop(unsafe { last.into_owned() });
    }
}
