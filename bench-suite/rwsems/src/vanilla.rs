//! The kernel's rwsem as it is without PREEMPT_RT: a count word, a queue, a
//! handoff, optimistic spinning.
//!
//! Floor 3 (`rwsems`). Owns the count and the queue; waits through `futex`.
//!
//! # The count
//!
//! | bit 0 | bit 1 | bit 2 | bits 8 … |
//! |---|---|---|---|
//! | a writer is inside | somebody is in the queue | the first in the queue gets it next | readers inside, and those that are about to find out that they are not |
//!
//! A reader adds itself first and looks then: with none of the three bits in the
//! old value it is inside. Otherwise it takes itself out again as it queues. A
//! writer must find the whole word 0.
//!
//! # The queue
//!
//! | who | does |
//! |---|---|
//! | the last one out, if bit 1 is set | wakes the first in the queue |
//! | a woken reader | is inside already: whoever woke it has added it, and all other readers of the queue (256 at most) with it |
//! | a woken writer | tries for itself; it may find that another one was quicker |
//! | the first in the queue, after [`PATIENCE`] | sets bit 2: nobody passes it any more |
//! | a writer on its way to the queue | tries [`SPINS`] times to be quicker than the first in the queue, while bit 2 is clear |
//!
//! The kernel spins as long as it sees a writing owner run on a CPU, and for some
//! microseconds behind readers. User space cannot see who runs, so the number of
//! attempts is bounded. Readers do not spin (nor do the kernel's any more).
//!
//! # Fairness
//!
//! A reader that comes while somebody waits queues behind; so a reader that
//! enters again while a writer waits waits for ever. Readers of the queue go
//! together, past writers; then it is the writers' turn.
//!
//! # Orderings
//!
//! *Up* is Release and pairs with *Down*, the Acquire of whoever gets in, readers
//! and writers alike. A reader that is let in by another thread takes that
//! thread's view from *Grant*, Release, by the Acquire of its look at its own
//! word; and *Down* of the granting thread is Acquire for both.
//!
//! Source: `kernel/locking/rwsem.c` (Linux ≥ 5.3, Waiman Long and others).

use crate::futex::{Futex, Os, Word};
use crate::lock::guards;
use crate::sync::{Mutex, MutexGuard, Padded, lock};
use crate::{About, AtOnce, RwSem};
use core::marker::PhantomData;
use percpu::sync::atomic::{AtomicUsize, Ordering};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

const WRITER: usize = 1;
const WAITERS: usize = 2;
const HANDOFF: usize = 4;
const READER: usize = 1 << 8;
/// Anybody inside.
const HELD: usize = !(READER - 1) | WRITER;

/// Readers that are let in together.
const TOGETHER: usize = 256;
/// How long the first of the queue lets others pass.
pub const PATIENCE: Duration = Duration::from_millis(4);
/// A writer's attempts before it queues.
pub const SPINS: usize = if cfg!(loom) { 0 } else { 100 };

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Reader,
    Writer,
}

#[derive(Debug)]
struct Waiter {
    kind: Kind,
    since: Instant,
    /// 1: woken; a reader is inside then.
    state: Word,
}

impl Waiter {
    fn new(kind: Kind) -> Arc<Self> {
        Arc::new(Self {
            kind,
            since: Instant::now(),
            state: Word::new(0),
        })
    }

    fn impatient(&self) -> bool {
        cfg!(loom) || self.since.elapsed() > PATIENCE
    }

    fn wake<F: Futex>(&self) {
        // Release: "Grant", pairs with the Acquire in `sleep`.
        self.state.value.store(1, Ordering::Release);
        F::wake(&self.state);
    }

    fn sleep<F: Futex>(&self) {
        // Acquire: pairs with "Grant".
        while self.state.value.load(Ordering::Acquire) == 0 {
            F::wait(&self.state, 0);
        }
    }
}

type Queue<'a> = MutexGuard<'a, VecDeque<Arc<Waiter>>>;

/// The lock.
#[derive(Debug)]
pub struct Vanilla<F: Futex = Os> {
    count: Padded<AtomicUsize>,
    queue: Mutex<VecDeque<Arc<Waiter>>>,
    futex: PhantomData<F>,
}

