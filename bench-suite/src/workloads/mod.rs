//! Floor 3, bench-suite. Owns the workloads, one file each, and the way from a job to a record.
//! May touch `schemes`, `engine` and the record; a new workload is one file, its `mod` line and its arm in [`Run`].

pub(crate) mod capabilities;
mod read;
mod scan;
mod stall;
mod write;

pub(crate) use scan::BATCH as SCAN_BATCH;

use crate::engine::crew::{Rate, Refusal};
use crate::engine::job::{Job, Workload};
use crate::engine::pin;
use crate::report::record::Record;
use crate::schemes::{self, About, Scheme, Support, Visit};

/// Whether `about` can run `job`.
pub(crate) fn support(about: &About, job: &Job) -> Support {
    match job.workload {
        Workload::Read => Support::Yes,
        Workload::Write if job.readers == 0 => Support::Yes,
        Workload::Write => about.write_with_readers,
        Workload::Scan => about.scan,
        Workload::Stall => about.stall,
    }
}

struct Run<'a>(&'a Job);

impl Visit for Run<'_> {
    type Out = Result<Record, Refusal>;

    fn visit<S: Scheme>(self) -> Self::Out {
        match self.0.workload {
            Workload::Read => read::run::<S>(self.0),
            Workload::Write => write::run::<S>(self.0),
            Workload::Scan => scan::run::<S>(self.0),
            Workload::Stall => stall::run::<S>(self.0),
        }
    }
}

/// Runs `job` in this process.
pub(crate) fn run(job: &Job) -> Result<Record, Refusal> {
    let unknown = || Refusal::Environment(format!("unknown variant '{}'", job.variant));
    let about = schemes::find(&job.variant).ok_or_else(unknown)?;
    if let Support::No(why) = support(about, job) {
        return Ok(Record::skipped(job, why));
    }
    let is_hp = about.name == "hp" || about.name.starts_with("hp-");
    let rung = is_hp.then(|| percpu::capabilities().rung.to_string());
    if let (Some(wanted), Some(rung)) = (about.rung, &rung)
        && wanted != rung
    {
        let why = percpu::capabilities().reason;
        return Ok(Record::skipped(
            job,
            &format!("rung {wanted} cannot be had here, this is {rung}: {why}"),
        ));
    }
    let mut record = match schemes::dispatch(&job.variant, Run(job)).ok_or_else(unknown)? {
        Err(Refusal::Skipped(why)) => Record::skipped(job, &why),
        other => other?,
    };
    if let Some(rung) = rung {
        record.set("rung", rung);
    }
    record.set("cpus", pin::allowed());
    if let Some(count) = involuntary_switches() {
        record.set("involuntary_switches", count);
    }
    Ok(record)
}

/// How often the scheduler took a CPU away from this process: with at most as many threads as CPUs, a sign that
/// something else ran beside the measurement.
#[cfg(unix)]
fn involuntary_switches() -> Option<serde_json::Value> {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the call writes one `rusage` to the place given, and zeroed is a valid `rusage` should it fail.
    let usage = unsafe {
        (libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) == 0)
            .then(|| usage.assume_init())?
    };
    Some(usage.ru_nivcsw.into())
}

#[cfg(not(unix))]
fn involuntary_switches() -> Option<serde_json::Value> {
    None
}

/// Fills in the main figures. `workers` is the number of threads that did these operations.
fn fill(record: &mut Record, rate: &Rate, workers: usize) {
    record.ops = rate.ops;
    record.elapsed_s = rate.elapsed_s;
    record.ops_per_s = rate.per_s();
    record.ns_per_op = rate.ns_per_op(workers, pin::allowed().len());
    record.set("start_skew_s", rate.skew_s);
    record.set("thread_ops_min", rate.extremes.0);
    record.set("thread_ops_max", rate.extremes.1);
    if rate.ops == 0 {
        record.remark("no operation was completed");
    }
}
