//! Floor 3, bench-suite. Owns the threads of `structures`: those that operate, one that stays inside, those that walk,
//! and one that counts what waits. May touch a structure through [`Subject`], and the crew.
//!
//! **What waits** is what lives (counted in constructors and destructors, the same way for every scheme) less what the
//! operations have put in and not taken out. Each operating thread keeps that difference in a word of its own; one more
//! thread adds up every [`SAMPLE`]. A node that is being put in or taken out at the time counts as waiting.
//!
//! **Times.** Without `--rate` a thread goes on as soon as it can, and one operation in [`BATCH`] is timed: its *service
//! time*. With `--rate` operations are due at equal distances, and *latency* is from when one was due to its end: what
//! makes one late makes the next ones late, too.
//!
//! **Orderings.** Relaxed: the words are figures.

use super::Plan;
use super::content::Sum;
use super::dist::{Load, Op};
use super::subject::Subject;
use crate::engine::clock::thread_cpu_ns;
use crate::engine::crew::{BATCH, Pace, STACK, Tally};
use crate::engine::windows::Seats;
use ::structures::alloc::{Calls, calls};
use ::structures::{Census, Scan};
use hdrhistogram::Histogram;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The number of whoever puts the first elements in.
pub(super) const PREFILLER: usize = 0xfff;

/// Between two looks at what waits.
pub(super) const SAMPLE: Duration = Duration::from_millis(1);

/// A run ends early when more waits: what grows without bound need not fill the memory to prove it.
pub(super) const CAP: u64 = 1 << 30;

/// Shorter pauses are passed with a look at the clock again and again: a timer comes some 60 µs late.
const SPIN: Duration = Duration::from_micros(100);

/// A histogram of nanoseconds, of three significant digits.
pub(super) fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 3_600_000_000_000, 3).expect("these bounds are allowed")
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// What one thread has put in less what it took out. Alone on its pair of cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Balance(AtomicI64);

impl Balance {
    pub(super) fn get(&self) -> i64 {
        self.0.load(Relaxed)
    }

    #[inline(always)]
    fn set(&self, elements: i64) {
        self.0.store(elements, Relaxed);
    }
}

/// How many operations of each kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Mix {
    pub(super) gets: u64,
    pub(super) inserts: u64,
    pub(super) removes: u64,
    /// Gets that saw a value, insertions that put one in, removals that took one.
    pub(super) hits: u64,
    /// Values taken out.
    pub(super) taken: u64,
}

impl Mix {
    pub(super) fn all(&self) -> u64 {
        self.gets + self.inserts + self.removes
    }

    pub(super) fn add(&mut self, other: &Mix) {
        self.gets += other.gets;
        self.inserts += other.inserts;
        self.removes += other.removes;
        self.hits += other.hits;
        self.taken += other.taken;
    }

    fn less(&self, before: &Mix) -> Mix {
        Mix {
            gets: self.gets - before.gets,
            inserts: self.inserts - before.inserts,
            removes: self.removes - before.removes,
            hits: self.hits - before.hits,
            taken: self.taken - before.taken,
        }
    }
}

/// What an operating thread did.
#[derive(Debug)]
pub(super) struct Done {
    index: usize,
    load: Load,
    serial: u64,
    /// From the beginning, warm-up and end too.
    all: Mix,
    /// While it counted.
    pub(super) mix: Mix,
    before: Mix,
    pub(super) put: Sum,
    pub(super) took: Sum,
    torn: u64,
    /// Service times or latencies.
    pub(super) times: Histogram<u64>,
    pub(super) longest: u64,
    /// Threads, one after the other.
    pub(super) lives: u64,
    pub(super) cpu_ns: u64,
    counts: bool,
    due: Option<Instant>,
    start: Instant,
    stop: Instant,
}

impl Done {
    pub(super) fn new(index: usize, load: Load) -> Self {
        let now = Instant::now();
        Done {
            index,
            load,
            serial: 0,
            all: Mix::default(),
            mix: Mix::default(),
            before: Mix::default(),
            put: Sum::default(),
            took: Sum::default(),
            torn: 0,
            times: histogram(),
            longest: 0,
            lives: 0,
            cpu_ns: 0,
            counts: false,
            due: None,
            start: now,
            stop: now,
        }
    }

    #[inline(always)]
    fn one<S: Subject>(&mut self, subject: &S, thread: &mut S::Thread<'_>, balance: &Balance) {
        let (op, key) = self.load.next();
        let value = S::value(key, self.index, self.serial);
        let did = subject.act(thread, op, key, value);
        match op {
            Op::Get => {
                self.all.gets += 1;
                if let Some(seen) = did.saw {
                    self.all.hits += 1;
                    self.torn += u64::from(!S::is_whole(key, seen));
                }
                return;
            }
            Op::Insert => self.all.inserts += 1,
            Op::Remove => self.all.removes += 1,
        }
        self.all.hits += u64::from(did.put || did.took.is_some());
        if did.put {
            self.serial += 1;
            self.put.add(value);
        }
        if let Some(taken) = did.took {
            self.all.taken += 1;
            self.torn += u64::from(!S::is_whole(key, taken));
            self.took.add(taken);
        }
        balance.set(self.put.count as i64 - self.took.count as i64);
    }

