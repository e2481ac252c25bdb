//! Floor 3, bench-suite. Owns one run of `whack`: the buffer, the threads, the two barriers, the clock. May map memory,
//! bind threads, and call the C library's `random`.
//!
//! Threads are bound before they wait at the start barrier, so before any page is touched; the binding is read back.
//! Counters are read after the threads were joined.

use super::memory::REACH;
use super::{Prng, Thp, Vma};
use crate::command::say;
use crate::engine::pin;
use crate::trouble::Trouble;
use std::io::{self, Write};
use std::ptr;
use std::sync::Barrier;
use std::time::Instant;

/// What is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Config {
    pub(super) threads: usize,
    pub(super) bytes: u64,
    pub(super) writes: u64,
    pub(super) debug: bool,
    pub(super) prng: Prng,
    pub(super) thp: Thp,
    pub(super) vma: Vma,
}

/// What came out.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Outcome {
    /// From before the start barrier to after the stop barrier.
    pub(super) us: u64,
    /// Page faults of the threads.
    pub(super) faults: u64,
    /// Last start minus first start.
    pub(super) skew_us: f64,
    /// Fewest and most seconds of a thread.
    pub(super) fastest_us: f64,
    pub(super) slowest_us: f64,
    /// CPUs in the order of the threads.
    pub(super) cpus: Vec<usize>,
}

unsafe extern "C" {
    fn random() -> libc::c_long;
    fn srandom(seed: libc::c_uint);
}

/// The buffer: for each thread where its part begins, and how long it is.
struct Buffer {
    base: *mut u8,
    bytes: usize,
    parts: Vec<(usize, u64)>,
}

// SAFETY: memory. Threads that share a part race on its bytes, as in the original; they do it with atomic accesses.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Maps it; no page is touched. (The original's `malloc` of so much is the same call.)
    fn new(config: &Config) -> io::Result<Self> {
        const PAGE: u64 = 4096;
        const HUGE: u64 = 2 << 20;
        let to_usize =
            |n: u64| usize::try_from(n).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory));
        let threads = config.threads as u64;
        // A part, and the distance of two parts: a page between them keeps the kernel from making them one.
        let (len, stride, parts) = match config.vma {
            Vma::One => (config.bytes, config.bytes, 1),
            Vma::PerThread => {
                let len = (config.bytes.min(REACH) / threads)
                    .max(PAGE)
                    .next_multiple_of(PAGE);
                let align = if config.thp == Thp::Always {
                    HUGE
                } else {
                    PAGE
                };
                (len, (len + PAGE).next_multiple_of(align), threads)
            }
        };
        let bytes = to_usize(stride * parts)?;
        let part = to_usize(len)?;
        let buffer = Buffer {
            base: map(bytes)?,
            bytes,
            parts: (0..threads)
                .map(|n| Ok((to_usize(n % parts * stride)?, len)))
                .collect::<io::Result<_>>()?,
        };
        for &(start, _) in &buffer.parts[..parts as usize] {
            let at = buffer.base.wrapping_add(start).cast();
            let advice = match config.thp {
                Thp::Never => Some(libc::MADV_NOHUGEPAGE),
                Thp::Madvise => None,
                Thp::Always => Some(libc::MADV_HUGEPAGE),
            };
            // SAFETY: its own mapping.
            unsafe {
                if libc::mprotect(at, part, libc::PROT_READ | libc::PROT_WRITE) != 0 {
                    return Err(io::Error::last_os_error());
                }
                if let Some(advice) = advice
                    && libc::madvise(at, part, advice) != 0
                    && config.thp == Thp::Always
                {
                    return Err(io::Error::last_os_error());
                }
            }
        }
        Ok(buffer)
    }

    /// Adds one, as the original: a load and a store that another thread's may come between. On x86-64 one
    /// instruction, as compilers make of `buffer[i]++`: it faults once, for writing. (A load of its own would map the
    /// page of zeroes first, and the store would fault again.)
    #[inline(always)]
    fn bump(&self, start: usize, index: u64) {
        let byte = self.base.wrapping_add(start + index as usize);
        #[cfg(target_arch = "x86_64")]
        // SAFETY: in the part, which is mapped for writing; all threads access it by this instruction.
        unsafe {
            std::arch::asm!("inc byte ptr [{}]", in(reg) byte, options(nostack));
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
            // SAFETY: in the part; all threads access it by such loads and stores.
            let byte = unsafe { AtomicU8::from_ptr(byte) };
            byte.store(byte.load(Relaxed).wrapping_add(1), Relaxed);
        }
    }
}

