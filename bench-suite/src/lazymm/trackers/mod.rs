//! Floor 3, bench-suite. Owns the trackers: one file each, all behind `Tracker`, and their registry.
//! May touch the crates that they track with; knows nothing of workloads, threads or reports.
//!
//! A new tracker is one file, its `mod` line and its line in the registry. Calls are monomorphised: a workload asks
//! [`dispatch`] once a run.

mod broken;
mod counted;
mod crossbeam;
mod haphazard;
mod hp;
mod none;
mod rcu;
mod refcount;
mod seize;
mod shootdown;
#[cfg(test)]
mod storm;

use super::mm::Mm;
use super::tracker::Tracker;
use crate::schemes::About;
use std::ptr::NonNull;

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
    haphazard::Haphazard,
    crossbeam::Crossbeam,
    seize::Seize,
    rcu::Rcu,
    broken::Broken<1>,
    broken::Broken<2>,
    broken::Broken<3>,
    broken::Broken<4>,
    broken::Broken<5>,
    broken::Broken<6>,
    broken::Broken<7>,
}

/// All trackers, hidden ones too, in the order of the registry.
pub(crate) fn all() -> &'static [About] {
    ALL
}

/// A torn down mm on its way to where it is freed.
struct Torn<T: Tracker>(NonNull<Mm<T>>);

// SAFETY: an mm may be freed by any thread.
unsafe impl<T: Tracker> Send for Torn<T> {}

impl<T: Tracker> Torn<T> {
    /// # Safety
    /// As [`Mm::free`].
    unsafe fn free(self) {
        // SAFETY: the caller's.
        unsafe { Mm::free(self.0) };
    }
}

/// The `run` of a workload, out of a function of the same file that is generic over the tracker.
macro_rules! over_trackers {
    ($run:ident) => {
        |job| {
            struct Run<'a>(&'a Job);
            impl $crate::lazymm::trackers::Visit for Run<'_> {
                type Out = Result<Record, Refusal>;

                fn visit<T: Tracker>(self) -> Self::Out {
                    $run::<T>(self.0)
                }
            }
            $crate::lazymm::trackers::dispatch(&job.variant, Run(job))
                .expect("a variant of this workload")
        }
    };
}
pub(crate) use over_trackers;

/// A hidden one, for tests of what keeps their blocks.
#[cfg(test)]
pub(crate) type Hidden = broken::Broken<5>;
