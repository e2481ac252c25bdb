//! `split-count`: references counted in the pointer's own word, and in the table when they leave.
//!
//! Floor 3 (`phash`). Does not wait for a count of zero to replace: who leaves the old table last frees it.

use super::at_once::AtOnce;
use crate::scheme::{About, Replaced, Replaces, Scheme};
use crate::table::Table;
use refcounts::Thread;
use refcounts::split::{Loaded, Slot};
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::time::Instant;

/// The cell.
#[derive(Debug)]
pub struct SplitCount {
    table: Slot<Table>,
    turn: AtOnce,
}

/// A reference, which goes back to the cell.
#[derive(Debug)]
pub struct Reference<'a> {
    home: &'a Slot<Table>,
    table: ManuallyDrop<Loaded<Table>>,
}

impl Deref for Reference<'_> {
    type Target = Table;

    #[inline(always)]
    fn deref(&self) -> &Table {
        &self.table
    }
}

impl Drop for Reference<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: taken once, here.
        let table = unsafe { ManuallyDrop::take(&mut self.table) };
        self.home.release(table);
    }
}

impl Scheme for SplitCount {
    const ABOUT: About = About {
        name: "split-count",
        measures: "a reference counted in the pointer's word: one addition, one compare-exchange, on one line",
        replaces: Replaces::AtOnce,
        percpu: false,
    };

    type Guard<'a> = Reference<'a>;

    fn new(first: Table) -> Self {
        SplitCount {
            table: Slot::new(first),
            turn: AtOnce::default(),
        }
    }

    #[inline(always)]
    fn protect<'a>(&'a self, _: &'a Thread) -> Reference<'a> {
        match self.table.load() {
            Some(table) => Reference {
                home: &self.table,
                table: ManuallyDrop::new(table),
            },
            None => unreachable!("never empty"),
        }
    }

    fn replace(&self, thread: &Thread, next: Table, _: Option<Instant>) -> Replaced {
        self.turn.replace(
            || self.protect(thread),
            next,
            |next| {
                self.table.replace(next);
            },
        )
    }
}
