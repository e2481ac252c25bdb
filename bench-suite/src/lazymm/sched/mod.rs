//! Floor 3, bench-suite. Owns the workload `sched`: simulated run queues, whose kernel threads borrow the mm of the user
//! task before them. May touch the crew, the trackers and the record.
//!
//! | file | owns |
//! |---|---|
//! | `machine` | what CPUs share: the tracker, the processes, what each shows |
//! | `cpu` | a CPU: switches, exits, tear-downs, answers |
//! | `queue` | which task is next |
//! | `irq` | interrupts, by mailbox and by signal |
//!
//! One thread plays one CPU; there may be more than the machine has. One operation is one `context_switch`. This is a
//! model: it has the accesses of the kernel's switch to the tracker and to the mm, and nothing of its run queues, page
//! tables and stacks.
//!
//! **The end.** The tasks of each CPU exit; the last CPU to end them ends the processes; a CPU answers interrupts until
//! everything is torn down. Then each lets go of the mm that it still borrows, and lets the scheme free.

mod cpu;
mod irq;
mod machine;
mod queue;
#[cfg(test)]
mod tests;

use super::tracker::Tracker;
use super::trackers::{self, over_trackers};
use super::{LATENCY_COLUMNS, VERSUS_REFCOUNT};
use crate::engine::crew::{self, BATCH, Pace, Rate, Refusal, Worker};
use crate::engine::job::{Job, Params, Shape};
use crate::engine::pin;
use crate::report::human;
use crate::report::record::Record;
use crate::report::summary::Point;
use crate::report::view::{self, Column, Plot, View};
use crate::schemes::Support;
use crate::workloads::{self, Ask, Kind};
use cpu::{Cpu, Sent, Task};
use irq::Ipi;
use machine::{Machine, Settings};
use queue::Queue;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// A run ends early when more mms than this are torn down and not freed.
const CAP: u64 = 400_000;

/// How long the end waits for a scheme that frees nothing.
const PATIENCE: Duration = Duration::from_secs(2);

/// Of the options.
const KTHREAD_SHARE: u32 = 50;
const MMS: usize = 1;
const EXIT_EVERY: u64 = 100_000;
const WORK: u32 = 1;

/// What the subcommand takes.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Args {
    /// Of a hundred switches, how many go to a kernel thread; 50: user, kernel, user, … as in context_switch1
    #[arg(long, value_name = "PERCENT", default_value_t = KTHREAD_SHARE, value_parser = clap::value_parser!(u32).range(0..=100))]
    kthread_share: u32,
    /// Processes, each with a task on every CPU: 1 is one mm that all CPUs share
    #[arg(long, value_name = "N", default_value_t = MMS as u64, value_parser = clap::value_parser!(u64).range(1..=4096))]
    mms: u64,
    /// Switches of a CPU between two execs, which end the mm for all CPUs; 0 for none before the end
    #[arg(long, value_name = "N", default_value_t = EXIT_EVERY)]
    exit_every: u64,
    /// Looks at the mm after each switch, in user tasks and in kernel threads
    #[arg(long, value_name = "N", default_value_t = WORK, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    work: u32,
    /// How a tear-down interrupts other CPUs
    #[arg(long, value_enum, default_value_t = Ipi::Mailbox)]
    ipi: Ipi,
}

impl Args {
    /// The point asked for: what is not as usual.
    pub(super) fn more(&self) -> Vec<Params> {
        let mut point = Params::new();
        let mut ask = |name: &str, value: serde_json::Value, usual: bool| {
            if !usual {
                point.insert(name.to_owned(), value);
            }
        };
        let share = self.kthread_share;
        ask("kthread_share", share.into(), share == KTHREAD_SHARE);
        ask("mms", self.mms.into(), self.mms == MMS as u64);
        ask(
            "exit_every",
            self.exit_every.into(),
            self.exit_every == EXIT_EVERY,
        );
        ask("work", self.work.into(), self.work == WORK);
        ask("ipi", self.ipi.word().into(), self.ipi == Ipi::Mailbox);
        vec![point]
    }
}