guards!(Vanilla, ());

impl<F: Futex> RwSem for Vanilla<F> {
    const ABOUT: About = About {
        name: "vanilla",
        what: "the kernel's rwsem: count word, queue, handoff, bounded optimistic spinning of writers",
        progress: "waits for those inside, and for those that queued before",
        fairness: "in turn; queued readers go together; the first in the queue is passed for 4 ms at most",
        inherits: "nothing",
        source: "kernel/locking/rwsem.c, Linux 5.3 and later",
        readers: AtOnce::All,
        nests: false,
        pi: false,
        percpu: false,
        locks: true,
    };

    type Read<'a> = Read<'a, F>;
    type Write<'a> = Write<'a, F>;

    fn new() -> Self {
        Self {
            count: Padded(AtomicUsize::new(0)),
            queue: Mutex::new(VecDeque::new()),
            futex: PhantomData,
        }
    }

    /// # Progress
    ///
    /// Wait-free while no writer is inside or waits; else waits for those inside
    /// and those that queued before.
    #[inline]
    fn read(&self) -> Read<'_, F> {
        // Acquire: "Down", pairs with "Up".
        if self.count.fetch_add(READER, Ordering::Acquire) & (WRITER | WAITERS | HANDOFF) != 0 {
            self.queue_reader();
        }
        Read::new(self, ())
    }

    fn try_read(&self) -> Option<Read<'_, F>> {
        // Relaxed: a guess.
        let mut now = self.count.load(Ordering::Relaxed);
        while now & (WRITER | WAITERS | HANDOFF) == 0 {
            // Acquire: "Down".
            match self.count.compare_exchange_weak(
                now,
                now + READER,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Some(Read::new(self, ())),
                Err(seen) => now = seen,
            }
        }
        None
    }

    /// # Progress
    ///
    /// Waits for those inside and those that queued before; not for readers that
    /// come later.
    #[inline]
    fn write(&self) -> Write<'_, F> {
        if !self.grab() {
            self.queue_writer();
        }
        Write::new(self)
    }

    fn try_write(&self) -> Option<Write<'_, F>> {
        self.grab().then(|| Write::new(self))
    }
}

