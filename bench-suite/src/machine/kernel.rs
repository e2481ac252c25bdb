//! Floor 3, bench-suite. Owns the rows on the kernel: release, command line, options it was built with, the hypervisor
//! under it, mitigations. May read the tree that it is given, and ask the CPU for its hypervisor.

use super::cpus::field;
use super::{Rows, none, said, unknown};
use crate::engine::sysroot::Root;
use serde_json::Value;
use std::io::Read;

/// The options that change what is measured here.
const OPTIONS: [&str; 22] = [
    "MMU_LAZY_TLB_REFCOUNT",
    "MMU_LAZY_TLB_SHOOTDOWN",
    "MMU_LAZY_TLB_HAZPTR",
    "PREEMPT_NONE",
    "PREEMPT_VOLUNTARY",
    "PREEMPT",
    "PREEMPT_LAZY",
    "PREEMPT_RT",
    "PREEMPT_DYNAMIC",
    "PREEMPT_RCU",
    "HZ",
    "NO_HZ_IDLE",
    "NO_HZ_FULL",
    "FUTEX_PRIVATE_HASH",
    "PER_VMA_LOCK",
    "RSEQ",
    "RSEQ_SLICE_EXTENSION",
    "MEMBARRIER",
    "SCHED_SMT",
    "SCHED_MM_CID",
    "TRANSPARENT_HUGEPAGE",
    "NUMA_BALANCING",
];

/// The kernel and what it stands on.
pub(super) fn kernel(root: &Root) -> Rows {
    vec![
        ("release", said(root, "proc/sys/kernel/osrelease")),
        ("version", said(root, "proc/sys/kernel/version")),
        ("command_line", said(root, "proc/cmdline")),
        ("preemption", said(root, "sys/kernel/debug/sched/preempt")),
        (
            "transparent_hugepages",
            chosen(root.line("sys/kernel/mm/transparent_hugepage/enabled")),
        ),
        (
            "numa_balancing",
            said(root, "proc/sys/kernel/numa_balancing"),
        ),
        (
            "randomize_va_space",
            said(root, "proc/sys/kernel/randomize_va_space"),
        ),
        ("hypervisor", hypervisor(root)),
        ("product", product(root)),
        ("container", container(root)),
    ]
}

/// The word in brackets.
fn chosen(line: Option<String>) -> Value {
    let line = line.unwrap_or_default();
    let word = line
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    word.map_or_else(unknown, |(word, _)| word.into())
}

/// `none`, or which, or `yes` if it does not say.
fn hypervisor(root: &Root) -> Value {
    let info = root.text("proc/cpuinfo").unwrap_or_default();
    if let Some(kind) = root.line("sys/hypervisor/type") {
        return kind.into();
    }
    let flag = field(&info, "flags")
        .is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
    if flag {
        let name = if root.recorded() { None } else { leaf() };
        return name.unwrap_or_else(|| "yes".to_owned()).into();
    }
    let compatible = root.line("proc/device-tree/hypervisor/compatible");
    if let Some(name) = compatible {
        return name.trim_end_matches('\0').into();
    }
    if info.is_empty() { unknown() } else { none() }
}

/// What the hypervisor calls itself.
#[cfg(target_arch = "x86_64")]
fn leaf() -> Option<String> {
    // Only asked where the flag says that the leaf is there.
    let found = std::arch::x86_64::__cpuid(0x4000_0000);
    let bytes = [found.ebx, found.ecx, found.edx]
        .map(u32::to_le_bytes)
        .concat();
    let name = String::from_utf8_lossy(&bytes)
        .trim_matches(['\0', ' '])
        .to_owned();
    let name = match name.as_str() {
        "" => return None,
        "KVMKVMKVM" => "kvm",
        "Microsoft Hv" => "hyper-v",
        "VMwareVMware" => "vmware",
        "XenVMMXenVMM" => "xen",
        "TCGTCGTCGTCG" => "qemu",
        other => other,
    };
    Some(name.to_owned())
}

