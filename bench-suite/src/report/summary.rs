//! Floor 3, bench-suite. Owns the way from records to points: repetitions folded into medians, grouped for comparison.
//! Touches nothing else. Failed and skipped runs never enter a median.

use super::judge::Judged;
use super::record::{Record, Status};
use super::stats::{median, spread};
use super::view::View;
use crate::workloads::Workload;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Points that may be compared: same workload, same threads, same pauses, and the same of everything else.
#[derive(Debug)]
pub(crate) struct Group {
    /// All that tells points apart beside threads and pauses, in words, as records carry it; mostly empty.
    pub(crate) point: String,
    /// The same without the parameter that a sweep of the workload may go over.
    pub(crate) rest: String,
    /// The value of that parameter, where it is a number.
    pub(crate) place: Option<u64>,
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
    /// Its main figure against the reference, if that was asked for.
    pub(crate) judged: Judged,
}

impl Point {
    /// The median of a figure over the runs that have it.
    pub(crate) fn median(&self, figure: impl Fn(&Record) -> Option<f64>) -> Option<f64> {
        median(&self.records.iter().filter_map(figure).collect::<Vec<_>>())
    }

    /// A figure of each run that has it.
    pub(crate) fn runs(&self, figure: impl Fn(&Point) -> Option<f64>) -> Vec<f64> {
        let alone = |record: &Record| Point {
            variant: self.variant.clone(),
            records: vec![record.clone()],
            judged: Judged::default(),
        };
        let figures = self.records.iter().filter_map(|r| figure(&alone(r)));
        figures.filter(|figure| figure.is_finite()).collect()
    }

    /// The runs themselves.
    pub(crate) fn records(&self) -> &[Record] {
        &self.records
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
    /// What stands over its table: the point in the workload's words, and all else that tells it apart.
    pub(crate) fn title(&self, view: &View) -> String {
        let mut title = (view.title)(self);
        if !self.point.is_empty() {
            title.push_str(", ");
            title.push_str(&self.point);
        }
        title
    }

    /// The point of a variant.
    pub(crate) fn point(&self, variant: &str) -> Option<&Point> {
        self.points.iter().find(|point| point.variant == variant)
    }
}

/// What else a run was made with: runs that differ in it are never put together. All but the rung, which is a variant's
/// own, are those of a command.
const CONDITIONS: [&str; 4] = ["pin", "build", "quick", "time_s"];

/// The conditions in which some records differ, workload by workload.
pub(crate) struct Apart {
    /// Those of the runs of a workload.
    keys: BTreeSet<(&'static str, &'static str)>,
    /// Variants of a workload that ran on several rungs.
    rungs: BTreeSet<(&'static str, String)>,
}

impl Apart {
    /// Of runs that count.
    pub(crate) fn of(records: &[Record]) -> Self {
        let mut values: BTreeMap<_, BTreeSet<String>> = BTreeMap::new();
        let mut rungs: BTreeMap<_, BTreeSet<String>> = BTreeMap::new();
        for record in records.iter().filter(|r| r.status == Status::Ok) {
            let workload = record.workload.name();
            for key in CONDITIONS {
                let value = in_words(record, key);
                values.entry((workload, key)).or_default().insert(value);
            }
            if record.params.contains_key(RUNG) {
                let variant = (workload, record.variant.clone());
                let value = in_words(record, RUNG);
                rungs.entry(variant).or_default().insert(value);
            }
        }
        values.retain(|_, different| different.len() > 1);
        rungs.retain(|_, different| different.len() > 1);
        Apart {
            keys: values.into_keys().collect(),
            rungs: rungs.into_keys().collect(),
        }
    }

