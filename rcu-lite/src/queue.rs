//! Callbacks: queued by anyone at any time, run after a grace period by one
//! thread at a time.
//!
//! Floor 2 (`rcu-lite`), raw layer. Owns the shards, the passes and the right
//! to run them; knows a flavour only as [`Domain`].
//!
//! # A pass
//!
//! Take all shards – wait for a grace period that begins now – run what was
//! taken. `pass` counts passes as `seq` counts grace periods (odd: in
//! progress), so *everything queued before has run* is the same question:
//! whether a pass that began afterwards has ended. A pass that must not wait
//! leaves its batch where it is; the next one goes on with it.
//!
//! Whoever waits in [`barrier`] runs passes itself when nobody else does. So
//! nothing depends on a worker: not that one could be started, nor that it
//! survives a fork.
//!
//! # Orderings
//!
//! Shards hand their lists over (see [`crate::shard`]); the grace period's snap
//! comes after that, in the same thread. The numbers of passes are
//! read-modify-writes for the reason that those of grace periods are: a
//! barrier that begins in the middle of a pass must be seen by the next one.
//!
//! Source: liburcu's `call_rcu` and `rcu_barrier`; report 51b98c3 there (a
//! callback lost between a worker that leaves and a barrier) is why a worker
//! owns nothing here.

use crate::calls::Calls;
use crate::deferred::Deferred;
use crate::grace::{Grace, Readers};
use crate::local::{self, Running};
use crate::lock::{Lock, Locked};
use crate::shard::{Inbox, LockedShard, SHARDS, Shard};
use crate::stats::Stats;
use core::ops::Deref;
use percpu::sync::UnsafeCell;
use percpu::sync::atomic::{AtomicU64, AtomicUsize, Ordering, Statistic};
use percpu::wait::Backoff;
use std::vec::Drain;

/// Who runs the callbacks of a domain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Callbacks {
    /// A worker thread, which is started when a callback is queued, gathers
    /// what comes within a millisecond, and ends some 50 ms after the last one
    /// has run. The more wait, the less it gathers.
    #[default]
    Worker,
    /// The threads that queue them: whoever finds that `threshold` callbacks
    /// wait in its shard runs those whose grace period is over. It never waits
    /// for readers. For programs that want no thread and bounded garbage.
    ///
    /// Any thread that queues may then run any callback, perhaps with locks
    /// held or inside a read-side section, so callbacks must not take such
    /// locks; they panic if they call `synchronize`.
    Inline {
        /// Callbacks of a shard that call for a pass, at least 1.
        threshold: usize,
    },
    /// Nobody but `drain` and `barrier`.
    Manual,
}

/// Callbacks of a shard that are more than a worker leaves behind when it has
/// the processor.
pub(crate) const CROWDED: usize = 8192;

const WORKER: usize = 0;
const MANUAL: usize = usize::MAX;

impl Callbacks {
    const fn to_word(self) -> usize {
        match self {
            Callbacks::Worker => WORKER,
            Callbacks::Inline { threshold: 0 } => 1,
            Callbacks::Inline { threshold: MANUAL } | Callbacks::Manual => MANUAL,
            Callbacks::Inline { threshold } => threshold,
        }
    }

    const fn from_word(word: usize) -> Self {
        match word {
            WORKER => Callbacks::Worker,
            MANUAL => Callbacks::Manual,
            threshold => Callbacks::Inline { threshold },
        }
    }

    /// Length at which a shard needs somebody, with no worker running.
    pub(crate) const fn due(self) -> usize {
        match self {
            Callbacks::Worker => 1,
            Callbacks::Inline { threshold } => threshold,
            Callbacks::Manual => usize::MAX,
        }
    }
}

/// What the callbacks' engine needs of a flavour.
pub(crate) trait Domain: Readers + Sync + 'static {
    /// Something that keeps the domain alive.
    type Keep: Deref<Target = Self> + Send + 'static;

    fn keep(&self) -> Self::Keep;

    fn grace(&self) -> &Grace;

    fn queue(&self) -> &Queue;

    /// Panics if the calling thread is known to be inside a read-side section
    /// that `what` would wait for.
    fn assert_outside(&self, what: &str);
}

/// What a pass has taken and not run yet.
#[derive(Debug)]
struct Batch {
    lists: [Calls; SHARDS],
    /// The grace period that it waits for.
    target: Option<u64>,
}

/// The callbacks of one domain.
#[derive(Debug)]
pub(crate) struct Queue {
    shards: [Shard; SHARDS],
    inbox: Inbox,
    mode: AtomicUsize,
    /// 0, or the generation of the process that has a worker.
    pub(crate) worker: AtomicUsize,
    pass: AtomicU64,
    runner: Lock,
    batch: UnsafeCell<Batch>,
    run: Statistic,
    panicked: Statistic,
    lost: Statistic,
    /// How often in a row a worker could not be started.
    pub(crate) failed: Statistic,
}

