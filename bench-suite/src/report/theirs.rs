//! Floor 3, bench-suite. Owns which published table belongs to which workload and points, and the size of the machine
//! that it was measured on. May ask `published`, and look at points.
//!
//! What comes from here is always marked *theirs*: another machine, another kernel, another day.

use super::summary::{Group, Sweep};
use crate::published::{self, Table};

/// A published table that a workload sets out to reproduce.
pub(crate) struct Theirs {
    /// The set.
    pub(crate) set: &'static published::Set,
    /// Their variant's figure, in the unit of the workload's, over what the sweep goes over; nothing if they published
    /// changes only.
    pub(crate) figures: Vec<(u64, f64)>,
    /// Change against their reference in per cent, over the same.
    pub(crate) speedup: Vec<(u64, f64)>,
    /// Their variant, in our names, and what theirs is a change against.
    pub(crate) variant: &'static str,
    /// Their reference, in our names.
    pub(crate) reference: &'static str,
    /// Their machine in a few words.
    pub(crate) machine: &'static str,
}

/// How large a machine is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Topology {
    /// Sockets.
    pub(crate) sockets: usize,
    /// Cores of all sockets.
    pub(crate) cores: usize,
    /// Hardware threads of all cores.
    pub(crate) cpus: usize,
}

/// Published figures that belong to names, not to places on an axis.
#[derive(Debug)]
pub(crate) struct Named {
    /// The set.
    pub(crate) set: &'static published::Set,
    /// Its table.
    pub(crate) table: &'static Table,
    /// Its names with their main figure, in the unit of the workload's.
    pub(crate) figures: Vec<(String, f64)>,
}

impl Named {
    /// What stands over the table or below the picture.
    pub(crate) fn caveat(&self) -> String {
        let machine = self.table.machine.as_ref();
        format!(
            "Theirs ({}), {}: {}; not measured here, another machine and kernel.",
            self.set.id,
            self.set.unit,
            machine.unwrap_or(&self.set.machine)
        )
    }

    /// The table: a heading, then its rows.
    pub(crate) fn rows(&self) -> Vec<Vec<String>> {
        let heading = std::iter::once(&self.table.key).chain(&self.table.columns);
        let mut rows: Vec<Vec<String>> = vec![heading.cloned().collect()];
        rows.extend(self.table.rows.iter().map(|row| {
            let values = row.values.iter();
            let cell = |value: &Option<f64>| value.map_or("-".to_owned(), |v| v.to_string());
            std::iter::once(format!("theirs: {}", row.key))
                .chain(values.map(cell))
                .collect()
        }));
        rows
    }
}

impl Theirs {
    /// Their figure at a place.
    pub(crate) fn figure(&self, place: u64) -> Option<f64> {
        find(&self.figures, place)
    }

    /// Their variant's figure as a ratio to that of their reference.
    pub(crate) fn change(&self, place: u64) -> Option<f64> {
        Some(1.0 + find(&self.speedup, place)? / 100.0)
    }

    /// What a picture or a table says beside them.
    pub(crate) fn caveat(&self, point: &str) -> String {
        let mut text = format!(
            "Theirs ({}): {}, {}; not measured here, another machine and kernel.",
            self.set.id, self.set.source.author, self.machine
        );
        if point.contains("grab=always") {
            text.push_str(
                " Here every block grabs (grab=always), theirs only those that leave a CPU idle: their fall past the \
                 cores has no counterpart here.",
            );
        }
        text
    }
}

impl Topology {
    /// Whether something seen on `other` may be out of reach here.
    pub(crate) fn smaller_than(self, other: Topology) -> bool {
        self.sockets < other.sockets || self.cores < other.cores || self.cpus < other.cpus
    }

    /// `2 sockets, 192 cores and 384 CPUs`.
    pub(crate) fn words(self) -> String {
        use super::human::plural;
        format!(
            "{}, {} and {}",
            plural(self.sockets, "socket"),
            plural(self.cores, "core"),
            plural(self.cpus, "CPU")
        )
    }
}

/// The machine of the table whose knee the reports speak of.
pub(crate) const LARGE: Topology = Topology {
    sockets: 2,
    cores: 192,
    cpus: 384,
};

fn find(series: &[(u64, f64)], place: u64) -> Option<f64> {
    let at = series.iter().find(|&&(x, _)| x == place);
    at.map(|&(_, y)| y)
}

