//! Floor 3, bench-suite. Owns the options of `schbench`, the original's defaults, and what becomes of them on a machine
//! with these CPUs. Touches the command line's types only.

use super::{hash, work};
use crate::trouble::Trouble;
use std::path::PathBuf;
use std::time::Duration;

/// More of either is a mistake.
const MOST: u64 = 65_536;

/// What pipe mode hands over at most: the original's.
const PIPE_MOST: usize = 1 << 20;

/// Runs below this have no warm-up: the original's.
const WARM_FROM: u64 = 30;

/// Seconds of the original if nothing is said.
const RUNTIME: u64 = 30;

/// What `-A` begins with: the original's.
const FIRST_GOAL: u32 = 10;

/// What is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// A line for each hash: a workload as the others are, with their options, times and files
    Table,
    /// One run of the original's course: all percentiles
    Run,
    /// The original's words on the standard error
    Original,
}

/// Whose futexes threads sleep on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum On {
    /// The running kernel's
    Kernel,
    /// A hash in user space, protected in several ways
    Phash,
}

/// How requests of `-R` are spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Pacing {
    /// All of a second at its start; what a worker has too many of is left out; its clock starts when it is worked on
    Original,
    /// Evenly, none is left out; a request's clock starts when it is due
    Open,
}

/// Where `-M auto` puts the workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Rule {
    /// Everywhere, as the original's code does
    Code,
    /// On the CPUs without a message thread, as its README says
    Readme,
}

/// An option that is a list of CPUs, or auto.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cpus {
    Auto,
    List(Vec<usize>),
}

/// An entry of `-H`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Slots {
    /// As the kernel likes.
    Auto,
    /// This many; 0 is the global hash.
    Set(u32),
}

