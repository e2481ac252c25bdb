//! Floor 3, bench-suite. Owns the variant `hazarc`: an atomic `Arc` with hazard slots.
//! May touch the `hazarc` crate.

use super::{About, Object, Scheme};
use hazarc::AtomicArc;
use std::fmt;
use std::sync::Arc;

/// `AtomicArc` in the default domain with the default write policy (concurrent writers allowed).
pub(crate) struct Hazarc(AtomicArc<Object>);

impl fmt::Debug for Hazarc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hazarc")
    }
}

impl Scheme for Hazarc {
    const ABOUT: About = About::new(
        "hazarc",
        "hazarc 0.2: `AtomicArc::load` borrow, dereference, drop; concurrent write policy",
        "per operation: `load()`, which uses the thread's cached node (its `Cache` never releases, so it is not comparable)",
    )
    .without_waiting("no deferred reclaim: every write visits all threads itself (see write)");

    type Reader<'a> = ();

    fn new(first: Object) -> Self {
        Hazarc(AtomicArc::new(Arc::new(first)))
    }

    fn reader(&self) {}

    #[inline(always)]
    fn read(&self, _: &mut ()) -> bool {
        self.0.load().is_alive()
    }

    fn hold(&self, _: &mut (), inside: impl FnOnce()) -> bool {
        let object = self.0.load();
        inside();
        object.is_alive()
    }

    #[inline]
    fn write(&self, object: Object) {
        self.0.store(Arc::new(object));
    }
}
