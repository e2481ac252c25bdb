//! The schemes, one file each, and the registry.
//!
//! Floor 3 (`structures`). A new scheme is one file, its `mod` line and its line in the registry.

mod arc;
mod broken;
mod crossbeam;
mod haphazard;
mod hp;
mod leak;
mod rcu;
mod rcu_qsbr;
mod sdd;
mod section;
mod seize;

pub use self::crossbeam::Crossbeam;
pub use self::haphazard::Haphazard;
pub use self::hp::{Fence, Hp, Membarrier, Native, Rung};
pub use self::sdd::Sdd;
pub use self::seize::Seize;
pub use arc::ArcCell;
pub use broken::{Control, Fault, Textbook, Unannounced, Unlooking, Unprotected, Unvalidated};
pub use leak::Leak;
pub use rcu::{PerCpu, PerThread, SectionRcu, Variant};
pub use rcu_qsbr::RcuQsbr;

use crate::{About, Cell, Scheme, SwapCell};

/// Something to do with a scheme that is known by name only.
pub trait Visit {
    /// What comes of it.
    type Out;

    /// Does it.
    fn visit<S: Scheme>(self) -> Self::Out;
}

/// Something to do with a cell of a scheme that is known by name only.
pub trait VisitCell {
    /// What comes of it.
    type Out;

    /// Does it.
    fn visit<C: Cell>(self) -> Self::Out;
}

macro_rules! registry {
    (schemes: [$($scheme:ty,)*], cells: [$($cell:ty,)*]) => {
        static ALL: &[About] = &[$(<$scheme as Scheme>::ABOUT,)* $(<$cell as Cell>::ABOUT,)*];

        /// Calls `visitor` with the scheme called `name`. `None`: there is none, or linked structures cannot be had under
        /// it ([`About::linked`] says why).
        pub fn dispatch<V: Visit>(name: &str, visitor: V) -> Option<V::Out> {
            $(if name == <$scheme as Scheme>::ABOUT.name {
                return Some(visitor.visit::<$scheme>());
            })*
            None
        }

        /// Calls `visitor` with the cell of the scheme called `name`.
        pub fn dispatch_cell<V: VisitCell>(name: &str, visitor: V) -> Option<V::Out> {
            $(if name == <$scheme as Scheme>::ABOUT.name {
                return Some(visitor.visit::<SwapCell<$scheme>>());
            })*
            $(if name == <$cell as Cell>::ABOUT.name {
                return Some(visitor.visit::<$cell>());
            })*
            None
        }
    };
}

registry! {
    schemes: [
    Hp<Native>,
    Hp<Membarrier>,
    Hp<Fence>,
    SectionRcu<PerCpu>,
    SectionRcu<PerThread>,
    RcuQsbr,
    Haphazard,
    Crossbeam,
    Seize,
    Sdd,
    Leak,
    Textbook<Control>,
    Textbook<Unprotected>,
    Textbook<Unvalidated>,
    Textbook<Unlooking>,
    Textbook<Unannounced>,
    ],
    cells: [
    ArcCell,
    ]
}

/// All schemes that people may see, in the order of the registry.
pub fn listed() -> impl Iterator<Item = &'static About> {
    ALL.iter().filter(|about| !about.hidden)
}

/// All schemes.
#[must_use]
pub fn all() -> &'static [About] {
    ALL
}
