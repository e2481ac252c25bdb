//! Floor 3, bench-suite. Owns the record of a run of `structures`: what was found, and what makes a run fail. May touch
//! the record.
//!
//! `unreclaimed_…`: nodes that wait, see `crew`; `_peak`, `_mean` and `_end` of the counted time, `_first` and `_last`
//! the means of its first and last third, so that what grows with time is told from what is only high. `bytes_…`: the
//! same nodes at the mean size of those that live, without what schemes and allocators add.
//! `released_unreclaimed`: what is left when all threads have gone and the scheme was asked to flush.
//!
//! `retire_ns`: mean time of a retirement on the calling thread, see `structures::metered`, less the clock's.
//! `reclaim_share`: that times the retirements, as a share of the CPU time of the operating threads;
//! `background_share`: CPU time of the process that was no thread's of the run, as a share of one CPU: what a scheme
//! does on threads of its own.

use super::ask::Plan;
use super::content::Sum;
use super::crew::{Balance, Done, Mix, Samples, Walks, histogram};
use super::subject::Subject;
use crate::engine::clock::clock_ns;
use crate::engine::crew::{Rate, Tally};
use crate::engine::job::Job;
use crate::report::cdf;
use crate::report::record::{Record, Status};
use crate::workloads::fill;
use ::structures::Census;
use ::structures::metered::Meter;
use hdrhistogram::Histogram;
use std::time::{Duration, Instant};

/// Operations are the mix that was asked for within this many percent points,
const TOLERANCE: f64 = 1.0;

/// if there are at least so many: the standard deviation is a sixth of that then.
const ENOUGH: u64 = 100_000;

/// Less than this for an operation, of one thread: the loop was optimised away.
const FLOOR_NS: f64 = 0.2;

/// All that a run found.
pub(super) struct Found<'a> {
    pub(super) done: &'a [Done],
    pub(super) walks: &'a [Walks],
    pub(super) samples: &'a Samples,
    /// What the operations left, and what is in.
    pub(super) expected: Sum,
    pub(super) content: Sum,
    /// Nodes that wait when all have gone.
    pub(super) left: u64,
    /// Dead nodes looked at.
    pub(super) dead: u64,
    pub(super) meter: Option<Meter>,
    pub(super) bound: Option<usize>,
    pub(super) early: Option<String>,
}

/// Asks the scheme to flush until nothing more goes, or for a second at most. Returns what waits still.
pub(super) fn release<S: Subject>(
    subject: &S,
    census: &Census,
    balances: &[Balance],
    prefilled: u64,
) -> u64 {
    let elements: i64 = balances.iter().map(Balance::get).sum();
    let elements = prefilled as i64 + elements + S::OTHERS as i64;
    let waiting = || (census.count().nodes as i64 - elements).max(0) as u64;
    let start = Instant::now();
    let (mut left, mut fruitless) = (waiting(), 0);
    while left > 0 && fruitless < 4 && start.elapsed() < Duration::from_secs(1) {
        subject.flush();
        let now = waiting();
        fruitless = if now < left { 0 } else { fruitless + 1 };
        left = now;
    }
    left
}

/// The record.
pub(super) fn record(job: &Job, plan: &Plan, tallies: &[Tally], found: &Found<'_>) -> Record {
    let mut record = Record::empty(job);
    let operating = &tallies[..job.threads];
    let rate = Rate::of(operating).expect("there is at least one thread");
    fill(&mut record, &rate, job.threads);
    record.set("prefill", plan.prefill);
    mix(&mut record, plan, found.done);
    times(&mut record, plan, found.done);
    waiting(&mut record, found);
    reclaim(&mut record, &rate, found);
    if !found.walks.is_empty() {
        walked(&mut record, found.walks);
    }
    let lives: u64 = found.done.iter().map(|done| done.lives).sum();
    if plan.churn.is_some() {
        record.set("threads_started", lives);
    }
    if let Some(why) = &found.early {
        record.remark(why);
    }
    judge(&mut record, found, tallies);
    record
}

/// What makes a run fail.
fn judge(record: &mut Record, found: &Found<'_>, tallies: &[Tally]) {
    record.set("elements_end", found.content.count);
    let torn: u64 = tallies.iter().map(|tally| tally.bad).sum();
    record.judge(found.dead);
    let mut fail = |why: String| {
        record.status = Status::Failed;
        record.remark(&why);
    };
    if torn > 0 {
        fail(format!("{torn} values were not whole"));
    }
    if found.content != found.expected {
        let (is, was) = (found.content.count, found.expected.count);
        fail(match is == was {
            true => format!("the {is} values at the end are not those that the operations left"),
            false => format!("{is} values at the end, the operations left {was}"),
        });
    }
    if let Some(points) = record
        .number("mix_off_points")
        .filter(|&off| off > TOLERANCE)
    {
        record.status = Status::Failed;
        record.remark(&format!(
            "the operations were {points:.2} percent points off the mix asked for"
        ));
    }
    if record.ns_per_op.is_some_and(|ns| ns < FLOOR_NS) {
        record.status = Status::Failed;
        record.remark("faster than a load can be: the loop was optimised away");
    }
}

