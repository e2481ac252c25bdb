//! Floor 3, bench-suite. Owns the threads of a run: start gate, phases, stamps.
//! May touch `engine::pin`; knows nothing of schemes.
//!
//! ```text
//! HOLD  threads bind themselves, make their reader state and arrive; nobody is released before all have
//! WARM  the loop runs, nothing counts
//! RUN   each thread stamps its own start, counts batches
//! STOP  each thread stamps its own stop and leaves
//! LEAVE (stall) the parked reader leaves
//! ```
//! Threads look at the phase once per batch of [`BATCH`] operations. Counts stay in the thread's registers, and once per
//! batch are left in a word of its own for whoever draws the windows: there is no counter that two threads share a line
//! over.
//!
//! **Orderings.** The phase word is stored with Release and read with Relaxed in the loop: nothing is published
//! through it; results come back through `join`.

use super::job::{Job, Pin};
use super::windows::{Seats, Series};
use super::{pin, places, room, windows};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Operations between two looks at the phase.
pub(crate) const BATCH: u64 = 64;

/// Stack of a worker: thousands of them may be alive, but one of the peers builds its global state on the stack of
/// its first user, which takes more than 128 KiB without optimisation.
pub(crate) const STACK: usize = 512 << 10;

const HOLD: u32 = 0;
const WARM: u32 = 1;
const RUN: u32 = 2;
const STOP: u32 = 3;
const LEAVE: u32 = 4;

/// Alone on its pair of cache lines.
#[derive(Debug)]
#[repr(align(128))]
struct Padded<T>(T);

#[derive(Debug, Default)]
struct Gate {
    arrived: usize,
    refused: Option<String>,
    ended: Option<String>,
}

/// The clock that all threads of a run follow.
#[derive(Debug)]
pub(crate) struct Pace {
    phase: Padded<AtomicU32>,
    gate: Padded<Mutex<Gate>>,
    arrived: Condvar,
    opened: Condvar,
    ended: Condvar,
    left: Condvar,
    seats: Seats,
}

/// What one thread did.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tally {
    /// Operations between the stamps.
    pub(crate) ops: u64,
    /// Dead objects read, in the warm-up too.
    pub(crate) bad: u64,
    /// When counting started.
    pub(crate) start: Instant,
    /// When it stopped.
    pub(crate) stop: Instant,
}

/// Why a run gave no result.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The machine refuses a binding: the whole program stops.
    Environment(String),
    /// This run cannot be had here: it is skipped. The number: so many of its threads could not be started.
    Skipped(String, Option<usize>),
}

impl Pace {
    fn new(threads: usize) -> Self {
        Pace {
            phase: Padded(AtomicU32::new(HOLD)),
            gate: Padded(Mutex::default()),
            arrived: Condvar::new(),
            opened: Condvar::new(),
            ended: Condvar::new(),
            left: Condvar::new(),
            seats: Seats::new(threads),
        }
    }

