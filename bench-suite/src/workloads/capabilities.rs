//! Floor 3, bench-suite. Owns what `hpbench capabilities` tells: the rung and why, the kernel, the CPUs.
//! May read `/proc` and `/sys`, the auxiliary vector, and ask `percpu`.

use crate::engine::{pin, sysroot};
use serde::Serialize;
use serde_json::Value;
use std::fmt;
use std::fs;

/// What the machine is, for people and for records.
#[derive(Debug, Serialize)]
pub(crate) struct Machine {
    schema: u32,
    rung: String,
    reason: String,
    line_index: String,
    sections_in_build: bool,
    possible_cpus: usize,
    allowed_cpus: Vec<usize>,
    rseq_feature_size: Value,
    auxv_rseq_feature_size: Value,
    auxv_rseq_align: Value,
    membarrier_mask: Value,
    membarrier_commands: Vec<&'static str>,
    forced_rung: Option<String>,
    cpu_model: String,
    online_cpus: String,
    threads_per_core: Option<usize>,
    packages: usize,
    numa_nodes: String,
    caches: Vec<String>,
    kernel: String,
    os: &'static str,
    arch: &'static str,
    profile: &'static str,
}

fn line(path: &str) -> Option<String> {
    fs::read_to_string(path)
        .ok()
        .map(|text| text.trim().to_owned())
        .filter(|text| !text.is_empty())
}

fn unknown() -> String {
    "unknown".to_owned()
}

impl Machine {
    /// Looks around.
    pub(crate) fn look() -> Self {
        let here = percpu::capabilities();
        let cpus = pin::allowed();
        let mask = here.membarrier_mask;
        Machine {
            schema: crate::report::record::SCHEMA,
            rung: here.rung.to_string(),
            reason: here.reason,
            line_index: here.index.to_string(),
            sections_in_build: here.sections,
            possible_cpus: here.possible_cpus,
            rseq_feature_size: here.rseq_feature_size.into(),
            auxv_rseq_feature_size: auxv(27),
            auxv_rseq_align: auxv(28),
            membarrier_mask: mask.into(),
            membarrier_commands: mask.map_or_else(Vec::new, |mask| commands(i64::from(mask))),
            forced_rung: std::env::var(crate::engine::child::RUNG_VARIABLE).ok(),
            cpu_model: cpu_model().unwrap_or_else(unknown),
            online_cpus: line("/sys/devices/system/cpu/online").unwrap_or_else(unknown),
            threads_per_core: siblings(cpus.first().copied().unwrap_or(0)),
            packages: packages(&cpus),
            numa_nodes: line("/sys/devices/system/node/online").unwrap_or_else(unknown),
            caches: caches(cpus.first().copied().unwrap_or(0)),
            kernel: line("/proc/sys/kernel/osrelease").unwrap_or_else(unknown),
            os: std::env::consts::OS,
            arch: std::env::consts::ARCH,
            profile: if cfg!(debug_assertions) {
                "debug (not for claims)"
            } else {
                "release"
            },
            allowed_cpus: cpus,
        }
    }

    /// What tells machines apart in records.
    pub(crate) fn name(&self) -> String {
        format!(
            "{}, {} CPUs, {} {}",
            self.cpu_model,
            self.allowed_cpus.len(),
            self.os,
            self.kernel
        )
    }

