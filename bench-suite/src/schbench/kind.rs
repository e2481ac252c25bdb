//! Floor 3, bench-suite. Owns the workloads `schbench`, over the kernel's futexes, and `schbench-phash`, over those of the
//! model: one run as a record. May touch the crew of threads, the crate `phash`, the engine's windows.
//!
//! The course is not the original's (that of `watch`): the main thread waits until all threads are there and for the
//! warm-up, begins the percentiles anew, reads the counters at the ends of the windows, and ends the run. `ops_per_s`
//! counts answered requests over measured time.
//!
//! **The model.** A thread that sleeps is queued in a bucket of a table in user space (`bench-suite/phash`) and parked
//! on one real futex of its own; who posts it finds the bucket, takes it out and wakes it. So each request has two
//! operations or more on a table that the scheme must keep alive, and real sleeps beside them: what the kernel does
//! twice (its own hash is under the real futexes) is in every variant alike.

use super::crew::{Crew, Running};
use super::futex::{BLOCKED, Futex, Kernel};
use super::histogram::Sum;
use super::plan::{Ask, Pacing, Plan};
use super::{limits, need};
use crate::engine::crew::{Rate, Refusal, Tally};
use crate::engine::job::{Job, Params, Shape};
use crate::engine::pin;
use crate::engine::windows::{self, Seats, Series};
use crate::futexhash::hashes;
use crate::report::human;
use crate::report::record::{Record, Status};
use crate::report::summary::{Group, Point};
use crate::report::view::{self, Column, Plot, View};
use crate::trouble::Trouble;
use crate::workloads::{Kind, fill, phash as model};
use phash::{Handle, Phash, Scheme, Visit};
use std::cell::RefCell;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The original's options in points, as they are written.
pub(super) const OPTIONS: &str = "options";

/// Buckets if nobody says: seed 003's smaller number.
pub(super) const BUCKETS: usize = 1024;

/// What the points of the seed ask, but for the numbers of threads; for `--list`, the tour and a bare subcommand.
pub(super) const USUAL: &str = "-L -n 0 -s 0";

pub(crate) const KIND: Kind = Kind {
    name: "schbench",
    what: "schbench on the running kernel: message threads that wake workers, over the kernel's futex hashes; --threads workers of each message thread",
    points: |ask| ask.each(&[4], shape),
    tour: |_| vec![usual(4)],
    variants: || &hashes::VARIANTS,
    run: |job| {
        hashes::set(job, BUCKETS)?;
        let mut record = measure(job, Kernel, || 0)?;
        hashes::put(&mut record);
        record.set("scope", "real futexes, this kernel");
        Ok(record)
    },
    support: |about, _| hashes::support(about.name),
    view: View {
        meaning: "requests that sleep and are woken, real futexes on this kernel; more is better; wake: from the message thread's look at the clock to the worker's; request: sleep and work",
        reference: hashes::GLOBAL,
        title,
        columns: |_| COLUMNS,
        order: |point| point.rate().map(|rate| -rate),
        plot: PLOT,
    },
};

pub(crate) const MODEL: Kind = Kind {
    name: "schbench-phash",
    what: "schbench on a futex hash in user space: sleepers queue in a table that is protected in several ways; schbench --on phash",
    points: KIND.points,
    tour: |_| vec![usual(4)],
    variants: model::variants,
    run: |job| {
        struct Run<'a>(&'a Job);
        impl Visit for Run<'_> {
            type Out = Result<Record, Refusal>;

            fn visit<S: Scheme>(self) -> Self::Out {
                modelled::<S>(self.0)
            }
        }
        phash::schemes::dispatch(&job.variant, Run(job)).expect("a variant of this workload")
    },
    support: model::support,
    view: View {
        meaning: "requests that sleep and are woken through a futex hash in user space, each sleeper on one real futex; more is better; x immutable: against a table that needs no protection",
        reference: "immutable",
        title,
        columns: |group| match group.points.iter().any(|p| p.param(model::EVERY).is_some()) {
            true => REPLACED,
            false => COLUMNS,
        },
        order: |point| point.rate().map(|rate| -rate),
        plot: Plot {
            title: "schbench over a futex hash in user space",
            ..PLOT
        },
    },
};

