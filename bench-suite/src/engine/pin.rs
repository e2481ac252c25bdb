//! Floor 3, bench-suite. Owns thread placement: which CPUs are allowed, and binding a thread to one of them.
//! May touch the scheduler's affinity calls.

use super::job::Pin;
use super::places::{self, Cpu};
use super::sysroot;

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

/// The CPUs for each thread in turn, round robin; empty where threads are not bound.
pub(crate) fn order(pin: Pin, cpus: &[Cpu]) -> Vec<Vec<usize>> {
    match pin {
        Pin::CoreFirst => places::core_first(cpus)
            .into_iter()
            .map(|cpu| vec![cpu])
            .collect(),
        Pin::SmtPair => places::cores(cpus),
        Pin::Pu => cpus.iter().map(|cpu| vec![cpu.cpu]).collect(),
        Pin::Spread => places::spread(cpus)
            .into_iter()
            .map(|cpu| vec![cpu])
            .collect(),
        Pin::None => Vec::new(),
    }
}

/// What `--dry-run` says of the order.
pub(crate) fn plan(pin: Pin, cpus: &[Cpu]) -> String {
    let order = order(pin, cpus);
    if order.is_empty() {
        return "threads are not bound\n".to_owned();
    }
    let places: Vec<String> = order.iter().map(|cpus| sysroot::ranges(cpus)).collect();
    format!("threads in turn on CPUs: {}\n", places.join(" "))
}

/// Binds the calling thread to `cpu`.
pub(crate) fn bind(cpu: usize) -> Result<(), String> {
    bind_all(&[cpu])
}

/// Binds the calling thread to `cpus` and reads the binding back.
#[cfg(target_os = "linux")]
pub(crate) fn bind_all(cpus: &[usize]) -> Result<(), String> {
    let bits = libc::c_ulong::BITS as usize;
    let last = cpus.iter().max().copied().unwrap_or(0);
    let mut mask = vec![0 as libc::c_ulong; (last / bits + 1).max(16)];
    for cpu in cpus {
        mask[cpu / bits] |= 1 << (cpu % bits);
    }
    // SAFETY: the mask is readable for its size; pid 0 is the calling thread.
    let rc =
        unsafe { libc::sched_setaffinity(0, size_of_val(mask.as_slice()), mask.as_ptr().cast()) };
    if rc != 0 {
        return Err(format!(
            "--pin: cannot bind a thread to CPU {}: {}",
            shown(cpus),
            std::io::Error::last_os_error()
        ));
    }
    let mut wanted = cpus.to_vec();
    wanted.sort_unstable();
    match allowed() {
        bound if bound == wanted => Ok(()),
        other => Err(format!(
            "--pin: bound a thread to CPU {}, but the system says {}",
            shown(cpus),
            shown(&other)
        )),
    }
}

/// Binding needs Linux.
#[cfg(not(target_os = "linux"))]
pub(crate) fn bind_all(cpus: &[usize]) -> Result<(), String> {
    Err(format!(
        "--pin: cannot bind a thread to CPU {} on this system (use --pin none)",
        shown(cpus)
    ))
}

fn shown(cpus: &[usize]) -> String {
    let numbers: Vec<String> = cpus.iter().map(usize::to_string).collect();
    numbers.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_tells_nothing_is_taken_in_order() {
        let cpus = places::look(std::path::Path::new("/no/such/place"), &[3, 5]);
        for pin in [Pin::CoreFirst, Pin::SmtPair, Pin::Pu, Pin::Spread] {
            assert_eq!(order(pin, &cpus), [[3], [5]], "{pin:?}");
        }
        assert!(order(Pin::None, &cpus).is_empty());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn binding_is_honoured_or_refused() {
        std::thread::spawn(|| {
            let cpu = *allowed().last().unwrap();
            bind(cpu).unwrap();
            assert_eq!(allowed(), [cpu]);
            assert!(bind(100_000).unwrap_err().contains("--pin"));
        })
        .join()
        .unwrap();
    }
}
