//! loom models of this crate, on its own code.
//!
//! Floor 2 (`hp`), compiled for tests under `--cfg loom` only. Each model is a
//! tiny program (one protection, one unlinking) that runs in every order that
//! loom finds, on each rung that it applies to, with every assignment of its
//! roles to threads. What the words, barriers and sections are made of is in
//! `percpu::sim`; what loom cannot see is pinned in `percpu`'s `models::l0`.
//!
//! | module | what |
//! |---|---|
//! | `l1` | protect and clear against unlink, barrier, scan, free |
//! | `l2` | a slot that changes hands, with a scan |
//! | `l3` | records and pool slots that come into use, with a scan |
//! | `l4` | a record that a new thread takes over |
//! | `l5` | moving and cloning a protection, with a scan |
//! | `l6` | retiring, reclaiming and draining at the same time |
//! | `l7` | deleters that retire, protect and reclaim |
//! | `l8` | the end of a domain with a guard alive |
//! | `l14` | what the returned pointer promises about the object |
//! | `l15` | the stack of `structures` |
//! | `l16` | the list of `structures`: insert, replace, remove, walk |
//! | `l17` | the buckets of `structures` |
//!
//! L9 (the choice of the rung) and the first use of a CPU's line are in
//! `percpu`. There is no ABA model (L4): no free list exists.
//!
//! Payloads are loom's cells, never atomics: freeing writes poison, and loom
//! reports a race where an atomic flag would need an outcome that loom never
//! produces.

mod keeper;
mod l1;
mod l14;
mod l15;
mod l16;
mod l17;
mod l2;
mod l3;
mod l4;
mod l5;
mod l6;
mod l7;
mod l8;

use crate::overflow::Thread;
use crate::retired::Retired;
use crate::slot::{FREE, SLOTS_PER_CPU, SlotRef};
use crate::slots::{ALL_BITS, Slots};
use core::cell::Cell;
use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};
use percpu::barrier::{Rung, heavy};
use percpu::sim::Plan;
use percpu::sync::UnsafeCell;
use percpu::sync::atomic::AtomicPtr;

const POISON: u32 = 0xdead;

/// An object: 0 before it is initialised, [`POISON`] when freed.
struct Node {
    value: UnsafeCell<u32>,
}

impl Node {
    /// An initialised object. (In a box: its address is what slots hold.)
    fn new(value: u32) -> Box<Self> {
        Box::new(Self {
            value: UnsafeCell::new(value),
        })
    }

    /// An object that its publisher has yet to initialise.
    fn blank() -> Box<Self> {
        Self::new(0)
    }

    fn init(&self, value: u32) {
        // SAFETY: loom checks.
        self.value.with_mut(|v| unsafe { *v = value });
    }

    fn at(address: NonNull<()>) -> &'static Self {
        // SAFETY: the state of the model owns the node and outlives its roles.
        unsafe { address.cast().as_ref() }
    }

    fn address(&self) -> *mut () {
        ptr::from_ref(self).cast_mut().cast()
    }

    fn addr(&self) -> usize {
        self.address().addr()
    }

    /// What a reader does with the object.
    fn read(&self) -> u32 {
        // SAFETY: loom checks.
        let value = self.value.with(|v| unsafe { *v });
        assert_ne!(value, POISON, "use after free");
        assert_ne!(value, 0, "use before initialisation");
        value
    }

    fn free(&self) {
        // SAFETY: loom checks.
        self.value.with_mut(|v| unsafe {
            assert_ne!(*v, POISON, "freed twice");
            *v = POISON;
        });
    }

    fn is_freed(&self) -> bool {
        // SAFETY: loom checks.
        self.value.with(|v| unsafe { *v == POISON })
    }

    /// As an object that waits to be freed.
    fn retired(&self) -> Retired {
        unsafe fn run(address: *mut (), _: MaybeUninit<*mut ()>) {
            if let Some(address) = NonNull::new(address) {
                Node::at(address).free();
            }
        }
        // SAFETY: the deleter works on any thread; models retire once.
        unsafe { Retired::with(self.address(), ptr::null_mut(), run) }
    }
}

/// A cell that holds `node`.
fn holding(node: &Node) -> AtomicPtr<()> {
    AtomicPtr::new(node.address())
}

/// Slots whose lines have been used before. (In a box: guards that are taken
/// before the roles start point into them.)
fn opened() -> Box<Slots> {
    let slots = Box::new(Slots::new());
    for cpu in 0..percpu::line::MAX_LINES {
        slots.parts().0.activate(cpu, SLOTS_PER_CPU, FREE);
    }
    slots
}

/// Slots that no thread has used: a scan of them is short.
fn unused() -> Box<Slots> {
    Box::new(Slots::new())
}

/// A thread that has a record already.
fn with_record(slots: &Slots) -> Thread {
    let thread = Thread::new();
    slots.hold(&thread, crate::slot::RESERVED).release();
    thread
}

/// A thread that can have no record.
fn without_record() -> Thread {
    let thread = Thread::new();
    thread.leave();
    thread
}

/// Protects, expecting an object.
fn protect(slots: &Slots, thread: &Thread, src: &AtomicPtr<()>) -> SlotRef {
    let (slot, _) = slots
        .protect_with(thread, src, ALL_BITS)
        .expect("a value to protect");
    slot
}

/// A slot between roles or between setup and a role.
struct Kept(Cell<Option<SlotRef>>);

impl Kept {
    fn new(slot: SlotRef) -> Self {
        Self(Cell::new(Some(slot)))
    }

    fn take(&self) -> SlotRef {
        self.0.take().expect("taken once")
    }
}

/// The reclaimer's side for an object that is unlinked: barrier, scan, and
/// free it if no slot holds it.
fn free_if_unprotected(slots: &Slots, address: *mut ()) {
    heavy().unwrap();
    if let Some(address) = NonNull::new(address)
        && !slots.is_protected(address.addr().get())
    {
        Node::at(address).free();
    }
}

/// Every rung, with plans for the one that has sections.
fn on_all_rungs(
    model: &'static percpu::sim::harness::Model<impl Sized>,
    plans: &[&'static [Plan]],
) {
    for plans in plans {
        model.check_with(Rung::Rseq, plans);
    }
    model.check_portable();
}