const PLOT: Plot = Plot {
    title: "schbench: requests that sleep and are woken",
    axis: "requests per second (more is better)",
    threads_axis: "workers of each message thread",
    over: Some(hashes::BUCKETS),
    descending: true,
    format: human::count,
    panels: |group| vec![(title(group), Point::rate)],
    ..view::RATES
};

const RATIO: Column = Column {
    head: "ratio",
    cell: |row| row.against(Point::rate),
};

/// A column of microseconds.
macro_rules! us {
    ($head:literal, $param:literal) => {
        Column {
            head: $head,
            cell: |row| row.show(|p| p.param($param), |us| human::nanoseconds(us * 1000.0)),
        }
    };
}

const COLUMNS: &[Column] = &[
    view::rate("requests/s"),
    RATIO,
    us!("wake p50", "wakeup_p50_us"),
    us!("p99", "wakeup_p99_us"),
    us!("p99.9", "wakeup_p99_9_us"),
    us!("max", "wakeup_max_us"),
    us!("request p50", "request_p50_us"),
    us!("p99", "request_p99_us"),
    us!("max", "request_max_us"),
    view::RATE_SPREAD,
];

const REPLACED: &[Column] = &[
    view::rate("requests/s"),
    RATIO,
    us!("wake p50", "wakeup_p50_us"),
    us!("p99", "wakeup_p99_us"),
    Column {
        head: "replaced",
        cell: |row| row.show(|p| p.param("replacements_completed"), human::count),
    },
    Column {
        head: "pending",
        cell: |row| row.show(|p| p.param("replacements_pending"), human::count),
    },
    Column {
        head: "in use after p50",
        cell: |row| row.show(|p| p.param("replace_p50_ns"), human::nanoseconds),
    },
    Column {
        head: "max",
        cell: |row| row.show(|p| p.param("replace_max_ns"), human::nanoseconds),
    },
    view::RATE_SPREAD,
];

fn title(group: &Group) -> String {
    human::plural(group.threads, "worker")
}

fn shape(workers: usize) -> Shape {
    Shape {
        threads: workers,
        readers: workers,
        ..Shape::default()
    }
}

fn usual(workers: usize) -> Shape {
    Shape {
        more: point(USUAL, BUCKETS, None),
        ..shape(workers)
    }
}

/// What the options ask of one point.
pub(super) fn point(options: &str, buckets: usize, every: Option<Duration>) -> Params {
    let mut point = Params::from([(hashes::BUCKETS.to_owned(), buckets.into())]);
    if !options.is_empty() {
        point.insert(OPTIONS.to_owned(), options.into());
    }
    if let Some(every) = every {
        let ns = u64::try_from(every.as_nanos()).unwrap_or(u64::MAX);
        point.insert(model::EVERY.to_owned(), ns.into());
    }
    point
}

/// The plan of a job.
fn plan(job: &Job) -> Result<Plan, Trouble> {
    let words = job.more.get(OPTIONS).and_then(|words| words.as_str());
    let mut ask = Ask::of_words(words.unwrap_or_default())?;
    ask.workers = Some(job.threads as u64);
    Plan::of(&ask, &pin::allowed())
}

/// Threads that a run starts.
pub(crate) fn threads(job: &Job) -> usize {
    plan(job).map_or(job.threads, |plan| plan.threads())
}

