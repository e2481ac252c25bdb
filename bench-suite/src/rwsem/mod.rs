//! Floor 3, bench-suite. Owns the workload `rwsem`: the reader-writer semaphores of `rwsems` around a page fault. May
//! touch a variant through `rwsems`, the crew, and memory of its own.
//!
//! Readers take the lock, find the description of an address range, touch a page of it that nobody has touched before
//! (a real page fault, which is what the kernel's lock is held for), and leave. Writers replace the description. The
//! locks are models in user space; the fault inside is the kernel's own, with the kernel's own locks.
//!
//! | file | owns |
//! |---|---|
//! | `arena` | pages that fault once each |
//! | `crew` | readers and writers, what they time |
//! | `view` | table and picture |
//! | `inversion` | `hpbench inversion` |

mod arena;
mod crew;
pub(crate) mod inversion;
mod view;

use crate::engine::crew::Refusal;
use crate::engine::job::{Job, Params, Shape};
use crate::report::record::Record;
use crate::schemes::{About, Support};
use crate::workloads::{Ask as Points, Kind};
use std::sync::OnceLock;

/// What readers do inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Body {
    /// Touch a page for the first time: a real page fault
    Fault,
    /// Look at the description only
    None,
}

impl Body {
    fn name(self) -> &'static str {
        match self {
            Body::Fault => "fault",
            Body::None => "none",
        }
    }

    fn of(job: &Job) -> Self {
        match job.more.get("body").and_then(|word| word.as_str()) {
            Some("none") => Body::None,
            _ => Body::Fault,
        }
    }
}

/// Options of the workload.
#[derive(Debug, clap::Args)]
pub(crate) struct Ask {
    /// Writing threads beside the readers that --threads counts
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = crate::parse::crew)]
    writers: usize,
    /// Writes a second of each writer, on a schedule that does not wait for the lock; without it, one after the other
    #[arg(long, value_name = "PER_S", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    write_rate: Option<u64>,
    /// What readers do inside
    #[arg(long, value_enum, default_value = "fault")]
    body: Body,
}

impl Ask {
    /// Refuses what makes no sense together.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        if self.write_rate.is_some() && self.writers == 0 {
            return Err("--write-rate: there are no writers, --writers N is missing");
        }
        Ok(())
    }

    /// What the options ask of the points.
    pub(crate) fn points(&self, ask: &mut Points) {
        ask.crews = vec![(0, self.writers)];
        ask.more = Some(vec![params(self.body, self.write_rate)]);
    }
}

fn params(body: Body, rate: Option<u64>) -> Params {
    let mut params = Params::from([("body".to_owned(), body.name().into())]);
    if let Some(rate) = rate {
        params.insert("write_rate".to_owned(), rate.into());
    }
    params
}

fn shape(readers: usize, writers: usize, more: Params) -> Shape {
    Shape {
        threads: readers + writers,
        readers,
        writers,
        more,
        ..Shape::default()
    }
}

pub(crate) const KIND: Kind = Kind {
    name: "rwsem",
    what: "reader-writer semaphores around a page fault: --threads readers, --writers writers; wait and hold",
    points: |ask| {
        let writers = ask.crews.first().map_or(0, |crew| crew.1);
        let more = ask.more.as_ref().and_then(|more| more.first()).cloned();
        let more = more.unwrap_or_else(|| params(Body::Fault, None));
        let readers = ask.threads.as_deref().unwrap_or(&[1, 2, 4]);
        readers
            .iter()
            .map(|&readers| shape(readers, writers, more.clone()))
            .collect()
    },
    tour: |_| vec![shape(2, 1, params(Body::Fault, Some(1000)))],
    variants,
    run,
    support: |about, _| support(about.name),
    view: view::VIEW,
};

/// The variants of `rwsems`, as this program describes variants.
fn variants() -> &'static [About] {
    static ALL: OnceLock<Vec<About>> = OnceLock::new();
    ALL.get_or_init(|| {
        let about = |lock: &rwsems::About| About {
            percpu: lock.percpu,
            ..About::new(lock.name, lock.what, lock.fairness)
        };
        rwsems::all().iter().map(about).collect()
    })
}

/// Whether the variant can be had here.
fn support(name: &str) -> Support {
    match rwsems::find(name) {
        Some(about) if about.pi => match rwsems::futex::pi_available() {
            Ok(()) => Support::Yes,
            Err(why) => Support::No(why),
        },
        _ => Support::Yes,
    }
}

fn run(job: &Job) -> Result<Record, Refusal> {
    struct Run<'a>(&'a Job);
    impl rwsems::Visit for Run<'_> {
        type Out = Result<Record, Refusal>;

        fn visit<R: rwsems::Region>(self) -> Self::Out {
            crew::run::<R>(self.0)
        }
    }
    rwsems::dispatch(&job.variant, Run(job)).expect("a variant of this workload")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workloads::Workload;

    #[test]
    fn writers_come_on_top_of_the_readers() {
        let mut ask = Points {
            threads: Some(vec![1, 3]),
            ..Points::default()
        };
        let options = Ask {
            writers: 2,
            write_rate: Some(50),
            body: Body::None,
        };
        options.check().unwrap();
        options.points(&mut ask);
        let shapes = (KIND.points)(&ask);
        assert_eq!(shapes.len(), 2);
        assert_eq!(
            (shapes[1].threads, shapes[1].readers, shapes[1].writers),
            (5, 3, 2)
        );
        assert_eq!(shapes[1].more["body"], "none");
        assert_eq!(shapes[1].more["write_rate"], 50);
        let idle = Ask {
            writers: 0,
            ..options
        };
        assert!(idle.check().is_err());
    }

    #[test]
    fn the_reference_is_a_variant() {
        assert!(Workload::Rwsem.find(KIND.view.reference).is_some());
        assert_eq!(variants().len(), rwsems::all().len());
    }
}
