//! Elements, those who look at them, and what they saw.
//!
//! Floor 3. Owns the pool of elements, which are never freed (so that a fault
//! is an age in a histogram and not a crash), their payloads, which are, and
//! the counts of a run.

use crate::cpus;
use crate::failure::{First, Seen, Sign};
use crate::plan::Plan;
use crate::report::AGES;
use std::collections::VecDeque;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The age from which on an element is used again.
const PIPE: usize = 10;

const POOL: usize = 1200;

/// Payloads that were poisoned and are not yet given back to the allocator: a
/// reader that comes too late finds the poison.
const GRAVES: usize = 256;

const ALIVE: u64 = 0x600D_600D_600D_600D;
const DEAD: u64 = 0xDEAD_DEAD_DEAD_DEAD;

#[derive(Debug)]
struct Payload {
    words: [AtomicU64; 6],
}

impl Payload {
    fn new() -> Box<Self> {
        Box::new(Self {
            words: [const { AtomicU64::new(ALIVE) }; 6],
        })
    }

    fn alive(&self) -> bool {
        self.words
            .iter()
            .all(|word| word.load(Ordering::Relaxed) == ALIVE)
    }
}

/// What is published, replaced, and aged.
#[derive(Debug)]
pub(crate) struct Element {
    /// Its place in the pool.
    pub(crate) number: usize,
    age: AtomicUsize,
    /// Another one at each publication; 0 while it is not published.
    stamp: AtomicUsize,
    payload: AtomicPtr<Payload>,
}

/// Elements that nobody has.
#[derive(Debug)]
struct Pool {
    fresh: Vec<&'static Element>,
    /// Reclaimed and growing old.
    pipe: VecDeque<&'static Element>,
    graves: VecDeque<Box<Payload>>,
    stamp: usize,
}

/// What one thread does and sees. The thread itself writes, and its handler.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) name: String,
    pub(crate) number: usize,
    pub(crate) tid: AtomicI32,
    /// Steps so far: something that stands still hangs.
    pub(crate) steps: AtomicU64,
    pipe: [AtomicU64; AGES],
    /// The last steps: microseconds, and which.
    ring: [AtomicU64; RING],
}

const RING: usize = 32;

/// What the ring tells apart; the place is the number.
const STEPS: [&str; 12] = [
    "read",
    "sleep inside",
    "end of read",
    "hand over",
    "take over",
    "release of another's",
    "read in a handler",
    "many at once",
    "pause",
    "rest",
    "update",
    "begin",
];

/// A step for the ring.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Read,
    Sleep,
    ReadEnd,
    HandOver,
    TakeOver,
    Release,
    Handler,
    Many,
    Pause,
    Rest,
    Update,
    Begin,
}

/// An element in somebody's hand, as it was when it came there.
#[derive(Debug)]
pub(crate) struct Sight {
    element: &'static Element,
    stamp: usize,
    payload: *const Payload,
}

// SAFETY: the payload is looked at through shared references only, and only
// while the element is protected (or, if that is what is wrong, while it lies
// in its grave).
unsafe impl Send for Sight {}

#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) sleeps: AtomicU64,
    pub(crate) handed_over: AtomicU64,
    pub(crate) in_handler: AtomicU64,
    pub(crate) starved: AtomicU64,
    pub(crate) churned: AtomicU64,
    pub(crate) moved: AtomicU64,
    pub(crate) stutters: AtomicU64,
    pub(crate) unlinked: AtomicU64,
    pub(crate) reclaimed: AtomicU64,
    pub(crate) recycled: AtomicU64,
    pub(crate) peak: AtomicU64,
    /// By the flavour's ways.
    pub(crate) reads: [AtomicU64; 8],
    pub(crate) updates: [AtomicU64; 8],
}

/// Everything that the threads of a run share.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) plan: Plan,
    pub(crate) start: Instant,
    pub(crate) counts: Counts,
    pub(crate) first: First,
    stop: AtomicBool,
    pause: AtomicBool,
    pool: Mutex<Pool>,
    contexts: Mutex<Vec<Arc<Context>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Leaks `it`, in sight of leak checkers.
