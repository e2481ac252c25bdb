//! The pipe-age torture of Linux' `rcutorture`, for the flavours of
//! `rcu-lite`.
//!
//! One writer publishes an element of a pool, takes the old one out and ages
//! it by one step at each grace period. So a reader may see age 0 (published)
//! and age 1 (taken out, its grace period under way) and nothing else: 2 means
//! that a grace period ended with a reader inside that began before it. After
//! ten steps an element is used again.
//!
//! Around it: updaters that use grace periods in every way without checking
//! anything, readers that sleep inside, nest, hand their guard to another
//! thread ([`Rcu`]), announce or go offline ([`QsbrRcu`]); threads that come
//! and go, threads that are moved from CPU to CPU; pauses of everybody at once,
//! so that everything starts at the same time again and again.
//!
//! Beside the elements, which are never freed, there are boxes whose memory is
//! poisoned and freed by deferred drops.

use crate::dice::Dice;
use crate::machine::{allowed_cpus, gettid, set_affinity};
use rcu_lite::qsbr::Online;
use rcu_lite::{Flavor, Guard, QsbrRcu, Rcu, RcuCell, ThreadRcu};
use std::collections::VecDeque;
use std::fmt;
use std::ptr;
use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicPtr, AtomicU64, AtomicUsize, Ordering, fence,
};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

/// Ages that the histogram tells apart, as in `rcutorture`.
pub const AGES: usize = 11;

/// Steps after which an element is used again.
const PIPE: usize = 10;

const POOL: usize = 200;

/// A flavour, and what its readers can do beyond the others'.
pub trait Tortured: Flavor + Clone {
    /// What a reader thread keeps between sections.
    type Thread;

    /// Its name in the summary.
    fn name(&self) -> &'static str;

    /// Called by each reader thread.
    fn begin(&self) -> Self::Thread;

    /// Runs `f` in one or several sections of a kind of `dice`'s choice, and
    /// holds none afterwards.
    fn inside(&self, thread: &mut Self::Thread, dice: &mut Dice, f: &mut dyn FnMut(&mut Dice));

    /// Runs `f`, which blocks, between sections.
    fn outside(&self, thread: &mut Self::Thread, f: &mut dyn FnMut());

    /// A guard that may be sent.
    fn parcel(&self) -> Option<Guard<'static>>;
}

impl Tortured for &'static Rcu {
    type Thread = ();

    fn name(&self) -> &'static str {
        "rcu"
    }

    fn begin(&self) {}

    fn inside(&self, _: &mut (), dice: &mut Dice, f: &mut dyn FnMut(&mut Dice)) {
        let guard = self.read();
        if dice.roll(4) == 0 {
            let clone = guard.clone();
            drop(guard);
            f(dice);
            drop(clone);
        } else {
            f(dice);
        }
    }

    fn outside(&self, _: &mut (), f: &mut dyn FnMut()) {
        f();
    }

    fn parcel(&self) -> Option<Guard<'static>> {
        Some(Rcu::read(self))
    }
}

impl Tortured for ThreadRcu {
    type Thread = ();

    fn name(&self) -> &'static str {
        "thread"
    }

    fn begin(&self) {}

    fn inside(&self, _: &mut (), dice: &mut Dice, f: &mut dyn FnMut(&mut Dice)) {
        let nest: Vec<_> = (0..=dice.roll(4)).map(|_| self.read()).collect();
        f(dice);
        drop(nest);
    }

    fn outside(&self, _: &mut (), f: &mut dyn FnMut()) {
        f();
    }

    fn parcel(&self) -> Option<Guard<'static>> {
        None
    }
}

impl Tortured for QsbrRcu {
    type Thread = Option<Online>;

