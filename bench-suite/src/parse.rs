//! Floor 3, bench-suite. Owns the values of options: lists, durations, names, and what is said about bad ones.
//! May ask the registry for names.

use crate::engine::{places, windows};
use crate::workloads::{self, Workload};
use std::time::Duration;

/// More threads than this are a mistake.
const MOST_THREADS: usize = 8192;

/// A sweep over more counts than this is a mistake.
const MOST_COUNTS: usize = 1000;

/// Longer runs than this are a mistake.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// Readers that hold for longer are parked.
const LONGEST_HOLD: Duration = Duration::from_secs(1);

/// Entries between commas, none empty; repeated ones count once.
fn list<T: PartialEq>(
    text: &str,
    entry: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    let mut list = Vec::new();
    for part in text.split(',') {
        let item = entry(part)?;
        if !list.contains(&item) {
            list.push(item);
        }
    }
    Ok(list)
}

/// Thread counts, see [`counts_on`], for the CPUs that this process may use.
pub(crate) fn counts(text: &str) -> Result<Vec<usize>, String> {
    counts_on(text, places::allowed)
}

/// `1,2,4`, `1..192:x2`, `1..N:+8`, `cpus`, `cores`, `2cores`, `auto`: thread counts, in the order given, each once.
/// `N` is the number of CPUs; `machine` gives it, and that of the cores, where it is asked for. Whether zero makes
/// sense depends on the workload.
fn counts_on(text: &str, machine: impl Fn() -> (usize, usize)) -> Result<Vec<usize>, String> {
    numbers(text, machine, MOST_THREADS)
}

/// The same syntax for other numbers, up to `most`.
pub(crate) fn sizes(text: &str, most: usize) -> Result<Vec<usize>, String> {
    numbers(text, places::allowed, most)
}

fn numbers(
    text: &str,
    machine: impl Fn() -> (usize, usize),
    most: usize,
) -> Result<Vec<usize>, String> {
    let mut counts = Vec::new();
    for part in text.split(',') {
        for count in series(part, &machine, most)? {
            if !counts.contains(&count) {
                counts.push(count);
            }
        }
        if counts.len() > MOST_COUNTS {
            return Err(format!("more than {MOST_COUNTS} numbers"));
        }
    }
    Ok(counts)
}

/// One entry of [`numbers`].
fn series(
    part: &str,
    machine: &impl Fn() -> (usize, usize),
    most: usize,
) -> Result<Vec<usize>, String> {
    let crew = |text: &str| match number(text)? {
        count if count > most && most == MOST_THREADS => Err(format!("at most {most} threads")),
        count if count > most => Err(format!("at most {most}")),
        count => Ok(count),
    };
    let several = |factor: usize, what: &str| {
        let (cpus, cores) = machine();
        let each = if what == "cpus" { cpus } else { cores };
        crew(&factor.saturating_mul(each).to_string())
    };
    if part == "auto" {
        // One, two, three, and on by doubling, as the published sweeps do, until the CPUs are taken twice.
        let most = (2 * machine().0).min(MOST_THREADS);
        let doubling = std::iter::successors(Some(3usize), |n| n.checked_mul(2));
        let all = [1, 2].into_iter().chain(doubling);
        return Ok(all.take_while(|&n| n <= most.max(2)).collect());
    }
    for what in ["cpus", "cores"] {
        if let Some(factor) = part.strip_suffix(what) {
            let factor = if factor.is_empty() {
                1
            } else {
                number(factor)?
            };
            return several(factor, what).map(|count| vec![count]);
        }
    }
    let Some((from, rest)) = part.split_once("..") else {
        return crew(part).map(|count| vec![count]);
    };
    let (to, step) = match rest.split_once(':') {
        Some((to, step)) => (to, Some(step)),
        None => (rest, None),
    };
    let bound = |text: &str| match text {
        "N" => several(1, "cpus"),
        "" => Err(format!("'{part}' lacks an end (like 1..N:+8)")),
        text => crew(text),
    };
    let (from, to) = (bound(from)?, bound(to)?);
    if from > to {
        return Err(format!("'{part}' runs backwards"));
    }
    let next: Box<dyn Fn(usize) -> usize> = match step.map(|step| step.split_at(step.len().min(1)))
    {
        None => Box::new(|n| n + 1),
        Some(("+", by)) => match number(by)? {
            0 => return Err(format!("'{part}' never gets on")),
            by => Box::new(move |n| n.saturating_add(by)),
        },
        Some(("x", by)) => match number(by)? {
            by if by < 2 || from == 0 => return Err(format!("'{part}' never gets on")),
            by => Box::new(move |n| n.saturating_mul(by)),
        },
        Some(_) => return Err(format!("'{part}': a step is like :x2 or :+8")),
    };
    let mut counts = vec![];
    let mut at = from;
    while at <= to {
        if counts.len() > MOST_COUNTS {
            return Err(format!("more than {MOST_COUNTS} numbers"));
        }
        counts.push(at);
        at = next(at);
    }
    Ok(counts)
}

