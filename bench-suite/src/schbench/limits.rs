//! Floor 3, bench-suite. Owns what keeps `schbench` from starting all its threads: which limit, and what it is.
//! May read `/proc`, the cgroup and the resource limits.

use crate::trouble::Trouble;
use std::fs;

/// What a run takes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Need {
    pub(super) threads: u64,
    /// Bytes that are touched.
    pub(super) memory: u64,
    /// Bytes that are mapped, touched or not.
    pub(super) mapped: u64,
}

/// A limit, as the user would look it up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Limit {
    pub(super) name: &'static str,
    pub(super) value: u64,
}

/// Mappings that a thread takes: its stack and the guard below it, and a share of the allocator's arenas.
const MAPPINGS: u64 = 3;

/// What is there.
#[derive(Debug, Default)]
pub(super) struct Have {
    pub(super) threads: Vec<Limit>,
    pub(super) memory: Vec<Limit>,
    pub(super) mapped: Vec<Limit>,
}

fn number(path: &str) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Of the cgroup (version 2) of this process and those above it: the least of `file`.
fn cgroup(file: &str) -> Option<u64> {
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mut folder = std::path::Path::new(path);
    let mut least = None;
    loop {
        let at = format!("/sys/fs/cgroup{}/{file}", folder.display());
        least = least.into_iter().chain(number(&at)).min();
        match folder.parent() {
            Some(parent) => folder = parent,
            None => return least,
        }
    }
}

fn resource(what: libc::__rlimit_resource_t) -> Option<u64> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: writes the struct.
    let rc = unsafe { libc::getrlimit(what, &raw mut limit) };
    (rc == 0 && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

/// Root is not held by the limit on processes.
fn is_root() -> bool {
    // SAFETY: takes nothing.
    unsafe { libc::geteuid() == 0 }
}

fn available() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

impl Have {
    /// Looks around.
    pub(super) fn look() -> Self {
        let limit = |name, value: Option<u64>| value.map(|value| Limit { name, value });
        let processes = resource(libc::RLIMIT_NPROC).filter(|_| !is_root());
        let maps = number("/proc/sys/vm/max_map_count").map(|n| n / MAPPINGS);
        Have {
            threads: [
                limit("ulimit -u", processes),
                limit("kernel.threads-max", number("/proc/sys/kernel/threads-max")),
                limit("kernel.pid_max", number("/proc/sys/kernel/pid_max")),
                limit("pids.max of the cgroup", cgroup("pids.max")),
                limit("vm.max_map_count, three a thread,", maps),
            ]
            .into_iter()
            .flatten()
            .collect(),
            mapped: limit("ulimit -v", resource(libc::RLIMIT_AS))
                .into_iter()
                .collect(),
            memory: [
                limit("memory.max of the cgroup", cgroup("memory.max")),
                limit("available memory", available()),
            ]
            .into_iter()
            .flatten()
            .collect(),
        }
    }

    /// Refuses what cannot be had, before anything starts.
    pub(super) fn allows(&self, need: Need) -> Result<(), Trouble> {
        let tightest = |limits: &[Limit]| limits.iter().min_by_key(|limit| limit.value).cloned();
        if let Some(limit) = tightest(&self.threads)
            && limit.value < need.threads
        {
            return Err(Trouble::Environment(format!(
                "schbench: {} threads, but {} allows {} (use a smaller -m or -t)",
                need.threads, limit.name, limit.value
            )));
        }
        for (limits, bytes) in [(&self.memory, need.memory), (&self.mapped, need.mapped)] {
            if let Some(limit) = tightest(limits)
                && limit.value < bytes
            {
                return Err(Trouble::Environment(format!(
                    "schbench: {} MiB for {} threads, but {} is {} MiB (use a smaller -m, -t, -F or -p)",
                    bytes >> 20,
                    need.threads,
                    limit.name,
                    limit.value >> 20
                )));
            }
        }
        Ok(())
    }

    /// A thread could not be started.
    pub(super) fn blame(&self, started: usize, need: Need, error: &std::io::Error) -> Trouble {
        let limits: Vec<String> = self
            .threads
            .iter()
            .map(|limit| format!("{} {}", limit.name, limit.value))
            .chain(
                self.memory
                    .iter()
                    .chain(&self.mapped)
                    .map(|limit| format!("{} {} MiB", limit.name, limit.value >> 20)),
            )
            .collect();
        Trouble::Environment(format!(
            "schbench: only {started} of {} threads could be started: {error}; limits are {}",
            need.threads,
            limits.join("; ")
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tightest_limit_is_named() {
        let limit = |name, value| Limit { name, value };
        let have = Have {
            threads: vec![limit("wide", 9999), limit("narrow", 100)],
            memory: vec![limit("roomy", 4 << 30), limit("tight", 3 << 20)],
            mapped: vec![limit("mapped", 5 << 20)],
        };
        let need = |threads, memory| Need {
            threads,
            memory,
            mapped: 2 * memory,
        };
        assert!(have.allows(need(100, 2 << 20)).is_ok());
        for (need, words) in [
            (need(101, 0), "narrow allows 100"),
            (need(5, 4 << 20), "tight is 3 MiB"),
            (need(5, 3 << 20), "6 MiB for 5 threads, but mapped is 5 MiB"),
        ] {
            let trouble = have.allows(need).unwrap_err();
            assert_eq!(trouble.code(), 3);
            assert!(trouble.to_string().contains(words), "{trouble}");
        }
        assert!(Have::default().allows(need(1 << 40, 1 << 60)).is_ok());
        let error = std::io::Error::from_raw_os_error(libc::EAGAIN);
        let text = have.blame(7, need(9, 0), &error).to_string();
        assert!(
            text.contains("7 of 9") && text.contains("narrow 100") && text.contains("tight 3 MiB"),
            "{text}"
        );
    }

    #[test]
    fn this_machine_allows_two_threads() {
        let need = Need {
            threads: 2,
            memory: 1 << 20,
            mapped: 2 << 20,
        };
        assert!(Have::look().allows(need).is_ok());
    }
}
