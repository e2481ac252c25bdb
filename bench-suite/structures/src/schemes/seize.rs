//! `seize`: a collector entered for each operation.
//!
//! Floor 3 (`structures`). May touch the `seize` crate. One collector a structure, as its guide lays it out.

use super::section::never_looks_again;
use crate::scheme::{Guard, Scheme, Thread};
use crate::{About, Node, Protects};
use ::seize::{Collector, Guard as _, LocalGuard, reclaim};
use percpu::sync::atomic::{AtomicPtr, Ordering};

/// A collector.
#[derive(Debug)]
pub struct Seize(Collector);

impl Scheme for Seize {
    const ABOUT: About = About::new(
        "seize",
        Protects::Everything,
        "seize 0.5: enter, protected loads, leave; default batch size",
        "per operation: `Collector::enter`, with the thread's cached reservation (fairest: owned guards cost more)",
    );

    type Thread<'a, const K: usize> = Reader<'a>;

    fn new() -> Self {
        Seize(Collector::new())
    }

    fn thread<const K: usize>(&self) -> Reader<'_> {
        Reader(&self.0)
    }

    fn flush(&self) {
        self.0.enter().flush();
    }
}

/// The collector.
#[derive(Debug)]
pub struct Reader<'a>(&'a Collector);

impl<'a> Thread for Reader<'a> {
    type Guard<'g>
        = Entered<'a>
    where
        Self: 'g;

    #[inline(always)]
    fn pin(&mut self) -> Entered<'a> {
        Entered(self.0.enter())
    }
}

/// Entered.
#[derive(Debug)]
pub struct Entered<'a>(LocalGuard<'a>);

impl Guard for Entered<'_> {
    #[inline(always)]
    fn protect<T>(&mut self, _: usize, src: &AtomicPtr<T>) -> *mut T {
        // Acquire: pairs with the store that published the node. (The crate loads with SeqCst.)
        self.0.protect(src, Ordering::Acquire)
    }

    never_looks_again!();

    #[inline(always)]
    unsafe fn retire<T: Node>(&mut self, node: *mut T) {
        // SAFETY: the caller's; nodes are boxes.
        unsafe { self.0.defer_retire(node, reclaim::boxed) }
    }
}
