//! Floor 3, bench-suite. Owns the measurements of `calibrate`: each one a loop on bound threads, and the samples of it.
//! May touch `percpu`, threads, pipes and `membarrier`.
//!
//! **Orderings.** SeqCst where the cost of a read-modify-write is the subject. Stop flags are Relaxed: they carry
//! nothing, and threads are joined.

use super::Estimate;
use crate::engine::pin;
use percpu::line::Lines;
use std::hint::black_box;
use std::io::{Read, Write};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::time::{Duration, Instant};

/// Alone on its pair of cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Padded<T>(T);

/// A measurement that a busy machine draws out ends here, with the samples that it has.
const PATIENCE: Duration = Duration::from_secs(5);

/// How much of everything.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    /// Samples of a core-to-core pair.
    pub(crate) samples: usize,
    /// Round trips of a sample.
    pub(crate) rounds: usize,
    /// Samples of whatever else.
    pub(crate) others: usize,
    /// Length of a contended sample.
    pub(crate) window: Duration,
}

impl Effort {
    /// 300 x 1000, as core-to-core-latency does; `quick` a small part.
    pub(crate) fn new(quick: bool) -> Self {
        if quick {
            Effort {
                samples: 30,
                rounds: 100,
                others: 15,
                window: Duration::from_millis(2),
            }
        } else {
            Effort {
                samples: 300,
                rounds: 1000,
                others: 100,
                window: Duration::from_millis(10),
            }
        }
    }
}

/// Runs `work` on a thread bound to `cpu`.
fn on<T: Send>(cpu: usize, work: impl FnOnce() -> T + Send) -> Result<T, String> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| pin::bind(cpu).map(|()| work()));
        thread.join().expect("a calibrating thread panicked")
    })
}

/// `count` samples of `inner` calls each, in nanoseconds a call, on the calling thread.
fn sample(count: usize, inner: usize, mut call: impl FnMut()) -> Vec<f64> {
    let begin = Instant::now();
    let mut samples = Vec::with_capacity(count);
    for _ in 0..inner {
        call();
    }
    while samples.len() < count && (samples.is_empty() || begin.elapsed() < PATIENCE) {
        let start = Instant::now();
        for _ in 0..inner {
            call();
        }
        samples.push(start.elapsed().as_nanos() as f64 / inner as f64);
    }
    samples
}

/// One way between two CPUs: half of a compare-exchange round trip on one line.
pub(crate) fn ping_pong(a: usize, b: usize, effort: Effort) -> Result<Estimate, String> {
    const PING: usize = 1;
    const PONG: usize = 0;
    let word = Padded(AtomicUsize::new(PONG));
    let stop = Padded(AtomicBool::new(false));
    let change = |from: usize, to: usize| {
        word.0
            .compare_exchange(from, to, Ordering::SeqCst, Ordering::Relaxed)
            .is_ok()
    };
    let samples = std::thread::scope(|scope| {
        let partner = scope.spawn(|| -> Result<(), String> {
            pin::bind(b)?;
            while !stop.0.load(Ordering::Relaxed) {
                // Looking at the flag each time would be another line in the loop.
                for _ in 0..256 {
                    change(PING, PONG);
                }
            }
            Ok(())
        });
        let samples = on(a, || {
            sample(effort.samples, effort.rounds, || {
                // A partner that could not be bound has gone, and never answers.
                while !(0..4096).any(|_| change(PONG, PING)) && !partner.is_finished() {}
            })
        });
        stop.0.store(true, Ordering::Relaxed);
        partner.join().expect("a calibrating thread panicked")?;
        samples
    })?;
    Ok(Estimate::of(
        &samples.iter().map(|ns| ns / 2.0).collect::<Vec<_>>(),
    ))
}

