//! Floor 3, bench-suite. Owns the workloads, one file each, and the way from a job to a record.
//! May touch `schemes`, `engine` and `report`.
//!
//! A new workload is one file with its [`Kind`] and its `run`, its `mod` line and its line in the registry below; and
//! its subcommand in `cli`, where its options are. Most are generic over the scheme ([`over_schemes`]); one with another
//! subject names variants of its own.

pub(crate) mod capabilities;
mod defer;
mod grace;
pub(crate) mod overhead;
pub(crate) mod phash;
mod read;
mod scan;
mod stall;
mod write;

#[cfg(target_os = "linux")]
use crate::ctxsw;
use crate::engine::crew::{Rate, Refusal};
use crate::engine::job::{Job, Params, Shape};
use crate::engine::pin;
#[cfg(target_os = "linux")]
use crate::futexhash;
#[cfg(target_os = "linux")]
use crate::lazymm::track;
use crate::lazymm::{sched, think};
use crate::report::record::{MISSING, Record, Status};
use crate::report::view::View;
#[cfg(target_os = "linux")]
use crate::rwsem;
#[cfg(target_os = "linux")]
use crate::schbench::kind as schbench;
use crate::schemes::{self, About, Support};
#[cfg(target_os = "linux")]
use crate::whack;
#[cfg(target_os = "linux")]
use crate::{rcuscale, refscale};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What the program knows of a workload beside how it runs.
pub(crate) struct Kind {
    /// The name of the subcommand and of the records.
    pub(crate) name: &'static str,
    /// What `--list` says.
    pub(crate) what: &'static str,
    /// The points to measure.
    pub(crate) points: fn(&Ask) -> Vec<Shape>,
    /// The points of the tour; none if it is not in it.
    pub(crate) tour: fn(&Ask) -> Vec<Shape>,
    /// What it compares, hidden variants too.
    pub(crate) variants: fn() -> &'static [About],
    /// One run, in a process of its own.
    pub(crate) run: fn(&Job) -> Result<Record, Refusal>,
    /// Whether a variant can take part.
    pub(crate) support: fn(&About, &Job) -> Support,
    /// Table and picture.
    pub(crate) view: View,
}

/// What the command line asks of the points of a workload.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ask {
    /// `--threads`.
    pub(crate) threads: Option<Vec<usize>>,
    /// `--readers` and `--writers`: a point each, none if they were not given.
    pub(crate) crews: Vec<(usize, usize)>,
    /// `--hold`.
    pub(crate) holds: Option<Vec<Duration>>,
    /// `--idle`.
    pub(crate) idles: Option<Vec<usize>>,
    /// What else the options of the workload ask: a point each.
    pub(crate) more: Option<Vec<Params>>,
}

impl Ask {
    /// The thread counts asked for, or `default`, each made a shape.
    pub(crate) fn each(&self, default: &[usize], shape: impl Fn(usize) -> Shape) -> Vec<Shape> {
        let threads = self.threads.as_deref().unwrap_or(default);
        let more = self.more.clone().unwrap_or_else(|| vec![Params::new()]);
        let cross = |&n: &usize| {
            let shape = &shape;
            more.iter().map(move |more| Shape {
                more: more.clone(),
                ..shape(n)
            })
        };
        threads.iter().flat_map(cross).collect()
    }
}

