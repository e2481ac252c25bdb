//! Floor 3, bench-suite. Owns the workload `whack`: one run as a record. May touch the run and the report.
//!
//! The work is fixed, not the time: `--time` does not apply. The figure is the wall time of a run as the original
//! has it; the table has minimum, mean, maximum and deviation over the runs, as the published ones. An operation is a
//! write.

use super::memory;
use super::once::{self, Config, Outcome};
use super::{Ask, Prng, Thp, Vma, show};
use crate::engine::crew::{Rate, Refusal, Tally};
use crate::engine::job::{Job, Params, Shape};
use crate::report::human;
use crate::report::record::Record;
use crate::report::summary::Point;
use crate::report::view::{self, Column, Plot, Row, View};
use crate::schemes::{About, Support};
use crate::workloads::{Kind, fill};
use clap::ValueEnum;
use serde_json::Value;
use std::time::{Duration, Instant};

const NOWHERE: &str = "page faults of the kernel, which are another subject";

const fn about(name: &'static str, what: &'static str) -> About {
    About::new(name, what, "as the kernel does").nowhere(NOWHERE)
}

/// Generator by mapping. The first is the original.
static VARIANTS: [About; 4] = [
    about(
        "locked-one",
        "random() of the C library, one lock for all threads; one mapping: the original",
    ),
    about(
        "locked-many",
        "random() of the C library; a mapping for each thread",
    ),
    about(
        "own-one",
        "a generator of each thread's own; one mapping: page faults without the lock of the C library",
    ),
    about(
        "own-many",
        "a generator and a mapping of each thread's own: no two threads share a VMA",
    ),
];

/// The variant of a generator and a kind of buffer.
pub(super) fn name(prng: Prng, vma: Vma) -> &'static str {
    let at = match (prng, vma) {
        (Prng::LibcLocked, Vma::One) => 0,
        (Prng::LibcLocked, Vma::PerThread) => 1,
        (Prng::PerThread, Vma::One) => 2,
        (Prng::PerThread, Vma::PerThread) => 3,
    };
    VARIANTS[at].name
}

/// Names of the options in points.
const BYTES: &str = "bytes";
const WRITES: &str = "writes";
const THP: &str = "thp";

pub(crate) const KIND: Kind = Kind {
    name: "whack",
    what: "whack_mmap_sem: threads that touch random bytes of a buffer that nobody has touched, page faults on the running kernel; -m, -w, --prng, --thp, --vma",
    points: |ask| ask.each(&[4], shape),
    tour: |ask| {
        let more = |mut shape: Shape| {
            shape.more = params(256 << 20, 10_000, Thp::Never);
            shape
        };
        ask.each(&[4], shape).into_iter().map(more).collect()
    },
    variants: || &VARIANTS,
    run,
    support: |_, _| Support::Yes,
    view: View {
        meaning: "wall time of all writes, page faults on this kernel; less is better; x locked-one: against the original's way; faults: writes that found no page",
        reference: "locked-one",
        title: view::threads,
        columns: |_| COLUMNS,
        order: wall,
        plot: Plot {
            title: "whack_mmap_sem: wall time of all writes",
            axis: "wall time (less is better)",
            descending: false,
            format: human::nanoseconds,
            panels: |group| vec![(view::threads(group), wall)],
            ..view::RATES
        },
    },
};

fn wall(point: &Point) -> Option<f64> {
    Some(point.param("us")? * 1e3)
}

/// Minimum, mean, maximum and standard deviation of a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Statistics {
    min: f64,
    mean: f64,
    max: f64,
    sd: Option<f64>,
}

impl Statistics {
    fn of(values: &[f64]) -> Option<Self> {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Some(Statistics {
            min: values.iter().copied().reduce(f64::min)?,
            mean,
            max: values.iter().copied().reduce(f64::max)?,
            sd: (values.len() > 1).then(|| (squares / (n - 1.0)).sqrt()),
        })
    }
}

/// A column of microseconds, as the published tables have them.
fn over_runs(row: &Row<'_>, pick: fn(Statistics) -> Option<f64>) -> Option<String> {
    let us: Vec<f64> = row.point.runs(|point| point.param("us"));
    Some(format!("{:.0}", pick(Statistics::of(&us)?)?))
}

const COLUMNS: &[Column] = &[
    Column {
        head: "MIN us",
        cell: |row| over_runs(row, |s| Some(s.min)),
    },
    Column {
        head: "AVG",
        cell: |row| over_runs(row, |s| Some(s.mean)),
    },
    Column {
        head: "MAX",
        cell: |row| over_runs(row, |s| Some(s.max)),
    },
    Column {
        head: "STDEV",
        cell: |row| over_runs(row, |s| s.sd),
    },
    Column {
        head: "x locked-one",
        cell: |row| row.against(wall),
    },
    Column {
        head: "faults",
        cell: |row| row.show(|p| p.param("faults"), human::count),
    },
    Column {
        head: "of writes",
        cell: |row| row.show(|p| p.param("faulting_share"), human::percent),
    },
    Column {
        head: "faults/s",
        cell: |row| row.show(|p| p.param("faults_per_s"), human::count),
    },
];

fn shape(threads: usize) -> Shape {
    Shape {
        threads,
        readers: threads,
        ..Shape::default()
    }
}

fn params(bytes: u64, writes: u64, thp: Thp) -> Params {
    let word = thp.to_possible_value().expect("none is skipped");
    Params::from([
        (BYTES.to_owned(), bytes.into()),
        (WRITES.to_owned(), writes.into()),
        (THP.to_owned(), word.get_name().into()),
    ])
}

