//! One per-CPU domain: counters, grace periods, callbacks.
//!
//! Floor 2 (`rcu-lite`), raw layer. Owns the block that readers, waiters and
//! the worker of a domain share. Counted, because the worker may outlive the
//! handle.

use crate::counters::Counters;
use crate::grace::{Grace, Readers};
use crate::queue::{Callbacks, Domain, Queue};
use percpu::barrier::BarrierLost;
use std::sync::Arc;

/// What readers touch. All zeroes at first.
#[cfg(not(loom))]
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Head {
    pub(crate) counters: Counters,
    /// The rest; null in the head that stands for "not yet made".
    pub(crate) core: percpu::sync::atomic::AtomicPtr<Core>,
}

/// The domain.
#[derive(Debug)]
pub(crate) struct Core {
    #[cfg(not(loom))]
    head: core::ptr::NonNull<Head>,
    #[cfg(loom)]
    counters: Counters,
    grace: Grace,
    queue: Queue,
}

// SAFETY: `head` is a box of this block's own.
#[cfg(not(loom))]
unsafe impl Send for Core {}
// SAFETY: as above; what it holds is `Sync`.
#[cfg(not(loom))]
unsafe impl Sync for Core {}

impl Core {
    /// A new domain and its head, which lives as long. A megabyte of address
    /// space, of which a page is used for each 32 CPUs that run readers.
    #[cfg(not(loom))]
    pub(crate) fn new(callbacks: Callbacks) -> Arc<Core> {
        // SAFETY: zeroes are a valid `Head`: atomic words and a null pointer.
        let head = Box::into_raw(unsafe { Box::<Head>::new_zeroed().assume_init() });
        // SAFETY: a box is not null.
        let head = unsafe { core::ptr::NonNull::new_unchecked(head) };
        // SAFETY: just made, and nobody else has it.
        unsafe { head.as_ref() }.counters.prepare();
        let core = Arc::new(Core {
            head,
            grace: Grace::new(),
            queue: Queue::new(callbacks),
        });
        // The queue's shards begin for a worker.
        core.queue.set_due(|queue, _| queue.callbacks().due());
        // Relaxed: published together with the head.
        core.head().core.store(
            Arc::as_ptr(&core).cast_mut(),
            percpu::sync::atomic::Ordering::Relaxed,
        );
        core
    }

    #[cfg(loom)]
    pub(crate) fn new(callbacks: Callbacks) -> Core {
        Core {
            counters: Counters::new(),
            grace: Grace::new(),
            queue: Queue::new(callbacks),
        }
    }

    #[cfg(not(loom))]
    pub(crate) fn head(&self) -> &Head {
        // SAFETY: freed in `drop` only.
        unsafe { self.head.as_ref() }
    }

    pub(crate) fn counters(&self) -> &Counters {
        #[cfg(not(loom))]
        return &self.head().counters;
        #[cfg(loom)]
        return &self.counters;
    }
}

#[cfg(not(loom))]
impl Drop for Core {
    fn drop(&mut self) {
        // SAFETY: came out of a box; the last handle and the worker are gone,
        // and readers borrow the handle.
        drop(unsafe { Box::from_raw(self.head.as_ptr()) });
    }
}

impl Readers for Core {
    fn turn(&self) {
        self.counters().turn();
    }

    fn barrier(&self) -> Result<(), BarrierLost> {
        self.counters().barrier()
    }

    fn drained(&self) -> bool {
        self.counters().drained()
    }
}

impl Domain for Core {
    type Keep = Arc<Core>;

    #[cfg(not(loom))]
    fn keep(&self) -> Arc<Core> {
        // The pointer that the `Arc` gave, which may reach its counts: one made
        // from `self` may not.
        // Relaxed: stored before the domain was published.
        let core = self.head().core.load(percpu::sync::atomic::Ordering::Relaxed);
        // SAFETY: every `Core` lives in an `Arc`, which `self` keeps alive, and
        // its head holds that very pointer.
        unsafe {
            Arc::increment_strong_count(core);
            Arc::from_raw(core)
        }
    }

    #[cfg(loom)]
    fn keep(&self) -> Arc<Core> {
        unreachable!("models start no worker")
    }

    fn grace(&self) -> &Grace {
        &self.grace
    }

    fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Guards are not bound to threads: it cannot be known.
    fn assert_outside(&self, _: &str) {}
}
