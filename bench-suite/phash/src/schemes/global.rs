//! `global`: one table that is there for ever, without a pointer to it.
//!
//! Floor 3 (`phash`). The kernel's table of all processes, until 6.15 and after `-b 0`; but of any number of buckets,
//! so that it can be compared.

use crate::scheme::{About, Replaced, Replaces, Scheme};
use crate::table::Table;
use refcounts::Thread;
use std::time::Instant;

/// The table itself.
#[derive(Debug)]
pub struct Global(Table);

impl Scheme for Global {
    const ABOUT: About = About {
        name: "global",
        measures: "one table for ever, no pointer to it: the kernel's shared table, here of any size",
        replaces: Replaces::Never,
        percpu: false,
    };

    type Guard<'a> = &'a Table;

    fn new(first: Table) -> Self {
        Global(first)
    }

    #[inline(always)]
    fn protect<'a>(&'a self, _: &'a Thread) -> &'a Table {
        &self.0
    }

    fn replace(&self, _: &Thread, _: Table, _: Option<Instant>) -> Replaced {
        Replaced::Never
    }
}
