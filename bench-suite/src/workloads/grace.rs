//! Floor 3, bench-suite. Owns the workload `grace`: the latency of one grace period beside readers, in percentiles.
//! May touch a scheme through its trait, and the crew.
//!
//! One updater measures, over and over. For a scheme with a blocking grace period one operation is `synchronize`; for
//! the others one object is retired and passes are forced until its destructor has run. `measured` says which of the
//! two it was: the first waits for all readers of that moment, the second for those who may have this object.
//! Each of `readers` threads protects the cell, holds for `hold` and releases, without a break: a hold of zero is a
//! plain read, one below [`SPIN`] spins, a longer one sleeps (`hold_by`). Each of `idle` threads has read once, keeps
//! its reader state and sleeps without protection.
//!
//! `ops` are grace periods and `elapsed_s` is the time inside them, so `ns_per_op` is their mean; two clock readings
//! (some 40 ns) are in each. The quantiles come from a histogram of three significant digits. A grace period that takes
//! longer than [`LIMIT`] ends the run where the updater can give up; a `synchronize` that never returns is ended with
//! its process.

use super::{Kind, over_schemes};
use crate::engine::crew::{self, BATCH, Pace, Rate, Refusal, Tally, Worker};
use crate::engine::job::{Job, Pauses, Shape};
use crate::report::cdf;
use crate::report::human;
use crate::report::record::Record;
use crate::report::summary::{Group, Point};
use crate::report::view::{self, Column, Plot, View};
use crate::schemes::{self, Census, Object, Scheme};
use hdrhistogram::Histogram;
use std::time::{Duration, Instant};

/// The updater gives up on an object that is not freed in this time.
const LIMIT: Duration = Duration::from_secs(2);

/// Holds from here on sleep.
const SPIN: Duration = Duration::from_micros(50);

/// Passes without success before the updater lets others run between two.
const EAGER: u64 = 64;

pub(super) const KIND: Kind = Kind {
    name: "grace",
    what: "latency of one grace period (synchronize, or from retire to free) beside --threads readers that hold for --hold and --idle sleeping threads",
    points: |ask| {
        let holds = ask.holds.as_deref().unwrap_or(&DEFAULT_HOLDS);
        let idles = ask.idles.as_deref().unwrap_or(&[0]);
        let mut shapes = Vec::new();
        for &readers in ask.threads.as_deref().unwrap_or(&[0, 1]) {
            // Nobody holds where nobody reads.
            let holds = if readers == 0 { &holds[..1] } else { holds };
            for &hold in holds {
                shapes.extend(idles.iter().map(|&idle| shape(readers, hold, idle)));
            }
        }
        shapes
    },
    tour: |_| vec![shape(0, Duration::ZERO, 0), shape(1, Duration::ZERO, 0)],
    variants: schemes::all,
    run: over_schemes!(run),
    support: |about, _| about.grace,
    view: View {
        meaning: "latency of one grace period beside readers: sync = synchronize, free = from retire to free; less is better; x barrier: median against that of one heavy barrier",
        reference: "heavy-barrier",
        title,
        columns: |_| COLUMNS,
        order: p50,
        plot: Plot {
            title: "grace: latency of one grace period",
            axis: "median latency (less is better, logarithmic)",
            threads_axis: "readers",
            panels: |group: &Group| vec![(title(group), p50)],
            ..view::TIMES
        },
    },
};

const DEFAULT_HOLDS: [Duration; 2] = [Duration::ZERO, Duration::from_micros(100)];

