//! Floor 3, bench-suite. Owns the workload `think`: threads that grab and drop one shared mm and think in between.
//! May touch the crew and the field.
//!
//! All threads use one mm, which is replaced every `--swap`. One operation is a grab, a look at the mm, a drop and a
//! think time Z, calibrated before the threads start: on a machine too small for a crowd, Z and the number of threads
//! say where on the curve between "nothing but the tracker" and "hardly ever the tracker" a run is.

use super::field::{Field, Line, Renewal, Seat};
use super::spin::Spin;
use super::tracker::Tracker;
use super::trackers::{self, over_trackers};
use super::{LATENCY_COLUMNS, VERSUS_REFCOUNT, swap_of};
use crate::cli::List;
use crate::engine::crew::{self, BATCH, Pace, Rate, Refusal, Worker};
use crate::engine::job::{Job, Params, Shape};
use crate::parse;
use crate::report::record::Record;
use crate::report::view::{self, Plot, View};
use crate::schemes::Support;
use crate::workloads::{self, Ask, Kind};
use std::time::Duration;

/// Longer than this a thread would look at the end of the run too seldom.
const LONGEST: Duration = Duration::from_micros(100);

/// How often the clock of the replacement is read, at most.
const CLOCK: Duration = Duration::from_micros(20);

/// What the subcommand takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Think time after each drop, calibrated, like 0,100ns,1us [default: 0,100ns,1us]
    #[arg(long, value_name = "LIST", value_parser = |text: &str| parse::times(text, LONGEST).map(List))]
    think: Option<List<Duration>>,
    #[command(flatten)]
    swap: super::Swap,
}

impl Args {
    /// The points asked for.
    pub(super) fn more(&self) -> Vec<Params> {
        let thinks = match &self.think {
            Some(list) => list.0.clone(),
            None => vec![
                Duration::ZERO,
                Duration::from_nanos(100),
                Duration::from_micros(1),
            ],
        };
        let point = |think| point(think, &self.swap);
        thinks.into_iter().map(point).collect()
    }
}

fn point(think: Duration, swap: &super::Swap) -> Params {
    let mut point = Params::from([(
        "think_ns".to_owned(),
        u64::try_from(think.as_nanos()).unwrap_or(u64::MAX).into(),
    )]);
    swap.ask(&mut point);
    point
}

pub(crate) const KIND: Kind = Kind {
    name: "think",
    what: "lazy-mm think: threads grab and drop one shared mm and think for Z in between; ns per operation",
    points: |ask| ask.each(&[1, 2], shape),
    tour: |ask| {
        let more = Some(vec![point(Duration::ZERO, &super::Swap::default())]);
        Ask {
            more,
            ..ask.clone()
        }
        .each(&[1, 2], shape)
    },
    variants: trackers::all,
    run: over_trackers!(run),
    support: |_, _| Support::Yes,
    view: View {
        meaning: "model: grab + drop of one mm shared by all threads, then think_ns of thinking; more is better; x refcount: rate against that of refcount; teardown: from the last user's leaving to the destructor",
        reference: "refcount",
        title: view::threads,
        columns: |_| {
            &const {
                let [p50, p99, peak] = LATENCY_COLUMNS;
                [
                    view::rate("ops/s"),
                    view::time("ns/op"),
                    VERSUS_REFCOUNT,
                    p50,
                    p99,
                    peak,
                    view::RATE_SPREAD,
                ]
            }
        },
        order: |point| point.rate().map(|rate| -rate),
        plot: Plot {
            title: "lazy-mm think: grab + drop of one shared mm (model)",
            ..view::RATES
        },
    },
};

fn shape(threads: usize) -> Shape {
    Shape {
        threads,
        readers: threads,
        ..Shape::default()
    }
}

/// `job.threads` threads share a line.
fn run<T: Tracker>(job: &Job) -> Result<Record, Refusal> {
    let swap = swap_of(job);
    let think = job.more.get("think_ns").and_then(serde_json::Value::as_u64);
    let spin = Spin::calibrate(Duration::from_nanos(think.unwrap_or(0)));
    let field = Field::<T>::new(job.threads);
    let line = Line::new(&field, job.threads);
    // A batch takes this long at least.
    let batch = (spin.measured_ns + 1.0) * BATCH as f64;
    let looks = (CLOCK.as_nanos() as f64 / batch).ceil() as u32;
    let worker = |index| {
        let renewal = move || match index {
            0 => Renewal::new(swap, looks),
            _ => Renewal::never(),
        };
        let (field, line) = (&field, &line);
        Box::new(move |pace: &Pace| {
            let mut seat = Seat::new(field, line, index, renewal());
            pace.measure(|| batch_of(&mut seat, spin))
        }) as Worker<'_>
    };
    let workers = (0..job.threads).map(worker).collect();
    let (tallies, _) = crew::run(job, workers, || ())?;
    let rate = Rate::of(&tallies).expect("there is at least one thread");
    field.invariants.broken(1, rate.bad);
    let mut record = Record::empty(job);
    workloads::fill(&mut record, &rate, job.threads);
    record.set("scope", "model");
    record.set("think_ns_measured", spin.measured_ns);
    record.set("swap_ms", swap.as_secs_f64() * 1e3);
    field.finish(vec![line], &mut record);
    Ok(record)
}

/// [`BATCH`] operations, the first of them with a look at the slot. Returns how often the mm was dead.
#[inline(always)]
fn batch_of<T: Tracker>(seat: &mut Seat<'_, T>, spin: Spin) -> u64 {
    seat.look();
    let mut dead = u64::from(!seat.checked_excursion(|| ()).0);
    spin.think();
    for _ in 1..BATCH {
        dead += u64::from(!seat.excursion(|| ()).0);
        spin.think();
    }
    dead
}
