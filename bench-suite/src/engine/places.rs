//! Floor 3, bench-suite. Owns how near two CPUs are, as sysfs tells it. May read the tree that it is given.

use super::sysroot::Root;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// How near, from near to far.
pub(crate) const CLASSES: [&str; 4] = ["core", "ccx", "socket", "remote"];

/// Where a CPU is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cpu {
    /// Its number.
    pub(crate) cpu: usize,
    core: String,
    cache: String,
    package: String,
}

impl Cpu {
    /// Which of [`CLASSES`] the way to another CPU is.
    pub(crate) fn class(&self, other: &Cpu) -> usize {
        match () {
            () if self.package != other.package => 3,
            () if self.core == other.core => 0,
            () if self.cache == other.cache => 1,
            () => 2,
        }
    }
}

/// The CPUs in use, and what they add up to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Places {
    /// Numbers of the allowed CPUs.
    pub(crate) cpus: Vec<usize>,
    /// Sockets with an allowed CPU.
    pub(crate) sockets: usize,
    /// Cores in the fullest of them.
    pub(crate) cores_per_socket: usize,
    /// Cores that share the fullest last-level cache.
    pub(crate) cores_per_ccx: usize,
    /// Allowed CPUs in the fullest core.
    pub(crate) threads_per_core: usize,
}

/// Looks `cpus` up under `root` (`/sys/devices/system/cpu`). What is not told there counts as one core a CPU, one
/// cache a socket, one socket.
pub(crate) fn look(root: &Path, cpus: &[usize]) -> Vec<Cpu> {
    let place = |&cpu: &usize| {
        let folder = root.join(format!("cpu{cpu}"));
        let line = |file: &str| {
            let text = fs::read_to_string(folder.join(file)).ok()?;
            Some(text.trim().to_owned()).filter(|text| !text.is_empty())
        };
        let package = line("topology/physical_package_id").unwrap_or_default();
        // The last level that data has, whatever its number.
        let last = (0..8).rev().find_map(|index| {
            let cache = |file: &str| line(&format!("cache/index{index}/{file}"));
            if cache("type")? == "Instruction" {
                return None;
            }
            cache("shared_cpu_list")
        });
        Cpu {
            cpu,
            core: line("topology/thread_siblings_list").unwrap_or_else(|| cpu.to_string()),
            cache: last.unwrap_or_else(|| package.clone()),
            package,
        }
    };
    cpus.iter().map(place).collect()
}

impl Places {
    /// Adds them up.
    pub(crate) fn of(cpus: &[Cpu]) -> Self {
        let fullest = |outer: &dyn Fn(&Cpu) -> String, inner: &dyn Fn(&Cpu) -> String| {
            let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
            for cpu in cpus {
                let members = groups.entry(outer(cpu)).or_default();
                let member = inner(cpu);
                if !members.contains(&member) {
                    members.push(member);
                }
            }
            (
                groups.len(),
                groups.values().map(Vec::len).max().unwrap_or(1),
            )
        };
        let core = |cpu: &Cpu| cpu.core.clone();
        let (sockets, cores_per_socket) = fullest(&|cpu| cpu.package.clone(), &core);
        Places {
            cpus: cpus.iter().map(|cpu| cpu.cpu).collect(),
            sockets: sockets.max(1),
            cores_per_socket,
            cores_per_ccx: fullest(&|cpu| format!("{} {}", cpu.package, cpu.cache), &core).1,
            threads_per_core: fullest(&core, &|cpu| cpu.cpu.to_string()).1,
        }
    }
}

/// The CPUs that this process may use.
pub(crate) fn here() -> Vec<Cpu> {
    on(&Root::here())
}

/// The CPUs that may be used on the machine of `root`.
pub(crate) fn on(root: &Root) -> Vec<Cpu> {
    look(&root.path("sys/devices/system/cpu"), &root.allowed())
}

/// How many CPUs this process may use, and on how many cores they are.
pub(crate) fn allowed() -> (usize, usize) {
    let found = here();
    (found.len().max(1), cores(&found).len().max(1))
}

/// What comes first where lists of CPUs are put in order: their first number.
fn first(list: &str) -> (usize, &str) {
    let digits = list.split(|c: char| !c.is_ascii_digit()).next();
    (digits.and_then(|n| n.parse().ok()).unwrap_or(0), list)
}

/// The cores, each with its allowed CPUs: cache by cache, and socket by socket.
pub(crate) fn cores(cpus: &[Cpu]) -> Vec<Vec<usize>> {
    let mut sorted: Vec<&Cpu> = cpus.iter().collect();
    sorted.sort_by_key(|cpu| {
        (
            first(&cpu.package),
            first(&cpu.cache),
            first(&cpu.core),
            cpu.cpu,
        )
    });
    let mut cores: Vec<(&str, Vec<usize>)> = Vec::new();
    for cpu in sorted {
        match cores.last_mut() {
            Some((core, members)) if *core == cpu.core => members.push(cpu.cpu),
            _ => cores.push((&cpu.core, vec![cpu.cpu])),
        }
    }
    cores.into_iter().map(|(_, members)| members).collect()
}

/// Takes one of each group in turn, until all are taken.
fn in_turn<T>(groups: Vec<Vec<T>>) -> Vec<T> {
    let mut groups: Vec<_> = groups.into_iter().map(Vec::into_iter).collect();
    let mut all = Vec::new();
    loop {
        let before = all.len();
        all.extend(groups.iter_mut().filter_map(Iterator::next));
        if all.len() == before {
            return all;
        }
    }
}

/// The allowed CPUs: one of each core first, then the siblings.
pub(crate) fn core_first(cpus: &[Cpu]) -> Vec<usize> {
    in_turn(cores(cpus))
}

