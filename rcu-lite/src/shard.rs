//! Where callbacks wait: shards, each a vector behind a lock that is only ever
//! tried, and an inbox for when all are taken.
//!
//! Floor 2 (`rcu-lite`), raw layer. Owns the locks and the vectors; runs
//! nothing and waits for nobody.
//!
//! # Orderings
//!
//! A shard's lock hands its list over, and with it what the queuing threads
//! did before. The inbox is a stack that is only ever taken whole: pushed with
//! a Release exchange, taken with an Acquire exchange.
//!
//! Both are also how a worker that leaves and a thread that queues notice each
//! other, see [`crate::worker`].

use crate::calls::Calls;
use crate::deferred::Deferred;
use crate::lock::{Lock, Locked};
use core::ops::{Deref, DerefMut};
use core::ptr;
use percpu::fork::generation;
use percpu::sync::UnsafeCell;
use percpu::sync::atomic::{AtomicPtr, Ordering, Statistic};

/// Shards of a domain.
#[cfg(not(loom))]
pub(crate) const SHARDS: usize = 32;
#[cfg(loom)]
pub(crate) const SHARDS: usize = 1;

/// The callbacks of a shard.
#[derive(Debug)]
pub(crate) struct List {
    pub(crate) calls: Calls,
    /// Length at which somebody must look after the shard.
    pub(crate) due: usize,
    /// The process for which `due` was set: a forked child has no worker.
    generation: usize,
}

/// One shard.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Shard {
    lock: Lock,
    queued: Statistic,
    lost: Statistic,
    list: UnsafeCell<List>,
}

// SAFETY: `list` is touched under the lock only; `Deferred` is `Send`.
unsafe impl Sync for Shard {}
// SAFETY: as above.
unsafe impl Send for Shard {}

impl Shard {
    #[cfg(not(loom))]
    pub(crate) const fn new(due: usize) -> Self {
        Self {
            lock: Lock::new(),
            queued: Statistic::new(0),
            lost: Statistic::new(0),
            list: UnsafeCell::new(List {
                calls: Calls::new(),
                due,
                generation: 0,
            }),
        }
    }

    #[cfg(loom)]
    pub(crate) fn new(due: usize) -> Self {
        Self {
            lock: Lock::new(),
            queued: Statistic::new(0),
            lost: Statistic::new(0),
            list: UnsafeCell::new(List {
                calls: Calls::new(),
                due,
                generation: 0,
            }),
        }
    }

    /// Locks the shard if nobody has it.
    ///
    /// # Progress
    ///
    /// Wait-free.
    #[inline]
    pub(crate) fn try_lock(&self) -> Option<LockedShard<'_>> {
        let lock = self.lock.try_lock()?;
        let orphaned = lock.orphaned;
        let mut locked = LockedShard {
            shard: self,
            _lock: lock,
        };
        if orphaned {
            // The vanished thread was changing the vector: what it holds cannot
            // be trusted, not even to be dropped.
            let lost = core::mem::take(&mut locked.calls);
            // Relaxed: a statistic.
            self.lost.fetch_add(lost.len() as u64, Ordering::Relaxed);
            core::mem::forget(lost);
        }
        Some(locked)
    }

    /// Callbacks that were lost in a fork.
    pub(crate) fn lost(&self) -> u64 {
        // Relaxed: a statistic.
        self.lost.load(Ordering::Relaxed)
    }

    /// Callbacks that were ever queued here.
    pub(crate) fn queued(&self) -> u64 {
        // Relaxed: a statistic.
        self.queued.load(Ordering::Relaxed)
    }
}

/// A locked shard.
#[derive(Debug)]
pub(crate) struct LockedShard<'a> {
    shard: &'a Shard,
    _lock: Locked<'a>,
}

impl LockedShard<'_> {
    /// Queues `call`. Whether somebody must look after the shard.
    #[inline]
    pub(crate) fn push(&mut self, call: Deferred) -> bool {
        let queued = &self.shard.queued;
        // Relaxed (both): only the lock's holder writes, readers want a number.
        queued.store(queued.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.calls.push(call);
        if self.generation != generation() {
            self.generation = generation();
            return true;
        }
        self.calls.len() >= self.due
    }
}

impl Deref for LockedShard<'_> {
    type Target = List;
    #[inline]
    fn deref(&self) -> &List {
        // SAFETY: this is the lock's holder.
        self.shard.list.with(|list| unsafe { &*list })
    }
}

