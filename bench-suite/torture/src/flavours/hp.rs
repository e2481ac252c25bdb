//! The safe level of `hp`: guards.
//!
//! Floor 3. The cell owns loans of elements, whose destructor says that they
//! are reclaimed.

use super::{Flavour, Parcel};
use crate::world::{Element, World};
use hp::{Atomic, Domain, Guard, Unlinked};
use std::time::Duration;

/// What the cell owns. The box is freed by hp, the element never.
pub(super) struct Loan {
    element: &'static Element,
    world: &'static World,
}

impl Drop for Loan {
    fn drop(&mut self) {
        self.world.reclaimed(self.element);
    }
}

/// See the module.
pub(super) struct Hp {
    world: &'static World,
    cell: Atomic<Loan>,
    domain: Domain,
}

impl Hp {
    fn unlinked(&self, old: Option<Unlinked<Loan>>) -> Option<Unlinked<Loan>> {
        let old = old?;
        self.world.unlinked(old.element);
        Some(old)
    }
}

impl Flavour for Hp {
    /// Guards of [`many`](Flavour::many).
    type Thread = Vec<Guard<Loan>>;

    const READS: &'static [&'static str] = &["load", "detach", "clone", "detach and clone", "map"];
    const UPDATES: &'static [&'static str] = &["into_box", "retire_in", "drop", "try_into_box"];

    fn new(world: &'static World) -> Self {
        Self {
            world,
            cell: Atomic::null(),
            domain: Domain::new(),
        }
    }

    fn begin(&self) -> Self::Thread {
        // For protections in a handler.
        hp::init_thread();
        Vec::with_capacity(64)
    }

    fn inside(&self, _: &mut Self::Thread, how: usize, visit: &mut dyn FnMut(&'static Element)) {
        let Some(mut guard) = self.cell.load() else {
            return;
        };
        match how {
            1 => {
                guard.detach();
                visit(guard.element);
            }
            2 => {
                let clone = guard.clone();
                drop(guard);
                visit(clone.element);
            }
            3 => {
                guard.detach();
                let clone = guard.clone();
                drop(clone);
                visit(guard.element);
            }
            4 => {
                let part = guard.map(|loan| &loan.element);
                visit(*part);
            }
            _ => visit(guard.element),
        }
    }

    fn many(
        &self,
        guards: &mut Self::Thread,
        count: usize,
        visit: &mut dyn FnMut(&[&'static Element]),
    ) {
        guards.extend((0..count).filter_map(|_| self.cell.load()));
        let elements: Vec<_> = guards.iter().map(|guard| guard.element).collect();
        visit(&elements);
        guards.clear();
    }

    fn parcel(&self, _: &mut Self::Thread) -> Option<Parcel> {
        let guard = self.cell.load()?;
        Some(Parcel {
            element: guard.element,
            hold: Box::new(guard),
        })
    }

    fn in_handler(&self, visit: &mut dyn FnMut(&'static Element)) {
        if let Some(guard) = self.cell.load() {
            visit(guard.element);
        }
    }

    fn update(&self, element: &'static Element, how: usize) {
        let world = self.world;
        let Some(old) = self.unlinked(self.cell.swap(Loan { element, world })) else {
            return;
        };
        match how {
            1 => old.retire_in(&self.domain),
            2 => drop(old),
            3 => {
                let mut old = old;
                loop {
                    match old.try_into_box(Duration::from_micros(300)) {
                        Ok(loan) => break drop(loan),
                        Err(again) => old = again,
                    }
                }
            }
            _ => drop(old.into_box()),
        }
    }

    fn flush(&self) {
        self.domain.drain();
        Domain::global().drain();
    }

    fn finish(&self) {
        drop(self.unlinked(self.cell.take()));
        self.flush();
    }

    fn facts(&self) -> Vec<(&'static str, u64)> {
        facts(&self.domain)
    }
}

/// What the domain and the global one counted.
pub(super) fn facts(domain: &Domain) -> Vec<(&'static str, u64)> {
    let (own, global) = (domain.stats(), Domain::global().stats());
    vec![
        ("scans", own.scans + global.scans),
        ("heavy_barriers", own.heavy_barriers + global.heavy_barriers),
        ("overflow_acquires", global.overflow_acquires),
        (
            "barrier_failures",
            own.barrier_failures + global.barrier_failures,
        ),
        ("pending", own.pending + global.pending),
    ]
}