const COLUMNS: &[Column] = &[
    Column {
        head: "op",
        cell: |row| {
            let word = row.point.word("measured")?;
            Some(if word == SYNCHRONIZE { "sync" } else { "free" }.to_owned())
        },
    },
    Column {
        head: "p50",
        cell: |row| row.show(p50, human::nanoseconds),
    },
    Column {
        head: "x barrier",
        cell: |row| row.against(p50),
    },
    Column {
        head: "p90",
        cell: |row| row.show(|p| p.param("p90_ns"), human::nanoseconds),
    },
    Column {
        head: "p99",
        cell: |row| row.show(|p| p.param("p99_ns"), human::nanoseconds),
    },
    Column {
        head: "p99.9",
        cell: |row| row.show(|p| p.param("p999_ns"), human::nanoseconds),
    },
    Column {
        head: "max",
        cell: |row| row.show(|p| p.param("max_ns"), human::nanoseconds),
    },
    view::time("mean"),
    Column {
        head: "count",
        cell: |row| row.show(|p| p.median(|r| Some(r.ops as f64)), human::count),
    },
    Column {
        head: "reads/s",
        cell: |row| row.show(Point::reads, human::count),
    },
    Column {
        head: "spread",
        cell: |row| row.point.spread(|r| r.number("p50_ns")).map(human::percent),
    },
];

/// Quantiles in records, under their names.
const QUANTILES: [(&str, f64); 4] = [
    ("p50_ns", 0.5),
    ("p90_ns", 0.9),
    ("p99_ns", 0.99),
    ("p999_ns", 0.999),
];

const SYNCHRONIZE: &str = "synchronize";
const RETIRE_TO_FREE: &str = "retire to free";

fn p50(point: &Point) -> Option<f64> {
    point.param("p50_ns")
}

fn title(group: &Group) -> String {
    let (hold, idle) = group.pauses;
    let mut title = match group.shape.0 {
        0 => "no reader".to_owned(),
        readers => human::plural(readers, "reader"),
    };
    if group.shape.0 > 0 && hold > 0 {
        title.push_str(&format!(", hold {}", human::nanoseconds(hold as f64)));
    }
    if idle > 0 {
        title.push_str(&format!(", {idle} idle"));
    }
    title
}

fn shape(readers: usize, hold: Duration, idle: usize) -> Shape {
    let hold = if readers == 0 { Duration::ZERO } else { hold };
    Shape {
        threads: readers,
        readers,
        writers: 1,
        pauses: Some(Pauses { hold, idle }),
        ..Shape::default()
    }
}

/// What the updater found.
struct Latencies {
    histogram: Histogram<u64>,
    total: u64,
    /// The histogram rounds.
    max: u64,
    passes: u64,
    /// Why the updater gave up.
    stuck: Option<String>,
}

impl Latencies {
    fn new() -> Self {
        Latencies {
            histogram: Histogram::new_with_bounds(1, 100_000_000_000, 3)
                .expect("the bounds are in order"),
            total: 0,
            max: 0,
            passes: 0,
            stuck: None,
        }
    }

    fn add(&mut self, op: Op) {
        self.histogram.saturating_record(op.ns);
        self.total += op.ns;
        self.max = self.max.max(op.ns);
        self.passes += op.passes;
    }

    fn report(&self, record: &mut Record) {
        let count = self.histogram.len();
        record.ops = count;
        record.elapsed_s = self.total as f64 / 1e9;
        if count == 0 {
            record.remark("no grace period was completed");
        }
        if let Some(why) = &self.stuck {
            record.remark(why);
        }
        if count == 0 {
            return;
        }
        record.ops_per_s = count as f64 / record.elapsed_s;
        record.ns_per_op = Some(self.total as f64 / count as f64);
        for (name, quantile) in QUANTILES {
            let ns = self.histogram.value_at_quantile(quantile);
            record.set(name, ns.min(self.max));
        }
        record.set("max_ns", self.max);
        cdf::store(record, &self.histogram, self.max);
        record.set("passes_per_op", self.passes as f64 / count as f64);
    }
}

/// One updater, `job.readers` readers, and the sleepers.
fn run<S: Scheme>(job: &Job) -> Result<Record, Refusal> {
    let unset = Pauses {
        hold: Duration::ZERO,
        idle: 0,
    };
    let Pauses { hold, idle } = job.pauses.unwrap_or(unset);
    let census = Census::leak();
    let cell = S::new(Object::new(0, Some(census)));
    let mut latencies = Latencies::new();
    let mut workers = vec![updater(&cell, census, &mut latencies)];
    workers.extend((0..job.readers).map(|_| reader(&cell, hold)));
    workers.extend((0..idle).map(|_| sleeper(&cell)));
    let (tallies, _) = crew::run(job, workers, || ())?;
    let mut record = Record::empty(job);
    let measured = if S::ABOUT.synchronizes {
        SYNCHRONIZE
    } else {
        RETIRE_TO_FREE
    };
    record.set("measured", measured);
    let hold_by = match hold {
        Duration::ZERO => "no pause",
        hold if hold < SPIN => "spin",
        _ => "sleep",
    };
    record.set("hold_by", hold_by);
    latencies.report(&mut record);
    record.reads_per_s = Rate::of(&tallies[1..=job.readers]).map(|rate| rate.per_s());
    record.judge(tallies.iter().map(|tally| tally.bad).sum());
    Ok(record)
}

