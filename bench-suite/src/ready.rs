//! Floor 3, bench-suite. Owns what comes before the first run of a command and after the last one: whether this machine,
//! its limits and `--strict` allow it, and the baselines. May touch `engine`, `machine` and `baseline`.

use crate::baseline;
use crate::cli::Options;
use crate::engine::sysroot::Root;
use crate::engine::weather::Weather;
use crate::engine::{crew, pin, places, room, windows};
use crate::machine::{Stamp, strict};
use crate::points::Points;
use crate::report::record::Record;
use crate::trouble::Trouble;
use crate::workloads;
use std::ffi::OsString;

/// A command whose runs can begin.
#[derive(Debug)]
pub(crate) struct Ready {
    baseline: Option<baseline::Plan>,
}

impl Ready {
    /// Looks whether the runs can be made here. More threads than fit are an error where they were asked for; of the
    /// usual points those that do not fit are skipped. For `--dry-run` it need not be this machine.
    pub(crate) fn of(points: &Points, options: &Options) -> Result<Self, Trouble> {
        let root = Root::here();
        if options.strict {
            strict::environment(&root)?;
        }
        if options.dry_run {
            return Ok(Ready { baseline: None });
        }
        root.measurable()?;
        if let Some(most) = points.jobs.iter().map(workloads::threads).max()
            && points.asked
        {
            room::check("--threads", most, crew::STACK).map_err(Trouble::Environment)?;
        }
        let baseline = baseline::Plan::prepare(options, &Stamp::here(), points)?;
        Ok(Ready {
            baseline: Some(baseline),
        })
    }

    /// The baselines' part, when all files are written.
    pub(crate) fn conclude(
        self,
        records: &[Record],
        say: impl Fn(&str) -> Result<(), Trouble>,
    ) -> Result<(), Trouble> {
        match self.baseline {
            Some(plan) => plan.conclude(records, say),
            None => Ok(()),
        }
    }
}

/// What `--dry-run` shows beside the runs: where their threads would be.
pub(crate) fn order(options: &Options) -> String {
    pin::plan(options.pin(), &places::here())
}

/// What a run's process must know beside its job.
pub(crate) fn for_child(options: &Options) -> Vec<OsString> {
    let window = options.window;
    let window = window.map(|window| format!("--window={}ns", window.as_nanos()));
    window.into_iter().map(OsString::from).collect()
}

/// In that process: takes it, and looks at the machine before the run.
pub(crate) fn in_child(options: &Options) -> Weather {
    if let Some(window) = options.window {
        windows::ask(window);
    }
    Weather::before()
}
