//! The ways to protect the table, one file each.
//!
//! Floor 3 (`phash`). Owns the registry. A new scheme is one file and its line below.
//!
//! Two files hold what several have in common: `at_once` for those that put the next table into use and free the old
//! one later, `counted` for those that wait for the last reference, as the kernel does.

mod at_once;
mod counted;
mod crossbeam;
mod futex_ref;
mod global;
mod hp;
mod immutable;
mod percpu_ref;
mod rcu;
mod rcuref;
mod refcount;
mod seize;
mod split_count;

pub use crossbeam::Crossbeam;
pub use futex_ref::FutexRef;
pub use global::Global;
pub use hp::Hp;
pub use immutable::Immutable;
pub use percpu_ref::PercpuRef;
pub use rcu::Rcu;
pub use rcuref::RcuRef;
pub use refcount::Refcount;
pub use seize::Seize;
pub use split_count::SplitCount;

use crate::scheme::{About, Scheme, Visit};

macro_rules! registry {
    ($($scheme:ident,)*) => {
        /// All schemes, in the order of tables.
        pub const ALL: &[About] = &[$(<$scheme as Scheme>::ABOUT),*];

        /// Does something with the scheme called `name`.
        pub fn dispatch<V: Visit>(name: &str, visit: V) -> Option<V::Out> {
            $(if name == <$scheme as Scheme>::ABOUT.name {
                return Some(visit.visit::<$scheme>());
            })*
            None
        }
    };
}

registry! {
    Global,
    Immutable,
    Refcount,
    RcuRef,
    PercpuRef,
    FutexRef,
    SplitCount,
    Hp,
    Rcu,
    Crossbeam,
    Seize,
}
