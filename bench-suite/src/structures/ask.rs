//! Floor 3, bench-suite. Owns the options of `structures`, the points that they make, and how a point is read back. May
//! ask `parse`.

use super::crew::Stall;
use super::dist::Dist;
use crate::cli::List;
use crate::engine::job::{Job, Params, Shape};
use crate::engine::places;
use crate::parse;
use crate::workloads::Ask as Points;
use ::structures::Kind as Ds;
use std::time::Duration;

/// Keys are below this: a value names its key in 24 bits.
const MOST_KEYS: usize = 1 << 24;

/// Elements of a stack or queue at the start, if nobody says.
const DEEP: usize = 1024;

/// Keys of a list if nobody says: a walk to the middle of its elements.
const LIST_KEYS: usize = 512;

/// Keys of the other maps.
const KEYS: usize = 131_072;

/// The same where there are long reads: half of them are elements.
const LONG_KEYS: usize = 200_000;

/// Gets if nobody says.
const GETS: u64 = 90;

/// Options of the workload.
#[derive(Debug, clap::Args)]
pub(crate) struct Ask {
    /// Structures: cell, stack, queue, list, hash, skip, or all
    #[arg(long, value_name = "LIST", default_value = "all", value_parser = |text: &str| structures(text).map(List))]
    ds: List<Ds>,
    /// Percent of the operations that read, a list; of the rest half put in and half take out
    #[arg(long, value_name = "LIST", default_value = "90", value_parser = |text: &str| rates(text).map(List))]
    get_rate: List<u64>,
    /// Keys of a map, a list or series [default: list 512, others 131072; with --long-reads 200000]
    #[arg(long, value_name = "LIST", value_parser = |text: &str| key_ranges(text).map(List))]
    key_range: Option<List<usize>>,
    /// Elements at the start [default: half of the keys; stack and queue 1024]
    #[arg(long, value_name = "N", value_parser = prefill)]
    prefill: Option<usize>,
    /// How often keys are taken: all alike, or by Zipf's law with exponent 0.99 (zipf:S: another one)
    #[arg(long, value_name = "uniform|zipf", default_value = "uniform", value_parser = Dist::parse)]
    dist: Dist,
    /// One more thread stays inside, with one element protected: for a time again and again, or until the end
    #[arg(long, value_name = "none|TIME|forever", default_value = "none", value_parser = stall)]
    stall: Stay,
    /// N threads for each CPU, in the place of --threads
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=512))]
    oversubscribe: Option<u64>,
    /// Threads end and are replaced by new ones, each after TIME
    #[arg(long, value_name = "TIME", value_parser = churn)]
    churn: Option<Duration>,
    /// Open loop: operations a second of each thread, on a schedule; latency from when an operation was due
    #[arg(long, value_name = "PER_S", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    rate: Option<u64>,
    /// N more threads walk over all elements of a map, again and again
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = parse::crew)]
    long_reads: usize,
}

/// `--stall`: clap takes an `Option` for an option that may be missing.
#[derive(Debug, Clone, Copy)]
struct Stay(Option<Stall>);

fn structures(text: &str) -> Result<Vec<Ds>, String> {
    if text == "all" {
        return Ok(Ds::ALL.to_vec());
    }
    let mut list = Vec::new();
    for name in text.split(',') {
        let ds = Ds::ALL.iter().find(|ds| ds.name() == name).copied();
        let names = || Ds::ALL.iter().map(|ds| ds.name()).collect::<Vec<_>>();
        let ds =
            ds.ok_or_else(|| format!("no structure '{name}', there are {}", names().join(", ")))?;
        if !list.contains(&ds) {
            list.push(ds);
        }
    }
    Ok(list)
}

fn rates(text: &str) -> Result<Vec<u64>, String> {
    let rates = parse::sizes(text, 100)?;
    Ok(rates.into_iter().map(|rate| rate as u64).collect())
}

fn key_ranges(text: &str) -> Result<Vec<usize>, String> {
    match parse::sizes(text, MOST_KEYS)? {
        keys if keys.contains(&0) => Err("at least 1 key".to_owned()),
        keys => Ok(keys),
    }
}

