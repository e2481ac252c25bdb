//! Floor 3, bench-suite. Owns the writers and readers of `rcuscale` and what they time. May touch a scheme through its trait,
//! threads and affinity.
//!
//! As in the original a writer times one grace period after the other; from when all writers have started each is kept;
//! a writer is done once it has more than [`LEAST`] and its time is over, and goes on until all are done, so that all wait
//! beside all. At most [`MOST`] are kept. With callbacks an operation is the queueing of one; a writer with too many of
//! them waits for all, which is not kept.
//!
//! Writers are bound round robin, and readers behind them: with a writer on each CPU that is the original's placement, with
//! fewer the readers have CPUs of their own as long as there are any. No writer begins before all readers read.

use super::Setup;
use crate::engine::{interrupt, pin};
use crate::schemes::{Callback, Object, Ran, Scheme};
use crate::trouble::Trouble;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Measurements of a writer: there is one more.
pub(super) const LEAST: usize = 100;

/// What is kept of a writer at most.
const MOST: usize = 10_000;

/// Reads between two looks.
const BATCH: u64 = 64;

const STACK: usize = 512 << 10;

/// What came of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Outcome {
    /// For each writer its times in nanoseconds.
    pub(super) durations: Vec<Vec<u64>>,
    /// From when the last had started to when the last was done, in nanoseconds of the run.
    pub(super) start: u64,
    pub(super) end: u64,
    /// Reads per second of all readers, each over its own time.
    pub(super) reads: f64,
    /// The barrier at the end of a run with callbacks.
    pub(super) barrier: Option<Duration>,
}

struct Stage {
    begin: Instant,
    reading: AtomicUsize,
    started: AtomicUsize,
    start_ns: AtomicU64,
    finished: AtomicUsize,
    end_ns: AtomicU64,
    over: AtomicBool,
    refused: Mutex<Option<String>>,
}

impl Stage {
    fn now(&self) -> u64 {
        self.begin.elapsed().as_nanos() as u64
    }

    fn refuse(&self, why: String) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.get_or_insert(why);
        // Release: pairs with the Acquire in `over`.
        self.over.store(true, Release);
    }

    /// Binds thread number `me`.
    fn place(&self, me: usize, setup: &Setup) {
        if let Err(why) = pin::bind(setup.cpus[me % setup.cpus.len()]) {
            self.refuse(why);
        }
    }

    fn over(&self) -> bool {
        self.over.load(Acquire)
    }
}

/// Readers and writers of one scheme.
pub(super) fn run<S: Scheme>(setup: &Setup) -> Result<Outcome, Trouble> {
    let cell = S::new(Object::new(0, None));
    let stage = Stage {
        begin: Instant::now(),
        reading: AtomicUsize::new(0),
        started: AtomicUsize::new(0),
        start_ns: AtomicU64::new(0),
        finished: AtomicUsize::new(0),
        end_ns: AtomicU64::new(0),
        over: AtomicBool::new(false),
        refused: Mutex::new(None),
    };
    let mut outcome = Outcome::default();
    let mut dead = 0;
    std::thread::scope(|scope| {
        let (cell, stage) = (&cell, &stage);
        let (mut readers, mut writers) = (Vec::new(), Vec::new());
        let named = |what: &str, index: usize, error: std::io::Error| {
            stage.refuse(format!("{what} {index} could not be started: {error}"));
        };
        for me in 0..setup.readers {
            let body = move || {
                stage.place(setup.writers + me, setup);
                read(cell, stage)
            };
            match std::thread::Builder::new()
                .stack_size(STACK)
                .spawn_scoped(scope, body)
            {
                Ok(thread) => readers.push(thread),
                Err(error) => named("reader", me, error),
            }
        }
        for me in 0..setup.writers {
            let body = move || {
                stage.place(me, setup);
                write(cell, stage, setup)
            };
            match std::thread::Builder::new()
                .stack_size(STACK)
                .spawn_scoped(scope, body)
            {
                Ok(thread) => writers.push(thread),
                Err(error) => named("writer", me, error),
            }
        }
        for writer in writers {
            outcome
                .durations
                .push(writer.join().expect("a writer panicked"));
        }
        stage.over.store(true, Release);
        for reader in readers {
            let (reads, bad) = reader.join().expect("a reader panicked");
            outcome.reads += reads;
            dead += bad;
        }
    });
    let refused = stage.refused.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(why) = refused.as_ref() {
        return Err(Trouble::Environment(format!("{}: {why}", S::ABOUT.name)));
    }
    if dead > 0 {
        return Err(Trouble::Correctness(format!(
            "{}: {dead} reads of a dead object",
            S::ABOUT.name
        )));
    }
    if setup.asynchronous.is_some() {
        let start = Instant::now();
        cell.flush();
        outcome.barrier = Some(start.elapsed());
    }
    outcome.start = stage.start_ns.load(Relaxed);
    outcome.end = stage.end_ns.load(Relaxed);
    Ok(outcome)
}

