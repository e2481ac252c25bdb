//! Floor 3, bench-suite. Owns the variant `rcu`: `rcu-lite` on per-CPU counters; and what it has in common with
//! `rcu-thread` next door. May touch `rcu-lite`.

use super::{About, Callback, Object, Scheme, Support};
use rcu_lite::{Flavor, RcuCell};
use std::fmt;

/// A flavour whose readers keep nothing between operations.
pub(crate) trait Variant: Send + Sync {
    /// The description of the variant.
    const ABOUT: About;
    /// What cells of this variant belong to.
    type Flavor: Flavor;
    /// The one that is measured.
    fn flavor() -> Self::Flavor;
}

/// What all variants over `rcu-lite` have in common.
pub(super) const fn about(
    name: &'static str,
    measures: &'static str,
    holder: &'static str,
) -> About {
    About {
        synchronizes: true,
        defer: Support::Yes,
        ..About::new(name, measures, holder).over_percpu()
    }
}

/// Per-CPU counters, the global domain.
#[derive(Debug)]
pub(crate) struct PerCpu;

impl Variant for PerCpu {
    const ABOUT: About = about(
        "rcu",
        "rcu-lite, per-CPU counters: read, load, drop; guards may sleep and move between threads",
        "per operation: `Rcu::read` of the global domain; threads keep nothing",
    );

    type Flavor = &'static rcu_lite::Rcu;

    fn flavor() -> Self::Flavor {
        rcu_lite::Rcu::global()
    }
}

/// A cell of one of them.
pub(crate) struct Rcu<V: Variant>(RcuCell<Object, V::Flavor>);

impl<V: Variant> fmt::Debug for Rcu<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(V::ABOUT.name)
    }
}

impl<V: Variant> Scheme for Rcu<V> {
    const ABOUT: About = V::ABOUT;

    type Reader<'a>
        = ()
    where
        V: 'a;

    fn new(first: Object) -> Self {
        Rcu(RcuCell::new_in(first, V::flavor()))
    }

    fn reader(&self) {}

    #[inline(always)]
    fn read(&self, _: &mut ()) -> bool {
        let guard = self.0.flavor().read();
        self.0.load(&guard).is_alive()
    }

    fn hold(&self, _: &mut (), inside: impl FnOnce()) -> bool {
        let guard = self.0.flavor().read();
        let object = self.0.load(&guard);
        inside();
        object.is_alive()
    }

    #[inline]
    fn write(&self, object: Object) {
        self.0.replace(object);
    }

    fn pass(&self) {
        self.0.flavor().barrier();
    }

    fn synchronize(&self) -> bool {
        self.0.flavor().synchronize();
        true
    }

    #[inline]
    fn defer(&self, _: &mut (), callback: Callback) {
        self.0.flavor().call(move || callback.run());
    }

    fn flush(&self) {
        self.0.flavor().barrier();
    }
}
