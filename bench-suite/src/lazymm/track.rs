//! Floor 3, bench-suite. Owns the workload `track`: the real hand-over of context_switch1, with a grab before each
//! blocking read and a drop after it. May touch the crew, the field, the pipes of `ctxsw` and the kernel's idle counts.
//!
//! What is real: pipes, wake-ups, placement (`--bind` is will-it-scale's rule), the tracker's own instructions and what
//! they do to each other's lines. What is not: it all happens in user space, one layer above where the kernel does it,
//! beside whatever the running kernel itself does to its own count.
//!
//! `--threads` counts pairs. One operation is a one-way message; a round trip is two, with two grabs and two drops (one
//! of each by the owner and by the partner). Every thread plays a CPU of its own, since it has an mm lazily while it
//! sleeps, whichever CPU it slept on.
//!
//! With `--mode threads` all use one mm. With `--mode processes` each thread has its own, as if it were a process; they
//! are threads nevertheless, because the kernel has one tracker for all its processes, and that is what would be missed
//! if each were a process with a tracker to itself. No line is shared between mms, so a tracker must make no difference
//! there. Then the mms of all threads together are replaced as often as the one mm of the other mode.

use super::field::{Field, Line, Renewal, Seat};
use super::idle::{Counted, Home, Runnable};
use super::tracker::Tracker;
use super::trackers::{self, over_trackers};
use super::{LATENCY_COLUMNS, VERSUS_REFCOUNT, swap_of};
use crate::ctxsw::idle_entries;
use crate::ctxsw::pipes::{Around, Pipes, STACK, allow_files};
use crate::engine::crew::{self, Pace, Rate, Refusal, Tally, Worker};
use crate::engine::job::{Job, Params, Pin, Shape};
use crate::report::human;
use crate::report::record::Record;
use crate::report::summary::{Group, Point};
use crate::report::view::{self, Column, Plot, View};
use crate::schemes::Support;
use crate::workloads::{Ask, Kind};
use std::time::Instant;

/// Looks between two readings of the clock of the replacement.
const LOOKS: u32 = 16;

/// Round trips between two looks at the slot.
const CHECK: u64 = 16;

/// When to grab.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Grab {
    /// Round every block: more often than the kernel does
    Always,
    /// When the CPU has no other runnable thread of the run
    Idle,
}

/// How many mms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Mode {
    /// One for all pairs
    Threads,
    /// One for each task
    Processes,
    /// One after the other
    Both,
}

/// Where pair i runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Bind {
    /// On all CPUs of the i-th core
    Core,
    /// On the i-th CPU (ctxsw -m)
    Cpu,
    /// Anywhere (ctxsw -n)
    None,
}

/// What the subcommand takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// When a task grabs
    #[arg(long, value_enum, default_value = "always")]
    grab: Grab,
    /// One mm for all, or one for each task
    #[arg(long, value_enum, default_value = "threads")]
    mode: Mode,
    /// Where pair i runs (takes the place of --pin)
    #[arg(long, value_enum, default_value = "core")]
    bind: Bind,
    #[command(flatten)]
    swap: super::Swap,
}

impl Args {
    /// The points asked for.
    pub(super) fn more(&self) -> Vec<Params> {
        let modes: &[Mode] = match self.mode {
            Mode::Threads => &[Mode::Threads],
            Mode::Processes => &[Mode::Processes],
            Mode::Both => &[Mode::Threads, Mode::Processes],
        };
        let point = |&mode| point(mode, self.grab, self.bind, &self.swap);
        modes.iter().map(point).collect()
    }
}

fn word(value: impl clap::ValueEnum) -> String {
    let value = value.to_possible_value().expect("no value is hidden");
    value.get_name().to_owned()
}

fn point(mode: Mode, grab: Grab, bind: Bind, swap: &super::Swap) -> Params {
    let mut point = Params::from([
        ("mode".to_owned(), word(mode).into()),
        ("grab".to_owned(), word(grab).into()),
        ("bind".to_owned(), word(bind).into()),
    ]);
    swap.ask(&mut point);
    point
}

fn asked<V: clap::ValueEnum>(job: &Job, name: &str, usual: V) -> V {
    let word = job.more.get(name).and_then(serde_json::Value::as_str);
    word.and_then(|word| V::from_str(word, false).ok())
        .unwrap_or(usual)
}