/// A published table over numbers, and the workload that it belongs to.
struct Known {
    workload: &'static str,
    /// The parameter over which it goes, if not over threads.
    over: Option<&'static str>,
    id: &'static str,
    table: &'static str,
    /// The row of their reference; if none, the values are changes already.
    base: Option<&'static str>,
    variant: &'static str,
    reference: &'static str,
    machine: &'static str,
    /// Words of points that theirs have nothing to do with.
    unlike: &'static [&'static str],
}

/// Of `track` alone, whose threads are theirs, pairs of tasks on a real kernel: `think` and `sched` are models, with
/// simulated CPUs on their axis. Of `futex-hash`, whose words are the kernel's: `phash` is a model.
const TABLES: &[Known] = &[
    Known {
        workload: "track",
        over: None,
        id: "seed004",
        table: "speedup",
        base: None,
        variant: "hp-mb",
        reference: "refcount",
        machine: "2x EPYC 9654, 384 CPUs",
        // Theirs are threads of one process: processes share no mm.
        unlike: &["mode=processes"],
    },
    Known {
        workload: "futex-hash",
        over: Some("buckets"),
        id: "seed000",
        table: "buckets",
        base: Some("global 65536"),
        variant: "private",
        reference: "global",
        machine: "256 CPUs, 240 threads",
        unlike: &["churn", "immutable"],
    },
];

/// What others published of what `workload` measures over `sweep`.
pub(crate) fn of(workload: &str, sweep: &Sweep<'_>) -> Option<Theirs> {
    known(workload, sweep.over, sweep.point())
}

fn known(workload: &str, over: Option<&str>, point: &str) -> Option<Theirs> {
    let known = TABLES.iter().find(|known| {
        let named = workload
            .strip_suffix(known.workload)
            .is_some_and(|before| before.is_empty() || before.ends_with('-'));
        named && known.over == over
    })?;
    if known.unlike.iter().any(|word| point.contains(word)) {
        return None;
    }
    let table = published::table(known.id, known.table);
    let values = table.series(0);
    let (figures, speedup) = match known.base {
        None => (Vec::new(), values),
        Some(base) => {
            let base = table.value(base, 0)?;
            let change = |&(x, figure): &(u64, f64)| (x, (figure / base - 1.0) * 100.0);
            let changes = values.iter().map(change).collect();
            (values, changes)
        }
    };
    Some(Theirs {
        set: published::find(known.id)?,
        figures,
        speedup,
        variant: known.variant,
        reference: known.reference,
        machine: known.machine,
    })
}

/// A published table over names, and where it belongs.
struct Names {
    workload: &'static str,
    /// Theirs; 0: any.
    threads: usize,
    /// A parameter of the point, as it says it; or none.
    word: &'static str,
    /// Words of points that theirs have nothing to do with.
    unlike: &'static [&'static str],
    id: &'static str,
    table: &'static str,
    /// The main figure, and what makes the workload's unit of it.
    column: &'static str,
    unit: f64,
}

const NAMED: &[Names] = &[
    Names {
        workload: "whack",
        threads: 24,
        word: "writes=100000",
        unlike: &[],
        id: "seed001",
        table: "R520",
        column: "us",
        unit: 1e3,
    },
    Names {
        workload: "whack",
        threads: 64,
        word: "writes=100000",
        unlike: &[],
        id: "seed001",
        table: "32 CPUs",
        column: "mean",
        unit: 1e3,
    },
    Names {
        workload: "schbench",
        threads: 0,
        word: "",
        unlike: &[],
        id: "seed003",
        table: "256 cores",
        column: "requests/s",
        unit: 1.0,
    },
    Names {
        workload: "rcuscale",
        threads: 0,
        word: "",
        // Theirs are grace periods, neither callbacks nor objects.
        unlike: &["gp_async", "kfree"],
        id: "external-hazptr",
        table: "grace periods",
        column: "average",
        unit: 1e3,
    },
];