/// What to run.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Ask {
    /// Message threads
    #[arg(short = 'm', long = "message-threads", value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=MOST))]
    pub(super) messengers: u64,
    /// Workers of each message thread [default: CPUs / message threads, rounded up]
    #[arg(short = 't', value_name = "N", value_parser = clap::value_parser!(u64).range(0..=MOST))]
    pub(super) workers: Option<u64>,
    /// Leave the lock of the CPU out of the work
    #[arg(short = 'L', long = "no-locking")]
    pub(super) unlocked: bool,
    /// CPUs of the message threads, one each, like 0-3,8; auto: message thread i on CPU i, workers by --auto-rule
    #[arg(short = 'M', long = "message-cpus", value_name = "LIST|auto", value_parser = cpus)]
    pub(super) message_cpus: Option<Cpus>,
    /// CPUs of the workers, all of them for each; auto: as -M auto
    #[arg(short = 'W', long = "worker-cpus", value_name = "LIST|auto", value_parser = cpus)]
    pub(super) worker_cpus: Option<Cpus>,
    /// What auto means for the workers
    #[arg(long, value_enum, default_value = "code")]
    pub(super) auto_rule: Rule,
    /// Products of matrices in a request
    #[arg(short = 'n', long = "operations", value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u64).range(0..=1_000_000))]
    pub(super) operations: u64,
    /// Seconds [default: --time; of --format run and original 30]
    #[arg(short = 'r', long = "runtime", value_name = "S", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(super) runtime: Option<u64>,
    /// Microseconds that a request sleeps
    #[arg(short = 's', long = "sleep-usec", alias = "sleep_usec", value_name = "US", default_value_t = 100, value_parser = clap::value_parser!(u64).range(0..=10_000_000))]
    pub(super) sleep: u64,
    /// Requests per second, all message threads together [default: as many as it goes]
    #[arg(short = 'R', long = "rps", value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1_000_000_000))]
    pub(super) rps: Option<u32>,
    /// Requests per second that keep the machine busy to this percentage, sought from -R (or 10) on
    #[arg(short = 'A', long = "auto-rps", value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(super) auto_rps: Option<u32>,
    /// How requests of -R and -A are spread
    #[arg(long, value_enum, default_value = "original")]
    pub(super) pacing: Pacing,
    /// Pipe mode: hand this many bytes over and do nothing else (at most 1 MiB)
    #[arg(short = 'p', long = "pipe", value_name = "BYTES", value_parser = clap::value_parser!(u64))]
    pub(super) pipe: Option<u64>,
    /// Seconds until the percentiles begin anew [default: 0; 0 if -r is below 30]
    #[arg(short = 'w', long = "warmuptime", value_name = "S", value_parser = clap::value_parser!(u64).range(0..=86_400))]
    pub(super) warm: Option<u64>,
    /// Seconds between reports
    #[arg(short = 'i', long = "intervaltime", value_name = "S", default_value_t = 10, value_parser = clap::value_parser!(u64).range(0..=86_400))]
    pub(super) interval: u64,
    /// Seconds after which the percentiles begin anew, again and again [default: never]
    #[arg(short = 'z', long = "zerotime", value_name = "S", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=86_400))]
    pub(super) zero: u64,
    /// Kibibytes of the three matrices of a product
    #[arg(short = 'F', long = "cache-footprint", alias = "cache_footprint", value_name = "KIB", default_value_t = 256, value_parser = clap::value_parser!(u64).range(0..=4_194_304))]
    pub(super) cache: u64,
    /// Percentage of the products that are of the worker's own matrices; the others are of two that all share
    #[arg(long, value_name = "PERCENT", default_value_t = 100, value_parser = clap::value_parser!(u64).range(0..=100))]
    pub(super) split: u64,
    /// Calibrate: no locks, and requests are timed without their sleep
    #[arg(short = 'C', long = "calibrate")]
    pub(super) calibrate: bool,
    /// Buckets of the futex hash: 0 (the global one), a power of two, auto; a list is a table, with a process for each
    #[arg(short = 'H', value_name = "LIST", value_parser = |text: &str| slots(text).map(crate::cli::List))]
    pub(super) hash: Option<crate::cli::List<Slots>>,
    /// Make the futex hash immutable (6.16-rc only; refused elsewhere)
    #[arg(short = 'I', requires = "hash")]
    pub(super) immutable: bool,
    /// The original's JSON into FILE, or to the standard output
    #[arg(short = 'j', value_name = "FILE|-")]
    pub(super) results: Option<PathBuf>,
    /// A name in the JSON
    #[arg(short = 'J', long = "jobname", value_name = "NAME")]
    pub(super) jobname: Option<String>,
    /// Table, one run in detail, or the original's output [default: table; with -j run]
    #[arg(long, value_enum)]
    pub(super) format: Option<Format>,
    /// Whose futexes: the running kernel's, or the model's in user space
    #[arg(long, value_enum, default_value = "kernel")]
    pub(super) on: On,
    /// The model's buckets, a list or series of powers of two [default: 1024]
    #[arg(long, value_name = "LIST", value_parser = |text: &str| crate::workloads::phash::sizes(text).map(crate::cli::List))]
    pub(super) buckets: Option<crate::cli::List<usize>>,
    /// One more thread replaces the model's table by one of twice as many buckets and back, TIME apart
    #[arg(long, value_name = "TIME", value_parser = crate::parse::duration)]
    pub(super) replace_every: Option<Duration>,
}

/// `0-3,8`, or `auto`.
fn cpus(text: &str) -> Result<Cpus, String> {
    if text == "auto" {
        return Ok(Cpus::Auto);
    }
    let number = |text: &str| match text.parse::<u16>() {
        Ok(n) if text.bytes().all(|byte| byte.is_ascii_digit()) => Ok(usize::from(n)),
        _ => Err(format!(
            "'{text}' is not the number of a CPU (like 0-3,8 or auto)"
        )),
    };
    let mut list = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(format!("'{part}' runs backwards"));
        }
        list.extend(first..=last);
    }
    list.sort_unstable();
    list.dedup();
    Ok(Cpus::List(list))
}