impl<F: Futex> Vanilla<F> {
    #[inline(always)]
    fn grab(&self) -> bool {
        // Acquire: "Down".
        self.count
            .compare_exchange(0, WRITER, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    #[inline]
    fn leave(&self, (): ()) {
        // Release: "Up", pairs with "Down".
        let now = self.count.fetch_sub(READER, Ordering::Release) - READER;
        if now & (HELD | WAITERS) == WAITERS {
            self.wake_first(lock(&self.queue));
        }
    }

    #[inline]
    fn leave_write(&self) {
        // Release: "Up", pairs with "Down".
        if self.count.fetch_sub(WRITER, Ordering::Release) & WAITERS != 0 {
            self.wake_first(lock(&self.queue));
        }
    }

    /// The reader has added itself, and found that it is not inside.
    #[cold]
    #[inline(never)]
    fn queue_reader(&self) {
        let mut queue = lock(&self.queue);
        if queue.is_empty() {
            // With an empty queue the two other bits are clear, and only the
            // holder of the queue sets them.
            // Acquire: "Down".
            if self.count.load(Ordering::Acquire) & WRITER == 0 {
                return;
            }
        }
        let me = Waiter::new(Kind::Reader);
        let first = queue.is_empty();
        queue.push_back(Arc::clone(&me));
        // In one step, so that nobody who leaves meanwhile finds neither.
        let change = if first { WAITERS } else { 0 }.wrapping_sub(READER);
        // Relaxed: takes nothing and gives nothing.
        let now = self
            .count
            .fetch_add(change, Ordering::Relaxed)
            .wrapping_add(change);
        // Those that left before this step have not seen that somebody waits, or
        // a unit in the count that meant nothing has kept them from waking.
        if now & HELD == 0 || first && now & WRITER == 0 {
            self.wake_first(queue);
        } else {
            drop(queue);
        }
        me.sleep::<F>();
    }

    #[cold]
    #[inline(never)]
    fn queue_writer(&self) {
        if self.spin() {
            return;
        }
        let mut queue = lock(&self.queue);
        let me = Waiter::new(Kind::Writer);
        queue.push_back(Arc::clone(&me));
        if queue.len() == 1 {
            // Relaxed: whoever leaves after this step sees it; who left before
            // it is seen by the attempt below.
            self.count.fetch_or(WAITERS, Ordering::Relaxed);
        }
        while !self.attempt(&mut queue, &me) {
            // Relaxed: under the lock of whoever wakes.
            me.state.value.store(0, Ordering::Relaxed);
            drop(queue);
            me.sleep::<F>();
            queue = lock(&self.queue);
        }
    }

    /// Tries to be quicker than the queue.
    fn spin(&self) -> bool {
        for _ in 0..SPINS {
            // Relaxed: a guess.
            let now = self.count.load(Ordering::Relaxed);
            if now & HANDOFF != 0 {
                return false;
            }
            // Acquire: "Down".
            if now & HELD == 0
                && self
                    .count
                    .compare_exchange(now, now | WRITER, Ordering::Acquire, Ordering::Relaxed)
                    .is_ok()
            {
                return true;
            }
            percpu::sync::spin_loop();
        }
        false
    }

    /// A queued writer's attempt; if it succeeds the writer is out of the queue.
    fn attempt(&self, queue: &mut Queue<'_>, me: &Arc<Waiter>) -> bool {
        let first = queue.front().is_some_and(|front| Arc::ptr_eq(front, me));
        // Relaxed: a guess.
        let mut now = self.count.load(Ordering::Relaxed);
        loop {
            let promised = now & HANDOFF != 0;
            let new = if promised && !first {
                return false;
            } else if now & HELD == 0 {
                let waiters = if queue.len() == 1 { WAITERS } else { 0 };
                (now | WRITER) & !(HANDOFF | waiters)
            } else if promised || !first || !me.impatient() {
                return false;
            } else {
                now | HANDOFF
            };
            // Acquire: "Down".
            match self
                .count
                .compare_exchange(now, new, Ordering::Acquire, Ordering::Relaxed)
            {
                Err(seen) => now = seen,
                Ok(_) if now & HELD != 0 => return false,
                Ok(_) => {
                    queue.retain(|waiter| !Arc::ptr_eq(waiter, me));
                    return true;
                }
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn wake_first(&self, mut queue: Queue<'_>) {
        match queue.front() {
            None => {}
            Some(first) if first.kind == Kind::Writer => first.wake::<F>(),
            Some(_) => self.let_in(&mut queue),
        }
    }

    /// The first of the queue is a reader: lets the queue's readers in, unless a
    /// writer was quicker.
    fn let_in(&self, queue: &mut Queue<'_>) {
        loop {
            // Acquire: "Down", for the first of them; with its unit in, no
            // writer comes in any more.
            let old = self.count.fetch_add(READER, Ordering::Acquire);
            if old & WRITER == 0 {
                break;
            }
            let impatient = queue.front().is_some_and(|first| first.impatient());
            let promise = if impatient && old & HANDOFF == 0 {
                HANDOFF
            } else {
                0
            };
            let change = promise.wrapping_sub(READER);
            // Relaxed: takes nothing and gives nothing.
            let now = self
                .count
                .fetch_add(change, Ordering::Relaxed)
                .wrapping_add(change);
            if now & WRITER != 0 {
                // Its end will come here again.
                return;
            }
        }
        let mut chosen = Vec::new();
        queue.retain(|waiter| {
            let goes = waiter.kind == Kind::Reader && chosen.len() < TOGETHER;
            if goes {
                chosen.push(Arc::clone(waiter));
            }
            !goes
        });
        let mut change = (chosen.len() - 1) * READER;
        if queue.is_empty() {
            change = change.wrapping_sub(WAITERS);
        }
        // Relaxed (both): the bit is changed under the queue's lock only. The units are
        // covered by the first one.
        change = change.wrapping_sub(self.count.load(Ordering::Relaxed) & HANDOFF);
        self.count.fetch_add(change, Ordering::Relaxed);
        for waiter in chosen {
            waiter.wake::<F>();
        }
    }
}
