//! Floor 3, bench-suite. Owns the rows on what is allowed and how busy it is: control groups, limits, memory, load.
//! May read the tree that it is given, and the limits of this process.

use super::{Rows, none, said, unknown};
use crate::engine::sysroot::Root;
use crate::engine::{cgroup, weather};
use serde_json::Value;

/// What threads and files may take.
pub(super) fn limits(root: &Root) -> Rows {
    let pids =
        cgroup::pids(root).map_or_else(none, |(most, used)| format!("{most}, {used} taken").into());
    let mut rows: Rows = vec![
        (
            "cgroup_cpus",
            cgroup::cpu_limit(root).map_or_else(none, Value::from),
        ),
        (
            "cgroup_cpuset",
            cgroup::cpuset(root).map_or_else(none, Value::from),
        ),
        ("cgroup_pids", pids),
        ("threads_max", said(root, "proc/sys/kernel/threads-max")),
        ("pid_max", said(root, "proc/sys/kernel/pid_max")),
    ];
    rows.extend(of_process(root));
    rows
}

#[cfg(target_os = "linux")]
fn of_process(root: &Root) -> Rows {
    use crate::engine::room;
    if root.recorded() {
        return Vec::new();
    }
    let limit = |which| room::limit(which).map_or_else(|| "unlimited".into(), Value::from);
    vec![
        ("open_files", limit(libc::RLIMIT_NOFILE)),
        ("processes", limit(libc::RLIMIT_NPROC)),
        ("address_space", limit(libc::RLIMIT_AS)),
    ]
}

#[cfg(not(target_os = "linux"))]
fn of_process(_: &Root) -> Rows {
    Vec::new()
}

/// Memory.
pub(super) fn memory(root: &Root) -> Rows {
    let info = root.text("proc/meminfo").unwrap_or_default();
    let kib = |name: &str| {
        let line = info.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    let value = |number: Option<u64>| number.map_or_else(unknown, Value::from);
    vec![
        // What firmware and kernel keep for themselves may vary.
        (
            "gib",
            value(kib("MemTotal:").map(|kib| kib.div_ceil(1 << 20))),
        ),
        ("total_kib", value(kib("MemTotal:"))),
        ("available_kib", value(kib("MemAvailable:"))),
    ]
}

/// How busy it is now.
pub(super) fn load(root: &Root) -> Rows {
    let pressure = root.text("proc/pressure/cpu").and_then(|text| {
        text.lines()
            .find_map(|line| line.strip_prefix("some ").map(str::to_owned))
    });
    vec![
        (
            "load1",
            weather::load1(root).map_or_else(unknown, Value::from),
        ),
        ("average", said(root, "proc/loadavg")),
        ("pressure_cpu", pressure.map_or_else(unknown, Value::from)),
    ]
}