fn prefill(text: &str) -> Result<usize, String> {
    match parse::sizes(text, MOST_KEYS)?.as_slice() {
        [one] => Ok(*one),
        _ => Err("one number".to_owned()),
    }
}

fn stall(text: &str) -> Result<Stay, String> {
    const MOST: Duration = Duration::from_secs(1);
    match text {
        "none" => Ok(Stay(None)),
        "forever" => Ok(Stay(Some(Stall::Forever))),
        _ => match parse::positive_duration(text) {
            Ok(time) if time > MOST => Err("longer than 1s: forever?".to_owned()),
            Ok(time) => Ok(Stay(Some(Stall::For(time)))),
            Err(why) => Err(format!("not none, forever or a duration: {why}")),
        },
    }
}

fn churn(text: &str) -> Result<Duration, String> {
    match parse::positive_duration(text)? {
        time if time < Duration::from_micros(100) => Err("shorter than 100us".to_owned()),
        time => Ok(time),
    }
}

/// A duration as `parse::duration` reads it.
fn word(time: Duration) -> String {
    match time.as_nanos() {
        ns if ns % 1_000_000 == 0 => format!("{}ms", ns / 1_000_000),
        ns if ns % 1000 == 0 => format!("{}us", ns / 1000),
        ns => format!("{ns}ns"),
    }
}

/// Whether it has keys, and a walk.
pub(super) fn is_map(ds: Ds) -> bool {
    matches!(ds, Ds::List | Ds::Hash | Ds::Skip)
}

/// The points of a structure.
#[derive(Debug, Clone, Copy)]
struct Wants {
    ds: Ds,
    get_rate: u64,
    key_range: Option<usize>,
    prefill: Option<usize>,
    dist: Dist,
    stall: Option<Stall>,
    churn: Option<Duration>,
    rate: Option<u64>,
    long_reads: usize,
}

impl Wants {
    fn usual(ds: Ds) -> Self {
        Wants {
            ds,
            get_rate: GETS,
            key_range: None,
            prefill: None,
            dist: Dist::Uniform,
            stall: None,
            churn: None,
            rate: None,
            long_reads: 0,
        }
    }

    /// What is usual is not named: points have short names.
    fn params(&self) -> Params {
        let mut params = Params::from([
            (DS.to_owned(), self.ds.name().into()),
            (GET.to_owned(), self.get_rate.into()),
        ]);
        let mut set = |name: &str, value: serde_json::Value| params.insert(name.to_owned(), value);
        if is_map(self.ds) {
            let usual = match (self.long_reads, self.ds) {
                (1.., _) => LONG_KEYS,
                (0, Ds::List) => LIST_KEYS,
                _ => KEYS,
            };
            set(KEY_RANGE, self.key_range.unwrap_or(usual).into());
            if self.dist != Dist::Uniform {
                set(DIST, self.dist.word().into());
            }
        }
        if let (Some(prefill), false) = (self.prefill, self.ds == Ds::Cell) {
            set(PREFILL, prefill.into());
        }
        match self.stall {
            Some(Stall::Forever) => set(STALL, "forever".into()),
            Some(Stall::For(time)) => set(STALL, word(time).into()),
            None => None,
        };
        if let Some(churn) = self.churn {
            set(CHURN, word(churn).into());
        }
        if let Some(rate) = self.rate {
            set(RATE, rate.into());
        }
        if self.long_reads > 0 {
            set(LONG, self.long_reads.into());
        }
        params
    }
}

/// Names of the options in points.
const DS: &str = "ds";
const GET: &str = "get_rate";
pub(super) const KEY_RANGE: &str = "key_range";
const PREFILL: &str = "prefill";
const DIST: &str = "dist";
pub(super) const STALL: &str = "stall";
const CHURN: &str = "churn";
pub(super) const RATE: &str = "rate";
pub(super) const LONG: &str = "long_reads";

