//! Floor 3, bench-suite. Owns the course of a `schbench` run as main sees it: every second, warm-up, reports, the end.
//! May read the clock and what the threads count.
//!
//! As in the original the clock starts with the message threads, and the workers begin as soon as they are there; one rate
//! sample a second. (The original also takes one before anything has happened; it is left out.) With a warm-up, the
//! percentiles begin anew after it, but the count of requests does not: `average rps` divides all of them by the
//! configured time. The *measured* rate divides what was counted from the end of the warm-up on by the time that it took.

use super::clock;
use super::crew::{Crew, Running};
use super::futex::Futex;
use super::goal;
use super::histogram::{Histogram, Sum};
use super::plan::{Pacing, Plan};
use crate::engine::interrupt;
use crate::trouble::Trouble;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

const SECOND: u64 = 1_000_000_000;

/// Between two looks whether all threads are there.
const NAP: u64 = 10_000_000;

/// Mean scheduling delays in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Delays {
    pub(super) message: u64,
    pub(super) worker: u64,
}

/// What is known in the middle of a run, or at its end.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sight {
    /// Whole seconds since the start.
    pub(super) second: u64,
    pub(super) wakeup: Sum,
    pub(super) request: Sum,
    pub(super) rps: Sum,
    pub(super) delays: Delays,
    /// Requests per second in the last one.
    pub(super) rate: f64,
}

/// What a run gave.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Outcome {
    pub(super) sight: Sight,
    /// Requests from the first to the last.
    pub(super) loops: u64,
    /// Time of all workers together, in microseconds.
    pub(super) busy_us: u64,
    /// Requests and seconds that were measured.
    pub(super) measured: (u64, f64),
    /// The goal of all message threads at the end.
    pub(super) goal: u64,
    pub(super) left_out: u64,
    /// Of an open pace: requests without an answer, and the age of the oldest in microseconds.
    pub(super) unanswered: Option<(u64, u64)>,
    pub(super) interrupted: bool,
}

impl Outcome {
    /// The original's average: over the configured time (over the measured one if there was no more).
    pub(super) fn configured_rate(&self, plan: &Plan) -> f64 {
        if self.interrupted {
            return self.measured_rate();
        }
        self.loops as f64 / plan.runtime as f64
    }

    pub(super) fn measured_rate(&self) -> f64 {
        self.measured.0 as f64 / self.measured.1.max(1e-9)
    }
}

/// What happens on the way.
pub(super) enum Event<'a> {
    WarmedUp,
    Report(&'a Sight),
}

fn mean(all: impl Iterator<Item = u64>) -> u64 {
    let (sum, count) = all.fold((0, 0), |(sum, count), one| (sum + one, count + 1));
    sum / std::cmp::max(count, 1) / 1000
}

fn delays_now<F>(crew: &Crew<F>) -> Delays {
    Delays {
        message: mean(
            crew.messengers
                .iter()
                .map(|seat| seat.delay_now().unwrap_or(0)),
        ),
        worker: mean(
            crew.workers
                .iter()
                .map(|worker| worker.seat.delay_now().unwrap_or(0)),
        ),
    }
}

fn look<F>(crew: &Crew<F>, rps: &Histogram, second: u64, delays: Delays, rate: f64) -> Sight {
    Sight {
        second,
        wakeup: Sum::of(crew.workers.iter().map(|worker| &worker.wakeup)),
        request: Sum::of(crew.workers.iter().map(|worker| &worker.request)),
        rps: Sum::of([rps]),
        delays,
        rate,
    }
}

fn zero<F>(crew: &Crew<F>, rps: &Histogram) {
    rps.zero();
    for worker in &crew.workers {
        worker.wakeup.zero();
        worker.request.zero();
    }
}

/// Lets `running` run for its time. It was started at `start` (nanoseconds of [`clock`]).
pub(super) fn watch<F: Futex>(
    mut running: Running<F>,
    start: u64,
    blame: &dyn Fn((usize, io::Error)) -> Trouble,
    tell: &mut dyn FnMut(Event<'_>) -> Result<(), Trouble>,
) -> Result<Outcome, Trouble> {
    let shared = Arc::clone(&running.crew);
    let crew = &*shared;
    let plan = crew.plan.clone();
    let seek = plan.paced.and_then(|paced| paced.busy);
    let rps = Histogram::new();
    // When, and how many requests by then: the start of what is measured, and the last look.
    let mut from = (start, 0);
    let mut last = from;
    let (mut rate, mut ready) = (0.0, false);
    let mut ticks = seek.and_then(|_| goal::ticks());
    let mut hit = seek.is_none();
    for second in 1..=plan.runtime {
        let due = start + second * SECOND;
        while clock::ns() < due && !interrupt::asked() {
            ready = ready || running.is_ready().map_err(blame)?;
            clock::sleep_until(if ready {
                due
            } else {
                due.min(clock::ns() + NAP)
            });
        }
        let now = (clock::ns(), crew.loops());
        rate = (now.1 - last.1) as f64 / ((now.0 - last.0).max(1) as f64 / SECOND as f64);
        last = now;
        if interrupt::asked() {
            break;
        }
        if plan.warm > 0 && second == plan.warm {
            zero(crew, &rps);
            from = now;
            tell(Event::WarmedUp)?;
        } else if plan.pipe.is_none() {
            if hit {
                rps.add(rate as u64);
            }
            if second % plan.interval.max(1) == 0 {
                let sight = look(crew, &rps, second, delays_now(crew), rate);
                tell(Event::Report(&sight))?;
            }
        }
        if plan.zero > 0 && second % plan.zero == 0 && second < plan.runtime {
            zero(crew, &rps);
        }
        if let (Some(target), Some(before)) = (seek, ticks) {
            ticks = goal::ticks();
            if let Some(busy) = ticks.and_then(|now| goal::busy(before, now)) {
                let (next, near) = goal::next(crew.goal.load(Relaxed), busy, target);
                crew.goal.store(next, Relaxed);
                if near && !hit {
                    hit = true;
                    rps.zero();
                }
            }
        }
    }
    let interrupted = interrupt::asked();
    let second = (clock::ns() - start) / SECOND;
    let end = (clock::ns(), crew.loops());
    let crew = running.stop().map_err(blame)?;
    let open = plan.paced.is_some_and(|paced| paced.how == Pacing::Open);
    let unanswered = open.then(|| crew.count_unanswered(end.0));
    let delays = Delays {
        message: mean(
            crew.messengers
                .iter()
                .map(|seat| seat.delay_ns.load(Relaxed)),
        ),
        worker: mean(
            crew.workers
                .iter()
                .map(|worker| worker.seat.delay_ns.load(Relaxed)),
        ),
    };
    Ok(Outcome {
        sight: look(
            &crew,
            &rps,
            if interrupted { second } else { plan.runtime },
            delays,
            rate,
        ),
        loops: crew.loops(),
        busy_us: crew
            .workers
            .iter()
            .map(|worker| worker.busy_us.load(Relaxed))
            .sum(),
        measured: (end.1 - from.1, (end.0 - from.0) as f64 / SECOND as f64),
        goal: u64::from(crew.goal.load(Relaxed)) * plan.messengers as u64,
        left_out: crew.left_out.load(Relaxed),
        unanswered,
        interrupted,
    })
}