/// Reads per second, and how many were of dead objects.
fn read<S: Scheme>(cell: &S, stage: &Stage) -> (f64, u64) {
    let mut state = cell.reader();
    let mut dead = cell.read_batch(&mut state, BATCH);
    stage.reading.fetch_add(1, SeqCst);
    let (start, mut reads) = (Instant::now(), 0);
    while !stage.over() {
        dead += cell.read_batch(&mut state, BATCH);
        reads += BATCH;
    }
    (reads as f64 / start.elapsed().as_secs_f64().max(1e-9), dead)
}

fn write<S: Scheme>(cell: &S, stage: &Stage, setup: &Setup) -> Vec<u64> {
    while stage.reading.load(SeqCst) < setup.readers && !stage.over() {
        std::thread::yield_now();
    }
    let mut durations = Vec::with_capacity(LEAST + 1);
    let mut state = setup.asynchronous.map(|_| cell.reader());
    let ran = Ran::leak();
    let mut queued = 0u64;
    let due = Instant::now() + setup.least;
    let now = stage.now();
    if stage.started.fetch_add(1, SeqCst) + 1 == setup.writers {
        stage.start_ns.store(now, Relaxed);
    }
    let (mut done, mut kept) = (false, 0);
    while !stage.over() && !interrupt::asked() {
        if !setup.between.is_zero() {
            pause(setup.between);
        }
        let mut succeeded = true;
        let start = Instant::now();
        match (&mut state, setup.asynchronous) {
            (Some(state), Some(most)) if queued - ran.count() < most => {
                cell.defer(state, Callback::new(ran));
                queued += 1;
            }
            // Too many wait: for these.
            (Some(state), _) => {
                cell.idle(state, || cell.flush());
                succeeded = false;
            }
            _ => {
                if !cell.synchronize() {
                    stage.refuse("a grace period was refused".to_owned());
                    return durations;
                }
            }
        }
        let ns = start.elapsed().as_nanos() as u64;
        let all_started = stage.started.load(SeqCst) >= setup.writers;
        if !done && kept >= LEAST && Instant::now() >= due {
            done = true;
            let now = stage.now();
            if stage.finished.fetch_add(1, SeqCst) + 1 == setup.writers {
                stage.end_ns.store(now, Relaxed);
            }
        }
        let all_done = done && stage.finished.load(SeqCst) >= setup.writers;
        if succeeded && all_started && kept < MOST {
            durations.push(ns);
            kept += 1;
        }
        if all_done {
            break;
        }
    }
    durations
}

fn pause(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::super::subject;
    use super::*;

    struct Go(Setup);

    impl subject::Visit for Go {
        type Out = Result<Outcome, Trouble>;

        fn visit<S: Scheme>(self) -> Self::Out {
            run::<S>(&self.0)
        }
    }

    fn setup(readers: usize, writers: usize) -> Setup {
        Setup {
            readers,
            writers,
            asynchronous: None,
            least: Duration::ZERO,
            between: Duration::ZERO,
            cpus: pin::allowed(),
        }
    }

    #[test]
    fn each_writer_has_enough() {
        for name in ["rcu", "rcu-qsbr", "hp-sync", "hp-drain"] {
            let outcome = subject::visit(name, Go(setup(1, 2))).unwrap();
            assert_eq!(outcome.durations.len(), 2);
            for own in &outcome.durations {
                assert!((LEAST..=MOST).contains(&own.len()), "{name}: {}", own.len());
            }
            assert!(outcome.end > outcome.start && outcome.reads > 0.0, "{name}");
            assert_eq!(outcome.barrier, None);
        }
    }

    #[test]
    fn callbacks_are_bounded_and_all_run() {
        let few = Setup {
            asynchronous: Some(7),
            least: Duration::from_millis(20),
            ..setup(0, 2)
        };
        let outcome = subject::visit("rcu", Go(few)).unwrap();
        assert!(outcome.barrier.is_some());
        assert!(outcome.durations.iter().all(|own| own.len() >= LEAST));
    }

    #[test]
    fn a_binding_that_is_refused_ends_it() {
        let nowhere = Setup {
            cpus: vec![100_000],
            ..setup(1, 1)
        };
        assert_eq!(subject::visit("rcu", Go(nowhere)).unwrap_err().code(), 3);
    }
}