fn map(bytes: usize) -> io::Result<*mut u8> {
    // SAFETY: a new mapping concerns no other memory.
    let base = unsafe {
        libc::mmap(
            ptr::null_mut(),
            bytes,
            libc::PROT_NONE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if base == libc::MAP_FAILED {
        Err(io::Error::last_os_error())
    } else {
        Ok(base.cast())
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: its own mapping; the threads have been joined.
        unsafe { libc::munmap(self.base.cast(), self.bytes) };
    }
}

/// A thread's numbers, all below 2^31.
enum Numbers {
    Libc,
    Own(u64),
}

impl Numbers {
    fn new(config: &Config, thread: usize) -> Self {
        match config.prng {
            Prng::LibcLocked => Numbers::Libc,
            Prng::PerThread => Numbers::Own(
                (config.bytes ^ (thread as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)) | 1,
            ),
        }
    }

    #[inline(always)]
    fn next(&mut self) -> u64 {
        match self {
            // SAFETY: takes its lock, touches its own state.
            Numbers::Libc => unsafe { random() }.unsigned_abs(),
            // Marsaglia's xorshift with a multiplication (Vigna), the upper bits.
            Numbers::Own(state) => {
                *state ^= *state >> 12;
                *state ^= *state << 25;
                *state ^= *state >> 27;
                state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33
            }
        }
    }
}

/// What one thread saw.
struct Seen {
    start: Instant,
    stop: Instant,
    faults: u64,
}

fn faults() -> u64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: writes one `rusage`, and zeroed is a valid one should it fail.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init()
    };
    usage.ru_minflt.unsigned_abs()
}

/// One run in this process.
pub(super) fn run(config: &Config) -> Result<Outcome, Trouble> {
    let environment = |why: String| Trouble::Environment(format!("whack: {why}"));
    let allowed = pin::allowed();
    // SAFETY: sets the C library's state, which no thread uses yet. Cut off as the original's argument.
    unsafe { srandom(config.bytes as libc::c_uint) };
    let buffer = Buffer::new(config).map_err(|error| {
        environment(format!("cannot map {} bytes for -m: {error}", config.bytes))
    })?;
    let (begin, end) = (
        Barrier::new(config.threads + 1),
        Barrier::new(config.threads + 1),
    );
    let cpus: Vec<usize> = (0..config.threads)
        .map(|thread| allowed[thread % allowed.len()])
        .collect();
    let refused = std::sync::Mutex::new(None);
    let refuse = |why: String| {
        *refused
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner) = Some(why);
    };
    let worker = |thread: usize| {
        let bound = pin::bind(cpus[thread]);
        if let Err(why) = &bound {
            refuse(why.clone());
        }
        let (start_of, len) = buffer.parts[thread];
        let mut numbers = Numbers::new(config, thread);
        let mut indexes = String::new();
        begin.wait();
        let start = Instant::now();
        let before = faults();
        if bound.is_ok() {
            for _ in 0..config.writes {
                let index = numbers.next() % len;
                buffer.bump(start_of, index);
                if config.debug {
                    indexes.push_str(&format!("{index}\n"));
                }
            }
        }
        let seen = Seen {
            faults: faults() - before,
            start,
            stop: Instant::now(),
        };
        end.wait();
        (seen, indexes)
    };
    let (us, seen) = std::thread::scope(|scope| -> Result<_, Trouble> {
        let mut crew = Vec::with_capacity(config.threads);
        for thread in 0..config.threads {
            let worker = &worker;
            let spawned = std::thread::Builder::new()
                .stack_size(128 << 10)
                .spawn_scoped(scope, move || worker(thread));
            match spawned {
                Ok(thread) => crew.push(thread),
                // Those that wait at the barrier cannot be called back: the process ends.
                Err(error) => fail(&environment(format!(
                    "only {thread} of {} threads could be started: {error}",
                    config.threads
                ))),
            }
        }
        let start = Instant::now();
        begin.wait();
        end.wait();
        let us = u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX);
        let joined = crew
            .into_iter()
            .map(|thread| thread.join().expect("does not panic"));
        Ok((us, joined.collect::<Vec<_>>()))
    })?;
    let refused = refused
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(why) = refused {
        return Err(environment(why));
    }
    for (_, indexes) in &seen {
        say(indexes)?;
    }
    let seen: Vec<Seen> = seen.into_iter().map(|(seen, _)| seen).collect();
    Ok(summary(us, &seen, cpus))
}