/// `auto,0,1024`.
fn slots(text: &str) -> Result<Vec<Slots>, String> {
    let one = |part: &str| match part {
        "auto" => Ok(Slots::Auto),
        part => hash::slots(part).map(Slots::Set),
    };
    let mut list = Vec::new();
    for part in text.split(',') {
        let entry = one(part)?;
        if !list.contains(&entry) {
            list.push(entry);
        }
    }
    Ok(list)
}

/// How requests come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Paced {
    pub(super) how: Pacing,
    /// Requests per second of each message thread, at first.
    pub(super) goal: u32,
    /// The percentage to keep the machine busy.
    pub(super) busy: Option<u32>,
}

/// What is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) messengers: usize,
    pub(super) workers: usize,
    pub(super) locking: bool,
    /// The CPU of each message thread, in turn.
    pub(super) message_cpus: Option<Vec<usize>>,
    /// The CPUs of all workers.
    pub(super) worker_cpus: Option<Vec<usize>>,
    pub(super) operations: u64,
    pub(super) edge: usize,
    pub(super) split: u64,
    pub(super) runtime: u64,
    pub(super) warm: u64,
    pub(super) interval: u64,
    pub(super) zero: u64,
    pub(super) sleep: Duration,
    pub(super) paced: Option<Paced>,
    pub(super) pipe: Option<usize>,
    pub(super) calibrate: bool,
    /// What is not as asked, or not as the original does it.
    pub(super) notes: Vec<String>,
}

impl Plan {
    /// What `ask` means on a machine whose allowed CPUs are `here`.
    pub(super) fn of(ask: &Ask, here: &[usize]) -> Result<Self, Trouble> {
        let usage = |text: String| Err(Trouble::Usage(text));
        let mut notes = Vec::new();
        let messengers = ask.messengers as usize;
        let workers = match ask.workers {
            None | Some(0) => here.len().max(1).div_ceil(messengers),
            Some(n) => n as usize,
        };
        let rps = ask.rps.filter(|&n| n > 0);
        if let Some(rps) = rps
            && (rps as usize) < messengers
        {
            return usage(format!(
                "invalid value '{rps}' for '-R <N>': fewer than one a second for each of {messengers} message threads"
            ));
        }
        let pipe = ask.pipe.filter(|&n| n > 0);
        if pipe.is_some() && (rps.is_some() || ask.auto_rps.is_some() || ask.calibrate) {
            return usage("-p: pipe mode does no work and has no pace (no -R, -A, -C)".to_owned());
        }
        let pipe = pipe.map(|bytes| {
            if bytes > PIPE_MOST as u64 {
                notes.push(format!("-p {bytes} is too big, {PIPE_MOST} instead"));
            }
            bytes.min(PIPE_MOST as u64) as usize
        });
        let goal = rps.or(ask.auto_rps.map(|_| FIRST_GOAL));
        if goal.is_none() && ask.pacing == Pacing::Open {
            return usage("--pacing open: needs -R or -A".to_owned());
        }
        let paced = goal.map(|goal| Paced {
            how: ask.pacing,
            goal: (goal / messengers as u32).max(1),
            busy: ask.auto_rps,
        });
        let runtime = ask.runtime.unwrap_or(RUNTIME);
        let mut warm = ask.warm.unwrap_or(0);
        if warm > 0 && runtime < WARM_FROM {
            notes.push(format!("no warm-up: -r is below {WARM_FROM}"));
            warm = 0;
        }
        if warm > 0 && (paced.is_some() || pipe.is_some()) {
            notes.push("no warm-up: -R, -A and -p have none".to_owned());
            warm = 0;
        }
        if warm >= runtime {
            return usage(format!(
                "invalid value '{warm}' for '-w <S>': nothing is left of -r {}",
                runtime
            ));
        }
        let (message_cpus, worker_cpus) = places(ask, here, &mut notes)?;
        Ok(Plan {
            messengers,
            workers,
            locking: !ask.unlocked && !ask.calibrate && pipe.is_none(),
            message_cpus,
            worker_cpus,
            operations: if pipe.is_some() { 0 } else { ask.operations },
            edge: work::edge(ask.cache),
            split: ask.split,
            runtime,
            warm,
            interval: ask.interval,
            zero: ask.zero,
            sleep: Duration::from_micros(if pipe.is_some() { 0 } else { ask.sleep }),
            paced,
            pipe,
            calibrate: ask.calibrate,
            notes,
        })
    }

