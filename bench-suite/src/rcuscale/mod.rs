//! Floor 3, bench-suite. Owns `hpbench rcuscale`: how long writers wait for a grace period beside readers and each other, as the
//! kernel's rcuscale measures it, in user space. May touch the schemes, threads and affinity.
//!
//! Written from a description of `kernel/rcu/rcuscale.c` and of the script that reads its output (2025); parameters, course and
//! output are kept, the code is not. What differs: writers have no real-time priority and readers are not nice; there is no
//! expedited grace period; no grace-period number is known, so that `batches` is 0.
//!
//! | file | owns |
//! |---|---|
//! | `subject` | which scale types there are, and the two of `hp` that no workload has |
//! | `kind` | the workload: a run as a record |
//! | `writers` | writers, readers, times |
//! | `kfree` | the kfree_rcu test |
//! | `show` | the original's output, the script's |

mod kfree;
mod kind;
mod show;
mod subject;
mod writers;

use crate::cli::{List, Options};
use crate::command::{self, say};
use crate::engine::job::Pin;
use crate::engine::{interrupt, pin, sysroot::Root};
use crate::parse;
use crate::schemes::Scheme;
use crate::trouble::Trouble;
use crate::workloads::{Ask as Points, Workload};
pub(crate) use kind::KIND;
use std::time::Duration;

/// What is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// One line for each type
    Table,
    /// The original's words, and those of the script that reads them
    Original,
}

/// What to run.
#[derive(Debug, Clone, clap::Args)]
#[group(id = "rcuscale")]
pub(crate) struct Ask {
    /// What to measure, like rcu,rcu-qsbr,hp-sync, or all [default: all; of the original's output rcu]
    #[arg(long = "scale-type", alias = "scale_type", value_name = "LIST", value_parser = |text: &str| subject::list(text).map(List))]
    types: Option<List<&'static str>>,
    /// Callbacks instead of waiting, and one barrier at the end
    #[arg(long, alias = "gp_async", conflicts_with = "kfree")]
    gp_async: bool,
    /// Callbacks of a writer that may wait at a time
    #[arg(long, alias = "gp_async_max", value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    gp_async_max: u64,
    /// Refused: nothing here is expedited
    #[arg(long, alias = "gp_exp")]
    gp_exp: bool,
    /// Seconds before the writers begin
    #[arg(long, value_name = "S", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=3600))]
    holdoff: u64,
    /// Seconds that a writer goes on at least
    #[arg(long, value_name = "S", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=86_400))]
    minruntime: u64,
    /// Readers beside: a list; -1 is one a CPU
    #[arg(long, value_name = "LIST", default_value = "-1", allow_hyphen_values = true, value_parser = crew)]
    nreaders: List<usize>,
    /// Writers: a list; -1 is one a CPU
    #[arg(long, value_name = "LIST", default_value = "-1", allow_hyphen_values = true, value_parser = crew)]
    nwriters: List<usize>,
    /// Microseconds between two grace periods of a writer
    #[arg(long, alias = "writer_holdoff", value_name = "US", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=10_000_000))]
    writer_holdoff: u64,
    /// The kfree_rcu test: allocate and retire, as fast as it goes
    #[arg(id = "kfree", long = "kfree-rcu-test", alias = "kfree_rcu_test")]
    kfree: bool,
    /// Its threads; -1 is one a CPU
    #[arg(long, alias = "kfree_nthreads", value_name = "N", default_value_t = -1, allow_hyphen_values = true, value_parser = clap::value_parser!(i64).range(-8192..=8192))]
    kfree_nthreads: i64,
    /// Its allocations in a loop
    #[arg(long, alias = "kfree_alloc_num", value_name = "N", default_value_t = 8000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    kfree_alloc_num: u64,
    /// Its loops
    #[arg(long, alias = "kfree_loops", value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    kfree_loops: u64,
    /// Table, or the original's output
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
}

/// Counts as the original's: itself, or that much less than one more than the CPUs, but at least one.
fn real(asked: i64, cpus: usize) -> usize {
    if asked >= 0 {
        return asked as usize;
    }
    usize::try_from(cpus as i64 + 1 + asked).unwrap_or(0).max(1)
}

/// A list of them, or as of `--threads`; each once.
fn crew(text: &str) -> Result<List<usize>, String> {
    let mut all = Vec::new();
    for part in text.split(',') {
        let counts = match part.parse::<i64>() {
            Ok(asked) if asked < 0 => vec![real(asked, pin::allowed().len())],
            _ => parse::counts(part)?,
        };
        for count in counts {
            if !all.contains(&count) {
                all.push(count);
            }
        }
    }
    Ok(List(all))
}

/// What is run.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Setup {
    readers: usize,
    writers: usize,
    /// Callbacks instead of waiting: how many at a time.
    asynchronous: Option<u64>,
    least: Duration,
    between: Duration,
    cpus: Vec<usize>,
}

impl Ask {
    /// Refuses what makes no sense together.
    fn check(&self) -> Result<(), Trouble> {
        let usage = |text: &str| Err(Trouble::Usage(text.to_owned()));
        if self.gp_exp {
            return usage("--gp-exp: expedited grace periods are the kernel's");
        }
        if !self.kfree && self.nwriters.0.contains(&0) {
            return usage("invalid value '0' for '--nwriters <LIST>': somebody must wait");
        }
        if self.kfree && self.kfree_nthreads == 0 {
            return usage("invalid value '0' for '--kfree-nthreads <N>': somebody must free");
        }
        // Of all those that can; of some, all must.
        if let Some(types) = &self.types
            && types.0.len() < subject::all().count()
        {
            for &name in &types.0 {
                subject::can(name, self.gp_async, self.kfree).map_err(Trouble::Usage)?;
            }
        }
        Ok(())
    }

