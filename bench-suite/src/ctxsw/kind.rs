//! Floor 3, bench-suite. Owns the workload `ctxsw`: one run of pairs as a record, with its windows and how idle the
//! CPUs were. May touch the pairs, the engine's windows and the report.
//!
//! The pairs count for themselves, in memory that processes share, so there is no crew: the main thread reads their
//! counters at the ends of the warm-up, of each window and of the run.

use super::pairs::{Mode, Pairs};
use super::pipes::allow_files;
use super::sample::Idle;
use crate::engine::crew::{Rate, Refusal, Tally};
use crate::engine::job::{Job, Shape};
use crate::engine::windows::{self, Seats, Series};
use crate::report::human;
use crate::report::record::{Record, Status};
use crate::report::summary::{Group, Point};
use crate::report::view::{self, Column, Plot, View};
use crate::schemes::{About, Support};
use crate::trouble::Trouble;
use crate::workloads::{Kind, fill};
use std::sync::atomic::Ordering;
use std::time::Instant;

/// The variant of one address space.
pub(super) const THREADS: &str = "threads";

/// The variant of one each.
pub(super) const PROCESSES: &str = "processes";

static VARIANTS: [About; 2] = [
    About::new(
        THREADS,
        "pairs of threads, all in one address space",
        "none",
    ),
    About::new(
        PROCESSES,
        "pairs of processes, each with an address space of its own",
        "none",
    ),
];

pub(crate) const KIND: Kind = Kind {
    name: "ctxsw",
    what: "will-it-scale's context_switch1: pairs of threads or processes that hand a byte back and forth through pipes",
    points: |ask| ask.each(&[1, 2], shape),
    // It compares no ways to keep an object alive.
    tour: |_| Vec::new(),
    variants: || &VARIANTS,
    run,
    support: |_, _| Support::Yes,
    view: View {
        meaning: "real pipes, this kernel: one-way messages, two a round trip; more is better; x threads: rate against that of threads; idle/op: how often a CPU went idle for each message",
        reference: THREADS,
        title: tasks,
        columns: |_| {
            &const {
                [
                    view::rate("messages/s"),
                    view::time("ns/message"),
                    Column {
                        head: "x threads",
                        cell: |row| row.against(Point::rate),
                    },
                    Column {
                        head: "fairness",
                        cell: |row| row.show(|p| p.param("fairness"), human::percent),
                    },
                    Column {
                        head: "idle/op",
                        cell: |row| row.show(|p| p.param("idle_entries_per_op"), human::digits),
                    },
                    Column {
                        head: "idle",
                        cell: |row| {
                            row.show(
                                |p| p.param("idle_percent"),
                                |idle| human::percent(idle / 100.0),
                            )
                        },
                    },
                    view::RATE_SPREAD,
                ]
            }
        },
        order: |point| point.rate().map(|rate| -rate),
        plot: Plot {
            title: "context_switch1: messages through pipes",
            axis: "messages per second (more is better)",
            threads_axis: "tasks",
            panels: |group| vec![(tasks(group), Point::rate)],
            ..view::RATES
        },
    },
};

fn tasks(group: &Group) -> String {
    human::plural(group.threads, "task")
}

fn shape(tasks: usize) -> Shape {
    Shape {
        threads: tasks,
        readers: tasks,
        ..Shape::default()
    }
}

/// `job.threads` tasks, each with its partner.
fn run(job: &Job) -> Result<Record, Refusal> {
    match measure(job) {
        Ok(record) => Ok(record),
        Err(Trouble::Correctness(why)) => {
            let mut record = Record::empty(job);
            record.status = Status::Failed;
            record.remark(&why);
            Ok(record)
        }
        Err(trouble) => Err(Refusal::Environment(trouble.to_string())),
    }
}

fn measure(job: &Job) -> Result<Record, Trouble> {
    let mode = match job.variant.as_str() {
        PROCESSES => Mode::Processes,
        _ => Mode::Threads,
    };
    allow_files(job.threads)?;
    let mut pairs = Pairs::start(mode, job.pin, job.threads)?;
    std::thread::sleep(job.warmup);
    pairs.alive()?;
    let seats = Seats::new(job.threads);
    let idle = Idle::now();
    let mut series = Series::start(job.time);
    let before = pairs.counts();
    let start = Instant::now();
    // What has been done since then goes where the windows look for it.
    let read = |pairs: &Pairs| {
        let made = pairs.counts().into_iter().zip(&before);
        let made: Vec<u64> = made.map(|(now, before)| now - before).collect();
        for (task, &ops) in made.iter().enumerate() {
            Seats::take(task);
            // Relaxed: read by this thread.
            seats.own().store(ops, Ordering::Relaxed);
        }
        made
    };
    let made = loop {
        let left = job.time.saturating_sub(start.elapsed());
        std::thread::sleep(series.until_next(left));
        pairs.alive()?;
        let made = read(&pairs);
        let over = start.elapsed() >= job.time;
        series.look(&seats, over);
        if over {
            break made;
        }
    };
    let stop = Instant::now();
    let (entries, idle_percent) = idle.since();
    drop(pairs);
    series.hand_over();
    windows::finish(&seats);
    let tally = |ops| Tally {
        ops,
        bad: 0,
        start,
        stop,
    };
    let tallies: Vec<Tally> = made.into_iter().map(tally).collect();
    let rate = Rate::of(&tallies).expect("there is at least one task");
    let mut record = Record::empty(job);
    fill(&mut record, &rate, job.threads);
    record.set("scope", "real pipes, this kernel");
    if let Some(entries) = entries
        && rate.ops > 0
    {
        record.set("idle_entries_per_op", entries as f64 / rate.ops as f64);
    }
    if let Some(percent) = idle_percent {
        record.set("idle_percent", percent);
    }
    Ok(record)
}