#[cfg(not(target_arch = "x86_64"))]
fn leaf() -> Option<String> {
    None
}

/// What the firmware calls the machine.
fn product(root: &Root) -> Value {
    let part = |file: &str| root.line(&format!("sys/class/dmi/id/{file}"));
    match (part("sys_vendor"), part("product_name")) {
        (None, None) => root
            .line("proc/device-tree/model")
            .map_or_else(none, |model| model.trim_end_matches('\0').into()),
        (vendor, name) => {
            let words: Vec<String> = [vendor, name].into_iter().flatten().collect();
            words.join(" ").into()
        }
    }
}

/// Whether the files that container managers leave are there.
fn container(root: &Root) -> Value {
    if let Some(name) = root.line("run/systemd/container") {
        return name.into();
    }
    let files = [(".dockerenv", "docker"), ("run/.containerenv", "podman")];
    let found = files.iter().find(|(file, _)| root.path(file).exists());
    found.map_or_else(none, |(_, name)| (*name).into())
}

/// Options of the kernel's build.
pub(super) fn config(root: &Root) -> Rows {
    let Some((place, text)) = config_text(root) else {
        return vec![("from", unknown())];
    };
    let mut rows: Rows = vec![("from", place.into())];
    rows.extend(OPTIONS.map(|name| (name, option(&text, name).into())));
    rows
}

fn config_text(root: &Root) -> Option<(String, String)> {
    if let Some(packed) = root.bytes("proc/config.gz") {
        let mut text = String::new();
        // Bounded: a file that is none unpacks to nothing useful.
        let mut unpacked = flate2::read::GzDecoder::new(packed.as_slice()).take(8 << 20);
        if unpacked.read_to_string(&mut text).is_ok() {
            return Some(("/proc/config.gz".to_owned(), text));
        }
    }
    let release = root.line("proc/sys/kernel/osrelease")?;
    let places = [
        format!("boot/config-{release}"),
        format!("lib/modules/{release}/config"),
        format!("lib/modules/{release}/build/.config"),
    ];
    places
        .iter()
        .find_map(|place| Some((format!("/{place}"), root.text(place)?)))
}

/// `y`, `m`, a value; `n` if it is not set; `absent` if this kernel does not know it.
fn option(text: &str, name: &str) -> String {
    let (set, not) = (
        format!("CONFIG_{name}="),
        format!("# CONFIG_{name} is not set"),
    );
    for line in text.lines() {
        if let Some(value) = line.strip_prefix(&set) {
            return value.trim_matches('"').to_owned();
        }
        if line == not {
            return "n".to_owned();
        }
    }
    "absent".to_owned()
}

/// What the kernel does against the CPU's weaknesses: those that this CPU has.
pub(super) fn mitigations(root: &Root) -> Rows {
    const FOLDER: &str = "sys/devices/system/cpu/vulnerabilities";
    let mut not = 0;
    let mut found = Vec::new();
    for name in root.names(FOLDER) {
        match root.line(&format!("{FOLDER}/{name}")) {
            Some(text) if text == "Not affected" => not += 1,
            Some(text) => found.push(Value::from(format!("{name}: {text}"))),
            None => {}
        }
    }
    if found.is_empty() && not == 0 {
        return vec![("in_force", unknown())];
    }
    vec![("in_force", found.into()), ("not_affected", not.into())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_the_build() {
        let text = "CONFIG_HZ=250\n# CONFIG_PREEMPT is not set\nCONFIG_PREEMPT_DYNAMIC=y\nCONFIG_X=\"a b\"\n";
        for (name, value) in [
            ("HZ", "250"),
            ("PREEMPT", "n"),
            ("PREEMPT_DYNAMIC", "y"),
            ("X", "a b"),
            ("RSEQ", "absent"),
        ] {
            assert_eq!(option(text, name), value, "{name}");
        }
        assert_eq!(chosen(Some("always [madvise] never".into())), "madvise");
        assert_eq!(chosen(None), "unknown");
    }
}
