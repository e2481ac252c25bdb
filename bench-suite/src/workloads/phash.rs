//! Floor 3, bench-suite. Owns the workload `phash`: the model of the kernel's futex hash, whose table is protected in
//! as many ways as the crate `phash` has. May touch that crate, and the crew.
//!
//! One operation is a wait that fails, as in `perf bench futex hash`: hash, protect the table, announce, lock the
//! bucket, look at the word, unlock, take the announcement back, let the table go; on words of the thread's own. What
//! it is not: a system call. So `--op-cost` puts time between two operations: without, what the table's protection
//! costs is many times as large a part of an operation as in a kernel.
//!
//! With `--replace-every` one more thread replaces the table by one of twice as many buckets, and back. `replace_…`
//! are the times from a request until the new table was the one in use; a request that was still pending at the end
//! has no time, and is in `replacements_pending`.
//!
//! `per_thread` is the mean over the threads of each one's rate, as the kernel's tool has it; `ops_per_s` is the total.

use super::Kind;
use crate::engine::crew::{self, BATCH, Pace, Rate, Refusal, Tally, Worker};
use crate::engine::job::{Job, Params, Shape};
use crate::report::human;
use crate::report::record::{Record, Status};
use crate::report::stats::quantile;
use crate::report::summary::Point;
use crate::report::view::{self, Column, Plot, View};
use crate::schemes::{About, Support};
use phash::{Census, Handle, Phash, Replaced, Replaces, Scheme, Visit, Wait};
use std::collections::HashSet;
use std::hint::black_box;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU32;
use std::time::{Duration, Instant};

/// Buckets if nobody says: so many that threads seldom meet in one, and what is left is the table.
pub(crate) const BUCKETS: usize = 65_536;
/// Words of each thread if nobody says: the kernel's tool's.
pub(crate) const FUTEXES: usize = 1024;

/// What no word holds.
const EXPECTED: u32 = 1234;

/// Announcing, locking and taking back are three read-modify-writes: no processor does them faster.
const FLOOR_NS: f64 = 1.0;

/// A request waits no longer than this, so that the run ends.
const PATIENCE: Duration = Duration::from_millis(50);

pub(super) const KIND: Kind = Kind {
    name: "phash",
    what: "the futex hash in user space: a wait that fails, with the table of buckets protected in several ways; --buckets, --futexes, --op-cost, --replace-every",
    points: |ask| ask.each(&[1, 2], shape),
    tour: |ask| ask.each(&[2], shape),
    variants,
    run,
    support,
    view: View {
        meaning: "a wait that fails, in a futex hash in user space; per thread: mean over the threads, as the kernel's tool counts; more is better; x immutable: against a table that needs no protection; in use after: from the request for a replacement",
        reference: "immutable",
        title: view::threads,
        columns: |group| {
            if group.points.iter().any(|p| p.param(EVERY).is_some()) {
                REPLACED
            } else {
                COLUMNS
            }
        },
        order: |point| point.rate().map(|rate| -rate),
        plot: Plot {
            title: "phash: a wait that fails, in a futex hash",
            axis: "operations per second, all threads (more is better)",
            over: Some(SIZE),
            ..view::RATES
        },
    },
};

const RATIO: Column = Column {
    head: "x immutable",
    cell: |row| row.against(Point::rate),
};
const PER_THREAD: Column = Column {
    head: "per thread",
    cell: |row| row.show(|p| p.param("per_thread"), human::count),
};

const COLUMNS: &[Column] = &[
    PER_THREAD,
    view::rate("total"),
    view::time("ns/op"),
    RATIO,
    view::RATE_SPREAD,
];

const REPLACED: &[Column] = &[
    PER_THREAD,
    view::rate("total"),
    view::time("ns/op"),
    RATIO,
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
        head: "p99",
        cell: |row| row.show(|p| p.param("replace_p99_ns"), human::nanoseconds),
    },
    Column {
        head: "max",
        cell: |row| row.show(|p| p.param("replace_max_ns"), human::nanoseconds),
    },
    view::RATE_SPREAD,
];

/// Names of the options in points.
pub(crate) const SIZE: &str = "buckets";
const WORDS: &str = "futexes";
const COST: &str = "op_cost";
pub(crate) const EVERY: &str = "replace_every_ns";

