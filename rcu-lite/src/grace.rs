//! Grace periods: one sequence number, one leader at a time, everybody who
//! waits shares.
//!
//! Floor 2 (`rcu-lite`), raw layer. Owns the sequence number and the right to
//! lead; knows readers only as [`Readers`].
//!
//! # The sequence number
//!
//! | `seq` | means |
//! |---|---|
//! | 2n | n grace periods have ended, none is in progress |
//! | 2n + 1 | the next one is in progress |
//!
//! Whoever wants a grace period takes a *target*: the value of `seq` at which
//! one that began afterwards has ended. From 2n that is 2n + 2. From 2n + 1 it
//! is 2n + 4: the one in progress began too early. So any number of
//! synchronizers need two grace periods between them.
//!
//! # The leader
//!
//! Whoever finds the lock free leads: it begins grace periods and waits for
//! readers until its own target is reached. Others look at `seq`. A leader may
//! leave in the middle (a timeout, a poll that does not wait); the next one
//! goes on from there: what has been done of the grace period in progress
//! stands in [`Progress`], under the lock.
//!
//! One grace period: *turn* (readers that begin from now on can be told from
//! those before) – *heavy barrier* – wait until those before have *drained*.
//!
//! # Orderings
//!
//! *Snap* and the two *steps* of `seq` are read-modify-writes, so that they form
//! one release sequence: what a synchronizer unlinked before its snap happens
//! before the barrier of the leader whose start it waits for, also when the
//! leader is another thread and the snap fell into the grace period before.
//! (A plain store at the end would cut the sequence.) The end is Release and
//! *reached* Acquire: what the leader learnt of the readers happens before
//! what the synchronizer frees.
//!
//! Source: the two-bit sequence of Linux' `rcu_seq`, reduced; liburcu shares a
//! grace period among those who queue for it.

use crate::lock::{Lock, Locked};
use core::time::Duration;
use percpu::barrier::BarrierLost;
use percpu::sync::UnsafeCell;
use percpu::sync::atomic::{AtomicBool, AtomicU64, Ordering, Statistic};
use percpu::wait::Backoff;
use std::time::Instant;

/// What a flavour knows of its readers.
pub(crate) trait Readers {
    /// From here on, readers that begin can be told from readers that were
    /// inside before. Called by one thread at a time, and never twice without
    /// [`drained`](Self::drained) having said yes in between (but once in a
    /// forked child, whose grace period in progress then takes two turns).
    fn turn(&self);

    /// The reclaimer's barrier against the flavour's readers.
    fn barrier(&self) -> Result<(), BarrierLost>;

    /// Whether all readers that were inside before the last turn have left.
    fn drained(&self) -> bool;
}

/// Why a wait ended without a grace period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Timeout {
    /// A reader that began before is still inside.
    ReadersRemain,
    /// The kernel refuses the process-wide barrier that it granted before.
    /// Nothing can be freed while that lasts.
    BarrierLost,
}

impl core::fmt::Display for Timeout {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Timeout::ReadersRemain => "timed out: a reader that began before is still inside",
            Timeout::BarrierLost => "timed out: the kernel refuses the process-wide barrier",
        })
    }
}

impl core::error::Error for Timeout {}

/// How far the grace period in progress has come.
#[derive(Clone, Copy, Debug)]
struct Progress {
    /// Turns that it still needs: 1, or 2 after its leader vanished in a fork.
    rounds: u8,
    turned: bool,
    ordered: bool,
    began: Option<Instant>,
}

const IDLE: Progress = Progress {
    rounds: 0,
    turned: false,
    ordered: false,
    began: None,
};

/// The grace periods of one domain.
#[derive(Debug)]
pub(crate) struct Grace {
    seq: AtomicU64,
    lock: Lock,
    progress: UnsafeCell<Progress>,
    /// No reader can exist any more.
    closed: AtomicBool,
    longest_ns: Statistic,
    lost: Statistic,
    /// 1 while the last barrier was refused.
    refused: Statistic,
}

// SAFETY: `progress` is touched under the lock only.
unsafe impl Sync for Grace {}
// SAFETY: as above.
unsafe impl Send for Grace {}

enum Step {
    Advanced,
    Waiting(Timeout),
}

