//! Floor 3, bench-suite. Machines that are not at hand, as the files that their kernels would show: written down here in
//! short, and laid out as a folder for `HPBENCH_SYSFS`.
#![allow(dead_code, reason = "each test file uses its part of this")]

use std::fs;
use std::path::Path;

/// CPUs that share a last-level cache.
#[derive(Debug, Clone)]
pub(crate) struct Cache {
    pub(crate) package: usize,
    pub(crate) node: usize,
    /// The CPUs of each core.
    pub(crate) cores: Vec<Vec<usize>>,
}

/// A machine.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tree {
    pub(crate) caches: Vec<Cache>,
    pub(crate) offline: Vec<usize>,
    /// What the process may use, as in `/proc/self/status`.
    pub(crate) mask: Option<&'static str>,
    /// No folder for any CPU, as in some containers.
    pub(crate) bare: bool,
    /// More files.
    pub(crate) files: Vec<(&'static str, &'static str)>,
}

fn list(cpus: &[usize]) -> String {
    let mut sorted = cpus.to_vec();
    sorted.sort_unstable();
    let mut parts: Vec<(usize, usize)> = Vec::new();
    for cpu in sorted {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => parts.push((cpu, cpu)),
        }
    }
    let shown = parts.iter().map(|(first, last)| match last - first {
        0 => first.to_string(),
        _ => format!("{first}-{last}"),
    });
    shown.collect::<Vec<_>>().join(",")
}

impl Tree {
    /// Caches of these packages and cores; one node a package.
    pub(crate) fn of(caches: &[(usize, &[&[usize]])]) -> Self {
        let caches = caches.iter().map(|(package, cores)| Cache {
            package: *package,
            node: *package,
            cores: cores.iter().map(|core| core.to_vec()).collect(),
        });
        Tree {
            caches: caches.collect(),
            ..Tree::default()
        }
    }

    fn present(&self) -> Vec<usize> {
        self.caches
            .iter()
            .flat_map(|cache| cache.cores.concat())
            .collect()
    }

    /// Writes the files.
    pub(crate) fn lay(&self, root: &Path) {
        let put = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{text}\n")).unwrap();
        };
        let running = |cpus: &[usize]| -> Vec<usize> {
            cpus.iter()
                .copied()
                .filter(|cpu| !self.offline.contains(cpu))
                .collect()
        };
        let cpu = "sys/devices/system/cpu";
        put(&format!("{cpu}/present"), &list(&self.present()));
        put(&format!("{cpu}/online"), &list(&running(&self.present())));
        put(&format!("{cpu}/offline"), &list(&self.offline));
        if let Some(mask) = self.mask {
            put(
                "proc/self/status",
                &format!("Name:\tx\nCpus_allowed_list:\t{mask}"),
            );
        }
        for (path, text) in &self.files {
            put(path, text);
        }
        if self.bare {
            return;
        }
        for offline in &self.offline {
            // A CPU that is off has a folder and no topology.
            put(&format!("{cpu}/cpu{offline}/online"), "0");
        }
        let mut nodes: Vec<(usize, Vec<usize>)> = Vec::new();
        for cache in &self.caches {
            let shared = list(&running(&cache.cores.concat()));
            match nodes.iter_mut().find(|(node, _)| *node == cache.node) {
                Some((_, cpus)) => cpus.extend(running(&cache.cores.concat())),
                None => nodes.push((cache.node, running(&cache.cores.concat()))),
            }
            for core in &cache.cores {
                let siblings = list(&running(core));
                for id in running(core) {
                    let at = |file: &str| format!("{cpu}/cpu{id}/{file}");
                    put(
                        &at("topology/physical_package_id"),
                        &cache.package.to_string(),
                    );
                    put(&at("topology/thread_siblings_list"), &siblings);
                    for (index, level, kind, size, who) in [
                        (0, "1", "Data", "32K", &siblings),
                        (1, "1", "Instruction", "32K", &siblings),
                        (2, "2", "Unified", "1024K", &siblings),
                        (3, "3", "Unified", "32768K", &shared),
                    ] {
                        for (file, text) in [
                            ("level", level),
                            ("type", kind),
                            ("size", size),
                            ("shared_cpu_list", who),
                        ] {
                            put(&at(&format!("cache/index{index}/{file}")), text);
                        }
                    }
                }
            }
        }
        let count = nodes.len();
        for (node, cpus) in &nodes {
            let at = format!("sys/devices/system/node/node{node}");
            put(&format!("{at}/cpulist"), &list(cpus));
            let far = |other: usize| if other == *node { "10" } else { "32" };
            put(
                &format!("{at}/distance"),
                &(0..count).map(far).collect::<Vec<_>>().join(" "),
            );
            put(
                &format!("{at}/meminfo"),
                &format!("Node {node} MemTotal:       1048576 kB"),
            );
        }
    }
}

