//! Floor 3, bench-suite. Owns the readers and writers of `rwsem` and what they time. May touch a variant through
//! `rwsems::Region`.
//!
//! A reader times one operation in [`every`], drawn at random: *wait* from the call to the first instruction inside,
//! *hold* from there to the last one inside. Writers time all of theirs. With a schedule a writer's wait is counted from
//! when the write was due, not from when the writer came to it: a lock that holds it up for long makes the next ones
//! late, too, and they count as late. Both are recorded.

use super::Body;
use super::arena::{Arena, Range, faults};
use crate::engine::clock::clock_ns;
use crate::engine::crew::{self, Pace, Rate, Refusal, Tally, Worker};
use crate::engine::job::Job;
use crate::report::record::{Record, Status};
use crate::workloads::fill;
use hdrhistogram::Histogram;
use rwsems::{Region, Vma};
use std::time::{Duration, Instant};

/// Operations between two looks at the clock of the run.
const BATCH: u64 = 16;

/// One operation in so many is timed: three readings of the clock are a tenth of a fault, and many times a lock.
fn every(body: Body) -> u64 {
    match body {
        Body::Fault => 8,
        Body::None => 64,
    }
}

/// A histogram of nanoseconds, of three significant digits.
fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 3_600_000_000_000, 3).expect("these bounds are allowed")
}

/// What one thread found.
struct Found {
    wait: Histogram<u64>,
    hold: Histogram<u64>,
    /// Wait from the call, where `wait` is from when it was due.
    called: Histogram<u64>,
    /// The histograms round.
    longest: u64,
    faults: u64,
    renewing: Duration,
    trouble: Option<String>,
}

impl Found {
    fn new() -> Self {
        Found {
            wait: histogram(),
            hold: histogram(),
            called: histogram(),
            longest: 0,
            faults: 0,
            renewing: Duration::ZERO,
            trouble: None,
        }
    }

    /// Begins to count.
    fn reset(&mut self) {
        self.wait.reset();
        self.hold.reset();
        self.called.reset();
        self.longest = 0;
        self.renewing = Duration::ZERO;
        self.faults = faults();
    }

    fn time(&mut self, due: Instant, start: Instant, inside: Instant, end: Instant) {
        let ns = |from: Instant, to: Instant| {
            let ns = to.saturating_duration_since(from).as_nanos();
            u64::try_from(ns).unwrap_or(u64::MAX)
        };
        let wait = ns(due, inside);
        self.longest = self.longest.max(wait);
        self.wait.saturating_record(wait);
        self.called.saturating_record(ns(start, inside));
        self.hold.saturating_record(ns(inside, end));
    }
}

/// A number that looks random (Marsaglia's xorshift).
fn draw(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// One run.
pub(super) fn run<R: Region>(job: &Job) -> Result<Record, Refusal> {
    let arena = Arena::new(job.readers)
        .map_err(|error| Refusal::Skipped(format!("no memory for the pages: {error}"), None))?;
    let region = R::new(Vma::new(arena.start(), arena.len()));
    let body = Body::of(job);
    let rate = job.more.get("write_rate").and_then(|rate| rate.as_u64());
    let mut found: Vec<Found> = (0..job.threads).map(|_| Found::new()).collect();
    let workers = found
        .iter_mut()
        .enumerate()
        .map(|(n, found)| -> Worker<'_> {
            let (region, arena) = (&region, &arena);
            if n < job.readers {
                let seed = job.seed.wrapping_add(0x9e37_79b9 * (n as u64 + 1));
                Box::new(move |pace| read(pace, region, arena.range(n, seed), body, seed, found))
            } else {
                Box::new(move |pace| write(pace, region, rate, found))
            }
        })
        .collect();
    let (tallies, early) = crew::run(job, workers, || ())?;
    region.flush();
    let (readers, writers) = tallies.split_at(job.readers);
    let mut record = Record::empty(job);
    if let Some(rate) = Rate::of(readers) {
        fill(&mut record, &rate, job.readers);
    }
    if let Some(why) = early {
        record.remark(&why);
    }
    record.set("sample_every", every(body));
    record.set("clock_ns", clock_ns());
    describe(&mut record, readers, &found[..job.readers]);
    describe_writers(&mut record, writers, &found[job.readers..], rate);
    if body == Body::Fault {
        judge_faults(&mut record);
    }
    record.judge(tallies.iter().map(|tally| tally.bad).sum());
    if let Some(why) = found.iter().find_map(|found| found.trouble.clone()) {
        record.status = Status::Failed;
        record.remark(&why);
    }
    Ok(record)
}