    /// Those of a record in which others differ: `pin=none, build=release`; mostly empty.
    pub(crate) fn words(&self, record: &Record) -> String {
        let workload = record.workload.name();
        let differs = |key: &&str| self.keys.contains(&(workload, *key));
        let variant = (workload, record.variant.clone());
        let rung = self.rungs.contains(&variant).then_some(RUNG);
        let keys = CONDITIONS.into_iter().filter(differs).chain(rung);
        let words: Vec<String> = keys.map(|key| in_words(record, key)).collect();
        words.join(", ")
    }
}

/// Names the rung that a library took.
const RUNG: &str = "rung";

fn in_words(record: &Record, key: &str) -> String {
    match record.params.get(key) {
        Some(Value::String(word)) => format!("{key}={word}"),
        Some(value) => format!("{key}={value}"),
        None => format!("{key} not told"),
    }
}

/// A point in words, without some parameters.
pub(crate) fn without(point: &str, names: &[&str]) -> String {
    let named = |part: &&str| {
        let name = part.split_once('=').map(|(name, _)| name);
        !name.is_some_and(|name| names.contains(&name))
    };
    point
        .split(", ")
        .filter(named)
        .collect::<Vec<_>>()
        .join(", ")
}

/// The groups of `workload` in ascending order of the parameter that a sweep may go over, then of threads, writers alone
/// before mixed, short pauses before long.
pub(crate) fn groups(records: &[Record], workload: Workload) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let over = workload.kind().view.plot.over;
    let apart = Apart::of(records);
    for record in records
        .iter()
        .filter(|r| r.workload == workload && r.status == Status::Ok)
    {
        let count = |key| record.number(key).unwrap_or(0.0) as usize;
        let shape = (count("readers"), count("writers"));
        let pauses = (count("hold_ns") as u64, count("idle"));
        let parts = [
            record.text("point").unwrap_or_default(),
            &apart.words(record),
        ];
        let point = parts.map(str::to_owned).into_iter();
        let point: Vec<String> = point.filter(|part| !part.is_empty()).collect();
        let point = point.join(", ");
        let same = |g: &Group| {
            (g.threads, g.shape, g.pauses, &g.point) == (record.threads, shape, pauses, &point)
        };
        let at = groups.iter().position(same).unwrap_or_else(|| {
            groups.push(Group {
                point: point.clone(),
                rest: without(&point, over.as_slice()),
                place: over.and_then(|name| record.params.get(name)?.as_u64()),
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
                    judged: Judged::default(),
                });
                points.len() - 1
            });
        points[at].records.push(record.clone());
    }
    groups.sort_by(|a, b| {
        // What has no number is last.
        let place = |g: &Group| (g.place.is_none(), g.place);
        let words = a.rest.cmp(&b.rest).then(place(a).cmp(&place(b)));
        let rest = |g: &Group| (g.threads, g.shape, g.pauses);
        let words = words.then(a.point.cmp(&b.point));
        words.then(rest(a).cmp(&rest(b)))
    });
    let key = workload.kind().view.order;
    let order = |point: &Point| key(point).unwrap_or(f64::INFINITY);
    for group in &mut groups {
        group.points.sort_by(|a, b| order(a).total_cmp(&order(b)));
    }
    groups
}

/// The groups of each distinct `point`, in their order: what a table, and a family of plots, is made of.
pub(crate) fn families(groups: &[Group]) -> impl Iterator<Item = &[Group]> {
    groups.chunk_by(|a, b| a.point == b.point)
}

/// Groups over which the number of threads alone changes, or one parameter alone.
pub(crate) struct Sweep<'a> {
    /// In ascending order of what changes.
    pub(crate) groups: Vec<&'a Group>,
    /// The parameter that changes; if none, threads do.
    pub(crate) over: Option<&'static str>,
}

