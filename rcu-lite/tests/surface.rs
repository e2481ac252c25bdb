//! What every flavour promises: sections, grace periods, callbacks, numbers.

mod common;

use common::{
    Alone, Case, Counted, Drops, HANG, Reader, SHORT, eventually, flavours, rounds, within,
};
use rcu_lite::{Callbacks, RcuCell, Timeout};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

flavours!(
    drops_are_exact,
    values_are_whole_and_alive,
    sections_nest,
    sections_end_in_any_order,
    unsized_values_are_dropped,
    closures_of_every_size,
    callbacks_wait_for_readers,
    report_15_a_reader_behind_the_times,
    report_21_active_readers_between_idle_ones,
    a_cookie_waits_for_readers_from_before,
    a_cookie_ignores_readers_from_after,
    synchronize_ignores_readers_from_after,
    a_grace_period_ends_while_new_readers_keep_coming,
    a_timeout_leaves_a_grace_period_that_others_finish,
    a_timeout_of_nothing,
    a_timeout_of_for_ever,
    cookies_share_grace_periods,
    synchronizers_share_grace_periods,
    barrier_covers_what_other_threads_queued,
    drain_counts_what_it_ran,
    numbers,
    report_41_threads_that_never_read,
    report_39_a_structure_dropped_inside_a_section,
);

/// Values replaced by several threads: each is dropped once, all of them by
/// the end of a barrier.
fn drops_are_exact<F: Case>() {
    let rcu = F::alone();
    let drops = Drops::new();
    let cell = RcuCell::new_in(drops.value(0), rcu.clone());
    let (threads, each) = (4, rounds(2000, 10));
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                for n in 0..each {
                    cell.load(&rcu.read()).get();
                    cell.replace(drops.value(n));
                }
            });
        }
    });
    rcu.barrier();
    assert_eq!(drops.count(), threads * each);
    assert_eq!(rcu.since().run, (threads * each) as u64);
    drop(cell);
    assert_eq!(drops.count(), threads * each + 1);
}

/// Readers see both halves of a value, before and after others replaced it.
fn values_are_whole_and_alive<F: Case>() {
    let rcu = F::alone();
    let drops = Drops::new();
    let pair = |n: usize| (drops.value(n), !n);
    let cell = RcuCell::new_in(pair(0), rcu.clone());
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut looks = 0usize;
                while looks < 10 || !stop.load(Ordering::Relaxed) {
                    let guard = rcu.read();
                    let seen = cell.load(&guard);
                    for _ in 0..looks % 5 {
                        assert_eq!(seen.0.get(), !seen.1);
                        thread::yield_now();
                    }
                    assert_eq!(seen.0.get(), !seen.1);
                    looks += 1;
                }
            });
        }
        for n in 0..rounds(5000, 20) {
            match n % 64 {
                0 => rcu.synchronize(),
                1 => {
                    rcu.drain();
                }
                _ => {}
            }
            cell.replace(pair(n));
        }
        stop.store(true, Ordering::Relaxed);
    });
    rcu.barrier();
    assert_eq!(drops.count(), rounds(5000, 20));
}

/// A section within a section changes nothing for the outer one.
/// Bug log 16: entering again let the grace period pass.
fn sections_nest<F: Case>() {
    let rcu = F::alone();
    let drops = Drops::new();
    let cell = RcuCell::new_in(drops.value(7), rcu.clone());
    let other = rcu.clone();
    let outer = rcu.read();
    let seen = cell.load(&outer);
    for n in 0..rounds(50, 3) {
        let inner = rcu.read();
        let innermost = rcu.read();
        cell.replace(drops.value(n));
        drop(innermost);
        drop(inner);
    }
    let outcome = {
        let other = other.clone();
        within("a timeout", move || other.synchronize_timeout(SHORT))
    };
    assert_eq!(outcome, Err(Timeout::ReadersRemain));
    assert_eq!(seen.get(), 7);
    assert_eq!(drops.count(), 0);
    drop(outer);
    within("synchronize", move || other.synchronize());
    rcu.barrier();
    assert_eq!(drops.count(), rounds(50, 3));
}

/// The last guard protects, whichever that is.
fn sections_end_in_any_order<F: Case>() {
    let rcu = F::alone();
    for keep in 0..3 {
        let drops = Drops::new();
        let cell = RcuCell::new_in(drops.value(1), rcu.clone());
        let mut guards: Vec<_> = (0..3).map(|_| Some(rcu.read())).collect();
        let kept = guards[keep].take().expect("a guard");
        let seen = cell.load(&kept);
        drop(guards);
        cell.replace(drops.value(2));
        let other = rcu.clone();
        let outcome = within("a timeout", move || other.synchronize_timeout(SHORT));
        assert_eq!(outcome, Err(Timeout::ReadersRemain), "guard {keep}");
        assert_eq!((seen.get(), drops.count()), (1, 0));
        drop(kept);
        rcu.barrier();
        assert_eq!(drops.count(), 1);
    }
}

