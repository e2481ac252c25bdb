//! Floor 3, bench-suite. Owns what records tell of their machine: its name, its size, and its description as rows.
//! May look at this machine where records are its own and say less.

use super::record::Record;
use super::theirs::Topology;
use crate::engine::places;
use crate::engine::sysroot::Root;
use crate::machine::Sheet;
use crate::workloads::capabilities::Machine;
use serde_json::Value;

/// A machine as a report shows it.
#[derive(Debug)]
pub(crate) struct Facts {
    /// What tells it from others.
    pub(crate) name: String,
    /// How large it is, if that is known.
    pub(crate) topology: Option<Topology>,
    /// Its description: names and values.
    pub(crate) rows: Vec<(String, String)>,
}

const UNKNOWN: &str = "unknown machine";

/// What tells a record's machine from others: names may be the same.
pub(crate) fn identity(record: &Record) -> Option<&str> {
    record.text("machine_id").or_else(|| record.text("machine"))
}

/// The records of each machine, in the order in which they come. One that names none (it was skipped) belongs to the
/// machine before it.
pub(crate) fn by_machine(records: &[Record]) -> Vec<Vec<Record>> {
    let mut machines: Vec<(&str, Vec<Record>)> = Vec::new();
    let mut current = records.iter().find_map(identity).unwrap_or(UNKNOWN);
    for record in records {
        current = identity(record).unwrap_or(current);
        match machines.iter_mut().find(|(name, _)| *name == current) {
            Some((_, others)) => others.push(record.clone()),
            None => machines.push((current, vec![record.clone()])),
        }
    }
    machines.into_iter().map(|(_, records)| records).collect()
}

/// The description of its machine in a record that has one.
fn described(record: &Record) -> Option<&Value> {
    ["machine_record", "machine"]
        .iter()
        .filter_map(|key| record.params.get(*key))
        .find(|value| value.is_object())
}

impl Facts {
    /// Of the machine that all of `records` are from.
    pub(crate) fn of(records: &[Record]) -> Self {
        let here = Machine::look();
        let mut names = records.iter().filter_map(|record| record.text("machine"));
        let name = names.next().unwrap_or(UNKNOWN);
        // A machine of the same name is another one if its id says so.
        let made_here = |id| id == Sheet::look(&Root::here(), true).id();
        let mut ids = records
            .iter()
            .filter_map(|record| record.text("machine_id"));
        let is_here = name == here.name() && ids.next().is_none_or(made_here);
        let look = || {
            let mut value = serde_json::to_value(&here).expect("a description is plain data");
            // What is true of this process and need not be of the one that measured.
            for own in ["schema", "profile", "forced_rung", "rung", "reason"] {
                value.as_object_mut().and_then(|map| map.remove(own));
            }
            value
        };
        let described = records.iter().find_map(described).cloned();
        let value = described.or_else(|| is_here.then(look));
        let mut rows = Vec::new();
        match &value {
            Some(value) => flatten("", value, &mut rows),
            None => rows.push((
                "machine".to_owned(),
                format!("{name} (the records say no more)"),
            )),
        }
        Facts {
            topology: topology(records).or_else(|| is_here.then(this)),
            name: name.to_owned(),
            rows,
        }
    }
}

/// Of this machine, as far as the program may use it.
fn this() -> Topology {
    let found = places::Places::of(&places::here());
    let (cpus, cores) = places::allowed();
    Topology {
        sockets: found.sockets,
        cores,
        cpus,
    }
}

/// As the records tell it: in their parameters, or in the description of their machine.
fn topology(records: &[Record]) -> Option<Topology> {
    records.iter().find_map(|record| {
        let places = described(record);
        let count = |names: &[&str]| {
            names.iter().find_map(|name| {
                let own = record.params.get(*name);
                let value = own.or_else(|| places.and_then(|value| find(value, name)))?;
                value
                    .as_u64()
                    .map(|n| n as usize)
                    .or_else(|| value.as_array().map(Vec::len))
            })
        };
        Some(Topology {
            sockets: count(&["sockets", "packages"]).unwrap_or(1),
            cores: count(&["cores"])?,
            cpus: count(&["cpus_online", "cpus_allowed", "allowed_cpus"])?,
        })
    })
}

