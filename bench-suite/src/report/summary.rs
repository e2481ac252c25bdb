//! Floor 3, bench-suite. Owns the way from records to points: repetitions folded into medians, grouped for comparison.
//! Touches nothing else. Failed and skipped runs never enter a median.

use super::record::{Record, Status};
use super::stats::{median, spread};
use crate::workloads::Workload;

/// Points that may be compared: same workload, same threads, same pauses.
#[derive(Debug)]
pub(crate) struct Group {
    /// Threads of the point.
    pub(crate) threads: usize,
    /// Readers and writers.
    pub(crate) shape: (usize, usize),
    /// How long readers hold, in nanoseconds, and how many threads sit idle beside; both 0 where there is no such
    /// thing.
    pub(crate) pauses: (u64, usize),
    /// One per variant, best first.
    pub(crate) points: Vec<Point>,
}

/// The repetitions of one variant at one point.
#[derive(Debug)]
pub(crate) struct Point {
    /// Name of the variant.
    pub(crate) variant: String,
    /// Its runs that count.
    records: Vec<Record>,
}

impl Point {
    /// The median of a figure over the runs that have it.
    pub(crate) fn median(&self, figure: impl Fn(&Record) -> Option<f64>) -> Option<f64> {
        median(&self.records.iter().filter_map(figure).collect::<Vec<_>>())
    }

    /// The spread of a figure.
    pub(crate) fn spread(&self, figure: impl Fn(&Record) -> Option<f64>) -> Option<f64> {
        spread(&self.records.iter().filter_map(figure).collect::<Vec<_>>())
    }

    /// Median operations per second.
    pub(crate) fn rate(&self) -> Option<f64> {
        self.median(|record| Some(record.ops_per_s))
    }

    /// Median time per operation.
    pub(crate) fn ns(&self) -> Option<f64> {
        self.median(|record| record.ns_per_op)
    }

    /// Median reads per second beside writes.
    pub(crate) fn reads(&self) -> Option<f64> {
        self.median(|record| record.reads_per_s)
    }

    /// Median of a parameter.
    pub(crate) fn param(&self, key: &str) -> Option<f64> {
        self.median(|record| record.number(key))
    }

    /// A parameter that is a word, from the first run that has it.
    pub(crate) fn word(&self, key: &str) -> Option<&str> {
        self.records
            .iter()
            .find_map(|record| record.params.get(key)?.as_str())
    }

    /// The notes of the runs that count, once each.
    pub(crate) fn notes(&self) -> Vec<&str> {
        let mut notes: Vec<&str> = self
            .records
            .iter()
            .map(|r| r.note.as_str())
            .filter(|note| !note.is_empty())
            .collect();
        notes.sort_unstable();
        notes.dedup();
        notes
    }
}

impl Group {
    /// The point of a variant.
    pub(crate) fn point(&self, variant: &str) -> Option<&Point> {
        self.points.iter().find(|point| point.variant == variant)
    }
}

/// The groups of `workload` in ascending order of threads, writers alone before mixed, short pauses before long.
pub(crate) fn groups(records: &[Record], workload: Workload) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for record in records
        .iter()
        .filter(|r| r.workload == workload && r.status == Status::Ok)
    {
        let count = |key| record.number(key).unwrap_or(0.0) as usize;
        let shape = (count("readers"), count("writers"));
        let pauses = (count("hold_ns") as u64, count("idle"));
        let at = groups
            .iter()
            .position(|g| g.threads == record.threads && g.shape == shape && g.pauses == pauses)
            .unwrap_or_else(|| {
                groups.push(Group {
                    threads: record.threads,
                    shape,
                    pauses,
                    points: Vec::new(),
                });
                groups.len() - 1
            });
        let points = &mut groups[at].points;
        let at = points
            .iter()
            .position(|p| p.variant == record.variant)
            .unwrap_or_else(|| {
                points.push(Point {
                    variant: record.variant.clone(),
                    records: Vec::new(),
                });
                points.len() - 1
            });
        points[at].records.push(record.clone());
    }
    groups.sort_by_key(|group| (group.threads, group.shape, group.pauses));
    let key = workload.kind().view.order;
    let order = |point: &Point| key(point).unwrap_or(f64::INFINITY);
    for group in &mut groups {
        group.points.sort_by(|a, b| order(a).total_cmp(&order(b)));
    }
    groups
}

/// `value / reference`, where both are known and the reference is not zero.
pub(crate) fn ratio(value: Option<f64>, reference: Option<f64>) -> Option<f64> {
    match (value, reference) {
        (Some(value), Some(reference)) if reference != 0.0 => Some(value / reference),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::record::tests::sample;

    #[test]
    fn medians_per_group_best_first_without_failures() {
        let mut records: Vec<Record> = [(0, 100), (1, 300), (2, 200)]
            .map(|(run, ops)| sample(Workload::Read, "hp", 1, run, ops))
            .into();
        records.extend((0..3).map(|run| sample(Workload::Read, "mutex", 1, run, 50)));
        records.push(sample(Workload::Read, "none", 1, 0, 800));
        records.push(sample(Workload::Read, "hp", 2, 0, 500));
        records.push(sample(Workload::Scan, "hp", 2, 0, 500));
        let mut failed = sample(Workload::Read, "hp", 1, 3, 1_000_000);
        failed.judge(1);
        records.push(failed);
        let groups = groups(&records, Workload::Read);
        assert_eq!(groups.iter().map(|g| g.threads).collect::<Vec<_>>(), [1, 2]);
        let names: Vec<_> = groups[0]
            .points
            .iter()
            .map(|p| p.variant.as_str())
            .collect();
        assert_eq!(names, ["none", "hp", "mutex"]);
        assert_eq!(groups[0].point("hp").unwrap().rate(), Some(200.0));
        assert_eq!(
            ratio(
                groups[0].points[2].rate(),
                groups[0].point("hp").unwrap().rate()
            ),
            Some(0.25)
        );
    }

    #[test]
    fn ratios_of_nothing_are_nothing() {
        assert_eq!(ratio(Some(1.0), None), None);
        assert_eq!(ratio(Some(1.0), Some(0.0)), None);
        assert_eq!(ratio(None, Some(1.0)), None);
    }
}
