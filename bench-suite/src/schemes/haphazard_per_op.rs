//! Floor 3, bench-suite. Owns the variant `haphazard-per-op`: a new holder for every read.
//! May touch the `haphazard` crate, through the scheme next door.

use super::haphazard::Haphazard;
use super::{About, Object, Scheme};
use haphazard::HazardPointer;

/// The same cell, read with a holder taken from the domain each time.
#[derive(Debug)]
pub(crate) struct HaphazardPerOp(Haphazard);

impl Scheme for HaphazardPerOp {
    const ABOUT: About = About::new(
        "haphazard-per-op",
        "haphazard 0.1 with a holder taken and given back by every read",
        "per operation: what code without a place to keep a holder pays (not the fairest use: see haphazard)",
    );

    type Reader<'a> = ();

    fn new(first: Object) -> Self {
        HaphazardPerOp(Haphazard::new(first))
    }

    fn reader(&self) {}

    #[inline(always)]
    fn read(&self, _: &mut ()) -> bool {
        self.0.read_with(&mut HazardPointer::new())
    }

    fn hold(&self, _: &mut (), inside: impl FnOnce()) -> bool {
        self.0.hold_with(&mut HazardPointer::new(), inside)
    }

    #[inline]
    fn write(&self, object: Object) {
        self.0.write(object);
    }

    fn pass(&self) {
        self.0.pass();
    }
}