pub(crate) fn keep<T: ?Sized>(it: Box<T>) -> &'static T {
    static KEPT: Mutex<Vec<usize>> = Mutex::new(Vec::new());
    let it: &'static T = Box::leak(it);
    let address = ptr::from_ref(it).cast::<()>().expose_provenance();
    lock(&KEPT).push(address);
    it
}

impl World {
    pub(crate) fn new(plan: Plan) -> &'static Self {
        let elements: &'static [Element] = keep(
            (0..POOL)
                .map(|number| Element {
                    number,
                    age: AtomicUsize::new(PIPE),
                    stamp: AtomicUsize::new(0),
                    payload: AtomicPtr::new(ptr::null_mut()),
                })
                .collect(),
        );
        keep(Box::new(Self {
            plan,
            start: Instant::now(),
            counts: Counts::default(),
            first: First::new(),
            stop: AtomicBool::new(false),
            pause: AtomicBool::new(false),
            pool: Mutex::new(Pool {
                fresh: elements.iter().collect(),
                pipe: VecDeque::new(),
                graves: VecDeque::new(),
                stamp: 0,
            }),
            contexts: Mutex::new(Vec::new()),
        }))
    }

    pub(crate) const ELEMENTS: usize = POOL;

    /// Whether the run goes on.
    pub(crate) fn running(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }

    pub(crate) fn end(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    pub(crate) fn paused(&self) -> bool {
        self.pause.load(Ordering::Relaxed) && self.running()
    }

    pub(crate) fn set_pause(&self, pause: bool) {
        self.pause.store(pause, Ordering::Relaxed);
    }

    /// Waits for the end of a pause.
    pub(crate) fn stutter(&self) {
        while self.paused() {
            thread::sleep(Duration::from_micros(200));
        }
    }

    pub(crate) fn micros(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    /// An entry in the list of threads.
    pub(crate) fn context(&self, name: String) -> Arc<Context> {
        let mut contexts = lock(&self.contexts);
        let context = Arc::new(Context {
            name,
            number: contexts.len(),
            tid: AtomicI32::new(0),
            steps: AtomicU64::new(0),
            pipe: [const { AtomicU64::new(0) }; AGES],
            ring: [const { AtomicU64::new(0) }; RING],
        });
        contexts.push(Arc::clone(&context));
        context
    }

    /// The entry of a number.
    pub(crate) fn context_of(&self, number: usize) -> Option<Arc<Context>> {
        lock(&self.contexts).get(number).cloned()
    }

    /// Looks of all threads, by age.
    pub(crate) fn ages(&self) -> [u64; AGES] {
        let contexts = lock(&self.contexts);
        std::array::from_fn(|age| {
            let looks = contexts.iter().map(|c| c.pipe[age].load(Ordering::Relaxed));
            looks.sum()
        })
    }

    /// An element, ready to be published: reclaimed ones grow older by one, the
    /// oldest are used again. If readers have all of them, `flush` is asked for
    /// some. Nothing if the run ends.
    pub(crate) fn take(&self, flush: impl Fn()) -> Option<&'static Element> {
        while self.running() {
            {
                let mut pool = lock(&self.pool);
                let pool = &mut *pool;
                for element in &pool.pipe {
                    element.age.fetch_add(1, Ordering::Relaxed);
                }
                while let Some(element) = pool.pipe.front()
                    && element.age.load(Ordering::Relaxed) > PIPE
                {
                    pool.fresh.extend(pool.pipe.pop_front());
                    self.counts.recycled.fetch_add(1, Ordering::Relaxed);
                }
                if let Some(element) = pool.fresh.pop() {
                    pool.stamp += 1;
                    element.age.store(0, Ordering::Relaxed);
                    element.stamp.store(pool.stamp, Ordering::Relaxed);
                    // Relaxed, all: the flavour's publication carries them.
                    element
                        .payload
                        .store(Box::into_raw(Payload::new()), Ordering::Relaxed);
                    return Some(element);
                }
            }
            flush();
            thread::yield_now();
        }
        None
    }

    /// The caller has taken it out: no reader can find it any more.
    pub(crate) fn unlinked(&self, element: &'static Element) {
        let unlinked = self.counts.unlinked.fetch_add(1, Ordering::Relaxed) + 1;
        let reclaimed = self.counts.reclaimed.load(Ordering::Relaxed);
        self.counts
            .peak
            .fetch_max(unlinked.saturating_sub(reclaimed), Ordering::Relaxed);
        element.age.store(1, Ordering::Relaxed);
    }

    /// The scheme says that nobody has it.
    pub(crate) fn reclaimed(&self, element: &'static Element) {
        let age = element.age.swap(2, Ordering::Relaxed);
        let stamp = element.stamp.swap(0, Ordering::Relaxed);
        if age != 1 {
            self.fail(usize::MAX, Sign::Twice, Some(element), age, stamp);
            return;
        }
        let payload = element.payload.swap(ptr::null_mut(), Ordering::Relaxed);
        // SAFETY: from the box of `take`, and the only one to take it away,
        // since the age was 1.
        let payload = unsafe { Box::from_raw(payload) };
        for word in &payload.words {
            word.store(DEAD, Ordering::Relaxed);
        }
        let mut pool = lock(&self.pool);
        pool.graves.push_back(payload);
        let old = (pool.graves.len() > GRAVES).then(|| pool.graves.pop_front());
        pool.pipe.push_back(element);
        drop(pool);
        self.counts.reclaimed.fetch_add(1, Ordering::Relaxed);
        drop(old);
    }

    /// Elements that wait for their readers.
    pub(crate) fn waiting(&self) -> u64 {
        let unlinked = self.counts.unlinked.load(Ordering::Relaxed);
        unlinked.saturating_sub(self.counts.reclaimed.load(Ordering::Relaxed))
    }

    /// The run is over, and this is why. Async-signal-safe.
    pub(crate) fn fail(
        &self,
        context: usize,
        sign: Sign,
        element: Option<&Element>,
        age: usize,
        stamp: usize,
    ) {
        self.first.put(Seen {
            sign,
            context,
            cpu: cpus::current(),
            micros: self.micros(),
            element: element.map(|element| element.number),
            age,
            stamp,
            stamp_now: element.map_or(0, |element| element.stamp.load(Ordering::Relaxed)),
        });
        self.end();
    }
}

