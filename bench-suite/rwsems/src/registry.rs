//! The variants by name.
//!
//! Floor 3 (`rwsems`). Owns the list.

use crate::per_cpu::PerCpu;
use crate::pi_multi::PiMulti;
use crate::pi_single::PiSingle;
use crate::plain::{ParkingLot, Std};
use crate::rwbase::RwBase;
use crate::vanilla::Vanilla;
use crate::{About, Locked, Region, RwSem, vma};

/// Something to do with a variant, compiled for each.
pub trait Visit {
    /// What comes out.
    type Out;

    /// Does it.
    fn visit<R: Region>(self) -> Self::Out;
}

/// Something to do with a lock, compiled for each.
pub trait VisitLock {
    /// What comes out.
    type Out;

    /// Does it.
    fn visit<L: RwSem>(self) -> Self::Out;
}

macro_rules! registry {
    (locks: [$($lock:ty,)*] others: [$($other:ty,)*]) => {
        /// All variants, locks first.
        #[must_use]
        pub fn all() -> &'static [About] {
            const { &[$(<$lock as RwSem>::ABOUT,)* $(<$other as Region>::ABOUT,)*] }
        }

        /// Runs `visit` with the variant of this name, if there is one.
        pub fn dispatch<V: Visit>(name: &str, visit: V) -> Option<V::Out> {
            match name {
                $(name if name == <$lock as RwSem>::ABOUT.name => Some(visit.visit::<Locked<$lock>>()),)*
                $(name if name == <$other as Region>::ABOUT.name => Some(visit.visit::<$other>()),)*
                _ => None,
            }
        }

        /// Runs `visit` with the lock of this name, if there is one.
        pub fn dispatch_lock<V: VisitLock>(name: &str, visit: V) -> Option<V::Out> {
            match name {
                $(name if name == <$lock as RwSem>::ABOUT.name => Some(visit.visit::<$lock>()),)*
                _ => None,
            }
        }
    };
}

registry! {
    locks: [
        Vanilla,
        PiSingle,
        PiMulti,
        RwBase,
        Std,
        ParkingLot,
        PerCpu,
    ]
    others: [
        vma::Refcounted,
        vma::Hazard,
        vma::Rcu,
    ]
}

/// The description of a variant.
#[must_use]
pub fn find(name: &str) -> Option<&'static About> {
    all().iter().find(|about| about.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_leads_to_its_variant() {
        struct Name;
        impl Visit for Name {
            type Out = &'static str;
            fn visit<R: Region>(self) -> &'static str {
                R::ABOUT.name
            }
        }
        impl VisitLock for Name {
            type Out = &'static str;
            fn visit<L: RwSem>(self) -> &'static str {
                L::ABOUT.name
            }
        }
        for about in all() {
            assert_eq!(find(about.name), Some(about));
            assert_eq!(dispatch(about.name, Name), Some(about.name));
            let lock = dispatch_lock(about.name, Name);
            assert_eq!(lock, about.locks.then_some(about.name));
        }
        assert_eq!((find("x"), dispatch("x", Name)), (None, None));
        assert_eq!(all().len(), 10);
    }
}