/// The points that the options ask for.
pub(crate) fn more(
    buckets: &[usize],
    futexes: &[usize],
    cost: OpCost,
    every: Option<Duration>,
) -> Vec<Params> {
    let mut points = Vec::new();
    for &buckets in buckets {
        for &futexes in futexes {
            let mut point = Params::from([
                (SIZE.to_owned(), buckets.into()),
                (WORDS.to_owned(), futexes.into()),
                (COST.to_owned(), cost.word().into()),
            ]);
            if let Some(every) = every {
                let ns = u64::try_from(every.as_nanos()).unwrap_or(u64::MAX);
                point.insert(EVERY.to_owned(), ns.into());
            }
            points.push(point);
        }
    }
    points
}

/// `64`, `2..1024:x2`: numbers of buckets.
pub(crate) fn sizes(text: &str) -> Result<Vec<usize>, String> {
    let sizes = crate::parse::sizes(text, 1 << 24)?;
    match sizes.iter().find(|size| !size.is_power_of_two()) {
        Some(size) => Err(format!("{size} buckets: it takes a power of two")),
        None => Ok(sizes),
    }
}

/// `1024`, `1..4096:x8`: words of each thread.
pub(crate) fn counts(text: &str) -> Result<Vec<usize>, String> {
    match crate::parse::sizes(text, 1 << 24)? {
        counts if counts.contains(&0) => Err("at least 1 futex".to_owned()),
        counts => Ok(counts),
    }
}

/// What a thread does between two operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpCost {
    /// Nothing.
    None,
    /// Works for so long.
    Spin(Duration),
    /// One short system call.
    Syscall,
}

impl OpCost {
    /// `none`, `syscall`, or a duration like `400ns`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(OpCost::None),
            "syscall" => Ok(OpCost::Syscall),
            _ => match crate::parse::duration(text) {
                Ok(Duration::ZERO) => Ok(OpCost::None),
                Ok(time) if time > Duration::from_millis(1) => Err("longer than 1ms".to_owned()),
                Ok(time) => Ok(OpCost::Spin(time)),
                Err(why) => Err(format!("not none, syscall or a duration: {why}")),
            },
        }
    }

    fn word(self) -> String {
        match self {
            OpCost::None => "none".to_owned(),
            OpCost::Spin(time) => format!("{}ns", time.as_nanos()),
            OpCost::Syscall => "syscall".to_owned(),
        }
    }
}

/// A cost made ready: rounds instead of time, since a look at the clock takes longer than some of them.
#[derive(Clone, Copy)]
enum Between {
    Nothing,
    Rounds(u64),
    Syscall,
}

impl Between {
    fn of(cost: OpCost) -> Self {
        match cost {
            OpCost::None => Between::Nothing,
            OpCost::Syscall => Between::Syscall,
            OpCost::Spin(time) => {
                const TRY: u64 = 20_000;
                // The quickest of some tries: the others were interrupted.
                let quickest = (0..50)
                    .map(|_| {
                        let start = Instant::now();
                        rounds(TRY);
                        start.elapsed()
                    })
                    .min()
                    .expect("some");
                let each = quickest.as_secs_f64() / TRY as f64;
                Between::Rounds((time.as_secs_f64() / each) as u64)
            }
        }
    }

    #[inline(always)]
    fn pass(self) {
        match self {
            Between::Nothing => {}
            Between::Rounds(n) => rounds(n),
            Between::Syscall => syscall(),
        }
    }
}

/// A chain of multiplications, which no processor does faster by doing several at once.
#[inline(always)]
fn rounds(n: u64) {
    let mut x = black_box(1u64);
    for _ in 0..n {
        x = x.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 1;
    }
    black_box(x);
}

#[cfg(unix)]
fn syscall() {
    // SAFETY: takes nothing and touches no memory.
    unsafe {
        libc::getppid();
    }
}

#[cfg(not(unix))]
fn syscall() {
    std::thread::yield_now();
}

fn shape(threads: usize) -> Shape {
    Shape {
        threads,
        readers: threads,
        ..Shape::default()
    }
}

/// Whether a scheme can do what the point asks: replace the table, or not.
pub(crate) fn support(about: &About, job: &Job) -> Support {
    let scheme = phash::schemes::ALL.iter().find(|s| s.name == about.name);
    match scheme.is_some_and(|s| s.replaces == Replaces::Never) && job.more.contains_key(EVERY) {
        true => Support::No("its table is never replaced"),
        false => Support::Yes,
    }
}

