//! The per-CPU flavour as models have it: the product's domain behind the
//! product's surface, without the static that stands for unmade domains and
//! without making it at its first use.

#![allow(unreachable_pub)]

use crate::counters::Entered;
use crate::domain::Core;
use crate::flavor::surface;
use crate::queue::Callbacks;

/// A domain.
#[derive(Debug)]
pub struct Rcu {
    core: Core,
}

impl Rcu {
    /// A domain whose lines have been used before.
    pub(super) fn with_callbacks(callbacks: Callbacks) -> Self {
        let core = Core::new(callbacks);
        core.counters().open_all();
        Self { core }
    }

    /// There is none: a model makes its own.
    pub fn global() -> &'static Self {
        unreachable!("loom's atomics cannot be static")
    }

    /// Says that no reader exists: grace periods end at once, and without a
    /// barrier, which would order more than the model wants.
    pub(super) fn close(&self) {
        crate::queue::Domain::grace(&self.core).close();
    }

    fn core(&self) -> &Core {
        &self.core
    }

    /// Begins a section.
    pub fn read(&self) -> Guard<'_> {
        Guard {
            entered: super::enter(self.core.counters()),
            rcu: self,
        }
    }
}

surface!(
    Rcu,
    guard = Guard,
    covers = |rcu: &Rcu, guard: &Guard<'_>| core::ptr::eq(rcu, guard.rcu),
    inside = ""
);

/// A section.
#[derive(Debug)]
pub struct Guard<'a> {
    rcu: &'a Rcu,
    entered: Entered,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.rcu.core.counters().leave(self.entered);
    }
}