/// What the options ask of a point.
pub(super) fn point(ask: &Ask) -> Params {
    params(ask.bytes, ask.writes, ask.thp)
}

fn config(job: &Job) -> Config {
    let number = |name: &str| job.more.get(name).and_then(Value::as_u64);
    let at = VARIANTS.iter().position(|about| about.name == job.variant);
    let at = at.expect("a variant of this workload");
    let thp = job.more.get(THP).and_then(Value::as_str);
    Config {
        threads: job.threads,
        bytes: number(BYTES).unwrap_or(super::BYTES),
        writes: number(WRITES).unwrap_or(super::WRITES),
        debug: false,
        prng: [Prng::LibcLocked, Prng::PerThread][at / 2],
        thp: thp
            .and_then(|word| Thp::from_str(word, false).ok())
            .unwrap_or(Thp::Never),
        vma: [Vma::One, Vma::PerThread][at % 2],
    }
}

fn run(job: &Job) -> Result<Record, Refusal> {
    let config = config(job);
    let environment = |trouble: crate::trouble::Trouble| Refusal::Environment(trouble.to_string());
    memory::check(&memory::need(&config), memory::available()).map_err(environment)?;
    let outcome = once::run(&config).map_err(environment)?;
    Ok(record(job, &config, &outcome))
}

fn record(job: &Job, config: &Config, outcome: &Outcome) -> Record {
    let stop = Instant::now();
    let start = stop
        .checked_sub(Duration::from_micros(outcome.us))
        .unwrap_or(stop);
    let tally = Tally {
        ops: config.writes,
        bad: 0,
        start,
        stop,
    };
    let tallies: Vec<Tally> = (0..config.threads).map(|_| tally).collect();
    let rate = Rate::of(&tallies).expect("there is at least one thread");
    let mut record = Record::empty(job);
    fill(&mut record, &rate, job.threads);
    record.set("us", outcome.us);
    record.set("faults", outcome.faults);
    record.set("faulting_share", outcome.faults as f64 / rate.ops as f64);
    record.set(
        "faults_per_s",
        outcome.faults as f64 / (outcome.us.max(1) as f64 / 1e6),
    );
    record.set("start_skew_s", outcome.skew_us / 1e6);
    record.set("fastest_us", outcome.fastest_us);
    record.set("slowest_us", outcome.slowest_us);
    record.set("placement", outcome.cpus.clone());
    record.set("thp_setting", memory::huge_pages_setting());
    record.set("prng", show::prng(config));
    record.set("vma", show::vma(config));
    record.set("scope", "real page faults, this kernel");
    record
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::job::Pin;
    use crate::workloads::Workload;

    #[test]
    fn statistics_of_a_fixed_vector() {
        let of = |values: &[f64]| Statistics::of(values);
        assert_eq!(of(&[]), None);
        let one = of(&[7.0]).unwrap();
        assert_eq!((one.min, one.mean, one.max, one.sd), (7.0, 7.0, 7.0, None));
        let four = of(&[2.0, 4.0, 4.0, 6.0]).unwrap();
        assert_eq!((four.min, four.mean, four.max), (2.0, 4.0, 6.0));
        assert!((four.sd.unwrap() - 8f64.sqrt() / 3f64.sqrt()).abs() < 1e-12);
    }

    fn job(variant: &str, more: Params) -> Job {
        Job {
            workload: Workload::Whack,
            variant: variant.to_owned(),
            threads: 2,
            readers: 2,
            writers: 0,
            pauses: None,
            more,
            run: 0,
            order: 0,
            seed: 1,
            time: Duration::ZERO,
            warmup: Duration::ZERO,
            pin: Pin::Pu,
            quick: false,
        }
    }

    /// Report 110: a comparison must show every parameter that differs.
    #[test]
    fn report_110_records_say_what_differs() {
        for prng in [Prng::LibcLocked, Prng::PerThread] {
            for vma in [Vma::One, Vma::PerThread] {
                for thp in [Thp::Never, Thp::Madvise, Thp::Always] {
                    let job = job(name(prng, vma), params(1 << 20, 10, thp));
                    let config = config(&job);
                    assert_eq!((config.prng, config.vma, config.thp), (prng, vma, thp));
                    assert_eq!((config.bytes, config.writes), (1 << 20, 10));
                    let outcome = Outcome {
                        us: 50,
                        faults: 5,
                        skew_us: 1.0,
                        fastest_us: 1.0,
                        slowest_us: 2.0,
                        cpus: vec![0, 1],
                    };
                    let record = record(&job, &config, &outcome);
                    assert_eq!(record.ops, 20);
                    assert_eq!(record.number("us"), Some(50.0));
                    assert_eq!(record.number("faulting_share"), Some(0.25));
                    assert_eq!(record.number("faults_per_s"), Some(100_000.0));
                    assert!((record.elapsed_s - 5e-5).abs() < 1e-9);
                    assert_eq!(record.text("prng"), Some(show::prng(&config)));
                    assert_eq!(record.text("vma"), Some(show::vma(&config)));
                }
            }
        }
    }

    #[test]
    fn the_reference_is_the_original() {
        assert_eq!(KIND.view.reference, name(Prng::LibcLocked, Vma::One));
        assert!(Workload::Whack.find(KIND.view.reference).is_some());
    }
}
