//! Floor 3, bench-suite. Owns `hpbench overhead`: what the engine adds to an operation. May touch the variant `none` and
//! the crew.
//!
//! The same reads of the same cell, by one bound thread: once as `read` makes them (batch by batch, with a look at the
//! phase and a count left for the windows after each), once as one bare loop of as many. Both take turns; of each the
//! quickest turn counts, since whatever else happens on the machine only adds.

use crate::cli::Options;
use crate::command::say;
use crate::engine::crew::{self, Rate, Refusal, Worker};
use crate::engine::job::Job;
use crate::engine::sysroot::Root;
use crate::engine::{pin, places};
use crate::points::Points;
use crate::schemes::{self, Object, Scheme, Visit};
use crate::trouble::Trouble;
use crate::workloads::{Ask, Workload, read};
use std::time::{Duration, Instant};

/// Turns of each.
const TURNS: usize = 100;

/// Length of a turn: short, so that one of them is left alone on a busy machine, too.
const TURN: Duration = Duration::from_millis(10);

/// What was measured, in ns per operation.
#[derive(Debug, Clone, Copy)]
struct Both {
    engine: f64,
    bare: f64,
}

struct Measure(Job);

impl Visit for Measure {
    type Out = Result<Both, Refusal>;

    fn visit<S: Scheme>(self) -> Self::Out {
        let cell = S::new(Object::new(0, None));
        let mut best = Both {
            engine: f64::INFINITY,
            bare: f64::INFINITY,
        };
        for _ in 0..TURNS {
            let worker: Worker<'_> = read::reader(&cell);
            let (tallies, _) = crew::run(&self.0, vec![worker], || ())?;
            let rate = Rate::of(&tallies).expect("there is one reader");
            let engine = rate.elapsed_s * 1e9 / rate.ops.max(1) as f64;
            let bare = bare(&cell, rate.ops, &self.0)?;
            best = Both {
                engine: best.engine.min(engine),
                bare: best.bare.min(bare),
            };
        }
        Ok(best)
    }
}

/// `count` reads in a row, in a thread where the engine would put it.
fn bare<S: Scheme>(cell: &S, count: u64, job: &Job) -> Result<f64, Refusal> {
    let place = pin::order(job.pin, &places::here()).into_iter().next();
    std::thread::scope(|scope| {
        let thread = scope.spawn(move || {
            if let Some(cpus) = &place {
                pin::bind_all(cpus)?;
            }
            let mut reader = cell.reader();
            // Warm, as the other one.
            let mut dead = cell.read_batch(&mut reader, count / 10);
            let start = Instant::now();
            dead += cell.read_batch(&mut reader, count);
            let time = start.elapsed();
            assert_eq!(std::hint::black_box(dead), 0, "nobody writes");
            Ok(time.as_nanos() as f64 / count.max(1) as f64)
        });
        thread
            .join()
            .expect("a reader panicked")
            .map_err(Refusal::Environment)
    })
}

/// The subcommand.
pub(crate) fn command(options: &Options) -> Result<(), Trouble> {
    options.without_runs("overhead")?;
    Root::here().measurable()?;
    let ask = Ask {
        threads: Some(vec![1]),
        ..Ask::default()
    };
    let mut jobs = Points::of(Workload::Read, &ask, options).jobs;
    let job = Job {
        time: TURN,
        warmup: TURN / 10,
        ..jobs.remove(0)
    };
    let both = schemes::dispatch("none", Measure(job)).expect("none is registered");
    let both = both.map_err(|refusal| match refusal {
        Refusal::Environment(why) | Refusal::Skipped(why, _) => Trouble::Environment(why),
    })?;
    let build = if cfg!(debug_assertions) {
        " (debug build: not for claims)"
    } else {
        ""
    };
    say(&format!(
        "read none, 1 thread, best of {TURNS} turns of {} ms{build}\n  with the engine  {:.4} ns/op\n  bare loop        {:.4} ns/op\n  engine adds      {:.4} ns/op\n",
        TURN.as_millis(),
        both.engine,
        both.bare,
        both.engine - both.bare
    ))
}
