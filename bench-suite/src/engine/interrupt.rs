//! Floor 3, bench-suite. Owns what Ctrl-C means: the run in progress is finished, then the program ends in order; a
//! second one ends it at once. May touch the signal handlers of the process.
//!
//! Runs are processes of another group, so that the terminal's signal does not reach them, and die with this one.

use std::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);

/// Whether somebody asked to stop.
pub(crate) fn asked() -> bool {
    ASKED.load(Ordering::Relaxed)
}

/// From now on SIGINT and SIGTERM are requests.
#[cfg(unix)]
pub(crate) fn watch() {
    extern "C" fn handler(signal: libc::c_int) {
        if ASKED.swap(true, Ordering::Relaxed) {
            // SAFETY: both calls are async-signal-safe; the default action of these signals ends the process.
            unsafe {
                libc::signal(signal, libc::SIG_DFL);
                libc::raise(signal);
            }
        }
    }
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: the handler stores an atomic and calls what is async-signal-safe.
        unsafe {
            libc::signal(signal, handler as *const () as libc::sighandler_t);
        }
    }
}

/// Signals are Unix.
#[cfg(not(unix))]
pub(crate) fn watch() {}

/// In a run's process: end with the program that started it.
pub(crate) fn die_with_parent() {
    #[cfg(target_os = "linux")]
    // SAFETY: takes numbers.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
    }
}
