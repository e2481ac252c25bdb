//! Floor 3, bench-suite. Owns how long threads of `schbench` waited for a CPU, as the kernel tells it: the mean over the
//! times that a thread was put on one. May read `/proc`.

use std::fs;

/// This thread's number.
pub(super) fn own_tid() -> i32 {
    // SAFETY: takes nothing.
    unsafe { libc::gettid() }
}

/// Mean delay of thread `tid` of this process in nanoseconds; nothing once it has ended.
pub(super) fn of(tid: i32) -> Option<u64> {
    mean(&fs::read_to_string(format!("/proc/self/task/{tid}/schedstat")).ok()?)
}

/// Of the calling thread.
pub(super) fn own() -> Option<u64> {
    mean(&fs::read_to_string("/proc/thread-self/schedstat").ok()?)
}

/// Time on a CPU, time waiting for one, and how often it was put on one.
fn mean(stat: &str) -> Option<u64> {
    let mut numbers = stat.split_whitespace().map(str::parse::<u64>);
    let (_, waited, times) = (
        numbers.next()?.ok()?,
        numbers.next()?.ok()?,
        numbers.next()?.ok()?,
    );
    waited.checked_div(times)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means() {
        assert_eq!(mean("100 70 7\n"), Some(10));
        assert_eq!(mean("0 0 0"), None);
        assert_eq!(mean("1 2"), None);
        assert_eq!(of(-1), None);
        // Kernels without schedstats have no such file.
        assert_eq!(of(own_tid()).is_some(), own().is_some());
    }
}