impl Settings {
    fn of(job: &Job) -> Self {
        let number = |name: &str, usual: u64| {
            let asked = job.more.get(name).and_then(serde_json::Value::as_u64);
            asked.unwrap_or(usual)
        };
        let word = job.more.get("ipi").and_then(serde_json::Value::as_str);
        Settings {
            cpus: job.threads,
            kthread_share: number("kthread_share", KTHREAD_SHARE.into()).min(100) as u32,
            mms: number("mms", MMS as u64) as usize,
            exit_every: number("exit_every", EXIT_EVERY),
            work: number("work", WORK.into()) as u32,
            ipi: match word {
                Some(word) if word == Ipi::Signal.word() => Ipi::Signal,
                _ => Ipi::Mailbox,
            },
            seed: job.seed,
        }
    }
}

pub(crate) const KIND: Kind = Kind {
    name: "sched",
    what: "lazy-mm sched: simulated CPUs whose kernel threads borrow the mm of the user task before; ns per switch, tear-down latency",
    points: |ask| ask.each(&[1, 2], shape),
    tour: |ask| {
        let usual = Ask {
            threads: None,
            ..ask.clone()
        };
        usual.each(&[2], shape)
    },
    variants: trackers::all,
    run: over_trackers!(run),
    support: |_, _| Support::Yes,
    view: View {
        meaning: "model: switches of simulated CPUs, half of them to kernel threads that borrow the mm, unless the point says otherwise; more is better; x refcount: rate against that of refcount; locked, fences: instructions of the tracker a switch; ipi: interrupts to other CPUs a tear-down; teardown: from the last user's leaving to the destructor",
        reference: "refcount",
        title: |group| human::plural(group.threads, "simulated CPU"),
        columns: |_| {
            &const {
                let [p50, p99, peak] = LATENCY_COLUMNS;
                [
                    view::rate("switches/s"),
                    view::time("ns/switch"),
                    VERSUS_REFCOUNT,
                    Column {
                        head: "locked",
                        cell: |row| row.show(|p| p.param("locked_per_switch"), tenths),
                    },
                    Column {
                        head: "fences",
                        cell: |row| row.show(|p| p.param("fences_per_switch"), tenths),
                    },
                    Column {
                        head: "ipi",
                        cell: |row| row.show(|p| p.param("interrupts_per_teardown"), tenths),
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
            title: "lazy-mm sched: context switches of simulated CPUs (model)",
            axis: "switches per second (more is better)",
            threads_axis: "simulated CPUs",
            panels: |group| vec![(human::plural(group.threads, "simulated CPU"), Point::rate)],
            ..view::RATES
        },
    },
};

fn tenths(value: f64) -> String {
    format!("{value:.2}")
}

fn shape(threads: usize) -> Shape {
    Shape {
        threads,
        readers: threads,
        ..Shape::default()
    }
}

/// What a CPU counted, in the warm-up too.
#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    switches: u64,
    grabs: u64,
    sent: Sent,
}

/// `job.threads` CPUs.
fn run<T: Tracker>(job: &Job) -> Result<Record, Refusal> {
    let settings = Settings::of(job);
    if settings.ipi == Ipi::Signal {
        irq::install()?;
    }
    let machine = Machine::<T>::new(settings);
    let mut counts = vec![Counts::default(); settings.cpus];
    let workers = counts
        .iter_mut()
        .enumerate()
        .map(|(index, counts)| worker(&machine, index, counts))
        .collect();
    let mut at_stop = None;
    let (tallies, early) = crew::run(job, workers, || {
        at_stop = Some((machine.census.latencies(), machine.census.found()));
        while !machine.course.closed.load(Relaxed) {
            std::thread::sleep(Duration::from_micros(50));
        }
    })?;
    let (latencies, found) = at_stop.expect("the run came to its end");
    let rate = Rate::of(&tallies).expect("there is at least one CPU");
    let mut record = Record::empty(job);
    workloads::fill(&mut record, &rate, settings.cpus);
    tell(&mut record, &settings);
    record.set("teardowns", found.torn);
    record.set("peak_unreclaimed", found.peak);
    record.set("freed_at_end", found.torn.saturating_sub(found.freed));
    super::report_latencies(&mut record, &latencies);
    if let Some(why) = early {
        record.remark(&why);
    }
    settle(machine, &counts, &mut record);
    Ok(record)
}

/// What was asked.
fn tell(record: &mut Record, settings: &Settings) {
    record.set("scope", "model");
    record.set("kthread_share", settings.kthread_share);
    record.set("mms", settings.mms);
    record.set("exit_every", settings.exit_every);
    record.set("work", settings.work);
    record.set("ipi", settings.ipi.word());
    let real = pin::allowed().len();
    if settings.cpus > real {
        record.remark(&format!(
            "{} simulated CPUs on {real}: tear-downs wait for the scheduler",
            settings.cpus
        ));
    }
}

/// When all CPUs are gone: what they counted, and what held.
fn settle<T: Tracker>(machine: Machine<T>, counts: &[Counts], record: &mut Record) {
    let sum = |what: fn(&Counts) -> u64| counts.iter().map(what).sum::<u64>();
    let (switches, grabs) = (sum(|c| c.switches), sum(|c| c.grabs));
    let (shots, own, checks) = (
        sum(|c| c.sent.shots),
        sum(|c| c.sent.own),
        sum(|c| c.sent.checks),
    );
    let Machine {
        tracker,
        census,
        invariants,
        ..
    } = machine;
    invariants.count(tracker.busy(), shots + own, tracker.reasons());
    let cost = tracker.cost();
    drop(tracker);
    let found = census.found();
    invariants.settle(&found);
    let per = |count: u64, of: u64| {
        if of == 0 {
            0.0
        } else {
            count as f64 / of as f64
        }
    };
    let pairs = per(grabs, switches);
    record.set("grabs_per_switch", pairs);
    record.set(
        "locked_per_switch",
        pairs * f64::from(cost.locked.0 + cost.locked.1),
    );
    record.set(
        "fences_per_switch",
        pairs * f64::from(cost.fences.0 + cost.fences.1),
    );
    record.set("interrupts", shots);
    record.set("interrupts_to_itself", own);
    record.set("interrupts_to_check", checks);
    record.set("interrupts_per_teardown", per(shots, found.torn));
    invariants.judge(record);
}

fn worker<'a, T: Tracker>(
    machine: &'a Machine<T>,
    index: usize,
    counts: &'a mut Counts,
) -> Worker<'a> {
    Box::new(move |pace: &Pace| {
        let cpu = Cpu::new(machine, index);
        let here = cpu.here();
        let attending = machine.cpus[index].line.attend(&here);
        let mut queue = Queue::new(&machine.settings, index);
        let mut current = Task::Kernel;
        let mut switches = 0;
        let tally = pace.measure(|| {
            // One that grabs and one that drops, at the usual share.
            for _ in 0..2 {
                current = step(&cpu, &mut queue, current);
                cpu.look_at_slot();
            }
            for _ in 2..BATCH {
                current = step(&cpu, &mut queue, current);
            }
            switches += BATCH;
            if machine.census.waiting() > CAP {
                pace.end_early(&format!("ended early: more than {CAP} mms wait"));
            }
            0
        });
        end(machine, &cpu, pace);
        drop(attending);
        *counts = Counts {
            switches,
            grabs: cpu.grabs(),
            sent: cpu.sent(),
        };
        tally
    })
}