/// Nanoseconds for one `fetch_add` of all of them together, each of `cpus` hammering one line. `None` if they were
/// hardly ever at it at once.
///
/// What a batch got back tells how many of the others came between its own, so that only batches count in which all
/// were at work: on a busy machine one of the threads often waits for its CPU, and the line costs nothing meanwhile.
pub(crate) fn contended(cpus: &[usize], effort: Effort) -> Result<Option<Estimate>, String> {
    const BATCH: usize = 1024;
    let others = cpus.len() - 1;
    let fair = BATCH * others / 16..=BATCH * others * 16;
    let mut samples = Vec::new();
    for _ in 0..(effort.others / 5).max(5) {
        let word = Padded(AtomicUsize::new(0));
        let stop = Padded(AtomicBool::new(false));
        let gate = Barrier::new(cpus.len() + 1);
        let batches = std::thread::scope(|scope| {
            let crew: Vec<_> = cpus
                .iter()
                .map(|&cpu| {
                    let (word, stop, gate, fair) = (&word, &stop, &gate, &fair);
                    scope.spawn(move || {
                        let bound = pin::bind(cpu);
                        gate.wait();
                        bound?;
                        let mut times = Vec::with_capacity(1024);
                        while !stop.0.load(Ordering::Relaxed) {
                            let start = Instant::now();
                            let first = word.0.fetch_add(1, Ordering::SeqCst);
                            for _ in 2..BATCH {
                                black_box(word.0.fetch_add(1, Ordering::SeqCst));
                            }
                            let all = word.0.fetch_add(1, Ordering::SeqCst) - first + 1;
                            let time = start.elapsed().as_nanos() as f64 / all as f64;
                            if fair.contains(&(all - BATCH)) {
                                times.push(time);
                            }
                        }
                        Ok(times)
                    })
                })
                .collect();
            gate.wait();
            std::thread::sleep(effort.window);
            stop.0.store(true, Ordering::Relaxed);
            crew.into_iter()
                .map(|thread| thread.join().expect("a calibrating thread panicked"))
                .collect::<Result<Vec<_>, String>>()
        })?;
        samples.extend(crate::report::stats::median(&batches.concat()));
    }
    Ok((!samples.is_empty()).then(|| Estimate::of(&samples)))
}

/// Costs of one CPU alone.
#[derive(Debug)]
pub(crate) struct Alone {
    /// A read-modify-write on an own line.
    pub(crate) rmw: Estimate,
    /// A store and a fence after it.
    pub(crate) fence: Estimate,
    /// The cheapest system call.
    pub(crate) syscall: Estimate,
    /// One restartable section that adds to a word, if there are sections.
    pub(crate) section: Option<Estimate>,
}

/// Measures them on `cpu`.
pub(crate) fn alone(cpu: usize, effort: Effort) -> Result<Alone, String> {
    on(cpu, || {
        let line = Padded(AtomicUsize::new(0));
        let take = |inner: usize, call: &mut dyn FnMut(usize)| {
            Estimate::of(
                &sample(effort.others, 1, || call(inner))
                    .iter()
                    .map(|ns| ns / inner as f64)
                    .collect::<Vec<_>>(),
            )
        };
        // The loop is inside of the call through a pointer, so that its cost is not measured.
        let rmw = take(10_000, &mut |inner| {
            for _ in 0..inner {
                black_box(line.0.fetch_add(1, Ordering::SeqCst));
            }
        });
        let fence = take(10_000, &mut |inner| {
            for i in 0..inner {
                line.0.store(i, Ordering::Relaxed);
                fence(Ordering::SeqCst);
            }
        });
        let syscall = take(1000, &mut |inner| {
            for _ in 0..inner {
                black_box(parent());
            }
        });
        let section = sections().then(|| {
            take(10_000, &mut |inner| {
                for _ in 0..inner {
                    black_box(section());
                }
            })
        });
        Alone {
            rmw,
            fence,
            syscall,
            section,
        }
    })
}

#[cfg(unix)]
fn parent() -> u32 {
    std::os::unix::process::parent_id()
}

#[cfg(not(unix))]
fn parent() -> u32 {
    std::thread::yield_now();
    0
}

static LINES: Lines = Lines::new();

