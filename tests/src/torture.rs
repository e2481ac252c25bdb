//! The pipe-age torture: no reader may ever see an element that is older than
//! the one being replaced.
//!
//! Floor 4. Elements come from a pool that is never freed, so that a failure
//! is a number in a histogram and not a crash.
//!
//! # Ages
//!
//! | age | meaning | who sets it |
//! |---|---|---|
//! | 0 | published | the writer, before publishing |
//! | 1 | unlinked, readers may still have it | the writer, after unlinking |
//! | 2 and more | nobody may have it | the writer or a deleter, after waiting; one more with each cycle, until it is used again |
//!
//! A reader looks at the age while it protects the element. Only 0 and 1 are
//! allowed. Each element also has a stamp that is set before it is published
//! and cleared when it is recycled (a reader that finds 0 has read an element
//! before its publication, or after its end).
//!
//! # What varies
//!
//! Guards of the safe level, held slots of the structure level, nested guards,
//! clones, detached guards, guards that another thread drops, readers that
//! sleep inside a protection, threads that come and go, threads that are moved
//! from CPU to CPU; waiting for an address against retiring to a domain.

use crate::dice::Dice;
use crate::machine::{allowed_cpus, gettid, set_affinity};
use hp::{Atomic, Domain, Guard, HazardPointer};
use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// Ages that the histogram tells apart; older ones count as the last.
pub const AGES: usize = 8;

/// Cycles after which a removed element is used again.
const PIPE: usize = 6;

const POOL: usize = 1200;

/// What to run.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Reader threads that run all the time.
    pub readers: usize,
    /// How long. The negative control ends as soon as it has its proof.
    pub time: Duration,
    /// Start of all pseudo-random choices.
    pub seed: u64,
    /// Short-lived readers beside the others.
    pub churn: bool,
    /// Moves readers between CPUs.
    pub shuffle: bool,
    /// `false`: the writer does not wait. Then the histogram must show it.
    pub wait: bool,
}

/// What was seen.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Looks at elements, by age.
    pub pipe: [usize; AGES],
    /// Elements whose stamp was missing.
    pub unstamped: usize,
    /// Elements that were replaced.
    pub replaced: usize,
    /// Elements that were used again.
    pub recycled: usize,
    /// Guards that another thread dropped.
    pub deferred: usize,
    /// Short-lived readers.
    pub churned: usize,
    /// Changes of a reader's CPUs.
    pub moved: usize,
}

impl Report {
    /// Looks at elements that nobody should have had.
    #[must_use]
    pub fn too_old(&self) -> usize {
        self.pipe[2..].iter().sum()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pipe: Vec<_> = self.pipe.iter().map(ToString::to_string).collect();
        write!(
            f,
            "pipe={} too_old={} unstamped={} reads={} replaced={} recycled={} deferred={} churned={} moved={}",
            pipe.join(","),
            self.too_old(),
            self.unstamped,
            self.pipe.iter().sum::<usize>(),
            self.replaced,
            self.recycled,
            self.deferred,
            self.churned,
            self.moved
        )
    }
}

struct Element {
    age: AtomicUsize,
    stamp: AtomicUsize,
}

/// What the safe level's cell owns: a loan of an element. The box is freed by
/// hp, the element never.
struct Loan {
    element: &'static Element,
    home: &'static Removed,
}

impl Drop for Loan {
    fn drop(&mut self) {
        self.home.put(self.element);
    }
}

