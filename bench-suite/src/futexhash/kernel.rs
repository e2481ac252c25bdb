//! Floor 3, bench-suite. Owns the calls of `futex-hash`: `prctl(PR_FUTEX_HASH)`, `futex`, and which CPUs are online.
//! May touch the kernel.

use std::fs;
use std::io;
use std::sync::atomic::AtomicU32;

/// `prctl` option; the C library may not know it.
const PR_FUTEX_HASH: libc::c_int = 78;
const SET_SLOTS: libc::c_ulong = 1;
const GET_SLOTS: libc::c_ulong = 2;
const GET_IMMUTABLE: libc::c_ulong = 3;
/// Flag of `SET_SLOTS`, on kernels that have it (6.16-rc).
const IMMUTABLE: libc::c_ulong = 1;

fn call(what: libc::c_ulong, n: libc::c_ulong, flags: libc::c_ulong) -> io::Result<usize> {
    // SAFETY: numbers only.
    let answer = unsafe { libc::prctl(PR_FUTEX_HASH, what, n, flags, 0 as libc::c_ulong) };
    usize::try_from(answer).map_err(|_| io::Error::last_os_error())
}

/// How many buckets this process's hash has; 0: it uses the global one.
pub(super) fn buckets() -> io::Result<usize> {
    call(GET_SLOTS, 0, 0)
}

/// Gives this process a hash of `n` buckets; 0: the global one, for good.
pub(super) fn set_buckets(n: usize, immutable: bool) -> io::Result<()> {
    let flags = if immutable { IMMUTABLE } else { 0 };
    call(SET_SLOTS, n as libc::c_ulong, flags).map(|_| ())
}

/// Whether the kernel knows immutable hashes.
pub(super) fn knows_immutable() -> bool {
    call(GET_IMMUTABLE, 0, 0).is_ok()
}

/// A wait that must fail. Whether it failed as it should; asks only if `checked`.
#[inline(always)]
pub(super) fn wait(word: &AtomicU32, operation: libc::c_int, value: u32, checked: bool) -> bool {
    // SAFETY: the word outlives the call. It does not hold `value`, so the call does not sleep.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_futex,
            std::ptr::from_ref(word),
            operation,
            value,
            std::ptr::null::<libc::timespec>(),
            std::ptr::null::<u32>(),
            0,
        )
    };
    !checked || (answer == -1 && io::Error::last_os_error().raw_os_error() == Some(libc::EAGAIN))
}

/// What `operation` of [`wait`] is.
pub(super) fn operation(shared: bool) -> libc::c_int {
    match shared {
        true => libc::FUTEX_WAIT,
        false => libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
    }
}

/// Keeps all memory in place, now and later.
pub(super) fn lock_memory() -> io::Result<()> {
    // SAFETY: flags only.
    match unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The CPUs that are online, whether this process may use them or not: what the original places threads on.
pub(super) fn online() -> Vec<usize> {
    fs::read_to_string("/sys/devices/system/cpu/online")
        .ok()
        .and_then(|text| list(text.trim()))
        .unwrap_or_else(crate::engine::pin::allowed)
}

/// `0-3,8`.
fn list(text: &str) -> Option<Vec<usize>> {
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        cpus.extend(from.parse::<usize>().ok()?..=to.parse().ok()?);
    }
    (!cpus.is_empty()).then_some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus() {
        assert_eq!(list("0"), Some(vec![0]));
        assert_eq!(list("0-2,5,7-8"), Some(vec![0, 1, 2, 5, 7, 8]));
        assert_eq!(list(""), None);
        assert_eq!(list("0-x"), None);
        assert!(!online().is_empty());
    }

    #[test]
    fn a_wait_that_should_fail_does() {
        let word = AtomicU32::new(0);
        assert!(wait(&word, operation(false), 1234, true));
        assert!(wait(&word, operation(true), 1234, true));
        // An operation that there is not.
        assert!(!wait(&word, 127, 1234, true));
        assert!(wait(&word, 127, 1234, false), "nobody asks");
    }
}
