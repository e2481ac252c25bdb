//! Floor 3, bench-suite. Owns what `schbench` prints: the original's text, its JSON, and a table. Touches nothing else.

use super::hash;
use super::histogram::{PERCENTILES, Sum};
use super::plan::{self, Plan};
use super::watch::{Outcome, Sight};
use crate::published::show::columns;
use crate::report::human;
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// Which percentiles are printed for latencies, for rates, and in pipe mode.
const LATENCIES: [f64; 4] = [50.0, 90.0, 99.0, 99.9];
const RATES: [f64; 3] = [20.0, 50.0, 90.0];

fn percentiles(
    sum: &Sum,
    label: &str,
    unit: &str,
    second: u64,
    shown: &[f64],
    star: f64,
) -> String {
    let mut text = format!(
        "{label} percentiles ({unit}) runtime {second} (s) ({} total samples)\n",
        sum.count()
    );
    for line in sum
        .lines()
        .iter()
        .filter(|line| shown.contains(&line.percentile))
    {
        let mark = if line.percentile == star { "* " } else { "  " };
        let _ = writeln!(
            text,
            "\t{mark}{:2.1}th: {:<10} ({} samples)",
            line.percentile, line.value, line.samples
        );
    }
    let _ = writeln!(text, "\t  min={}, max={}", sum.min(), sum.max());
    text
}

fn three(sight: &Sight) -> String {
    let second = sight.second;
    percentiles(
        &sight.wakeup,
        "Wakeup Latencies",
        "usec",
        second,
        &LATENCIES,
        99.0,
    ) + &percentiles(
        &sight.request,
        "Request Latencies",
        "usec",
        second,
        &LATENCIES,
        99.0,
    ) + &percentiles(&sight.rps, "RPS", "requests", second, &RATES, 50.0)
}

fn delays(sight: &Sight) -> String {
    format!(
        "sched delay: message {} (usec) worker {} (usec)\n",
        sight.delays.message, sight.delays.worker
    )
}

/// The original's words in the middle of a run.
pub(super) fn original_report(sight: &Sight) -> String {
    format!(
        "{}{}current rps: {:.2}\n",
        three(sight),
        delays(sight),
        sight.rate
    )
}

/// The original's words at the end. The two lines that it has not follow, marked by a `#`.
pub(super) fn original(plan: &Plan, outcome: &Outcome, hash: hash::State) -> String {
    let sight = &outcome.sight;
    let mut text = match plan.pipe {
        Some(bytes) => {
            let shown = [&RATES[..1], &LATENCIES].concat();
            let per_worker = 1e6 / (outcome.busy_us.max(1) as f64);
            let (size, unit) = binary(outcome.loops as f64 * bytes as f64 * per_worker);
            percentiles(
                &sight.wakeup,
                "Wakeup Latencies",
                "usec",
                sight.second,
                &shown,
                99.0,
            ) + &format!(
                "avg worker transfer: {:.2} ops/sec {size:.2}{unit}/s\n",
                outcome.loops as f64 * per_worker
            )
        }
        None if plan.paced.is_some_and(|paced| paced.busy.is_some()) => {
            three(sight) + &format!("final rps goal was {}\n", outcome.goal) + &delays(sight)
        }
        None => {
            let average = outcome.configured_rate(plan);
            three(sight) + &format!("average rps: {average:.2}\n") + &delays(sight)
        }
    };
    text.push_str(&hash.original());
    for line in extra(outcome) {
        let _ = writeln!(text, "# {line}");
    }
    text
}

/// What the original does not tell.
fn extra(outcome: &Outcome) -> Vec<String> {
    let mut lines = vec![format!(
        "over measured time: {:.2} requests/s ({} in {:.3} s)",
        outcome.measured_rate(),
        outcome.measured.0,
        outcome.measured.1
    )];
    if outcome.left_out > 0 {
        lines.push(format!(
            "{} requests were left out because a worker had too many: coordinated omission",
            outcome.left_out
        ));
    }
    if let Some((count @ 1.., oldest)) = outcome.unanswered {
        lines.push(format!(
            "{count} requests had no answer at the end, the oldest for {oldest} µs; their age is in the percentiles"
        ));
    }
    lines
}

fn binary(mut number: f64) -> (f64, &'static str) {
    const UNITS: [&str; 7] = ["B", "KB", "MB", "GB", "TB", "PB", "EB"];
    let mut unit = 0;
    while number >= 1024.0 && unit + 1 < UNITS.len() {
        (number, unit) = (number / 1024.0, unit + 1);
    }
    (number, UNITS[unit])
}

/// One line on the way.
pub(super) fn short_report(sight: &Sight) -> String {
    format!(
        "{:>4} s: {} requests/s; wakeup p50 {} p99 {} µs; request p50 {} p99 {} µs\n",
        sight.second,
        human::count(sight.rate),
        sight.wakeup.percentile(50.0),
        sight.wakeup.percentile(99.0),
        sight.request.percentile(50.0),
        sight.request.percentile(99.0),
    )
}