/// Boxes of unsized types.
fn unsized_values_are_dropped<F: Case>() {
    trait Named: Send {
        fn name(&self) -> usize;
    }
    impl Named for Counted {
        fn name(&self) -> usize {
            self.get()
        }
    }
    let rcu = F::alone();
    let drops = Drops::new();
    let object: Box<dyn Named> = Box::new(drops.value(3));
    assert_eq!(object.name(), 3);
    rcu.defer_drop(object);
    let slice: Box<[Counted]> = (0..5).map(|n| drops.value(n)).collect();
    rcu.defer_drop(slice);
    rcu.defer_drop(Box::<str>::from("text"));
    rcu.defer_drop(Box::new(drops.value(4)) as Box<dyn Named>);
    // No size at all, and no box of a closure either.
    rcu.defer_drop(Box::new(()));
    rcu.barrier();
    assert_eq!(drops.count(), 7);
    assert_eq!(rcu.since().run, 5);
}

/// Up to three words and more; what a closure captured is dropped with it.
fn closures_of_every_size<F: Case>() {
    fn one<F: Case, const WORDS: usize>(rcu: &Alone<F>, drops: &Drops, sum: &Arc<AtomicUsize>) {
        let words = [WORDS; WORDS];
        let (value, sum) = (drops.value(0), Arc::clone(sum));
        rcu.call(move || {
            value.get();
            sum.fetch_add(words.iter().sum(), Ordering::SeqCst);
        });
    }
    let rcu = F::alone();
    let (drops, sum) = (Drops::new(), Arc::new(AtomicUsize::new(0)));
    one::<F, 0>(&rcu, &drops, &sum);
    one::<F, 1>(&rcu, &drops, &sum);
    one::<F, 2>(&rcu, &drops, &sum);
    one::<F, 3>(&rcu, &drops, &sum);
    one::<F, 4>(&rcu, &drops, &sum);
    one::<F, 100>(&rcu, &drops, &sum);
    let plain = Arc::clone(&sum);
    rcu.call(move || {
        plain.fetch_add(1, Ordering::SeqCst);
    });
    rcu.barrier();
    assert_eq!(sum.load(Ordering::SeqCst), 1 + 4 + 9 + 16 + 10_000 + 1);
    assert_eq!((drops.count(), Arc::strong_count(&sum)), (6, 1));
}

/// No callback runs while a reader from before is inside; all do afterwards.
fn callbacks_wait_for_readers<F: Case>() {
    let rcu = F::alone();
    let drops = Drops::new();
    let reader = Reader::inside(&rcu.flavor);
    for n in 0..100 {
        rcu.defer_drop(Box::new(drops.value(n)));
    }
    // Whoever runs them has begun by now, unless it is slow; then this proves
    // less, and never fails wrongly.
    thread::sleep(SHORT);
    assert_eq!(drops.count(), 0);
    assert_eq!(rcu.since().queued - rcu.since().run, 100);
    reader.leave();
    rcu.barrier();
    assert_eq!(drops.count(), 100);
}

/// Bug log 15: a reader entered in an older epoch (phase) than the writer
/// believes. Grace periods pass before, between and after.
fn report_15_a_reader_behind_the_times<F: Case>() {
    let rcu = F::alone();
    for ahead in 0..4 {
        for _ in 0..ahead {
            rcu.synchronize();
        }
        let drops = Drops::new();
        let reader = Reader::inside(&rcu.flavor);
        let cookie = rcu.start_poll();
        // A second grace period's worth of polling must not pass the first.
        let later = rcu.start_poll();
        for _ in 0..20 {
            assert!(!rcu.poll(&cookie) && !rcu.poll(&later));
        }
        rcu.defer_drop(Box::new(drops.value(ahead)));
        assert_eq!(rcu.synchronize_timeout(SHORT), Err(Timeout::ReadersRemain));
        assert_eq!(drops.count(), 0);
        reader.leave();
        rcu.cond_synchronize(later);
        assert!(rcu.poll(&cookie));
        rcu.barrier();
        assert_eq!(drops.count(), 1);
    }
}

