//! Which process this is: a number that changes in a forked child.
//!
//! Floor 1 (`percpu`). Owns the generation. Lock words hold it, so that a lock
//! taken by a thread that the child does not have is recognised instead of
//! waited for.

use crate::sync::atomic::{AtomicUsize, Ordering};

#[cfg(not(loom))]
static GENERATION: AtomicUsize = AtomicUsize::new(1);

/// The generation of this process: 1, and one more in each forked descendant.
/// Never 0.
#[cfg(not(loom))]
#[inline]
#[must_use]
pub fn generation() -> usize {
    // Relaxed: changes only in a child that has one thread.
    GENERATION.load(Ordering::Relaxed)
}

/// The generation of this process under loom, where nothing forks.
#[cfg(loom)]
#[must_use]
pub fn generation() -> usize {
    1
}

/// Arms the counter, once. Called when the rung is decided.
#[cfg(not(loom))]
pub(crate) fn install() {
    #[cfg(all(unix, not(miri)))]
    {
        static INSTALLED: AtomicUsize = AtomicUsize::new(0);
        extern "C" fn child() {
            // Relaxed: the child has one thread.
            GENERATION.fetch_add(1, Ordering::Relaxed);
        }
        // Relaxed: only the exchange's atomicity matters, nothing is published.
        if INSTALLED.swap(1, Ordering::Relaxed) == 0 {
            // SAFETY: the handler only increments an atomic, which is
            // async-signal-safe; it lives as long as the image, which stays
            // mapped (glibc drops handlers of unloaded images).
            unsafe {
                libc::pthread_atfork(None, None, Some(child));
            }
        }
    }
}

#[cfg(loom)]
const _: fn() -> AtomicUsize = || AtomicUsize::new(0);
#[cfg(loom)]
const _: Ordering = Ordering::Relaxed;
