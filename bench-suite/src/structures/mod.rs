//! Floor 3, bench-suite. Owns the workload `structures`: lock-free structures under each way to keep their nodes alive,
//! under a mix of operations, with readers that stay inside, threads that come and go, and long walks. May touch a
//! structure through the crate `structures`, and the crew.
//!
//! One code for each structure, whatever the scheme: what differs is the scheme's. A run counts only if each value read
//! was whole, no dead node was looked at, the operations done were the mix asked for, and the content at the end is what
//! the operations left.
//!
//! | file | owns |
//! |---|---|
//! | `ask` | the options, and the points that they make |
//! | `dist` | which operations, on which keys |
//! | `subject` | what is asked of a structure |
//! | `crew` | the threads |
//! | `content` | the sums that the content is checked by |
//! | `figures` | the record |
//! | `view` | tables and pictures |

mod ask;
mod content;
mod crew;
mod dist;
mod figures;
mod subject;
mod view;

use crate::engine::crew::{Refusal, Worker, run as run_crew};
use crate::engine::job::Job;
use crate::report::record::Record;
use crate::schemes::{About, Support};
use crate::workloads::Kind;
use ::structures::metered::Metered;
use ::structures::schemes::{self, ArcCell};
use ::structures::{
    Census, HashMap, Kind as Ds, List, Scheme, SkipList, Support as Has, SwapCell, Visit,
};
pub(crate) use ask::Ask;
use ask::Plan;
use content::Sum;
use crew::{Balance, Done, PREFILLER, Samples, Turn, Walks};
use dist::{Load, Op, Zipf};
use std::sync::OnceLock;
use subject::{OnCell, OnMap, OnQueue, OnStack, Subject};

pub(crate) const KIND: Kind = Kind {
    name: "structures",
    what: "lock-free structures under each scheme: --ds, --get-rate, --key-range, --dist, --stall, --churn, --rate, --long-reads; throughput, latency, nodes that wait",
    points: |points| ask::points(points, &[2]),
    tour: |points| ask::tour(points),
    variants,
    run,
    support,
    view: view::VIEW,
};

/// Threads of a run beside those that operate: one that counts, one that stays inside, those that walk.
pub(crate) fn threads(job: &Job) -> usize {
    Plan::of(job).map_or(job.threads, |plan| {
        job.threads + 1 + usize::from(plan.stall.is_some()) + plan.long_reads
    })
}

/// The schemes of the crate, in the words of this program.
fn variants() -> &'static [About] {
    static ALL: OnceLock<Vec<About>> = OnceLock::new();
    ALL.get_or_init(|| {
        let about = |about: &::structures::About| About {
            rung: about.rung,
            percpu: about.percpu,
            hidden: about.hidden,
            ..About::new(about.name, about.measures, about.holder)
                .nowhere("here as a scheme of structures, where it takes part")
        };
        schemes::all().iter().map(about).collect()
    })
}

/// Whether a structure can be had under a scheme, and can do what the point asks.
fn support(about: &About, job: &Job) -> Support {
    let Ok(plan) = Plan::of(job) else {
        return Support::Yes;
    };
    if plan.long_reads > 0 && !ask::is_map(plan.ds) {
        return Support::No("a cell, stack or queue has no walk over its elements");
    }
    let scheme = schemes::all().iter().find(|one| one.name == about.name);
    match scheme.map(|scheme| scheme.supports(plan.ds)) {
        Some(Has::No(why)) => Support::No(why),
        _ => Support::Yes,
    }
}

fn run(job: &Job) -> Result<Record, Refusal> {
    struct Run<'a>(&'a Job, &'a Plan);
    impl Visit for Run<'_> {
        type Out = Result<Record, Refusal>;

        fn visit<S: Scheme>(self) -> Self::Out {
            let Run(job, plan) = self;
            match plan.ds {
                Ds::Cell => measure::<OnCell<SwapCell<Metered<S>>>>(job, plan),
                Ds::Stack => measure::<OnStack<S>>(job, plan),
                Ds::Queue => measure::<OnQueue<S>>(job, plan),
                Ds::List => measure::<OnMap<List<Metered<S>>>>(job, plan),
                Ds::Hash => measure::<OnMap<HashMap<Metered<S>>>>(job, plan),
                Ds::Skip => measure::<OnMap<SkipList<Metered<S>>>>(job, plan),
            }
        }
    }
    let plan = Plan::of(job).map_err(Refusal::Environment)?;
    schemes::dispatch(&job.variant, Run(job, &plan))
        .unwrap_or_else(|| measure::<OnCell<ArcCell>>(job, &plan))
}

/// Puts the first elements in: keys at equal distances, from the highest down, so that a list is not walked for each.
fn prefill<S: Subject>(subject: &S, plan: &Plan) -> Sum {
    let mut sum = Sum::default();
    if plan.ds == Ds::Cell {
        sum.add(S::value(0, PREFILLER, 0));
        return sum;
    }
    let mut thread = subject.thread();
    for serial in (0..plan.prefill).rev() {
        let key = match ask::is_map(plan.ds) {
            // Below 2^24 each: no overflow.
            true => serial * plan.key_range / plan.prefill,
            false => serial,
        };
        let value = S::value(key, PREFILLER, serial);
        let did = subject.act(&mut thread, Op::Insert, key, value);
        assert!(did.put, "the structure is empty");
        sum.add(value);
    }
    sum
}

fn measure<S: Subject>(job: &Job, plan: &Plan) -> Result<Record, Refusal> {
    ::structures::alloc::watch();
    let census = Census::leak();
    let subject = S::new(plan.elements(), census);
    let first = prefill(&subject, plan);
    let zipf = plan.zipf().map(|s| Zipf::new(plan.key_range, s));
    let mut done: Vec<Done> = (0..job.threads)
        .map(|index| {
            let seed = job.seed ^ (job.run as u64) << 32 ^ (index as u64 + 1);
            let load = Load::new(seed, plan.get_rate, plan.key_range, zipf.as_ref());
            Done::new(index, load)
        })
        .collect();
    let balances: Vec<Balance> = done.iter().map(|_| Balance::default()).collect();
    let mut walks: Vec<Walks> = (0..plan.long_reads).map(|_| Walks::new()).collect();
    let mut samples = Samples::default();
    let turn = |balance| Turn {
        plan,
        subject: &subject,
        balance,
    };
    let mut workers: Vec<Worker<'_>> = Vec::new();
    for (done, balance) in done.iter_mut().zip(&balances) {
        let turn = turn(balance);
        workers.push(Box::new(move |pace| crew::operate(&turn, pace, done)));
    }
    let subject = &subject;
    for walks in &mut walks {
        workers.push(Box::new(move |pace| crew::walk(subject, pace, walks)));
    }
    if let Some(stall) = plan.stall {
        workers.push(Box::new(move |pace| crew::stay(subject, pace, stall)));
    }
    let (balances, sampled) = (&balances, &mut samples);
    workers.push(Box::new(move |pace| {
        crew::sample::<S>(census, first.count, balances, pace, sampled)
    }));
    let (tallies, early) = run_crew(job, workers, || ())?;
    let left = figures::release(subject, census, balances, first.count);
    let mut expected = first;
    for done in &done {
        expected = expected.with(done.put).without(done.took);
    }
    let mut content = Sum::default();
    subject.content(|value| content.add(value));
    let found = figures::Found {
        done: &done,
        walks: &walks,
        samples: &samples,
        expected,
        content,
        left,
        dead: census.dead_seen(),
        meter: subject.meter(),
        bound: subject.bound(threads(job)),
        early,
    };
    Ok(figures::record(job, plan, &tallies, &found))
}