/// Bug log 21: idle, active, idle; the wait is given up and taken up again.
fn report_21_active_readers_between_idle_ones<F: Case>() {
    let rcu = F::alone();
    // A reader that has been inside and stays alive (its record remains its).
    let idle = |flavor: F| {
        Reader::hold(move |inside, leave| {
            drop(flavor.read());
            inside.send(()).expect("the test");
            let _ = leave.recv();
        })
    };
    for active in 0..3 {
        let mut readers: Vec<_> = (0..3)
            .map(|n| {
                if n == active {
                    Reader::inside(&rcu.flavor)
                } else {
                    idle(rcu.clone())
                }
            })
            .collect();
        for _ in 0..3 {
            assert_eq!(
                rcu.synchronize_timeout(Duration::from_millis(2)),
                Err(Timeout::ReadersRemain),
                "reader {active}"
            );
        }
        readers.remove(active).leave();
        rcu.synchronize();
        drop(readers);
    }
}

fn a_cookie_waits_for_readers_from_before<F: Case>() {
    let rcu = F::alone();
    let (first, second) = (Reader::inside(&rcu.flavor), Reader::inside(&rcu.flavor));
    let cookie = rcu.start_poll();
    assert!(!rcu.poll(&cookie));
    assert!(!rcu.poll(&cookie));
    first.leave();
    assert!(!rcu.poll(&cookie), "one of two has left");
    second.leave();
    // The worker may be leading; so not at the first look.
    eventually("over", || rcu.poll(&cookie));
    assert!(rcu.poll(&cookie), "stays over");
    rcu.cond_synchronize(cookie);
    // With nobody inside, a grace period is over by asking.
    let cookie = rcu.start_poll();
    eventually("over", || rcu.poll(&cookie));
}

/// A grace period never waits for a reader that began after it.
fn a_cookie_ignores_readers_from_after<F: Case>() {
    let rcu = F::alone();
    for _ in 0..4 {
        let before = Reader::inside(&rcu.flavor);
        let cookie = rcu.start_poll();
        assert!(!rcu.poll(&cookie));
        let after = Reader::inside(&rcu.flavor);
        assert!(!rcu.poll(&cookie));
        before.leave();
        eventually("over, with a later reader inside", || rcu.poll(&cookie));
        // And that reader does hold up the next one.
        let next = rcu.start_poll();
        assert!(!rcu.poll(&next));
        after.leave();
        eventually("over", || rcu.poll(&next));
    }
}

/// The same for a thread that waits.
fn synchronize_ignores_readers_from_after<F: Case>() {
    let rcu = F::alone();
    let before = Reader::inside(&rcu.flavor);
    let cookie = rcu.start_poll();
    assert!(!rcu.poll(&cookie), "in progress");
    let after = Reader::inside(&rcu.flavor);
    let (flavor, done) = (rcu.clone(), Arc::new(AtomicBool::new(false)));
    let waiter = {
        let done = Arc::clone(&done);
        thread::spawn(move || {
            flavor.cond_synchronize(cookie);
            done.store(true, Ordering::SeqCst);
        })
    };
    thread::sleep(SHORT);
    assert!(!done.load(Ordering::SeqCst));
    before.leave();
    eventually("returns", || done.load(Ordering::SeqCst));
    waiter.join().expect("waiter");
    after.leave();
}

/// Readers overlap, so that somebody is inside at every moment.
fn a_grace_period_ends_while_new_readers_keep_coming<F: Case>() {
    let rcu = F::alone();
    let stop = Arc::new(AtomicBool::new(false));
    let inside = Arc::new(AtomicUsize::new(0));
    let readers: Vec<_> = (0..2)
        .map(|_| {
            let (flavor, stop, inside) = (rcu.clone(), Arc::clone(&stop), Arc::clone(&inside));
            thread::spawn(move || {
                while !stop.load(Ordering::SeqCst) {
                    let guard = flavor.read();
                    let mine = inside.fetch_add(1, Ordering::SeqCst) + 1;
                    // Until the other one has entered after this one.
                    while inside.load(Ordering::SeqCst) == mine && !stop.load(Ordering::SeqCst) {
                        thread::yield_now();
                    }
                    drop(guard);
                }
            })
        })
        .collect();
    // The first stays inside until the second has come.
    while inside.load(Ordering::SeqCst) < 2 {
        thread::yield_now();
    }
    let flavor = rcu.clone();
    within("synchronize among readers", move || {
        for n in 0..rounds(200, 3) {
            if n % 2 == 0 {
                flavor.synchronize();
            } else {
                flavor.barrier();
            }
        }
    });
    stop.store(true, Ordering::SeqCst);
    for reader in readers {
        reader.join().expect("reader");
    }
}