impl Context {
    /// Writes a step down. Async-signal-safe.
    pub(crate) fn note(&self, world: &World, step: Step) {
        // Relaxed: the thread itself, and its handler in between.
        let n = self.steps.fetch_add(1, Ordering::Relaxed);
        let word = (world.micros() << 8) | (step as u64 + 1);
        self.ring[n as usize % RING].store(word, Ordering::Relaxed);
    }

    /// The last steps, the oldest first.
    pub(crate) fn steps(&self) -> Vec<(f64, &'static str)> {
        let next = self.steps.load(Ordering::Relaxed) as usize;
        (0..RING)
            .map(|n| self.ring[(next + n) % RING].load(Ordering::Relaxed))
            .filter(|word| *word != 0)
            .map(|word| ((word >> 8) as f64 / 1e3, STEPS[(word & 0xFF) as usize - 1]))
            .collect()
    }

    /// The first look at an element that this thread has come to protect.
    /// Async-signal-safe, as is [`again`](Self::again).
    pub(crate) fn first(&self, world: &World, element: &'static Element) -> Sight {
        let sight = Sight {
            element,
            stamp: element.stamp.load(Ordering::Relaxed),
            payload: element.payload.load(Ordering::Relaxed),
        };
        self.again(world, &sight);
        sight
    }

    /// Another look at it: nothing has changed but the age from 0 to 1.
    pub(crate) fn again(&self, world: &World, sight: &Sight) {
        let element = sight.element;
        let age = element.age.load(Ordering::Relaxed);
        self.pipe[age.min(AGES - 1)].fetch_add(1, Ordering::Relaxed);
        let stamp = element.stamp.load(Ordering::Relaxed);
        // SAFETY: protected; or, if that is what is wrong, in its grave for the
        // next couple of hundred updates.
        let whole = unsafe { sight.payload.as_ref() }.is_some_and(Payload::alive);
        let sign = if age > 1 {
            Sign::TooOld
        } else if sight.stamp == 0 || stamp == 0 {
            Sign::Unstamped
        } else if stamp != sight.stamp {
            Sign::Changed
        } else if !whole {
            Sign::Poisoned
        } else {
            return;
        };
        world.fail(self.number, sign, Some(element), age, sight.stamp);
    }
}
