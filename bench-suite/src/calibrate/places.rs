//! Floor 3, bench-suite. Owns how near two CPUs are, as sysfs tells it. May read the tree that it is given.

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

/// How many CPUs this process may use, and on how many cores they are.
pub(crate) fn allowed() -> (usize, usize) {
    let cpus = crate::engine::pin::allowed();
    let found = look(Path::new("/sys/devices/system/cpu"), &cpus);
    let mut cores: Vec<&str> = found.iter().map(|cpu| cpu.core.as_str()).collect();
    cores.sort_unstable();
    cores.dedup();
    (cpus.len().max(1), cores.len().max(1))
}

/// The allowed CPUs in the order in which threads take them: one of each core first, then the siblings.
pub(crate) fn core_first(cpus: &[Cpu]) -> Vec<usize> {
    let mut seen: Vec<&str> = Vec::new();
    let (mut first, mut rest) = (Vec::new(), Vec::new());
    for cpu in cpus {
        if seen.contains(&cpu.core.as_str()) {
            rest.push(cpu.cpu);
        } else {
            seen.push(&cpu.core);
            first.push(cpu.cpu);
        }
    }
    first.extend(rest);
    first
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