    fn time(&mut self, took: Duration) {
        let took = ns(took);
        self.longest = self.longest.max(took);
        self.times.saturating_record(took);
    }

    /// Whether there is anything left to do; begins to count when the warm-up is over.
    #[inline(always)]
    fn goes_on(&mut self, pace: &Pace) -> bool {
        if self.counts {
            return pace.running();
        }
        if pace.warming() {
            return true;
        }
        self.counts = pace.running();
        self.before = self.all;
        self.times.reset();
        self.longest = 0;
        self.cpu_ns = thread_cpu_ns().unwrap_or(0).wrapping_neg();
        self.start = Instant::now();
        self.counts
    }

    /// One life: until the end of the run, or `until`.
    fn live<S: Subject>(&mut self, turn: &Turn<'_, S>, pace: &Pace, until: Option<Instant>) {
        Seats::take(self.index);
        self.lives += 1;
        if self.counts {
            self.cpu_ns = self.cpu_ns.wrapping_sub(thread_cpu_ns().unwrap_or(0));
        }
        let mut thread = turn.subject.thread();
        let over = || until.is_some_and(|until| Instant::now() >= until);
        while self.goes_on(pace) && !over() {
            match turn.plan.rate {
                None => self.batch(turn, &mut thread),
                Some(rate) => self.wait_and_do(turn, &mut thread, pace, rate, until),
            }
            if self.counts {
                pace.counted(self.all.less(&self.before).all());
            }
        }
        // What comes at a thread's end is a part of its life.
        drop(thread);
        if self.counts {
            self.stop = Instant::now();
            self.mix = self.all.less(&self.before);
            self.cpu_ns = self.cpu_ns.wrapping_add(thread_cpu_ns().unwrap_or(0));
        }
    }

    #[inline(always)]
    fn batch<S: Subject>(&mut self, turn: &Turn<'_, S>, thread: &mut S::Thread<'_>) {
        let start = Instant::now();
        self.one(turn.subject, thread, turn.balance);
        self.time(start.elapsed());
        for _ in 1..BATCH {
            self.one(turn.subject, thread, turn.balance);
        }
    }

    /// Waits until the next operation is due, and does it.
    fn wait_and_do<S: Subject>(
        &mut self,
        turn: &Turn<'_, S>,
        thread: &mut S::Thread<'_>,
        pace: &Pace,
        rate: u64,
        until: Option<Instant>,
    ) {
        let due = *self.due.get_or_insert_with(Instant::now);
        loop {
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let over = until.is_some_and(|until| Instant::now() >= until);
            if over || !pace.working() {
                return;
            }
            if left > SPIN {
                // Not longer than a look at the phase may take.
                let nap = (left - SPIN).min(Duration::from_millis(10));
                S::idle(thread, || std::thread::sleep(nap));
            } else {
                std::hint::spin_loop();
            }
        }
        self.one(turn.subject, thread, turn.balance);
        self.time(due.elapsed());
        self.due = Some(due + Duration::from_secs(1) / u32::try_from(rate).unwrap_or(u32::MAX));
    }

    pub(super) fn tally(&self) -> Tally {
        Tally {
            ops: self.mix.all(),
            bad: self.torn,
            start: self.start,
            stop: self.stop,
        }
    }
}

/// What a thread operates on.
pub(super) struct Turn<'a, S> {
    pub(super) plan: &'a Plan,
    pub(super) subject: &'a S,
    pub(super) balance: &'a Balance,
}

/// Operates until the end; with `--churn` in one thread after the other.
pub(super) fn operate<S: Subject>(turn: &Turn<'_, S>, pace: &Pace, done: &mut Done) -> Tally {
    pace.begin();
    let Some(churn) = turn.plan.churn else {
        done.live(turn, pace, None);
        return done.tally();
    };
    while pace.working() {
        std::thread::scope(|scope| {
            let until = Instant::now() + churn;
            let done = &mut *done;
            let spawned = std::thread::Builder::new()
                .stack_size(STACK)
                .spawn_scoped(scope, move || done.live(turn, pace, Some(until)));
            if let Err(error) = spawned {
                pace.end_early(&format!("ended early: no thread could be started: {error}"));
                std::thread::sleep(SAMPLE);
            }
        });
    }
    done.tally()
}

/// How long one more thread stays inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stall {
    /// So long, again and again.
    For(Duration),
    /// Until the end of the run.
    Forever,
}