/// The schemes of the crate, in the words of this program.
pub(crate) fn variants() -> &'static [About] {
    static ALL: OnceLock<Vec<About>> = OnceLock::new();
    ALL.get_or_init(|| {
        let about = |about: &phash::About| {
            let holder = match about.replaces {
                Replaces::Never => "no protection; the table is never replaced",
                Replaces::WhenUnused => {
                    "per operation; a replacement waits for a moment without a reference"
                }
                Replaces::AtOnce => "per operation; a replacement is in use at once",
            };
            let new = About::new(about.name, about.measures, holder)
                .nowhere("a variant of phash, which is another subject");
            if about.percpu { new.over_percpu() } else { new }
        };
        phash::schemes::ALL.iter().map(about).collect()
    })
}

fn run(job: &Job) -> Result<Record, Refusal> {
    struct Run<'a>(&'a Job);
    impl Visit for Run<'_> {
        type Out = Result<Record, Refusal>;

        fn visit<S: Scheme>(self) -> Self::Out {
            measure::<S>(self.0)
        }
    }
    phash::schemes::dispatch(&job.variant, Run(job)).expect("a variant of this workload")
}

/// What the replacing thread saw.
#[derive(Debug, Default)]
pub(crate) struct Replacements {
    asked: u64,
    /// The last request was still pending, or was not made for one that was.
    late: u64,
}

impl Replacements {
    /// Asks for tables of twice as many buckets and back, `every` so often, while `working`.
    pub(crate) fn make<S: Scheme>(
        &mut self,
        hash: &Phash<S>,
        thread: &Handle,
        buckets: usize,
        every: Duration,
        working: impl Fn() -> bool,
    ) {
        let mut large = true;
        while working() {
            let size = if large { 2 * buckets } else { buckets };
            match hash.replace(thread, size, Some(Instant::now() + PATIENCE)) {
                Replaced::InUse => {
                    self.asked += 1;
                    large = !large;
                }
                Replaced::Pending => {
                    self.asked += 1;
                    self.late += 1;
                    large = !large;
                }
                Replaced::Busy => self.late += 1,
                Replaced::Never => break,
            }
            std::thread::sleep(every);
        }
    }

    /// What became of the requests.
    pub(crate) fn put(&self, record: &mut Record, census: &Census) {
        let mut times: Vec<u64> = census
            .in_use_after()
            .iter()
            .map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
            .collect();
        times.sort_unstable();
        record.set("replacements_asked", self.asked);
        record.set("replacements_completed", times.len());
        record.set("replacements_pending", self.asked - times.len() as u64);
        record.set("replacements_late", self.late);
        for (name, q) in [
            ("replace_p50_ns", 0.5),
            ("replace_p90_ns", 0.9),
            ("replace_p99_ns", 0.99),
            ("replace_max_ns", 1.0),
        ] {
            if let Some(ns) = quantile(&times, q) {
                record.set(name, ns);
            }
        }
        if times.is_empty() && self.asked > 0 {
            record.remark(
                "no replacement was completed: there never was a moment without a reference",
            );
        }
        record.set("tables_made", census.made());
        record.set("tables_freed", census.freed());
    }
}

fn measure<S: Scheme>(job: &Job) -> Result<Record, Refusal> {
    let number = |name: &str, default: usize| {
        let value = job.more.get(name).and_then(serde_json::Value::as_u64);
        value.map_or(default, |n| n as usize)
    };
    let (buckets, futexes) = (number(SIZE, BUCKETS), number(WORDS, FUTEXES));
    let cost = job
        .more
        .get(COST)
        .and_then(|cost| cost.as_str())
        .unwrap_or("none");
    let cost = OpCost::parse(cost).map_err(Refusal::Environment)?;
    let every = job
        .more
        .get(EVERY)
        .and_then(serde_json::Value::as_u64)
        .map(Duration::from_nanos);
    let between = Between::of(cost);
    let words: Vec<Vec<AtomicU32>> = (0..job.threads)
        .map(|_| (0..futexes).map(|_| AtomicU32::new(0)).collect())
        .collect();
    let hash = Phash::<S>::new(buckets);
    let census = hash.census();
    let mut replacements = Replacements::default();
    let mut workers: Vec<Worker<'_>> = words
        .iter()
        .map(|words| worker(&hash, words, between))
        .collect();
    if let Some(every) = every {
        workers.push(replacer(&hash, buckets, every, &mut replacements));
    }
    let (tallies, _) = crew::run(job, workers, || ())?;
    let waits = &tallies[..job.threads];
    let rate = Rate::of(waits).expect("there is at least one thread");
    let mut record = Record::empty(job);
    super::fill(&mut record, &rate, job.threads);
    let each = waits.iter().map(|tally| {
        let seconds = tally.stop.duration_since(tally.start).as_secs_f64();
        if seconds > 0.0 {
            tally.ops as f64 / seconds
        } else {
            0.0
        }
    });
    record.set("per_thread", each.sum::<f64>() / job.threads as f64);
    collisions(&mut record, &words, buckets);
    if every.is_some() {
        hash.flush();
        replacements.put(&mut record, &census);
    }
    record.judge(tallies.iter().map(|tally| tally.bad).sum());
    if record.ns_per_op.is_some_and(|ns| ns < FLOOR_NS) {
        record.status = Status::Failed;
        record.remark("faster than three atomic additions can be: the loop was optimised away");
    }
    Ok(record)
}