impl Sweep<'_> {
    /// The variants, in the order in which the groups name them.
    pub(crate) fn variants(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for point in self.groups.iter().flat_map(|group| &group.points) {
            if !names.contains(&point.variant.as_str()) {
                names.push(&point.variant);
            }
        }
        names
    }

    /// The point in words, without what changes.
    pub(crate) fn point(&self) -> &str {
        self.groups.first().map_or("", |group| match self.over {
            Some(_) => &group.rest,
            None => &group.point,
        })
    }

    /// Where one of its groups is on the axis.
    pub(crate) fn place(&self, group: &Group) -> u64 {
        match self.over {
            Some(_) => group.place.unwrap_or(0),
            None => group.threads as u64,
        }
    }

    /// Where all of them are.
    pub(crate) fn places(&self) -> Vec<u64> {
        self.groups.iter().map(|group| self.place(group)).collect()
    }

    /// What the axis counts.
    pub(crate) fn axis(&self, view: &View) -> &'static str {
        self.over.unwrap_or(view.plot.threads_axis)
    }

    /// What does not change: pauses, and readers beside writers. Empty where there is nothing to say.
    pub(crate) fn what(&self) -> String {
        let Some(first) = self.groups.first() else {
            return String::new();
        };
        let mut parts = Vec::new();
        if self.over.is_some() {
            parts.push(super::human::plural(first.threads, "thread"));
        }
        if let ((1.., 1..), (0, 0)) = (first.shape, first.pauses) {
            parts.push("readers beside writers".to_owned());
        }
        if first.pauses.0 > 0 {
            parts.push(format!(
                "hold {}",
                super::human::nanoseconds(first.pauses.0 as f64)
            ));
        }
        if first.pauses.1 > 0 {
            parts.push(format!("{} idle", first.pauses.1));
        }
        if !self.point().is_empty() {
            parts.push(self.point().to_owned());
        }
        parts.join(", ")
    }
}

/// The groups as sweeps: over threads, then over the parameter that the workload names, if `over` does. Single groups
/// are sweeps of one, unless a longer one has them. Writers alone and writers beside readers are two, and so are groups
/// that differ in more than what the sweep goes over.
pub(crate) fn sweeps<'a>(groups: &'a [Group], over: Option<&'static str>) -> Vec<Sweep<'a>> {
    let kind = |g: &Group| (g.shape.0 > 0, g.shape.1 > 0);
    let mut all = collect(groups, None, |a, b| {
        (kind(a), a.pauses, &a.point) == (kind(b), b.pauses, &b.point)
    });
    let along = along(groups, over);
    all.retain(|sweep| {
        let has = |long: &Sweep<'_>| {
            long.groups
                .iter()
                .any(|g| std::ptr::eq(*g, sweep.groups[0]))
        };
        sweep.groups.len() > 1 || !along.iter().any(has)
    });
    all.extend(along);
    all
}

/// The sweeps over the parameter `over`, of two groups and more.
pub(crate) fn along<'a>(groups: &'a [Group], over: Option<&'static str>) -> Vec<Sweep<'a>> {
    if over.is_none() {
        return Vec::new();
    }
    let placed = groups.iter().filter(|group| group.place.is_some());
    let all = collect(placed, over, |a, b| {
        (a.threads, a.shape, a.pauses, &a.rest) == (b.threads, b.shape, b.pauses, &b.rest)
    });
    let long = |sweep: &Sweep<'_>| sweep.groups.len() > 1;
    all.into_iter().filter(long).collect()
}

