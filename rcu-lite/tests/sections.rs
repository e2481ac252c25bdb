//! What each flavour's sections can do beyond the others': guards of `Rcu`
//! that travel, guards of another domain, nesting of `ThreadRcu`, handles of
//! `QsbrRcu`.

mod common;

use common::{Case, Drops, HANG, Reader, SHORT, eventually, message, rounds, within};
use rcu_lite::{Callbacks, Flavor, Guard, QsbrRcu, Rcu, RcuCell, RcuList, ThreadRcu, Timeout};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::task::{Context, Poll, Waker};
use std::thread;

/// Entered here, left by another thread: counted once each.
#[test]
fn a_guard_is_dropped_by_another_thread() {
    let rcu = Arc::<Rcu>::alone();
    thread::scope(|scope| {
        let (send, receive) = mpsc::channel::<Guard<'_>>();
        scope.spawn(move || receive.iter().for_each(drop));
        for _ in 0..rounds(1000, 20) {
            send.send(rcu.read()).expect("receiver");
        }
        let last = rcu.read();
        drop(send);
        assert_eq!(rcu.synchronize_timeout(SHORT), Err(Timeout::ReadersRemain));
        drop(last);
    });
    assert_eq!(rcu.synchronize_timeout(HANG), Ok(()));
}

/// A guard made by a thread that has ended still protects.
#[test]
fn a_guard_outlives_its_thread() {
    static RCU: Rcu = Rcu::new();
    let drops = Drops::new();
    let cell = RcuCell::new_in(drops.value(4), &RCU);
    let guard = thread::spawn(|| RCU.read()).join().expect("a guard");
    let seen = cell.load(&guard);
    cell.replace(drops.value(5));
    assert_eq!(RCU.synchronize_timeout(SHORT), Err(Timeout::ReadersRemain));
    assert_eq!((seen.get(), drops.count()), (4, 0));
    drop(guard);
    RCU.set_callbacks(Callbacks::Manual);
    RCU.barrier();
    assert_eq!(drops.count(), 1);
    eventually("the worker leaves", || !RCU.stats().worker);
}

/// A clone is a section of its own.
#[test]
fn a_clone_outlives_the_guard() {
    let rcu = Arc::<Rcu>::alone();
    let guard = rcu.read();
    let clone = guard.clone();
    assert!(std::ptr::eq(clone.rcu(), &**rcu));
    drop(guard);
    assert_eq!(rcu.synchronize_timeout(SHORT), Err(Timeout::ReadersRemain));
    drop(clone);
    assert_eq!(rcu.synchronize_timeout(HANG), Ok(()));
}

/// Lets another task go first, some times.
struct Yield(usize);

impl Future for Yield {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if self.0 == 0 {
            return Poll::Ready(());
        }
        self.0 -= 1;
        Poll::Pending
    }
}

/// A future that holds a guard across `.await` and is polled by another
/// thread each time.
#[test]
fn a_guard_crosses_await() {
    static RCU: Rcu = Rcu::with_callbacks(Callbacks::Manual);
    let drops = Drops::new();
    let leaked = Box::into_raw(Box::new(RcuCell::new_in(drops.value(1), &RCU)));
    // SAFETY: freed at the end, when nobody has it any more.
    let cell: &'static RcuCell<_, &'static Rcu> = unsafe { &*leaked };
    let mut task: Pin<Box<dyn Future<Output = usize> + Send>> = Box::pin(async move {
        let guard = RCU.read();
        let seen = cell.load(&guard);
        Yield(3).await;
        let inner = guard.clone();
        Yield(2).await;
        assert_eq!(seen.get(), 1);
        drop(guard);
        let again = cell.load(&inner);
        Yield(1).await;
        again.get()
    });
    let mut polls = 0;
    let answer = loop {
        polls += 1;
        let (back, poll) = thread::spawn(move || {
            let poll = task.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            (task, poll)
        })
        .join()
        .expect("a poll");
        task = back;
        match poll {
            Poll::Ready(answer) => break answer,
            Poll::Pending => {
                cell.replace(drops.value(polls + 1));
                assert_eq!(
                    RCU.synchronize_timeout(SHORT),
                    Err(Timeout::ReadersRemain),
                    "after poll {polls}"
                );
                assert_eq!(drops.count(), 0);
            }
        }
    };
    assert_eq!((answer, polls), (6, 7));
    assert_eq!(RCU.drain(), 6);
    assert_eq!(drops.count(), 6);
    // SAFETY: leaked above; the task that had a copy is over.
    drop(unsafe { Box::from_raw(leaked) });
}

