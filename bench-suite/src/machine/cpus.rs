//! Floor 3, bench-suite. Owns the rows on CPUs: model, sockets, cores, siblings, caches, NUMA nodes, clock.
//! May read the tree that it is given.

use super::{Rows, none, said, unknown};
use crate::engine::places::{self, Places};
use crate::engine::sysroot::{Root, cpu_list, ranges};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const CPUS: &str = "sys/devices/system/cpu";

/// What CPUs there are.
pub(super) fn cpu(root: &Root) -> Rows {
    let info = root.text("proc/cpuinfo").unwrap_or_default();
    let told = |names: &[&str]| {
        let found = names.iter().find_map(|name| field(&info, name));
        found.map_or_else(unknown, Value::from)
    };
    let list = |file: &str| match root.text(&format!("{CPUS}/{file}")) {
        Some(text) if text.trim().is_empty() => none(),
        Some(text) => text.trim().into(),
        None => unknown(),
    };
    let allowed = root.allowed();
    let here = places::on(root);
    let all = places::look(&root.path(CPUS), &everything(root, &allowed));
    let shape = Places::of(&all);
    let cores = places::cores(&all);
    let numbers = cores.iter().map(|core| ranges(core));
    let online = root.online();
    vec![
        ("model", told(&["model name", "cpu", "Model", "Hardware"])),
        ("vendor", told(&["vendor_id", "CPU implementer"])),
        ("microcode", told(&["microcode"])),
        ("sockets", shape.sockets.into()),
        ("cores", cores.len().into()),
        ("cores_per_socket", shape.cores_per_socket.into()),
        ("cores_per_cache", shape.cores_per_ccx.into()),
        ("threads_per_core", shape.threads_per_core.into()),
        ("smt_map", numbers.collect::<Vec<_>>().join(" ").into()),
        ("smt", list("smt/control")),
        ("kinds", kinds(root)),
        ("present", list("present")),
        ("online", list("online")),
        ("offline", list("offline")),
        ("cpus_online", online.len().max(1).into()),
        ("allowed", ranges(&allowed).into()),
        ("cpus_allowed", allowed.len().into()),
        ("cores_allowed", places::cores(&here).len().into()),
        ("isolated", list("isolated")),
        ("nohz_full", list("nohz_full")),
    ]
}

/// All that are online, or allowed where that is not told.
fn everything(root: &Root, allowed: &[usize]) -> Vec<usize> {
    let online = root.online();
    if online.is_empty() {
        allowed.to_vec()
    } else {
        online
    }
}

/// The first value of a name in `/proc/cpuinfo`.
pub(super) fn field(info: &str, name: &str) -> Option<String> {
    info.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name && !value.trim().is_empty()).then(|| value.trim().to_owned())
    })
}

/// Kinds of cores, where there are several.
fn kinds(root: &Root) -> Value {
    let mut found = BTreeMap::new();
    for name in ["cpu_core", "cpu_atom", "cpu_lowpower"] {
        if let Some(list) = root.line(&format!("sys/devices/{name}/cpus")) {
            found.insert(name.to_owned(), list);
        }
    }
    if found.is_empty() {
        // Where the kernel only knows how much each can do.
        for cpu in root.online() {
            if let Some(capacity) = root.line(&format!("{CPUS}/cpu{cpu}/cpu_capacity")) {
                let list = found.entry(format!("capacity {capacity}")).or_default();
                *list = ranges(&[cpu_list(list).unwrap_or_default(), vec![cpu]].concat());
            }
        }
    }
    if found.len() < 2 {
        "one".into()
    } else {
        json!(found)
    }
}