fn read<R: Region>(
    pace: &Pace,
    region: &R,
    mut range: Range<'_>,
    body: Body,
    seed: u64,
    found: &mut Found,
) -> Tally {
    let mut random = seed | 1;
    let mask = every(body) - 1;
    let mut bad = 0;
    let mut batch = |found: &mut Found| {
        let mut bad = 0;
        for _ in 0..BATCH {
            let page = match body {
                Body::None => None,
                Body::Fault => Some(match range.next() {
                    Some(page) => page,
                    None => renewed(&mut range, found),
                }),
            };
            let inside = |vma: &Vma| {
                let whole = vma.is_whole();
                if let Some(page) = page {
                    range.touch(vma.start(), page);
                }
                u64::from(!(whole && vma.is_whole()))
            };
            if draw(&mut random) & mask != 0 {
                bad += region.read(inside);
                continue;
            }
            let start = Instant::now();
            let (entered, left, dead) = region.read(|vma| {
                let entered = Instant::now();
                let dead = inside(vma);
                (entered, Instant::now(), dead)
            });
            bad += dead;
            found.time(start, start, entered, left);
        }
        bad
    };
    pace.begin();
    while pace.warming() {
        bad += batch(found);
    }
    let mut ops = 0;
    found.reset();
    let start = Instant::now();
    while pace.running() {
        bad += batch(found);
        ops += BATCH;
    }
    let stop = Instant::now();
    found.faults = faults() - found.faults;
    Tally {
        ops,
        bad,
        start,
        stop,
    }
}

/// All pages of the range were touched: gives them back, outside the lock.
#[cold]
fn renewed(range: &mut Range<'_>, found: &mut Found) -> usize {
    let start = Instant::now();
    if let Err(error) = range.renew() {
        found.trouble = Some(format!("pages cannot be given back: {error}"));
    }
    found.renewing += start.elapsed();
    range.next().unwrap_or(0)
}

/// The schedule of a writer.
struct Schedule {
    start: Instant,
    period: Duration,
    done: u32,
}

impl Schedule {
    fn new(rate: u64) -> Self {
        Schedule {
            start: Instant::now(),
            period: Duration::from_secs_f64(1.0 / rate as f64),
            done: 0,
        }
    }

    /// When the next write is due, whatever became of those before.
    fn next(&mut self) -> Instant {
        let due = self.start + self.period * self.done;
        self.done += 1;
        due
    }
}

/// Sleeps until `due`, in pieces, unless the run ends. Whether it does not.
fn wait_until(due: Instant, go_on: impl Fn() -> bool) -> bool {
    const PIECE: Duration = Duration::from_millis(10);
    while go_on() {
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(left.min(PIECE));
    }
    false
}

fn write<R: Region>(pace: &Pace, region: &R, rate: Option<u64>, found: &mut Found) -> Tally {
    let mut bad = 0;
    let mut one = |due: Option<Instant>, found: &mut Found| {
        let start = Instant::now();
        let mut times = (start, start);
        region.write(|vma| {
            let entered = Instant::now();
            bad += u64::from(!vma.is_whole());
            let next = vma.next();
            times = (entered, Instant::now());
            next
        });
        found.time(due.unwrap_or(start), start, times.0, times.1);
    };
    pace.begin();
    let mut schedule = rate.map(Schedule::new);
    while pace.warming() {
        let due = schedule.as_mut().map(Schedule::next);
        if due.is_none_or(|due| wait_until(due, || pace.warming())) {
            one(due, found);
        }
    }
    let mut ops = 0;
    found.reset();
    let start = Instant::now();
    let mut schedule = rate.map(Schedule::new);
    while pace.running() {
        let due = schedule.as_mut().map(Schedule::next);
        if due.is_none_or(|due| wait_until(due, || pace.running())) {
            one(due, found);
            ops += 1;
        }
    }
    Tally {
        ops,
        bad,
        start,
        stop: Instant::now(),
    }
}

/// Quantiles in records, under their names.
const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)];

fn quantiles(record: &mut Record, what: &str, histogram: &Histogram<u64>) {
    if histogram.is_empty() {
        return;
    }
    for (name, quantile) in QUANTILES {
        record.set(
            &format!("{what}_{name}_ns"),
            histogram.value_at_quantile(quantile),
        );
    }
    record.set(&format!("{what}_samples"), histogram.len());
}

fn together<'a>(all: impl Iterator<Item = &'a Histogram<u64>>) -> Histogram<u64> {
    let mut sum = histogram();
    for one in all {
        sum.add(one).expect("the same bounds");
    }
    sum
}

fn describe(record: &mut Record, tallies: &[Tally], found: &[Found]) {
    quantiles(record, "wait", &together(found.iter().map(|f| &f.wait)));
    quantiles(record, "hold", &together(found.iter().map(|f| &f.hold)));
    if let Some(longest) = found.iter().map(|found| found.longest).max() {
        record.set("wait_max_ns", longest);
    }
    record.set("faults", found.iter().map(|f| f.faults).sum::<u64>());
    let renewing: Duration = found.iter().map(|f| f.renewing).sum();
    let busy: f64 = spans(tallies).sum();
    if busy > 0.0 {
        record.set("renewing_share", renewing.as_secs_f64() / busy);
    }
    let rates: Vec<f64> = tallies
        .iter()
        .zip(spans(tallies))
        .map(|(tally, span)| tally.ops as f64 / span.max(1e-9))
        .collect();
    if let Some((mean, sd)) = mean_and_sd(&rates) {
        record.set("sd_threads_share", if mean > 0.0 { sd / mean } else { 0.0 });
        let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
        let most = rates.iter().copied().fold(0.0, f64::max);
        record.set("fairness", if most > 0.0 { least / most } else { 0.0 });
    }
}