    /// Readers and writers of each point.
    fn crews(&self) -> Vec<(usize, usize)> {
        let each = |&writers: &usize| {
            self.nreaders
                .0
                .iter()
                .map(move |&readers| (readers, writers))
        };
        self.nwriters.0.iter().flat_map(each).collect()
    }

    /// What a point of the kfree_rcu test is.
    fn kfree(&self) -> kfree::Setup {
        kfree::Setup {
            threads: real(self.kfree_nthreads, pin::allowed().len()),
            allocations: self.kfree_alloc_num,
            loops: self.kfree_loops,
        }
    }
}

/// The subcommand.
pub(crate) fn command(ask: &Ask, options: &Options) -> Result<(), Trouble> {
    ask.check()?;
    match ask.format {
        Format::Table => table(ask, options),
        Format::Original => original(ask, options),
    }
}

/// The course of the other workloads.
fn table(ask: &Ask, options: &Options) -> Result<(), Trouble> {
    let usage = |text: &str| Err(Trouble::Usage(text.to_owned()));
    options.without(
        "rcuscale (use --nreaders, --nwriters, --minruntime)",
        &[
            "--threads",
            "--time",
            "--warmup",
            "--budget",
            "--window",
            "--pin",
        ],
    )?;
    if ask.types.is_some() && options.variants.is_some() {
        return usage("--scale-type and --variants say the same, only one of them can be given");
    }
    if ask.holdoff > 0 {
        return usage("--holdoff: is for --format original");
    }
    let mut options = options.clone();
    options.pin = Some(Pin::Pu);
    // How long it takes is what is measured.
    let least = if ask.kfree { 0 } else { ask.minruntime };
    options.time = Some(Duration::from_secs(least));
    options.warmup = Some(Duration::ZERO);
    if let Some(types) = &ask.types {
        let names = types.0.iter().map(|&name| name.to_owned());
        options.variants = Some(List(names.collect()));
    }
    let asked = Points {
        crews: match ask.kfree {
            true => vec![(0, ask.kfree().threads)],
            false => ask.crews(),
        },
        more: Some(vec![kind::point(ask)]),
        ..Points::default()
    };
    command::workload(Workload::Rcuscale, &asked, &options)
}

/// The original's course, in this process.
fn original(ask: &Ask, options: &Options) -> Result<(), Trouble> {
    options.without_runs_but("the original's output (use --minruntime)", &["--dry-run"])?;
    let rcu = vec!["rcu"];
    let mut types = ask.types.as_ref().map_or(&rcu, |list| &list.0).clone();
    types.retain(|name| subject::can(name, ask.gp_async, ask.kfree).is_ok());
    let crews = if ask.kfree { vec![(0, 0)] } else { ask.crews() };
    if options.dry_run {
        let mut text = String::new();
        for (readers, writers) in crews {
            text.push_str(&match ask.kfree {
                true => format!("{} types, {} threads, {} loops of {} objects\n", types.len(), ask.kfree().threads, ask.kfree_loops, ask.kfree_alloc_num),
                false => format!(
                    "{} types, {readers} readers, {writers} writers, at least {} measurements each\n",
                    types.len(),
                    writers::LEAST
                ),
            });
        }
        return say(&text);
    }
    Root::here().measurable()?;
    interrupt::watch();
    if ask.holdoff > 0 {
        std::thread::sleep(Duration::from_secs(ask.holdoff));
    }
    for (readers, writers) in crews {
        let setup = Setup {
            readers,
            writers,
            asynchronous: ask.gp_async.then_some(ask.gp_async_max),
            least: Duration::from_secs(ask.minruntime),
            between: Duration::from_micros(ask.writer_holdoff),
            cpus: pin::allowed(),
        };
        for &name in &types {
            if ask.kfree {
                let setup = ask.kfree();
                say(&show::kfree_parameters(name, &setup))?;
                let outcome = subject::visit(name, Free(&setup))?;
                say(&show::kfree_original(&setup, &outcome))?;
            } else {
                say(&show::parameters(name, ask, &setup))?;
                say(&show::original(name, &subject::visit(name, Wait(&setup))?))?;
            }
            if interrupt::asked() {
                return Err(Trouble::Interrupted(
                    "interrupted; what was measured is shown above".to_owned(),
                ));
            }
        }
    }
    Ok(())
}

struct Wait<'a>(&'a Setup);

impl subject::Visit for Wait<'_> {
    type Out = Result<writers::Outcome, Trouble>;

    fn visit<S: Scheme>(self) -> Self::Out {
        writers::run::<S>(self.0)
    }
}

struct Free<'a>(&'a kfree::Setup);

impl subject::Visit for Free<'_> {
    type Out = Result<kfree::Outcome, Trouble>;

    fn visit<S: Scheme>(self) -> Self::Out {
        kfree::run::<S>(self.0, &pin::allowed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_the_originals() {
        assert_eq!(real(3, 8), 3);
        assert_eq!(real(0, 8), 0);
        assert_eq!(real(-1, 8), 8);
        assert_eq!(real(-3, 8), 6);
        assert_eq!(real(-100, 8), 1);
        let cpus = pin::allowed().len();
        let of = |text| crew(text).map(|list| list.0);
        assert_eq!(of("-1"), Ok(vec![cpus]));
        assert_eq!(of("0,3..4,-100000,3"), Ok(vec![0, 3, 4, 1]));
        assert!(of("").is_err() && of("1,x").is_err() && of("100000").is_err());
    }
}