/// One grace period.
struct Op {
    ns: u64,
    passes: u64,
}

impl Op {
    fn since(start: Instant, passes: u64) -> Self {
        let ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Op { ns, passes }
    }
}

fn updater<'a, S: Scheme>(
    cell: &'a S,
    census: &'static Census,
    latencies: &'a mut Latencies,
) -> Worker<'a> {
    Box::new(move |pace: &Pace| {
        pace.begin();
        let mut start = Instant::now();
        let mut counts = false;
        let mut serial = 0;
        while pace.working() {
            if !counts && pace.running() {
                counts = true;
                start = Instant::now();
            }
            serial += 1;
            match one(pace, cell, census, serial) {
                Ok(op) if counts => latencies.add(op),
                Ok(_) => {}
                Err(why) => {
                    // Cut short by the end of the run, it is worth a word only if it was the first one, too.
                    if pace.working() || latencies.histogram.is_empty() {
                        latencies.stuck = Some(why.clone());
                    }
                    pace.end_early(&why);
                    break;
                }
            }
        }
        Tally {
            ops: latencies.histogram.len(),
            bad: 0,
            start,
            stop: Instant::now(),
        }
    })
}

/// Performs one, or says why there was none.
fn one<S: Scheme>(
    pace: &Pace,
    cell: &S,
    census: &'static Census,
    serial: u64,
) -> Result<Op, String> {
    if S::ABOUT.synchronizes {
        let start = Instant::now();
        let done = cell.synchronize();
        let op = Op::since(start, 0);
        return if done {
            Ok(op)
        } else {
            Err("a grace period was refused".to_owned())
        };
    }
    let object = Object::new(serial, Some(census));
    let before = census.dead();
    let start = Instant::now();
    cell.write(object);
    let mut passes = 0;
    while census.dead() == before {
        cell.pass();
        passes += 1;
        if passes > EAGER {
            if start.elapsed() > LIMIT {
                return Err(format!("an object was not freed in {LIMIT:?}"));
            }
            if !pace.working() {
                return Err("an object was not freed before the end of the run".to_owned());
            }
            std::thread::yield_now();
        }
    }
    Ok(Op::since(start, passes))
}

fn reader<S: Scheme>(cell: &S, hold: Duration) -> Worker<'_> {
    Box::new(move |pace: &Pace| {
        let mut state = cell.reader();
        if hold.is_zero() {
            return pace.measure(|| cell.read_batch(&mut state, BATCH));
        }
        let mut look = || u64::from(!cell.hold(&mut state, || pause(hold)));
        pace.begin();
        let mut bad = 0;
        while pace.warming() {
            bad += look();
        }
        let mut ops = 0;
        let start = Instant::now();
        while pace.running() {
            bad += look();
            ops += 1;
        }
        Tally {
            ops,
            bad,
            start,
            stop: Instant::now(),
        }
    })
}

fn pause(hold: Duration) {
    if hold >= SPIN {
        return std::thread::sleep(hold);
    }
    let start = Instant::now();
    while start.elapsed() < hold {
        std::hint::spin_loop();
    }
}

fn sleeper<S: Scheme>(cell: &S) -> Worker<'_> {
    Box::new(move |pace: &Pace| {
        let mut state = cell.reader();
        let alive = cell.read(&mut state);
        cell.idle(&mut state, || pace.park());
        drop(state);
        let now = Instant::now();
        Tally {
            ops: 0,
            bad: u64::from(!alive),
            start: now,
            stop: now,
        }
    })
}
