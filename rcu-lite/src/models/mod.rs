//! loom models of this crate, on its own code.
//!
//! Floor 2 (`rcu-lite`), compiled for tests under `--cfg loom` only. Each model
//! is a tiny program (one section, one unlinking) that runs in every order that
//! loom finds, on each rung that it applies to, with every assignment of its
//! roles to threads. What the words, barriers and sections are made of is in
//! `percpu::sim`; what loom cannot see is pinned in `percpu`'s `models::l0`.
//!
//! | module | what |
//! |---|---|
//! | `l10a` | readers counted a CPU, or in a shared line, against a grace period |
//! | `l10b` | records of threads, and announced quiescent states, against a grace period; records that change hands |
//! | `l10c` | grace periods that are shared, left half-way, polled |
//! | `l11` | callbacks against passes, barriers and readers; a worker that leaves |
//! | `l13` | threads that exit with callbacks queued, domains that end |
//! | `cell`, `list` | publication, in the safe structures |
//!
//! L13's other half, a reference count whose kill races with a get, has no
//! counterpart here: this crate counts readers and not references.
//!
//! Payloads are loom's cells, never atomics: freeing writes poison, and loom
//! reports a race where an atomic flag would need an outcome that loom never
//! produces.

mod cell;
mod l10a;
mod l10b;
mod l10c;
mod l11;
mod l13;
mod list;
mod rcu;

#[allow(unreachable_pub)]
pub use rcu::Rcu;

use crate::counters::{Counters, Entered};
use crate::grace::{Grace, Readers};
use core::ptr;
use percpu::barrier::Rung;
use percpu::sim::Plan;
use percpu::sync::UnsafeCell;
use percpu::sync::atomic::{AtomicPtr, Ordering};

const POISON: u32 = 0xdead;

/// An object: 0 before it is initialised, [`POISON`] when freed.
struct Node {
    value: UnsafeCell<u32>,
}

// SAFETY: loom checks.
unsafe impl Sync for Node {}

impl Node {
    /// An initialised object. (In a box: its address is what readers find.)
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

    fn at(address: *mut Node) -> &'static Self {
        // SAFETY: the state of the model owns the node and outlives its roles.
        unsafe { address.as_ref() }.expect("never null")
    }

    fn address(&self) -> *mut Node {
        ptr::from_ref(self).cast_mut()
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

    /// As what a callback does.
    fn to_free(&self) -> impl FnOnce() + Send + 'static + use<> {
        let node = Node::at(self.address());
        move || node.free()
    }

    fn is_freed(&self) -> bool {
        // SAFETY: loom checks.
        self.value.with(|v| unsafe { *v == POISON })
    }
}

/// Where readers look, and what they find there one after the other.
struct Source {
    src: AtomicPtr<Node>,
    nodes: [Box<Node>; 3],
}

impl Source {
    fn new() -> Self {
        let nodes = [Node::new(1), Node::new(2), Node::new(3)];
        Self {
            src: AtomicPtr::new(nodes[0].address()),
            nodes,
        }
    }

    /// What a reader does in its section.
    fn read(&self) {
        // Acquire: the objects' publication is not what is modelled.
        Node::at(self.src.load(Ordering::Acquire)).read();
    }

    /// Puts object `n` in; the object that was there.
    fn unlink(&self, n: usize) -> &'static Node {
        // AcqRel: as above.
        Node::at(self.src.swap(self.nodes[n].address(), Ordering::AcqRel))
    }
}

/// Counters whose lines have been used before.
fn opened() -> Box<Counters> {
    let counters = Box::new(Counters::new());
    counters.open_all();
    counters
}

/// Begins a section, as `Rcu::read` does.
fn enter(counters: &Counters) -> Entered {
    counters.enter().unwrap_or_else(|| counters.enter_cold())
}

/// As `synchronize`.
fn synchronize(grace: &Grace, readers: &impl Readers) {
    let target = grace.snap();
    grace.wait(readers, target, None).expect("no deadline");
}

/// As `start_poll` and one `poll`: whether a grace period is over.
fn poll(grace: &Grace, readers: &impl Readers) -> bool {
    let target = grace.snap();
    grace.advance(readers, target)
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
