//! Which process this is: a number that changes in a forked child.
//!
//! Floor 1 (`percpu`). Owns the generation. Lock words hold it, so that a lock
//! taken by a thread that the child does not have is recognised instead of
//! waited for.

#[cfg(not(loom))]
use crate::sync::atomic::{AtomicUsize, Ordering};

#[cfg(not(loom))]
static GENERATION: AtomicUsize = AtomicUsize::new(0);

/// The generation of this process: 1, and more in each forked descendant.
/// Never 0. The first call arms the counter, so that every word that holds a
/// generation is one that a child will know as its parent's.
#[cfg(not(loom))]
#[inline]
#[must_use]
pub fn generation() -> usize {
    // Relaxed: changes once, and then only in a child that has one thread.
    match GENERATION.load(Ordering::Relaxed) {
        0 => arm(),
        generation => generation,
    }
}

/// The generation of this process under loom, where nothing forks.
#[cfg(loom)]
#[must_use]
pub fn generation() -> usize {
    1
}

/// Has `handler` called in every forked child, by the thread that forked, before
/// `fork` returns there. Handlers are never taken back; where there is no fork
/// nothing happens.
///
/// # Safety
///
/// `handler` is async-signal-safe (the child may have been forked from a
/// process with other threads): no allocation, no lock.
#[cfg(not(loom))]
pub unsafe fn on_child(handler: extern "C" fn()) {
    #[cfg(all(unix, not(miri)))]
    // SAFETY: the caller's; the image stays mapped, see `arm`.
    unsafe {
        libc::pthread_atfork(None, None, Some(handler));
    }
    #[cfg(not(all(unix, not(miri))))]
    let _ = handler;
}

/// Registers the handler, then opens the counter. Threads that come here at
/// once each register one: a child then counts several up, which is as good.
#[cfg(not(loom))]
#[cold]
fn arm() -> usize {
    #[cfg(all(unix, not(miri)))]
    {
        extern "C" fn child() {
            // Relaxed: the child has one thread.
            GENERATION.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: the handler only increments an atomic, which is
        // async-signal-safe; it lives as long as the image, which stays mapped
        // (glibc drops handlers of unloaded images).
        unsafe {
            libc::pthread_atfork(None, None, Some(child));
        }
    }
    // Relaxed: the handler is registered in this thread's past, which is all
    // that a fork by this thread needs; a fork by another thread that has seen
    // no generation concerns no word that holds one.
    match GENERATION.compare_exchange(0, 1, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => 1,
        Err(generation) => generation,
    }
}
