//! Floor 3, bench-suite. Owns the callback that `defer` queues: one pointer wide, adds one to a counter that lives for
//! ever (a scheme may run callbacks as late as at process exit). Touches nothing else.
//!
//! **Orderings.** All accesses are Relaxed: the counter is all there is, nothing is published through it.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counts the callbacks of one thread that have run. Alone on its pair of cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Ran(AtomicU64);

impl Ran {
    /// A counter that is never freed.
    pub(crate) fn leak() -> &'static Self {
        Box::leak(Box::default())
    }

    /// How many have run.
    pub(crate) fn count(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// To be run once. Dropping it instead is what the workload's check is for.
#[derive(Debug)]
pub(crate) struct Callback(&'static Ran);

impl Callback {
    /// One that counts in `ran`.
    #[inline(always)]
    pub(crate) fn new(ran: &'static Ran) -> Self {
        Callback(ran)
    }

    /// What is deferred. Several threads may run callbacks of one counter at a time.
    #[inline(always)]
    pub(crate) fn run(self) {
        self.0.0.fetch_add(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_callback_is_one_pointer_and_counts_once() {
        assert_eq!(size_of::<Callback>(), size_of::<usize>());
        let ran = Ran::leak();
        Callback::new(ran).run();
        let _lost = Callback::new(ran);
        assert_eq!(ran.count(), 1);
    }
}