    fn name(&self) -> &'static str {
        "qsbr"
    }

    fn begin(&self) -> Option<Online> {
        Some(self.online())
    }

    fn inside(&self, thread: &mut Option<Online>, dice: &mut Dice, f: &mut dyn FnMut(&mut Dice)) {
        match dice.roll(8) {
            // Without a handle, and a new one.
            0 => {
                *thread = None;
                let guard = QsbrRcu.read();
                f(dice);
                drop(guard);
            }
            // With a second reason to be online.
            1 => {
                let second = QsbrRcu.read();
                f(dice);
                drop(second);
            }
            _ => {
                let online = thread.get_or_insert_with(|| QsbrRcu.online());
                let guard = online.read();
                f(dice);
                drop(guard);
            }
        }
        if let Some(online) = thread {
            online.quiescent_state();
        }
    }

    fn outside(&self, thread: &mut Option<Online>, f: &mut dyn FnMut()) {
        match thread {
            Some(online) => online.offline(f),
            None => f(),
        }
    }

    fn parcel(&self) -> Option<Guard<'static>> {
        None
    }
}

/// What to run.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Reader threads that run all the time.
    pub readers: usize,
    /// Updaters that check nothing.
    pub fakes: usize,
    /// How long.
    pub time: Duration,
    /// Start of all pseudo-random choices.
    pub seed: u64,
    /// Short-lived readers beside the others.
    pub churn: bool,
    /// Moves readers between CPUs.
    pub shuffle: bool,
    /// Pauses of everybody.
    pub stutter: bool,
    /// How the writer is broken: the histogram must show it.
    pub broken: Broken,
}

/// Ways to get grace periods wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// Not at all.
    No,
    /// The writer waits for no grace period.
    NoWait,
    /// The writer uses the cookie of a grace period that began before it took
    /// the element out.
    EarlyCookie,
}

/// What was seen.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Looks at elements, by age.
    pub pipe: [usize; AGES],
    /// Elements that a reader saw while they were not ready to be published.
    pub mberrors: usize,
    /// Boxes that a reader saw dead.
    pub poisoned: usize,
    /// Elements that were replaced, by synchronize, call, poll, a cookie that
    /// is waited for, a timeout.
    pub updates: [usize; 5],
    /// Elements that were used again.
    pub recycled: usize,
    /// Boxes that were replaced.
    pub boxes: usize,
    /// Boxes that were freed.
    pub freed: usize,
    /// What the updaters did that check nothing.
    pub fakes: usize,
    /// Callbacks of those that are missing.
    pub lost_calls: usize,
    /// Guards that another thread dropped.
    pub handed: usize,
    /// Short-lived readers.
    pub churned: usize,
    /// Changes of a reader's CPUs.
    pub moved: usize,
    /// Pauses.
    pub stutters: usize,
    /// Grace periods.
    pub grace_periods: u64,
    /// Callbacks that wait although a barrier has returned.
    pub pending: u64,
}

impl Report {
    /// Looks at elements that nobody should have had.
    #[must_use]
    pub fn too_old(&self) -> usize {
        self.pipe[2..].iter().sum()
    }

    /// Whether nothing was wrong.
    #[must_use]
    pub fn good(&self) -> bool {
        self.too_old() == 0
            && self.mberrors == 0
            && self.poisoned == 0
            && self.lost_calls == 0
            && self.pending == 0
            && self.boxes == self.freed
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |of: &[usize]| {
            let of: Vec<_> = of.iter().map(ToString::to_string).collect();
            of.join(",")
        };
        write!(
            f,
            "pipe={} too_old={} mberrors={} poisoned={} reads={} updates={} recycled={} \
             boxes={} freed={} fakes={} lost_calls={} handed={} churned={} moved={} \
             stutters={} grace_periods={} pending={}",
            list(&self.pipe),
            self.too_old(),
            self.mberrors,
            self.poisoned,
            self.pipe.iter().sum::<usize>(),
            list(&self.updates),
            self.recycled,
            self.boxes,
            self.freed,
            self.fakes,
            self.lost_calls,
            self.handed,
            self.churned,
            self.moved,
            self.stutters,
            self.grace_periods,
            self.pending
        )
    }
}