/// Two sockets of twelve caches of eight cores of two threads, a NUMA node a cache: 384 CPUs, as two EPYC 9654 show them.
pub(crate) fn epyc() -> Tree {
    let cache = |n: usize| Cache {
        package: n / 12,
        node: n,
        cores: (n * 8..n * 8 + 8)
            .map(|core| vec![core, core + 192])
            .collect(),
    };
    Tree {
        caches: (0..24).map(cache).collect(),
        files: vec![
            (
                "proc/cpuinfo",
                "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC 9654 96-Core Processor\nmicrocode\t: 0xa101148\nflags\t\t: fpu vme",
            ),
            ("proc/sys/kernel/osrelease", "6.12.0-test"),
            (
                "proc/meminfo",
                "MemTotal:       1584891188 kB\nMemAvailable:   1500000000 kB",
            ),
            (
                "boot/config-6.12.0-test",
                "CONFIG_HZ=1000\nCONFIG_MMU_LAZY_TLB_REFCOUNT=y\n# CONFIG_PREEMPT_RT is not set",
            ),
            (
                "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
                "schedutil",
            ),
            (
                "sys/devices/system/cpu/cpu0/cpufreq/scaling_driver",
                "acpi-cpufreq",
            ),
            ("sys/devices/system/cpu/cpufreq/boost", "1"),
            (
                "sys/kernel/mm/transparent_hugepage/enabled",
                "[always] madvise never",
            ),
            ("sys/class/dmi/id/sys_vendor", "Supermicro"),
            ("sys/class/dmi/id/product_name", "AS -2125"),
            ("proc/sys/kernel/hostname", "big"),
        ],
        ..Tree::default()
    }
}

/// Two sockets whose CPUs alternate, siblings eight numbers on.
pub(crate) fn xeon() -> Tree {
    Tree::of(&[
        (0, &[&[0, 8], &[2, 10], &[4, 12], &[6, 14]]),
        (1, &[&[1, 9], &[3, 11], &[5, 13], &[7, 15]]),
    ])
}

/// Siblings side by side, two caches.
pub(crate) fn ryzen() -> Tree {
    Tree::of(&[(0, &[&[0, 1], &[2, 3]]), (0, &[&[4, 5], &[6, 7]])])
}

/// Two fast cores of two threads, four slow ones of one.
pub(crate) fn hybrid() -> Tree {
    Tree {
        files: vec![
            ("sys/devices/cpu_core/cpus", "0-3"),
            ("sys/devices/cpu_atom/cpus", "4-7"),
        ],
        ..Tree::of(&[(0, &[&[0, 1], &[2, 3], &[4], &[5], &[6], &[7]])])
    }
}

/// Two chips of two cores of eight threads, each core with a cache of its own.
pub(crate) fn power() -> Tree {
    Tree::of(&[
        (0, &[&[0, 1, 2, 3, 4, 5, 6, 7]]),
        (0, &[&[8, 9, 10, 11, 12, 13, 14, 15]]),
        (1, &[&[16, 17, 18, 19, 20, 21, 22, 23]]),
        (1, &[&[24, 25, 26, 27, 28, 29, 30, 31]]),
    ])
}
