//! Floor 3, bench-suite. Owns which published table belongs to which workload, and the size of the machine that it was
//! measured on. May ask `published`.
//!
//! What comes from here is always marked *theirs*: another machine, another kernel, another day.

use crate::published;

/// A published table that a workload sets out to reproduce.
pub(crate) struct Theirs {
    /// The set.
    pub(crate) set: &'static published::Set,
    /// Change against their reference in per cent over threads.
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

impl Theirs {
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

/// The published set and table of a workload, its variant, its reference: one line each. Of `track` alone, whose threads
/// are theirs, pairs of tasks on a real kernel: `think` and `sched` are models, with simulated CPUs on their axis.
const TABLES: &[(&str, &str, &str, &str, &str)] =
    &[("track", "seed004", "speedup", "hp-mb", "refcount")];

/// What others published of what `workload` measures at `point`, as records name it.
pub(crate) fn of(workload: &str, point: &str) -> Option<Theirs> {
    // Theirs are threads of one process: processes share no mm.
    if point.contains("mode=processes") {
        return None;
    }
    let &(_, id, name, variant, reference) = TABLES
        .iter()
        .find(|(known, ..)| workload.split('-').next_back() == Some(known))?;
    Some(Theirs {
        set: published::find(id)?,
        speedup: published::table(id, name).series(0),
        variant,
        reference,
        machine: "2x EPYC 9654, 384 CPUs",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_exist_and_the_machine_is_that_of_the_set() {
        for &(workload, ..) in TABLES {
            let theirs = of(workload, "grab=idle").unwrap();
            assert!(theirs.speedup.len() > 1);
            for words in ["2 x AMD EPYC 9654", "96 cores a socket", "384 CPUs"] {
                assert!(theirs.set.machine.contains(words), "{words}");
            }
            assert_eq!(LARGE.cores, 2 * 96);
            assert!(theirs.machine.contains(&format!("{} CPUs", LARGE.cpus)));
        }
        assert!(of("think", "").is_none() && of("sched", "").is_none());
        assert!(of("read", "").is_none() && of("lazy-mm-track", "").is_some());
        assert!(of("track", "grab=idle, mode=processes").is_none());
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
