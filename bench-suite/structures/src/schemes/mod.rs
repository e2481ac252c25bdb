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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, Support};

    struct Name;

    impl Visit for Name {
        type Out = &'static str;

        fn visit<S: Scheme>(self) -> &'static str {
            S::ABOUT.name
        }
    }

    impl VisitCell for Name {
        type Out = &'static str;

        fn visit<C: Cell>(self) -> &'static str {
            C::ABOUT.name
        }
    }

    #[test]
    fn names_find_their_schemes() {
        for about in all() {
            let linked = (about.linked == Support::Yes).then_some(about.name);
            assert_eq!(dispatch(about.name, Name), linked);
            assert_eq!(dispatch_cell(about.name, Name), Some(about.name));
        }
        assert_eq!(dispatch("no-such-scheme", Name), None);
        assert_eq!(dispatch_cell("no-such-scheme", Name), None);
        let names: std::collections::HashSet<_> = all().iter().map(|about| about.name).collect();
        assert_eq!(names.len(), all().len());
    }

    #[test]
    fn what_cannot_be_had_has_a_reason() {
        for about in all() {
            assert_eq!(about.supports(Kind::Cell), Support::Yes);
            for kind in [Kind::Stack, Kind::Queue] {
                match about.supports(kind) {
                    Support::Yes => assert!(dispatch(about.name, Name).is_some()),
                    Support::No(reason) => {
                        assert!(!reason.is_empty());
                        assert_eq!(dispatch(about.name, Name), None);
                    }
                }
            }
        }
    }

    #[test]
    fn hidden_ones_are_not_listed() {
        assert!(listed().all(|about| !about.hidden));
        assert!(all().iter().any(|about| about.hidden));
    }
}
