//! The schemes, one file each, and the registry.
//!
//! Floor 3 (`structures`). A new scheme is one file, its `mod` line and its line in the registry.

mod hp;
mod leak;

pub use self::hp::{Fence, Hp, Membarrier, Native, Rung};
pub use leak::Leak;

use crate::{About, Scheme};

/// Something to do with a scheme that is known by name only.
pub trait Visit {
    /// What comes of it.
    type Out;

    /// Does it.
    fn visit<S: Scheme>(self) -> Self::Out;
}

macro_rules! registry {
    ($($scheme:ty,)*) => {
        static ALL: &[About] = &[$(<$scheme as Scheme>::ABOUT),*];

        /// Calls `visitor` with the scheme called `name`.
        pub fn dispatch<V: Visit>(name: &str, visitor: V) -> Option<V::Out> {
            $(if name == <$scheme as Scheme>::ABOUT.name {
                return Some(visitor.visit::<$scheme>());
            })*
            None
        }
    };
}

registry! {
    Hp<Native>,
    Hp<Membarrier>,
    Hp<Fence>,
    Leak,
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