/// The allowed CPUs, each as far from those before as can be: the sockets in turn, within them the caches in turn, and
/// siblings last.
pub(crate) fn spread(cpus: &[Cpu]) -> Vec<usize> {
    let at = |number: usize| cpus.iter().find(|cpu| cpu.cpu == number);
    // By how many siblings come before it, so that cores are filled last.
    let mut layers: Vec<Vec<usize>> = Vec::new();
    for core in cores(cpus) {
        for (n, cpu) in core.into_iter().enumerate() {
            if layers.len() <= n {
                layers.push(Vec::new());
            }
            layers[n].push(cpu);
        }
    }
    let groups = |layer: &[usize], of: &dyn Fn(&Cpu) -> String| {
        let mut groups: Vec<(String, Vec<usize>)> = Vec::new();
        for &cpu in layer {
            let group = at(cpu).map(of).unwrap_or_default();
            match groups.iter_mut().find(|(name, _)| *name == group) {
                Some((_, members)) => members.push(cpu),
                None => groups.push((group, vec![cpu])),
            }
        }
        groups
            .into_iter()
            .map(|(_, members)| members)
            .collect::<Vec<_>>()
    };
    let layer = |layer: Vec<usize>| {
        let sockets = groups(&layer, &|cpu| cpu.package.clone());
        let apart = |socket: Vec<usize>| in_turn(groups(&socket, &|cpu| cpu.cache.clone()));
        in_turn(sockets.into_iter().map(apart).collect())
    };
    layers.into_iter().flat_map(layer).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(cpus: &[(usize, &str, &str, &str)]) -> (tempfile::TempDir, Vec<Cpu>) {
        let folder = tempfile::tempdir().unwrap();
        for (cpu, package, siblings, cache) in cpus {
            let at = folder.path().join(format!("cpu{cpu}"));
            fs::create_dir_all(at.join("topology")).unwrap();
            fs::create_dir_all(at.join("cache/index0")).unwrap();
            fs::create_dir_all(at.join("cache/index3")).unwrap();
            let put =
                |file: &str, text: &str| fs::write(at.join(file), format!("{text}\n")).unwrap();
            put("topology/physical_package_id", package);
            put("topology/thread_siblings_list", siblings);
            put("cache/index0/type", "Instruction");
            put("cache/index0/shared_cpu_list", "0-99");
            put("cache/index3/type", "Unified");
            put("cache/index3/shared_cpu_list", cache);
        }
        let numbers: Vec<usize> = cpus.iter().map(|cpu| cpu.0).collect();
        let found = look(folder.path(), &numbers);
        (folder, found)
    }

    /// Two sockets of two caches of two cores of two threads, numbered as Linux does; CPU 9 is not allowed.
    #[test]
    fn a_large_machine() {
        let mut cpus = Vec::new();
        let names: Vec<(String, String, String)> = (0..16)
            .map(|cpu| {
                let core = cpu % 8;
                let cache = core / 2 * 2;
                (
                    (core / 4).to_string(),
                    format!("{core},{}", core + 8),
                    format!("{cache}-{},{}-{}", cache + 1, cache + 8, cache + 9),
                )
            })
            .collect();
        for (cpu, (package, siblings, cache)) in
            names.iter().enumerate().filter(|(cpu, _)| *cpu != 9)
        {
            cpus.push((cpu, package.as_str(), siblings.as_str(), cache.as_str()));
        }
        let (_folder, found) = tree(&cpus);
        let at = |cpu: usize| found.iter().find(|c| c.cpu == cpu).unwrap();
        assert_eq!(at(0).class(at(8)), 0);
        assert_eq!(at(0).class(at(1)), 1);
        assert_eq!(at(0).class(at(2)), 2);
        assert_eq!(at(0).class(at(15)), 3);
        let places = Places::of(&found);
        assert_eq!(
            (
                places.sockets,
                places.cores_per_socket,
                places.cores_per_ccx,
                places.threads_per_core
            ),
            (2, 4, 2, 2)
        );
        assert_eq!(
            core_first(&found),
            [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14, 15]
        );
        assert_eq!(
            cores(&found),
            [
                vec![0, 8],
                vec![1],
                vec![2, 10],
                vec![3, 11],
                vec![4, 12],
                vec![5, 13],
                vec![6, 14],
                vec![7, 15]
            ]
        );
        assert_eq!(
            spread(&found),
            [0, 4, 2, 6, 1, 5, 3, 7, 8, 12, 10, 14, 11, 13, 15]
        );
    }

    /// Sparse numbers, siblings side by side, caches whose CPUs are not in a row.
    #[test]
    fn numbers_that_are_not_in_order() {
        let (_folder, found) = tree(&[
            (2, "0", "2-3", "2-3,20-21"),
            (3, "0", "2-3", "2-3,20-21"),
            (10, "0", "10-11", "10-11"),
            (11, "0", "10-11", "10-11"),
            (20, "0", "20-21", "2-3,20-21"),
            (21, "0", "20-21", "2-3,20-21"),
        ]);
        assert_eq!(core_first(&found), [2, 20, 10, 3, 21, 11]);
        assert_eq!(cores(&found), [[2, 3], [20, 21], [10, 11]]);
        assert_eq!(spread(&found), [2, 10, 20, 3, 11, 21]);
    }

    #[test]
    fn a_machine_that_tells_nothing() {
        let found = look(Path::new("/no/such/place"), &[0, 3]);
        let places = Places::of(&found);
        assert_eq!(
            (
                places.sockets,
                places.cores_per_socket,
                places.cores_per_ccx,
                places.threads_per_core
            ),
            (1, 2, 2, 1)
        );
        assert_eq!(found[0].class(&found[1]), 1);
    }
}