/// Elements that nobody may have any more.
#[derive(Default)]
struct Removed(Mutex<Vec<&'static Element>>);

impl Removed {
    fn put(&self, element: &'static Element) {
        element.age.store(2, Ordering::Relaxed);
        element.stamp.store(0, Ordering::Relaxed);
        self.0.lock().expect("not poisoned").push(element);
    }
}

struct World {
    cell: Atomic<Loan>,
    raw: AtomicPtr<Element>,
    removed: &'static Removed,
    pipe: [AtomicUsize; AGES],
    unstamped: AtomicUsize,
    deferred: AtomicUsize,
    churned: AtomicUsize,
    moved: AtomicUsize,
    stop: AtomicBool,
}

/// One reader's counts, added to the world's at the end.
#[derive(Default)]
struct Tally {
    pipe: [usize; AGES],
    unstamped: usize,
}

impl Tally {
    fn look(&mut self, element: &Element) {
        if element.stamp.load(Ordering::Relaxed) == 0 {
            self.unstamped += 1;
        }
        let age = element.age.load(Ordering::Relaxed);
        self.pipe[age.min(AGES - 1)] += 1;
    }

    fn add_to(&self, world: &World) {
        for (total, mine) in world.pipe.iter().zip(self.pipe) {
            total.fetch_add(mine, Ordering::Relaxed);
        }
        world.unstamped.fetch_add(self.unstamped, Ordering::Relaxed);
    }
}

type Parcel = Guard<Loan>;

/// Reads in all ways until `rounds` are done or the world stops.
fn read(world: &World, seed: u64, rounds: usize, elsewhere: &mpsc::SyncSender<Parcel>) {
    let mut dice = Dice::new(seed);
    let mut tally = Tally::default();
    let mut hazard = HazardPointer::new();
    let mut nest = Vec::with_capacity(12);
    for _ in 0..rounds {
        if world.stop.load(Ordering::Relaxed) {
            break;
        }
        let rest = match dice.roll(4000) {
            0 => Duration::from_millis(2),
            1..5 => Duration::from_micros(200),
            _ => Duration::ZERO,
        };
        if dice.roll(3) == 0 {
            let element = hazard.protect(&world.raw);
            // SAFETY: elements are never freed (what is checked is the age).
            if let Some(element) = unsafe { element.as_ref() } {
                tally.look(element);
                dwell(&mut dice, rest);
                tally.look(element);
            }
            if dice.roll(2) == 0 {
                hazard.reset();
            }
            continue;
        }
        let Some(mut guard) = world.cell.load() else {
            continue;
        };
        tally.look(guard.element);
        match dice.roll(16) {
            0 => {
                guard.detach();
                dwell(&mut dice, rest);
                tally.look(guard.element);
            }
            1 => {
                let clone = guard.clone();
                drop(guard);
                dwell(&mut dice, rest);
                tally.look(clone.element);
            }
            2 => {
                guard.detach();
                let clone = guard.clone();
                tally.look(guard.element);
                drop(clone);
                dwell(&mut dice, rest);
                tally.look(guard.element);
            }
            3 => {
                for _ in 0..=dice.roll(11) {
                    nest.extend(world.cell.load());
                }
                dwell(&mut dice, rest);
                for inner in &nest {
                    tally.look(inner.element);
                }
                nest.clear();
                tally.look(guard.element);
            }
            4 => {
                // Full: the reader drops it itself.
                let _ = elsewhere.try_send(guard);
            }
            5 => {
                let part = guard.map(|loan| loan.element);
                dwell(&mut dice, rest);
                tally.look(&part);
            }
            _ => {
                dwell(&mut dice, rest);
                tally.look(guard.element);
            }
        }
    }
    tally.add_to(world);
}

fn dwell(dice: &mut Dice, rest: Duration) {
    if rest.is_zero() {
        for _ in 0..dice.roll(20) {
            std::hint::spin_loop();
        }
    } else {
        thread::sleep(rest);
    }
}

/// Drops guards that others made.
fn release_for_others(world: &World, guards: &mpsc::Receiver<Parcel>) {
    let mut tally = Tally::default();
    let mut late: VecDeque<Parcel> = VecDeque::new();
    for guard in guards {
        tally.look(guard.element);
        world.deferred.fetch_add(1, Ordering::Relaxed);
        late.push_back(guard);
        if late.len() > 3
            && let Some(oldest) = late.pop_front()
        {
            tally.look(oldest.element);
        }
    }
    tally.add_to(world);
}

/// The writer's pool and pipe.
struct Supply {
    fresh: Vec<&'static Element>,
    pipe: VecDeque<&'static Element>,
    recycled: usize,
    stamp: usize,
}

impl Supply {
    /// An element that is ready to be published. Waits, by draining, if the
    /// readers still have all of them.
    fn take(&mut self, removed: &Removed, domain: &Domain) -> &'static Element {
        loop {
            self.pipe
                .append(&mut removed.0.lock().expect("not poisoned").drain(..).collect());
            for element in &self.pipe {
                element.age.fetch_add(1, Ordering::Relaxed);
            }
            while let Some(element) = self.pipe.front()
                && element.age.load(Ordering::Relaxed) > PIPE
            {
                self.fresh.extend(self.pipe.pop_front());
                self.recycled += 1;
            }
            if let Some(element) = self.fresh.pop() {
                self.stamp += 1;
                element.age.store(0, Ordering::Relaxed);
                element.stamp.store(self.stamp, Ordering::Relaxed);
                return element;
            }
            domain.drain();
            Domain::global().drain();
        }
    }
}

/// Leaks `it`, in sight of leak checkers.
fn keep<T: ?Sized>(it: Box<T>) -> &'static T {
    static KEPT: std::sync::Mutex<Vec<usize>> = std::sync::Mutex::new(Vec::new());
    let it: &'static T = Box::leak(it);
    let address = std::ptr::from_ref(it).cast::<()>().expose_provenance();
    KEPT.lock().unwrap_or_else(|e| e.into_inner()).push(address);
    it
}

