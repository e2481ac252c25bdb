//! Floor 3, bench-suite. Owns what `ref` prints: the original's words, and a table. Touches nothing else.
//!
//! The original adds a loop's times over the readers and divides by readers and loops; its loops are one pair longer. Its
//! words here are as it computes them; the table divides by the pairs that there were.

use super::run::{Setup, Times};
use super::{Ask, Row};
use crate::published::show::columns;
use crate::report::human;
use std::fmt::Write;

/// Readers a row.
const A_ROW: usize = 5;

/// The first line.
pub(super) fn parameters(name: &str, ask: &Ask, readers: usize) -> String {
    format!(
        "{name}-ref-scale: --- Start of test:  verbose=0 verbose_batched=0 shutdown=0 holdoff={} lookup_instances={} loops={} nreaders={readers} nruns={} readdelay={}\n",
        ask.holdoff, ask.lookup_instances, ask.loops, ask.nruns, ask.readdelay
    )
}

/// Thousandths of a nanosecond for a pair, as the original rounds them.
fn average(run: &[u64], loops: u64) -> u64 {
    let sum: u128 = run.iter().map(|&ns| u128::from(ns)).sum();
    (1000 * sum / (run.len().max(1) as u128 * u128::from(loops))) as u64
}

/// The experiments and their averages.
pub(super) fn original(name: &str, loops: u64, times: &Times) -> String {
    let mut text = String::new();
    for (index, run) in times.runs.iter().enumerate() {
        let _ = write!(
            text,
            "Experiment #{} (Format: <THREAD-NUM>:<Total loop time in ns>)",
            index + 1
        );
        for (reader, ns) in run.iter().enumerate() {
            if reader % A_ROW == 0 {
                text.push('\n');
            }
            let _ = write!(text, "{reader}: {ns}\t");
        }
        text.push('\n');
    }
    let _ = writeln!(
        text,
        "{name}-ref-scale: END OF TEST. Calculating average duration per loop (nanoseconds)..."
    );
    text.push_str("Runs\tTime(ns)\n");
    for (index, run) in times.runs.iter().enumerate() {
        let ns = average(run, loops);
        let _ = writeln!(text, "{}\t{}.{:03}", index + 1, ns / 1000, ns % 1000);
    }
    text
}

/// Nanoseconds for a pair in each experiment, in order.
fn sorted(times: &Times, loops: u64) -> Vec<f64> {
    let mut all: Vec<f64> = times
        .runs
        .iter()
        .map(|run| {
            let sum: f64 = run.iter().map(|&ns| ns as f64).sum();
            sum / (run.len().max(1) as f64 * (loops + 1) as f64)
        })
        .collect();
    all.sort_by(f64::total_cmp);
    all
}

fn median(sorted: &[f64]) -> Option<f64> {
    let half = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[half]),
        _ => Some(f64::midpoint(sorted[half - 1], sorted[half])),
    }
}

/// One line a row, with the ratio to the first type of as many readers.
pub(super) fn table(rows: &[Row], loops: u64, setup: &Setup) -> String {
    let first = rows.first().map_or("", |row| row.name);
    let mut text = format!(
        "ref, in user space: ns for one acquire and release, median over experiments; mean over readers; less is better{}\n",
        if setup.delay.is_none() {
            ""
        } else {
            "; the delay inside included"
        }
    );
    let mut lines = vec![vec![
        "type".to_owned(),
        "readers".to_owned(),
        "ns/pair".to_owned(),
        format!("x {first}"),
        "least".to_owned(),
        "most".to_owned(),
        "experiments".to_owned(),
    ]];
    for row in rows {
        let own = sorted(&row.times, loops);
        let reference = rows
            .iter()
            .find(|other| other.readers == row.readers && other.name == first)
            .and_then(|other| median(&sorted(&other.times, loops)));
        let show = |value: Option<f64>| value.map_or("-".to_owned(), human::digits);
        lines.push(vec![
            row.name.to_owned(),
            row.readers.to_string(),
            show(median(&own)),
            median(&own)
                .zip(reference)
                .filter(|&(_, reference)| reference > 0.0)
                .map_or("-".to_owned(), |(own, reference)| {
                    human::ratio(own / reference)
                }),
            show(own.first().copied()),
            show(own.last().copied()),
            own.len().to_string(),
        ]);
    }
    text.push_str(&columns(&lines));
    if rows.iter().any(|row| row.readers > setup.cpus.len()) {
        let _ = writeln!(
            text,
            "  more readers than the {} CPUs: times include those of the other readers' turns",
            setup.cpus.len()
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::subject::Delay;
    use super::*;

    fn times() -> Times {
        Times::of(vec![
            vec![1000, 1100, 1200, 1300, 1400, 1500],
            vec![2000; 6],
            vec![999; 6],
        ])
    }

    #[test]
    fn the_originals_words() {
        insta::assert_snapshot!(original("rcu", 10, &times()));
    }

    /// 1250 ns on average for 10 loops, which are 11 pairs.
    #[test]
    fn the_originals_bias_is_its_own() {
        let run = &times().runs[0];
        assert_eq!(average(run, 10), 125_000);
        let exact = sorted(&times(), 10);
        assert!((exact[1] - 1250.0 / 11.0).abs() < 1e-9, "{exact:?}");
        assert_eq!(median(&exact), Some(exact[1]));
    }

    #[test]
    fn tables() {
        let setup = Setup {
            loops: 10,
            readers: 1,
            runs: 3,
            delay: Delay::of(std::time::Duration::ZERO),
            cpus: vec![0, 1],
        };
        let row = |name, readers, times| Row {
            name,
            readers,
            times,
        };
        let half = Times::of(vec![vec![625; 6]]);
        let rows = [
            row("rcu", 6, times()),
            row("hp", 6, half),
            row("hp", 1, Times::default()),
        ];
        insta::assert_snapshot!(table(&rows, 10, &setup));
    }
}