macro_rules! registry {
    ($($(#[$condition:meta])* $workload:ident => $kind:path,)*) => {
        /// What is measured.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub(crate) enum Workload {
            $(
                $(#[$condition])*
                #[doc = concat!("See `", stringify!($kind), "`.")]
                $workload,
            )*
        }

        impl Workload {
            /// All of them, in the order of the tour (see [`Workload::toured`]).
            pub(crate) const ALL: &[Workload] = &[$($(#[$condition])* Workload::$workload),*];

            /// Its description.
            pub(crate) fn kind(self) -> &'static Kind {
                match self {
                    $($(#[$condition])* Workload::$workload => &$kind,)*
                }
            }
        }
    };
}

/// The `run` of a [`Kind`], out of a function of the same file that is generic over the scheme.
macro_rules! over_schemes {
    ($run:ident) => {
        |job| {
            struct Run<'a>(&'a Job);
            impl schemes::Visit for Run<'_> {
                type Out = Result<Record, Refusal>;

                fn visit<S: Scheme>(self) -> Self::Out {
                    $run::<S>(self.0)
                }
            }
            schemes::dispatch(&job.variant, Run(job)).expect("a variant of this workload")
        }
    };
}
use over_schemes;

registry! {
    Read => read::KIND,
    Write => write::KIND,
    Scan => scan::KIND,
    Stall => stall::KIND,
    Grace => grace::KIND,
    Defer => defer::KIND,
    Think => think::KIND,
    #[cfg(target_os = "linux")]
    Track => track::KIND,
    Sched => sched::KIND,
    #[cfg(target_os = "linux")]
    Rwsem => rwsem::KIND,
    Phash => phash::KIND,
    #[cfg(target_os = "linux")]
    Ctxsw => ctxsw::KIND,
    #[cfg(target_os = "linux")]
    Ref => refscale::KIND,
    #[cfg(target_os = "linux")]
    Rcuscale => rcuscale::KIND,
    #[cfg(target_os = "linux")]
    Whack => whack::KIND,
    #[cfg(target_os = "linux")]
    FutexHash => futexhash::KIND,
    #[cfg(target_os = "linux")]
    Schbench => schbench::KIND,
    #[cfg(target_os = "linux")]
    SchbenchPhash => schbench::MODEL,
}

impl Workload {
    /// Those of the tour.
    pub(crate) fn toured() -> impl Iterator<Item = Workload> {
        let toured = |workload: &Workload| !(workload.kind().tour)(&Ask::default()).is_empty();
        Workload::ALL.iter().copied().filter(toured)
    }

    /// The name of the subcommand and of the records.
    pub(crate) fn name(self) -> &'static str {
        self.kind().name
    }

    /// The variant called `name`; hidden ones only where the environment allows them.
    pub(crate) fn find(self, name: &str) -> Option<&'static About> {
        (self.kind().variants)()
            .iter()
            .find(|about| about.name == name && (!about.hidden || schemes::hidden_allowed()))
    }

    /// The variants that the user may see, in the order of their registry.
    pub(crate) fn listed(self) -> impl Iterator<Item = &'static About> {
        (self.kind().variants)()
            .iter()
            .filter(|about| !about.hidden)
    }
}

/// A variant of this name, of any workload.
pub(crate) fn find(name: &str) -> Option<&'static About> {
    Workload::ALL
        .iter()
        .find_map(|workload| workload.find(name))
}

/// The variants of all workloads, once each name.
pub(crate) fn listed() -> impl Iterator<Item = &'static About> {
    let mut seen = Vec::new();
    Workload::ALL
        .iter()
        .flat_map(|workload| workload.listed())
        .filter(move |about| {
            let new = !seen.contains(&about.name);
            if new {
                seen.push(about.name);
            }
            new
        })
}

/// Whether `about` can run `job`.
pub(crate) fn support(about: &About, job: &Job) -> Support {
    (job.workload.kind().support)(about, job)
}

/// Runs `job` in this process.
pub(crate) fn run(job: &Job) -> Result<Record, Refusal> {
    let unknown = || Refusal::Environment(format!("unknown variant '{}'", job.variant));
    let about = job.workload.find(&job.variant).ok_or_else(unknown)?;
    if let Support::No(why) = support(about, job) {
        return Ok(Record::skipped(job, why));
    }
    let rung = about
        .percpu
        .then(|| percpu::capabilities().rung.to_string());
    if let (Some(wanted), Some(rung)) = (about.rung, &rung)
        && wanted != rung
    {
        let why = percpu::capabilities().reason;
        return Ok(Record::skipped(
            job,
            &format!("rung {wanted} cannot be had here, this is {rung}: {why}"),
        ));
    }
    let mut record = match (job.workload.kind().run)(job) {
        Err(Refusal::Skipped(why, missing)) => {
            let mut record = Record::skipped(job, &why);
            if let Some(missing) = missing {
                record.set(MISSING, missing);
            }
            record
        }
        other => other?,
    };
    without_figure(&mut record, job);
    if let Some(rung) = rung {
        record.set("rung", rung);
    }
    record.set("cpus", pin::allowed());
    if let Some(usage) = usage() {
        record.set("involuntary_switches", usage.involuntary_switches);
    }
    Ok(record)
}

