//! Floor 3, bench-suite. Owns one run of `futex-hash`, which has a process to itself: what `prctl` sets is the process's,
//! and going back to the global hash is for good. May touch threads and the kernel's futex hash.

use super::kernel;
use crate::engine::pin;
use crate::trouble::Trouble;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What every word is expected to hold, and does not.
const VALUE: u32 = 1234;

/// Sizes that the hash is set to beside the threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Churn {
    /// Between two changes.
    pub(super) pause: Duration,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(super) threads: usize,
    pub(super) time: Duration,
    pub(super) futexes: usize,
    pub(super) silent: bool,
    pub(super) shared: bool,
    pub(super) lock_memory: bool,
    /// None: as the kernel likes.
    pub(super) buckets: Option<usize>,
    pub(super) immutable: bool,
    pub(super) settle: Duration,
    pub(super) churn: Option<Churn>,
}

/// What one thread did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Worker {
    /// Address of its first and last word.
    pub(super) first: usize,
    pub(super) last: usize,
    pub(super) cpu: usize,
    pub(super) ops: u64,
}

/// What a run gave.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Outcome {
    pub(super) pid: u32,
    pub(super) workers: Vec<Worker>,
    /// From before the first thread was made to the end, without the settling.
    pub(super) span_s: f64,
    /// From the start signal to the end.
    pub(super) measured_s: f64,
    /// Buckets at the end; none if the kernel cannot say.
    pub(super) in_use: Option<usize>,
    /// Calls that did not fail as they should.
    pub(super) unexpected: u64,
    /// How long each change of size took, in ns.
    pub(super) changes: Vec<u64>,
    /// Why the changes ended, if they did.
    pub(super) refused: Option<String>,
}

/// Where threads wait for the start.
#[derive(Default)]
struct Gate {
    arrived: usize,
    open: bool,
    refused: Option<String>,
}

/// Sets the process up and measures.
pub(super) fn perform(plan: &Plan) -> Result<Outcome, Trouble> {
    let environment = |what: String| Trouble::Environment(format!("futex-hash: {what}"));
    if plan.lock_memory {
        kernel::lock_memory().map_err(|error| environment(format!("-m: mlockall: {error}")))?;
    }
    if let Some(buckets) = plan.buckets {
        kernel::set_buckets(buckets, plan.immutable).map_err(|error| {
            environment(format!(
                "-b {buckets}: the kernel refuses this size for the hash of a process: {error}"
            ))
        })?;
    }
    let cpus = kernel::online();
    let start = Instant::now();
    let words: Vec<Vec<AtomicU32>> = (0..plan.threads)
        .map(|_| (0..plan.futexes).map(|_| AtomicU32::new(0)).collect())
        .collect();
    let (gate, arrived, opened) = (Mutex::new(Gate::default()), Condvar::new(), Condvar::new());
    let lock = || gate.lock().unwrap_or_else(PoisonError::into_inner);
    let (done, unexpected) = (AtomicBool::new(false), AtomicU64::new(0));
    let operation = kernel::operation(plan.shared);
    std::thread::scope(|scope| {
        let mut threads = Vec::with_capacity(plan.threads);
        let release = |refused: Option<String>| {
            let mut gate = lock();
            gate.open = true;
            if gate.refused.is_none() {
                gate.refused = refused;
            }
            opened.notify_all();
        };
        for (index, words) in words.iter().enumerate() {
            let cpu = cpus[index % cpus.len()];
            let (done, unexpected, lock, arrived, opened) =
                (&done, &unexpected, &lock, &arrived, &opened);
            let spawned = std::thread::Builder::new().spawn_scoped(scope, move || {
                let bound = pin::bind(cpu);
                let mut gate = lock();
                if bound.is_err() {
                    gate.refused = Some(format!(
                        "a thread cannot be bound to CPU {cpu}, which is online"
                    ));
                }
                gate.arrived += 1;
                arrived.notify_one();
                while !gate.open {
                    gate = opened.wait(gate).unwrap_or_else(PoisonError::into_inner);
                }
                let refused = gate.refused.is_some();
                drop(gate);
                let ops = match refused {
                    true => 0,
                    false => work(words, operation, !plan.silent, done, unexpected),
                };
                Worker {
                    first: words
                        .first()
                        .map_or(0, |word| std::ptr::from_ref(word).addr()),
                    last: words
                        .last()
                        .map_or(0, |word| std::ptr::from_ref(word).addr()),
                    cpu,
                    ops,
                }
            });
            match spawned {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    let why = format!(
                        "only {index} of {} threads could be started: {error}",
                        plan.threads
                    );
                    release(Some(why.clone()));
                    return Err(environment(why));
                }
            }
        }
        let mut waiting = lock();
        while waiting.arrived < plan.threads {
            waiting = arrived
                .wait(waiting)
                .unwrap_or_else(PoisonError::into_inner);
        }
        if let Some(why) = waiting.refused.clone() {
            drop(waiting);
            release(None);
            return Err(environment(why));
        }
        drop(waiting);
        std::thread::sleep(plan.settle);
        let churning = plan.churn.map(|churn| {
            let done = &done;
            scope.spawn(move || change_sizes(churn, plan.buckets, done))
        });
        release(None);
        let begin = Instant::now();
        std::thread::sleep(plan.time);
        // Relaxed: results come back through `join`.
        done.store(true, Ordering::Relaxed);
        let end = Instant::now();
        let workers = threads
            .into_iter()
            .map(|thread| thread.join().expect("a thread of the run"))
            .collect();
        let (changes, refused) = churning.map_or_else(Default::default, |thread| {
            thread.join().expect("a thread of the run")
        });
        Ok(Outcome {
            pid: std::process::id(),
            workers,
            span_s: (end - start - plan.settle).as_secs_f64(),
            measured_s: (end - begin).as_secs_f64(),
            in_use: kernel::buckets().ok(),
            unexpected: unexpected.load(Ordering::Relaxed),
            changes,
            refused,
        })
    })
}

/// The loop: waits on each word in turn, and looks at the end once a round.
fn work(
    words: &[AtomicU32],
    operation: libc::c_int,
    checked: bool,
    done: &AtomicBool,
    unexpected: &AtomicU64,
) -> u64 {
    let mut ops = 0;
    loop {
        for word in words {
            if !kernel::wait(word, operation, VALUE, checked) {
                unexpected.fetch_add(1, Ordering::Relaxed);
            }
            ops += 1;
        }
        if done.load(Ordering::Relaxed) {
            return ops;
        }
    }
}

/// Sets the size to twice what it was, and back, until `done`. How long each took, and why it ended.
fn change_sizes(
    churn: Churn,
    buckets: Option<usize>,
    done: &AtomicBool,
) -> (Vec<u64>, Option<String>) {
    let small = match buckets {
        Some(buckets) => buckets,
        None => kernel::buckets().unwrap_or(0).max(2),
    };
    let mut changes = Vec::new();
    let mut large = true;
    while !done.load(Ordering::Relaxed) {
        let size = if large { 2 * small } else { small };
        let start = Instant::now();
        if let Err(error) = kernel::set_buckets(size, false) {
            return (changes, Some(format!("{size} buckets: {error}")));
        }
        changes.push(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX));
        large = !large;
        std::thread::sleep(churn.pause);
    }
    (changes, None)
}
