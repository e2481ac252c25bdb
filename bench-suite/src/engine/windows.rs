//! Floor 3, bench-suite. Owns the windows of a run: how many operations were done in each part of it, and by whom.
//! Touches nothing else; `crew` fills it, the workloads put it into their records.
//!
//! Each thread leaves its count in a word of its own once per batch, with a plain store; whoever keeps the time reads
//! all of them at the end of each window. The word is on lines of its own, so the store is a hit except just after it
//! was read. A window is as long as the clock says that it was, not as it was meant to be.
//!
//! **Orderings.** Relaxed: the counts are figures, nothing is published through them, and the last ones come back
//! through `join`.

use crate::report::record::Record;
use std::cell::{Cell, RefCell};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// As long as nobody says otherwise.
pub(crate) const USUAL: Duration = Duration::from_millis(100);

/// Shorter windows show the scheduler, not the program.
pub(crate) const SHORTEST: Duration = Duration::from_millis(10);

/// As few as can be compared.
const FEWEST: u32 = 3;

/// As many as are kept.
const MOST: u32 = 600;

/// Threads whose counts are kept one by one.
const MOST_THREADS: usize = 1024;

/// A change from the first to the last third that is remarked on,
const DRIFT: f64 = 0.05;

/// in runs of at least this length.
const LONG_ENOUGH: f64 = 0.5;

static ASKED: OnceLock<Duration> = OnceLock::new();

thread_local! {
    /// Which of its crew this thread is.
    static SEAT: Cell<usize> = const { Cell::new(0) };
    /// The counts of the last crew that this thread led.
    static LAST: RefCell<Option<Series>> = const { RefCell::new(None) };
}

/// In a run's process: what `--window` says.
pub(crate) fn ask(window: Duration) {
    let _ = ASKED.set(window);
}

/// How long the windows of a run of `time` are; `None` if it is too short for any.
pub(crate) fn length(asked: Duration, time: Duration) -> Option<Duration> {
    let window = asked.min(time / FEWEST).max(time / MOST);
    (window >= SHORTEST).then_some(window)
}

/// Alone on its pair of cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Seat(AtomicU64);

/// The words of a crew.
#[derive(Debug)]
pub(crate) struct Seats(Box<[Seat]>);

impl Seats {
    /// For `count` threads.
    pub(crate) fn new(count: usize) -> Self {
        Seats((0..count).map(|_| Seat::default()).collect())
    }

    /// The calling thread takes its place.
    pub(crate) fn take(index: usize) {
        SEAT.set(index);
    }

    /// The word of the calling thread.
    pub(crate) fn own(&self) -> &AtomicU64 {
        &self.0[SEAT.get()].0
    }

    fn read(&self) -> Vec<u64> {
        // Relaxed: see above.
        self.0
            .iter()
            .map(|seat| seat.0.load(Ordering::Relaxed))
            .collect()
    }
}

/// What was read.
#[derive(Debug, Clone)]
pub(crate) struct Series {
    window: Option<Duration>,
    start: Instant,
    /// When the next window ends.
    next: Duration,
    /// Time since the start and the counts of all threads, window by window.
    read: Vec<(f64, Vec<u64>)>,
    /// At the end, with what the last batches did.
    last: Vec<u64>,
}

impl Series {
    /// A run of `time` begins.
    pub(crate) fn start(time: Duration) -> Self {
        let window = length(ASKED.get().copied().unwrap_or(USUAL), time);
        Series {
            window,
            next: window.unwrap_or_default(),
            start: Instant::now(),
            read: Vec::new(),
            last: Vec::new(),
        }
    }

    /// How long to sleep until a window ends, of the `left` of the run.
    pub(crate) fn until_next(&self, left: Duration) -> Duration {
        match self.window {
            Some(_) => left.min(self.next.saturating_sub(self.start.elapsed())),
            None => left,
        }
    }

    /// A window may have ended (at the end of the run it has): looks at the counts.
    pub(crate) fn look(&mut self, seats: &Seats, end: bool) {
        let Some(window) = self.window else { return };
        let now = self.start.elapsed();
        // Who wakes up late has had a longer window; what is left of the next one then is no window.
        if now < self.next && !(end && now + window / 2 >= self.next) {
            return;
        }
        self.read.push((now.as_secs_f64(), seats.read()));
        while self.next < now + window / 2 {
            self.next += window;
        }
    }

    /// The time is over: the threads stop now, [`finish`] adds what they have done till then.
    pub(crate) fn hand_over(self) {
        LAST.set(Some(self));
    }

    /// Operations per second in each window, of the last `workers` threads.
    fn rates(&self, workers: usize) -> Vec<f64> {
        let mut before = (0.0, 0);
        let mut rates = Vec::with_capacity(self.read.len());
        for (at, counts) in &self.read {
            let sum: u64 = counts[counts.len() - workers..].iter().sum();
            let span = at - before.0;
            if span > 0.0 {
                rates.push((sum - before.1) as f64 / span);
            }
            before = (*at, sum);
        }
        rates
    }
}

