//! Floor 3, bench-suite. Owns the machine record: what a reader of figures must know of where they are from.
//! May read `/proc`, `/sys` and `/boot` (or the tree of `engine::sysroot`) and ask `percpu`; changes nothing.
//!
//! | file | owns |
//! |---|---|
//! | `cpus` | CPUs, cores, caches, NUMA nodes, clock |
//! | `kernel` | kernel, its options, hypervisor, mitigations |
//! | `limits` | what is allowed and how busy it is |
//! | `strict` | what `--strict` does not put up with |
//!
//! A sheet is a list of sections, each a list of rows, so that what is new is one line in its file. In JSON it is an
//! object of objects; what cannot be found out is the word `unknown`, what is not there `none`. The *machine id* is a
//! hash of what stays as long as the machine does: model, shape, kernel, memory, hypervisor. It is not of the load, the
//! limits or the build.

mod cpus;
mod kernel;
mod limits;
pub(crate) mod strict;

use crate::cli::Options;
use crate::engine::places;
use crate::engine::sysroot::Root;
use crate::report::record::Record;
use crate::report::sink::Target;
use crate::trouble::Trouble;
use crate::workloads::capabilities::Machine;
use serde_json::{Map, Value, json};
use std::path::PathBuf;

/// Version of the record.
const SCHEMA: u32 = 1;

/// Rows of a section.
type Rows = Vec<(&'static str, Value)>;

/// Options of the subcommand.
#[derive(Debug, clap::Args)]
pub(crate) struct Ask {
    /// Leave the name of the host out
    #[arg(long)]
    anon: bool,
}

/// What is known of a machine.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sheet {
    sections: Vec<(&'static str, Rows)>,
}

impl Sheet {
    /// Looks around.
    pub(crate) fn look(root: &Root, anon: bool) -> Self {
        let mut sections = vec![
            ("cpu", cpus::cpu(root)),
            ("caches", cpus::caches(root)),
            ("numa", cpus::numa(root)),
            ("clock", cpus::clock(root)),
            ("kernel", kernel::kernel(root)),
            ("config", kernel::config(root)),
            ("mitigations", kernel::mitigations(root)),
            ("hp", hp(root)),
            ("limits", limits::limits(root)),
            ("memory", limits::memory(root)),
            ("load", limits::load(root)),
            ("build", build(root)),
        ];
        let mut head: Rows = vec![("schema", SCHEMA.into()), ("id", id(&sections).into())];
        if !anon {
            let host = root.line("proc/sys/kernel/hostname");
            head.push(("hostname", host.map_or_else(unknown, Value::from)));
        }
        if root.recorded() {
            head.push(("recorded", true.into()));
        }
        sections.insert(0, ("machine", head));
        Sheet { sections }
    }

    /// A row.
    pub(crate) fn get(&self, section: &str, row: &str) -> Option<&Value> {
        find(&self.sections, section, row)
    }

    /// The machine id.
    pub(crate) fn id(&self) -> &str {
        self.get("machine", "id")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// As an object of objects.
    pub(crate) fn to_json(&self) -> Value {
        let object = |rows: &Rows| {
            let entries = rows
                .iter()
                .map(|(name, value)| ((*name).to_owned(), value.clone()));
            Value::Object(entries.collect::<Map<_, _>>())
        };
        let sections = self.sections.iter();
        Value::Object(
            sections
                .map(|(name, rows)| ((*name).to_owned(), object(rows)))
                .collect(),
        )
    }

    /// For people.
    pub(crate) fn to_text(&self) -> String {
        let mut text = String::new();
        for (section, rows) in &self.sections {
            text.push_str(&format!("{section}\n"));
            for (name, value) in rows {
                text.push_str(&format!("  {name:<24}{}\n", plain(value)));
            }
        }
        text
    }
}

/// A value without the marks of JSON.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => "unknown".to_owned(),
        Value::String(text) => text.clone(),
        Value::Bool(yes) => if *yes { "yes" } else { "no" }.to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Array(all) if all.is_empty() => "none".to_owned(),
        Value::Array(all) => {
            let shown: Vec<String> = all.iter().map(plain).collect();
            shown.join(if all.iter().any(Value::is_object) {
                "; "
            } else {
                " "
            })
        }
        Value::Object(map) => {
            let shown: Vec<String> = map
                .iter()
                .map(|(name, value)| format!("{name} {}", plain(value)))
                .collect();
            shown.join(", ")
        }
    }
}

fn unknown() -> Value {
    "unknown".into()
}

fn none() -> Value {
    "none".into()
}

/// What a file's line says, or `unknown`.
fn said(root: &Root, path: &str) -> Value {
    root.line(path).map_or_else(unknown, Value::from)
}

