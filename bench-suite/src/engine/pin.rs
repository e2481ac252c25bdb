//! Floor 3, bench-suite. Owns thread placement: which CPUs are allowed, and binding a thread to one of them.
//! May touch the scheduler's affinity calls.

use super::job::Pin;

/// The CPUs that the process may use, in ascending order.
#[cfg(target_os = "linux")]
pub(crate) fn allowed() -> Vec<usize> {
    // The kernel refuses masks shorter than its own; grow until it accepts.
    let mut words = 16;
    while words <= 4096 {
        let mut mask = vec![0 as libc::c_ulong; words];
        let size = size_of_val(mask.as_slice());
        // SAFETY: the mask is writable for `size` bytes; pid 0 is the calling thread.
        let rc = unsafe { libc::sched_getaffinity(0, size, mask.as_mut_ptr().cast()) };
        if rc == 0 {
            let bits = libc::c_ulong::BITS as usize;
            return (0..words * bits)
                .filter(|cpu| mask[cpu / bits] >> (cpu % bits) & 1 == 1)
                .collect();
        }
        words *= 2;
    }
    vec![0]
}

/// Without affinity calls: as many as the system says there are.
#[cfg(not(target_os = "linux"))]
pub(crate) fn allowed() -> Vec<usize> {
    (0..std::thread::available_parallelism().map_or(1, Into::into)).collect()
}

/// The CPU for thread `index`, if threads are bound at all.
pub(crate) fn place(pin: Pin, cpus: &[usize], index: usize) -> Option<usize> {
    match pin {
        Pin::Core if !cpus.is_empty() => Some(cpus[index % cpus.len()]),
        _ => None,
    }
}

/// Binds the calling thread to `cpu` and reads the binding back.
#[cfg(target_os = "linux")]
pub(crate) fn bind(cpu: usize) -> Result<(), String> {
    let bits = libc::c_ulong::BITS as usize;
    let mut mask = vec![0 as libc::c_ulong; (cpu / bits + 1).max(16)];
    mask[cpu / bits] |= 1 << (cpu % bits);
    // SAFETY: the mask is readable for its size; pid 0 is the calling thread.
    let rc =
        unsafe { libc::sched_setaffinity(0, size_of_val(mask.as_slice()), mask.as_ptr().cast()) };
    if rc != 0 {
        return Err(format!(
            "--pin core: cannot bind a thread to CPU {cpu}: {}",
            std::io::Error::last_os_error()
        ));
    }
    match allowed().as_slice() {
        [only] if *only == cpu => Ok(()),
        other => Err(format!(
            "--pin core: bound a thread to CPU {cpu}, but the system says {other:?}"
        )),
    }
}

/// Binding needs Linux.
#[cfg(not(target_os = "linux"))]
pub(crate) fn bind(cpu: usize) -> Result<(), String> {
    Err(format!(
        "--pin core: cannot bind a thread to CPU {cpu} on this system (use --pin none)"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_go_round_robin() {
        assert_eq!(place(Pin::Core, &[3, 5], 0), Some(3));
        assert_eq!(place(Pin::Core, &[3, 5], 1), Some(5));
        assert_eq!(place(Pin::Core, &[3, 5], 2), Some(3));
        assert_eq!(place(Pin::None, &[3, 5], 2), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn binding_is_honoured_or_refused() {
        std::thread::spawn(|| {
            let cpu = *allowed().last().unwrap();
            bind(cpu).unwrap();
            assert_eq!(allowed(), [cpu]);
            assert!(bind(100_000).unwrap_err().contains("--pin core"));
        })
        .join()
        .unwrap();
    }
}