struct Element {
    age: AtomicUsize,
    /// 1 while it may be seen. (Named as in `rcutorture`: a reader that does
    /// not see 1 did not see what was stored before the publication, or reads
    /// an element that is being used again.)
    mbtest: AtomicUsize,
}

const ALIVE: u64 = 0x600D_600D_600D_600D;
const DEAD: u64 = 0xDEAD_DEAD_DEAD_DEAD;

/// A box with a pattern, poisoned before it is freed.
struct Boxed {
    words: [AtomicU64; 6],
    freed: &'static AtomicUsize,
}

impl Boxed {
    fn new(freed: &'static AtomicUsize) -> Self {
        Self {
            words: [const { AtomicU64::new(ALIVE) }; 6],
            freed,
        }
    }

    fn alive(&self) -> bool {
        self.words
            .iter()
            .all(|word| word.load(Ordering::Relaxed) == ALIVE)
    }
}

impl Drop for Boxed {
    fn drop(&mut self) {
        for word in &self.words {
            // Stays in the freed memory.
            word.store(DEAD, Ordering::Relaxed);
        }
        self.freed.fetch_add(1, Ordering::Relaxed);
    }
}

#[derive(Default)]
struct Counts {
    pipe: [AtomicUsize; AGES],
    mberrors: AtomicUsize,
    poisoned: AtomicUsize,
    boxes: AtomicUsize,
    freed: AtomicUsize,
    fakes: AtomicUsize,
    called: AtomicUsize,
    answered: AtomicUsize,
    handed: AtomicUsize,
    churned: AtomicUsize,
    moved: AtomicUsize,
    stutters: AtomicUsize,
    recycled: AtomicUsize,
    free: Mutex<Vec<&'static Element>>,
}

impl Counts {
    fn free(&self) -> std::sync::MutexGuard<'_, Vec<&'static Element>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One step; `true` if the element has come to the end of the pipe.
    fn age(&self, element: &'static Element) -> bool {
        let age = element.age.load(Ordering::Relaxed) + 1;
        element.age.store(age, Ordering::Relaxed);
        if age <= PIPE {
            return false;
        }
        element.mbtest.store(0, Ordering::Relaxed);
        self.recycled.fetch_add(1, Ordering::Relaxed);
        self.free().push(element);
        true
    }
}

struct World<F: Tortured> {
    flavor: F,
    published: AtomicPtr<Element>,
    boxed: RcuCell<Boxed, F>,
    counts: &'static Counts,
    stop: AtomicBool,
    pause: AtomicBool,
}

impl<F: Tortured> World<F> {
    fn running(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }

    fn paused(&self) -> bool {
        self.pause.load(Ordering::Relaxed) && self.running()
    }

    /// Waits for the end of a pause. Called outside of sections.
    fn stutter(&self) {
        while self.paused() {
            thread::sleep(Duration::from_micros(200));
        }
    }
}

/// One reader's counts, added to the world's at the end.
#[derive(Default)]
struct Tally {
    pipe: [usize; AGES],
    mberrors: usize,
    poisoned: usize,
}

impl Tally {
    fn look(&mut self, element: &Element) {
        self.mberrors += usize::from(element.mbtest.load(Ordering::Relaxed) != 1);
        let age = element.age.load(Ordering::Relaxed);
        self.pipe[age.min(AGES - 1)] += 1;
    }

    fn add_to(&self, counts: &Counts) {
        for (total, mine) in counts.pipe.iter().zip(self.pipe) {
            total.fetch_add(mine, Ordering::Relaxed);
        }
        counts.mberrors.fetch_add(self.mberrors, Ordering::Relaxed);
        counts.poisoned.fetch_add(self.poisoned, Ordering::Relaxed);
    }
}

/// A section that another thread ends, and what it protects.
struct Parcel {
    guard: Guard<'static>,
    element: &'static Element,
}

