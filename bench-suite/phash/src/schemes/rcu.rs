//! `rcu`: a read-side critical section around each operation.
//!
//! Floor 3 (`phash`). `rcu-lite`'s per-CPU flavour. Nobody sleeps inside: a waiter is queued, leaves, and sleeps then.

use super::at_once::AtOnce;
use crate::scheme::{About, Replaced, Replaces, Scheme};
use crate::table::Table;
use percpu::sync::atomic::{AtomicPtr, Ordering};
use refcounts::Thread;
use std::ops::Deref;
use std::time::Instant;

/// The pointer.
#[derive(Debug)]
pub struct Rcu {
    table: AtomicPtr<Table>,
    turn: AtOnce,
}

/// A section, and the table that was found in it.
#[derive(Debug)]
pub struct Section<'a> {
    table: *const Table,
    _section: rcu_lite::Guard<'a>,
}

impl Deref for Section<'_> {
    type Target = Table;

    #[inline(always)]
    fn deref(&self) -> &Table {
        // SAFETY: found in the section; what is replaced is freed after a grace period.
        unsafe { &*self.table }
    }
}

impl Scheme for Rcu {
    const ABOUT: About = About {
        name: "rcu",
        measures: "a read-side critical section of rcu-lite (per-CPU counters) around each operation",
        replaces: Replaces::AtOnce,
        percpu: true,
    };

    type Guard<'a> = Section<'a>;

    fn new(first: Table) -> Self {
        Rcu {
            table: AtomicPtr::new(Box::into_raw(Box::new(first))),
            turn: AtOnce::default(),
        }
    }

    #[inline(always)]
    fn protect<'a>(&'a self, _: &'a Thread) -> Section<'a> {
        let section = rcu_lite::Rcu::global().read();
        Section {
            // Acquire: pairs with "Publish".
            table: self.table.load(Ordering::Acquire),
            _section: section,
        }
    }

    fn replace(&self, thread: &Thread, next: Table, _: Option<Instant>) -> Replaced {
        self.turn.replace(
            || self.protect(thread),
            next,
            |next| {
                let next = Box::into_raw(Box::new(next));
                // AcqRel: Release is "Publish".
                let old = self.table.swap(next, Ordering::AcqRel);
                // SAFETY: from a box, taken out by this thread.
                unsafe { rcu_lite::Rcu::global().defer_free(old) };
            },
        )
    }

    fn flush(&self) {
        rcu_lite::Rcu::global().barrier();
    }
}

impl Drop for Rcu {
    fn drop(&mut self) {
        // Relaxed: nobody else is left.
        // SAFETY: from a box.
        drop(unsafe { Box::from_raw(self.table.load(Ordering::Relaxed)) });
    }
}