/// How many words share a bucket with another one, in a table of the first size.
fn collisions(record: &mut Record, words: &[Vec<AtomicU32>], buckets: usize) {
    let mut taken = HashSet::new();
    let mut all = 0;
    for word in words.iter().flatten() {
        all += 1;
        taken.insert(phash::index(std::ptr::from_ref(word).addr(), buckets - 1));
    }
    record.set("buckets_used", taken.len());
    record.set("bucket_collisions", all - taken.len());
}

fn worker<'a, S: Scheme>(
    hash: &'a Phash<S>,
    words: &'a [AtomicU32],
    between: Between,
) -> Worker<'a> {
    Box::new(move |pace: &Pace| {
        let mut thread = Handle::new();
        let mut words = words.iter().cycle();
        let mut wrong = 0;
        let tally = pace.measure(|| {
            for _ in 0..BATCH {
                let word = words.next().expect("at least one");
                if hash.wait(&mut thread, word, EXPECTED, None) != Wait::Mismatch {
                    wrong += 1;
                }
                between.pass();
            }
            0
        });
        Tally {
            bad: thread.dead() + wrong,
            ..tally
        }
    })
}

fn replacer<'a, S: Scheme>(
    hash: &'a Phash<S>,
    buckets: usize,
    every: Duration,
    seen: &'a mut Replacements,
) -> Worker<'a> {
    Box::new(move |pace: &Pace| {
        let thread = Handle::new();
        pace.begin();
        let start = Instant::now();
        seen.make(hash, &thread, buckets, every, || pace.working());
        Tally {
            ops: seen.asked,
            bad: thread.dead(),
            start,
            stop: Instant::now(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs() {
        let ns = |n| OpCost::Spin(Duration::from_nanos(n));
        for (text, cost, word) in [
            ("none", OpCost::None, "none"),
            ("0ns", OpCost::None, "none"),
            ("syscall", OpCost::Syscall, "syscall"),
            ("400ns", ns(400), "400ns"),
            ("0.5us", ns(500), "500ns"),
        ] {
            assert_eq!(OpCost::parse(text), Ok(cost), "{text}");
            assert_eq!(cost.word(), word);
            assert_eq!(OpCost::parse(word), Ok(cost));
        }
        for bad in ["", "400", "some", "1s", "-1ns"] {
            assert!(OpCost::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn options_are_points() {
        let points = more(
            &[2, 4],
            &[1, 1024],
            OpCost::None,
            Some(Duration::from_millis(5)),
        );
        assert_eq!(points.len(), 4);
        assert_eq!(points[1][SIZE], 2);
        assert_eq!(points[1][WORDS], 1024);
        assert_eq!(points[3][EVERY], 5_000_000);
        assert!(sizes("3").unwrap_err().contains("power of two"));
        assert_eq!(sizes("1,4..16:x2"), Ok(vec![1, 4, 8, 16]));
        assert!(counts("0").is_err());
        assert!(!more(&[2], &[1], OpCost::None, None)[0].contains_key(EVERY));
    }

    #[test]
    fn a_spin_takes_about_its_time() {
        let between = Between::of(OpCost::Spin(Duration::from_micros(20)));
        let quickest = (0..50)
            .map(|_| {
                let start = Instant::now();
                between.pass();
                start.elapsed()
            })
            .min()
            .unwrap();
        let range = Duration::from_micros(10)..Duration::from_micros(40);
        assert!(range.contains(&quickest), "{quickest:?}");
    }

    #[test]
    fn every_scheme_is_a_variant_of_this_workload_only() {
        assert_eq!(variants().len(), phash::schemes::ALL.len());
        for about in variants() {
            assert!(about.read != Support::Yes, "{}", about.name);
        }
    }
}