impl Ask {
    /// Refuses what makes no sense together.
    pub(crate) fn check(&self, threads: bool) -> Result<(), String> {
        if self.oversubscribe.is_some() && threads {
            return Err(
                "--oversubscribe and --threads both say how many threads there are".to_owned(),
            );
        }
        let maps = self.ds.0.iter().any(|&ds| is_map(ds));
        let keys = match &self.key_range {
            Some(keys) if !maps => {
                return Err(format!(
                    "--key-range {}: a cell, stack or queue has no keys",
                    keys.0[0]
                ));
            }
            Some(keys) => keys.0.iter().copied().min().unwrap_or(1),
            None if self.long_reads > 0 => LONG_KEYS,
            None if self.ds.0.contains(&Ds::List) => LIST_KEYS,
            None => KEYS,
        };
        if let Some(prefill) = self.prefill.filter(|&prefill| maps && prefill > keys) {
            return Err(format!(
                "--prefill {prefill}: a map of {keys} keys cannot have so many elements"
            ));
        }
        if self.long_reads > 0 && !maps {
            return Err(
                "--long-reads: a cell, stack or queue has no walk over its elements".to_owned(),
            );
        }
        Ok(())
    }

    /// What the options ask of the points.
    pub(crate) fn points(&self, ask: &mut Points) {
        if let Some(each) = self.oversubscribe {
            ask.threads = Some(vec![each as usize * places::allowed().0]);
        }
        let mut points: Vec<Params> = Vec::new();
        for &ds in &self.ds.0 {
            for &get_rate in &self.get_rate.0 {
                let ranges: Vec<Option<usize>> = match &self.key_range {
                    Some(list) => list.0.iter().map(|&keys| Some(keys)).collect(),
                    None => vec![None],
                };
                for key_range in ranges {
                    let wants = Wants {
                        ds,
                        get_rate,
                        key_range,
                        prefill: self.prefill,
                        dist: self.dist,
                        stall: self.stall.0,
                        churn: self.churn,
                        rate: self.rate,
                        long_reads: self.long_reads,
                    };
                    let params = wants.params();
                    // Structures without keys have one point, however many numbers of keys there are.
                    if !points.contains(&params) {
                        points.push(params);
                    }
                }
            }
        }
        ask.more = Some(points);
    }
}

fn shape(threads: usize) -> Shape {
    Shape {
        threads,
        readers: threads,
        ..Shape::default()
    }
}

/// The points asked for; without options those of all structures.
pub(super) fn points(ask: &Points, threads: &[usize]) -> Vec<Shape> {
    let all = || {
        Ds::ALL
            .iter()
            .map(|&ds| Wants::usual(ds).params())
            .collect()
    };
    let ask = Points {
        more: Some(ask.more.clone().unwrap_or_else(all)),
        ..ask.clone()
    };
    ask.each(threads, shape)
}

/// Those of the tour: a map that is read, a queue, and a reader that stays inside.
pub(super) fn tour(ask: &Points) -> Vec<Shape> {
    let more = [
        Wants::usual(Ds::Hash),
        Wants {
            get_rate: 0,
            ..Wants::usual(Ds::Queue)
        },
        Wants {
            get_rate: 50,
            stall: Some(Stall::Forever),
            ..Wants::usual(Ds::Hash)
        },
    ];
    let ask = Points {
        more: Some(more.iter().map(Wants::params).collect()),
        ..ask.clone()
    };
    ask.each(&[2], shape)
}

/// What a run does, read from its job.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) ds: Ds,
    pub(super) get_rate: u64,
    pub(super) key_range: u64,
    pub(super) prefill: u64,
    pub(super) dist: Dist,
    pub(super) stall: Option<Stall>,
    pub(super) churn: Option<Duration>,
    pub(super) rate: Option<u64>,
    pub(super) long_reads: usize,
}

impl Plan {
    /// What `job` says; or what is wrong with it.
    pub(super) fn of(job: &Job) -> Result<Self, String> {
        Plan::read(&job.more)
    }