/// `0,100ns,1us`: times up to `longest`.
pub(crate) fn times(text: &str, longest: Duration) -> Result<Vec<Duration>, String> {
    list(text, |part| match part {
        "" => Err("an empty entry".to_owned()),
        part => pause(part).and_then(|time| match time {
            time if time > longest => Err(format!("longer than {longest:?}")),
            time => Ok(time),
        }),
    })
}

/// A duration, or `0`.
pub(crate) fn pause(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    duration(text)
}

/// `0,1us,100us`: how long readers hold.
pub(crate) fn holds(text: &str) -> Result<Vec<Duration>, String> {
    list(text, |part| match part {
        "" => Err("an empty entry".to_owned()),
        "0" => Ok(Duration::ZERO),
        part => duration(part).and_then(|hold| match hold {
            hold if hold > LONGEST_HOLD => {
                Err("longer than 1s (that is a stall: see hpbench stall)".to_owned())
            }
            hold => Ok(hold),
        }),
    })
}

/// The number of readers or writers; zero is allowed.
pub(crate) fn crew(text: &str) -> Result<usize, String> {
    match number(text)? {
        count if count > MOST_THREADS => Err(format!("at most {MOST_THREADS} threads")),
        count => Ok(count),
    }
}

/// How often each point is run.
pub(crate) fn runs(text: &str) -> Result<usize, String> {
    match number(text)? {
        0 => Err("at least 1 run".to_owned()),
        count if count > 10_000 => Err("at most 10000 runs".to_owned()),
        count => Ok(count),
    }
}

fn number(text: &str) -> Result<usize, String> {
    if text.is_empty() {
        return Err("an empty entry".to_owned());
    }
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!("'{text}' is not a whole number"));
    }
    text.parse().map_err(|_| format!("'{text}' is too large"))
}

/// `1s`, `1.5s`, `200ms`, `500us`, `100ns`, `2m`; zero is allowed.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (amount, unit) = text.split_at(end);
    let scale = match unit {
        "ns" => 1e-9,
        "us" | "µs" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "" => return Err("a unit is missing (like 1s, 200ms, 500us)".to_owned()),
        other => return Err(format!("unknown unit '{other}' (use ns, us, ms, s or m)")),
    };
    let amount: f64 = amount
        .parse()
        .map_err(|_| "not a duration (like 1s, 1.5s, 200ms, 500us)".to_owned())?;
    match Duration::try_from_secs_f64(amount * scale) {
        Ok(duration) if duration <= LONGEST => Ok(duration),
        _ => Err("longer than a day".to_owned()),
    }
}

/// A duration above zero.
pub(crate) fn positive_duration(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("nothing can be measured in no time".to_owned()),
        duration => Ok(duration),
    }
}

/// A duration that a window can have.
pub(crate) fn window(text: &str) -> Result<Duration, String> {
    match positive_duration(text)? {
        window if window < windows::SHORTEST => Err(format!(
            "shorter than {:?}: that shows the scheduler, not the program",
            windows::SHORTEST
        )),
        window => Ok(window),
    }
}

/// `a,b`: names; repeated ones count once. Whether there are such variants depends on the workload: [`known`].
pub(crate) fn variants(text: &str) -> Result<Vec<String>, String> {
    list(text, |part| match part {
        "" => Err("an empty entry".to_owned()),
        part => Ok(part.to_owned()),
    })
}

/// Whether all are names of variants, of any workload; the others that one of `workload` may have been meant by.
pub(crate) fn known(variants: &[String], workload: Option<Workload>) -> Result<(), String> {
    match variants.iter().find(|name| workloads::find(name).is_none()) {
        Some(name) => Err(unknown_variant(name, workload)),
        None => Ok(()),
    }
}

fn unknown_variant(name: &str, workload: Option<Workload>) -> String {
    let names: Vec<&str> = match workload {
        Some(workload) => workload.listed().map(|about| about.name).collect(),
        None => workloads::listed().map(|about| about.name).collect(),
    };
    let nearest = names
        .iter()
        .map(|other| (distance(name, other), other))
        .min();
    match nearest {
        Some((distance, nearest)) if distance <= 1 + name.chars().count() / 3 => {
            format!(
                "unknown variant '{name}', did you mean '{nearest}'? (hpbench --list shows all)"
            )
        }
        _ => {
            let whose = match workload {
                Some(workload) => format!("{} has", workload.name()),
                None => "known are".to_owned(),
            };
            format!("unknown variant '{name}', {whose} {}", names.join(", "))
        }
    }
}

