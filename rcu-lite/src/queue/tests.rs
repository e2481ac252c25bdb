//! Unit tests of `queue`.

use super::*;
use std::sync::mpsc::channel;

/// A domain without readers.
struct Plain {
    grace: Grace,
    queue: Queue,
}

impl Plain {
    fn new(callbacks: Callbacks) -> Self {
        let queue = Queue::new(callbacks);
        queue.set_due(|queue, _| queue.callbacks().due());
        Self {
            grace: Grace::new(),
            queue,
        }
    }
}

impl Readers for Plain {
    fn turn(&self) {}

    fn barrier(&self) -> Result<(), percpu::barrier::BarrierLost> {
        Ok(())
    }

    fn drained(&self) -> bool {
        true
    }
}

impl Domain for Plain {
    type Keep = &'static Plain;

    fn keep(&self) -> &'static Plain {
        unreachable!("these tests want no worker")
    }

    fn grace(&self) -> &Grace {
        &self.grace
    }

    fn queue(&self) -> &Queue {
        &self.queue
    }

    fn assert_outside(&self, _: &str) {}
}

/// Every shard is locked: the callback goes to the inbox, and is run with
/// the others.
#[test]
fn with_all_shards_locked() {
    let domain = Plain::new(Callbacks::Manual);
    let (tx, rx) = channel();
    for round in 1..=3 {
        let send = |n| {
            let tx = tx.clone();
            call(&domain, move || tx.send(n).unwrap());
        };
        send(0);
        let locked: Vec<_> = domain.queue.shards.iter().map(|s| s.try_lock()).collect();
        assert!(locked.iter().all(Option::is_some));
        send(1);
        send(2);
        drop(locked);
        send(3);
        assert_eq!(domain.queue.stats(&domain.grace).pending, 4);
        assert_eq!(barrier(&domain, "barrier"), 4);
        let mut ran: Vec<_> = rx.try_iter().collect();
        ran.sort_unstable();
        assert_eq!(ran, [0, 1, 2, 3]);
        let stats = domain.queue.stats(&domain.grace);
        assert_eq!(
            (stats.queued, stats.run, stats.pending),
            (4 * round, 4 * round, 0)
        );
    }
}

/// The numbers of passes wrap between a barrier's snap and its end.
#[test]
fn the_number_of_passes_wraps() {
    for start in [u64::MAX - 1, u64::MAX - 3, i64::MAX as u64 - 1] {
        let domain = Plain::new(Callbacks::Manual);
        domain.queue.pass.store(start, Ordering::Relaxed);
        for _ in 0..5 {
            let target = domain.queue.snap();
            assert!(!domain.queue.reached(target));
            call(&domain, || ());
            assert_eq!(pass(&domain, Running::Free), Some(1));
            assert!(domain.queue.reached(target));
            assert_eq!(barrier(&domain, "barrier"), 0);
        }
    }
}

/// The runner vanished in a fork, between its passes or within one: what it
/// had taken is lost, what is queued is not, and nobody waits for it.
#[test]
fn a_vanished_runner() {
    for odd in [false, true] {
        let domain = Plain::new(Callbacks::Manual);
        let (tx, rx) = channel();
        if odd {
            domain.queue.pass.store(7, Ordering::Relaxed);
        }
        domain.queue.runner.orphan();
        for n in 0..20 {
            let tx = tx.clone();
            call(&domain, move || tx.send(n).unwrap());
        }
        assert_eq!(barrier(&domain, "barrier"), 20);
        assert_eq!(rx.try_iter().sum::<i32>(), 190);
        assert_eq!(barrier(&domain, "barrier"), 0);
    }
}

#[test]
fn modes_are_words() {
    for mode in [
        Callbacks::Worker,
        Callbacks::Manual,
        Callbacks::Inline { threshold: 1 },
        Callbacks::Inline { threshold: 1000 },
    ] {
        assert_eq!(Callbacks::from_word(mode.to_word()), mode);
    }
    let word = |threshold| Callbacks::Inline { threshold }.to_word();
    assert_eq!(
        Callbacks::from_word(word(0)),
        Callbacks::Inline { threshold: 1 }
    );
    assert_eq!(Callbacks::from_word(word(usize::MAX)), Callbacks::Manual);
}