/// The table.
pub(super) fn table(plan: &Plan, outcome: &Outcome, hash: hash::State) -> String {
    let sight = &outcome.sight;
    let mut text = format!(
        "schbench, for real on this kernel: {}\nfutex hash: {}\n",
        plan::short(plan),
        hash.words()
    );
    for note in &plan.notes {
        let _ = writeln!(text, "note: {note}");
    }
    let mut rows = vec![
        [
            "", "p20", "p50", "p90", "p99", "p99.9", "min", "max", "samples",
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    let open = outcome.unanswered.is_some();
    let request = if open {
        "request, from when it was due, µs"
    } else {
        "request µs"
    };
    let all = [
        ("wakeup µs", &sight.wakeup),
        (request, &sight.request),
        ("requests/s", &sight.rps),
    ];
    let shown = if plan.pipe.is_some() { 1 } else { 3 };
    for (name, sum) in &all[..shown] {
        let mut row = vec![(*name).to_owned()];
        row.extend(sum.lines().iter().map(|line| line.value.to_string()));
        row.extend([sum.min(), sum.max()].map(|n| n.to_string()));
        row.push(sum.count().to_string());
        rows.push(row);
    }
    text.push_str(&columns(&rows));
    if let Some(bytes) = plan.pipe {
        let (size, unit) = binary(outcome.measured_rate() * bytes as f64);
        let _ = writeln!(
            text,
            "  handed over: {size:.2} {unit}/s by all workers together"
        );
    }
    let over = if outcome.interrupted {
        "interrupted: over measured time".to_owned()
    } else {
        format!(
            "the original's: all {} requests over the {} s configured",
            outcome.loops, plan.runtime
        )
    };
    let average = outcome.configured_rate(plan);
    let _ = writeln!(text, "  average rps: {average:.2} ({over})");
    for line in extra(outcome) {
        let _ = writeln!(text, "  {line}");
    }
    if plan.paced.is_some_and(|paced| paced.busy.is_some()) {
        let _ = writeln!(text, "  last goal: {} requests/s", outcome.goal);
    }
    let _ = writeln!(
        text,
        "  waited for a CPU, mean: message threads {} µs, workers {} µs",
        sight.delays.message, sight.delays.worker
    );
    text
}

/// What the JSON says beside the measured.
#[derive(Debug)]
pub(super) struct Header {
    pub(super) release: String,
    pub(super) hostname: String,
    pub(super) jobname: Option<String>,
    pub(super) sched_ext: String,
    pub(super) cmdline: String,
    /// Seconds since 1970.
    pub(super) time: u64,
}

/// The original's object, and one of our own behind it.
pub(super) fn json(header: &Header, plan: &Plan, outcome: &Outcome, hash: hash::State) -> Value {
    let mut normal = Map::new();
    normal.insert("version".to_owned(), json!(header.release));
    if let Some(jobname) = &header.jobname {
        normal.insert("jobname".to_owned(), json!(jobname));
    }
    normal.insert("hostname".to_owned(), json!(header.hostname));
    normal.insert("sched_ext".to_owned(), json!(header.sched_ext));
    normal.insert("cmdline".to_owned(), json!(header.cmdline));
    let mut int = Map::new();
    int.insert("time".to_owned(), json!(header.time));
    let sight = &outcome.sight;
    let all = [
        ("wakeup_latency", &sight.wakeup),
        ("request_latency", &sight.request),
        ("rps", &sight.rps),
    ];
    let shown = if plan.pipe.is_some() { 1 } else { 3 };
    for (label, sum) in &all[..shown] {
        for (line, percentile) in sum.lines().iter().zip(PERCENTILES) {
            int.insert(format!("{label}_pct{percentile:.1}"), json!(line.value));
        }
        int.insert(format!("{label}_min"), json!(sum.min()));
        int.insert(format!("{label}_max"), json!(sum.max()));
    }
    int.insert("runtime".to_owned(), json!(plan.runtime));
    json!({
        "normal": normal,
        "int": int,
        "hpbench": {
            "loops": outcome.loops,
            "average_rps": outcome.configured_rate(plan),
            "measured_rps": outcome.measured_rate(),
            "measured_requests": outcome.measured.0,
            "measured_s": outcome.measured.1,
            "left_out": outcome.left_out,
            "unanswered": outcome.unanswered.map(|(count, _)| count),
            "interrupted": outcome.interrupted,
            "hash_slots": hash.slots,
            "hash_immutable": hash.immutable,
            "message_delay_us": sight.delays.message,
            "worker_delay_us": sight.delays.worker,
            "plan": plan::short(plan),
            "notes": plan.notes,
        }
    })
}