// SAFETY: `batch` is touched by the holder of `runner` only; `Deferred` is
// `Send`.
unsafe impl Sync for Queue {}
// SAFETY: as above.
unsafe impl Send for Queue {}

impl Queue {
    #[cfg(not(loom))]
    pub(crate) const fn new(callbacks: Callbacks) -> Self {
        Self {
            shards: [const { Shard::new(1) }; SHARDS],
            inbox: Inbox::new(),
            mode: AtomicUsize::new(callbacks.to_word()),
            worker: AtomicUsize::new(0),
            pass: AtomicU64::new(0),
            runner: Lock::new(),
            batch: UnsafeCell::new(Batch {
                lists: [const { Calls::new() }; SHARDS],
                target: None,
            }),
            run: Statistic::new(0),
            panicked: Statistic::new(0),
            lost: Statistic::new(0),
            failed: Statistic::new(0),
        }
    }

    #[cfg(loom)]
    pub(crate) fn new(callbacks: Callbacks) -> Self {
        Self {
            shards: std::array::from_fn(|_| Shard::new(callbacks.due())),
            inbox: Inbox::new(),
            mode: AtomicUsize::new(callbacks.to_word()),
            worker: AtomicUsize::new(0),
            pass: AtomicU64::new(0),
            runner: Lock::new(),
            batch: UnsafeCell::new(Batch {
                lists: std::array::from_fn(|_| Calls::new()),
                target: None,
            }),
            run: Statistic::new(0),
            panicked: Statistic::new(0),
            lost: Statistic::new(0),
            failed: Statistic::new(0),
        }
    }

    pub(crate) fn callbacks(&self) -> Callbacks {
        // Relaxed: what depends on it is looked at under the shards' locks.
        Callbacks::from_word(self.mode.load(Ordering::Relaxed))
    }

    /// Queues `call`. Whether somebody must look after the queue.
    ///
    /// # Progress
    ///
    /// Lock-free.
    #[inline]
    fn push(&self, call: Deferred) -> bool {
        let first = own_shard();
        for n in 0..SHARDS {
            if let Some(mut shard) = self.shards[(first + n) % SHARDS].try_lock() {
                return shard.push(call);
            }
        }
        self.inbox.post(call);
        true
    }

