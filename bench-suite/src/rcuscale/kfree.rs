//! Floor 3, bench-suite. Owns the kfree_rcu test of `rcuscale`: threads that allocate objects and retire them at once. May
//! touch a scheme through its trait, threads, affinity, and read how large the process is.
//!
//! Each thread has a cell of its own, into which it puts an object; what was in it is retired. The total is, as the
//! original's, until the last thread has retired its last object, not until that is freed; the table adds the time
//! until all are.

use crate::engine::pin;
use crate::schemes::{Census, Object, Scheme};
use crate::trouble::Trouble;
use std::sync::Barrier;
use std::time::{Duration, Instant};

/// The wait for the last objects is given up after this.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Setup {
    pub(super) threads: usize,
    pub(super) allocations: u64,
    pub(super) loops: u64,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Outcome {
    /// From the first start to the last end.
    pub(super) total: Duration,
    /// Growth of the process while the threads run, averaged as the original does, in bytes.
    pub(super) memory: i64,
    /// Objects that were not freed at the end of the threads.
    pub(super) waiting: i64,
    /// From then until all were.
    pub(super) flush: Option<Duration>,
}

/// Bytes of memory that the process has.
fn resident() -> i64 {
    let pages = std::fs::read_to_string("/proc/self/statm")
        .ok()
        .and_then(|text| text.split(' ').nth(1)?.parse::<i64>().ok());
    // SAFETY: takes a number.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    pages.unwrap_or(0) * page as i64
}

/// Runs the threads.
pub(super) fn run<S: Scheme>(setup: &Setup, cpus: &[usize]) -> Result<Outcome, Trouble> {
    let census = Census::leak();
    let cells: Vec<S> = (0..setup.threads)
        .map(|_| S::new(Object::new(0, Some(census))))
        .collect();
    let gate = Barrier::new(setup.threads);
    let ends: Vec<Result<(Instant, Instant, i64), String>> = std::thread::scope(|scope| {
        let threads: Vec<_> = cells
            .iter()
            .enumerate()
            .map(|(me, cell)| {
                let (gate, cpu) = (&gate, cpus[me % cpus.len()]);
                scope.spawn(move || {
                    let bound = pin::bind(cpu);
                    gate.wait();
                    bound?;
                    let start = Instant::now();
                    let memory = retire(cell, setup, census);
                    Ok((start, Instant::now(), memory))
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("a thread panicked"))
            .collect()
    });
    let ends: Vec<_> = ends
        .into_iter()
        .collect::<Result<_, String>>()
        .map_err(Trouble::Environment)?;
    let start = ends
        .iter()
        .map(|end| end.0)
        .min()
        .expect("there is a thread");
    let end = ends
        .iter()
        .map(|end| end.1)
        .max()
        .expect("there is a thread");
    let published = setup.threads as i64;
    let waiting = (census.living() - published).max(0);
    let begin = Instant::now();
    let mut flush = None;
    while flush.is_none() && begin.elapsed() < PATIENCE {
        cells.iter().for_each(Scheme::flush);
        if census.living() <= published {
            flush = Some(begin.elapsed());
        }
    }
    Ok(Outcome {
        total: end - start,
        memory: ends.iter().map(|end| end.2).max().unwrap_or(0),
        waiting,
        flush,
    })
}

/// One thread's loops; how much the process grew meanwhile.
fn retire<S: Scheme>(cell: &S, setup: &Setup, census: &'static Census) -> i64 {
    let begin = resident();
    let mut during = begin;
    for turn in 0..setup.loops {
        if turn > 0 && turn % (setup.loops / 4).max(1) == 0 {
            during = i64::midpoint(during, resident());
        }
        for serial in 0..setup.allocations {
            cell.write(Object::new(serial, Some(census)));
        }
    }
    during - begin
}

#[cfg(test)]
mod tests {
    use super::super::subject;
    use super::*;

    struct Go(usize);

    impl subject::Visit for Go {
        type Out = Result<Outcome, Trouble>;

        fn visit<S: Scheme>(self) -> Self::Out {
            let setup = Setup {
                threads: self.0,
                allocations: 500,
                loops: 8,
            };
            run::<S>(&setup, &pin::allowed())
        }
    }

    #[test]
    fn all_is_freed_in_the_end() {
        for name in ["rcu", "rcu-thread", "rcu-qsbr", "hp-sync", "hp-drain"] {
            let outcome = subject::visit(name, Go(2)).unwrap();
            assert!(outcome.flush.is_some(), "{name}: {outcome:?}");
            assert!(outcome.waiting <= 2 * 500 * 8, "{name}: {outcome:?}");
            assert!(!outcome.total.is_zero());
        }
    }
}