fn dwell(dice: &mut Dice) {
    match dice.roll(3000) {
        0 => thread::sleep(Duration::from_millis(3)),
        1..6 => thread::sleep(Duration::from_micros(200)),
        6..20 => thread::yield_now(),
        n => (0..n % 32).for_each(|_| std::hint::spin_loop()),
    }
}

/// Reads in all ways until `rounds` are done or the world stops.
fn read<F: Tortured>(
    world: &World<F>,
    seed: u64,
    rounds: usize,
    elsewhere: &mpsc::SyncSender<Parcel>,
) {
    let mut dice = Dice::new(seed);
    let mut tally = Tally::default();
    let mut mine = world.flavor.begin();
    for _ in 0..rounds {
        if !world.running() {
            break;
        }
        if world.paused() {
            world.flavor.outside(&mut mine, &mut || world.stutter());
        }
        if dice.roll(16) == 0
            && let Some(guard) = world.flavor.parcel()
        {
            // SAFETY: elements are never freed (what is checked is the age).
            if let Some(element) = unsafe { world.published.load(Ordering::Acquire).as_ref() } {
                tally.look(element);
                // Full: the reader drops it itself.
                let _ = elsewhere.try_send(Parcel { guard, element });
            }
            continue;
        }
        world.flavor.inside(&mut mine, &mut dice, &mut |dice| {
            // SAFETY: as above.
            let element = unsafe { world.published.load(Ordering::Acquire).as_ref() };
            if let Some(element) = element {
                tally.look(element);
                dwell(dice);
                tally.look(element);
            }
            let guard = world.flavor.read();
            let boxed = world.boxed.load(&guard);
            tally.poisoned += usize::from(!boxed.alive());
            if dice.roll(8) == 0 {
                dwell(dice);
                tally.poisoned += usize::from(!boxed.alive());
            }
            drop(guard);
            if let Some(element) = element {
                tally.look(element);
            }
        });
        // Also so that few CPUs have time for the writer.
        if dice.roll(60) == 0 {
            world
                .flavor
                .outside(&mut mine, &mut || thread::sleep(Duration::from_micros(300)));
        }
    }
    tally.add_to(world.counts);
}

/// Ends sections that others began.
fn release_for_others(counts: &Counts, parcels: &mpsc::Receiver<Parcel>) {
    let mut tally = Tally::default();
    let mut late: VecDeque<Parcel> = VecDeque::new();
    for parcel in parcels {
        tally.look(parcel.element);
        counts.handed.fetch_add(1, Ordering::Relaxed);
        late.push_back(parcel);
        if late.len() > 3
            && let Some(Parcel { guard, element }) = late.pop_front()
        {
            tally.look(element);
            drop(guard);
        }
    }
    for Parcel { guard, element } in late {
        tally.look(element);
        drop(guard);
    }
    tally.add_to(counts);
}

/// Waits for a grace period, in one of several ways.
fn wait<F: Tortured>(world: &World<F>, how: usize) {
    let flavor = &world.flavor;
    match how {
        0 => flavor.synchronize(),
        2 => {
            let cookie = flavor.start_poll();
            while !flavor.poll(&cookie) {
                thread::sleep(Duration::from_micros(50));
            }
        }
        3 => flavor.cond_synchronize(flavor.start_poll()),
        _ => {
            while flavor
                .synchronize_timeout(Duration::from_micros(300))
                .is_err()
            {}
        }
    }
}

/// Has `element` aged by one step a grace period until it is used again.
fn age_by_calls<F: Tortured>(flavor: F, counts: &'static Counts, element: &'static Element) {
    let again = flavor.clone();
    flavor.call(move || {
        if !counts.age(element) {
            age_by_calls(again, counts, element);
        }
    });
}

