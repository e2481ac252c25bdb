//! A process-wide domain: the records of a flavour's threads, with grace
//! periods and callbacks.
//!
//! Floor 2 (`rcu-lite`), raw layer. Owns nothing but the three together; what a
//! record means is the flavour's business.

use crate::grace::{Grace, Readers};
use crate::queue::Queue;
use percpu::barrier::BarrierLost;

/// The domain.
#[derive(Debug)]
pub(crate) struct ProcessWide<R> {
    pub(crate) records: R,
    pub(crate) grace: Grace,
    pub(crate) queue: Queue,
}

impl<R> ProcessWide<R> {
    pub(crate) const fn new(records: R) -> Self {
        Self {
            records,
            grace: Grace::new(),
            queue: Queue::new(crate::Callbacks::Worker),
        }
    }
}

impl<R: Readers> Readers for ProcessWide<R> {
    fn turn(&self) {
        self.records.turn();
    }

    fn barrier(&self) -> Result<(), BarrierLost> {
        self.records.barrier()
    }

    fn drained(&self) -> bool {
        self.records.drained()
    }
}
