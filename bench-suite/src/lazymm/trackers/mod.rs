//! Floor 3, bench-suite. Owns the trackers: one file each, all behind `Tracker`, and their registry.
//! May touch the crates that they track with; knows nothing of workloads, threads or reports.
//!
//! A new tracker is one file, its `mod` line and its line in the registry. Calls are monomorphised: a workload asks
//! [`dispatch`] once a run.

mod counted;
mod hp;
mod none;
mod refcount;
mod shootdown;

use super::tracker::Tracker;
use crate::schemes::About;

/// A generic function object for [`dispatch`].
pub(crate) trait Visit {
    /// What the visit returns.
    type Out;
    /// Called with the chosen tracker.
    fn visit<T: Tracker>(self) -> Self::Out;
}

macro_rules! registry {
    ($($tracker:ty,)*) => {
        static ALL: &[About] = &[$(<$tracker as Tracker>::ABOUT),*];

        /// Calls `visitor` with the tracker called `name`.
        pub(crate) fn dispatch<V: Visit>(name: &str, visitor: V) -> Option<V::Out> {
            $(if name == <$tracker as Tracker>::ABOUT.name {
                return Some(visitor.visit::<$tracker>());
            })*
            None
        }
    };
}

registry! {
    none::Untracked,
    counted::Counted<refcount::Refcount>,
    counted::Counted<counted::Rcuref>,
    counted::Counted<counted::PerCpu>,
    counted::Counted<counted::Split>,
    hp::Hp<hp::Symmetric>,
    hp::Hp<hp::Asymmetric>,
    shootdown::Shootdown,
}

/// All trackers, hidden ones too, in the order of the registry.
pub(crate) fn all() -> &'static [About] {
    ALL
}
