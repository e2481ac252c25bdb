//! `crossbeam-epoch`: an epoch pinned for each operation.
//!
//! Floor 3 (`structures`). May touch the `crossbeam-epoch` crate. One collector a structure, so that what waits is freed
//! with it; threads keep their participant, which also saves the thread-local's look-up.

use super::section::only_loads;
use crate::scheme::{Guard, Scheme, Thread};
use crate::{About, Node, Protects};
use crossbeam_epoch::{Collector, LocalHandle, Shared};

/// Enough for a hundred thousand nodes.
const FLUSHES: usize = if cfg!(miri) { 32 } else { 256 };

/// A collector.
#[derive(Debug)]
pub struct Crossbeam(Collector);

impl Scheme for Crossbeam {
    const ABOUT: About = About::new(
        "crossbeam-epoch",
        Protects::Everything,
        "crossbeam-epoch 0.9: pin, loads, unpin",
        "cached: the thread's LocalHandle of a collector of its own; per operation: `pin`",
    );

    type Thread<'a, const K: usize> = Participant;

    fn new() -> Self {
        Crossbeam(Collector::new())
    }

    fn thread<const K: usize>(&self) -> Participant {
        Participant(self.0.register())
    }

    fn flush(&self) {
        let handle = self.0.register();
        // Each moves the epoch by one at most, and frees eight bags of what was retired two epochs ago.
        for _ in 0..FLUSHES {
            handle.pin().flush();
        }
    }
}

/// A thread's participant.
#[derive(Debug)]
pub struct Participant(LocalHandle);

impl Thread for Participant {
    type Guard<'g> = Pinned;

    #[inline(always)]
    fn pin(&mut self) -> Pinned {
        Pinned(self.0.pin())
    }
}

/// Pinned.
#[derive(Debug)]
pub struct Pinned(crossbeam_epoch::Guard);

impl Guard for Pinned {
    only_loads!();

    #[inline(always)]
    unsafe fn retire<T: Node>(&mut self, node: *mut T) {
        // SAFETY: the caller's; the crate's owned pointers are boxes.
        unsafe { self.0.defer_destroy(Shared::from(node.cast_const())) }
    }
}
