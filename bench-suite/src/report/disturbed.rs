//! Floor 3, bench-suite. Owns the line under a table that says around how many runs the machine was not as it should be.
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

/// One line for all of them; none of an undisturbed point.
pub(crate) fn line(points: &[Point]) -> Option<String> {
    let all: usize = points.iter().map(|point| point.records().len()).sum();
    let said: Vec<String> = KINDS
        .iter()
        .filter_map(|(what, figure)| {
            let mut names = Vec::new();
            let mut figures = Vec::new();
            for point in points {
                let before = figures.len();
                figures.extend(point.records().iter().filter_map(figure));
                if figures.len() > before {
                    names.push(point.variant.as_str());
                }
            }
            let most = figures.iter().copied().max_by(f64::total_cmp)?;
            Some(format!(
                "{what} around {} of {all} runs, by up to {most:.0} % ({})",
                figures.len(),
                names.join(", ")
            ))
        })
        .collect();
    (!said.is_empty()).then(|| said.join("; "))
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
        let of = |records: &[_]| super::line(&groups(records, Workload::Read)[0].points);
        assert_eq!(of(&records), None);
        records[0].set("clock_changed_percent", -7.0);
        records[2].set("clock_changed_percent", 3.0);
        records[1].set("steal_percent", 2.0);
        assert_eq!(
            of(&records).as_deref(),
            Some("the clock changed around 2 of 6 runs, by up to 7 % (hp)"),
            "a little is stolen always"
        );
        records[1].set("stolen", true);
        let line = of(&records).expect("both");
        assert!(
            line.ends_with("; time was stolen around 1 of 6 runs, by up to 2 % (none)"),
            "{line}"
        );
    }
}