    /// A shard's lock, waited for: its holders hold it for some instructions.
    fn lock(&self, n: usize) -> LockedShard<'_> {
        let mut backoff = Backoff::new();
        loop {
            if let Some(shard) = self.shards[n].try_lock() {
                return shard;
            }
            backoff.snooze();
        }
    }

    /// The one shard, locked: models of those that find it so.
    #[cfg(all(test, loom))]
    pub(crate) fn lock_for_models(&self) -> Option<LockedShard<'_>> {
        self.shards[0].try_lock()
    }

    /// Sets every shard's `due`. Whether there is anything in one.
    pub(crate) fn set_due(&self, due: impl Fn(&Self, usize) -> usize) -> bool {
        let mut found = false;
        for n in 0..SHARDS {
            let mut shard = self.lock(n);
            if n == 0 {
                self.inbox.take(&mut shard.calls);
            }
            found |= !shard.calls.is_empty();
            shard.due = due(self, shard.calls.len());
        }
        found
    }

    fn take(&self, lists: &mut [Calls; SHARDS]) -> usize {
        let mut taken = 0;
        for (n, list) in lists.iter_mut().enumerate() {
            let mut shard = self.lock(n);
            core::mem::swap(&mut shard.calls, list);
            match self.callbacks() {
                // With a worker, a shard that is not to be looked after
                // earlier; see `look_after`.
                Callbacks::Worker => shard.due = shard.due.min(CROWDED),
                callbacks @ Callbacks::Inline { .. } => shard.due = callbacks.due(),
                Callbacks::Manual => {}
            }
            if n == 0 {
                // Before the shard is unlocked: `set_due` moves from the inbox
                // to the shard, and must not do so in between.
                self.inbox.take(list);
            }
            drop(shard);
            taken += list.len();
        }
        taken
    }

    /// The target of a pass that takes what is queued now.
    fn snap(&self) -> u64 {
        // AcqRel: as `Grace::snap`.
        let pass = self.pass.fetch_add(0, Ordering::AcqRel);
        pass.wrapping_add(if pass & 1 == 0 { 2 } else { 3 })
    }

    fn reached(&self, target: u64) -> bool {
        // Acquire: pairs with the Release at the end of `pass`.
        self.pass.load(Ordering::Acquire).wrapping_sub(target) as i64 >= 0
    }

    fn run(&self, lists: &mut [Calls; SHARDS]) -> usize {
        let mut ran = 0;
        for list in lists {
            list.run(|block| ran += self.run_block(block));
        }
        ran
    }

    fn run_block(&self, mut block: Drain<'_, Deferred>) -> usize {
        let count = block.len();
        // loom's own reports are panics too.
        #[cfg(loom)]
        block.by_ref().for_each(Deferred::call);
        #[cfg(not(loom))]
        while block.len() > 0 {
            use std::panic::{AssertUnwindSafe, catch_unwind};
            let all = AssertUnwindSafe(|| block.by_ref().for_each(Deferred::call));
            if let Err(payload) = catch_unwind(all) {
                // Relaxed: a statistic.
                self.panicked.fetch_add(1, Ordering::Relaxed);
                // A payload may panic when it is dropped.
                if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
                    core::mem::forget(payload);
                }
            }
        }
        // Relaxed (both): a statistic that only the runner writes.
        let run = self.run.load(Ordering::Relaxed) + count as u64;
        self.run.store(run, Ordering::Relaxed);
        count
    }

    /// Counts callbacks that only a process before the fork could run.
    fn count_lost(&self, count: usize) {
        // Relaxed: a statistic.
        self.lost.fetch_add(count as u64, Ordering::Relaxed);
    }

    /// Whether a pass has begun and not ended: its batch waits.
    pub(crate) fn is_under_way(&self) -> bool {
        // Relaxed: whoever left it did so before the shards' locks that the
        // caller has taken, or goes on with it.
        self.pass.load(Ordering::Relaxed) & 1 == 1
    }

    /// Gives back memory that a burst has left.
    pub(crate) fn trim(&self) {
        for shard in &self.shards {
            if let Some(mut shard) = shard.try_lock() {
                shard.calls.trim();
            }
        }
        if let Some((_lock, batch)) = self.lock_runner() {
            batch.lists.iter_mut().for_each(Calls::trim);
        }
    }

    /// The right to run, and what was left to be run.
    #[allow(clippy::mut_from_ref, reason = "the lock beside it makes it unique")]
    fn lock_runner(&self) -> Option<(Locked<'_>, &mut Batch)> {
        let lock = self.runner.try_lock()?;
        // SAFETY: this is the holder of `runner`, for as long as the lock that
        // is returned beside it lives.
        let batch = self.batch.with_mut(|batch| unsafe { &mut *batch });
        if lock.orphaned {
            // A vanished thread was at it: what it had taken is lost here.
            for list in &mut batch.lists {
                self.count_lost(list.len());
                core::mem::forget(core::mem::take(list));
            }
            batch.target = None;
        }
        Some((lock, batch))
    }

    /// The numbers for people.
    pub(crate) fn stats(&self, grace: &Grace) -> Stats {
        // Read first, so that `pending` is never negative by the order.
        // Relaxed (all): statistics.
        let run = self.run.load(Ordering::Relaxed);
        let panicked = self.panicked.load(Ordering::Relaxed);
        let lost =
            self.lost.load(Ordering::Relaxed) + self.shards.iter().map(Shard::lost).sum::<u64>();
        let queued = self.shards.iter().map(Shard::queued).sum::<u64>() + self.inbox.queued();
        Stats {
            grace_periods: grace.count(),
            longest: grace.longest(),
            barriers_lost: grace.lost(),
            queued,
            run,
            pending: queued.saturating_sub(run).saturating_sub(lost),
            panicked,
            lost,
            // Relaxed: a snapshot.
            worker: self.worker.load(Ordering::Relaxed) == percpu::fork::generation(),
        }
    }
}

#[cfg(not(loom))]
fn own_shard() -> usize {
    match percpu::section::index_hint() {
        percpu::section::NO_INDEX => local::token(),
        cpu => cpu,
    }
}

#[cfg(loom)]
fn own_shard() -> usize {
    0
}

/// Queues `f`. See [`Flavor::call`](crate::Flavor::call).
#[inline]
pub(crate) fn call<D: Domain>(domain: &D, f: impl FnOnce() + Send + 'static) {
    if domain.queue().push(Deferred::new(f)) {
        look_after(domain);
    }
}

#[cold]
fn look_after<D: Domain>(domain: &D) {
    let queue = domain.queue();
    match queue.callbacks() {
        Callbacks::Worker => {
            if !crate::worker::start(domain) {
                // It does not keep up: leave it the processor, now and then.
                if let Some(mut shard) = queue.shards[own_shard() % SHARDS].try_lock()
                    && shard.calls.len() >= CROWDED
                {
                    shard.due = shard.calls.len() + CROWDED / 8;
                    drop(shard);
                    percpu::sync::yield_now();
                }
            }
        }
        Callbacks::Inline { threshold } => {
            // (Told of a shard's first callback in this process, too.)
            let due = queue.shards[own_shard() % SHARDS]
                .try_lock()
                .is_some_and(|shard| shard.calls.len() >= shard.due.min(threshold));
            if !due || pass(domain, Running::Inline) != Some(0) {
                return;
            }
            // A reader holds it up: look again when as many more have come.
            if let Some(mut shard) = queue.shards[own_shard() % SHARDS].try_lock() {
                shard.due = shard.calls.len().saturating_add(threshold);
            }
        }
        Callbacks::Manual => {}
    }
}