fn collect<'a>(
    groups: impl IntoIterator<Item = &'a Group>,
    over: Option<&'static str>,
    same: impl Fn(&Group, &Group) -> bool,
) -> Vec<Sweep<'a>> {
    let mut all: Vec<Sweep<'a>> = Vec::new();
    for group in groups {
        let fits = |sweep: &&mut Sweep<'_>| {
            same(sweep.groups[0], group) && !sweep.places().contains(&sweep.place(group))
        };
        match all.iter_mut().find(fits) {
            Some(sweep) => sweep.groups.push(group),
            None => all.push(Sweep {
                groups: vec![group],
                over,
            }),
        }
    }
    all
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
    fn points_in_words_keep_apart() {
        let with = |point: &str, threads, ops| {
            let mut record = sample(Workload::Read, "hp", threads, 0, ops);
            record.set("point", point);
            record
        };
        let records = [
            with("grab=idle", 1, 1),
            with("grab=always", 2, 2),
            with("grab=always", 1, 3),
            with("grab=idle", 1, 5),
        ];
        let groups = groups(&records, Workload::Read);
        let families: Vec<Vec<_>> = families(&groups)
            .map(|family| {
                family
                    .iter()
                    .map(|g| (g.point.as_str(), g.threads))
                    .collect()
            })
            .collect();
        assert_eq!(
            families,
            [
                vec![("grab=always", 1), ("grab=always", 2)],
                vec![("grab=idle", 1)]
            ]
        );
        let sweeps = sweeps(&groups, None);
        assert_eq!(sweeps.len(), 2);
        assert_eq!(sweeps[0].places(), [1, 2]);
        assert_eq!(sweeps[1].what(), "grab=idle");
        assert_eq!(groups[2].points[0].runs(Point::rate), [1.0, 5.0]);
    }

    /// A run of another build, or placed in another way, is no repetition.
    #[test]
    fn conditions_keep_apart() {
        let with = |variant: &str, key: &str, value: &str, ops| {
            let mut record = sample(Workload::Read, variant, 1, 0, ops);
            record.set(key, value);
            record
        };
        for (key, title) in [
            ("pin", ["pin=core-first", "pin=none"]),
            ("build", ["build=debug", "build=release"]),
            ("rung", ["rung=fence", "rung=rseq"]),
        ] {
            let value = |n: usize| title[n].split_once('=').unwrap().1;
            let mut records = vec![
                with("hp", key, value(0), 1),
                with("hp", key, value(1), 100),
                with("hp", key, value(1), 300),
            ];
            let groups_of = groups(&records, Workload::Read);
            let points: Vec<&str> = groups_of.iter().map(|g| g.point.as_str()).collect();
            assert_eq!(points, title);
            assert_eq!(groups_of[1].points[0].rate(), Some(200.0));
            // What is the same everywhere is in no title.
            records.remove(0);
            assert_eq!(groups(&records, Workload::Read)[0].point, "");
        }
        // Of different variants the rungs may differ.
        let records = [
            with("hp", "rung", "fence", 1),
            with("hp-asym", "rung", "rseq", 1),
        ];
        assert_eq!(groups(&records, Workload::Read).len(), 1);
    }

    #[test]
    fn readers_beside_writers_are_a_sweep_of_their_own() {
        let with = |readers: usize, writers: usize| {
            let mut record = sample(Workload::Write, "hp", readers + writers, 0, 1);
            record.set("readers", readers);
            record.set("writers", writers);
            record
        };
        let records = [
            with(0, 1),
            with(1, 1),
            with(0, 2),
            with(0, 4),
            with(1, 3),
            with(2, 2),
        ];
        let groups = groups(&records, Workload::Write);
        let sweeps = sweeps(&groups, None);
        let threads: Vec<_> = sweeps.iter().map(Sweep::places).collect();
        assert_eq!(threads, [vec![1, 2, 4], vec![2, 4], vec![4]]);
    }

    /// Numbers in the order of numbers; what is no number has no place among them.
    #[test]
    fn a_parameter_is_swept_as_threads_are() {
        let with = |buckets: serde_json::Value, threads| {
            let mut record = sample(Workload::Phash, "hp", threads, 0, 1);
            record.set("point", format!("buckets={buckets}, futexes=8"));
            record.set("buckets", buckets);
            record
        };
        let mut records = Vec::new();
        for buckets in [16, 2, 1024] {
            records.extend([1, 2].map(|threads| with(buckets.into(), threads)));
        }
        records.push(with("auto".into(), 1));
        let groups = groups(&records, Workload::Phash);
        let over = Workload::Phash.kind().view.plot.over;
        let told = |sweep: &Sweep<'_>| (sweep.what(), sweep.places());
        let all: Vec<_> = sweeps(&groups, over).iter().map(told).collect();
        let threads = |n: u64| (format!("buckets={n}, futexes=8"), vec![1, 2]);
        let auto = ("buckets=\"auto\", futexes=8".to_owned(), vec![1]);
        let buckets = |words: &str| (format!("{words}, futexes=8"), vec![2, 16, 1024]);
        assert_eq!(
            all,
            [
                threads(2),
                threads(16),
                threads(1024),
                auto,
                buckets("1 thread"),
                buckets("2 threads")
            ]
        );
        // Of one size there is no such sweep.
        assert!(along(&groups[..2], over).is_empty());
        assert_eq!(sweeps(&groups[..2], over).len(), 1);
    }

    #[test]
    fn ratios_of_nothing_are_nothing() {
        assert_eq!(ratio(Some(1.0), None), None);
        assert_eq!(ratio(Some(1.0), Some(0.0)), None);
        assert_eq!(ratio(None, Some(1.0)), None);
    }
}