/// A fresh domain used by many threads at once is made once.
#[test]
fn the_first_use_is_a_race() {
    for _ in 0..rounds(50, 2) {
        let rcu = Arc::new(Rcu::with_callbacks(Callbacks::Manual));
        let drops = Drops::new();
        let start = Arc::new(Barrier::new(6));
        let threads: Vec<_> = (0..6)
            .map(|n| {
                let (rcu, drops, start) = (Arc::clone(&rcu), drops.clone(), Arc::clone(&start));
                thread::spawn(move || {
                    start.wait();
                    match n % 3 {
                        0 => drop(rcu.read()),
                        1 => rcu.synchronize(),
                        _ => rcu.defer_drop(Box::new(drops.value(n))),
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().expect("a thread");
        }
        drop(rcu);
        assert_eq!(drops.count(), 2);
    }
}

/// A domain that nobody ever used, and one that only counted.
#[test]
fn domains_that_do_nothing() {
    drop(Rcu::new());
    let rcu = Rcu::default();
    assert_eq!(rcu.stats().queued, 0);
    assert!(format!("{rcu:?}").contains("stats"));
    // SAFETY: no fork, no guard, one thread: nothing to forget.
    unsafe { Rcu::new().after_fork_in_child() };
}

/// Long readers of one domain do not hold up another.
#[test]
fn domains_are_apart() {
    let (a, b) = (Arc::<Rcu>::alone(), Arc::<Rcu>::alone());
    let guard = a.read();
    assert_eq!(b.synchronize_timeout(HANG), Ok(()));
    b.barrier();
    assert_eq!(a.synchronize_timeout(SHORT), Err(Timeout::ReadersRemain));
    assert_eq!(
        Rcu::global().synchronize_timeout(HANG),
        Ok(()),
        "no test of this file stays inside the global domain"
    );
    drop(guard);
}

/// Bug log 25, for sections: a guard of another domain protects nothing.
#[test]
fn a_guard_of_another_domain_is_refused() {
    let (a, b) = (Arc::new(Rcu::new()), Arc::new(Rcu::new()));
    let cell = RcuCell::new_in(1, Arc::clone(&a));
    let list = RcuList::new_in(Arc::clone(&a));
    list.push_back(1);
    let (mine, other) = (a.read(), b.read());
    let other_domain = "the guard is of another RCU domain";
    assert!(message(|| _ = cell.load(&other)).contains(other_domain));
    assert!(message(|| _ = list.iter(&other).next()).contains(other_domain));
    let current = cell.load(&mine);
    assert!(message(|| drop(cell.compare_and_replace(&other, current, 2))).contains(other_domain));
    assert!(!a.covers(&other) && a.covers(&mine));
    assert_eq!((*cell.load(&mine), list.iter(&mine).count()), (1, 1));
}

#[test]
fn a_cookie_of_another_domain_is_refused() {
    let (a, b) = (Rcu::new(), Rcu::new());
    let another = "the cookie is of another domain";
    let cookie = a.start_poll();
    assert!(message(|| _ = b.poll(&cookie)).contains(another));
    assert!(message(|| b.cond_synchronize(cookie.clone())).contains(another));
    assert!(message(|| _ = ThreadRcu.poll(&cookie)).contains(another));
    assert!(message(|| _ = QsbrRcu.poll(&ThreadRcu.start_poll())).contains(another));
    assert!(a.poll(&cookie));
}

/// Bug log 65: the counter's limit is reached, and passed.
#[test]
fn report_65_nesting_to_the_limit() {
    const DEEPEST: usize = 65_535;
    if cfg!(miri) {
        return;
    }
    let rcu = ThreadRcu::alone();
    let drops = Drops::new();
    let cell = RcuCell::new_in(drops.value(1), ThreadRcu);
    let mut guards: Vec<_> = (0..DEEPEST).map(|_| ThreadRcu.read()).collect();
    let said = message(|| drop(ThreadRcu.read()));
    assert!(
        said.contains("more than 65535 read-side sections"),
        "{said}"
    );
    // The section is what it was, again and again.
    assert!(message(|| drop(ThreadRcu.read())).contains("65535"));
    let seen = cell.load(&guards[0]);
    let waits = || within("a timeout", || ThreadRcu.synchronize_timeout(SHORT));
    assert_eq!(waits(), Err(Timeout::ReadersRemain));
    assert_eq!(seen.get(), 1);
    let last = guards.pop().expect("a guard");
    drop(guards);
    drop(ThreadRcu.read());
    assert_eq!(waits(), Err(Timeout::ReadersRemain), "one is left");
    drop(last);
    assert_eq!(waits(), Ok(()));
    ThreadRcu.synchronize();
    cell.replace(drops.value(2));
    rcu.barrier();
    assert_eq!((drops.count(), cell.load(&ThreadRcu.read()).get()), (1, 2));
}

/// Going deeper does not make the reader look newer than it is.
#[test]
fn report_16_a_nested_section_across_grace_periods() {
    let rcu = ThreadRcu::alone();
    let cookie = ThreadRcu.start_poll();
    let reader = Reader::hold(|inside, leave| {
        let outer = ThreadRcu.read();
        inside.send(()).expect("the test");
        let _ = leave.recv();
        drop(outer);
    });
    eventually("from before", || rcu.poll(&cookie));
    let nested = Reader::hold(|inside, leave| {
        let outer = ThreadRcu.read();
        inside.send(()).expect("the test");
        while leave.recv_timeout(std::time::Duration::from_micros(100))
            == Err(mpsc::RecvTimeoutError::Timeout)
        {
            let inner = ThreadRcu.read();
            drop((ThreadRcu.read(), inner));
        }
        drop(outer);
    });
    let cookie = ThreadRcu.start_poll();
    reader.leave();
    assert_eq!(
        rcu.synchronize_timeout(SHORT),
        Err(Timeout::ReadersRemain),
        "the nested one entered its outer section before"
    );
    assert!(!rcu.poll(&cookie));
    nested.leave();
    eventually("over", || rcu.poll(&cookie));
}

/// An online thread holds grace periods up until it announces.
#[test]
fn announcing_lets_grace_periods_pass() {
    let rcu = QsbrRcu::alone();
    let announced = Arc::new(AtomicUsize::new(0));
    let told = Arc::clone(&announced);
    let (tx, rx) = mpsc::channel::<()>();
    let reader = Reader::hold(move |inside, leave| {
        let mut online = QsbrRcu.online();
        inside.send(()).expect("the test");
        while rx.recv().is_ok() {
            assert!(online.quiescent_state());
            told.fetch_add(1, Ordering::SeqCst);
        }
        let _ = leave.recv();
    });
    let mut announcements = 0;
    for _ in 0..4 {
        let cookie = rcu.start_poll();
        assert!(!rcu.poll(&cookie));
        assert_eq!(rcu.synchronize_timeout(SHORT), Err(Timeout::ReadersRemain));
        // One for a grace period that was in progress, one for this.
        for _ in 0..2 {
            assert!(!rcu.poll(&cookie));
            announcements += 1;
            tx.send(()).expect("reader");
            eventually("announced", || {
                announced.load(Ordering::SeqCst) == announcements
            });
            // Begins the next one, for which it has to announce again.
            if rcu.poll(&cookie) {
                break;
            }
        }
        eventually("over", || rcu.poll(&cookie));
    }
    drop(tx);
    reader.leave();
    rcu.synchronize();
}

/// With a second reason to be online, nothing is announced.
#[test]
fn announcing_needs_the_only_handle() {
    let rcu = QsbrRcu::alone();
    let drops = Drops::new();
    let cell = RcuCell::new_in(drops.value(1), QsbrRcu);
    let mut first = QsbrRcu.online();
    let mut second = QsbrRcu.online();
    let alone = QsbrRcu.read();
    let seen = cell.load(&alone);
    cell.replace(drops.value(2));
    let waits = || within("a timeout", || QsbrRcu.synchronize_timeout(SHORT));
    assert!(!first.quiescent_state());
    assert!(!second.quiescent_state());
    first.offline(|| assert_eq!(waits(), Err(Timeout::ReadersRemain)));
    assert!(message(|| first.synchronize()).contains("online"));
    drop(first);
    assert!(!second.quiescent_state(), "there is the guard");
    assert_eq!(waits(), Err(Timeout::ReadersRemain));
    assert_eq!((seen.get(), drops.count()), (1, 0));
    drop(alone);
    assert!(second.quiescent_state());
    assert_eq!(cell.load(&second.read()).get(), 2);
    drop(second);
    rcu.barrier();
    assert_eq!(drops.count(), 1);
}

/// Offline scopes: not waited for inside, online again behind, also after a
/// panic; what was loaded behind is protected.
#[test]
fn offline_scopes() {
    let rcu = QsbrRcu::alone();
    let drops = Drops::new();
    let cell = RcuCell::new_in(drops.value(0), QsbrRcu);
    let waits = || within("a timeout", || QsbrRcu.synchronize_timeout(SHORT));
    let mut online = QsbrRcu.online();
    for n in 1..4 {
        online.offline(|| {
            QsbrRcu.synchronize();
            let inner = QsbrRcu.online();
            assert_eq!(waits(), Err(Timeout::ReadersRemain));
            drop(inner);
            assert_eq!(waits(), Ok(()));
        });
        let thrown = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            online.offline(|| panic!("inside"));
        }));
        assert!(thrown.is_err());
        let guard = online.read();
        let seen = cell.load(&guard);
        cell.replace(drops.value(n));
        assert_eq!(waits(), Err(Timeout::ReadersRemain), "online again");
        assert_eq!(seen.get(), n - 1);
        drop(guard);
        online.synchronize();
    }
    drop(online);
    rcu.barrier();
    assert_eq!(drops.count(), 3);
}

/// Code that is generic over flavours can keep any of them behind an `Arc`.
#[test]
fn references_and_counts_are_flavours() {
    fn sum<F: Flavor>(flavor: F) -> usize {
        let cell = RcuCell::new_in(3, flavor);
        cell.update(|n| n + 1);
        let guard = cell.flavor().read();
        *cell.load(&guard)
    }
    static OWN: Rcu = Rcu::with_callbacks(Callbacks::Manual);
    assert_eq!(sum(&OWN), 4);
    assert_eq!(sum(Arc::new(Rcu::with_callbacks(Callbacks::Manual))), 4);
    let (_thread, _qsbr) = (ThreadRcu::alone(), QsbrRcu::alone());
    assert_eq!(sum(Arc::new(ThreadRcu)), 4);
    assert_eq!(sum(QsbrRcu), 4);
    assert_eq!(OWN.drain(), 1);
}