/// Replaces the published elements over and over, in four ways.
fn write(world: &World, plan: &Plan, domain: &Domain) -> (usize, usize) {
    unsafe fn remove(element: *mut (), home: *mut ()) {
        // SAFETY: both are leaked; see `run`.
        unsafe { (*home.cast::<Removed>()).put(&*element.cast()) };
    }
    let pool: &'static [Element] = keep(
        (0..POOL)
            .map(|_| Element {
                age: AtomicUsize::new(PIPE),
                stamp: AtomicUsize::new(0),
            })
            .collect(),
    );
    let mut supply = Supply {
        fresh: pool.iter().collect(),
        pipe: VecDeque::new(),
        recycled: 0,
        stamp: 0,
    };
    let start = Instant::now();
    let mut cycle = 0;
    loop {
        cycle += 1;
        if cycle % 16 == 0 {
            let late = start.elapsed() >= plan.time;
            // What was seen so far is added at a reader's end only, so the
            // negative control runs its time; see its own loop in `run`.
            if late || world.stop.load(Ordering::Relaxed) {
                break;
            }
        }
        let element = supply.take(world.removed, domain);
        if cycle % 2 == 0 {
            let old = world.cell.swap(Loan {
                element,
                home: world.removed,
            });
            let Some(old) = old else { continue };
            old.element.age.store(1, Ordering::Relaxed);
            if cycle % 4 == 0 {
                drop(old.into_box());
            } else if cycle % 8 == 2 {
                old.retire_in(domain);
            }
        } else {
            let element = std::ptr::from_ref(element).cast_mut();
            let old = world.raw.swap(element, Ordering::AcqRel);
            // SAFETY: from the leaked pool.
            let Some(gone) = (unsafe { old.as_ref() }) else {
                continue;
            };
            gone.age.store(1, Ordering::Relaxed);
            if !plan.wait {
                world.removed.put(gone);
            } else if cycle % 4 == 1 {
                hp::synchronize(old.cast_const().cast());
                world.removed.put(gone);
            } else {
                let home = std::ptr::from_ref(world.removed).cast_mut().cast();
                // SAFETY: unlinked above; element and home are leaked.
                unsafe { domain.retire_with(old.cast(), home, remove) };
            }
        }
        if cycle % 128 == 0 {
            domain.drain();
            Domain::global().drain();
        }
    }
    (cycle, supply.recycled)
}

/// Runs a plan.
///
/// # Panics
///
/// If a thread does.
#[must_use]
pub fn run(plan: Plan) -> Report {
    let world = World {
        cell: Atomic::null(),
        raw: AtomicPtr::new(std::ptr::null_mut()),
        removed: keep(Box::default()),
        pipe: Default::default(),
        unstamped: AtomicUsize::new(0),
        deferred: AtomicUsize::new(0),
        churned: AtomicUsize::new(0),
        moved: AtomicUsize::new(0),
        stop: AtomicBool::new(false),
    };
    let domain = Domain::new();
    let tids: Vec<AtomicI32> = (0..plan.readers).map(|_| AtomicI32::new(0)).collect();
    let (send, receive) = mpsc::sync_channel(64);
    let (replaced, recycled) = thread::scope(|scope| {
        let (world, tids, domain) = (&world, &tids, &domain);
        scope.spawn(move || release_for_others(world, &receive));
        for (n, tid) in tids.iter().enumerate() {
            let send = send.clone();
            scope.spawn(move || {
                tid.store(gettid(), Ordering::Relaxed);
                read(world, plan.seed + n as u64, usize::MAX, &send);
            });
        }
        if plan.churn {
            let send = send.clone();
            scope.spawn(move || {
                let mut dice = Dice::new(plan.seed ^ 0xC4);
                while !world.stop.load(Ordering::Relaxed) {
                    let seed = dice.roll(u64::MAX);
                    let send = send.clone();
                    let short = scope.spawn(move || read(world, seed, 50, &send));
                    short.join().expect("a short life");
                    world.churned.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        if plan.shuffle {
            scope.spawn(move || {
                let cpus = allowed_cpus();
                let mut dice = Dice::new(plan.seed ^ 0x5F);
                while !world.stop.load(Ordering::Relaxed) {
                    let who = dice.roll(tids.len() as u64) as usize;
                    let tid = tids[who].load(Ordering::Relaxed);
                    let cpu = cpus[dice.roll(cpus.len() as u64) as usize];
                    if tid != 0 && set_affinity(tid, &[cpu]).is_ok() {
                        world.moved.fetch_add(1, Ordering::Relaxed);
                    }
                    thread::sleep(Duration::from_millis(1));
                }
            });
        }
        drop(send);
        let counts = write(world, &plan, domain);
        world.stop.store(true, Ordering::Relaxed);
        counts
    });
    drop(world.cell.take());
    domain.drain();
    Domain::global().drain();
    Report {
        pipe: world.pipe.map(AtomicUsize::into_inner),
        unstamped: world.unstamped.into_inner(),
        replaced,
        recycled,
        deferred: world.deferred.into_inner(),
        churned: world.churned.into_inner(),
        moved: world.moved.into_inner(),
    }
}