impl DerefMut for LockedShard<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut List {
        // SAFETY: this is the lock's holder.
        self.shard.list.with_mut(|list| unsafe { &mut *list })
    }
}

struct Posted {
    call: Deferred,
    next: *mut Posted,
}

/// A stack of callbacks that found every shard locked.
#[derive(Debug)]
pub(crate) struct Inbox {
    head: AtomicPtr<Posted>,
    queued: Statistic,
}

impl Inbox {
    #[cfg(not(loom))]
    pub(crate) const fn new() -> Self {
        Self {
            head: AtomicPtr::new(ptr::null_mut()),
            queued: Statistic::new(0),
        }
    }

    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        Self {
            head: AtomicPtr::new(ptr::null_mut()),
            queued: Statistic::new(0),
        }
    }

    /// Queues `call`.
    ///
    /// # Progress
    ///
    /// Lock-free.
    #[cold]
    pub(crate) fn post(&self, call: Deferred) {
        // Relaxed: a statistic.
        self.queued.fetch_add(1, Ordering::Relaxed);
        let node = Box::into_raw(Box::new(Posted {
            call,
            next: ptr::null_mut(),
        }));
        let mut head = ptr::null_mut();
        loop {
            // SAFETY: not published yet, so this thread's alone.
            unsafe { (*node).next = head };
            // AcqRel: the Release half pairs with the Acquire of `take`; the
            // Acquire half lets the poster see that a worker that emptied the
            // inbox before has left. Relaxed on failure: only the address is
            // used.
            match self
                .head
                .compare_exchange(head, node, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// Moves everything to the end of `calls`, oldest first.
    pub(crate) fn take(&self, calls: &mut Calls) {
        // AcqRel: Acquire pairs with the Release of `post`; the Release half
        // tells later posters what the taker did before (a worker: that it has
        // left).
        let mut at = self.head.swap(ptr::null_mut(), Ordering::AcqRel);
        let mut newest_first = Vec::new();
        while !at.is_null() {
            // SAFETY: the exchange made the chain this thread's alone; every
            // node came out of a box.
            let node = unsafe { Box::from_raw(at) };
            at = node.next;
            newest_first.push(node.call);
        }
        for call in newest_first.into_iter().rev() {
            calls.push(call);
        }
    }

    /// Callbacks that were ever posted.
    pub(crate) fn queued(&self) -> u64 {
        // Relaxed: a statistic.
        self.queued.load(Ordering::Relaxed)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, Sender, channel};

    fn call(tx: &Sender<usize>, n: usize) -> Deferred {
        let tx = tx.clone();
        Deferred::new(move || tx.send(n).unwrap())
    }

    fn run(calls: &mut Calls, rx: &Receiver<usize>) -> Vec<usize> {
        calls.run(|block| block.for_each(Deferred::call));
        rx.try_iter().collect()
    }

    #[test]
    fn the_inbox_is_taken_oldest_first_behind_the_others() {
        let (tx, rx) = channel();
        let (inbox, mut calls) = (Inbox::new(), Calls::new());
        for round in 0..3 {
            calls.push(call(&tx, 100));
            (0..10).for_each(|n| inbox.post(call(&tx, n)));
            inbox.take(&mut calls);
            inbox.take(&mut calls);
            let ran = run(&mut calls, &rx);
            assert_eq!(ran, [100, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
            assert_eq!(inbox.queued(), 10 * (round + 1));
        }
    }

    #[test]
    fn a_shard_of_a_vanished_thread_is_emptied() {
        let (tx, rx) = channel();
        let shard = Shard::new(2);
        let mut locked = shard.try_lock().unwrap();
        assert!(shard.try_lock().is_none());
        // The first one of a process wants somebody to look.
        assert!(locked.push(call(&tx, 1)));
        assert!(locked.push(call(&tx, 2)), "due");
        // SAFETY: the shard forgets its own copy, see below.
        let mut copy = unsafe { ptr::read(&raw const locked.calls) };
        drop(locked);
        shard.lock.orphan();
        let mut locked = shard.try_lock().unwrap();
        assert!(locked.calls.is_empty(), "cannot be trusted");
        assert_eq!(run(&mut copy, &rx), [1, 2], "nor dropped");
        assert!(!locked.push(call(&tx, 3)), "not due");
        drop(locked);
        let mut locked = shard.try_lock().unwrap();
        assert_eq!(run(&mut locked.calls, &rx), [3]);
        assert_eq!(shard.queued(), 3);
    }
}