/// The caches, level by level, and who shares them.
pub(super) fn caches(root: &Root) -> Rows {
    let mut levels: BTreeMap<(String, String), (String, Vec<String>)> = BTreeMap::new();
    let cpus = everything(root, &root.allowed());
    for cpu in &cpus {
        for index in 0..8 {
            let part =
                |name: &str| root.line(&format!("{CPUS}/cpu{cpu}/cache/index{index}/{name}"));
            let (Some(level), Some(kind), Some(shared)) =
                (part("level"), part("type"), part("shared_cpu_list"))
            else {
                break;
            };
            let entry = levels.entry((level, kind)).or_default();
            if entry.0.is_empty() {
                entry.0 = part("size").unwrap_or_default();
            }
            if !entry.1.contains(&shared) {
                entry.1.push(shared);
            }
        }
    }
    let mut rows: Rows = Vec::new();
    for (name, level, kind) in [("l1d", "1", "Data"), ("l1i", "1", "Instruction")] {
        if let Some((size, groups)) = levels.get(&(level.to_owned(), kind.to_owned())) {
            rows.push((name, format!("{size} x {}", groups.len()).into()));
        }
    }
    for (name, level) in [("l2", "2"), ("l3", "3"), ("l4", "4")] {
        let key = (level.to_owned(), "Unified".to_owned());
        let key = if levels.contains_key(&key) {
            key
        } else {
            (level.to_owned(), "Data".to_owned())
        };
        if let Some((size, groups)) = levels.get(&key) {
            rows.push((name, format!("{size} x {}", groups.len()).into()));
        }
    }
    let last = levels.iter().rfind(|((_, kind), _)| kind != "Instruction");
    rows.push((
        "last_level",
        last.map_or_else(unknown, |((level, _), _)| format!("L{level}").into()),
    ));
    rows.push((
        "shared_by",
        last.map_or_else(unknown, |(_, (_, groups))| json!(groups)),
    ));
    rows
}

/// The NUMA nodes.
pub(super) fn numa(root: &Root) -> Rows {
    const NODES: &str = "sys/devices/system/node";
    let mut nodes: Vec<(usize, Value)> = Vec::new();
    for name in root.names(NODES) {
        let Some(node) = name
            .strip_prefix("node")
            .and_then(|n| n.parse::<usize>().ok())
        else {
            continue;
        };
        let memory = root
            .text(&format!("{NODES}/{name}/meminfo"))
            .and_then(|text| {
                let line = text.lines().find(|line| line.contains("MemTotal:"))?;
                line.split_whitespace().rev().nth(1)?.parse::<u64>().ok()
            });
        let entry = json!({
            "node": node,
            "cpus": root.line(&format!("{NODES}/{name}/cpulist")).unwrap_or_else(|| "none".to_owned()),
            "distances": said(root, &format!("{NODES}/{name}/distance")),
            "kib": memory,
        });
        nodes.push((node, entry));
    }
    nodes.sort_by_key(|(node, _)| *node);
    let list: Vec<Value> = nodes.into_iter().map(|(_, entry)| entry).collect();
    vec![("count", list.len().into()), ("nodes", list.into())]
}

/// Who sets the clock, and how far it goes.
pub(super) fn clock(root: &Root) -> Rows {
    let mut governors: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for cpu in root.allowed() {
        if let Some(governor) = root.line(&format!("{CPUS}/cpu{cpu}/cpufreq/scaling_governor")) {
            governors.entry(governor).or_default().push(cpu);
        }
    }
    let names: Vec<&String> = governors.keys().collect();
    let first = root.allowed().first().copied().unwrap_or(0);
    let of_first = |file: &str| {
        root.line(&format!("{CPUS}/cpu{first}/cpufreq/{file}"))
            .map_or_else(none, Value::from)
    };
    let boost = root
        .line(&format!("{CPUS}/cpufreq/boost"))
        .map(|word| if word == "1" { "on" } else { "off" })
        .or_else(|| {
            let off = root.line(&format!("{CPUS}/intel_pstate/no_turbo"))?;
            Some(if off == "0" { "on" } else { "off" })
        });
    vec![
        (
            "governors",
            if names.is_empty() {
                none()
            } else {
                json!(names)
            },
        ),
        ("driver", of_first("scaling_driver")),
        ("boost", boost.map_or_else(none, Value::from)),
        ("min_khz", of_first("cpuinfo_min_freq")),
        ("max_khz", of_first("cpuinfo_max_freq")),
        (
            "idle_driver",
            root.line(&format!("{CPUS}/cpuidle/current_driver"))
                .map_or_else(none, Value::from),
        ),
        (
            "clocksource",
            said(
                root,
                "sys/devices/system/clocksource/clocksource0/current_clocksource",
            ),
        ),
    ]
}