/// Replaces the published element over and over.
fn write<F: Tortured>(world: &World<F>, plan: &Plan) -> [usize; 5] {
    let mut updates = [0; 5];
    let mut removed: VecDeque<&'static Element> = VecDeque::new();
    let mut dice = Dice::new(plan.seed ^ 0x3A);
    let start = Instant::now();
    let mut early = world.flavor.start_poll();
    for cycle in 0usize.. {
        if start.elapsed() >= plan.time {
            break;
        }
        world.stutter();
        if dice.roll(4) == 0 {
            thread::sleep(Duration::from_micros(dice.roll(200)));
        }
        let Some(element) = world.counts.free().pop() else {
            // All are with callbacks that wait.
            world.flavor.barrier();
            continue;
        };
        element.age.store(0, Ordering::Relaxed);
        element.mbtest.store(1, Ordering::Relaxed);
        let old = world
            .published
            .swap(ptr::from_ref(element).cast_mut(), Ordering::AcqRel);
        if cycle % 3 == 0 {
            world.counts.boxes.fetch_add(1, Ordering::Relaxed);
            world.boxed.replace(Boxed::new(&world.counts.freed));
        }
        // SAFETY: elements are never freed.
        let Some(old) = (unsafe { old.as_ref() }) else {
            continue;
        };
        old.age.store(1, Ordering::Relaxed);
        let how = cycle % 5;
        updates[how] += 1;
        match plan.broken {
            Broken::No if how == 1 => {
                age_by_calls(world.flavor.clone(), world.counts, old);
                continue;
            }
            Broken::No => wait(world, how),
            Broken::NoWait => {}
            Broken::EarlyCookie => {
                let cookie = std::mem::replace(&mut early, world.flavor.start_poll());
                world.flavor.cond_synchronize(cookie);
            }
        }
        removed.push_back(old);
        // The one just added has had a grace period, the others one more.
        removed.retain(|element| !world.counts.age(element));
    }
    updates
}

/// Uses grace periods and callbacks in every way, and checks only that each
/// callback is run.
fn fake<F: Tortured>(world: &World<F>, seed: u64) {
    let mut dice = Dice::new(seed);
    let counts = world.counts;
    while world.running() {
        world.stutter();
        match dice.roll(8) {
            n @ (0 | 2 | 3 | 4) => wait(world, n as usize),
            1 | 5 => {
                for _ in 0..dice.roll(40) {
                    counts.called.fetch_add(1, Ordering::Relaxed);
                    world.flavor.call(move || {
                        counts.answered.fetch_add(1, Ordering::Relaxed);
                    });
                }
            }
            6 => world.flavor.barrier(),
            _ => {
                let old = world.flavor.start_poll();
                thread::sleep(Duration::from_micros(dice.roll(500)));
                let _ = world.flavor.poll(&old);
            }
        }
        counts.fakes.fetch_add(1, Ordering::Relaxed);
        if dice.roll(3) == 0 {
            thread::sleep(Duration::from_micros(dice.roll(1000)));
        }
    }
}

/// Leaks `it`, in sight of leak checkers.
fn keep<T: ?Sized>(it: Box<T>) -> &'static T {
    static KEPT: Mutex<Vec<usize>> = Mutex::new(Vec::new());
    let it: &'static T = Box::leak(it);
    let address = ptr::from_ref(it).cast::<()>().expose_provenance();
    KEPT.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(address);
    it
}

