//! The rung of publish-and-recheck readers: plain expedited `membarrier`.
//!
//! Floor 1 (`percpu`); touches the kernel only.

use super::{BarrierLost, linux};
use crate::sync::atomic::{Ordering, fence};

/// Registers this process and tries the barrier once.
pub(super) fn probe() -> Result<(), String> {
    linux::register(
        linux::PRIVATE_EXPEDITED,
        linux::REGISTER_PRIVATE_EXPEDITED,
        "membarrier(PRIVATE_EXPEDITED)",
    )
}

/// A full barrier on every running thread of the process.
pub(super) fn heavy() -> Result<(), BarrierLost> {
    // SeqCst: the caller's own side, in the language's terms (the system call
    // is opaque to it); negligible beside the call.
    fence(Ordering::SeqCst);
    linux::expedited(linux::PRIVATE_EXPEDITED, linux::REGISTER_PRIVATE_EXPEDITED)?;
    // SeqCst: keeps the scan behind the call.
    fence(Ordering::SeqCst);
    Ok(())
}
