//! `seize`: entered for each operation.
//!
//! Floor 3 (`phash`).

use super::at_once::AtOnce;
use crate::scheme::{About, Replaced, Replaces, Scheme};
use crate::table::Table;
use ::seize::{Collector, Guard, LocalGuard, reclaim};
use percpu::sync::atomic::{AtomicPtr, Ordering};
use refcounts::Thread;
use std::ops::Deref;
use std::time::Instant;

/// The pointer, and a collector.
#[derive(Debug)]
pub struct Seize {
    collector: Collector,
    table: AtomicPtr<Table>,
    turn: AtOnce,
}

/// Entered, and the table that was found.
#[derive(Debug)]
pub struct Entered<'a> {
    table: *const Table,
    _guard: LocalGuard<'a>,
}

impl Deref for Entered<'_> {
    type Target = Table;

    #[inline(always)]
    fn deref(&self) -> &Table {
        // SAFETY: protected by the guard; what is replaced is retired to its collector.
        unsafe { &*self.table }
    }
}

impl Scheme for Seize {
    const ABOUT: About = About {
        name: "seize",
        measures: "seize 0.5: a collector entered for each operation",
        replaces: Replaces::AtOnce,
        percpu: false,
    };

    type Guard<'a> = Entered<'a>;

    fn new(first: Table) -> Self {
        Seize {
            collector: Collector::new(),
            table: AtomicPtr::new(Box::into_raw(Box::new(first))),
            turn: AtOnce::default(),
        }
    }

    #[inline(always)]
    fn protect<'a>(&'a self, _: &'a Thread) -> Entered<'a> {
        let guard = self.collector.enter();
        Entered {
            // Acquire: pairs with "Publish".
            table: guard.protect(&self.table, Ordering::Acquire),
            _guard: guard,
        }
    }

    fn replace(&self, thread: &Thread, next: Table, _: Option<Instant>) -> Replaced {
        let replaced = self.turn.replace(
            || self.protect(thread),
            next,
            |next| {
                let next = Box::into_raw(Box::new(next));
                // AcqRel: Release is "Publish".
                let old = self.table.swap(next, Ordering::AcqRel);
                // SAFETY: from a box, taken out by this thread, which uses it under its own guard only.
                unsafe { self.collector.retire(old, reclaim::boxed) };
            },
        );
        // As `hp` does.
        self.flush();
        replaced
    }

    fn flush(&self) {
        self.collector.enter().flush();
    }
}

impl Drop for Seize {
    fn drop(&mut self) {
        // Relaxed: nobody else is left.
        // SAFETY: from a box.
        drop(unsafe { Box::from_raw(self.table.load(Ordering::Relaxed)) });
    }
}