/// What others published beside the variants of `group`.
pub(crate) fn named(workload: &str, group: &Group) -> Option<Named> {
    let named = NAMED.iter().find(|named| {
        let told = named.word.is_empty() || group.point.split(", ").any(|part| part == named.word);
        let like = !named.unlike.iter().any(|word| group.point.contains(word));
        named.workload == workload && [0, group.threads].contains(&named.threads) && told && like
    })?;
    let table = published::table(named.id, named.table);
    let mut columns = table.columns.iter();
    let column = columns.position(|head| head == named.column)?;
    let figure =
        |row: &published::Row| Some((row.key.to_string(), row.values[column]? * named.unit));
    Some(Named {
        set: published::find(named.id)?,
        table,
        figures: table.rows.iter().filter_map(figure).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_exist_and_the_machine_is_that_of_the_set() {
        for each in TABLES {
            let theirs = known(each.workload, each.over, "grab=idle").unwrap();
            assert!(theirs.speedup.len() > 1);
        }
        let theirs = known("track", None, "").unwrap();
        for words in ["2 x AMD EPYC 9654", "96 cores a socket", "384 CPUs"] {
            assert!(theirs.set.machine.contains(words), "{words}");
        }
        assert_eq!(LARGE.cores, 2 * 96);
        assert!(theirs.machine.contains(&format!("{} CPUs", LARGE.cpus)));
        let of = |workload| known(workload, None, "");
        assert!(of("think").is_none() && of("sched").is_none());
        assert!(of("read").is_none() && of("lazy-mm-track").is_some());
        assert!(known("track", None, "grab=idle, mode=processes").is_none());
    }

    /// Their global hash and each size are one table: the change is between them.
    #[test]
    fn buckets_are_figures_and_changes() {
        let over = Some("buckets");
        let theirs = known("futex-hash", over, "futexes=1024").unwrap();
        assert_eq!(theirs.figure(512), Some(1_634_940.0));
        let change = theirs.change(512).unwrap();
        assert!((change - 1_634_940.0 / 1_868_129.33).abs() < 1e-9);
        assert_eq!((theirs.figure(3), theirs.change(3)), (None, None));
        for words in ["256 CPUs", "240 threads"] {
            assert!(theirs.set.machine.contains(words) && theirs.machine.contains(words));
        }
        assert!(known("futex-hash", over, "churn=5ms, futexes=1024").is_none());
        assert!(known("futex-hash", None, "").is_none() && known("phash", over, "").is_none());
    }

    #[test]
    fn names_are_beside_the_point_that_they_were_measured_at() {
        let group = |threads, point: &str| Group {
            point: point.to_owned(),
            rest: String::new(),
            place: None,
            threads,
            shape: (threads, 0),
            pauses: (0, 0),
            points: Vec::new(),
        };
        let seed = "bytes=4294967296, writes=100000";
        let of = |threads, point| named("whack", &group(threads, point));
        let first = of(24, seed).unwrap();
        assert_eq!(first.figures[1], ("rt".to_owned(), 17_210_953_000.0));
        assert_eq!(first.rows()[2][..2], ["theirs: rt", "17210953"]);
        assert!(first.caveat().contains("R520"));
        let second = of(64, seed).unwrap();
        assert_eq!(
            (second.figures.len(), second.rows()[5][4].as_str()),
            (5, "-")
        );
        assert!(of(24, "writes=1000000").is_none() && of(2, seed).is_none());
        assert!(named("rwsem", &group(24, seed)).is_none());
        let third = named("schbench", &group(3, "")).unwrap();
        assert_eq!(third.figures[0].1, 1_701_947.02);
        // Microseconds there, nanoseconds here.
        let fourth = named("rcuscale", &group(2, "writer_holdoff_us=5")).unwrap();
        assert_eq!(fourth.figures[1], ("shazptr".to_owned(), 846.0));
        for other in ["gp_async_max=50", "kfree_alloc_num=1, kfree_loops=1"] {
            assert!(named("rcuscale", &group(2, other)).is_none(), "{other}");
        }
    }

    #[test]
    fn smaller_in_one_way_is_smaller() {
        let here = |sockets, cores, cpus| Topology {
            sockets,
            cores,
            cpus,
        };
        assert!(here(1, 2, 2).smaller_than(LARGE));
        assert!(here(1, 256, 512).smaller_than(LARGE));
        assert!(!LARGE.smaller_than(LARGE));
        assert!(!here(2, 192, 768).smaller_than(LARGE));
        assert_eq!(here(1, 2, 2).words(), "1 socket, 2 cores and 2 CPUs");
    }
}