fn describe_writers(record: &mut Record, tallies: &[Tally], found: &[Found], rate: Option<u64>) {
    let Some(total) = Rate::of(tallies) else {
        return;
    };
    record.set("writes", total.ops);
    record.set("writes_per_s", total.per_s());
    quantiles(
        record,
        "write_wait",
        &together(found.iter().map(|f| &f.wait)),
    );
    quantiles(
        record,
        "write_hold",
        &together(found.iter().map(|f| &f.hold)),
    );
    if let Some(longest) = found.iter().map(|found| found.longest).max() {
        record.set("write_wait_max_ns", longest);
    }
    if rate.is_some() {
        let called = together(found.iter().map(|f| &f.called));
        quantiles(record, "write_called_wait", &called);
    }
}

fn spans(tallies: &[Tally]) -> impl Iterator<Item = f64> {
    tallies
        .iter()
        .map(|tally| tally.stop.duration_since(tally.start).as_secs_f64())
}

/// Mean and standard deviation of a sample of at least two.
fn mean_and_sd(values: &[f64]) -> Option<(f64, f64)> {
    if values.len() < 2 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((mean, (squares / (values.len() - 1) as f64).sqrt()))
}

/// A body that does not fault measures something else.
fn judge_faults(record: &mut Record) {
    let faults = record.number("faults").unwrap_or(0.0);
    record.set(
        "faults_per_op",
        if record.ops > 0 {
            faults / record.ops as f64
        } else {
            0.0
        },
    );
    if faults < record.ops as f64 {
        record.status = Status::Failed;
        record.remark(&format!(
            "{faults} page faults for {} touched pages",
            record.ops
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::job::{Params, Pin};
    use crate::workloads::Workload;

    /// Report 108: coordinated omission. A stall of 100 ms in a schedule of one write a millisecond makes some hundred
    /// writes late; a closed loop would have seen one.
    #[test]
    fn report_108_a_stall_makes_the_next_ones_late() {
        let mut schedule = Schedule::new(1000);
        let mut found = Found::new();
        for n in 0..300 {
            let due = schedule.next();
            wait_until(due, || true);
            let start = Instant::now();
            if n == 50 {
                std::thread::sleep(Duration::from_millis(100));
            }
            let inside = Instant::now();
            found.time(due, start, inside, inside);
        }
        let ms = |histogram: &Histogram<u64>, quantile| {
            Duration::from_nanos(histogram.value_at_quantile(quantile)).as_millis()
        };
        assert!(ms(&found.wait, 0.9) >= 50, "{}", ms(&found.wait, 0.9));
        assert!(ms(&found.called, 0.9) < 50, "{}", ms(&found.called, 0.9));
        assert!(found.longest >= 100_000_000);
    }

    fn job(variant: &str, readers: usize, writers: usize, body: &str) -> Job {
        Job {
            workload: Workload::Rwsem,
            variant: variant.into(),
            threads: readers + writers,
            readers,
            writers,
            pauses: None,
            more: Params::from([("body".to_owned(), body.into())]),
            run: 0,
            order: 0,
            seed: 1,
            time: Duration::from_millis(250),
            warmup: Duration::from_millis(3),
            pin: Pin::None,
            quick: true,
        }
    }

    #[test]
    fn every_variant_faults_and_writes() {
        for about in rwsems::all() {
            let record = super::super::run(&job(about.name, 2, 1, "fault")).unwrap();
            assert_eq!(record.status, Status::Ok, "{}: {}", about.name, record.note);
            assert!(record.ops > 0 && record.number("faults").unwrap() >= record.ops as f64);
            assert!(
                record.number("wait_p50_ns").is_some() && record.number("hold_p99_ns").is_some()
            );
            assert!(record.number("fairness").is_some_and(|share| share <= 1.0));
        }
    }

    #[test]
    fn without_faults_nobody_judges_them() {
        let record = super::super::run(&job("vanilla", 1, 0, "none")).unwrap();
        assert_eq!(record.status, Status::Ok);
        assert!(record.number("faults_per_op").is_none() && record.number("writes").is_none());
    }

    #[test]
    fn a_body_that_does_not_fault_fails_the_run() {
        let mut record = Record::empty(&job("vanilla", 1, 0, "fault"));
        record.ops = 100;
        record.set("faults", 99);
        judge_faults(&mut record);
        assert_eq!(record.status, Status::Failed);
        record = Record::empty(&job("vanilla", 1, 0, "fault"));
        record.ops = 100;
        record.set("faults", 100);
        judge_faults(&mut record);
        assert_eq!(record.status, Status::Ok);
    }

    #[test]
    fn spread_of_a_fixed_vector() {
        assert_eq!(
            mean_and_sd(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0])
                .unwrap()
                .0,
            5.0
        );
        let (_, sd) = mean_and_sd(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert!((sd - 2.138_089_935).abs() < 1e-6);
        assert!(mean_and_sd(&[1.0]).is_none());
    }
}