/// All threads of the crew are joined: reads their counts for the last time.
pub(crate) fn finish(seats: &Seats) {
    LAST.with_borrow_mut(|series| {
        if let Some(series) = series {
            series.last = seats.read();
        }
    });
}

/// Puts what the last crew of this thread did into the record of its run. The threads whose operations the record
/// counts are the last `workers` of the crew; where that is not so (their counts do not add up to the record's),
/// nothing is said.
pub(crate) fn put(record: &mut Record, workers: usize) {
    let Some(series) = LAST.take() else { return };
    let Some(first) = series.last.len().checked_sub(workers) else {
        return;
    };
    let own = &series.last[first..];
    if record.ops == 0 || own.iter().sum::<u64>() != record.ops {
        return;
    }
    record.set("per_thread", &own[..own.len().min(MOST_THREADS)]);
    let (least, most) = (own.iter().min().copied(), own.iter().max().copied());
    if let (Some(least), Some(most)) = (least, most) {
        record.set("fairness", least as f64 / most as f64);
    }
    let rates = series.rates(workers);
    if rates.len() < FEWEST as usize {
        return;
    }
    let whole: Vec<f64> = rates.iter().map(|rate| rate.round()).collect();
    record.set("windows", whole);
    if let Some(window) = series.window {
        record.set("window_s", window.as_secs_f64());
    }
    if let Some(drift) = drift(&rates) {
        record.set("drift", (drift * 1e4).round() / 1e4);
        if drift.abs() > DRIFT && record.elapsed_s >= LONG_ENOUGH {
            record.remark(&format!("drift of {:.0} % within the run", drift * 100.0));
        }
    }
}

/// By how much the last third is faster than the first.
fn drift(rates: &[f64]) -> Option<f64> {
    let third = rates.len() / 3;
    if third == 0 {
        return None;
    }
    let mean = |rates: &[f64]| rates.iter().sum::<f64>() / rates.len() as f64;
    let first = mean(&rates[..third]);
    (first > 0.0).then(|| mean(&rates[rates.len() - third..]) / first - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::record::tests::sample;
    use crate::workloads::Workload;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn there_are_three_windows_or_none() {
        assert_eq!(length(ms(100), ms(1000)), Some(ms(100)));
        assert_eq!(length(ms(100), ms(150)), Some(ms(50)));
        assert_eq!(length(ms(100), ms(30)), Some(ms(10)));
        assert_eq!(length(ms(100), ms(29)), None);
        assert_eq!(length(ms(1), ms(1000)), None);
        assert_eq!(length(ms(100), ms(120_000)), Some(ms(200)), "at most 600");
    }

    #[test]
    fn drifts() {
        assert_eq!(drift(&[1.0, 1.0]), None);
        assert_eq!(drift(&[2.0, 9.0, 1.0]), Some(-0.5));
        assert_eq!(drift(&[1.0, 3.0, 7.0, 7.0, 4.0, 8.0]), Some(2.0));
        assert_eq!(drift(&[0.0, 1.0, 1.0]), None);
    }

    fn series(read: &[(f64, &[u64])], last: &[u64]) -> Series {
        Series {
            window: Some(ms(100)),
            start: Instant::now(),
            next: ms(100),
            read: read
                .iter()
                .map(|(at, counts)| (*at, counts.to_vec()))
                .collect(),
            last: last.to_vec(),
        }
    }

    #[test]
    fn the_counting_threads_are_the_last_ones() {
        let read: [(f64, &[u64]); 3] = [
            (0.1, &[9, 10, 20]),
            (0.3, &[9, 30, 40]),
            (0.4, &[9, 60, 20]),
        ];
        let mut series = series(&read[..2], &[9, 60, 40]);
        series.read.push((0.4, vec![9, 60, 40]));
        assert_eq!(
            series
                .rates(2)
                .iter()
                .map(|r| r.round())
                .collect::<Vec<_>>(),
            [300.0, 200.0, 300.0]
        );
        let mut record = sample(Workload::Write, "hp", 3, 0, 100);
        LAST.set(Some(series.clone()));
        put(&mut record, 2);
        assert_eq!(record.params["per_thread"], serde_json::json!([60, 40]));
        assert_eq!(
            record.params["windows"],
            serde_json::json!([300.0, 200.0, 300.0])
        );
        assert_eq!(record.number("drift"), Some(0.0));
        // Counts of other threads than the record's are not shown as its own.
        let mut record = sample(Workload::Write, "hp", 3, 0, 101);
        LAST.set(Some(series));
        put(&mut record, 2);
        assert!(record.params.get("windows").is_none());
    }

    #[test]
    fn a_drift_is_remarked_on_in_long_runs_only() {
        for (elapsed, remarked) in [(1.0, true), (0.1, false)] {
            let mut record = sample(Workload::Read, "hp", 1, 0, 60);
            record.elapsed_s = elapsed;
            LAST.set(Some(series(
                &[(0.1, &[10]), (0.2, &[25]), (0.3, &[55])],
                &[60],
            )));
            put(&mut record, 1);
            assert_eq!(record.number("drift"), Some(2.0));
            assert_eq!(record.note.contains("drift of 200 %"), remarked);
        }
    }
}