/// Runs a plan.
///
/// # Panics
///
/// If a thread does.
#[must_use]
pub fn run<F: Tortured>(flavor: F, plan: Plan) -> Report {
    let pool: &'static [Element] = keep(
        (0..POOL)
            .map(|_| Element {
                age: AtomicUsize::new(PIPE + 1),
                mbtest: AtomicUsize::new(0),
            })
            .collect(),
    );
    let counts: &'static Counts = keep(Box::default());
    counts.free().extend(pool);
    let before = flavor.stats();
    let world = World {
        boxed: RcuCell::new_in(Boxed::new(&counts.freed), flavor.clone()),
        flavor: flavor.clone(),
        published: AtomicPtr::new(ptr::null_mut()),
        counts,
        stop: AtomicBool::new(false),
        pause: AtomicBool::new(false),
    };
    let tids: Vec<AtomicI32> = (0..plan.readers).map(|_| AtomicI32::new(0)).collect();
    let (send, receive) = mpsc::sync_channel(64);
    let updates = thread::scope(|scope| {
        let (world, tids) = (&world, &tids);
        scope.spawn(move || release_for_others(counts, &receive));
        for (n, tid) in tids.iter().enumerate() {
            let send = send.clone();
            scope.spawn(move || {
                tid.store(gettid(), Ordering::Relaxed);
                read(world, plan.seed + n as u64, usize::MAX, &send);
            });
        }
        for n in 0..plan.fakes {
            scope.spawn(move || fake(world, plan.seed ^ (0xFA00 + n as u64)));
        }
        if plan.churn {
            let send = send.clone();
            scope.spawn(move || {
                let mut dice = Dice::new(plan.seed ^ 0xC4);
                while world.running() {
                    world.stutter();
                    let seed = dice.roll(u64::MAX);
                    let send = send.clone();
                    let short = scope.spawn(move || read(world, seed, 50, &send));
                    short.join().expect("a short life");
                    counts.churned.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        if plan.shuffle {
            scope.spawn(move || {
                let cpus = allowed_cpus();
                let mut dice = Dice::new(plan.seed ^ 0x5F);
                while world.running() {
                    let who = dice.roll(tids.len() as u64) as usize;
                    let tid = tids[who].load(Ordering::Relaxed);
                    let cpu = cpus[dice.roll(cpus.len() as u64) as usize];
                    if tid != 0 && set_affinity(tid, &[cpu]).is_ok() {
                        counts.moved.fetch_add(1, Ordering::Relaxed);
                    }
                    thread::sleep(Duration::from_millis(1));
                }
            });
        }
        if plan.stutter {
            scope.spawn(move || {
                while world.running() {
                    thread::sleep(Duration::from_millis(40));
                    world.pause.store(true, Ordering::Relaxed);
                    thread::sleep(Duration::from_millis(10));
                    world.pause.store(false, Ordering::Relaxed);
                    counts.stutters.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        drop(send);
        let updates = write(world, &plan);
        world.stop.store(true, Ordering::Relaxed);
        updates
    });
    // Those that age by callbacks take up to ten more.
    for _ in 0..=PIPE {
        flavor.barrier();
    }
    fence(Ordering::SeqCst);
    let stats = flavor.stats();
    let count = |of: &AtomicUsize| of.load(Ordering::Relaxed);
    drop(world);
    Report {
        pipe: std::array::from_fn(|age| count(&counts.pipe[age])),
        mberrors: count(&counts.mberrors),
        poisoned: count(&counts.poisoned),
        updates,
        recycled: count(&counts.recycled),
        // The first one, which was dropped with the cell.
        boxes: count(&counts.boxes) + 1,
        freed: count(&counts.freed),
        fakes: count(&counts.fakes),
        lost_calls: count(&counts.called) - count(&counts.answered),
        handed: count(&counts.handed),
        churned: count(&counts.churned),
        moved: count(&counts.moved),
        stutters: count(&counts.stutters),
        grace_periods: stats.grace_periods - before.grace_periods,
        pending: stats.pending,
    }
}

/// Runs a plan for the flavour of that name (`rcu`, `thread` or `qsbr`).
///
/// # Errors
///
/// The name, if there is no such flavour.
pub fn run_named(name: &str, plan: Plan) -> Result<Report, &str> {
    match name {
        "rcu" => Ok(run(Rcu::global(), plan)),
        "thread" => Ok(run(ThreadRcu, plan)),
        "qsbr" => Ok(run(QsbrRcu, plan)),
        other => Err(other),
    }
}