/// The grace period of somebody who gave up goes on, and is not begun anew.
fn a_timeout_leaves_a_grace_period_that_others_finish<F: Case>() {
    let rcu = F::alone();
    let reader = Reader::inside(&rcu.flavor);
    let started = Instant::now();
    for _ in 0..3 {
        assert_eq!(rcu.synchronize_timeout(SHORT), Err(Timeout::ReadersRemain));
    }
    assert!(started.elapsed() >= SHORT * 3, "it waits that long");
    assert_eq!(rcu.since().grace_periods, 0);
    let cookie = rcu.start_poll();
    let after = Reader::inside(&rcu.flavor);
    reader.leave();
    // The abandoned one can end, although `after` is inside; the cookie's,
    // which began after it, cannot.
    eventually("the abandoned one ends", || {
        assert!(!rcu.poll(&cookie));
        rcu.since().grace_periods == 1
    });
    after.leave();
    assert_eq!(rcu.synchronize_timeout(HANG), Ok(()));
    assert!(rcu.poll(&cookie));
    assert!(rcu.since().grace_periods <= 3, "{:?}", rcu.stats());
}

/// Looks once: enough if nobody is inside.
fn a_timeout_of_nothing<F: Case>() {
    let rcu = F::alone();
    let reader = Reader::inside(&rcu.flavor);
    assert_eq!(
        rcu.synchronize_timeout(Duration::ZERO),
        Err(Timeout::ReadersRemain)
    );
    reader.leave();
    assert_eq!(rcu.synchronize_timeout(Duration::ZERO), Ok(()));
}

/// Beyond the end of the clock.
fn a_timeout_of_for_ever<F: Case>() {
    let rcu = F::alone();
    assert_eq!(rcu.synchronize_timeout(Duration::MAX), Ok(()));
    let reader = Reader::inside(&rcu.flavor);
    let flavor = rcu.clone();
    let waiter = thread::spawn(move || flavor.synchronize_timeout(Duration::MAX));
    thread::sleep(SHORT);
    assert!(!waiter.is_finished());
    reader.leave();
    assert_eq!(waiter.join().expect("waiter"), Ok(()));
}

/// Any number of requests that are made while a reader is inside need two
/// grace periods.
fn cookies_share_grace_periods<F: Case>() {
    let rcu = F::alone();
    let reader = Reader::inside(&rcu.flavor);
    let cookies: Vec<_> = (0..rounds(10_000, 50)).map(|_| rcu.start_poll()).collect();
    // From other threads as well, who then wait.
    let begun = Arc::new(Barrier::new(9));
    let waiters: Vec<_> = (0..8)
        .map(|_| {
            let (flavor, begun) = (rcu.clone(), Arc::clone(&begun));
            thread::spawn(move || {
                let cookie = flavor.start_poll();
                begun.wait();
                flavor.cond_synchronize(cookie);
            })
        })
        .collect();
    begun.wait();
    reader.leave();
    for waiter in waiters {
        waiter.join().expect("waiter");
    }
    for cookie in cookies {
        rcu.cond_synchronize(cookie);
    }
    let grown = rcu.since().grace_periods;
    assert!((1..=2).contains(&grown), "{grown}");
}

fn synchronizers_share_grace_periods<F: Case>() {
    const THREADS: usize = if cfg!(miri) { 6 } else { 40 };
    let rcu = F::alone();
    let reader = Reader::inside(&rcu.flavor);
    let calling = Arc::new(AtomicUsize::new(0));
    let waiters: Vec<_> = (0..THREADS)
        .map(|_| {
            let (flavor, calling) = (rcu.clone(), Arc::clone(&calling));
            thread::spawn(move || {
                calling.fetch_add(1, Ordering::SeqCst);
                flavor.synchronize();
            })
        })
        .collect();
    eventually("all call", || calling.load(Ordering::SeqCst) == THREADS);
    // Those who counted themselves need a moment to be inside the call. Any
    // that are late have a grace period of their own: so not exact.
    thread::sleep(Duration::from_millis(50));
    assert!(waiters.iter().all(|waiter| !waiter.is_finished()));
    reader.leave();
    for waiter in waiters {
        waiter.join().expect("waiter");
    }
    let grown = rcu.since().grace_periods as usize;
    assert!((1..=THREADS / 2).contains(&grown), "{grown}");
}

