//! One per-CPU domain: counters, grace periods, callbacks.
//!
//! Floor 2 (`rcu-lite`), raw layer. Owns the block that readers, waiters and
//! the worker of a domain share. Counted, because the worker may outlive the
//! handle.

use crate::counters::Counters;
use crate::grace::{Grace, Readers};
use crate::queue::{Callbacks, Domain, Queue};
#[cfg(not(loom))]
use core::ptr::NonNull;
use percpu::barrier::BarrierLost;
#[cfg(not(loom))]
use percpu::sync::atomic::{AtomicPtr, Ordering};
#[cfg(not(loom))]
use std::alloc::{Layout, handle_alloc_error};
use std::sync::Arc;

/// What readers touch. All zeroes at first.
#[cfg(not(loom))]
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Head {
    pub(crate) counters: Counters,
    /// The rest; null in the head that stands for "not yet made".
    pub(crate) core: AtomicPtr<Core>,
}

#[cfg(not(loom))]
impl Head {
    /// A head of zeroes, which are valid: atomic words and a null pointer. Its
    /// pages become memory when they are used.
    ///
    /// Straight from the system: an allocator that reuses a block writes the
    /// zeroes, which makes a megabyte of every domain.
    #[cfg(all(unix, not(miri)))]
    fn zeroed() -> NonNull<Head> {
        const _: () = assert!(align_of::<Head>() <= 4096, "pages are aligned enough");
        // SAFETY: a new mapping concerns no other memory.
        let pages = unsafe {
            libc::mmap(
                core::ptr::null_mut(),
                size_of::<Head>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANON,
                -1,
                0,
            )
        };
        match NonNull::new(pages.cast::<Head>()) {
            Some(head) if pages != libc::MAP_FAILED => head,
            _ => handle_alloc_error(Layout::new::<Head>()),
        }
    }

    #[cfg(not(all(unix, not(miri))))]
    fn zeroed() -> NonNull<Head> {
        let layout = Layout::new::<Head>();
        // SAFETY: the layout is not empty.
        let head = unsafe { std::alloc::alloc_zeroed(layout) };
        NonNull::new(head.cast()).unwrap_or_else(|| handle_alloc_error(layout))
    }

    /// # Safety
    ///
    /// `head` was made by [`zeroed`](Self::zeroed), and nobody uses it.
    unsafe fn free(head: NonNull<Head>) {
        // Nothing in a head needs dropping.
        #[cfg(all(unix, not(miri)))]
        // SAFETY: the caller's.
        unsafe {
            libc::munmap(head.as_ptr().cast(), size_of::<Head>());
        }
        #[cfg(not(all(unix, not(miri))))]
        // SAFETY: the caller's.
        unsafe {
            std::alloc::dealloc(head.as_ptr().cast(), Layout::new::<Head>());
        }
    }
}

/// The domain.
#[derive(Debug)]
pub(crate) struct Core {
    #[cfg(not(loom))]
    head: NonNull<Head>,
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
        let head = Head::zeroed();
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
        core.head()
            .core
            .store(Arc::as_ptr(&core).cast_mut(), Ordering::Relaxed);
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
        // SAFETY: made by `zeroed`; the last handle and the worker are gone, and
        // readers borrow the handle.
        unsafe { Head::free(self.head) };
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
        let core = self
            .head()
            .core
            .load(percpu::sync::atomic::Ordering::Relaxed);
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
