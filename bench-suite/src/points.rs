//! Floor 3, bench-suite. Owns which points a command measures and for how long: defaults, `--quick`, the tour's budget.
//! May touch the options, the registry and the job.

use crate::cli::Options;
use crate::engine::job::{Job, Shape};
use crate::schemes::{About, Support};
use crate::trouble::Trouble;
use crate::workloads::{self, Ask, Workload};
use std::time::Duration;

/// Wall time that the tour plans for, below the 90 s that it promises.
const BUDGET: Duration = Duration::from_secs(72);

/// The same with `--quick`.
const QUICK_BUDGET: Duration = Duration::from_secs(8);

/// What is run, how often, and how long the runs take together.
#[derive(Debug)]
pub(crate) struct Points {
    /// One job per point.
    pub(crate) jobs: Vec<Job>,
    /// Repetitions.
    pub(crate) runs: usize,
    /// Whether somebody asked for these numbers of threads.
    pub(crate) asked: bool,
    /// What `--budget` allows.
    budget: Option<Duration>,
}

/// Refuses variants that `workload` does not have (another one may).
pub(crate) fn refuse_foreign(workload: Workload, options: &Options) -> Result<(), Trouble> {
    let Some(list) = &options.variants else {
        return Ok(());
    };
    match list.0.iter().find(|name| workload.find(name).is_none()) {
        None => Ok(()),
        Some(name) => {
            let names: Vec<_> = workload.listed().map(|about| about.name).collect();
            Err(Trouble::Usage(format!(
                "--variants: {} has no '{name}', it has {}",
                workload.name(),
                names.join(", ")
            )))
        }
    }
}

impl Points {
    /// The points of one workload.
    pub(crate) fn of(workload: Workload, ask: &Ask, options: &Options) -> Self {
        let shapes = (workload.kind().points)(ask);
        let (time, warmup) = if options.quick {
            (100, 20)
        } else {
            (1000, 200)
        };
        let time = options.time.unwrap_or(Duration::from_millis(time));
        let warmup = options.warmup.unwrap_or(Duration::from_millis(warmup));
        let mut jobs: Vec<Job> = shapes
            .iter()
            .flat_map(|shape| cross(workload, shape, time, warmup, options))
            .collect();
        let runs = runs(options);
        if let Some(budget) = options.budget {
            fit(&mut jobs, runs, budget, options);
        }
        Points {
            jobs,
            runs,
            asked: ask.threads.is_some() || !ask.crews.is_empty() || ask.idles.is_some(),
            budget: options.budget,
        }
    }

    /// The points of the tour, timed to fit its budget.
    pub(crate) fn tour(options: &Options) -> Self {
        let ask = Ask {
            threads: options.threads.as_ref().map(|list| list.0.clone()),
            ..Ask::default()
        };
        let shapes: Vec<(Workload, Shape)> = Workload::ALL
            .iter()
            .flat_map(|&workload| {
                let shapes = (workload.kind().tour)(&ask).into_iter();
                shapes.map(move |shape| (workload, shape))
            })
            .collect();
        let zero = Duration::ZERO;
        let mut jobs: Vec<Job> = shapes
            .iter()
            .flat_map(|(workload, shape)| cross(*workload, shape, zero, zero, options))
            .collect();
        let runs = runs(options);
        let usual = if options.quick { QUICK_BUDGET } else { BUDGET };
        fit(&mut jobs, runs, options.budget.unwrap_or(usual), options);
        Points {
            jobs,
            runs,
            asked: options.threads.is_some(),
            budget: options.budget,
        }
    }

    /// Wall time that the runs take, without their start and end.
    pub(crate) fn wall(&self) -> Duration {
        self.jobs
            .iter()
            .filter(|job| runs_at_all(job))
            .map(|job| job.time + job.warmup)
            .sum::<Duration>()
            * self.runs as u32
    }

    /// Wall time with the start and the end of the processes.
    pub(crate) fn estimate(&self) -> Duration {
        let ends: Duration = self
            .jobs
            .iter()
            .filter(|job| runs_at_all(job))
            .map(overhead)
            .sum();
        self.wall() + ends * self.runs as u32
    }