    /// Threads beside the main one.
    pub(super) fn threads(&self) -> usize {
        self.messengers * (self.workers + 1)
    }
}

type Places = (Option<Vec<usize>>, Option<Vec<usize>>);

fn places(ask: &Ask, here: &[usize], notes: &mut Vec<String>) -> Result<Places, Trouble> {
    let auto = |cpus: &Option<Cpus>| matches!(cpus, Some(Cpus::Auto));
    if !auto(&ask.message_cpus) && !auto(&ask.worker_cpus) {
        let mut list = |option: &str, cpus: &Option<Cpus>| match cpus {
            Some(Cpus::List(list)) => available(option, list, here, notes).map(Some),
            _ => Ok(None),
        };
        return Ok((
            list("-M", &ask.message_cpus)?,
            list("-W", &ask.worker_cpus)?,
        ));
    }
    if [&ask.message_cpus, &ask.worker_cpus]
        .iter()
        .any(|cpus| matches!(cpus, Some(Cpus::List(_))))
    {
        notes.push("auto for one of -M and -W is auto for both".to_owned());
    }
    let messengers = ask.messengers as usize;
    if messengers > here.len() {
        notes.push(format!(
            "-M auto: {messengers} message threads on {} CPUs, wrapped round (the original leaves with EINVAL)",
            here.len()
        ));
    }
    let message: Vec<usize> = (0..messengers.min(here.len())).map(|i| here[i]).collect();
    let rest: Vec<usize> = here[message.len()..].to_vec();
    let workers = match ask.auto_rule {
        Rule::Code => here.to_vec(),
        Rule::Readme if rest.is_empty() => {
            notes.push(
                "--auto-rule readme: no CPU is left for the workers, they share those of the message threads"
                    .to_owned(),
            );
            here.to_vec()
        }
        Rule::Readme => rest,
    };
    Ok((Some(message), Some(workers)))
}

/// Those of `list` that there are.
fn available(
    option: &str,
    list: &[usize],
    here: &[usize],
    notes: &mut Vec<String>,
) -> Result<Vec<usize>, Trouble> {
    let (there, missing): (Vec<usize>, Vec<usize>) =
        list.iter().partition(|cpu| here.contains(cpu));
    if there.is_empty() {
        return Err(Trouble::Environment(format!(
            "{option}: this process may use none of the CPUs {}",
            shown(list)
        )));
    }
    if !missing.is_empty() {
        notes.push(format!(
            "{option}: without the CPUs {}, which this process may not use",
            shown(&missing)
        ));
    }
    Ok(there)
}

fn shown(cpus: &[usize]) -> String {
    let numbers: Vec<String> = cpus.iter().map(usize::to_string).collect();
    numbers.join(",")
}

/// What `-H` of a child says.
impl std::fmt::Display for Slots {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Slots::Auto => f.write_str("auto"),
            Slots::Set(n) => n.fmt(f),
        }
    }
}

