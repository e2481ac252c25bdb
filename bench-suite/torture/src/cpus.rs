//! CPUs and the kernel's numbers of threads.
//!
//! Floor 3. Owns nothing; three system calls.

use std::io;

/// The CPUs that the calling thread may use, in order.
///
/// # Panics
///
/// If the kernel does not say.
#[must_use]
pub fn allowed() -> Vec<usize> {
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
pub fn set(tid: libc::pid_t, cpus: &[usize]) -> io::Result<()> {
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

/// The CPU that runs this.
#[must_use]
pub fn current() -> usize {
    // SAFETY: takes nothing, touches nothing.
    usize::try_from(unsafe { libc::sched_getcpu() }).unwrap_or(0)
}

/// The kernel's number of the calling thread.
#[must_use]
pub fn gettid() -> libc::pid_t {
    // SAFETY: takes nothing, touches nothing.
    unsafe { libc::gettid() }
}
