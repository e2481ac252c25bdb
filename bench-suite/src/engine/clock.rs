//! Floor 3, bench-suite. Owns what it costs to look at the clock. Touches the clock only.

use std::hint::black_box;
use std::time::Instant;

/// Nanoseconds that one reading of the clock takes, on average over many: what a time between two readings contains, as
/// far as nothing is between them.
pub(crate) fn clock_ns() -> f64 {
    const TIMES: u32 = 1000;
    let start = Instant::now();
    for _ in 0..TIMES {
        black_box(Instant::now());
    }
    start.elapsed().as_secs_f64() * 1e9 / f64::from(TIMES)
}

/// CPU time of the calling thread in nanoseconds, where it can be had.
#[cfg(unix)]
pub(crate) fn thread_cpu_ns() -> Option<u64> {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: writes one `timespec` to the place given.
    let done = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) } == 0;
    let ns = |time: libc::timespec| {
        let seconds = u64::try_from(time.tv_sec).ok()?;
        Some(seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).ok()?)
    };
    done.then(|| ns(time)).flatten()
}

/// CPU time of the calling thread in nanoseconds, where it can be had.
#[cfg(not(unix))]
pub(crate) fn thread_cpu_ns() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_takes_time() {
        let ns = clock_ns();
        assert!(ns > 1.0 && ns < 1e5, "{ns}");
    }

    #[cfg(unix)]
    #[test]
    fn a_thread_that_works_uses_its_cpu() {
        let before = thread_cpu_ns().unwrap();
        let start = Instant::now();
        while thread_cpu_ns().unwrap() < before + 1_000_000 {
            assert!(start.elapsed().as_secs() < 60, "no CPU time in a minute");
        }
    }
}
