//! Floor 3, bench-suite. Owns the readers of `ref`: where they run, the barriers around an experiment, the times. May touch
//! threads and affinity.
//!
//! An experiment of a reader: one loop to warm up, more pairs until all are warm, one loop with the clock on, more pairs
//! until all are done. So each measured loop runs beside others from its first to its last pair. Readers are bound round
//! robin. A loop is one pair longer than asked, as in the original.

use super::subject::{Delay, Subject};
use crate::engine::{interrupt, pin};
use crate::trouble::Trouble;
use std::sync::atomic::Ordering::{Acquire, Release, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Barrier, Mutex, PoisonError};
use std::time::Instant;

/// Pairs between two looks at the others.
const STEP: u64 = 64;

/// Stack of a reader: as that of the other workloads' threads.
const STACK: usize = 512 << 10;

/// What is run.
#[derive(Debug, Clone)]
pub(super) struct Setup {
    pub(super) loops: u64,
    pub(super) readers: usize,
    pub(super) runs: usize,
    pub(super) delay: Delay,
    pub(super) cpus: Vec<usize>,
}

/// What came of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Times {
    /// For each experiment the nanoseconds of each reader.
    pub(super) runs: Vec<Vec<u64>>,
    dead: u64,
}

impl Times {
    #[cfg(test)]
    pub(super) fn of(runs: Vec<Vec<u64>>) -> Self {
        Times { runs, dead: 0 }
    }

    /// Dead objects that were read.
    pub(super) fn dead(&self) -> Option<u64> {
        (self.dead > 0).then_some(self.dead)
    }
}

/// What all readers look at.
struct Stage {
    /// Before and after each experiment; main is one of those who wait.
    gate: Barrier,
    over: AtomicBool,
    /// How often readers were warm, and done: never set back.
    warm: AtomicUsize,
    done: AtomicUsize,
}

/// Measures `subject`.
pub(super) fn measure<S: Subject>(subject: &S, setup: &Setup) -> Result<Times, Trouble> {
    let stage = Stage {
        gate: Barrier::new(setup.readers + 1),
        over: AtomicBool::new(false),
        warm: AtomicUsize::new(0),
        done: AtomicUsize::new(0),
    };
    let refused = Mutex::new(None);
    let lock = || refused.lock().unwrap_or_else(PoisonError::into_inner);
    std::thread::scope(|scope| {
        let (mut readers, mut runs) = (Vec::new(), 0);
        for me in 0..setup.readers {
            let (stage, lock) = (&stage, &lock);
            let body = move || {
                let bound = pin::bind(setup.cpus[me % setup.cpus.len()]);
                if let Err(why) = bound {
                    lock().get_or_insert(why);
                }
                reader(subject, setup, stage, me)
            };
            let spawned = std::thread::Builder::new()
                .stack_size(STACK)
                .spawn_scoped(scope, body);
            match spawned {
                Ok(thread) => readers.push(thread),
                Err(error) => {
                    // Those at the gate wait for a crowd that never comes: there is nothing left but to go.
                    eprintln!(
                        "hpbench: only {me} of {} readers could be started: {error}",
                        setup.readers
                    );
                    std::process::exit(3);
                }
            }
        }
        for _ in 0..setup.runs {
            if interrupt::asked() {
                break;
            }
            stage.gate.wait();
            stage.gate.wait();
            runs += 1;
        }
        stage.over.store(true, Release);
        stage.gate.wait();
        let mut times = Times {
            runs: vec![Vec::with_capacity(setup.readers); runs],
            dead: 0,
        };
        for thread in readers {
            let (own, dead) = thread.join().expect("a reader panicked");
            times.dead += dead;
            for (run, ns) in times.runs.iter_mut().zip(own) {
                run.push(ns);
            }
        }
        match lock().take() {
            Some(why) => Err(Trouble::Environment(why)),
            None => Ok(times),
        }
    })
}

fn reader<S: Subject>(subject: &S, setup: &Setup, stage: &Stage, me: usize) -> (Vec<u64>, u64) {
    let mut own = subject.reader(me);
    let (mut times, mut dead) = (Vec::with_capacity(setup.runs), 0);
    let step = if setup.delay.is_none() { STEP } else { 1 };
    for run in 1.. {
        stage.gate.wait();
        // Acquire: pairs with the Release of main (the gate orders it anyway).
        if stage.over.load(Acquire) {
            break;
        }
        let all = run * setup.readers;
        let mut pairs = |count: u64| {
            if setup.delay.is_none() {
                return subject.pairs(&mut own, count);
            }
            (0..count)
                .filter(|_| !subject.pair(&mut own, || setup.delay.pass()))
                .count() as u64
        };
        let others = |counter: &AtomicUsize, dead: &mut u64, pairs: &mut dyn FnMut(u64) -> u64| {
            counter.fetch_add(1, SeqCst);
            while counter.load(SeqCst) < all {
                *dead += pairs(step);
            }
        };
        dead += pairs(setup.loops);
        others(&stage.warm, &mut dead, &mut pairs);
        let start = Instant::now();
        dead += pairs(setup.loops + 1);
        let ns = start.elapsed().as_nanos() as u64;
        others(&stage.done, &mut dead, &mut pairs);
        times.push(ns);
        stage.gate.wait();
    }
    (times, dead)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;
    use std::time::Duration;

    /// Knows how many are inside a timed loop at most, and how many pairs there were.
    #[derive(Default)]
    struct Watched {
        pairs: AtomicU64,
        alive: bool,
    }

    impl Subject for Watched {
        type Reader<'a> = ();

        fn reader(&self, _: usize) {}

        fn pair(&self, (): &mut (), inside: impl FnOnce()) -> bool {
            self.pairs.fetch_add(1, SeqCst);
            inside();
            self.alive
        }
    }

    fn setup(readers: usize) -> Setup {
        Setup {
            loops: 500,
            readers,
            runs: 4,
            delay: Delay::of(Duration::ZERO),
            cpus: pin::allowed(),
        }
    }

    #[test]
    fn experiments_are_complete() {
        let subject = Watched {
            alive: true,
            ..Watched::default()
        };
        let times = measure(&subject, &setup(3)).unwrap();
        assert_eq!(times.runs.len(), 4);
        assert!(times.runs.iter().all(|run| run.len() == 3));
        assert_eq!(times.dead(), None);
        // At least a warm loop and a timed one, of each reader in each experiment.
        assert!(subject.pairs.into_inner() >= 4 * 3 * (500 + 501));
    }

    #[test]
    fn the_dead_are_counted_and_delays_are_inside() {
        let slow = Setup {
            loops: 20,
            delay: Delay::of(Duration::from_micros(20)),
            ..setup(1)
        };
        let times = measure(&Watched::default(), &slow).unwrap();
        assert!(times.dead().unwrap() >= 4 * 41);
        // 21 pairs of 20 µs, with room for a bad count of pauses.
        assert!(
            times.runs.iter().all(|run| run[0] > 21 * 5_000),
            "{times:?}"
        );
    }

    #[test]
    fn a_binding_that_is_refused_is_told() {
        let nowhere = Setup {
            cpus: vec![100_000],
            ..setup(1)
        };
        let trouble = measure(&Watched::default(), &nowhere).unwrap_err();
        assert_eq!(trouble.code(), 3);
    }
}