/// One switch, with the exit before it if one is due. Returns who runs now.
#[inline(always)]
fn step<T: Tracker>(cpu: &Cpu<'_, T>, queue: &mut Queue, mut current: Task) -> Task {
    cpu.poll();
    let next = queue.next(current);
    if let Task::User(process) = current {
        if queue.execs() {
            cpu.exec(process);
            current = Task::Kernel;
        } else if cpu.is_behind(process) {
            cpu.exit(process);
            current = Task::Kernel;
        }
    }
    debug_assert_eq!(current, cpu.current());
    cpu.switch(next);
    next
}

/// The course of the end.
fn end<T: Tracker>(machine: &Machine<T>, cpu: &Cpu<'_, T>, pace: &Pace) {
    let course = &machine.course;
    let cpus = machine.settings.cpus;
    cpu.exit_all();
    // AcqRel is not needed: the processes' mutexes tell the last one of all births.
    if course.ended.fetch_add(1, Relaxed) + 1 == cpus {
        (0..machine.processes.len() as u32).for_each(|process| cpu.end(process));
        course.closed.store(true, Relaxed);
    }
    while !pace.leaving() {
        cpu.poll();
        std::thread::yield_now();
    }
    cpu.rest();
    course.idle.fetch_add(1, Relaxed);
    // A run that was refused before it began has fewer threads.
    while course.closed.load(Relaxed) && course.idle.load(Relaxed) < cpus {
        std::thread::yield_now();
    }
    let mut waiting = machine.census.waiting();
    let mut moved = Instant::now();
    while waiting > 0 && !T::FREES_LAST && moved.elapsed() < PATIENCE {
        cpu.flush();
        std::thread::yield_now();
        let now = machine.census.waiting();
        if now != waiting {
            moved = Instant::now();
        }
        waiting = now;
    }
}
