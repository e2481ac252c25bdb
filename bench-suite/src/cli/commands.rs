//! Floor 3, bench-suite. Owns the subcommands, with the options of those that have few, and which of them measure a
//! workload. May touch `parse` and the workloads.

use super::{List, Options};
use crate::engine::child;
use crate::parse;
use crate::workloads::{Ask, Workload, phash};
use clap::Subcommand;
use std::time::Duration;

/// The workloads.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Protect + dereference + release, per variant and thread count
    Read,
    /// Allocate + swap + retire, writers alone or beside readers
    Write {
        /// Reading threads beside the writers [default: 0]
        #[arg(long, value_name = "N", value_parser = parse::crew)]
        readers: Option<usize>,
        /// Writing threads [default: 1]
        #[arg(long, value_name = "N", value_parser = parse::crew)]
        writers: Option<usize>,
    },
    /// Time of one reclaim pass beside threads that have used the library and sit idle
    Scan,
    /// One reader parked inside protection while writers retire: objects that wait
    Stall,
    /// Latency of one grace period beside readers: synchronize, or from retire to free; percentiles
    Grace {
        /// How long readers hold their protection, like 0,1us,100us; spins below 50us, sleeps from there on
        /// [default: 0,100us]
        #[arg(long, value_name = "LIST", value_parser = |text: &str| parse::holds(text).map(List))]
        hold: Option<List<Duration>>,
        /// Threads beside that have read once, keep their reader state and sleep [default: 0]
        #[arg(long, value_name = "LIST", value_parser = |text: &str| parse::counts(text).map(List))]
        idle: Option<List<usize>>,
        #[cfg(target_os = "linux")]
        #[command(
            flatten,
            next_help_heading = "Of rcuscale (with any of these it is hpbench rcuscale)"
        )]
        original: Option<crate::rcuscale::Ask>,
    },
    /// Cost of queueing a deferred callback, on the calling threads
    Defer,
    /// A futex hash in user space: a wait that fails, with the table protected in several ways
    Phash {
        /// Buckets, a list or series of powers of two [default: 65536]
        #[arg(long, value_name = "LIST", value_parser = |text: &str| phash::sizes(text).map(List))]
        buckets: Option<List<usize>>,
        /// Words of each thread [default: 1024]
        #[arg(long, value_name = "LIST", value_parser = |text: &str| phash::counts(text).map(List))]
        futexes: Option<List<usize>>,
        /// What a thread does between two operations: nothing (none), work for a time like 400ns, or one system call
        #[arg(long, value_name = "none|TIME|syscall", default_value = "none", value_parser = phash::OpCost::parse)]
        op_cost: phash::OpCost,
        /// One more thread replaces the table by one of twice as many buckets and back, TIME apart
        #[arg(long, value_name = "TIME", value_parser = parse::duration)]
        replace_every: Option<Duration>,
    },
    /// Lock-free structures under each scheme: throughput, latency, nodes that wait; stalls, churn, long walks
    Structures(crate::structures::Ask),
    /// Which rung runs here and why, CPU topology, kernel features
    Capabilities,
    /// The machine record: CPUs, caches, nodes, kernel and its options, limits, load, build
    Machine(crate::machine::Ask),
    /// The baselines that --save has kept
    Baselines,
    /// What the engine adds to an operation: the same loop with and without it
    Overhead,
    /// Numbers that others published, with source, machine and errata
    Published {
        /// Show this set (seed000 to seed004, external-lazy-mm or external-hazptr) instead of the list
        set: Option<String>,
    },
    /// What lines, fences, system calls, barriers and pipes cost here; --json FILE is what `model --machine` reads
    Calibrate,
    /// will-it-scale's context_switch1: pairs of threads or processes that hand a byte back and forth
    #[cfg(target_os = "linux")]
    Ctxsw(crate::ctxsw::Ask),
    /// Lazily held address spaces: who knows that a CPU still has one, in three workloads
    #[command(subcommand, arg_required_else_help = false)]
    LazyMm(crate::lazymm::Mode),
    /// schbench: message threads that wake workers, on this kernel's futexes and scheduler; wakeup and request latency
    #[cfg(target_os = "linux")]
    Schbench(Box<crate::schbench::Ask>),
    /// refscale: one acquire and release beside other readers, in user space; the original's parameters and output
    #[cfg(target_os = "linux")]
    Ref(Box<crate::refscale::Ask>),
    /// rcuscale: grace periods of several writers, in user space; the original's parameters and output
    #[cfg(target_os = "linux")]
    Rcuscale(Box<crate::rcuscale::Ask>),
    /// whack_mmap_sem: threads that touch random bytes of one large buffer, page faults on the running kernel
    #[cfg(target_os = "linux")]
    Whack(crate::whack::Ask),
    /// Reader-writer semaphores of user space around a page fault: the kernel's designs, and none
    #[cfg(target_os = "linux")]
    Rwsem(crate::rwsem::Ask),
    /// A priority inversion on purpose: how long an urgent thread waits for each lock (needs real-time priorities)
    #[cfg(target_os = "linux")]
    Inversion(crate::rwsem::inversion::Ask),
    /// Readers and writers that misbehave in eight ways: does anybody see what nobody may have any more?
    #[cfg(target_os = "linux")]
    Torture(crate::torture::Ask),
    /// perf bench futex hash: calls that find their word changed, over numbers of hash buckets
    #[cfg(target_os = "linux")]
    FutexHash(crate::futexhash::Ask),
    /// The same points in two files of records: ratio, interval and verdict for each
    Compare(crate::report::compare::Ask),
    /// Records that are there already as one page (-o), pictures (--plot), tables in Markdown (--markdown)
    Report(crate::report::offline::Ask),
    /// Predicts contention with a queueing model, beside the published numbers: never a measurement
    Model(crate::model::Ask),
    /// One run in this process, as the parent asks for it
    #[command(name = child::SUBCOMMAND, hide = true)]
    RunOne {
        /// The job as JSON
        job: String,
    },
}