pub(crate) const KIND: Kind = Kind {
    name: "track",
    what: "lazy-mm track: pairs hand a byte back and forth through pipes, with a grab before each blocking read and a drop after it",
    points: |ask| ask.each(&[1, 2], shape),
    tour: |ask| {
        let usual = point(
            Mode::Threads,
            Grab::Always,
            Bind::Core,
            &super::Swap::default(),
        );
        Ask {
            threads: Some(vec![1]),
            more: Some(vec![usual]),
            ..ask.clone()
        }
        .each(&[1], shape)
    },
    variants: trackers::all,
    run: over_trackers!(run),
    support: |_, _| Support::Yes,
    view: View {
        meaning: "real pipes, tracker in user space: one-way messages, two a round trip; more is better; x refcount: rate against that of refcount; grabbed: blocks with a grab; idle/op: the kernel's own count",
        reference: "refcount",
        title: pairs,
        columns: |_| {
            &const {
                let [p50, p99, peak] = LATENCY_COLUMNS;
                [
                    view::rate("messages/s"),
                    view::time("ns/message"),
                    VERSUS_REFCOUNT,
                    Column {
                        head: "grabbed",
                        cell: |row| row.show(|p| p.param("grabbed_share"), human::percent),
                    },
                    Column {
                        head: "idle/op",
                        cell: |row| row.show(|p| p.param("idle_entries_per_op"), human::digits),
                    },
                    p50,
                    p99,
                    peak,
                    view::RATE_SPREAD,
                ]
            }
        },
        order: |point| point.rate().map(|rate| -rate),
        plot: Plot {
            title: "lazy-mm track: messages through pipes, tracked in user space",
            axis: "messages per second (more is better)",
            threads_axis: "pairs",
            panels: |group| vec![(pairs(group), Point::rate)],
            ..view::RATES
        },
    },
};

fn pairs(group: &Group) -> String {
    human::plural(group.threads, "pair")
}

fn shape(pairs: usize) -> Shape {
    Shape {
        threads: pairs,
        readers: pairs,
        ..Shape::default()
    }
}

/// `job.threads` pairs.
fn run<T: Tracker>(job: &Job) -> Result<Record, Refusal> {
    let tasks = 2 * job.threads;
    let grab = asked(job, "grab", Grab::Always);
    let one_each = asked(job, "mode", Mode::Threads) == Mode::Processes;
    let pin = match asked(job, "bind", Bind::Core) {
        Bind::Core => Pin::SmtPair,
        Bind::Cpu => Pin::Pu,
        Bind::None => Pin::None,
    };
    let swap = swap_of(job);
    allow_files(job.threads).map_err(|trouble| Refusal::Environment(trouble.to_string()))?;
    let pipes: Vec<Pipes> = (0..job.threads)
        .map(|_| Pipes::new())
        .collect::<Result<_, _>>()
        .map_err(|error| {
            Refusal::Environment(format!("no pipes for {} pairs: {error}", job.threads))
        })?;
    let field = Field::<T>::new(tasks);
    let lines: Vec<Line<T>> = match one_each {
        true => (0..tasks).map(|_| Line::new(&field, 1)).collect(),
        false => vec![Line::new(&field, tasks)],
    };
    let runnable = Runnable::new();
    let homes: Vec<Home> = (0..tasks).map(|_| Home::default()).collect();
    // Made by the thread that is this task.
    let task = |index: usize| {
        let renewal = match (one_each, index) {
            (true, _) => Renewal::new(swap * tasks as u32, LOOKS),
            (false, 0) => Renewal::new(swap, LOOKS),
            (false, _) => Renewal::never(),
        };
        Task {
            seat: Seat::new(&field, &lines[index % lines.len()], index, renewal),
            counted: (grab == Grab::Idle)
                .then(|| Counted::new(&runnable, &homes[index], &homes[index ^ 1])),
            blocks: 0,
            grabs: 0,
            dead: 0,
        }
    };
    let mut done: Vec<Done> = (0..job.threads).map(|_| Done::default()).collect();
    let worker = |(pair, (pipes, done))| {
        let task = &task;
        Box::new(move |pace: &Pace| owner(pace, pair, pipes, task, done)) as Worker<'_>
    };
    let workers = pipes
        .iter()
        .zip(&mut done)
        .enumerate()
        .map(worker)
        .collect();
    let idle = idle_entries();
    let bound = Job { pin, ..job.clone() };
    let (tallies, _) = crew::run(&bound, workers, || ())?;
    let idle = idle.zip(idle_entries());
    let rate = Rate::of(&tallies).expect("there is at least one pair");
    let sum = |of: fn(&Done) -> u64| done.iter().map(of).sum::<u64>();
    field.invariants.broken(1, sum(|done| done.dead));
    let (blocks, grabs) = (sum(|done| done.blocks), sum(|done| done.grabs));
    let mut record = Record::empty(&bound);
    crate::workloads::fill(&mut record, &rate, job.threads);
    record.set("scope", "real pipes, tracker in user space");
    record.set("swap_ms", swap.as_secs_f64() * 1e3);
    if blocks > 0 {
        record.set("grabbed_share", grabs as f64 / blocks as f64);
        if let Some((before, after)) = idle {
            // Every message is waited for once: as many as blocks, those of the warm-up too.
            let entries = after.saturating_sub(before) as f64;
            record.set("idle_entries_per_op", entries / blocks as f64);
        }
    }
    field.finish(lines, &mut record);
    Ok(record)
}