fn find<'a>(sections: &'a [(&'static str, Rows)], section: &str, row: &str) -> Option<&'a Value> {
    let (_, rows) = sections.iter().find(|(name, _)| *name == section)?;
    Some(&rows.iter().find(|(name, _)| *name == row)?.1)
}

/// What the machine id is of.
const LASTING: [(&str, &str); 9] = [
    ("cpu", "model"),
    ("cpu", "present"),
    ("cpu", "sockets"),
    ("cpu", "cores"),
    ("cpu", "smt_map"),
    ("caches", "last_level"),
    ("kernel", "release"),
    ("kernel", "hypervisor"),
    ("memory", "gib"),
];

fn id(sections: &[(&'static str, Rows)]) -> String {
    // FNV-1a: it must not change from one compiler to the next.
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for (section, row) in LASTING {
        let value = find(sections, section, row)
            .map(Value::to_string)
            .unwrap_or_default();
        for byte in value.bytes().chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    format!("{hash:016x}")
}

/// What `hp` makes of it.
fn hp(root: &Root) -> Rows {
    if root.recorded() {
        return vec![("rung", unknown()), ("reason", "a recorded machine".into())];
    }
    let here = serde_json::to_value(Machine::look()).expect("a description is plain data");
    [
        "rung",
        "reason",
        "forced_rung",
        "membarrier_mask",
        "membarrier_commands",
        "rseq_feature_size",
    ]
    .into_iter()
    .map(|name| {
        (
            name,
            here.get(name)
                .cloned()
                .filter(|value| !value.is_null())
                .unwrap_or_else(none),
        )
    })
    .collect()
}

/// What this program is.
fn build(root: &Root) -> Rows {
    let library = if root.recorded() {
        unknown()
    } else {
        c_library()
    };
    vec![
        ("c_library", library),
        ("allocator", "system (of the C library)".into()),
        (
            "profile",
            if cfg!(debug_assertions) {
                "debug (not for claims)"
            } else {
                "release"
            }
            .into(),
        ),
        ("rustc", env!("HPBENCH_RUSTC").into()),
        ("revision", env!("HPBENCH_REVISION").into()),
        ("version", env!("CARGO_PKG_VERSION").into()),
        (
            "target",
            json!(format!(
                "{}-{}",
                std::env::consts::ARCH,
                std::env::consts::OS
            )),
        ),
    ]
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn c_library() -> Value {
    // SAFETY: the call returns a string that lives as long as the program.
    let version = unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) };
    format!("glibc {}", version.to_string_lossy()).into()
}

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn c_library() -> Value {
    if cfg!(target_env = "musl") {
        "musl".into()
    } else {
        unknown()
    }
}

/// What every record says of the machine, and what the first of a file says.
#[derive(Debug)]
pub(crate) struct Stamp {
    name: String,
    id: String,
    cores: usize,
    online: usize,
    whole: Value,
}

impl Stamp {
    /// Of this machine.
    pub(crate) fn here() -> Self {
        let root = Root::here();
        let sheet = Sheet::look(&root, true);
        Stamp {
            name: Machine::look().name(),
            id: sheet.id().to_owned(),
            cores: places::allowed().1,
            online: root.online().len().max(1),
            whole: sheet.to_json(),
        }
    }

    /// Whether the record is of this machine.
    pub(crate) fn made(&self, record: &Record) -> bool {
        match record.text("machine_id") {
            Some(id) => id == self.id,
            None => record.text("machine") == Some(&self.name),
        }
    }

    /// Puts it on a record.
    pub(crate) fn on(&self, mut record: Record) -> Record {
        record.set("machine_id", self.id.clone());
        record.set("cores", self.cores);
        record.set("cpus_online", self.online);
        record
    }

    /// The whole record.
    pub(crate) fn whole(&self) -> &Value {
        &self.whole
    }
}

/// The subcommand.
pub(crate) fn command(ask: &Ask, options: &Options) -> Result<(), Trouble> {
    options.without_runs_but("machine", &["--json"])?;
    let sheet = Sheet::look(&Root::here(), ask.anon);
    let Some(path): &Option<PathBuf> = &options.json else {
        return crate::command::say(&sheet.to_text());
    };
    let mut target = Target::open("--json", path)?;
    target.put(&format!("{}\n", sheet.to_json()))?;
    target.finish().map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_lasts() {
        let look = || Sheet::look(&Root::here(), true);
        let (mut a, b) = (look(), look());
        assert_eq!(a.id(), b.id());
        assert_eq!(a.id().len(), 16);
        assert!(a.get("machine", "hostname").is_none());
        for (section, row) in LASTING {
            assert!(a.get(section, row).is_some(), "{section} {row}");
        }
        let load = a
            .sections
            .iter_mut()
            .find(|(name, _)| *name == "load")
            .unwrap();
        load.1.clear();
        assert_eq!(id(&a.sections[1..]), b.id(), "not of the load");
        let kernel = a
            .sections
            .iter_mut()
            .find(|(name, _)| *name == "kernel")
            .unwrap();
        kernel.1.retain(|(name, _)| *name != "release");
        assert_ne!(id(&a.sections[1..]), b.id(), "of the kernel");
    }

    #[test]
    fn values_for_people() {
        assert_eq!(plain(&json!(["a", "b"])), "a b");
        assert_eq!(plain(&json!([])), "none");
        assert_eq!(
            plain(&json!([{"node": 0, "cpus": "0-3"}, {"node": 1}])),
            "cpus 0-3, node 0; node 1"
        );
        assert_eq!(plain(&json!(true)), "yes");
        assert_eq!(plain(&json!(1.5)), "1.5");
    }
}
