//! One run: starts the threads, watches them, and adds up.
//!
//! Floor 3. Threads are not scoped: one that hangs is left behind.

use crate::crew;
use crate::failure::{Failure, Seen, Sign};
use crate::flavours::Flavour;
use crate::handler;
use crate::plan::{Dimension, Plan};
use crate::report::{Progress, Report};
use crate::world::{Context, World, keep};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How often the threads are looked at.
const LOOK: Duration = Duration::from_millis(100);

/// How long threads may take to end once they are asked to.
const FAREWELL: Duration = Duration::from_secs(20);

/// Threads that are running, with what they have to show for it.
struct Crew {
    threads: Vec<JoinHandle<()>>,
    watched: Vec<(Arc<Context>, u64, Instant)>,
}

impl Crew {
    fn start(&mut self, name: &str, body: impl FnOnce() + Send + 'static) {
        let thread = thread::Builder::new()
            .name(name.to_owned())
            .spawn(body)
            .unwrap_or_else(|error| panic!("cannot start {name}: {error}"));
        self.threads.push(thread);
    }

    /// One that does nothing for too long.
    fn idle(&mut self, longest: Duration) -> Option<Arc<Context>> {
        for (context, steps, since) in &mut self.watched {
            let now = context.steps.load(Ordering::Relaxed);
            if now != *steps {
                (*steps, *since) = (now, Instant::now());
            } else if since.elapsed() > longest {
                return Some(Arc::clone(context));
            }
        }
        None
    }

    /// Waits for their end. `false` if some do not.
    fn join(self, limit: Duration) -> bool {
        let start = Instant::now();
        while !self.threads.iter().all(JoinHandle::is_finished) {
            if start.elapsed() > limit {
                return false;
            }
            thread::sleep(Duration::from_millis(1));
        }
        // A panic is the program's fault and has been told.
        self.threads.into_iter().all(|thread| thread.join().is_ok())
    }
}

/// Runs `plan` for `F`; see [`About::run`](crate::About::run).
pub(crate) fn run<F: Flavour>(
    name: &'static str,
    plan: Plan,
    stop: &dyn Fn() -> bool,
    tell: &mut dyn FnMut(Progress),
) -> Report {
    let without: BTreeMap<_, _> = F::WITHOUT
        .iter()
        .filter(|(dimension, _)| plan.has(*dimension))
        .map(|(dimension, why)| (dimension.name(), *why))
        .collect();
    let world = World::new(plan);
    let flavour: &'static F = keep(Box::new(F::new(world)));
    let plan = &world.plan;
    let readers = plan.readers();
    let writers = plan.writers.max(1);
    let mut crew = Crew {
        threads: Vec::new(),
        watched: Vec::new(),
    };
    handler::install();
    let hands = plan.has(Dimension::Handover) && !without.contains_key("handover");
    let (send, receive) = mpsc::sync_channel(64);
    let send = hands.then_some(send);
    let mut reading = Vec::new();
    for n in 0..readers {
        let me = world.context(format!("reader {n}"));
        reading.push(Arc::clone(&me));
        crew.watched.push((Arc::clone(&me), 0, Instant::now()));
        let (send, seed) = (send.clone(), plan.seed.wrapping_add(n as u64));
        crew.start("reader", move || {
            crew::reader(flavour, world, &me, seed, send.as_ref());
        });
    }
    let mut moving = reading.clone();
    for n in 0..writers {
        let me = world.context(format!("writer {n}"));
        moving.push(Arc::clone(&me));
        crew.watched.push((Arc::clone(&me), 0, Instant::now()));
        let seed = plan.seed ^ (0x3A00 + n as u64);
        crew.start("writer", move || crew::writer(flavour, world, &me, seed));
    }
    if hands {
        let me = world.context("releaser".to_owned());
        crew.start("releaser", move || crew::release(world, &me, &receive));
    }
    if plan.has(Dimension::Churn) {
        let me = world.context("reader that comes and goes".to_owned());
        let (send, seed) = (send.clone(), plan.seed ^ 0xC4);
        crew.start("churn", move || {
            crew::churn(flavour, world, &me, seed, send.as_ref());
        });
    }
    drop(send);
    if plan.has(Dimension::Affinity) {
        crew.start("affinity", move || crew::shuffle(world, &moving));
    }
    if plan.has(Dimension::Signal) {
        crew.start("signals", move || crew::interrupt(world, &reading));
    }
    if plan.has(Dimension::Stutter) {
        crew.start("stutter", move || crew::stutter(world));
    }
    let interrupted = watch(world, &mut crew, stop, tell);
    world.end();
    let seconds = world.start.elapsed().as_secs_f64();
    // A thread that hangs never ends; the others have time to.
    let hung = || {
        world
            .first
            .get()
            .is_some_and(|seen| seen.sign == Sign::Hung)
    };
    let ended = if hung() {
        crew.join(Duration::from_secs(1))
    } else {
        let ended = crew.join(FAREWELL);
        if !ended {
            world.fail(usize::MAX, Sign::Hung, None, 0, 0);
        }
        ended
    };
    if ended && !hung() {
        finish(flavour, world);
    }
    add_up::<F>(name, flavour, world, without, seconds, interrupted)
}