fn fail(trouble: &Trouble) -> ! {
    let _ = writeln!(io::stderr(), "hpbench: {trouble}");
    std::process::exit(i32::from(trouble.code()));
}

fn summary(us: u64, seen: &[Seen], cpus: Vec<usize>) -> Outcome {
    let starts = || seen.iter().map(|seen| seen.start);
    let skew = starts().max().zip(starts().min());
    let spans = || {
        seen.iter()
            .map(|seen| seen.stop.duration_since(seen.start).as_secs_f64() * 1e6)
    };
    Outcome {
        us,
        faults: seen.iter().map(|seen| seen.faults).sum(),
        skew_us: skew.map_or(0.0, |(last, first)| {
            last.duration_since(first).as_secs_f64() * 1e6
        }),
        fastest_us: spans().fold(f64::INFINITY, f64::min),
        slowest_us: spans().fold(0.0, f64::max),
        cpus,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(prng: Prng, vma: Vma) -> Config {
        Config {
            threads: 3,
            bytes: 64 << 20,
            writes: 2_000,
            debug: false,
            prng,
            thp: Thp::Never,
            vma,
        }
    }

    /// Report 104: what is touched is what the arithmetic says, and the kernel counts it.
    #[test]
    fn report_104_the_kernel_counts_the_faults_that_were_expected() {
        for prng in [Prng::LibcLocked, Prng::PerThread] {
            for vma in [Vma::One, Vma::PerThread] {
                let config = config(prng, vma);
                let expected = super::super::memory::need(&config).pages as f64;
                let outcome = run(&config).unwrap();
                let found = outcome.faults as f64;
                assert!(
                    (0.97 * expected..1.03 * expected + 60.0).contains(&found),
                    "{config:?}: {found} of {expected}"
                );
                assert!(outcome.slowest_us <= outcome.us as f64 + 1.0);
            }
        }
    }

    /// Report 102: a run that begins while threads are still being made. All wait at a barrier, and how far apart they
    /// left it is recorded. Report 105: each is bound before it touches anything.
    #[test]
    fn report_102_and_105_a_gate_and_a_binding() {
        let outcome = run(&config(Prng::PerThread, Vma::One)).unwrap();
        let allowed = pin::allowed();
        let expected: Vec<usize> = (0..3).map(|n| allowed[n % allowed.len()]).collect();
        assert_eq!(outcome.cpus, expected);
        assert!(outcome.skew_us >= 0.0 && outcome.skew_us <= outcome.us as f64);
    }

    #[test]
    fn numbers_stay_in_the_range_of_random_and_reach_its_ends() {
        for prng in [Prng::LibcLocked, Prng::PerThread] {
            let mut numbers = Numbers::new(&config(prng, Vma::One), 0);
            let drawn: Vec<u64> = (0..100_000).map(|_| numbers.next()).collect();
            assert!(drawn.iter().all(|&n| n < REACH), "{prng:?}");
            assert!(drawn.iter().any(|&n| n < REACH >> 10), "{prng:?}");
            assert!(drawn.iter().any(|&n| n > REACH - (REACH >> 10)), "{prng:?}");
        }
    }

    #[test]
    fn parts_do_not_overlap() {
        let buffer = Buffer::new(&config(Prng::PerThread, Vma::PerThread)).unwrap();
        for pair in buffer.parts.windows(2) {
            assert!(pair[0].0 + pair[0].1 as usize + 4096 <= pair[1].0);
        }
        let &(start, len) = buffer.parts.last().unwrap();
        assert!(start + len as usize <= buffer.bytes);
        buffer.bump(start, len - 1);
    }
}