    fn gate(&self) -> MutexGuard<'_, Gate> {
        self.gate.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline(always)]
    fn phase(&self) -> u32 {
        self.phase.0.load(Ordering::Relaxed)
    }

    fn advance(&self, phase: u32) {
        let _gate = self.gate();
        let before = self.phase.0.swap(phase, Ordering::Release);
        // Thousands of parked threads must not be woken for phases that do not concern them.
        if before == HOLD {
            self.opened.notify_all();
        }
        if phase == LEAVE {
            self.left.notify_all();
        }
    }

    fn wait_phase(&self, at_least: u32, condition: &Condvar) {
        let mut gate = self.gate();
        while self.phase() < at_least {
            gate = condition.wait(gate).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// A thread is ready, or cannot be.
    fn arrive(&self, refused: Option<String>) {
        let mut gate = self.gate();
        gate.arrived += 1;
        gate.refused = gate.refused.take().or(refused);
        self.arrived.notify_all();
    }

    /// Says, in the place of [`begin`](Self::begin), that this thread cannot take part: the run is refused.
    pub(crate) fn refuse(&self, why: String) {
        self.arrive(Some(why));
    }

    fn wait_arrivals(&self, count: usize) -> Result<(), Refusal> {
        let mut gate = self.gate();
        loop {
            if let Some(why) = gate.refused.take() {
                return Err(Refusal::Environment(why));
            }
            if gate.arrived >= count {
                return Ok(());
            }
            gate = self
                .arrived
                .wait(gate)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Sleeps for `time`, or until a thread ended the run. Returns why, if one did.
    fn sleep(&self, time: Duration) -> Option<String> {
        let until = Instant::now() + time;
        let mut gate = self.gate();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if gate.ended.is_some() || left.is_zero() {
                return gate.ended.clone();
            }
            gate = self
                .ended
                .wait_timeout(gate, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// Ends the run before its time, for a reason that becomes its note.
    pub(crate) fn end_early(&self, why: &str) {
        self.gate().ended.get_or_insert_with(|| why.to_owned());
        self.ended.notify_all();
    }

    /// Waits at the gate, then runs batches until the end. `batch` performs [`BATCH`] operations and returns how many
    /// dead objects it read.
    #[inline(always)]
    pub(crate) fn measure(&self, mut batch: impl FnMut() -> u64) -> Tally {
        self.begin();
        let mut bad = 0;
        while self.warming() {
            bad += batch();
        }
        let seat = self.seats.own();
        let mut ops = 0;
        let start = Instant::now();
        while self.running() {
            bad += batch();
            ops += BATCH;
            // Relaxed: a figure for the windows.
            seat.store(ops, Ordering::Relaxed);
        }
        Tally {
            ops,
            bad,
            start,
            stop: Instant::now(),
        }
    }

    /// What the calling thread has counted so far, for the windows; [`measure`](Self::measure) says it by itself.
    pub(crate) fn counted(&self, ops: u64) {
        // Relaxed: as in `measure`.
        self.seats.own().store(ops, Ordering::Relaxed);
    }

    /// Waits at the gate and then until the end of the run without doing anything.
    pub(crate) fn park(&self) {
        self.arrive(None);
        self.wait_phase(LEAVE, &self.left);
    }

    /// Arrives and waits at the gate.
    pub(crate) fn begin(&self) {
        self.arrive(None);
        self.wait_phase(WARM, &self.opened);
    }

    /// Whether the warm-up goes on.
    #[inline(always)]
    pub(crate) fn warming(&self) -> bool {
        self.phase() == WARM
    }

    /// Whether operations count now.
    #[inline(always)]
    pub(crate) fn running(&self) -> bool {
        self.phase() == RUN
    }

    /// Whether there is anything left to do, measured or not.
    #[inline(always)]
    pub(crate) fn working(&self) -> bool {
        matches!(self.phase(), WARM | RUN)
    }

    /// Whether everything is over, what is done at the stop too.
    pub(crate) fn leaving(&self) -> bool {
        self.phase() == LEAVE
    }

    /// The usual course of a run. Returns why it ended early, if it did.
    pub(crate) fn keep_time(&self, job: &Job) -> Option<String> {
        self.advance(WARM);
        let early = self.sleep(job.warmup);
        self.advance(RUN);
        early.or_else(|| self.draw(job.time))
    }

    /// Sleeps for `time` as [`Pace::sleep`] does, and wakes at the end of each window.
    fn draw(&self, time: Duration) -> Option<String> {
        let start = Instant::now();
        let mut series = Series::start(time);
        loop {
            let left = time.saturating_sub(start.elapsed());
            let early = self.sleep(series.until_next(left));
            let over = early.is_some() || start.elapsed() >= time;
            series.look(&self.seats, over);
            if over {
                series.hand_over();
                return early;
            }
        }
    }
}

/// One thread's part of a run; it must call [`Pace::measure`], [`Pace::begin`] or [`Pace::park`] once.
pub(crate) type Worker<'a> = Box<dyn FnOnce(&Pace) -> Tally + Send + 'a>;

/// Runs `workers`, each on its CPU, through the phases. `at_stop` is called between STOP and LEAVE.
/// Returns the tallies in the order of the workers, and why the run ended early, if it did.
pub(crate) fn run(
    job: &Job,
    workers: Vec<Worker<'_>>,
    at_stop: impl FnOnce(),
) -> Result<(Vec<Tally>, Option<String>), Refusal> {
    let places = match job.pin {
        Pin::None => Vec::new(),
        pin => pin::order(pin, &places::here()),
    };
    let count = workers.len();
    let pace = Pace::new(count);
    std::thread::scope(|scope| {
        let mut crew = Vec::with_capacity(count);
        for (index, worker) in workers.into_iter().enumerate() {
            let cpus = (!places.is_empty()).then(|| places[index % places.len()].clone());
            let pace = &pace;
            let spawned =
                std::thread::Builder::new()
                    .stack_size(STACK)
                    .spawn_scoped(scope, move || {
                        Seats::take(index);
                        if let Some(Err(why)) = cpus.as_deref().map(pin::bind_all) {
                            pace.arrive(Some(why));
                            return None;
                        }
                        Some(worker(pace))
                    });
            match spawned {
                Ok(thread) => crew.push(thread),
                Err(error) => {
                    pace.advance(LEAVE);
                    let why = format!(
                        "only {index} of {count} threads could be started: {error}{}",
                        room::blame(count - index, STACK)
                    );
                    return Err(Refusal::Skipped(why, Some(count - index)));
                }
            }
        }
        if let Err(refusal) = pace.wait_arrivals(count) {
            pace.advance(LEAVE);
            return Err(refusal);
        }
        let early = pace.keep_time(job);
        pace.advance(STOP);
        at_stop();
        pace.advance(LEAVE);
        let tallies = crew.into_iter().map(|thread| {
            thread
                .join()
                .expect("a worker panicked")
                .expect("a worker was refused")
        });
        let tallies = tallies.collect();
        windows::finish(&pace.seats);
        Ok((tallies, early))
    })
}

/// Throughput of a group of threads: all operations over the measured span from the first start to the last stop.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rate {
    /// Operations.
    pub(crate) ops: u64,
    /// Dead objects read.
    pub(crate) bad: u64,
    /// Span in seconds.
    pub(crate) elapsed_s: f64,
    /// Last start minus first start, in seconds.
    pub(crate) skew_s: f64,
    /// Fewest and most operations of one thread.
    pub(crate) extremes: (u64, u64),
}

impl Rate {
    /// Adds up `tallies`; `None` of no threads.
    pub(crate) fn of(tallies: &[Tally]) -> Option<Self> {
        let first = tallies.iter().map(|t| t.start).min()?;
        let last = tallies.iter().map(|t| t.start).max()?;
        let end = tallies.iter().map(|t| t.stop).max()?;
        Some(Rate {
            ops: tallies.iter().map(|t| t.ops).sum(),
            bad: tallies.iter().map(|t| t.bad).sum(),
            elapsed_s: end.duration_since(first).as_secs_f64(),
            skew_s: last.duration_since(first).as_secs_f64(),
            extremes: (
                tallies.iter().map(|t| t.ops).min()?,
                tallies.iter().map(|t| t.ops).max()?,
            ),
        })
    }

    /// Operations per second of measured time.
    pub(crate) fn per_s(&self) -> f64 {
        if self.elapsed_s > 0.0 {
            self.ops as f64 / self.elapsed_s
        } else {
            0.0
        }
    }

    /// CPU time per operation, taking each of `threads` threads to have had a CPU, or its share of `cpus`.
    pub(crate) fn ns_per_op(&self, threads: usize, cpus: usize) -> Option<f64> {
        (self.ops > 0).then(|| self.elapsed_s * 1e9 * threads.min(cpus) as f64 / self.ops as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::job::Pin;
    use crate::workloads::Workload;

    fn job(pin: Pin) -> Job {
        Job {
            workload: Workload::Read,
            variant: "none".into(),
            threads: 2,
            readers: 2,
            writers: 0,
            pauses: None,
            more: Default::default(),
            run: 0,
            order: 0,
            seed: 0,
            time: Duration::from_millis(20),
            warmup: Duration::from_millis(5),
            pin,
            quick: true,
        }
    }

    #[test]
    fn elapsed_is_measured_and_all_threads_count() {
        let workers: Vec<Worker<'_>> = (0..3)
            .map(|_| {
                Box::new(|pace: &Pace| {
                    pace.measure(|| {
                        std::thread::sleep(Duration::from_millis(1));
                        1
                    })
                }) as Worker<'_>
            })
            .collect();
        // Long enough for each thread to get a CPU in both phases, whatever else runs here.
        let job = Job {
            time: Duration::from_millis(100),
            warmup: Duration::from_millis(100),
            ..job(Pin::CoreFirst)
        };
        let (tallies, early) = run(&job, workers, || ()).unwrap();
        let rate = Rate::of(&tallies).unwrap();
        assert_eq!(early, None);
        assert!(
            tallies
                .iter()
                .all(|t| t.ops >= BATCH && t.bad > t.ops / BATCH)
        );
        assert!(rate.elapsed_s >= 0.019, "{rate:?}");
        assert_eq!(rate.ops, tallies.iter().map(|t| t.ops).sum::<u64>());
        assert!((rate.per_s() * rate.elapsed_s - rate.ops as f64).abs() < 1.0);
        let ns = rate.ns_per_op(3, 2).unwrap();
        assert!((ns * rate.ops as f64 - rate.elapsed_s * 2e9).abs() < 1e3);
    }

    #[test]
    fn a_run_can_be_ended_early() {
        let worker: Worker<'_> = Box::new(|pace| {
            pace.measure(|| {
                pace.end_early("enough");
                0
            })
        });
        let long = Job {
            time: Duration::from_secs(60),
            ..job(Pin::None)
        };
        let (tallies, early) = run(&long, vec![worker], || ()).unwrap();
        assert_eq!(early.as_deref(), Some("enough"));
        assert_eq!(tallies.len(), 1);
    }

    #[test]
    fn no_threads_have_no_rate() {
        assert!(Rate::of(&[]).is_none());
    }
}
