//! What the tests share: which schemes they run over.

#![allow(dead_code)] // each test uses some of it

pub(crate) mod maps;

use structures::schemes;
use structures::{About, Support};

/// Peers that Miri refuses, and why.
const REFUSED_BY_MIRI: &[(&str, &str)] = &[(
    "crossbeam-epoch",
    "its list goes from a member to the whole of a participant, which Stacked Borrows does not allow",
)];

/// The listed schemes that this process can be. Those with a rung of their own take part where the environment asks for
/// that rung. `STRUCTURES_ONLY=a,b` leaves the others out. What Miri refuses takes part if it is named there (under
/// `-Zmiri-tree-borrows`, say).
pub(crate) fn schemes() -> impl Iterator<Item = &'static About> {
    let rung = std::env::var("HP_BARRIER").ok();
    let only = std::env::var("STRUCTURES_ONLY").ok();
    schemes::listed().filter(move |about| {
        (about.rung.is_none() || about.rung == rung.as_deref())
            && only.as_deref().map_or(!refused(about), |only| {
                only.split(',').any(|name| name == about.name)
            })
    })
}

fn refused(about: &About) -> bool {
    cfg!(miri) && REFUSED_BY_MIRI.iter().any(|(name, _)| *name == about.name)
}

/// Those of them under which linked structures can be had.
pub(crate) fn linked() -> impl Iterator<Item = &'static About> {
    schemes().filter(|about| about.linked == Support::Yes)
}

/// Less under Miri, which is some thousand times slower.
pub(crate) const fn scaled(native: usize, miri: usize) -> usize {
    if cfg!(miri) { miri } else { native }
}

/// Whether everything that was retired is freed once the structure has been flushed and dropped. (`sdd` keeps what waits
/// in threads and frees it as they go on using it.)
pub(crate) fn frees_all(about: &About) -> bool {
    about.name != "sdd"
}

/// Numbers that look random, the same in every run.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}