/// The value of a name in an object or in one of its parts.
fn find<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    let map = value.as_object()?;
    map.get(name)
        .or_else(|| map.values().find_map(|part| find(part, name)))
}

/// Objects in objects become names with a dot, short lists one line.
fn flatten(prefix: &str, value: &Value, rows: &mut Vec<(String, String)>) {
    let plain = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Null => "none".to_owned(),
        other => other.to_string(),
    };
    match value {
        Value::Object(map) => {
            for (name, value) in map {
                let dot = if prefix.is_empty() { "" } else { "." };
                flatten(&format!("{prefix}{dot}{name}"), value, rows);
            }
        }
        Value::Array(list) if list.iter().all(|part| !part.is_object()) => {
            let parts: Vec<String> = list.iter().map(plain).collect();
            rows.push((prefix.to_owned(), parts.join(", ")));
        }
        Value::Array(list) => {
            for (index, part) in list.iter().enumerate() {
                flatten(&format!("{prefix}.{index}"), part, rows);
            }
        }
        other => rows.push((prefix.to_owned(), plain(other))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::record::tests::sample;
    use crate::workloads::Workload;
    use serde_json::json;

    #[test]
    fn descriptions_become_rows() {
        let mut record = sample(Workload::Read, "hp", 1, 0, 1);
        record.set("machine", "a machine");
        record.set(
            "machine_record",
            json!({
                "cpu": { "model": "X <1>", "cores": 96, "cpus_online": 192, "sockets": 2 },
                "caches": ["L1", "L2"],
                "steal": null
            }),
        );
        let facts = Facts::of(&[record]);
        assert_eq!(facts.name, "a machine");
        assert!(facts.rows.contains(&("cpu.model".into(), "X <1>".into())));
        assert!(facts.rows.contains(&("caches".into(), "L1, L2".into())));
        assert!(facts.rows.contains(&("steal".into(), "none".into())));
        let topology = facts.topology.unwrap();
        assert_eq!(topology.words(), "2 sockets, 96 cores and 192 CPUs");
    }

    #[test]
    fn parameters_beat_the_description_and_strangers_stay_unknown() {
        let mut record = sample(Workload::Read, "hp", 1, 0, 1);
        record.set("machine", "a machine");
        let facts = Facts::of(std::slice::from_ref(&record));
        assert!(facts.topology.is_none(), "not this machine's");
        assert_eq!(facts.rows.len(), 1);
        record.set("cores", 4);
        record.set("cpus_online", 8);
        let facts = Facts::of(&[record]);
        assert_eq!(facts.topology.unwrap().cpus, 8);
    }

    #[test]
    fn records_without_a_machine_belong_to_the_one_before() {
        let with = |machine: Option<&str>| {
            let mut record = sample(Workload::Read, "hp", 1, 0, 1);
            if let Some(machine) = machine {
                record.set("machine", machine);
            }
            record
        };
        let counts = |machines: &[Option<&str>]| -> Vec<usize> {
            let records: Vec<Record> = machines.iter().map(|&name| with(name)).collect();
            by_machine(&records).iter().map(Vec::len).collect()
        };
        assert_eq!(
            counts(&[None, Some("a"), None, Some("b"), Some("a"), None]),
            [5, 1]
        );
        assert_eq!(counts(&[None, None]), [2]);
        let mut twins = [with(Some("a")), with(Some("a"))];
        twins[0].set("machine_id", "1");
        twins[1].set("machine_id", "2");
        assert_eq!(by_machine(&twins).len(), 2, "of the same name");
        assert!(counts(&[]).is_empty());
    }

    #[test]
    fn this_machine_is_looked_at() {
        let mut record = sample(Workload::Read, "hp", 1, 0, 1);
        record.set("machine", Machine::look().name());
        let facts = Facts::of(std::slice::from_ref(&record));
        assert!(facts.topology.unwrap().cpus > 0);
        assert!(facts.rows.iter().any(|(name, _)| name == "kernel"));
        record.set("machine_id", "0123456789abcdef");
        let twin = Facts::of(std::slice::from_ref(&record));
        assert!(twin.topology.is_none(), "of the same name");
        record.set("machine_id", Sheet::look(&Root::here(), true).id());
        assert!(Facts::of(&[record]).topology.is_some());
    }
}
