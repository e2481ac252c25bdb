//! Floor 3, bench-suite. Owns the lines under a table that say around how many runs the machine was not as it should be.
//! Touches nothing else; `engine::weather` puts what is read here on the records.

use super::record::Record;
use super::summary::Point;

/// How much of it, in percent.
type Amount = fn(&Record) -> Option<f64>;

/// What happened to runs, as parameters of their records tell it.
const KINDS: [(&str, Amount); 2] = [
    ("the clock changed", |record| {
        record.number("clock_changed_percent").map(f64::abs)
    }),
    ("time was stolen", |record| {
        let stolen = record.params.contains_key("stolen");
        stolen.then(|| record.number("steal_percent")).flatten()
    }),
];

/// More variants than this are not named.
const NAMED: usize = 3;

/// A line for each kind; none of undisturbed points.
pub(crate) fn lines(points: &[Point]) -> Vec<String> {
    let all: usize = points.iter().map(|point| point.records().len()).sum();
    let line = |(what, amount): &(&str, Amount)| {
        let mut names = Vec::new();
        let mut amounts = Vec::new();
        for point in points {
            let before = amounts.len();
            amounts.extend(point.records().iter().filter_map(amount));
            if amounts.len() > before {
                names.push(point.variant.as_str());
            }
        }
        let most = amounts.iter().copied().max_by(f64::total_cmp)?;
        let count = amounts.len();
        let names = match names.len() {
            ..=NAMED => format!(" ({})", names.join(", ")),
            _ => String::new(),
        };
        Some(format!(
            "{what} around {count} of {all} runs, by up to {most:.0} %{names}"
        ))
    };
    KINDS.iter().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use crate::report::record::tests::sample;
    use crate::report::summary::groups;
    use crate::workloads::Workload;

    #[test]
    fn runs_are_counted_and_variants_named_once() {
        let mut records: Vec<_> = (0..3)
            .flat_map(|run| ["hp", "none"].map(|v| sample(Workload::Read, v, 1, run, 100)))
            .collect();
        let of = |records: &[_]| super::lines(&groups(records, Workload::Read)[0].points);
        assert!(of(&records).is_empty());
        records[0].set("clock_changed_percent", -7.0);
        records[2].set("clock_changed_percent", 3.0);
        records[1].set("steal_percent", 2.0);
        assert_eq!(
            of(&records),
            ["the clock changed around 2 of 6 runs, by up to 7 % (hp)"],
            "a little is stolen always"
        );
        records[1].set("stolen", true);
        assert_eq!(
            of(&records)[1],
            "time was stolen around 1 of 6 runs, by up to 2 % (none)"
        );
    }
}