/// A run in which nothing was done has no figure: it does not count.
fn without_figure(record: &mut Record, job: &Job) {
    if record.status == Status::Ok && record.ops == 0 {
        record.status = Status::Skipped;
        let beside = std::mem::take(&mut record.note);
        record.remark(&format!("no operation was completed in {:?}", job.time));
        if !beside.is_empty() {
            record.remark(&beside);
        }
    }
}

/// Threads that a run starts: those of its point, idle ones, partners.
pub(crate) fn threads(job: &Job) -> usize {
    match job.workload {
        #[cfg(target_os = "linux")]
        Workload::Track => 2 * job.threads,
        #[cfg(target_os = "linux")]
        Workload::Schbench | Workload::SchbenchPhash => schbench::threads(job),
        _ => job.threads + job.pauses.map_or(0, |pauses| pauses.idle),
    }
}

/// What the kernel counted for this process.
struct Usage {
    /// How often the scheduler took a CPU away from it: with at most as many threads as CPUs, a sign that something
    /// else ran beside the measurement.
    involuntary_switches: i64,
    /// CPU time of all its threads.
    cpu: Duration,
}

#[cfg(unix)]
fn usage() -> Option<Usage> {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the call writes one `rusage` to the place given, and zeroed is a valid `rusage` should it fail.
    let usage = unsafe {
        (libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) == 0)
            .then(|| usage.assume_init())?
    };
    let time = |value: libc::timeval| {
        Duration::from_secs(value.tv_sec.unsigned_abs())
            + Duration::from_micros(value.tv_usec.unsigned_abs())
    };
    Some(Usage {
        involuntary_switches: usage.ru_nivcsw,
        cpu: time(usage.ru_utime) + time(usage.ru_stime),
    })
}

#[cfg(not(unix))]
fn usage() -> Option<Usage> {
    None
}

/// Fills in the main figures. `workers` is the number of threads that did these operations.
pub(crate) fn fill(record: &mut Record, rate: &Rate, workers: usize) {
    record.ops = rate.ops;
    record.elapsed_s = rate.elapsed_s;
    record.ops_per_s = rate.per_s();
    record.ns_per_op = rate.ns_per_op(workers, pin::allowed().len());
    record.set("start_skew_s", rate.skew_s);
    record.set("thread_ops_min", rate.extremes.0);
    record.set("thread_ops_max", rate.extremes.1);
    crate::engine::windows::put(record, workers);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use crate::points::Points;
    use crate::report::record::tests::sample;
    use clap::Parser;

    fn job(workload: Workload) -> Job {
        let ask = Ask {
            threads: Some(vec![3]),
            ..Ask::default()
        };
        let options = Cli::parse_from(["hpbench"]).options;
        Points::of(workload, &ask, &options).jobs.remove(0)
    }

    #[test]
    fn a_run_without_an_operation_does_not_count() {
        let job = job(Workload::Read);
        let of = |ops, bad| {
            let mut record = sample(Workload::Read, "hp", 1, 0, ops);
            record.judge(bad);
            record.remark("x");
            without_figure(&mut record, &job);
            (record.status, record.note)
        };
        assert_eq!(of(1, 0), (Status::Ok, "x".to_owned()));
        let why = "no operation was completed in 1s; x";
        assert_eq!(of(0, 0), (Status::Skipped, why.to_owned()));
        assert_eq!(of(0, 1).0, Status::Failed);
    }

    #[test]
    fn partners_are_threads() {
        assert_eq!(threads(&job(Workload::Read)), 3);
        #[cfg(target_os = "linux")]
        assert_eq!(threads(&job(Workload::Track)), 6);
    }
}
