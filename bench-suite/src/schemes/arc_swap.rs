//! Floor 3, bench-suite. Owns the variant `arc-swap`: a cell of `Arc`s with debts instead of counts on the fast path.
//! May touch the `arc-swap` crate.

use super::{About, Object, Scheme};
use arc_swap::ArcSwap;
use std::sync::Arc;

/// `ArcSwap` with its default strategy.
#[derive(Debug)]
pub(crate) struct ArcSwapped(ArcSwap<Object>);

impl Scheme for ArcSwapped {
    const ABOUT: About = About::new(
        "arc-swap",
        "arc-swap 1: `load` guard, dereference, drop; writes store a new Arc and settle all debts at once",
        "per operation: `load()`, which uses the thread's cached node (its `Cache` never releases, so it is not comparable)",
    )
    .without_waiting("no deferred reclaim: every write visits all threads itself (see write)");

    type Reader<'a> = ();

    fn new(first: Object) -> Self {
        ArcSwapped(ArcSwap::from_pointee(first))
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