/// One run; `dead` says at its end how many dead objects were seen.
fn measure<F: Futex>(job: &Job, futex: F, dead: impl FnOnce() -> u64) -> Result<Record, Refusal> {
    let environment = |trouble: Trouble| Refusal::Environment(trouble.to_string());
    let plan = plan(job).map_err(environment)?;
    let (need, have) = (need(&plan), limits::Have::look());
    have.allows(need).map_err(environment)?;
    let blame = |(started, error): (usize, io::Error)| match error.kind() {
        io::ErrorKind::Other => Refusal::Environment(error.to_string()),
        _ => environment(have.blame(started, need, &error)),
    };
    let mut running = Running::start(Crew::new(plan.clone(), futex)).map_err(blame)?;
    while !running.is_ready().map_err(blame)? {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(job.warmup);
    let shared = Arc::clone(&running.crew);
    let counts = || {
        // Relaxed: figures.
        let loops = shared.workers.iter();
        loops
            .map(|worker| worker.loops.load(Ordering::Relaxed))
            .collect::<Vec<u64>>()
    };
    for worker in &shared.workers {
        worker.wakeup.zero();
        worker.request.zero();
    }
    let seats = Seats::new(shared.workers.len());
    let mut series = Series::start(job.time);
    let (before, start) = (counts(), Instant::now());
    let made = loop {
        let left = job.time.saturating_sub(start.elapsed());
        std::thread::sleep(series.until_next(left));
        let made: Vec<u64> = counts().iter().zip(&before).map(|(n, b)| n - b).collect();
        for (worker, &ops) in made.iter().enumerate() {
            Seats::take(worker);
            seats.own().store(ops, Ordering::Relaxed);
        }
        let over = start.elapsed() >= job.time;
        series.look(&seats, over);
        if over {
            break made;
        }
    };
    let stop = Instant::now();
    let now = super::clock::ns();
    series.hand_over();
    windows::finish(&seats);
    let crew = running.stop().map_err(blame)?;
    let tally = |ops| Tally {
        ops,
        bad: 0,
        start,
        stop,
    };
    let tallies: Vec<Tally> = made.into_iter().map(tally).collect();
    let rate = Rate::of(&tallies).expect("there is at least one worker");
    let mut record = Record::empty(job);
    fill(&mut record, &rate, shared.workers.len());
    let dead = dead();
    if plan.paced.is_some_and(|paced| paced.how == Pacing::Open) {
        let (count, oldest) = crew.count_unanswered(now);
        record.set("unanswered", count);
        record.set("unanswered_oldest_us", oldest);
    }
    let left_out = crew.left_out.load(Ordering::Relaxed);
    if left_out > 0 {
        record.set("left_out", left_out);
        record.remark(&format!(
            "{left_out} requests were left out, their workers had too many (--pacing open leaves none out)"
        ));
    }
    percentiles(
        &mut record,
        "wakeup",
        &Sum::of(crew.workers.iter().map(|worker| &worker.wakeup)),
    );
    if plan.pipe.is_none() {
        percentiles(
            &mut record,
            "request",
            &Sum::of(crew.workers.iter().map(|worker| &worker.request)),
        );
    }
    record.set("messengers", plan.messengers);
    record.set("workers", crew.workers.len());
    for note in &plan.notes {
        record.remark(note);
    }
    record.judge(dead);
    Ok(record)
}

/// From the histogram of the original, in whole microseconds.
fn percentiles(record: &mut Record, what: &str, sum: &Sum) {
    if sum.count() == 0 {
        return;
    }
    for (name, percentile) in [("p50", 50.0), ("p90", 90.0), ("p99", 99.0), ("p99_9", 99.9)] {
        record.set(&format!("{what}_{name}_us"), sum.percentile(percentile));
    }
    record.set(&format!("{what}_max_us"), sum.max());
    record.set(&format!("{what}_samples"), sum.count());
}

thread_local! {
    /// What this thread brings along to the hash.
    static HANDLE: RefCell<Option<Handle>> = const { RefCell::new(None) };
}

/// Threads sleep in the hash.
struct Modelled<S> {
    hash: Arc<Phash<S>>,
    /// Dead tables that were seen.
    dead: Arc<AtomicU64>,
}

impl<S: Scheme> Modelled<S> {
    fn with(&self, f: impl FnOnce(&Phash<S>, &mut Handle)) {
        HANDLE.with_borrow_mut(|handle| {
            let handle = handle.get_or_insert_with(Handle::new);
            let before = handle.dead();
            f(&self.hash, handle);
            if handle.dead() > before {
                // Relaxed: read when the threads have been joined.
                self.dead
                    .fetch_add(handle.dead() - before, Ordering::Relaxed);
            }
        });
    }
}

impl<S: Scheme + 'static> Futex for Modelled<S> {
    fn sleep(&self, word: &AtomicU32) {
        self.with(|hash, handle| {
            hash.wait(handle, word, BLOCKED, None);
        });
    }

    fn wake(&self, word: &AtomicU32) {
        self.with(|hash, handle| {
            hash.wake(handle, word, 1);
        });
    }
}

