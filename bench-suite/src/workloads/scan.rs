//! Floor 3, bench-suite. Owns the workload `scan`: the time of one reclaim pass beside threads that sit idle.
//! May touch a scheme through its trait, and the crew.
//!
//! Each of `threads` idle threads has read the cell once, keeps its reader state and sleeps. One more thread retires
//! [`BATCH`] objects and then times one forced pass, over and over. `ops` are passes and `elapsed_s` is the time inside
//! passes only, so `ns_per_op` is the time of a pass; two clock readings (some 40 ns) are in it.
//! Idle threads keep what their variant keeps between reads: a cached holder or slot stays with them, a variant that
//! takes its holder per operation leaves nothing behind.
//! The batch is small enough that no scheme reclaims on its own account before the pass.

use super::{Kind, over_schemes};
use crate::engine::crew::{self, Pace, Refusal, Tally, Worker};
use crate::engine::job::{Job, Shape};
use crate::report::human;
use crate::report::record::Record;
use crate::report::stats::quantile;
use crate::report::summary::{Group, Point};
use crate::report::view::{self, Column, Plot, View};
use crate::schemes::{self, Census, Object, Scheme};
use std::time::Instant;

pub(super) const KIND: Kind = Kind {
    name: "scan",
    what: "time of one reclaim pass of 24 objects against the number of threads that sit idle",
    points: |ask| ask.each(&[1, 16, 256, 2048], shape),
    tour: |_| vec![shape(16), shape(2048)],
    variants: schemes::all,
    run: over_schemes!(run),
    support: |about, _| about.scan,
    view: View {
        meaning: "time of one reclaim pass beside idle threads; less is better; growth: against the fewest threads",
        reference: "hp",
        title: |group| format!("{} idle", view::threads(group)),
        columns: |_| {
            &const {
                [
                    view::time("time/pass"),
                    Column {
                        head: "time x hp",
                        cell: |row| row.against(Point::ns),
                    },
                    Column {
                        head: "growth",
                        cell: |row| row.growth(Point::ns),
                    },
                    Column {
                        head: "freed/pass",
                        cell: |row| row.show(|p| p.param("freed_per_pass"), human::digits),
                    },
                    view::TIME_SPREAD,
                ]
            }
        },
        order: Point::ns,
        plot: Plot {
            title: "scan: one reclaim pass beside idle threads",
            axis: "time per pass (less is better, logarithmic)",
            threads_axis: "idle threads",
            shared: true,
            panels: |group: &Group| vec![(format!("{} idle", view::threads(group)), Point::ns)],
            ..view::TIMES
        },
    },
};

fn shape(idle: usize) -> Shape {
    Shape {
        threads: idle,
        writers: 1,
        ..Shape::default()
    }
}

/// Objects retired before each pass.
const BATCH: u64 = 24;

/// One scanning thread beside `job.threads` idle ones.
fn run<S: Scheme>(job: &Job) -> Result<Record, Refusal> {
    let census = Census::leak();
    let cell = S::new(Object::new(0, Some(census)));
    let mut passes: Vec<u64> = Vec::with_capacity(1 << 16);
    let mut freed = 0;
    let mut workers: Vec<Worker<'_>> = Vec::with_capacity(job.threads + 1);
    let (cell_ref, passes_ref, freed_ref) = (&cell, &mut passes, &mut freed);
    workers.push(Box::new(move |pace: &Pace| {
        pace.begin();
        while pace.warming() {
            round(cell_ref, census);
        }
        let before = census.dead();
        let start = Instant::now();
        while pace.running() {
            passes_ref.push(round(cell_ref, census));
        }
        *freed_ref = census.dead() - before;
        Tally {
            ops: passes_ref.len() as u64,
            bad: 0,
            start,
            stop: Instant::now(),
        }
    }));
    for _ in 0..job.threads {
        workers.push(Box::new(move |pace: &Pace| {
            let mut state = cell_ref.reader();
            let alive = cell_ref.read(&mut state);
            cell_ref.idle(&mut state, || pace.park());
            drop(state);
            let now = Instant::now();
            Tally {
                ops: 0,
                bad: u64::from(!alive),
                start: now,
                stop: now,
            }
        }));
    }
    let (tallies, _) = crew::run(job, workers, || ())?;
    let mut record = Record::empty(job);
    let total: u64 = passes.iter().sum();
    record.ops = passes.len() as u64;
    record.elapsed_s = total as f64 / 1e9;
    if total > 0 {
        record.ops_per_s = record.ops as f64 / record.elapsed_s;
        record.ns_per_op = Some(total as f64 / record.ops as f64);
        record.set("freed_per_pass", freed as f64 / record.ops as f64);
    } else {
        record.remark("no pass was completed");
    }
    record.set("batch", BATCH);
    record.set(
        "measured_span_s",
        tallies[0]
            .stop
            .duration_since(tallies[0].start)
            .as_secs_f64(),
    );
    passes.sort_unstable();
    for (key, q) in [
        ("pass_ns_p50", 0.5),
        ("pass_ns_p99", 0.99),
        ("pass_ns_max", 1.0),
    ] {
        if let Some(ns) = quantile(&passes, q) {
            record.set(key, ns);
        }
    }
    record.judge(tallies.iter().map(|tally| tally.bad).sum());
    Ok(record)
}

/// Retires a batch, then times one pass in nanoseconds.
fn round<S: Scheme>(cell: &S, census: &'static Census) -> u64 {
    for serial in 0..BATCH {
        cell.write(Object::new(serial, Some(census)));
    }
    let start = Instant::now();
    cell.pass();
    u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX)
}
