//! Floor 3, bench-suite. Owns the description of a machine for the contention model: a TOML file, the built-in one, or
//! what `calibrate` measured. May read files.

use crate::calibrate::Calibration;
use crate::trouble::Trouble;
use serde::de::{Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;
use std::path::Path;

/// The machine of the published table.
const SEED004: &str = include_str!("machines/seed004.toml");

/// More cores than this are a mistake.
const MOST_CORES: usize = 65_536;

/// What the model must know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Description {
    /// For headings.
    pub(crate) name: String,
    /// Where the numbers come from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
    /// The published table that was measured on it, if one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) compares_with: Option<String>,
    /// Sockets.
    pub(crate) sockets: usize,
    /// Cores of each.
    pub(crate) cores_per_socket: usize,
    /// Cores that share a last-level cache.
    pub(crate) cores_per_ccx: usize,
    /// Hardware threads of a core.
    pub(crate) threads_per_core: usize,
    /// What it takes to get a line, by where it was touched last.
    pub(crate) transfer_ns: Transfer,
    /// One round trip of one pair.
    pub(crate) round_trip: RoundTrip,
    /// The share of blocks that send a CPU to idle, by threads; 1 up to the first entry, linear between.
    #[serde(default)]
    pub(crate) idle: Vec<Idle>,
}

/// Costs of getting a line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Transfer {
    /// Last touched on the same core.
    pub(crate) core: Number,
    /// On another core of the same last-level cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ccx: Option<Number>,
    /// Elsewhere in the same socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) socket: Option<Number>,
    /// In another socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) remote: Option<Number>,
}

/// One round trip.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RoundTrip {
    /// Z: its time with nothing shared.
    pub(crate) think_ns: Number,
    /// n: transfers of the counter's line.
    pub(crate) transfers: f64,
    /// r: demand on whatever else is shared, in units of the demand on the counter's line.
    pub(crate) shared: Number,
}

/// A point of f(N).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Idle {
    /// N.
    pub(crate) threads: usize,
    /// f.
    pub(crate) fraction: f64,
}

/// A value with the range that it may have. In the file a number, or a table with `value`, `low` and `high`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Number {
    /// The best guess.
    pub(crate) value: f64,
    /// At least this.
    pub(crate) low: f64,
    /// At most this.
    pub(crate) high: f64,
}

impl Number {
    /// Without a range.
    pub(crate) fn exactly(value: f64) -> Self {
        Number {
            value,
            low: value,
            high: value,
        }
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Number;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, or { value, low, high }")
            }

            fn visit_f64<E>(self, value: f64) -> Result<Number, E> {
                Ok(Number::exactly(value))
            }

            fn visit_i64<E>(self, value: i64) -> Result<Number, E> {
                Ok(Number::exactly(value as f64))
            }

            fn visit_u64<E>(self, value: u64) -> Result<Number, E> {
                Ok(Number::exactly(value as f64))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Number, A::Error> {
                let (mut value, mut low, mut high) = (None, None, None);
                while let Some(name) = map.next_key::<String>()? {
                    match name.as_str() {
                        "value" => value = Some(map.next_value()?),
                        "low" => low = Some(map.next_value()?),
                        "high" => high = Some(map.next_value()?),
                        "from" => drop(map.next_value::<IgnoredAny>()?),
                        other => {
                            return Err(A::Error::unknown_field(
                                other,
                                &["value", "low", "high", "from"],
                            ));
                        }
                    }
                }
                let value = value.ok_or_else(|| A::Error::missing_field("value"))?;
                Ok(Number {
                    value,
                    low: low.unwrap_or(value),
                    high: high.unwrap_or(value),
                })
            }
        }
        deserializer.deserialize_any(Either)
    }
}

impl Description {
    /// The built-in machine of the published table.
    pub(crate) fn seed004() -> Self {
        Self::parse(SEED004).expect("the built-in description is part of the program")
    }

