//! Floor 3, bench-suite. Owns `hpbench calibrate`: what lines, fences, system calls, barriers and pipes cost here, in a
//! file that the contention model reads. May touch `engine::pin`, `percpu`, sysfs and the terminal.
//!
//! A pair of CPUs is measured by a compare-exchange ping-pong, half of the round trip, 300 samples of 1000 (the
//! protocol of core-to-core-latency). That is the least that a line can cost; under a crowd it costs more, hence
//! `contended`.

mod costs;
mod show;

use crate::cli::Options;
use crate::command::say;
pub(crate) use crate::engine::places::Places;
use crate::engine::places::{self, CLASSES, Cpu};
use crate::engine::sysroot::Root;
use crate::model::fit::Random;
use crate::report::sink::Target;
use crate::report::stats;
use crate::trouble::Trouble;
use crate::workloads::capabilities::Machine;
use costs::Effort;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Of the file.
const SCHEMA: u32 = 1;

/// What the file is.
const KIND: &str = "hpbench calibration";

/// With more CPUs than this, pairs are sampled.
const ALL_PAIRS: usize = 48;

/// Cores that share a cache are nearer than this (all of research/benchmarks.md 7.4 are below 30 ns).
const FAR_NS: f64 = 60.0;

/// How many of each class then.
const SAMPLED: usize = 64;

/// Where samples lie.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Estimate {
    /// The middle.
    pub(crate) median: f64,
    /// A tenth lies below.
    pub(crate) low: f64,
    /// A tenth lies above.
    pub(crate) high: f64,
    /// How many.
    pub(crate) samples: usize,
}

impl Estimate {
    /// Of samples, of which there is at least one.
    fn of(samples: &[f64]) -> Self {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let at = |share: f64| sorted[((sorted.len() - 1) as f64 * share).round() as usize];
        Estimate {
            median: stats::median(samples).expect("there are samples"),
            low: at(0.1),
            high: at(0.9),
            samples: samples.len(),
        }
    }
}

/// Two CPUs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Pair {
    /// The CPUs.
    pub(crate) cpus: (usize, usize),
    /// How near they are.
    pub(crate) class: String,
    /// One way.
    pub(crate) one_way_ns: Estimate,
}

/// All pairs that are equally near.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Class {
    /// How near.
    pub(crate) name: String,
    /// How many pairs were measured.
    pub(crate) pairs: usize,
    /// Over the medians of the pairs; of one pair its own samples.
    pub(crate) one_way_ns: Estimate,
}

/// A cost beside a number of threads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Beside {
    /// Threads: all that contend, or the busy ones beside.
    pub(crate) threads: usize,
    /// Of one call.
    pub(crate) ns: Estimate,
}

/// A round trip over two pipes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Pipe {
    /// `one CPU`, `siblings`, `two cores`.
    pub(crate) place: String,
    /// There and back.
    pub(crate) round_trip_ns: Estimate,
}

/// Everything.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Calibration {
    /// What the file is.
    pub(crate) kind: String,
    /// Its version.
    pub(crate) schema: u32,
    /// Shortened: not for claims.
    pub(crate) quick: bool,
    /// The machine, as `capabilities` tells it.
    pub(crate) machine: serde_json::Value,
    /// Its shape.
    pub(crate) places: Places,
    /// Core to core.
    pub(crate) pairs: Vec<Pair>,
    /// The same by how near.
    pub(crate) classes: Vec<Class>,
    /// One fetch_add of all threads together.
    pub(crate) contended: Vec<Beside>,
    /// A read-modify-write on an own line.
    pub(crate) rmw_ns: Estimate,
    /// A store and a fence.
    pub(crate) fence_ns: Estimate,
    /// getppid.
    pub(crate) syscall_ns: Estimate,
    /// One restartable section.
    pub(crate) section_ns: Option<Estimate>,
    /// membarrier(PRIVATE_EXPEDITED).
    pub(crate) membarrier: Vec<Beside>,
    /// The heavy barrier of the rung in use.
    pub(crate) heavy_barrier: Vec<Beside>,
    /// Hand-over.
    pub(crate) pipes: Vec<Pipe>,
    /// What could not be measured, and why.
    pub(crate) missing: Vec<String>,
}

