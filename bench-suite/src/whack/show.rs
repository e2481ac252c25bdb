//! Floor 3, bench-suite. Owns what `whack` says: the table over the runs, theirs beside it, errata. Touches the published
//! numbers.

use super::memory::{self, REACH};
use super::once::{Config, Outcome};
use super::{Prng, Thp, Vma};
use crate::published::{self, show::columns};
use serde_json::json;
use std::fmt::Write;

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

fn prng(config: &Config) -> &'static str {
    match config.prng {
        Prng::LibcLocked => "libc-locked",
        Prng::PerThread => "per-thread",
    }
}

fn vma(config: &Config) -> &'static str {
    match config.vma {
        Vma::One => "one",
        Vma::PerThread => "per-thread",
    }
}

fn thp(config: &Config) -> &'static str {
    match config.thp {
        Thp::Never => "never",
        Thp::Madvise => "madvise",
        Thp::Always => "always",
    }
}

/// What is run, in a line.
pub(super) fn describe(config: &Config, setting: &str) -> String {
    format!(
        "whack: {} threads, {} bytes, {} writes each, prng {}, VMA {}, thp {} (system: {setting}); {}",
        config.threads,
        config.bytes,
        config.writes,
        prng(config),
        vma(config),
        thp(config),
        memory::need(config)
    )
}

/// A run as JSON: everything that was set and found.
pub(super) fn line(config: &Config, run: usize, setting: &str, outcome: &Outcome) -> String {
    let mut value = json!({
        "schema": crate::report::record::SCHEMA,
        "workload": "whack",
        "run": run,
        "config": config,
        "thp_setting": setting,
        "writes_total": config.threads as u64 * config.writes,
    });
    let found = serde_json::to_value(outcome).expect("plain data");
    if let (Some(value), Some(found)) = (value.as_object_mut(), found.as_object()) {
        value.extend(found.clone());
    }
    format!("{value}\n")
}

/// The table: ours, theirs, and what is wrong with theirs.
pub(super) fn table(configs: &[Config], outcomes: &[Vec<Outcome>], setting: &str) -> String {
    let first = &configs[0];
    let runs = outcomes.iter().map(Vec::len).max().unwrap_or(0);
    let mut text = format!(
        "whack: {} threads, {} writes each, {} MiB of which {} MiB are within reach; thp {} (system: {setting}); wall time in microseconds, {runs} run(s)\n",
        first.threads,
        first.writes,
        first.bytes >> 20,
        first.bytes.min(REACH) >> 20,
        thp(first),
    );
    text.push_str(&columns(&ours(configs, outcomes)));
    let _ = writeln!(
        text,
        "\nA \"fault\" is a write that found no page. `prng libc-locked` takes a lock of the C library for each write."
    );
    text.push_str(&theirs());
    text
}

fn ours(configs: &[Config], outcomes: &[Vec<Outcome>]) -> Vec<Vec<String>> {
    let head = [
        "here",
        "MIN",
        "AVG",
        "MAX",
        "STDEV",
        "AVG ratio",
        "faults",
        "of writes",
        "faults/s",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    let mut reference = None;
    for (config, outcomes) in configs.iter().zip(outcomes) {
        let us: Vec<f64> = outcomes.iter().map(|outcome| outcome.us as f64).collect();
        let Some(statistics) = Statistics::of(&us) else {
            continue;
        };
        let first = *reference.get_or_insert(statistics.mean);
        let faults = outcomes
            .iter()
            .map(|outcome| outcome.faults as f64)
            .sum::<f64>()
            / us.len() as f64;
        let writes = config.threads as f64 * config.writes as f64;
        rows.push(vec![
            format!("prng {}, VMA {}", prng(config), vma(config)),
            format!("{:.0}", statistics.min),
            format!("{:.0}", statistics.mean),
            format!("{:.0}", statistics.max),
            statistics
                .sd
                .map_or("-".to_owned(), |sd| format!("{sd:.0}")),
            format!("{:.2}", statistics.mean / first),
            format!("{faults:.0}"),
            format!("{:.1} %", 100.0 * faults / writes),
            format!("{:.0}", faults / (statistics.mean / 1e6)),
        ]);
    }
    rows
}

/// The published tables and their errata.
fn theirs() -> String {
    let set = published::find("seed001").expect("named by the program, checked by a test");
    let mut text = format!(
        "\n{}, of other machines and kernels; their command: {}\n",
        set.theirs(),
        set.command
    );
    for name in ["R520", "32 CPUs"] {
        let table = published::table("seed001", name);
        let _ = writeln!(
            text,
            "{name}: {}",
            table.machine.as_deref().unwrap_or(&set.machine)
        );
        let heading = std::iter::once(table.key.clone()).chain(table.columns.iter().cloned());
        let mut rows: Vec<Vec<String>> = vec![heading.collect()];
        rows.extend(table.rows.iter().map(|row| {
            let values = row.values.iter().map(|value| match value {
                Some(value) => format!("{value}"),
                None => "-".to_owned(),
            });
            std::iter::once(row.key.to_string()).chain(values).collect()
        }));
        text.push_str(&columns(&rows));
    }
    text.push_str("errata and caveats of theirs:\n");
    for line in &set.errata {
        let _ = writeln!(text, "  - {line}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

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

    /// Report 110: a comparison must show every parameter that differs.
    #[test]
    fn report_110_rows_say_what_differs() {
        let config = |prng, vma| Config {
            threads: 2,
            bytes: 1 << 20,
            writes: 10,
            debug: false,
            prng,
            thp: Thp::Never,
            vma,
        };
        let configs = [
            config(Prng::LibcLocked, Vma::One),
            config(Prng::PerThread, Vma::PerThread),
        ];
        let outcome = |us| Outcome {
            us,
            faults: 5,
            skew_us: 0.0,
            fastest_us: 1.0,
            slowest_us: 2.0,
            cpus: vec![0, 1],
        };
        let text = table(
            &configs,
            &[vec![outcome(100)], vec![outcome(50), outcome(70)]],
            "madvise",
        );
        for words in [
            "prng libc-locked, VMA one",
            "prng per-thread, VMA per-thread",
            "0.60",
            "thp never (system: madvise)",
            "theirs, published (seed001)",
            "3875201",
            "repeats that of FIX",
        ] {
            assert!(text.contains(words), "{words}\n{text}");
        }
        let value: serde_json::Value =
            serde_json::from_str(&line(&configs[1], 3, "madvise", &outcome(9))).unwrap();
        assert_eq!((&value["us"], &value["run"]), (&json!(9), &json!(3)));
        assert_eq!(value["config"]["vma"], "per-thread");
        assert_eq!(value["writes_total"], 20);
    }
}