/// Edit distance: insertions, deletions and replacements.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let change = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = change.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_lists() {
        assert_eq!(counts("1,2,4"), Ok(vec![1, 2, 4]));
        assert_eq!(counts("2,2,1"), Ok(vec![2, 1]));
        assert_eq!(counts("0,1"), Ok(vec![0, 1]));
        for bad in [
            "1,,2",
            "",
            ",",
            "abc",
            "1,x",
            "-1",
            "+1",
            "1 ,2",
            "8193",
            "99999999999999999999999",
            "1.5",
        ] {
            assert!(counts(bad).is_err(), "{bad}");
        }
        assert_eq!(crew("0"), Ok(0));
        assert!(runs("0").is_err());
    }

    #[test]
    fn thread_series() {
        let on = |cpus, cores| move |text: &str| counts_on(text, || (cpus, cores));
        let (small, large) = (on(2, 2), on(384, 192));
        for (text, counts) in [
            ("1..4", vec![1, 2, 3, 4]),
            ("1..192:x2", vec![1, 2, 4, 8, 16, 32, 64, 128]),
            ("3..3", vec![3]),
            ("1..20:+8", vec![1, 9, 17]),
            ("0..2", vec![0, 1, 2]),
            ("4,1..N:x3,cpus", vec![4, 1, 3, 9, 27, 81, 243, 384]),
            ("cores,2cores,cpus,2cpus", vec![192, 384, 768]),
            ("N..N", vec![384]),
            ("auto", vec![1, 2, 3, 6, 12, 24, 48, 96, 192, 384, 768]),
        ] {
            assert_eq!(large(text), Ok(counts), "{text}");
        }
        assert_eq!(small("auto"), Ok(vec![1, 2, 3]));
        assert_eq!(on(1, 1)("auto"), Ok(vec![1, 2]));
        assert_eq!(small("1..N"), Ok(vec![1, 2]));
        for (bad, why) in [
            ("4..1", "backwards"),
            ("8..N", "backwards"),
            ("1..", "end"),
            ("..4", "end"),
            ("1..4:x1", "gets on"),
            ("1..4:+0", "gets on"),
            ("0..4:x2", "gets on"),
            ("1..4:2", "step"),
            ("1..4:", "step"),
            ("1..4:x", "empty"),
            ("1...4", "whole number"),
            ("1..9999", "at most"),
            ("1..5000", "more than"),
            ("xcores", "whole number"),
            ("9999cpus", "at most"),
            ("AUTO", "whole number"),
            ("1..2,,3", "empty"),
        ] {
            let error = small(bad).unwrap_err();
            assert!(error.contains(why), "{bad}: {error}");
        }
    }

    #[test]
    fn durations() {
        assert_eq!(duration("1s"), Ok(Duration::from_secs(1)));
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("200ms"), Ok(Duration::from_millis(200)));
        assert_eq!(duration("500us"), Ok(Duration::from_micros(500)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(duration("0s"), Ok(Duration::ZERO));
        assert!(positive_duration("0s").is_err());
        assert!(positive_duration("0.0ms").is_err());
        assert_eq!(window("10ms"), Ok(Duration::from_millis(10)));
        assert!(window("5ms").unwrap_err().contains("10ms"));
        for bad in [
            "",
            "s",
            "1",
            "1h",
            "-1s",
            "1.2.3s",
            "99999999999s",
            "1e3s",
            "inf",
            "nan s",
            ".s",
        ] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn hold_lists() {
        let us = Duration::from_micros;
        assert_eq!(holds("0,1us,100us,0s"), Ok(vec![us(0), us(1), us(100)]));
        assert_eq!(holds("1s"), Ok(vec![us(1_000_000)]));
        for bad in ["", "1", "1us,", "1parsec", "2s", "-1us", "0,,1us"] {
            assert!(holds(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn variant_lists() {
        let owned = |names: &[&str]| {
            names
                .iter()
                .map(|&name| name.to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(variants("hp,mutex,hp"), Ok(owned(&["hp", "mutex"])));
        assert!(variants("hp,").unwrap_err().contains("empty"));
        assert!(variants("").is_err());
        assert_eq!(known(&owned(&["hp", "refcount"]), None), Ok(()));
        let why = |name, workload| known(&owned(&["none", name]), workload).unwrap_err();
        assert!(why("hpp", None).contains("did you mean 'hp'"));
        assert!(why("crossbeam", None).contains("crossbeam-epoch"));
        assert!(why("zzzzzzzzzz", None).contains("known are none, hp"));
        let of_think = why("nosuch", Some(Workload::Think));
        assert!(of_think.contains("think has none, refcount"), "{of_think}");
        assert!(!of_think.contains("arc-swap"), "{of_think}");
    }

    #[test]
    fn distances() {
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("hp", "hp"), 0);
    }
}
