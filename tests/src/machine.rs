//! The machine: CPUs, affinity, threads.

use std::io;

/// The CPUs that the calling thread may use, in order.
///
/// # Panics
///
/// If the kernel does not say.
#[must_use]
pub fn allowed_cpus() -> Vec<usize> {
    // SAFETY: a CPU set is plain bits; the kernel fills it.
    let set = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        let answer = libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set);
        assert_eq!(answer, 0, "{}", io::Error::last_os_error());
        set
    };
    (0..libc::CPU_SETSIZE as usize)
        // SAFETY: below the size of the set.
        .filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) })
        .collect()
}

/// Moves thread `tid` (0: the caller) to `cpus`.
///
/// # Errors
///
/// As `sched_setaffinity(2)`; `ESRCH` if the thread is gone.
pub fn set_affinity(tid: libc::pid_t, cpus: &[usize]) -> io::Result<()> {
    // SAFETY: a CPU set is plain bits, passed with its size.
    let answer = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        for &cpu in cpus {
            libc::CPU_SET(cpu, &mut set);
        }
        libc::sched_setaffinity(tid, size_of::<libc::cpu_set_t>(), &raw const set)
    };
    if answer == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// The kernel's number of the calling thread.
#[must_use]
pub fn gettid() -> libc::pid_t {
    // SAFETY: takes nothing, touches nothing.
    unsafe { libc::gettid() }
}

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