/// What a pair did, in the warm-up too.
#[derive(Debug, Default)]
struct Done {
    blocks: u64,
    grabs: u64,
    dead: u64,
}

impl Done {
    fn add<T: Tracker>(&mut self, task: Task<'_, T>) {
        self.blocks += task.blocks;
        self.grabs += task.grabs;
        self.dead += task.dead;
    }
}

/// One thread of a pair.
struct Task<'f, T: Tracker> {
    seat: Seat<'f, T>,
    counted: Option<Counted<'f>>,
    blocks: u64,
    grabs: u64,
    /// How often the mm was dead after a block.
    dead: u64,
}

impl<T: Tracker> Around for Task<'_, T> {
    #[inline]
    fn waking(&mut self) {
        if let Some(counted) = &self.counted {
            counted.waking();
        }
    }

    #[inline]
    fn waiting(&mut self, read: impl FnOnce() -> bool) -> bool {
        self.seat.look();
        self.blocks += 1;
        let grabs = self.counted.as_ref().is_none_or(Counted::blocks);
        let came = if grabs {
            self.grabs += 1;
            let (alive, came) = match self.grabs % CHECK {
                0 => self.seat.checked_excursion(read),
                _ => self.seat.excursion(read),
            };
            self.dead += u64::from(!alive);
            came
        } else {
            read()
        };
        if let Some(counted) = &self.counted {
            counted.runs();
        }
        came
    }
}

/// The first thread of a pair, which is bound, and makes the second, which has its CPUs.
fn owner<'f, T: Tracker>(
    pace: &Pace,
    pair: usize,
    pipes: &Pipes,
    task: &(impl Fn(usize) -> Task<'f, T> + Sync),
    done: &mut Done,
) -> Tally {
    // Both are counted as runnable before the first message.
    let ready = std::sync::Barrier::new(2);
    std::thread::scope(|scope| {
        let partner = std::thread::Builder::new()
            .stack_size(STACK)
            .spawn_scoped(scope, || {
                let mut done = Done::default();
                let mut task = task(2 * pair + 1);
                ready.wait();
                pipes.answer(&mut task);
                done.add(task);
                done
            });
        let now = Instant::now();
        let mut tally = Tally {
            ops: 0,
            bad: 0,
            start: now,
            stop: now,
        };
        let partner = match partner {
            Ok(partner) => partner,
            Err(error) => {
                pace.refuse(format!("no partner for pair {pair}: {error}"));
                return tally;
            }
        };
        let mut task = task(2 * pair);
        ready.wait();
        pace.begin();
        while pace.warming() && pipes.hand_over(&mut task) {}
        tally.start = Instant::now();
        while pace.running() && pipes.hand_over(&mut task) {
            tally.ops += 2;
            pace.counted(tally.ops);
        }
        tally.stop = Instant::now();
        pipes.hang_up();
        done.add(task);
        let theirs = partner.join().expect("a partner panicked");
        done.blocks += theirs.blocks;
        done.grabs += theirs.grabs;
        done.dead += theirs.dead;
        tally
    })
}