/// Stays inside.
pub(super) fn stay<S: Subject>(subject: &S, pace: &Pace, stall: Stall) -> Tally {
    let mut thread = subject.thread();
    match stall {
        Stall::Forever => subject.hold(&mut thread, || pace.park()),
        Stall::For(time) => {
            pace.begin();
            while pace.working() {
                subject.hold(&mut thread, || std::thread::sleep(time));
            }
        }
    }
    none()
}

/// Of a thread whose operations are not counted.
fn none() -> Tally {
    let now = Instant::now();
    Tally {
        ops: 0,
        bad: 0,
        start: now,
        stop: now,
    }
}

/// What a walking thread did, in walks that ended while it counted.
#[derive(Debug)]
pub(super) struct Walks {
    pub(super) walks: u64,
    pub(super) elements: u64,
    pub(super) restarts: u64,
    pub(super) seconds: f64,
    pub(super) times: Histogram<u64>,
    pub(super) longest: u64,
}

impl Walks {
    pub(super) fn new() -> Self {
        Walks {
            walks: 0,
            elements: 0,
            restarts: 0,
            seconds: 0.0,
            times: histogram(),
            longest: 0,
        }
    }

    fn add(&mut self, scan: Scan, took: Duration) {
        self.walks += 1;
        self.elements += scan.elements;
        self.restarts += scan.restarts;
        self.longest = self.longest.max(ns(took));
        self.times.saturating_record(ns(took));
    }
}

/// Walks over all elements, again and again.
pub(super) fn walk<S: Subject>(subject: &S, pace: &Pace, walks: &mut Walks) -> Tally {
    let mut thread = subject.thread();
    let mut torn = 0;
    let mut one = |walks: Option<&mut Walks>| {
        let start = Instant::now();
        let scan = subject.walk(&mut thread, |key, value| {
            torn += u64::from(!S::is_whole(key, value));
        });
        if let Some(walks) = walks {
            walks.add(scan, start.elapsed());
        }
    };
    pace.begin();
    while pace.warming() {
        one(None);
    }
    let start = Instant::now();
    while pace.running() {
        one(Some(walks));
    }
    let stop = Instant::now();
    walks.seconds = stop.duration_since(start).as_secs_f64();
    Tally {
        ops: walks.walks,
        bad: torn,
        start,
        stop,
    }
}

/// What was seen every so often.
#[derive(Debug, Default)]
pub(super) struct Samples {
    /// Nodes that waited.
    pub(super) nodes: Vec<u64>,
    /// Bytes of a node, on average, and the most bytes that waited.
    pub(super) bytes_peak: f64,
    pub(super) bytes_mean: f64,
    /// Calls of the allocator while operations counted.
    pub(super) calls: Option<(Calls, Calls)>,
    /// CPU time of the process, of the same time, and its length.
    pub(super) cpu: Duration,
    pub(super) took: Duration,
    pub(super) cpu_own_ns: u64,
}

/// What a look at the process gives.
struct Look {
    calls: Calls,
    cpu: Option<Duration>,
    own_ns: u64,
    at: Instant,
}

impl Look {
    fn now() -> Self {
        Look {
            calls: calls(),
            cpu: crate::workloads::cpu(),
            own_ns: thread_cpu_ns().unwrap_or(0),
            at: Instant::now(),
        }
    }
}

/// Counts what waits.
pub(super) fn sample<S: Subject>(
    census: &Census,
    prefilled: u64,
    balances: &[Balance],
    pace: &Pace,
    samples: &mut Samples,
) -> Tally {
    pace.begin();
    let mut first = None;
    let mut bytes_sum = 0.0;
    loop {
        std::thread::sleep(SAMPLE);
        let over = !pace.working();
        // A run so short that this thread slept through it has one look, at its end.
        if over && !samples.nodes.is_empty() {
            break;
        }
        let elements: i64 = balances.iter().map(Balance::get).sum();
        let count = census.count();
        let elements = prefilled as i64 + elements + S::OTHERS as i64;
        let waiting = (count.nodes as i64 - elements).max(0) as u64;
        let bytes = waiting as f64 * count.bytes as f64 / count.nodes.max(1) as f64;
        if bytes > CAP as f64 {
            pace.end_early(&format!("ended early: more than {} MiB wait", CAP >> 20));
        }
        if !over && !pace.running() {
            continue;
        }
        first.get_or_insert_with(Look::now);
        samples.nodes.push(waiting);
        bytes_sum += bytes;
        samples.bytes_peak = samples.bytes_peak.max(bytes);
        if over {
            break;
        }
    }
    if let Some(first) = first {
        let last = Look::now();
        samples.bytes_mean = bytes_sum / samples.nodes.len() as f64;
        samples.took = last.at - first.at;
        samples.cpu_own_ns = last.own_ns - first.own_ns;
        if let (Some(before), Some(after)) = (first.cpu, last.cpu) {
            samples.cpu = after.saturating_sub(before);
        }
        samples.calls = Some((first.calls, last.calls));
    }
    none()
}
