//! Floor 3, bench-suite. Owns `hpbench lazy-mm`: who knows that a CPU still has an address space ("mm") that it only
//! borrows, in three workloads. May touch `engine`, `report`, the parts of `ctxsw` and what the trackers track with.
//!
//! | file | owns |
//! |---|---|
//! | `tracker` | the contract: grab, drop, tear down |
//! | `trackers` | one file per way to track, and their registry |
//! | `mm` | the tracked object: canary, users, census of the living and the freed |
//! | `field` | what `think` and `track` share: mms that replace each other under their users |
//! | `idle` | runnable threads a CPU, for `track --grab idle` |
//! | `spin` | think time |
//! | `think`, `track`, `sched` | the workloads |
//! | `invariants` | I1 to I6: what was broken, how often, and what that makes of a record |

mod field;
#[cfg(target_os = "linux")]
mod idle;
pub(crate) mod invariants;
pub(crate) mod mm;
pub(crate) mod sched;
mod spin;
pub(crate) mod think;
#[cfg(target_os = "linux")]
pub(crate) mod track;
pub(crate) mod tracker;
pub(crate) mod trackers;

use crate::engine::job::{Job, Params};
use crate::parse;
use crate::report::record::Record;
use crate::report::summary::Point;
use crate::report::view::Column;
use crate::report::{cdf, human};
use crate::workloads::{Ask, Workload};
use hdrhistogram::Histogram;
use std::time::Duration;

/// `hpbench lazy-mm`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Mode {
    /// The real hand-over of context_switch1, with a tracker round every block; --threads counts pairs
    #[cfg(target_os = "linux")]
    Track(track::Args),
    /// Simulated CPUs whose kernel threads borrow the mm of the user task before: switches, exits, interrupts
    Sched(sched::Args),
    /// Threads that grab and drop one shared mm and think in between: the whole curve of contention on a small machine
    Think(think::Args),
}

impl Mode {
    /// The workload, and what its options ask.
    pub(crate) fn workload(&self, ask: &mut Ask) -> Workload {
        match self {
            #[cfg(target_os = "linux")]
            Mode::Track(args) => {
                ask.more = Some(args.more());
                Workload::Track
            }
            Mode::Sched(args) => {
                ask.more = Some(args.more());
                Workload::Sched
            }
            Mode::Think(args) => {
                ask.more = Some(args.more());
                Workload::Think
            }
        }
    }
}

/// The mm is replaced this often if nothing else is said.
const SWAP: Duration = Duration::from_millis(10);

/// How often a shared mm is replaced.
#[derive(Debug, Clone, Default, clap::Args)]
struct Swap {
    /// A new mm replaces the shared one this often, the old one is torn down; 0 for never [default: 10ms]
    #[arg(long, value_name = "TIME", value_parser = parse::pause)]
    swap: Option<Duration>,
}

impl Swap {
    /// Part of the point if it is not the usual one.
    fn ask(&self, point: &mut Params) {
        if let Some(swap) = self.swap
            && swap != SWAP
        {
            point.insert("swap_ms".to_owned(), (swap.as_secs_f64() * 1e3).into());
        }
    }
}

/// What a job says of it.
fn swap_of(job: &Job) -> Duration {
    let asked = job.more.get("swap_ms").and_then(serde_json::Value::as_f64);
    asked.map_or(SWAP, |ms| Duration::from_secs_f64(ms / 1e3))
}

/// The rate against that of the baseline.
const VERSUS_REFCOUNT: Column = Column {
    head: "x refcount",
    cell: |row| row.against(Point::rate),
};

/// What tear-downs cost.
const LATENCY_COLUMNS: [Column; 3] = [
    Column {
        head: "teardown p50",
        cell: |row| row.show(|p| p.param("teardown_p50_ns"), human::nanoseconds),
    },
    Column {
        head: "p99",
        cell: |row| row.show(|p| p.param("teardown_p99_ns"), human::nanoseconds),
    },
    Column {
        head: "peak unreclaimed",
        cell: |row| row.show(|p| p.param("peak_unreclaimed"), human::count),
    },
];

/// Quantiles in records, under their names.
const QUANTILES: [(&str, f64); 3] = [
    ("teardown_p50_ns", 0.5),
    ("teardown_p90_ns", 0.9),
    ("teardown_p99_ns", 0.99),
];

/// Tells the record how long tear-downs took, if there were any.
pub(crate) fn report_latencies(record: &mut Record, latencies: &Histogram<u64>) {
    if latencies.is_empty() {
        return;
    }
    for (name, quantile) in QUANTILES {
        record.set(name, latencies.value_at_quantile(quantile));
    }
    record.set("teardown_max_ns", latencies.max());
    cdf::store(record, latencies, latencies.max());
}
