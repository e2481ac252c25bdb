//! Floor 3, bench-suite. Owns the values of options: lists, durations, names, and what is said about bad ones.
//! May ask the registry for names.

use crate::schemes;
use std::time::Duration;

/// More threads than this are a mistake.
const MOST_THREADS: usize = 8192;

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

/// `1,2,4`: thread counts. Whether zero makes sense depends on the workload.
pub(crate) fn counts(text: &str) -> Result<Vec<usize>, String> {
    list(text, crew)
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

/// `a,b`: names from the registry; repeated ones count once.
pub(crate) fn variants(text: &str) -> Result<Vec<&'static str>, String> {
    let mut list = Vec::new();
    for part in text.split(',') {
        if part.is_empty() {
            return Err("an empty entry".to_owned());
        }
        let about = schemes::find(part).ok_or_else(|| unknown_variant(part))?;
        if !list.contains(&about.name) {
            list.push(about.name);
        }
    }
    Ok(list)
}

fn unknown_variant(name: &str) -> String {
    let nearest = schemes::listed()
        .map(|about| (distance(name, about.name), about.name))
        .min();
    match nearest {
        Some((distance, nearest)) if distance <= 1 + name.chars().count() / 3 => {
            format!(
                "unknown variant '{name}', did you mean '{nearest}'? (hpbench --list shows all)"
            )
        }
        _ => {
            let names: Vec<_> = schemes::listed().map(|about| about.name).collect();
            format!("unknown variant '{name}', known are {}", names.join(", "))
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
    fn durations() {
        assert_eq!(duration("1s"), Ok(Duration::from_secs(1)));
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("200ms"), Ok(Duration::from_millis(200)));
        assert_eq!(duration("500us"), Ok(Duration::from_micros(500)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(duration("0s"), Ok(Duration::ZERO));
        assert!(positive_duration("0s").is_err());
        assert!(positive_duration("0.0ms").is_err());
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
        assert_eq!(variants("hp,mutex,hp"), Ok(vec!["hp", "mutex"]));
        assert!(variants("hp,").unwrap_err().contains("empty"));
        assert!(variants("").is_err());
        assert!(variants("hpp").unwrap_err().contains("did you mean 'hp'"));
        assert!(
            variants("crossbeam")
                .unwrap_err()
                .contains("crossbeam-epoch")
        );
        assert!(
            variants("zzzzzzzzzz")
                .unwrap_err()
                .contains("known are none, hp")
        );
    }

    #[test]
    fn distances() {
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("hp", "hp"), 0);
    }
}
