//! `rcu`, `rcu-thread`: a read-side critical section of `rcu-lite` around each operation.
//!
//! Floor 3 (`structures`). Both use the flavour's process-wide domain, as programs do.

use super::section::only_loads;
use crate::scheme::{Guard, Scheme, Thread};
use crate::{About, Node, Protects};
use rcu_lite::{Flavor, Rcu, ThreadRcu};
use std::fmt::{self, Debug};
use std::marker::PhantomData;

/// A flavour whose threads keep nothing between operations.
pub trait Variant: Debug + Send + Sync + 'static {
    /// The scheme over it.
    const ABOUT: About;
    /// The flavour.
    type Flavor: Flavor + Copy + Debug;
    /// Its domain.
    fn flavor() -> Self::Flavor;
}

/// Per-CPU counters.
#[derive(Debug)]
pub struct PerCpu;

impl Variant for PerCpu {
    const ABOUT: About = About::new(
        "rcu",
        Protects::Everything,
        "rcu-lite, per-CPU counters: a section around each operation",
        "per operation: `Rcu::read` of the global domain; threads keep nothing",
    )
    .over_percpu();

    type Flavor = &'static Rcu;

    #[inline(always)]
    fn flavor() -> &'static Rcu {
        Rcu::global()
    }
}

/// Per-thread counters.
#[derive(Debug)]
pub struct PerThread;

impl Variant for PerThread {
    const ABOUT: About = About::new(
        "rcu-thread",
        Protects::Everything,
        "rcu-lite, per-thread counters: a section around each operation",
        "per operation: `ThreadRcu::read`, with the thread's record, registered by its first section",
    )
    .over_percpu();

    type Flavor = ThreadRcu;

    #[inline(always)]
    fn flavor() -> ThreadRcu {
        ThreadRcu
    }
}

/// Nothing of its own: the domain is process-wide.
#[derive(Debug)]
pub struct SectionRcu<V>(PhantomData<V>);

impl<V: Variant> Scheme for SectionRcu<V> {
    const ABOUT: About = V::ABOUT;

    type Thread<'a, const K: usize> = Reader<V>;

    fn new() -> Self {
        if cfg!(miri) {
            V::flavor().set_callbacks(super::section::NO_WORKER);
        }
        SectionRcu(PhantomData)
    }

    fn thread<const K: usize>(&self) -> Reader<V> {
        Reader {
            flavor: V::flavor(),
        }
    }

    fn flush(&self) {
        V::flavor().barrier();
    }
}

/// The handle of the domain.
#[derive(Debug)]
pub struct Reader<V: Variant> {
    flavor: V::Flavor,
}

impl<V: Variant> Thread for Reader<V> {
    type Guard<'g> = Section<'g, V>;

    #[inline(always)]
    fn pin(&mut self) -> Section<'_, V> {
        Section {
            _section: self.flavor.read(),
            flavor: self.flavor,
        }
    }
}

/// A section.
pub struct Section<'g, V: Variant> {
    _section: <V::Flavor as Flavor>::Guard<'g>,
    flavor: V::Flavor,
}

impl<V: Variant> fmt::Debug for Section<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a section of {}", V::ABOUT.name)
    }
}

impl<V: Variant> Guard for Section<'_, V> {
    only_loads!();

    #[inline(always)]
    unsafe fn retire<T: Node>(&mut self, node: *mut T) {
        // SAFETY: the caller's; nodes are boxes, and readers have shared references inside sections only.
        unsafe { self.flavor.defer_free(node) }
    }
}
