//! `hpbench`: thread-count sweeps of safe memory reclamation schemes, hazard pointers in per-CPU slots beside the
//! crates that people use today.
//!
//! Floor 3, bench-suite. This file owns the way from the command line to an exit code; it touches `cli` and `command`.
//!
//! | room | owns |
//! |---|---|
//! | `schemes` | one file per way to keep an object alive, behind one trait |
//! | `workloads` | one file per thing to measure |
//! | `engine` | plan, child processes, thread placement, start gate, clocks |
//! | `report` | records, statistics, tables, JSONL, CSV, Markdown, SVG, the page |
//! | `published` | numbers of others, with their source |
//! | `machine` | the machine record |
//! | `ready`, `baseline` | what comes before and after the runs; records kept under a name |
//! | `calibrate` | what lines, fences and barriers cost here |
//! | `ctxsw` | will-it-scale's context_switch1 |
//! | `lazymm` | who still has an address space lazily: trackers and their workloads |
//! | `schbench`, `refscale`, `rcuscale` | schbench for real; refscale and rcuscale in user space |
//! | `rwsem` | reader-writer semaphores around page faults, and the priority inversion |
//! | `whack` | whack_mmap_sem |
//! | `futexhash` | perf bench futex hash |
//! | `structures` | lock-free structures under each scheme |
//! | `torture` | readers and writers that misbehave, and what nobody may see |
//! | `model` | predictions of contention, beside the published numbers |

mod baseline;
mod calibrate;
mod cli;
mod command;
#[cfg(target_os = "linux")]
mod ctxsw;
mod engine;
#[cfg(target_os = "linux")]
mod futexhash;
mod lazymm;
mod machine;
mod model;
mod parse;
mod points;
mod published;
#[cfg(target_os = "linux")]
mod rcuscale;
mod ready;
#[cfg(target_os = "linux")]
mod refscale;
mod report;
#[cfg(target_os = "linux")]
mod rwsem;
#[cfg(target_os = "linux")]
mod schbench;
mod schemes;
mod structures;
#[cfg(target_os = "linux")]
mod torture;
mod trouble;
#[cfg(target_os = "linux")]
mod whack;
mod workloads;

use cli::{Command, Parsed};
use std::process::ExitCode;
use trouble::Trouble;

/// Counts nothing until a workload asks for it.
#[global_allocator]
static ALLOCATOR: ::structures::alloc::Counting = ::structures::alloc::Counting;

fn main() -> ExitCode {
    match start() {
        Ok(()) => ExitCode::SUCCESS,
        Err(trouble @ Trouble::Gone) => ExitCode::from(trouble.code()),
        Err(trouble) => {
            eprintln!("hpbench: {trouble}");
            ExitCode::from(trouble.code())
        }
    }
}

fn start() -> Result<(), Trouble> {
    let cli = match cli::parse()? {
        Parsed::Show(text) => return command::say(&text),
        Parsed::Run(cli) => cli,
    };
    engine::sysroot::Root::here().check()?;
    let options = &cli.options;
    if options.list {
        return command::list();
    }
    match &cli.command {
        None => command::tour(options),
        Some(Command::Capabilities) => command::capabilities(options),
        Some(Command::RunOne { job }) => command::run_one(job, options),
        Some(Command::Machine(ask)) => machine::command(ask, options),
        Some(Command::Baselines) => baseline::list(options),
        Some(Command::Overhead) => workloads::overhead::command(options),
        Some(Command::Published { set }) => published::command(set.as_deref(), options),
        Some(Command::Calibrate) => calibrate::command(options),
        #[cfg(target_os = "linux")]
        Some(Command::Ctxsw(ask)) => ctxsw::command(ask, options),
        #[cfg(target_os = "linux")]
        Some(Command::Schbench(ask)) => schbench::command(ask, options),
        #[cfg(target_os = "linux")]
        Some(Command::Ref(ask)) => refscale::command(ask, options),
        #[cfg(target_os = "linux")]
        Some(Command::Rcuscale(ask)) => rcuscale::command(ask, options),
        #[cfg(target_os = "linux")]
        Some(Command::Grace {
            original: Some(ask),
            ..
        }) => rcuscale::command(ask, options),
        #[cfg(target_os = "linux")]
        Some(Command::Whack(ask)) => whack::command(ask, options),
        #[cfg(target_os = "linux")]
        Some(Command::Torture(ask)) => torture::command(ask, options),
        #[cfg(target_os = "linux")]
        Some(Command::Inversion(ask)) => rwsem::inversion::command(ask, options),
        #[cfg(target_os = "linux")]
        Some(Command::FutexHash(ask)) => futexhash::command(ask, options),
        Some(Command::Compare(ask)) => {
            options.without_runs("compare")?;
            report::compare::command(ask)
        }
        Some(Command::Report(ask)) => report::offline::command(ask, options),
        Some(Command::Model(ask)) => model::command(ask, options),
        Some(command) => match command.workload(options) {
            Some((workload, ask)) => command::workload(workload, &ask, options),
            None => unreachable!("every other command is a workload"),
        },
    }
}
