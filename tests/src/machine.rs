//! The machine: CPUs, affinity, threads.

pub use torture::cpus::{allowed as allowed_cpus, gettid, set as set_affinity};

/// Ends the process by a signal if it is still there after `seconds`.
pub fn deadline(seconds: u32) {
    // SAFETY: only sets a timer; nobody handles its signal.
    unsafe { libc::alarm(seconds) };
}

/// As [`deadline`], for programs that use the timer themselves: by a thread
/// that takes no signals. The process then ends with code 97.
pub fn watchdog(seconds: u64) {
    // SAFETY: fills and passes sets of its own. The new thread inherits the
    // mask, so there is no moment in which it takes a signal.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, &raw mut before);
        std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_secs(seconds));
            // SAFETY: ends the process at once.
            libc::_exit(97);
        });
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
    }
}