    /// A TOML description, checked.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let description: Description = toml::from_str(text).map_err(|error| {
            let line = error
                .span()
                .map(|span| 1 + text[..span.start.min(text.len())].matches('\n').count());
            let why = error.message().replace('\n', " ");
            match line {
                Some(line) => format!("line {line}: {why}"),
                None => why,
            }
        })?;
        description.check()?;
        Ok(description)
    }

    /// A description or what `calibrate --json` wrote.
    pub(crate) fn read(path: &Path) -> Result<Self, Trouble> {
        let shown = path.display();
        let text = std::fs::read_to_string(path).map_err(|error| {
            Trouble::Usage(format!(
                "--machine {shown}: neither 'seed004' nor 'this' nor a file that can be read: {error}"
            ))
        })?;
        let description = if text.trim_start().starts_with('{') {
            Calibration::parse(&text).and_then(|calibration| Self::measured(&calibration))
        } else {
            Self::parse(&text)
        };
        description.map_err(|why| Trouble::Usage(format!("--machine {shown}: {why}")))
    }

    /// All cores.
    pub(crate) fn cores(&self) -> usize {
        self.sockets * self.cores_per_socket
    }

    /// What types cannot say.
    fn check(&self) -> Result<(), String> {
        for (name, count) in [
            ("sockets", self.sockets),
            ("cores_per_socket", self.cores_per_socket),
            ("cores_per_ccx", self.cores_per_ccx),
            ("threads_per_core", self.threads_per_core),
        ] {
            if !(1..=MOST_CORES).contains(&count) {
                return Err(format!("{name} = {count}: must be 1 to {MOST_CORES}"));
            }
        }
        if self.cores() > MOST_CORES {
            return Err(format!("{} cores: more than {MOST_CORES}", self.cores()));
        }
        let transfer = &self.transfer_ns;
        for (name, number, needed) in [
            (
                "ccx",
                transfer.ccx,
                self.cores_per_ccx.min(self.cores_per_socket) > 1,
            ),
            (
                "socket",
                transfer.socket,
                self.cores_per_socket > self.cores_per_ccx,
            ),
            ("remote", transfer.remote, self.sockets > 1),
        ] {
            if number.is_none() && needed {
                return Err(format!(
                    "missing field `transfer_ns.{name}`: the machine has such neighbours"
                ));
            }
        }
        let numbers = [
            ("transfer_ns.core", Some(transfer.core)),
            ("transfer_ns.ccx", transfer.ccx),
            ("transfer_ns.socket", transfer.socket),
            ("transfer_ns.remote", transfer.remote),
            ("round_trip.think_ns", Some(self.round_trip.think_ns)),
            (
                "round_trip.transfers",
                Some(Number::exactly(self.round_trip.transfers)),
            ),
        ];
        for (name, number) in numbers {
            let Some(Number { value, low, high }) = number else {
                continue;
            };
            if !(low > 0.0 && low <= value && value <= high && high <= 1e12) {
                return Err(format!(
                    "{name}: needs 0 < low <= value <= high, has {low}, {value}, {high}"
                ));
            }
        }
        let Number { value, low, high } = self.round_trip.shared;
        if !(low >= 0.0 && low <= value && value <= high && high <= 1e6) {
            return Err(format!(
                "round_trip.shared: needs 0 <= low <= value <= high, has {low}, {value}, {high}"
            ));
        }
        for idle in &self.idle {
            if !(0.0..=1.0).contains(&idle.fraction) {
                return Err(format!(
                    "idle at {} threads: fraction {} is not in 0 to 1",
                    idle.threads, idle.fraction
                ));
            }
        }
        if self
            .idle
            .windows(2)
            .any(|pair| pair[0].threads >= pair[1].threads)
        {
            return Err("idle: threads must ascend".to_owned());
        }
        if self
            .compares_with
            .as_deref()
            .is_some_and(|with| with != "seed004")
        {
            return Err("compares_with: only 'seed004' has such a table".to_owned());
        }
        Ok(())
    }

    /// From what `calibrate` measured. What it could not measure is left out if the machine does not need it.
    pub(crate) fn measured(calibration: &Calibration) -> Result<Self, String> {
        let places = &calibration.places;
        let number = |estimate: &crate::calibrate::Estimate| Number {
            value: estimate.median,
            low: estimate.low.min(estimate.median),
            high: estimate.high.max(estimate.median),
        };
        let class = |name: &str| {
            let class = calibration
                .classes
                .iter()
                .find(|class| class.name == name)?;
            Some(number(&class.one_way_ns))
        };
        let think = calibration
            .think()
            .ok_or("the calibration has no pipe round trip: it cannot tell the think time")?;
        let description = Description {
            name: format!("this: {}", calibration.model()),
            note: Some(format!(
                "costs measured by hpbench calibrate{}; tracking in user space at every block of context_switch1, a pair on one core; r = 0.2 (0.02 to 0.8) is assumed",
                if calibration.quick {
                    " --quick (not for claims)"
                } else {
                    ""
                }
            )),
            compares_with: None,
            sockets: places.sockets,
            cores_per_socket: places.cores_per_socket,
            cores_per_ccx: places.cores_per_ccx,
            threads_per_core: places.threads_per_core,
            transfer_ns: Transfer {
                core: class("core").unwrap_or_else(|| number(&calibration.rmw_ns)),
                ccx: class("ccx"),
                socket: class("socket"),
                remote: class("remote"),
            },
            round_trip: RoundTrip {
                think_ns: number(think),
                transfers: 4.0,
                shared: Number {
                    value: 0.2,
                    low: 0.02,
                    high: 0.8,
                },
            },
            idle: Vec::new(),
        };
        description.check()?;
        Ok(description)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_machine() {
        let machine = Description::seed004();
        assert_eq!(
            (
                machine.cores(),
                machine.threads_per_core,
                machine.cores_per_ccx
            ),
            (192, 2, 8)
        );
        assert_eq!(machine.compares_with.as_deref(), Some("seed004"));
    }

    #[test]
    fn numbers_have_two_forms() {
        let two = SEED004.replace("transfers = 2", "transfers = 2.0");
        assert_eq!(Description::parse(&two).unwrap(), Description::seed004());
        let transfer = Description::seed004().transfer_ns;
        assert!(
            transfer.core.low < transfer.core.value && transfer.core.value < transfer.core.high
        );
    }

    #[test]
    fn mistakes_are_named() {
        let all = |from: &str, to: &str| {
            assert!(SEED004.contains(from), "{from}");
            Description::parse(&SEED004.replace(from, to)).unwrap_err()
        };
        for (from, to, words) in [
            ("sockets = 2", "", vec!["missing field", "sockets"]),
            ("sockets = 2", "sockets = 0", vec!["sockets", "0"]),
            ("sockets = 2", "sockets = \"two\"", vec!["line", "two"]),
            ("sockets = 2", "sockets = 2\nsokets = 3", vec!["sokets"]),
            ("transfers = 2", "", vec!["missing field", "transfers"]),
            (
                "transfers = 2",
                "transfers = -1",
                vec!["round_trip.transfers", "-1"],
            ),
            (
                "transfers = 2",
                "transfers = nan",
                vec!["round_trip.transfers"],
            ),
            ("fraction = 0.2", "fraction = 1.5", vec!["idle", "1.5"]),
            ("fraction = 0.2", "fraction = 1.5 =", vec!["line"]),
            ("threads = 768", "threads = 7", vec!["ascend"]),
            ("\"seed004\"", "\"seed000\"", vec!["compares_with"]),
        ] {
            let why = all(from, to);
            assert!(!why.contains('\n'), "{why}");
            for word in words {
                assert!(why.contains(word), "{from} -> {to}: {why}");
            }
        }
        let remote = SEED004
            .lines()
            .find(|line| line.starts_with("remote"))
            .unwrap();
        assert!(all(remote, "").contains("transfer_ns.remote"));
    }
}