impl Calibration {
    /// Reads a file's text.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        #[derive(Deserialize)]
        struct Head {
            kind: String,
            schema: u32,
        }
        let bad = |error: serde_json::Error| format!("not a calibration: {error}");
        let head: Head = serde_json::from_str(text).map_err(bad)?;
        if head.kind != KIND {
            return Err(format!("not a calibration but '{}'", head.kind));
        }
        if head.schema != SCHEMA {
            return Err(format!(
                "a calibration of schema {}, this program reads {SCHEMA}",
                head.schema
            ));
        }
        serde_json::from_str(text).map_err(bad)
    }

    /// The round trip of a pair on one core: on its siblings, or on its one CPU.
    pub(crate) fn think(&self) -> Option<&Estimate> {
        let at = |place: &str| self.pipes.iter().find(|pipe| pipe.place == place);
        at("siblings")
            .or_else(|| at("one CPU"))
            .map(|pipe| &pipe.round_trip_ns)
    }

    /// The name of the CPU.
    pub(crate) fn model(&self) -> &str {
        self.machine["cpu_model"].as_str().unwrap_or("unknown CPU")
    }

    /// Measures.
    pub(crate) fn measure(
        quick: bool,
        seed: u64,
        mut progress: impl FnMut(&str),
    ) -> Result<Self, Trouble> {
        Root::here().measurable()?;
        let effort = Effort::new(quick);
        let refused = Trouble::Environment;
        let cpus = places::here();
        let order = places::core_first(&cpus);
        let mut missing = Vec::new();
        let chosen = choose(&cpus, seed, &mut missing);
        progress(&format!("core to core, {} pairs", chosen.len()));
        let mut pairs = Vec::new();
        for (a, b, class) in chosen {
            let one_way_ns = costs::ping_pong(a, b, effort).map_err(refused)?;
            pairs.push(Pair {
                cpus: (a, b),
                class: CLASSES[class].to_owned(),
                one_way_ns,
            });
        }
        progress("contended fetch_add");
        let mut contended = Vec::new();
        for threads in counts(order.len()) {
            match costs::contended(&order[..threads], effort).map_err(refused)? {
                Some(ns) => contended.push(Beside { threads, ns }),
                None => missing.push(format!(
                    "contended fetch_add, {threads} threads: they were hardly ever at it at once"
                )),
            }
        }
        progress("fence, system call, section");
        let alone = costs::alone(order[0], effort).map_err(refused)?;
        if alone.section.is_none() {
            missing.push(format!(
                "restartable section: {}",
                percpu::capabilities().reason
            ));
        }
        progress("barriers");
        let mut beside = |name: &str, call: fn() -> bool| -> Result<Vec<Beside>, Trouble> {
            let mut all = Vec::new();
            for busy in std::iter::once(0).chain(counts(order.len() - 1)) {
                match costs::barrier(&order[..=busy], effort, call).map_err(Trouble::Environment)? {
                    Some(ns) => all.push(Beside { threads: busy, ns }),
                    None => {
                        missing.push(format!("{name}: the system refuses it"));
                        break;
                    }
                }
            }
            Ok(all)
        };
        let membarrier = beside("membarrier", costs::membarrier)?;
        let heavy_barrier = beside("heavy barrier", costs::heavy)?;
        progress("pipes");
        let mut pipes = Vec::new();
        let nearest = |class: std::ops::RangeInclusive<usize>| {
            let first = &cpus[0];
            let near = |other: &&Cpu| class.contains(&first.class(other));
            cpus[1..]
                .iter()
                .filter(near)
                .min_by_key(|other| first.class(other))
                .map(|other| other.cpu)
        };
        for (place, partner) in [
            ("one CPU", Some(cpus[0].cpu)),
            ("siblings", nearest(0..=0)),
            ("two cores", nearest(1..=3)),
        ] {
            if let Some(partner) = partner {
                let round_trip_ns =
                    costs::pipe(cpus[0].cpu, partner, effort).map_err(Trouble::Environment)?;
                pipes.push(Pipe {
                    place: place.to_owned(),
                    round_trip_ns,
                });
            }
        }
        let classes = CLASSES
            .iter()
            .filter_map(|&name| class(name, &pairs))
            .collect::<Vec<_>>();
        if cpus.len() == 1 {
            missing.push("core to core, contention, barriers beside busy threads, pipes between cores: one CPU is allowed".to_owned());
        } else {
            for name in CLASSES
                .iter()
                .filter(|name| classes.iter().all(|class| class.name != **name))
            {
                missing.push(format!(
                    "core to core, class {name}: no two allowed CPUs are that near or far"
                ));
            }
        }
        if let Some(ccx) = classes
            .iter()
            .find(|class| class.name == "ccx" && class.one_way_ns.median > FAR_NS)
        {
            missing.push(format!(
                "CPUs that are told to share a cache are {:.0} ns apart, as far as two caches elsewhere: a hypervisor may have made up the topology",
                ccx.one_way_ns.median
            ));
        }
        if let Some(load) = load().filter(|&load| load > 0.5 * cpus.len() as f64) {
            missing.push(format!(
                "load average {load:.1} on {} CPUs: other programs ran: barriers beside busy threads are too low, spreads too wide",
                cpus.len()
            ));
        }
        if cfg!(debug_assertions) {
            missing.push("this program was built without optimisation: not for claims".to_owned());
        }
        missing.push("clock frequency is not fixed or checked; in a virtual machine a CPU may share its core with strangers".to_owned());
        Ok(Calibration {
            kind: KIND.to_owned(),
            schema: SCHEMA,
            quick,
            machine: serde_json::to_value(Machine::look()).expect("a description is plain data"),
            places: Places::of(&cpus),
            pairs,
            classes,
            contended,
            rmw_ns: alone.rmw,
            fence_ns: alone.fence,
            syscall_ns: alone.syscall,
            section_ns: alone.section,
            membarrier,
            heavy_barrier,
            pipes,
            missing,
        })
    }
}