    /// The two lines above the tables.
    pub(crate) fn heading(&self) -> String {
        format!(
            "machine: {}, {} CPU(s) allowed, kernel {}, {} build\nhp rung: {} ({})\n",
            self.cpu_model,
            self.allowed_cpus.len(),
            self.kernel,
            self.profile,
            self.rung,
            self.reason
        )
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", percpu::capabilities())?;
        let mut row = |name: &str, value: String| writeln!(f, "{name:<19}{value}");
        row(
            "forced rung",
            self.forced_rung.clone().unwrap_or_else(|| "no".to_owned()),
        )?;
        row("auxv rseq bytes", plain(&self.auxv_rseq_feature_size))?;
        row("auxv rseq align", plain(&self.auxv_rseq_align))?;
        row(
            "membarrier",
            if self.membarrier_commands.is_empty() {
                "none".to_owned()
            } else {
                self.membarrier_commands.join(", ")
            },
        )?;
        row("CPU", self.cpu_model.clone())?;
        row("online CPUs", self.online_cpus.clone())?;
        row(
            "allowed CPUs",
            format!("{} {:?}", self.allowed_cpus.len(), self.allowed_cpus),
        )?;
        row("packages", self.packages.to_string())?;
        row(
            "threads per core",
            self.threads_per_core
                .map_or_else(unknown, |n| n.to_string()),
        )?;
        row("NUMA nodes", self.numa_nodes.clone())?;
        row(
            "caches",
            if self.caches.is_empty() {
                unknown()
            } else {
                self.caches.join(", ")
            },
        )?;
        row(
            "system",
            format!("{} {} on {}", self.os, self.kernel, self.arch),
        )?;
        row("build", self.profile.to_owned())
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        other => other.to_string(),
    }
}

/// An entry of the auxiliary vector that is not there reads as zero.
#[cfg(target_os = "linux")]
fn auxv(key: libc::c_ulong) -> Value {
    // SAFETY: `getauxval` only searches the vector that the kernel left for this process.
    match unsafe { libc::getauxval(key) } {
        0 => Value::Null,
        found => serde_json::json!(found),
    }
}

#[cfg(not(target_os = "linux"))]
fn auxv(_: u64) -> Value {
    Value::Null
}

/// The bits of `MEMBARRIER_CMD_QUERY` that have names.
fn commands(mask: i64) -> Vec<&'static str> {
    const NAMES: [&str; 10] = [
        "global",
        "global-expedited",
        "register-global-expedited",
        "private-expedited",
        "register-private-expedited",
        "private-expedited-sync-core",
        "register-private-expedited-sync-core",
        "private-expedited-rseq",
        "register-private-expedited-rseq",
        "get-registrations",
    ];
    NAMES
        .iter()
        .enumerate()
        .filter(|(bit, _)| mask >> bit & 1 == 1)
        .map(|(_, name)| *name)
        .collect()
}

fn cpu_model() -> Option<String> {
    let info = fs::read_to_string("/proc/cpuinfo").ok()?;
    let model = info.lines().find(|line| line.starts_with("model name"))?;
    Some(model.split_once(':')?.1.trim().to_owned())
}

fn siblings(cpu: usize) -> Option<usize> {
    let list = line(&format!(
        "/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"
    ))?;
    Some(sysroot::cpu_list(&list)?.len())
}

fn packages(cpus: &[usize]) -> usize {
    let id = |cpu: &usize| {
        line(&format!(
            "/sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id"
        ))
    };
    let mut ids: Vec<_> = cpus.iter().filter_map(id).collect();
    ids.sort_unstable();
    ids.dedup();
    ids.len().max(1)
}

fn caches(cpu: usize) -> Vec<String> {
    (0..8)
        .map_while(|index| {
            let part = |name| {
                line(&format!(
                    "/sys/devices/system/cpu/cpu{cpu}/cache/index{index}/{name}"
                ))
            };
            let kind = match part("type")?.as_str() {
                "Data" => "d",
                "Instruction" => "i",
                _ => "",
            };
            Some(format!(
                "L{}{kind} {} shared by CPUs {}",
                part("level")?,
                part("size")?,
                part("shared_cpu_list")?
            ))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_commands() {
        assert_eq!(commands(0), Vec::<&str>::new());
        assert_eq!(
            commands(0b1_1000),
            ["private-expedited", "register-private-expedited"]
        );
    }

    #[test]
    fn the_machine_is_described() {
        let machine = Machine::look();
        assert!(!machine.allowed_cpus.is_empty());
        let text = machine.to_string();
        for word in ["rung", "membarrier", "allowed CPUs", "auxv rseq bytes"] {
            assert!(text.contains(word), "{word}");
        }
        let value = serde_json::to_value(&machine).unwrap();
        assert!(value["rung"].is_string());
    }
}