fn section() -> bool {
    // SAFETY: the table is a static; its word 0 is opened below and changed by this section alone.
    unsafe { percpu::section::add(LINES.first(), 0) }
}

/// Whether sections run here; opens the line of the running CPU, to which the caller is bound.
fn sections() -> bool {
    // The first question decides the rung, without which there are no sections.
    if percpu::barrier::rung() != percpu::barrier::Rung::Rseq || !percpu::section::registered() {
        return false;
    }
    LINES.activate(percpu::section::index_hint(), 1, 1);
    section()
}

/// A process-wide barrier called from the first of `cpus`, while threads on the others are busy.
pub(crate) fn barrier(
    cpus: &[usize],
    effort: Effort,
    call: fn() -> bool,
) -> Result<Option<Estimate>, String> {
    let stop = Padded(AtomicBool::new(false));
    let gate = Barrier::new(cpus.len());
    std::thread::scope(|scope| {
        let busy: Vec<_> = cpus[1..]
            .iter()
            .map(|&cpu| {
                let (stop, gate) = (&stop, &gate);
                scope.spawn(move || {
                    let bound = pin::bind(cpu);
                    gate.wait();
                    bound?;
                    while !stop.0.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                    Ok(())
                })
            })
            .collect();
        let samples = on(cpus[0], || {
            gate.wait();
            let mut works = true;
            let samples = sample(effort.others, 20, || works &= call());
            works.then_some(samples)
        });
        if samples.is_err() {
            gate.wait();
        }
        stop.0.store(true, Ordering::Relaxed);
        for thread in busy {
            thread
                .join()
                .expect("a calibrating thread panicked")
                .map_err(|why: String| why)?;
        }
        Ok(samples?.map(|samples| Estimate::of(&samples)))
    })
}

/// The heavy barrier of the rung in use.
pub(crate) fn heavy() -> bool {
    percpu::barrier::heavy().is_ok()
}

/// `membarrier(PRIVATE_EXPEDITED)`.
#[cfg(target_os = "linux")]
pub(crate) fn membarrier() -> bool {
    const EXPEDITED: libc::c_int = 8;
    const REGISTER: libc::c_int = 16;
    let call = |command: libc::c_int| {
        // SAFETY: `membarrier` takes three numbers and touches no memory of the caller.
        unsafe {
            libc::syscall(
                libc::SYS_membarrier,
                command,
                0 as libc::c_uint,
                0 as libc::c_int,
            ) == 0
        }
    };
    call(EXPEDITED) || (call(REGISTER) && call(EXPEDITED))
}

/// Needs Linux.
#[cfg(not(target_os = "linux"))]
pub(crate) fn membarrier() -> bool {
    false
}

/// A round trip of one byte over two pipes, between threads on CPUs `a` and `b` (which may be the same).
pub(crate) fn pipe(a: usize, b: usize, effort: Effort) -> Result<Estimate, String> {
    let pipes = || std::io::pipe().map_err(|error| format!("cannot make a pipe: {error}"));
    let ((mut hear, mut ask), (mut answer, mut reply)) = (pipes()?, pipes()?);
    let samples = std::thread::scope(|scope| {
        let partner = scope.spawn(move || -> Result<(), String> {
            pin::bind(b)?;
            let mut byte = [0];
            // Ends when the other side closes its end.
            while matches!(hear.read(&mut byte), Ok(1)) {
                if reply.write_all(&byte).is_err() {
                    break;
                }
            }
            Ok(())
        });
        let samples = on(a, move || {
            let mut byte = [7];
            let mut well = true;
            let samples = sample(effort.others, effort.rounds / 10, || {
                well &= ask.write_all(&byte).is_ok() && answer.read_exact(&mut byte).is_ok();
            });
            drop(ask);
            well.then_some(samples)
                .ok_or_else(|| "a pipe broke".to_owned())
        });
        partner.join().expect("a calibrating thread panicked")?;
        samples?
    })?;
    Ok(Estimate::of(&samples))
}
