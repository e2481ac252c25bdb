//! Floor 3, bench-suite. Owns the workload `defer`: the cost of queueing a deferred callback.
//! May touch a scheme through its trait, and the crew.
//!
//! The calling threads queue callbacks, each one pointer wide, that add one to a counter of the thread that queued
//! them.
//! `ns_per_op` is the time of a call on the calling threads, with whatever the scheme does inside it; callbacks that
//! another thread runs, or that are left for the end, are not in it. They are in `cpu_ns_per_call`: the CPU time of the
//! whole process, from before the threads start to after the flush, over all calls (those of the warm-up too).
//! The very first callback is queued by the main thread, which is bound to no CPU: a helper thread that a scheme starts
//! for good should not inherit the binding of a caller, and share its CPU.
//! Each thread looks now and then how many of its callbacks have not run; `peak_backlog` is the sum of the largest
//! differences. At the end the scheme flushes. **Every callback must have run once**: otherwise the run is failed.

use super::{Kind, over_schemes};
use crate::engine::crew::{self, BATCH, Pace, Rate, Refusal, Tally, Worker};
use crate::engine::job::{Job, Shape};
use crate::report::human;
use crate::report::record::{Record, Status};
use crate::report::summary::{Group, Point};
use crate::report::view::{self, Column, Plot, View};
use crate::schemes::{self, Callback, Object, Ran, Scheme};
use std::time::{Duration, Instant};

/// A run ends early when more callbacks of one thread than this wait: memory is finite.
const CAP: u64 = 8_000_000;

/// Batches between two looks at the backlog: the look takes a cache line from whoever runs callbacks.
const LOOK: u64 = 64;

/// A flush that runs nothing for this long has given up.
const PATIENCE: Duration = Duration::from_secs(2);

pub(super) const KIND: Kind = Kind {
    name: "defer",
    what: "queueing a deferred callback, ns per call on the calling threads; every callback must have run at the end",
    points: |ask| ask.each(&[1], shape),
    tour: |_| vec![shape(1)],
    variants: schemes::all,
    run: over_schemes!(run),
    support: |about, _| about.defer,
    view: View {
        meaning: "queueing a deferred callback; ns per call on the calling threads (wall time x busy CPUs / calls); CPU/call: process CPU time with callbacks and flush; x crossbeam: time against that of crossbeam-epoch; less is better",
        reference: "crossbeam-epoch",
        title: |group| human::plural(group.threads, "caller"),
        columns: |_| {
            &const {
                [
                    view::time("ns/call"),
                    Column {
                        head: "x crossbeam",
                        cell: |row| row.against(Point::ns),
                    },
                    view::rate("calls/s"),
                    Column {
                        head: "CPU/call",
                        cell: |row| row.show(|p| p.param("cpu_ns_per_call"), human::nanoseconds),
                    },
                    Column {
                        head: "peak backlog",
                        cell: |row| row.show(|p| p.param("peak_backlog"), human::count),
                    },
                    Column {
                        head: "flush",
                        cell: |row| {
                            row.show(|p| Some(p.param("flush_s")? * 1e9), human::nanoseconds)
                        },
                    },
                    view::TIME_SPREAD,
                ]
            }
        },
        order: Point::ns,
        plot: Plot {
            title: "defer: queueing a deferred callback",
            axis: "time per call on the calling thread (less is better, logarithmic)",
            threads_axis: "callers",
            panels: |group: &Group| vec![(human::plural(group.threads, "caller"), Point::ns)],
            ..view::TIMES
        },
    },
};

fn shape(callers: usize) -> Shape {
    Shape {
        threads: callers,
        writers: callers,
        ..Shape::default()
    }
}

/// What one caller counted, in the warm-up too.
struct Caller {
    ran: &'static Ran,
    calls: u64,
    peak: u64,
}

/// `job.writers` threads queue callbacks.
fn run<S: Scheme>(job: &Job) -> Result<Record, Refusal> {
    let cell = S::new(Object::new(0, None));
    let mut callers: Vec<Caller> = (0..job.writers)
        .map(|_| Caller {
            ran: Ran::leak(),
            calls: 0,
            peak: 0,
        })
        .collect();
    let before = super::usage();
    let first = Ran::leak();
    cell.defer(&mut cell.reader(), Callback::new(first));
    let workers = callers
        .iter_mut()
        .map(|caller| worker(&cell, caller))
        .collect();
    let (tallies, early) = crew::run(job, workers, || ())?;
    let calls = 1 + callers.iter().map(|caller| caller.calls).sum::<u64>();
    let ran = || first.count() + callers.iter().map(|caller| caller.ran.count()).sum::<u64>();
    let start = Instant::now();
    flush(&cell, calls, ran);
    let flushed = start.elapsed();
    let after = super::usage();
    let rate = Rate::of(&tallies).expect("there is at least one caller");
    let mut record = Record::empty(job);
    super::fill(&mut record, &rate, job.writers);
    record.set("calls", calls);
    record.set("ran", ran());
    record.set(
        "peak_backlog",
        callers.iter().map(|caller| caller.peak).sum::<u64>(),
    );
    record.set("flush_s", flushed.as_secs_f64());
    if let (Some(before), Some(after)) = (before, after) {
        let cpu = after.cpu.saturating_sub(before.cpu);
        record.set("cpu_ns_per_call", cpu.as_nanos() as f64 / calls as f64);
    }
    if let Some(why) = early {
        record.remark(&why);
    }
    check(&mut record, calls, ran());
    Ok(record)
}

/// The gate of this workload.
fn check(record: &mut Record, calls: u64, ran: u64) {
    if ran != calls {
        record.status = Status::Failed;
        record.remark(&format!("{calls} callbacks were queued, {ran} have run"));
    }
}

/// Flushes until all have run, or until nothing moves.
fn flush<S: Scheme>(cell: &S, calls: u64, ran: impl Fn() -> u64) {
    let mut last = ran();
    let mut moved = Instant::now();
    while last < calls && moved.elapsed() < PATIENCE {
        cell.flush();
        let now = ran();
        if now == last {
            // Whoever runs them may need this CPU.
            std::thread::yield_now();
        } else {
            moved = Instant::now();
        }
        last = now;
    }
}

fn worker<'a, S: Scheme>(cell: &'a S, caller: &'a mut Caller) -> Worker<'a> {
    Box::new(move |pace: &Pace| {
        let mut state = cell.reader();
        let ran = caller.ran;
        let mut batches = 0;
        let mut peak = 0;
        let tally: Tally = pace.measure(|| {
            for _ in 0..BATCH {
                cell.defer(&mut state, Callback::new(ran));
            }
            batches += 1;
            if batches % LOOK == 0 {
                let backlog = (batches * BATCH).saturating_sub(ran.count());
                peak = peak.max(backlog);
                if backlog > CAP {
                    pace.end_early(&format!("ended early: more than {CAP} callbacks wait"));
                }
            }
            0
        });
        drop(state);
        caller.calls = batches * BATCH;
        caller.peak = peak;
        tally
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::record::tests::sample;
    use crate::workloads::Workload;

    #[test]
    fn lost_and_doubled_callbacks_fail_the_run() {
        let verdict = |ran| {
            let mut record = sample(Workload::Defer, "x", 1, 0, 1);
            check(&mut record, 10, ran);
            record.status
        };
        assert_eq!(verdict(10), Status::Ok);
        assert_eq!(verdict(9), Status::Failed);
        assert_eq!(verdict(11), Status::Failed);
    }
}