/// The load average of the last minute.
fn load() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// 1, 2, 3, 4, 6, 8, 12, … and the most itself.
fn counts(most: usize) -> Vec<usize> {
    let mut counts: Vec<usize> = (0..usize::BITS - 1)
        .flat_map(|power| [1 << power, 3 << power])
        .filter(|&count| count < most)
        .chain((most > 0).then_some(most))
        .collect();
    counts.sort_unstable();
    counts
}

/// The pairs to measure, with their class.
fn choose(cpus: &[Cpu], seed: u64, missing: &mut Vec<String>) -> Vec<(usize, usize, usize)> {
    let mut all = Vec::new();
    for (index, a) in cpus.iter().enumerate() {
        all.extend(cpus[index + 1..].iter().map(|b| (a.cpu, b.cpu, a.class(b))));
    }
    if cpus.len() <= ALL_PAIRS {
        return all;
    }
    let mut random = Random::new(seed);
    let count = all.len();
    let mut chosen = Vec::new();
    for class in 0..CLASSES.len() {
        let mut these: Vec<_> = all.iter().copied().filter(|pair| pair.2 == class).collect();
        while these.len() > SAMPLED {
            these.swap_remove(random.below(these.len()));
        }
        chosen.extend(these);
    }
    missing.push(format!(
        "core to core: {} of {count} pairs, at most {SAMPLED} of each class",
        chosen.len()
    ));
    chosen
}

fn class(name: &str, pairs: &[Pair]) -> Option<Class> {
    let these: Vec<&Pair> = pairs.iter().filter(|pair| pair.class == name).collect();
    let one_way_ns = match these.as_slice() {
        [] => return None,
        [only] => only.one_way_ns,
        several => Estimate::of(
            &several
                .iter()
                .map(|pair| pair.one_way_ns.median)
                .collect::<Vec<_>>(),
        ),
    };
    Some(Class {
        name: name.to_owned(),
        pairs: these.len(),
        one_way_ns,
    })
}

/// `hpbench calibrate`.
pub(crate) fn command(options: &Options) -> Result<(), Trouble> {
    options.without_runs_but("calibrate", &["--json", "--quick"])?;
    let target = options
        .json
        .as_deref()
        .map(|path| Target::open("--json", path))
        .transpose()?;
    let loud = options.json.as_deref() != Some(Path::new("-"));
    let calibration = Calibration::measure(options.quick, options.seed, |what| {
        if std::io::IsTerminal::is_terminal(&std::io::stderr()) {
            eprintln!("calibrate: {what}");
        }
    })?;
    if loud {
        say(&show::text(&calibration))?;
    }
    let Some(mut target) = target else {
        return Ok(());
    };
    let mut text = serde_json::to_string(&calibration).expect("numbers and words");
    text.push('\n');
    target.put(&text)?;
    match target.finish()? {
        Some(path) => say(&format!("\nwritten:\n  {}\n", path.display())),
        None => Ok(()),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    #[test]
    fn numbers_of_threads() {
        assert_eq!(counts(0), Vec::<usize>::new());
        assert_eq!(counts(1), [1]);
        assert_eq!(counts(2), [1, 2]);
        assert_eq!(counts(7), [1, 2, 3, 4, 6, 7]);
        assert_eq!(counts(8), [1, 2, 3, 4, 6, 8]);
    }

    #[test]
    fn estimates() {
        let values: Vec<f64> = (0..=10).map(f64::from).collect();
        let estimate = Estimate::of(&values);
        assert_eq!(
            (
                estimate.median,
                estimate.low,
                estimate.high,
                estimate.samples
            ),
            (5.0, 1.0, 9.0, 11)
        );
    }

    #[test]
    fn many_pairs_are_sampled() {
        let numbers: Vec<usize> = (0..ALL_PAIRS + 1).collect();
        let cpus = places::look(Path::new("/no/such/place"), &numbers);
        let mut missing = Vec::new();
        let chosen = choose(&cpus, 1, &mut missing);
        assert_eq!((chosen.len(), missing.len()), (SAMPLED, 1));
        assert_eq!(
            choose(&cpus[..ALL_PAIRS], 1, &mut missing).len(),
            ALL_PAIRS * (ALL_PAIRS - 1) / 2
        );
        assert_eq!(missing.len(), 1);
    }

    #[test]
    fn other_files_are_refused() {
        for (text, words) in [
            ("{}", "missing field `kind`"),
            (r#"{"kind":"x","schema":1}"#, "'x'"),
            (r#"{"kind":"hpbench calibration","schema":9}"#, "schema 9"),
            (
                r#"{"kind":"hpbench calibration","schema":1}"#,
                "missing field",
            ),
            ("{", "EOF"),
        ] {
            let why = Calibration::parse(text).unwrap_err();
            assert!(why.contains(words), "{why}");
        }
    }
}