    fn read(params: &Params) -> Result<Self, String> {
        let word = |name: &str| params.get(name).and_then(|value| value.as_str());
        let number = |name: &str| params.get(name).and_then(serde_json::Value::as_u64);
        let name = word(DS).unwrap_or_default();
        let ds = Ds::ALL.iter().find(|ds| ds.name() == name).copied();
        let ds = ds.ok_or_else(|| format!("no structure '{name}'"))?;
        let key_range = number(KEY_RANGE).unwrap_or(1).max(1);
        let usual = match is_map(ds) {
            true => key_range / 2,
            false => DEEP as u64,
        };
        Ok(Plan {
            ds,
            get_rate: number(GET).unwrap_or(GETS).min(100),
            key_range,
            prefill: number(PREFILL).unwrap_or(usual),
            dist: word(DIST).map_or(Ok(Dist::Uniform), Dist::parse)?,
            stall: word(STALL).map_or(Ok(Stay(None)), stall)?.0,
            churn: word(CHURN).map(churn).transpose()?,
            rate: number(RATE),
            long_reads: number(LONG).unwrap_or(0) as usize,
        })
    }

    /// The exponent of Zipf's law, if keys are taken by it.
    pub(super) fn zipf(&self) -> Option<f64> {
        match self.dist {
            Dist::Uniform => None,
            Dist::Zipf(s) => Some(s),
        }
    }

    /// Elements at a time: what a table is made for.
    pub(super) fn elements(&self) -> u64 {
        self.prefill.max(self.key_range / 2).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        ask: Ask,
    }

    fn asked(text: &str) -> Result<Ask, String> {
        let words = ["structures"].into_iter().chain(text.split_whitespace());
        let line = Line::try_parse_from(words).map_err(|error| error.to_string())?;
        line.ask.check(false).map(|()| line.ask)
    }

    fn more(text: &str) -> Vec<Params> {
        let mut points = Points::default();
        asked(text).unwrap().points(&mut points);
        points.more.unwrap()
    }

    fn plan(params: &Params) -> Plan {
        Plan::read(params).unwrap()
    }

    #[test]
    fn points_are_read_back_as_they_were_asked() {
        let all = more(
            "--ds hash,list --get-rate 0,90 --key-range 64,128 --prefill 7 --dist zipf:1.2 --stall 10ms --churn 5ms --rate 1000 --long-reads 2",
        );
        assert_eq!(all.len(), 8);
        let last = plan(&all[7]);
        assert_eq!(
            (last.ds, last.get_rate, last.key_range),
            (Ds::List, 90, 128)
        );
        assert_eq!((last.prefill, last.long_reads), (7, 2));
        assert_eq!(last.stall, Some(Stall::For(Duration::from_millis(10))));
        assert_eq!(last.churn, Some(Duration::from_millis(5)));
        assert_eq!((last.rate, last.zipf()), (Some(1000), Some(1.2)));
        let usual = plan(&more("--ds skip --stall forever")[0]);
        assert_eq!((usual.get_rate, usual.key_range), (90, 131_072));
        assert_eq!(usual.prefill, 65_536);
        assert_eq!((usual.stall, usual.churn), (Some(Stall::Forever), None));
        assert_eq!(plan(&more("--ds stack")[0]).prefill, 1024);
    }

    #[test]
    fn all_structures_without_options() {
        let shapes = points(&Points::default(), &[2]);
        assert_eq!(shapes.len(), Ds::ALL.len());
        assert_eq!(more("").len(), Ds::ALL.len());
        // Keys are for maps: the others have one point.
        assert_eq!(more("--key-range 64,128").len(), 3 + 2 * 3);
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        for (line, named) in [
            ("--ds tree", "tree"),
            ("--ds stack,", "''"),
            ("--get-rate 101", "101"),
            ("--key-range 0", "1 key"),
            ("--key-range 16777217", "16777216"),
            ("--ds stack --key-range 64", "--key-range 64"),
            ("--ds list --prefill 513", "--prefill 513"),
            ("--ds hash --key-range 64 --prefill 65", "--prefill 65"),
            ("--dist pareto", "pareto"),
            ("--stall 2s", "forever"),
            ("--stall often", "often"),
            ("--churn 1us", "100us"),
            ("--rate 0", "--rate"),
            ("--ds queue --long-reads 1", "--long-reads"),
            ("--oversubscribe 0", "--oversubscribe"),
        ] {
            let why = asked(line).expect_err(line);
            assert!(why.contains(named), "{line}: {why}");
        }
        let asked = asked("--oversubscribe 2").unwrap();
        assert!(asked.check(true).unwrap_err().contains("--threads"));
    }
}
