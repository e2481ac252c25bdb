//! `rcu-qsbr`: `rcu-lite` with announced quiescent states.
//!
//! Floor 3 (`structures`). A quiescent state is announced at the end of each operation, so that protection ends there as
//! with the others. (A program that uses this flavour would announce once in many.)

use super::section::only_loads;
use crate::scheme::{Guard, Scheme, Thread};
use crate::{About, Node, Protects};
use rcu_lite::QsbrRcu;
use rcu_lite::qsbr::Online;

/// Nothing of its own: the domain is process-wide.
#[derive(Debug)]
pub struct RcuQsbr;

impl Scheme for RcuQsbr {
    const ABOUT: About = About::new(
        "rcu-qsbr",
        Protects::Everything,
        "rcu-lite, announced quiescent states: plain loads, then one announcement for each operation",
        "cached: one `Online` per thread, offline where it sleeps",
    )
    .over_percpu();

    type Thread<'a, const K: usize> = Member;

    fn new() -> Self {
        if cfg!(miri) {
            QsbrRcu.set_callbacks(super::section::NO_WORKER);
        }
        RcuQsbr
    }

    fn thread<const K: usize>(&self) -> Member {
        Member(QsbrRcu.online())
    }

    fn flush(&self) {
        QsbrRcu.barrier();
    }
}

/// A thread that is online.
#[derive(Debug)]
pub struct Member(Online);

impl Thread for Member {
    type Guard<'g> = Between<'g>;

    #[inline(always)]
    fn pin(&mut self) -> Between<'_> {
        Between(&mut self.0)
    }

    #[inline(always)]
    fn quiescent(&mut self) {
        self.0.quiescent_state();
    }

    fn idle<R>(&mut self, pause: impl FnOnce() -> R) -> R {
        self.0.offline(pause)
    }
}

/// Between two announcements: the borrow keeps the next one away.
#[derive(Debug)]
pub struct Between<'g>(&'g mut Online);

impl Guard for Between<'_> {
    only_loads!();

    #[inline(always)]
    unsafe fn retire<T: Node>(&mut self, node: *mut T) {
        // SAFETY: the caller's; nodes are boxes, and readers have shared references between announcements only.
        unsafe { QsbrRcu.defer_free(node) }
    }
}

impl Drop for Between<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.quiescent_state();
    }
}
