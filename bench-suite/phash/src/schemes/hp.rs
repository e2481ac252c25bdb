//! `hp`: a hazard pointer to the table.
//!
//! Floor 3 (`phash`). One slot of the CPU is held for the length of an operation. A replacement publishes and scans.

use super::at_once::AtOnce;
use crate::scheme::{About, Replaced, Replaces, Scheme};
use crate::table::Table;
use refcounts::Thread;
use std::time::Instant;

/// The cell.
#[derive(Debug)]
pub struct Hp {
    table: hp::Atomic<Table>,
    turn: AtOnce,
}

impl Scheme for Hp {
    const ABOUT: About = About {
        name: "hp",
        measures: "a hazard pointer in a per-CPU slot, held for each operation; replacements publish and scan",
        replaces: Replaces::AtOnce,
        percpu: true,
    };

    type Guard<'a> = hp::Guard<Table>;

    fn new(first: Table) -> Self {
        Hp {
            table: hp::Atomic::new(first),
            turn: AtOnce::default(),
        }
    }

    #[inline(always)]
    fn protect<'a>(&'a self, _: &'a Thread) -> hp::Guard<Table> {
        match self.table.load() {
            Some(table) => table,
            None => unreachable!("never null"),
        }
    }

    fn replace(&self, thread: &Thread, next: Table, _: Option<Instant>) -> Replaced {
        let replaced =
            self.turn
                .replace(|| self.protect(thread), next, |next| self.table.store(next));
        // A table is large: do not let several wait until a pass is worth it.
        self.flush();
        replaced
    }

    fn flush(&self) {
        hp::Domain::global().reclaim(usize::MAX);
    }
}