impl Command {
    /// The workload that the command measures, and the points asked for.
    pub(crate) fn workload(&self, options: &Options) -> Option<(Workload, Ask)> {
        let mut ask = Ask {
            threads: options.threads.as_ref().map(|list| list.0.clone()),
            ..Ask::default()
        };
        let workload = match self {
            Command::Read => Workload::Read,
            Command::Write { readers, writers } => {
                if readers.is_some() || writers.is_some() {
                    ask.crews = vec![(readers.unwrap_or(0), writers.unwrap_or(1))];
                }
                Workload::Write
            }
            Command::Scan => Workload::Scan,
            Command::Stall => Workload::Stall,
            #[cfg(target_os = "linux")]
            Command::Grace {
                original: Some(_), ..
            } => return None,
            Command::Grace { hold, idle, .. } => {
                ask.holds = hold.as_ref().map(|list| list.0.clone());
                ask.idles = idle.as_ref().map(|list| list.0.clone());
                Workload::Grace
            }
            Command::Defer => Workload::Defer,
            Command::Phash {
                buckets,
                futexes,
                op_cost,
                replace_every,
            } => {
                let list = |list: &Option<List<usize>>, default| {
                    list.as_ref().map_or(vec![default], |list| list.0.clone())
                };
                ask.more = Some(phash::more(
                    &list(buckets, phash::BUCKETS),
                    &list(futexes, phash::FUTEXES),
                    *op_cost,
                    *replace_every,
                ));
                Workload::Phash
            }
            Command::Structures(asked) => {
                asked.points(&mut ask);
                Workload::Structures
            }
            Command::LazyMm(mode) => mode.workload(&mut ask),
            // Ctxsw makes its own points, the others have none.
            #[cfg(target_os = "linux")]
            Command::Rwsem(asked) => {
                asked.points(&mut ask);
                Workload::Rwsem
            }
            #[cfg(target_os = "linux")]
            Command::Ctxsw(_)
            | Command::Schbench(_)
            | Command::Ref(_)
            | Command::Rcuscale(_)
            | Command::Whack(_)
            | Command::Inversion(_)
            | Command::Torture(_)
            | Command::FutexHash(_) => return None,
            Command::Machine(_) | Command::Baselines | Command::Overhead => return None,
            Command::Capabilities
            | Command::Published { .. }
            | Command::Calibrate
            | Command::Model(_)
            | Command::Compare(_)
            | Command::Report(_)
            | Command::RunOne { .. } => return None,
        };
        Some((workload, ask))
    }
}
