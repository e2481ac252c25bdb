//! Floor 3, bench-suite. Owns the clock of `schbench`: monotonic, in nanoseconds, and in whole microseconds where the
//! original (`gettimeofday`) has no more. May ask the kernel for the time.

/// Nanoseconds since the system started.
pub(super) fn ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: writes the struct; this clock always exists.
    unsafe {
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time);
    }
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The same in microseconds; a difference of two is as coarse as the original's.
pub(super) fn us() -> u64 {
    ns() / 1000
}

/// Sleeps until `ns` is over, or a signal comes.
pub(super) fn sleep_until(until: u64) {
    let time = libc::timespec {
        tv_sec: (until / 1_000_000_000) as libc::time_t,
        tv_nsec: (until % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: reads the struct; the time that is left is not asked for.
    unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &raw const time,
            std::ptr::null_mut(),
        );
    }
}