    /// The line that says that all this does not fit `--budget`, where it does not.
    pub(crate) fn beyond(&self) -> Option<String> {
        let (budget, all) = (self.budget?, self.estimate());
        // What rounding makes of it is no news.
        (all > budget.mul_f64(1.02)).then(|| {
            format!(
                "--budget {budget:?} is not kept: {} runs take about {:.0} s; fewer points or --runs would\n",
                self.count(),
                all.as_secs_f64().ceil()
            )
        })
    }

    /// What `--dry-run` shows.
    pub(crate) fn plan(&self) -> String {
        let fixed = self.jobs.iter().any(|job| job.time.is_zero());
        let mut text = format!(
            "{} runs: {} points, {} repetition(s) of each; {} {:.0} s in all\n",
            self.count(),
            self.jobs.iter().filter(|job| runs_at_all(job)).count(),
            self.runs,
            if fixed { "more than" } else { "about" },
            self.estimate().as_secs_f64().ceil(),
        );
        text.extend(self.beyond());
        for job in &self.jobs {
            let what = format!("{:<15}{:<18}", job.workload.name(), job.variant);
            let threads = format!("{} readers, {} writers", job.readers, job.writers);
            let pauses = job.pauses.map_or(String::new(), |pauses| {
                format!(", hold {:?}, {} idle", pauses.hold, pauses.idle)
            });
            let more: String = job
                .more
                .iter()
                .map(|(name, value)| format!(", {name} {value}"))
                .collect();
            match workloads::support(about(job), job) {
                Support::Yes => {
                    let long = match job.time.is_zero() {
                        true => "as long as its work takes".to_owned(),
                        false => format!("{:?} after {:?}", job.time, job.warmup),
                    };
                    text.push_str(&format!(
                        "  {what}{:>5} threads ({threads}{pauses}{more}), {long}\n",
                        job.threads
                    ));
                }
                Support::No(why) => text.push_str(&format!("  {what}skipped: {why}\n")),
            }
        }
        text
    }

    /// Runs that will take place.
    pub(crate) fn count(&self) -> usize {
        self.jobs.iter().filter(|job| runs_at_all(job)).count() * self.runs
    }
}

fn runs(options: &Options) -> usize {
    options.runs.unwrap_or(if options.quick { 1 } else { 3 })
}

fn cross(
    workload: Workload,
    shape: &Shape,
    time: Duration,
    warmup: Duration,
    options: &Options,
) -> Vec<Job> {
    let variants: Vec<&About> = match &options.variants {
        Some(list) => list
            .0
            .iter()
            .filter_map(|name| workload.find(name))
            .collect(),
        None => workload.listed().collect(),
    };
    let job = |about: &About| Job {
        workload,
        variant: about.name.to_owned(),
        threads: shape.threads,
        readers: shape.readers,
        writers: shape.writers,
        pauses: shape.pauses,
        more: shape.more.clone(),
        run: 0,
        order: 0,
        seed: options.seed,
        time,
        warmup,
        pin: options.pin(),
        quick: options.quick,
    };
    variants.into_iter().map(job).collect()
}

/// The description of a job's variant.
pub(crate) fn about(job: &Job) -> &'static About {
    job.workload
        .find(&job.variant)
        .expect("only known variants become jobs")
}

fn runs_at_all(job: &Job) -> bool {
    workloads::support(about(job), job) == Support::Yes
}

/// What a process, its threads and its end cost beside the run itself.
fn overhead(job: &Job) -> Duration {
    Duration::from_millis(12) + Duration::from_micros(100) * workloads::threads(job) as u32
}

/// Sets what the options leave open such that all runs fit `budget`.
fn fit(jobs: &mut [Job], runs: usize, budget: Duration, options: &Options) {
    let share = share(jobs, runs, budget);
    for job in jobs {
        job.time = options.time.unwrap_or(share.mul_f64(0.85));
        job.warmup = options.warmup.unwrap_or(share.mul_f64(0.15));
    }
}