/// One pass, or the rest of one that was left. How many callbacks it ran;
/// `None` if another thread is at it. A pass of an [`Running::Inline`] runner
/// does not wait.
pub(crate) fn pass<D: Domain>(domain: &D, running: Running) -> Option<usize> {
    let queue = domain.queue();
    let (lock, batch) = queue.lock_runner()?;
    let target = match batch.target {
        Some(target) => target,
        None => {
            // Relaxed: only the runner changes the parity. (It is odd here
            // after a fork.)
            if queue.pass.load(Ordering::Relaxed) & 1 == 0 {
                // AcqRel: what was queued before a snap that read an earlier
                // number is in the shards for this thread.
                queue.pass.fetch_add(1, Ordering::AcqRel);
            }
            if queue.take(&mut batch.lists) == 0 {
                // AcqRel: as at the end.
                queue.pass.fetch_add(1, Ordering::AcqRel);
                return Some(0);
            }
            *batch.target.insert(domain.grace().snap())
        }
    };
    let over = match running {
        Running::Free => domain.grace().wait(domain, target, None).is_ok(),
        Running::Inline => domain.grace().advance(domain, target),
    };
    if !over {
        return Some(0);
    }
    batch.target = None;
    let ran = local::as_callbacks(core::ptr::from_ref(domain).cast(), running, || {
        queue.run(&mut batch.lists)
    });
    // AcqRel: Release, what the callbacks did happens before what a barrier's
    // caller does next; a read-modify-write, see the module's page.
    queue.pass.fetch_add(1, Ordering::AcqRel);
    drop(lock);
    Some(ran)
}

/// Panics if the calling thread is inside a callback of `domain`.
fn assert_no_callback<D: Domain>(domain: &D, what: &str) {
    assert!(
        local::running(core::ptr::from_ref(domain).cast()).is_none(),
        "`{what}` called inside a callback of the same domain: it would wait for that callback"
    );
}

/// Waits until everything queued before has run; runs what nobody else runs.
/// How many callbacks this thread ran.
pub(crate) fn barrier<D: Domain>(domain: &D, what: &str) -> usize {
    assert_no_callback(domain, what);
    domain.assert_outside(what);
    let queue = domain.queue();
    let target = queue.snap();
    let mut ran = 0;
    let mut backoff = Backoff::new();
    while !queue.reached(target) {
        match pass(domain, Running::Free) {
            Some(n) => {
                ran += n;
                backoff = Backoff::new();
            }
            None => backoff.snooze(),
        }
    }
    ran
}

/// Panics if a wait for a grace period of `domain` could wait for the caller
/// itself.
pub(crate) fn assert_may_wait<D: Domain>(domain: &D, what: &str) {
    assert!(
        local::running(core::ptr::from_ref(domain).cast()) != Some(Running::Inline),
        "`{what}` called inside a callback that the queuing thread runs (Callbacks::Inline): that thread may be inside a read-side section"
    );
    domain.assert_outside(what);
}

/// Changes who runs the callbacks.
pub(crate) fn set_callbacks<D: Domain>(domain: &D, callbacks: Callbacks) {
    let queue = domain.queue();
    // Relaxed: handed over by the shards' locks.
    queue.mode.store(callbacks.to_word(), Ordering::Relaxed);
    let waiting = queue.set_due(|queue, _| queue.callbacks().due());
    // A batch that an inline pass left waits too.
    if waiting || queue.is_under_way() {
        match callbacks {
            Callbacks::Worker => {
                crate::worker::start(domain);
            }
            Callbacks::Inline { .. } => {
                pass(domain, Running::Inline);
            }
            Callbacks::Manual => {}
        }
    }
}

/// The end of a domain: no reader exists and nobody queues. Runs everything,
/// unless a callback of this domain is what ends it: then the thread that runs
/// it goes on until the queue is empty.
pub(crate) fn finish<D: Domain>(domain: &D) {
    domain.grace().close();
    if local::running(core::ptr::from_ref(domain).cast()).is_some() {
        return;
    }
    let mut backoff = Backoff::new();
    let mut empty = false;
    while !empty {
        match pass(domain, Running::Free) {
            Some(n) => empty = n == 0,
            None => backoff.snooze(),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
