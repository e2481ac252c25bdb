//! loom models of structures that use this crate through its public interface.
//!
//! Floor 2 (`hp`), compiled under `--cfg loom` only; for tests, and outside of
//! what versions promise. Owns what stands for the statics of the process in
//! one execution of a model, and the memory of objects that were dropped.
//!
//! Under `--cfg loom` the crate has its structure level, on loom's atomics:
//! [`HazardPointer`](crate::HazardPointer), [`Domain`](crate::Domain),
//! [`synchronize`](crate::synchronize), [`scan`](crate::scan),
//! [`light_barrier`](crate::light_barrier), [`ptr_eq`](crate::ptr_eq). The safe
//! and the kernel level, the limits of time, and forks are left out. Sizes are
//! small (one slot a record), and domains are bags without steps of their own:
//! what they do in earnest is the business of this crate's own models, and
//! would multiply what loom has to explore in yours. A retirement is followed
//! by a pass at once, over what the same role has retired; in a domain of
//! [`Domain::manual`](crate::Domain::manual) it is not, until the role asks.
//!
//! How to use it: the chapter *Verifying your own structure with loom*.

use crate::reclaim::Counters;
use crate::retired::Retired;
use crate::slots::Slots;
use core::cell::{Cell, RefCell};
use percpu::barrier::{BarrierLost, Rung, heavy};
pub use percpu::sim::{CPU0, CPU1, CUT, MOVED, Plan, Step, WANDERS};
use percpu::sim::{harness, place};
use std::alloc::Layout;

/// The statics of one execution.
pub(crate) struct Statics {
    pub(crate) slots: Slots,
    pub(crate) global: Bag,
    graves: RefCell<Vec<(*mut u8, Layout)>>,
}

impl Statics {
    fn new() -> Self {
        Self {
            slots: Slots::new(),
            global: Bag::new(false),
            graves: RefCell::default(),
        }
    }
}

impl Drop for Statics {
    fn drop(&mut self) {
        for (memory, layout) in self.graves.take() {
            // SAFETY: from a box of this layout, whose value was dropped.
            unsafe { std::alloc::dealloc(memory, layout) };
        }
    }
}

pub(crate) fn statics() -> &'static Statics {
    percpu::sim::statics(Statics::new)
}

/// A domain's inside: a bag for each role. Only who retired an object reclaims
/// it, or `after` does; so nothing here has to carry one role's past to another,
/// and nothing does by accident.
#[derive(Debug)]
pub(crate) struct Bag {
    manual: bool,
    waiting: [RefCell<Vec<Retired>>; 4],
    counters: Cell<Counters>,
}

// SAFETY: loom runs one thread at a time, and all of them on one of the system's.
unsafe impl Sync for Bag {}

impl Bag {
    pub(crate) fn new(manual: bool) -> Self {
        Self {
            manual,
            waiting: Default::default(),
            counters: Cell::default(),
        }
    }

    fn count(&self, change: impl FnOnce(&mut Counters)) {
        let mut counters = self.counters.get();
        change(&mut counters);
        self.counters.set(counters);
    }

    pub(crate) fn retire(&self, slots: &Slots, object: Retired) {
        self.count(|counters| counters.retired += 1);
        self.waiting[place().0].borrow_mut().push(object);
        if !self.manual {
            // A pass within a deleter's pass: the outer one looks again.
            let _ = self.drain(slots);
        }
    }

    pub(crate) fn reclaim(&self, slots: &Slots, budget: usize) -> Result<usize, BarrierLost> {
        let (me, others) = place();
        let bags = if others {
            me..me + 1
        } else {
            0..self.waiting.len()
        };
        let mut batch: Vec<_> = bags.flat_map(|n| self.waiting[n].take()).collect();
        if batch.is_empty() {
            return Ok(0);
        }
        heavy()?;
        self.count(|counters| {
            counters.scans += 1;
            counters.heavy += 1;
        });
        let mut freed = 0;
        for object in batch.drain(..) {
            if freed == budget || slots.is_protected(object.address()) {
                self.waiting[me].borrow_mut().push(object);
            } else {
                freed += 1;
                self.count(|counters| counters.reclaimed += 1);
                // SAFETY: unlinked before it was retired, the barrier came
                // after, and no slot holds it.
                unsafe { object.reclaim() };
            }
        }
        Ok(freed)
    }

    pub(crate) fn drain(&self, slots: &Slots) -> Result<usize, BarrierLost> {
        self.reclaim(slots, usize::MAX)
    }

    pub(crate) fn counters(&self) -> Counters {
        self.counters.get()
    }

    pub(crate) fn take_all(&mut self) -> Vec<Retired> {
        self.waiting.iter().flat_map(RefCell::take).collect()
    }

    pub(crate) fn adopt(&self, objects: Vec<Retired>) {
        self.count(|counters| counters.retired += objects.len() as u64);
        self.waiting[place().0].borrow_mut().extend(objects);
    }

    pub(crate) fn pending_bound(_: usize) -> usize {
        usize::MAX
    }
}

/// Drops a boxed object and keeps its memory until the execution is over.
///
/// # Safety
///
/// `object` came from a box, and nobody else drops it.
pub(crate) unsafe fn bury<T: ?Sized>(object: *mut T) {
    // SAFETY: the caller's word.
    let layout = unsafe { Layout::for_value(&*object) };
    // SAFETY: the caller's word.
    unsafe { core::ptr::drop_in_place(object) };
    if layout.size() > 0 {
        statics().graves.borrow_mut().push((object.cast(), layout));
    }
}

/// A small program that runs in every order that loom finds, on every rung, and
/// with every assignment of its roles to threads.
///
/// `setup` makes the state before any thread exists; the roles, two to four of
/// them, run at the same time; `after` runs when all have finished.
#[derive(Debug)]
pub struct Model<S: 'static> {
    inner: harness::Model<S>,
}

/// Roles on CPUs in turn. (Protections of the structure level are in overflow
/// slots, so which CPU is of little interest; barriers walk all of them.)
static PLANS: [Plan; 4] = [CPU0, CPU1, CPU0, CPU1];

impl<S: 'static> Model<S> {
    /// A model that is called `name` where it is printed.
    ///
    /// # Panics
    ///
    /// Without two to four roles.
    #[must_use]
    pub const fn new(
        name: &'static str,
        setup: fn() -> S,
        roles: &'static [fn(&S)],
        after: fn(&S),
    ) -> Self {
        assert!(roles.len() >= 2 && roles.len() <= 4, "two to four roles");
        Self {
            inner: harness::Model {
                name,
                rung: Rung::Rseq,
                plans: &[],
                setup,
                roles,
                after,
            },
        }
    }

    /// Runs it: all of it, on every rung.
    ///
    /// # Panics
    ///
    /// If a role panics in one of the executions, loom finds a race, a deadlock
    /// or a loop without end, or the environment limits loom (which would then
    /// stop early and report success).
    pub fn check(&'static self) {
        self.run(None);
    }

    /// [`check`](Self::check) for a program that is too large: only executions
    /// with at most `bound` preemptions. A search and no proof; it says so.
    pub fn search(&'static self, bound: usize) {
        self.run(Some(bound));
    }

    fn run(&'static self, bound: Option<usize>) {
        let plans = &PLANS[..self.inner.roles.len()];
        let prepare = || {
            statics();
        };
        for rung in [Rung::Rseq, Rung::Membarrier, Rung::Fence] {
            self.inner.run_prepared(rung, plans, bound, prepare);
        }
    }
}