/// Time for each run such that all of them fit `budget`, within reason.
fn share(jobs: &[Job], runs: usize, budget: Duration) -> Duration {
    let live = || jobs.iter().filter(|job| runs_at_all(job));
    let fixed = live().map(overhead).sum::<Duration>() * runs as u32;
    let count = (live().count() * runs).max(1) as u32;
    (budget.saturating_sub(fixed) / count).clamp(Duration::from_millis(20), Duration::from_secs(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::Parser;

    fn options(arguments: &[&str]) -> Options {
        Cli::parse_from(["hpbench"].iter().chain(arguments)).options
    }

    #[test]
    fn the_tour_plans_to_fit() {
        let points = Points::tour(&options(&[]));
        assert_eq!(points.runs, 3);
        assert!(points.wall() <= BUDGET, "{:?}", points.wall());
        for workload in Workload::toured() {
            assert!(points.jobs.iter().any(|job| job.workload == workload));
        }
        let quick = Points::tour(&options(&["--quick"]));
        assert!(quick.wall() <= QUICK_BUDGET, "{:?}", quick.wall());
        assert!(
            quick
                .jobs
                .iter()
                .all(|job| job.quick && !job.time.is_zero())
        );
    }

    #[test]
    fn a_budget_is_kept_and_options_beat_it() {
        let threads = ["--threads", "1", "--variants", "hp,mutex"];
        let of = |more: &[&str]| {
            let options = options(&[&threads, more].concat());
            Points::of(Workload::Read, &Ask::default(), &options)
        };
        let points = of(&["--budget", "3s", "--runs", "2"]);
        assert!(
            points.estimate() <= Duration::from_secs(3),
            "{:?}",
            points.estimate()
        );
        assert!(
            points.estimate() > Duration::from_millis(2500),
            "{:?}",
            points.estimate()
        );
        let points = of(&["--budget", "3s", "--time", "7ms"]);
        assert!(
            points
                .jobs
                .iter()
                .all(|job| job.time == Duration::from_millis(7))
        );
        let plan = points.plan();
        assert!(plan.contains("hp") && plan.contains("7ms after"), "{plan}");
        assert_eq!(points.beyond(), None);
        let points = of(&["--budget", "1s", "--runs", "100"]);
        let line = points.beyond().expect("400 runs of 20 ms");
        assert!(
            line.contains("--budget 1s") && line.contains("400 runs"),
            "{line}"
        );
        assert!(points.plan().contains(&line));
        // Enough for the variants of the optional features, too.
        let options = options(&["--budget", "60s"]);
        assert!(Points::tour(&options).estimate() <= Duration::from_secs(60));
    }

    #[test]
    fn options_beat_defaults() {
        let options = options(&[
            "--threads",
            "3",
            "--variants",
            "mutex",
            "--time",
            "7ms",
            "--quick",
        ]);
        let ask = Ask {
            threads: options.threads.as_ref().map(|list| list.0.clone()),
            ..Ask::default()
        };
        let points = Points::of(Workload::Write, &ask, &options);
        assert_eq!(points.jobs.len(), 1);
        let job = &points.jobs[0];
        assert_eq!((job.threads, job.readers, job.writers), (3, 0, 3));
        assert_eq!(job.time, Duration::from_millis(7));
        let mixed = Points::of(
            Workload::Write,
            &Ask {
                crews: vec![(2, 1)],
                ..Ask::default()
            },
            &options,
        );
        assert_eq!(
            (
                mixed.jobs[0].threads,
                mixed.jobs[0].readers,
                mixed.jobs[0].writers
            ),
            (3, 2, 1)
        );
    }

    #[test]
    fn what_cannot_run_takes_no_time() {
        let points = Points::of(
            Workload::Scan,
            &Ask {
                threads: Some(vec![4]),
                ..Ask::default()
            },
            &options(&["--variants", "mutex,haphazard"]),
        );
        assert_eq!(points.jobs.len(), 2);
        assert_eq!(points.count(), 3);
        assert_eq!(points.wall(), Duration::from_millis(3600));
    }
}