/// Which operations there were, and how far from what was asked.
fn mix(record: &mut Record, plan: &Plan, done: &[Done]) {
    let mut mix = Mix::default();
    done.iter().for_each(|done| mix.add(&done.mix));
    let all = mix.all();
    if all == 0 {
        return;
    }
    let percent = |n: u64| n as f64 * 100.0 / all as f64;
    let half = (100 - plan.get_rate) as f64 / 2.0;
    let shares = [
        ("gets_percent", mix.gets, plan.get_rate as f64),
        ("inserts_percent", mix.inserts, half),
        ("removes_percent", mix.removes, half),
    ];
    let mut off: f64 = 0.0;
    for (name, count, asked) in shares {
        record.set(name, percent(count));
        off = off.max((percent(count) - asked).abs());
    }
    record.set("hits_percent", percent(mix.hits));
    if all >= ENOUGH {
        record.set("mix_off_points", off);
    }
}

/// Service times, or latencies.
fn times(record: &mut Record, plan: &Plan, done: &[Done]) {
    let mut times = histogram();
    for done in done {
        times.add(&done.times).expect("of the same bounds");
    }
    let max = done.iter().map(|done| done.longest).max().unwrap_or(0);
    record.set("clock_ns", clock_ns());
    match plan.rate {
        None => percentiles(record, "service_", &times, max),
        Some(rate) => {
            percentiles(record, "", &times, max);
            cdf::store(record, &times, max);
            let asked = rate as f64 * done.len() as f64;
            record.set("rate_kept_percent", record.ops_per_s * 100.0 / asked);
        }
    }
}

fn percentiles(record: &mut Record, prefix: &str, times: &Histogram<u64>, max: u64) {
    if times.is_empty() {
        return;
    }
    for (name, q) in [
        ("p50_ns", 0.5),
        ("p90_ns", 0.9),
        ("p99_ns", 0.99),
        ("p999_ns", 0.999),
    ] {
        let value = times.value_at_quantile(q).min(max);
        record.set(&format!("{prefix}{name}"), value);
    }
    record.set(&format!("{prefix}max_ns"), max);
    record.set(&format!("{prefix}times"), times.len());
}

/// Nodes that wait.
fn waiting(record: &mut Record, found: &Found<'_>) {
    let nodes = &found.samples.nodes;
    if let Some(&last) = nodes.last() {
        let mean = |part: &[u64]| part.iter().sum::<u64>() as f64 / part.len().max(1) as f64;
        let third = (nodes.len() / 3).max(1);
        record.set("unreclaimed_peak", nodes.iter().copied().max().unwrap_or(0));
        record.set("unreclaimed_mean", mean(nodes));
        record.set("unreclaimed_end", last);
        record.set("unreclaimed_first", mean(&nodes[..third]));
        record.set("unreclaimed_last", mean(&nodes[nodes.len() - third..]));
        record.set("unreclaimed_samples", nodes.len());
        record.set("bytes_peak", found.samples.bytes_peak);
        record.set("bytes_mean", found.samples.bytes_mean);
    }
    record.set("released_unreclaimed", found.left);
    if let Some(bound) = found.bound {
        record.set("pending_bound", bound);
    }
}

/// What reclamation took, and what the allocator was asked for.
fn reclaim(record: &mut Record, rate: &Rate, found: &Found<'_>) {
    let cpu: u64 = found.done.iter().map(|done| done.cpu_ns).sum();
    if let Some(ns) = found.meter.and_then(|meter| meter.mean_ns(clock_ns())) {
        record.set("retire_ns", ns);
        let taken: u64 = found.done.iter().map(|done| done.mix.taken).sum();
        if cpu > 0 {
            record.set("reclaim_share", ns * taken as f64 / cpu as f64);
        }
    }
    let samples = found.samples;
    let took = samples.took.as_secs_f64();
    if cpu > 0 && found.walks.is_empty() && took > 0.0 {
        // Of the same time as the samples.
        let known = cpu as f64 * (took / rate.elapsed_s).min(1.0) + samples.cpu_own_ns as f64;
        let rest = samples.cpu.as_nanos() as f64 - known;
        record.set("background_share", (rest / (took * 1e9)).max(0.0));
    }
    if let Some((before, after)) = samples.calls
        && rate.ops > 0
    {
        // The samples span a little less than the run.
        let ops = rate.per_s() * took;
        let each = |before: u64, after: u64| (after - before) as f64 / ops.max(1.0);
        record.set(
            "allocations_per_op",
            each(before.allocations, after.allocations),
        );
        record.set("frees_per_op", each(before.frees, after.frees));
    }
}

/// Long reads.
fn walked(record: &mut Record, walks: &[Walks]) {
    let sum = |of: fn(&Walks) -> u64| walks.iter().map(of).sum::<u64>() as f64;
    let each_s = |of: fn(&Walks) -> u64| -> f64 {
        let rate = |walks: &Walks| match walks.seconds > 0.0 {
            true => of(walks) as f64 / walks.seconds,
            false => 0.0,
        };
        walks.iter().map(rate).sum()
    };
    record.set("walks_per_s", each_s(|walks| walks.walks));
    record.set("walked_per_s", each_s(|walks| walks.elements));
    record.reads_per_s = Some(each_s(|walks| walks.elements));
    let count = sum(|walks| walks.walks).max(1.0);
    record.set("elements_per_walk", sum(|walks| walks.elements) / count);
    record.set("restarts_per_walk", sum(|walks| walks.restarts) / count);
    let mut times = histogram();
    for walks in walks {
        times.add(&walks.times).expect("of the same bounds");
    }
    let max = walks.iter().map(|walks| walks.longest).max().unwrap_or(0);
    percentiles(record, "walk_", &times, max);
}