/// Sizes for people and for `--dry-run`.
pub(super) fn short(plan: &Plan) -> String {
    use crate::report::human::plural as plural_of;
    let mut text = format!(
        "{}, {} each",
        plural_of(plan.messengers, "message thread"),
        plural_of(plan.workers, "worker")
    );
    match (plan.pipe, plan.paced) {
        (Some(bytes), _) => text.push_str(&format!("; {bytes} bytes handed over")),
        (None, paced) => {
            text.push_str(&format!(
                "; {} of {e} x {e}, sleep {} µs, {}",
                plural_of(plan.operations as usize, "product"),
                plan.sleep.as_micros(),
                if plan.locking { "locks" } else { "no locks" },
                e = plan.edge
            ));
            if let Some(paced) = paced {
                let how = match paced.how {
                    Pacing::Original => "the original's pace",
                    Pacing::Open => "open loop",
                };
                text.push_str(&format!(
                    "; {} requests/s, {how}",
                    u64::from(paced.goal) * plan.messengers as u64
                ));
                if let Some(busy) = paced.busy {
                    text.push_str(&format!(", sought for {busy} % busy"));
                }
            }
        }
    }
    text + &format!("; {} s", plan.runtime)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        ask: Ask,
    }

    pub(crate) fn ask(arguments: &[&str]) -> Ask {
        Line::try_parse_from(["schbench"].iter().chain(arguments))
            .unwrap()
            .ask
    }

    pub(crate) fn plan(arguments: &[&str], here: &[usize]) -> Plan {
        Plan::of(&ask(arguments), here).unwrap()
    }

    /// The defaults that the original's help tells.
    #[test]
    fn the_originals_defaults() {
        let plan = plan(&[], &[0, 1, 2, 3]);
        assert_eq!((plan.messengers, plan.workers, plan.edge), (1, 4, 104));
        assert_eq!((plan.operations, plan.sleep.as_micros()), (5, 100));
        assert_eq!((plan.runtime, plan.warm), (30, 0));
        assert_eq!((plan.interval, plan.zero), (10, 0));
        assert!(plan.locking && !plan.calibrate && plan.pipe.is_none() && plan.paced.is_none());
        assert_eq!((&plan.message_cpus, &plan.worker_cpus), (&None, &None));
        assert!(plan.notes.is_empty());
        assert_eq!(super::tests::plan(&["-m", "3"], &[0, 1, 2, 3]).workers, 2);
        assert_eq!(super::tests::plan(&["-t", "0"], &[0]).workers, 1);
    }

    #[test]
    fn the_line_of_the_document() {
        let line = [
            "-L", "-m", "4", "-M", "auto", "-t", "256", "-n", "0", "-r", "60", "-s", "0",
        ];
        let large: Vec<usize> = (0..256).collect();
        let there = plan(&line, &large);
        assert_eq!(there.threads(), 1028);
        assert_eq!(there.message_cpus.as_deref(), Some(&[0, 1, 2, 3][..]));
        assert_eq!(there.worker_cpus.as_ref().map(Vec::len), Some(256));
        assert!(there.notes.is_empty() && !there.locking);
        let here = plan(&line, &[0, 1]);
        assert_eq!(here.message_cpus.as_deref(), Some(&[0, 1][..]));
        assert!(here.notes[0].contains("wrapped round"), "{:?}", here.notes);
    }

    #[test]
    fn who_runs_where() {
        let readme = ["-m", "1", "-M", "auto", "--auto-rule", "readme"];
        let three = plan(&readme, &[0, 1, 2]);
        assert_eq!(three.worker_cpus.as_deref(), Some(&[1, 2][..]));
        // One CPU: everything on it, and a word about it.
        let one = plan(&readme, &[5]);
        assert_eq!(one.message_cpus.as_deref(), Some(&[5][..]));
        assert_eq!(one.worker_cpus.as_deref(), Some(&[5][..]));
        assert!(one.notes[0].contains("no CPU is left"));
        let lists = plan(&["-M", "0,7", "-W", "1-2,1"], &[0, 1, 2]);
        assert_eq!(lists.message_cpus.as_deref(), Some(&[0][..]));
        assert_eq!(lists.worker_cpus.as_deref(), Some(&[1, 2][..]));
        assert!(lists.notes[0].contains("without the CPUs 7"));
        let mixed = plan(&["-M", "auto", "-W", "1"], &[0, 1]);
        assert_eq!(mixed.worker_cpus.as_deref(), Some(&[0, 1][..]));
        assert!(mixed.notes[0].contains("auto for both"));
        let trouble = Plan::of(&ask(&["-W", "8-9"]), &[0, 1]).unwrap_err();
        assert_eq!(trouble.code(), 3);
        assert!(trouble.to_string().contains("-W") && trouble.to_string().contains("8,9"));
    }

    #[test]
    fn paces() {
        let goal = |arguments: &[&str]| plan(arguments, &[0]).paced.unwrap();
        assert_eq!(goal(&["-R", "1000", "-m", "3"]).goal, 333);
        assert_eq!(goal(&["-A", "50"]).goal, 10);
        assert_eq!(goal(&["-A", "50", "-m", "32"]).goal, 1);
        assert_eq!(goal(&["-A", "50", "-R", "77"]).busy, Some(50));
        assert_eq!(goal(&["-R", "9", "--pacing", "open"]).how, Pacing::Open);
        assert!(plan(&["-R", "0"], &[0]).paced.is_none());
    }

    #[test]
    fn warm_up_and_pipe() {
        assert_eq!(plan(&["-w", "5"], &[0]).warm, 5);
        let short = plan(&["-w", "5", "-r", "29"], &[0]);
        assert_eq!((short.warm, short.notes.len()), (0, 1));
        assert_eq!(plan(&["-w", "5", "-R", "10"], &[0]).warm, 0);
        let pipe = plan(&["-p", "9999999"], &[0]);
        assert_eq!(pipe.pipe, Some(1 << 20));
        assert!(pipe.notes[0].contains("too big") && !pipe.locking && pipe.sleep.is_zero());
        assert!(!plan(&["-C"], &[0]).locking);
    }

    #[test]
    fn what_makes_no_sense() {
        for (arguments, words) in [
            (&["-R", "3", "-m", "4"][..], "-R"),
            (&["-p", "8", "-R", "10"], "-p"),
            (&["-p", "8", "-C"], "-p"),
            (&["--pacing", "open"], "--pacing"),
            (&["-w", "30"], "-w"),
        ] {
            let trouble = Plan::of(&ask(arguments), &[0]).unwrap_err();
            assert_eq!(trouble.code(), 2, "{trouble}");
            assert!(trouble.to_string().contains(words), "{trouble}");
        }
        for bad in ["", "a", "1-", "-1", "3-1", "0,,1", "0-70000", "+1"] {
            assert!(cpus(bad).is_err(), "{bad}");
        }
        for bad in ["", "1", "auto,3", "0,,2"] {
            assert!(slots(bad).is_err(), "{bad}");
        }
        assert_eq!(
            slots("auto,0,0,64"),
            Ok(vec![Slots::Auto, Slots::Set(0), Slots::Set(64)])
        );
        assert!(Line::try_parse_from(["schbench", "-I"]).is_err());
    }

    #[test]
    fn plans_in_words() {
        assert_eq!(
            short(&plan(&[], &[0, 1])),
            "1 message thread, 2 workers each; 5 products of 104 x 104, sleep 100 µs, locks; 30 s"
        );
        assert_eq!(
            short(&plan(
                &["-R", "50", "--pacing", "open", "-L", "-r", "3", "-A", "9"],
                &[0]
            )),
            "1 message thread, 1 worker each; 5 products of 104 x 104, sleep 100 µs, no locks; 50 requests/s, open loop, sought for 9 % busy; 3 s"
        );
        assert_eq!(
            short(&plan(&["-p", "64"], &[0])),
            "1 message thread, 1 worker each; 64 bytes handed over; 30 s"
        );
    }
}
