//! Floor 3, bench-suite. Owns the variant `rcu-qsbr`: `rcu-lite` with announced quiescent states.
//! May touch `rcu-lite`.
//!
//! A quiescent state is announced after each operation, so that protection ends with the operation as in the other
//! variants. A program that uses this flavour would announce once in many.

use super::rcu::about;
use super::{About, Callback, Object, Scheme};
use rcu_lite::qsbr::Online;
use rcu_lite::{QsbrRcu, RcuCell};
use std::fmt;

/// A cell whose readers are online from their first operation to their last.
pub(crate) struct RcuQsbr(RcuCell<Object, QsbrRcu>);

impl fmt::Debug for RcuQsbr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RcuQsbr")
    }
}

impl Scheme for RcuQsbr {
    const ABOUT: About = about(
        "rcu-qsbr",
        "rcu-lite, announced quiescent states: load, then one announcement for each read",
        "cached: one `Online` per thread, offline where it sleeps",
    );

    type Reader<'a> = Online;

    fn new(first: Object) -> Self {
        RcuQsbr(RcuCell::new_in(first, QsbrRcu))
    }

    fn reader(&self) -> Online {
        QsbrRcu.online()
    }

    #[inline(always)]
    fn read(&self, online: &mut Online) -> bool {
        let guard = online.read();
        let alive = self.0.load(&guard).is_alive();
        drop(guard);
        online.quiescent_state();
        alive
    }

    fn hold(&self, online: &mut Online, inside: impl FnOnce()) -> bool {
        let guard = online.read();
        let object = self.0.load(&guard);
        inside();
        let alive = object.is_alive();
        drop(guard);
        online.quiescent_state();
        alive
    }

    fn idle(&self, online: &mut Online, pause: impl FnOnce()) {
        online.offline(pause);
    }

    #[inline]
    fn write(&self, object: Object) {
        self.0.replace(object);
    }

    fn pass(&self) {
        QsbrRcu.barrier();
    }

    fn synchronize(&self) -> bool {
        QsbrRcu.synchronize();
        true
    }

    #[inline]
    fn defer(&self, online: &mut Online, callback: Callback) {
        QsbrRcu.call(move || callback.run());
        online.quiescent_state();
    }

    fn flush(&self) {
        QsbrRcu.barrier();
    }
}