fn modelled<S: Scheme + 'static>(job: &Job) -> Result<Record, Refusal> {
    let buckets = hashes::size(job, BUCKETS);
    let every = job.more.get(model::EVERY).and_then(|ns| ns.as_u64());
    let hash = Arc::new(Phash::<S>::new(buckets));
    let (census, dead) = (hash.census(), Arc::new(AtomicU64::new(0)));
    let futex = Modelled {
        hash: Arc::clone(&hash),
        dead: Arc::clone(&dead),
    };
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let replacing = every.map(|every| {
            let (hash, over) = (&hash, &over);
            scope.spawn(move || {
                let mut seen = model::Replacements::default();
                let thread = Handle::new();
                let every = Duration::from_nanos(every);
                // Relaxed: the thread is joined.
                seen.make(hash, &thread, buckets, every, || {
                    !over.load(Ordering::Relaxed)
                });
                (seen, thread.dead())
            })
        });
        let measured = measure(job, futex, || dead.load(Ordering::Relaxed));
        over.store(true, Ordering::Relaxed);
        let replaced = replacing.map(|thread| thread.join().expect("it does not panic"));
        let mut record = measured?;
        if let Some((seen, dead)) = replaced {
            hash.flush();
            seen.put(&mut record, &census);
            if dead > 0 {
                record.judge(dead);
            }
        }
        let left = hash.look(&Handle::new(), phash::Table::queued);
        if left > 0 && record.status == Status::Ok {
            record.status = Status::Failed;
            record.remark(&format!("{left} sleepers were left in the hash"));
        }
        record.set("scope", "a model in user space over real futexes");
        Ok(record)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workloads::Workload;

    fn job(workload: Workload, variant: &str, more: Params) -> Job {
        Job {
            workload,
            variant: variant.to_owned(),
            threads: 3,
            readers: 3,
            writers: 0,
            pauses: None,
            more,
            run: 0,
            order: 0,
            seed: 1,
            time: Duration::from_millis(60),
            warmup: Duration::from_millis(5),
            pin: crate::engine::job::Pin::None,
            quick: false,
        }
    }

    #[test]
    fn every_scheme_answers_requests() {
        for about in model::variants() {
            let job = job(
                Workload::SchbenchPhash,
                about.name,
                point("-m 2 -L -n 0 -s 0", 2, None),
            );
            assert_eq!(threads(&job), 8);
            let record = (MODEL.run)(&job).unwrap();
            assert_eq!(record.status, Status::Ok, "{}: {}", about.name, record.note);
            assert!(record.ops > 0, "{}", about.name);
            assert!(record.number("wakeup_p50_us") <= record.number("wakeup_max_us"));
            assert_eq!(record.number("workers"), Some(6.0));
        }
    }

    /// Sleepers are moved with their table: none stays behind, and requests go on.
    #[test]
    fn tables_are_replaced_under_sleepers() {
        for variant in ["hp", "rcu", "futex-ref", "refcount"] {
            let every = Some(Duration::from_millis(1));
            let job = job(Workload::SchbenchPhash, variant, point(USUAL, 2, every));
            let record = (MODEL.run)(&job).unwrap();
            assert_eq!(record.status, Status::Ok, "{variant}: {}", record.note);
            assert!(record.ops > 0, "{variant}");
            assert!(
                record.number("replacements_completed") > Some(0.0),
                "{variant}"
            );
        }
    }

    #[test]
    fn the_kernel_answers_requests() {
        let job = job(Workload::Schbench, hashes::GLOBAL, point(USUAL, 64, None));
        let record = measure(&job, Kernel, || 0).unwrap();
        assert_eq!(record.status, Status::Ok, "{}", record.note);
        assert!(record.ops > 0);
        let open = point("-R 100 --pacing open -n 0 -s 0", 64, None);
        let record = measure(
            &self::job(Workload::Schbench, hashes::GLOBAL, open),
            Kernel,
            || 2,
        );
        let record = record.unwrap();
        assert_eq!(record.status, Status::Failed, "dead objects were seen");
        assert!(record.number("unanswered").is_some());
    }

    #[test]
    fn the_references_are_variants() {
        assert!(Workload::Schbench.find(KIND.view.reference).is_some());
        assert!(Workload::SchbenchPhash.find(MODEL.view.reference).is_some());
    }
}