impl Grace {
    #[cfg(not(loom))]
    pub(crate) const fn new() -> Self {
        Self::starting_at(0)
    }

    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        Self::starting_at(0)
    }

    /// Starts at another (even) number: tests let it wrap.
    #[cfg(not(loom))]
    pub(crate) const fn starting_at(seq: u64) -> Self {
        Self {
            seq: AtomicU64::new(seq),
            lock: Lock::new(),
            progress: UnsafeCell::new(IDLE),
            closed: AtomicBool::new(false),
            longest_ns: Statistic::new(0),
            lost: Statistic::new(0),
            refused: Statistic::new(0),
        }
    }

    #[cfg(loom)]
    pub(crate) fn starting_at(seq: u64) -> Self {
        Self {
            seq: AtomicU64::new(seq),
            lock: Lock::new(),
            progress: UnsafeCell::new(IDLE),
            closed: AtomicBool::new(false),
            longest_ns: Statistic::new(0),
            lost: Statistic::new(0),
            refused: Statistic::new(0),
        }
    }

    /// The target of a grace period that begins after what the caller did so
    /// far.
    ///
    /// # Progress
    ///
    /// Wait-free.
    pub(crate) fn snap(&self) -> u64 {
        // AcqRel: "Snap". Release: what the caller unlinked happens before the
        // start of a later grace period. (Nothing needs the Acquire half: the
        // target is always ahead of the number that it comes from.)
        let seq = self.seq.fetch_add(0, Ordering::AcqRel);
        seq.wrapping_add(if seq & 1 == 0 { 2 } else { 3 })
    }

    /// Whether the grace period of `target` has ended.
    ///
    /// # Progress
    ///
    /// Wait-free.
    #[inline]
    pub(crate) fn reached(&self, target: u64) -> bool {
        // Acquire: pairs with the Release of "End".
        self.seq.load(Ordering::Acquire).wrapping_sub(target) as i64 >= 0
    }

    /// Waits until `target` is reached, leading if nobody does.
    pub(crate) fn wait(
        &self,
        readers: &impl Readers,
        target: u64,
        deadline: Option<Instant>,
    ) -> Result<(), Timeout> {
        let mut backoff = Backoff::new();
        let mut last_look = false;
        loop {
            if self.reached(target) {
                return Ok(());
            }
            if let Some(mut leader) = self.lead() {
                // The lock is kept while waiting: followers look at `seq`.
                while !self.reached(target) {
                    let why = match leader.step(readers) {
                        Step::Advanced => {
                            backoff = Backoff::new();
                            continue;
                        }
                        Step::Waiting(why) => why,
                    };
                    if deadline.is_some_and(|at| Instant::now() >= at) {
                        return Err(why);
                    }
                    backoff.snooze();
                }
                return Ok(());
            }
            if last_look {
                // What the leader waits for. Relaxed: for people.
                return match self.refused.load(Ordering::Relaxed) {
                    0 => Err(Timeout::ReadersRemain),
                    _ => Err(Timeout::BarrierLost),
                };
            }
            last_look = deadline.is_some_and(|at| Instant::now() >= at);
            if !last_look {
                backoff.snooze();
            }
        }
    }

    /// Goes as far as is possible without waiting. Whether `target` is
    /// reached.
    ///
    /// # Progress
    ///
    /// Does not wait for readers. Issues at most two heavy barriers.
    pub(crate) fn advance(&self, readers: &impl Readers, target: u64) -> bool {
        if self.reached(target) {
            return true;
        }
        if let Some(mut leader) = self.lead() {
            while !self.reached(target) {
                if let Step::Waiting(_) = leader.step(readers) {
                    return false;
                }
            }
        }
        self.reached(target)
    }

    /// No reader can exist any more: grace periods end at once.
    pub(crate) fn close(&self) {
        // Release: "Close", pairs with `is_closed`: what the readers did happens
        // before what a worker frees, which looks at no reader any more.
        self.closed.store(true, Ordering::Release);
    }

    pub(crate) fn is_closed(&self) -> bool {
        // Acquire: pairs with "Close".
        self.closed.load(Ordering::Acquire)
    }

    /// Grace periods that have ended.
    pub(crate) fn count(&self) -> u64 {
        // Relaxed: a statistic.
        self.seq.load(Ordering::Relaxed) / 2
    }

    pub(crate) fn longest(&self) -> Duration {
        // Relaxed: a statistic.
        Duration::from_nanos(self.longest_ns.load(Ordering::Relaxed))
    }

    /// Barriers that the kernel refused.
    pub(crate) fn lost(&self) -> u64 {
        // Relaxed: a statistic.
        self.lost.load(Ordering::Relaxed)
    }

    fn lead(&self) -> Option<Leader<'_>> {
        let lock = self.lock.try_lock()?;
        let orphaned = lock.orphaned;
        let mut leader = Leader {
            grace: self,
            _lock: lock,
        };
        if orphaned {
            leader.recover();
        }
        Some(leader)
    }
}