/// Until the time is over, something is wrong, or somebody wants it to end
/// (`true`).
fn watch(
    world: &'static World,
    crew: &mut Crew,
    stop: &dyn Fn() -> bool,
    tell: &mut dyn FnMut(Progress),
) -> bool {
    let mut told = Instant::now();
    while world.running() {
        let elapsed = world.start.elapsed();
        let Some(left) = world
            .plan
            .time
            .checked_sub(elapsed)
            .filter(|l| !l.is_zero())
        else {
            return false;
        };
        if stop() {
            return true;
        }
        if let Some(idle) = crew.idle(world.plan.watchdog) {
            world.fail(idle.number, Sign::Hung, None, 0, 0);
            return false;
        }
        if told.elapsed() >= Duration::from_secs(1) {
            told = Instant::now();
            tell(Progress {
                elapsed,
                reads: sum(&world.counts.reads),
                updates: sum(&world.counts.updates),
                waiting: world.waiting(),
            });
        }
        thread::sleep(LOOK.min(left));
    }
    false
}

/// Everything that was unlinked is reclaimed, or was lost.
fn finish<F: Flavour>(flavour: &F, world: &World) {
    flavour.finish();
    let start = Instant::now();
    while world.waiting() > 0 && start.elapsed() < Duration::from_secs(5) {
        flavour.flush();
        thread::sleep(Duration::from_millis(1));
    }
    if world.waiting() > 0 {
        world.fail(usize::MAX, Sign::Lost, None, 0, 0);
    }
}

fn sum(counts: &[AtomicU64]) -> u64 {
    counts
        .iter()
        .map(|count| count.load(Ordering::Relaxed))
        .sum()
}

fn by_name(names: &[&'static str], counts: &[AtomicU64]) -> BTreeMap<&'static str, u64> {
    let count = |n: usize| counts[n].load(Ordering::Relaxed);
    (0..names.len()).map(|n| (names[n], count(n))).collect()
}

fn failure(world: &World, seen: Seen) -> Failure {
    let context = world.context_of(seen.context);
    let of = |number: usize| seen.element.map(|_| number as u64);
    Failure {
        sign: seen.sign,
        thread: context
            .as_ref()
            .map_or_else(|| "none".to_owned(), |context| context.name.clone()),
        cpu: seen.cpu as u64,
        after_ms: seen.micros as f64 / 1e3,
        element: seen.element.map(|element| element as u64),
        age: of(seen.age),
        stamp: of(seen.stamp),
        stamp_now: of(seen.stamp_now),
        steps: context.map_or_else(Vec::new, |context| context.steps()),
    }
}

fn add_up<F: Flavour>(
    name: &'static str,
    flavour: &F,
    world: &World,
    not_applicable: BTreeMap<&'static str, &'static str>,
    seconds: f64,
    interrupted: bool,
) -> Report {
    let counts = &world.counts;
    let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
    let here = percpu::capabilities();
    Report {
        scheme: name,
        rung: here.rung.to_string(),
        index: here.index.to_string(),
        seed: world.plan.seed,
        seconds,
        readers: world.plan.readers(),
        writers: world.plan.writers.max(1),
        dimensions: world.plan.dimensions.clone(),
        not_applicable,
        ages: world.ages(),
        reads: by_name(F::READS, &counts.reads),
        updates: by_name(F::UPDATES, &counts.updates),
        sleeps: count(&counts.sleeps),
        handed_over: count(&counts.handed_over),
        in_handler: count(&counts.in_handler),
        starved: count(&counts.starved),
        churned: count(&counts.churned),
        moved: count(&counts.moved),
        stutters: count(&counts.stutters),
        unlinked: count(&counts.unlinked),
        reclaimed: count(&counts.reclaimed),
        recycled: count(&counts.recycled),
        peak_waiting: count(&counts.peak),
        facts: flavour.facts().into_iter().collect(),
        interrupted,
        failure: world.first.get().map(|seen| failure(world, seen)),
    }
}