/// Everything that was queued before, by threads that live and that are gone.
fn barrier_covers_what_other_threads_queued<F: Case>() {
    let rcu = F::alone();
    let drops = Drops::new();
    for round in 1..=rounds(20, 2) {
        let queued = Arc::new(Barrier::new(4));
        let threads: Vec<_> = (0..3)
            .map(|alive| {
                let (flavor, drops, queued) = (rcu.clone(), drops.clone(), Arc::clone(&queued));
                thread::spawn(move || {
                    for n in 0..rounds(100, 5) {
                        flavor.defer_drop(Box::new(drops.value(n)));
                    }
                    queued.wait();
                    if alive == 0 {
                        flavor.barrier();
                    }
                })
            })
            .collect();
        queued.wait();
        rcu.barrier();
        assert_eq!(drops.count(), round * 3 * rounds(100, 5));
        for thread in threads {
            thread.join().expect("a thread");
        }
    }
}

fn drain_counts_what_it_ran<F: Case>() {
    let rcu = F::alone();
    rcu.only(Callbacks::Manual);
    let drops = Drops::new();
    for n in 0..50 {
        rcu.defer_drop(Box::new(drops.value(n)));
    }
    assert_eq!((rcu.drain(), drops.count()), (50, 50));
    assert_eq!((rcu.drain(), drops.count()), (0, 50));
}

fn numbers<F: Case>() {
    let rcu = F::alone();
    let reader = Reader::inside(&rcu.flavor);
    for _ in 0..10 {
        rcu.call(|| ());
    }
    let since = rcu.since();
    assert_eq!((since.queued, since.run, since.panicked), (10, 0, 0));
    assert!(since.pending >= 10);
    assert_eq!(since.grace_periods, 0);
    assert_eq!(rcu.synchronize_timeout(SHORT), Err(Timeout::ReadersRemain));
    reader.leave();
    rcu.barrier();
    let since = rcu.since();
    assert_eq!((since.queued, since.run, since.pending), (10, 10, 0));
    assert!(since.grace_periods >= 1);
    assert!(since.longest >= SHORT, "{since:?}");
    assert_eq!(since.barriers_lost, 0);
    let before = rcu.stats().grace_periods;
    for _ in 0..5 {
        rcu.synchronize();
    }
    assert_eq!(rcu.stats().grace_periods - before, 5, "none for nothing");
    assert!(format!("{:?}", rcu.stats()).contains("grace_periods"));
}

/// Bug log 41: every operation as a thread's first, and as its only one.
fn report_41_threads_that_never_read<F: Case>() {
    let rcu = F::alone();
    let drops = Drops::new();
    let cell = Arc::new(RcuCell::new_in(drops.value(0), rcu.clone()));
    type Only<F> = fn(&F, &Drops, &RcuCell<Counted, F>);
    let only: [Only<F>; 10] = [
        |f, _, _| f.synchronize(),
        |f, _, _| f.synchronize_timeout(HANG).expect("nobody is inside"),
        |f, _, _| f.barrier(),
        |f, _, _| assert_eq!(f.drain(), 0),
        |f, _, _| f.cond_synchronize(f.start_poll()),
        |f, _, _| eventually("over", || f.poll(&f.start_poll()) || f.stats().queued > 0),
        |f, drops, _| f.defer_drop(Box::new(drops.value(1))),
        |_, drops, cell| cell.replace(drops.value(2)),
        |_, drops, cell| cell.update(|old| drops.value(old.get() + 1)),
        |f, _, cell| assert_ne!(cell.load(&f.read()).get(), 0),
    ];
    for f in only {
        let (flavor, drops, cell) = (rcu.clone(), drops.clone(), Arc::clone(&cell));
        within("an operation of a new thread", move || {
            f(&flavor, &drops, &cell)
        });
    }
    rcu.barrier();
    assert_eq!(drops.count(), 3);
    assert_eq!(cell.load(&rcu.read()).get(), 3);
}

/// Bug log 39: dropping a structure waits for no grace period, so it may
/// happen inside a section.
fn report_39_a_structure_dropped_inside_a_section<F: Case>() {
    let rcu = F::alone();
    let drops = Drops::new();
    let (flavor, made) = (rcu.clone(), drops.clone());
    let forever = Reader::inside(&rcu.flavor);
    within("a drop inside a section", move || {
        let cell = RcuCell::new_in(made.value(0), flavor.clone());
        let list = rcu_lite::RcuList::new_in(flavor.clone());
        (0..10).for_each(|n| list.push_back(made.value(n)));
        let guard = flavor.read();
        cell.replace(made.value(1));
        list.remove_if(|value| value.get() % 2 == 0);
        drop((cell, list));
        drop(guard);
    });
    // What was in them is gone; what was replaced waits for the reader.
    assert_eq!(drops.count(), 1 + 5);
    forever.leave();
    rcu.barrier();
    assert_eq!(drops.count(), 2 + 10);
}