/// The right to begin and to end grace periods.
struct Leader<'a> {
    grace: &'a Grace,
    _lock: Locked<'a>,
}

impl Leader<'_> {
    fn progress(&mut self) -> &mut Progress {
        // SAFETY: this is the lock's holder, and the borrow is of `self`.
        self.grace.progress.with_mut(|p| unsafe { &mut *p })
    }

    /// After a fork in the middle of the vanished leader's work: it is not
    /// known whether it had turned. Two turns cover every reader.
    fn recover(&mut self) {
        *self.progress() = Progress { rounds: 2, ..IDLE };
    }

    /// One thing that can be done without waiting.
    fn step(&mut self, readers: &impl Readers) -> Step {
        let grace = self.grace;
        // Relaxed: only the lock's holder changes the parity.
        if grace.seq.load(Ordering::Relaxed) & 1 == 0 {
            *self.progress() = Progress {
                rounds: 1,
                began: Some(Instant::now()),
                ..IDLE
            };
            // AcqRel: "Start". Acquire: the unlinking before every snap that
            // this grace period serves happens before the barrier.
            grace.seq.fetch_add(1, Ordering::AcqRel);
        }
        // No reader, nothing to order against: ends also where the barrier
        // cannot be had.
        let closed = grace.is_closed();
        let progress = self.progress();
        if !progress.turned {
            readers.turn();
            progress.turned = true;
        }
        if !progress.ordered && !closed {
            if readers.barrier().is_err() {
                // Relaxed (both): for people.
                grace.lost.fetch_add(1, Ordering::Relaxed);
                grace.refused.store(1, Ordering::Relaxed);
                return Step::Waiting(Timeout::BarrierLost);
            }
            progress.ordered = true;
            // Relaxed: for people.
            grace.refused.store(0, Ordering::Relaxed);
        }
        if !closed && !readers.drained() {
            return Step::Waiting(Timeout::ReadersRemain);
        }
        progress.rounds = progress.rounds.saturating_sub(1);
        if progress.rounds > 0 {
            (progress.turned, progress.ordered) = (false, false);
            return Step::Advanced;
        }
        if let Some(began) = progress.began {
            let ns = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
            // Relaxed (both): a statistic, written by the lock's holder.
            if ns > grace.longest_ns.load(Ordering::Relaxed) {
                grace.longest_ns.store(ns, Ordering::Relaxed);
            }
        }
        // AcqRel: "End". Release: what the leader saw of the readers happens
        // before what a synchronizer frees. A read-modify-write, so that snaps
        // taken meanwhile stay in the release sequence that the next start
        // reads.
        grace.seq.fetch_add(1, Ordering::AcqRel);
        Step::Advanced
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use core::cell::Cell;

    /// Readers that a test moves.
    #[derive(Default)]
    struct Fake {
        turns: Cell<u64>,
        barriers: Cell<u64>,
        refused: Cell<bool>,
        inside: Cell<bool>,
    }

    impl Readers for Fake {
        fn turn(&self) {
            self.turns.set(self.turns.get() + 1);
        }

        fn barrier(&self) -> Result<(), BarrierLost> {
            if self.refused.get() {
                return Err(BarrierLost);
            }
            self.barriers.set(self.barriers.get() + 1);
            Ok(())
        }

        fn drained(&self) -> bool {
            !self.inside.get()
        }
    }

    const NOW: Option<Duration> = Some(Duration::ZERO);

    fn wait(
        grace: &Grace,
        fake: &Fake,
        target: u64,
        limit: Option<Duration>,
    ) -> Result<(), Timeout> {
        grace.wait(fake, target, limit.map(|limit| Instant::now() + limit))
    }

    /// Bug log 65, narrowed: the sequence number wraps while targets of before
    /// and after are waited for.
    #[test]
    fn the_sequence_number_wraps() {
        for start in [
            u64::MAX - 1,
            u64::MAX - 3,
            u64::MAX - 9,
            i64::MAX as u64 - 1,
        ] {
            let (grace, fake) = (Grace::starting_at(start), Fake::default());
            let old = grace.snap();
            for n in 1..=8 {
                fake.inside.set(true);
                let idle = grace.snap();
                assert_eq!(idle, start.wrapping_add(2 * n));
                assert!(!grace.reached(idle));
                assert!(!grace.advance(&fake, idle), "{start} {n}");
                let under_way = grace.snap();
                assert_eq!(under_way, idle.wrapping_add(2), "it began too early");
                assert_eq!(wait(&grace, &fake, idle, NOW), Err(Timeout::ReadersRemain));
                fake.inside.set(false);
                assert_eq!(wait(&grace, &fake, idle, None), Ok(()));
                assert!(grace.reached(idle) && !grace.reached(under_way));
                assert!(grace.reached(old), "{start} {n}");
            }
            assert_eq!((fake.turns.get(), fake.barriers.get()), (8, 8));
        }
    }

    /// Whoever goes on with a grace period turns and orders no second time.
    #[test]
    fn a_grace_period_that_was_left_is_gone_on_with() {
        let (grace, fake) = (Grace::new(), Fake::default());
        let target = grace.snap();
        fake.refused.set(true);
        for _ in 0..3 {
            assert_eq!(wait(&grace, &fake, target, NOW), Err(Timeout::BarrierLost));
        }
        assert!(!grace.advance(&fake, target));
        assert_eq!((fake.turns.get(), grace.lost(), grace.count()), (1, 4, 0));
        fake.refused.set(false);
        fake.inside.set(true);
        for _ in 0..3 {
            assert_eq!(
                wait(&grace, &fake, target, NOW),
                Err(Timeout::ReadersRemain)
            );
            assert!(!grace.advance(&fake, target));
        }
        assert_eq!((fake.turns.get(), fake.barriers.get()), (1, 1));
        fake.inside.set(false);
        assert!(grace.advance(&fake, target));
        assert_eq!(
            (fake.turns.get(), fake.barriers.get(), grace.count()),
            (1, 1, 1)
        );
    }

    /// Who follows tells what the leader waits for.
    #[test]
    fn a_follower_says_why() {
        let (grace, fake) = (Grace::new(), Fake::default());
        let target = grace.snap();
        for (refused, why) in [
            (true, Timeout::BarrierLost),
            (false, Timeout::ReadersRemain),
        ] {
            fake.refused.set(refused);
            fake.inside.set(true);
            let mut leader = grace.lead().unwrap();
            let Step::Waiting(leaders) = leader.step(&fake) else {
                panic!("advanced")
            };
            assert_eq!(leaders, why);
            assert_eq!(wait(&grace, &fake, target, NOW), Err(why));
        }
    }

    /// The leader vanished in a fork: nobody knows whether it had turned.
    #[test]
    fn after_a_vanished_leader_there_are_two_turns() {
        for step in 0..3 {
            let (grace, fake) = (Grace::new(), Fake::default());
            let target = grace.snap();
            fake.inside.set(true);
            fake.refused.set(step == 1);
            if step > 0 {
                assert!(!grace.advance(&fake, target));
            }
            let before = fake.turns.get();
            grace.lock.orphan();
            assert!(!grace.advance(&fake, target));
            assert_eq!(fake.turns.get(), before + 1);
            fake.inside.set(false);
            fake.refused.set(false);
            assert!(grace.advance(&fake, target));
            // With none under way there was none to recover.
            let expected = if step == 0 { 1 } else { 2 };
            assert_eq!(fake.turns.get(), before + expected, "step {step}");
            assert_eq!(grace.count(), 1);
            // The next one is as ever.
            assert!(grace.advance(&fake, grace.snap()));
            assert_eq!(fake.turns.get(), before + expected + 1);
        }
    }

    /// Neither readers nor barriers hold up what has no reader.
    #[test]
    fn a_closed_domain_waits_for_nothing() {
        let (grace, fake) = (Grace::new(), Fake::default());
        fake.inside.set(true);
        fake.refused.set(true);
        let target = grace.snap();
        assert!(!grace.advance(&fake, target));
        grace.close();
        assert_eq!(wait(&grace, &fake, target, None), Ok(()));
        assert_eq!(wait(&grace, &fake, grace.snap(), None), Ok(()));
    }
}
