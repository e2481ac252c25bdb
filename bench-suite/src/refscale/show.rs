//! Floor 3, bench-suite. Owns what `ref` prints: the original's words. Touches nothing else.
//!
//! The original adds a loop's times over the readers and divides by readers and loops; its loops are one pair longer. Its
//! words here are as it computes them; records divide by the pairs that there were.

use super::Ask;
use super::run::Times;
use std::fmt::Write;

/// Readers a row.
const A_ROW: usize = 5;

/// The first line.
pub(super) fn parameters(
    name: &str,
    ask: &Ask,
    readers: usize,
    delay: u64,
    objects: i64,
) -> String {
    format!(
        "{name}-ref-scale: --- Start of test:  verbose=0 verbose_batched=0 shutdown=0 holdoff={} lookup_instances={objects} loops={} nreaders={readers} nruns={} readdelay={delay}\n",
        ask.holdoff, ask.loops, ask.nruns
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

#[cfg(test)]
mod tests {
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
    }
}
