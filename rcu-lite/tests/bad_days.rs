//! Waiting where one must not, callbacks that misbehave, modes that change.

mod common;

use common::{
    Case, Drops, HANG, OnDrop, Reader, SHORT, eventually, flavours, message, modes, rounds, text,
    within,
};
use rcu_lite::{Callbacks, Flavor, QsbrRcu, Rcu, RcuCell, ThreadRcu, Timeout};
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;

flavours!(
    report_42_waiting_inside_a_section,
    report_37_queuing_inside_a_section_never_blocks,
    report_44_callbacks_that_panic,
    payloads_that_panic_when_dropped,
    report_45_values_that_panic_when_dropped,
    callbacks_queue_callbacks,
    a_chain_of_callbacks,
    report_38_callbacks_that_synchronize,
    callbacks_that_synchronize_inline,
    callbacks_that_wait_for_themselves,
    callbacks_that_use_everything_else,
    callbacks_of_another_flavour_may_wait,
    inline_keeps_the_backlog_small,
    inline_waits_for_no_reader,
    manual_runs_nothing,
    modes_change_with_callbacks_waiting,
    report_4_barrier_against_threads_that_leave,
    report_29_a_reader_that_stays_inside,
    readers_in_every_mode,
);

/// Every way to wait.
const WAITS: [&str; 5] = [
    "synchronize",
    "synchronize_timeout",
    "barrier",
    "drain",
    "cond_synchronize",
];

fn wait<F: Flavor>(flavor: &F, how: &str) {
    match how {
        "synchronize" => flavor.synchronize(),
        "synchronize_timeout" => drop(flavor.synchronize_timeout(HANG)),
        "barrier" => flavor.barrier(),
        "drain" => _ = flavor.drain(),
        "cond_synchronize" => flavor.cond_synchronize(flavor.start_poll()),
        other => unreachable!("{other}"),
    }
}

/// Bug log 42: told with a panic where the flavour can tell, bounded where it
/// cannot.
fn report_42_waiting_inside_a_section<F: Case>() {
    let rcu = F::alone();
    let drops = Drops::new();
    let cell = RcuCell::new_in(drops.value(1), rcu.clone());
    let guard = rcu.read();
    let inner = rcu.read();
    if F::PANICS_INSIDE {
        for how in WAITS {
            let said = message(|| wait(&rcu.flavor, how));
            assert!(said.starts_with(&format!("`{how}` called")), "{said}");
            assert!(said.contains("it would wait for itself"), "{said}");
        }
    } else {
        assert_eq!(rcu.synchronize_timeout(SHORT), Err(Timeout::ReadersRemain));
    }
    // Neither polling nor queuing waits; and what is over is over.
    let cookie = rcu.start_poll();
    assert!(!rcu.poll(&cookie));
    cell.replace(drops.value(2));
    drop(inner);
    if F::PANICS_INSIDE {
        for how in WAITS {
            assert!(message(|| wait(&rcu.flavor, how)).contains(how));
        }
    }
    let seen = cell.load(&guard);
    assert_eq!((seen.get(), drops.count()), (2, 0));
    drop(guard);
    rcu.cond_synchronize(cookie.clone());
    let guard = rcu.read();
    rcu.cond_synchronize(cookie);
    drop(guard);
    // The thread is what it was.
    for how in WAITS {
        wait(&rcu.flavor, how);
    }
    assert_eq!(drops.count(), 1);
}

/// Bug log 42, the other guards of `QsbrRcu`: a handle, with and without a
/// guard of it.
#[test]
fn report_42_waiting_online() {
    let _alone = QsbrRcu::alone();
    let mut online = QsbrRcu.online();
    for how in WAITS {
        let said = message(|| wait(&QsbrRcu, how));
        assert!(said.contains(how) && said.contains("online"), "{said}");
        assert!(said.contains("it would wait for itself"), "{said}");
    }
    let guard = online.read();
    assert!(message(|| QsbrRcu.synchronize()).contains("online"));
    drop(guard);
    online.offline(|| WAITS.iter().for_each(|how| wait(&QsbrRcu, how)));
    online.synchronize();
    let second = QsbrRcu.online();
    online.offline(|| assert!(message(|| QsbrRcu.barrier()).contains("online")));
    drop((second, online));
    QsbrRcu.synchronize();
}

/// A section of one flavour says nothing about the others.
#[test]
fn report_42_waiting_for_another_flavour() {
    let (thread, qsbr, own) = (ThreadRcu::alone(), QsbrRcu::alone(), Arc::<Rcu>::alone());
    let guard = thread.read();
    WAITS.iter().for_each(|how| wait(&QsbrRcu, how));
    WAITS.iter().for_each(|how| wait(&*own, how));
    drop(guard);
    let guard = qsbr.read();
    WAITS.iter().for_each(|how| wait(&ThreadRcu, how));
    drop(guard);
}

/// Bug log 37 and 38: whatever waits elsewhere, with readers that never leave.
fn report_37_queuing_inside_a_section_never_blocks<F: Case>() {
    let rcu = F::alone();
    let drops = Drops::new();
    let forever = Reader::inside(&rcu.flavor);
    // Something to wait for, for the barrier.
    rcu.defer_drop(Box::new(drops.value(0)));
    let waiters: Vec<_> = [Flavor::synchronize as fn(&F), Flavor::barrier]
        .into_iter()
        .map(|wait| {
            let flavor = rcu.clone();
            thread::spawn(move || wait(&flavor))
        })
        .collect();
    let mut queued = 1;
    for mode in modes() {
        rcu.set_callbacks(mode);
        let (flavor, drops) = (rcu.clone(), drops.clone());
        let each = rounds(5000, 50);
        within("queuing inside a section", move || {
            let guard = flavor.read();
            let inner = flavor.read();
            for n in 0..each {
                flavor.defer_drop(Box::new(drops.value(n)));
                if n % 16 == 0 {
                    let drops = drops.clone();
                    flavor.call(move || drops.one());
                }
            }
            let cookie = flavor.start_poll();
            assert!(!flavor.poll(&cookie));
            drop((guard, inner));
        });
        queued += each + each.div_ceil(16);
    }
    assert_eq!(drops.count(), 0);
    assert!(waiters.iter().all(|waiter| !waiter.is_finished()));
    forever.leave();
    for waiter in waiters {
        waiter.join().expect("waiter");
    }
    rcu.barrier();
    assert_eq!(drops.count(), queued);
}

/// Bug log 44: ok, panic, ok: the others run, each once.
fn report_44_callbacks_that_panic<F: Case>() {
    let rcu = F::alone();
    for mode in modes() {
        rcu.only(mode);
        let (drops, before) = (Drops::new(), rcu.stats());
        for n in 0..90 {
            let value = drops.value(n);
            rcu.call(move || {
                value.get();
                assert!(n % 3 != 1, "on purpose");
            });
        }
        rcu.barrier();
        let stats = rcu.stats();
        assert_eq!(drops.count(), 90, "{mode:?}");
        assert_eq!(stats.run - before.run, 90, "{mode:?}");
        assert_eq!(stats.panicked - before.panicked, 30, "{mode:?}");
        assert_eq!(stats.pending, 0);
    }
}

/// What was panicked with panics as well.
fn payloads_that_panic_when_dropped<F: Case>() {
    let rcu = F::alone();
    for mode in modes() {
        rcu.only(mode);
        let (drops, before) = (Drops::new(), rcu.stats().panicked);
        for n in 0..6 {
            let drops = drops.clone();
            rcu.call(move || {
                let drops = drops.clone();
                panic_any(OnDrop(move || {
                    drops.one();
                    // With something that can be leaked: it may panic, too.
                    if n % 2 == 0 {
                        panic_any(());
                    }
                }));
            });
        }
        rcu.barrier();
        assert_eq!(drops.count(), 6, "{mode:?}");
        assert_eq!(rcu.stats().panicked - before, 6, "{mode:?}");
        let after = drops.clone();
        rcu.call(move || after.one());
        rcu.barrier();
        assert_eq!(drops.count(), 7, "{mode:?}");
    }
}

/// Bug log 45: the panic comes out of a deferred drop.
fn report_45_values_that_panic_when_dropped<F: Case>() {
    let rcu = F::alone();
    let drops = Drops::new();
    for n in 0..10 {
        let drops = drops.clone();
        rcu.defer_drop(Box::new(OnDrop(move || {
            drops.one();
            assert!(n % 2 == 0, "in drop");
        })));
    }
    rcu.barrier();
    assert_eq!((drops.count(), rcu.since().panicked), (10, 5));
}

/// Bug log 34, for callbacks: three levels, in every mode.
fn callbacks_queue_callbacks<F: Case>() {
    fn level<F: Case>(flavor: F, drops: Drops, left: usize) {
        drops.one();
        if left > 0 {
            for _ in 0..3 {
                let (f, d) = (flavor.clone(), drops.clone());
                flavor.call(move || level(f, d, left - 1));
            }
        }
    }
    let rcu = F::alone();
    for mode in modes() {
        rcu.only(mode);
        let drops = Drops::new();
        let levels = rounds(4, 2);
        level(rcu.clone(), drops.clone(), levels);
        // Each barrier covers what was queued before it: one level more.
        for _ in 0..levels {
            rcu.barrier();
        }
        let all: usize = (0..=levels as u32).map(|n| 3usize.pow(n)).sum();
        assert_eq!(drops.count(), all, "{mode:?}");
        assert_eq!(rcu.stats().pending, 0, "{mode:?}");
    }
}

/// Each callback queues the next: nothing recurses, and it ends. So many for
/// the flavour whose grace periods cost no system call that no stack would
/// hold them (fewer in ThreadSanitizer's build, which is slow).
fn a_chain_of_callbacks<F: Case>() {
    fn link<F: Case>(flavor: F, left: Arc<AtomicUsize>) {
        if left.fetch_sub(1, Ordering::SeqCst) > 1 {
            let f = flavor.clone();
            flavor.call(move || link(f, left));
        }
    }
    let rcu = F::alone();
    for mode in modes() {
        rcu.only(mode);
        // A worker naps between them.
        let links = match mode {
            Callbacks::Worker => 200,
            Callbacks::Inline { threshold: 1 } if F::NAME == "qsbr" => {
                let tsan = cfg!(percpu_portable);
                rounds(if tsan { 20_000 } else { 200_000 }, 8)
            }
            _ => rounds(10_000, 8),
        };
        let left = Arc::new(AtomicUsize::new(links));
        link(rcu.clone(), Arc::clone(&left));
        while left.load(Ordering::SeqCst) > 0 {
            match mode {
                // Any thread that queues goes on with it.
                Callbacks::Inline { threshold: 1 } => rcu.call(|| ()),
                Callbacks::Worker => thread::yield_now(),
                _ => rcu.barrier(),
            }
        }
        rcu.barrier();
        assert_eq!(Arc::strong_count(&left), 1, "{mode:?}");
        assert_eq!(rcu.stats().pending, 0);
    }
}

/// Bug log 38: whoever runs callbacks may wait for readers.
fn report_38_callbacks_that_synchronize<F: Case>() {
    let rcu = F::alone();
    for mode in modes() {
        if let Callbacks::Inline { .. } = mode {
            continue;
        }
        rcu.only(mode);
        let (drops, before) = (Drops::new(), rcu.stats().panicked);
        for _ in 0..5 {
            let (flavor, drops) = (rcu.clone(), drops.clone());
            rcu.call(move || {
                flavor.synchronize();
                assert_eq!(flavor.synchronize_timeout(HANG), Ok(()));
                flavor.cond_synchronize(flavor.start_poll());
                drops.one();
            });
        }
        let flavor = rcu.clone();
        within("callbacks that synchronize", move || flavor.barrier());
        assert_eq!((drops.count(), rcu.stats().panicked - before), (5, 0));
    }
}

/// Run by a thread that queues, perhaps inside a section: told by a panic, in
/// each flavour. The same callback may wait when a barrier runs it.
fn callbacks_that_synchronize_inline<F: Case>() {
    let rcu = F::alone();
    rcu.only(Callbacks::Inline { threshold: 1 });
    let said = Arc::new(Mutex::new(Vec::new()));
    let queue = || {
        for how in ["synchronize", "synchronize_timeout", "cond_synchronize"] {
            let (flavor, said) = (rcu.clone(), Arc::clone(&said));
            rcu.call(move || {
                // Not over by asking, lest `cond_synchronize` need not wait.
                let inside = how == "cond_synchronize";
                let reader = inside.then(|| Reader::inside(&flavor));
                let told = catch_unwind(AssertUnwindSafe(|| wait(&flavor, how)))
                    .map_err(|payload| text(&*payload));
                drop(reader);
                said.lock().expect("said").push(told);
            });
        }
    };
    queue();
    // Somebody else's barrier may not be at work in these tests.
    rcu.call(|| ());
    let told = std::mem::take(&mut *said.lock().expect("said"));
    assert_eq!(told.len(), 3, "run inline");
    for one in told {
        let text = one.expect_err("waited");
        assert!(text.contains("Callbacks::Inline"), "{text}");
    }
    assert_eq!(rcu.since().panicked, 0, "caught above");
    rcu.barrier();
}

/// In every mode: a panic, which is counted, and nothing hangs.
fn callbacks_that_wait_for_themselves<F: Case>() {
    let rcu = F::alone();
    for mode in modes() {
        rcu.only(mode);
        let before = rcu.stats().panicked;
        let said = Arc::new(Mutex::new(Vec::new()));
        for n in 0..4 {
            let (flavor, said) = (rcu.clone(), Arc::clone(&said));
            rcu.call(move || {
                let wait = || {
                    if n % 2 == 0 {
                        flavor.barrier()
                    } else {
                        _ = flavor.drain()
                    }
                };
                let payload = catch_unwind(AssertUnwindSafe(wait)).expect_err("it waited");
                said.lock().expect("said").push(text(&*payload));
                wait();
            });
        }
        let flavor = rcu.clone();
        within("callbacks that wait", move || flavor.barrier());
        let said = said.lock().expect("said");
        assert_eq!(said.len(), 4, "{mode:?}");
        for text in &*said {
            assert!(
                text.contains("inside a callback of the same domain"),
                "{text}"
            );
        }
        assert_eq!(rcu.stats().panicked - before, 4, "{mode:?}");
    }
}

/// Sections, cells, polls, numbers, another mode: all from inside a callback.
fn callbacks_that_use_everything_else<F: Case>() {
    const LINKS: usize = rounds(10, 2);
    let rcu = F::alone();
    for mode in modes() {
        rcu.only(mode);
        let (drops, before) = (Drops::new(), rcu.stats().panicked);
        let cell = Arc::new(RcuCell::new_in(drops.value(0), rcu.clone()));
        for n in 1..=LINKS {
            let (flavor, drops, cell) = (rcu.clone(), drops.clone(), Arc::clone(&cell));
            rcu.call(move || {
                let guard = flavor.read();
                let seen = cell.load(&guard).get();
                cell.replace(drops.value(n));
                assert!(seen < n, "in some order of its own: {seen}, {n}");
                drop(guard);
                let cookie = flavor.start_poll();
                let _ = flavor.poll(&cookie);
                assert!(flavor.stats().queued > 0);
                flavor.set_callbacks(mode);
            });
            rcu.barrier();
        }
        drop(rcu.read());
        rcu.barrier();
        assert_eq!((drops.count(), rcu.stats().panicked - before), (LINKS, 0));
    }
}

/// A callback may run another domain's callbacks.
fn callbacks_of_another_flavour_may_wait<F: Case>() {
    let rcu = F::alone();
    for mode in modes() {
        rcu.only(mode);
        let drops = Drops::new();
        let other = Arc::new(Rcu::with_callbacks(Callbacks::Manual));
        for n in 0..3 {
            other.defer_drop(Box::new(drops.value(n)));
            let (other, drops) = (Arc::clone(&other), drops.clone());
            rcu.call(move || {
                other.synchronize();
                other.barrier();
                other.defer_drop(Box::new(drops.value(n)));
                assert_eq!(other.drain(), 1);
            });
        }
        let flavor = rcu.clone();
        within("a callback that waits elsewhere", move || flavor.barrier());
        assert_eq!(drops.count(), 6, "{mode:?}");
    }
}

/// With nobody inside, no more than a shard's threshold wait (and what other
/// CPUs' shards hold).
fn inline_keeps_the_backlog_small<F: Case>() {
    const SHARDS: u64 = 32;
    let rcu = F::alone();
    for threshold in [1, 2, 64] {
        rcu.only(Callbacks::Inline { threshold });
        let fill = || {
            let drops = Drops::new();
            let (mut most, many) = (0, rounds(20_000, 60));
            for n in 0..many {
                rcu.defer_drop(Box::new(drops.value(n)));
                most = most.max(rcu.stats().pending);
            }
            assert!(drops.count() as u64 >= many as u64 - most);
            rcu.barrier();
            assert_eq!(drops.count(), many);
            most
        };
        // A worker of the mode before that lost its CPU in the middle of a pass
        // holds up the inline ones until it goes on: then once more.
        let bound = SHARDS * threshold as u64;
        let most = (0..5).map(|_| fill()).find(|&most| most <= bound);
        assert!(most.is_some(), "more than {bound} of {threshold}, always");
    }
}

/// With a reader inside, nothing is run and nothing waits; afterwards those
/// who queue run what is due.
fn inline_waits_for_no_reader<F: Case>() {
    let rcu = F::alone();
    rcu.only(Callbacks::Inline { threshold: 4 });
    let many = rounds(1000, 20);
    for _ in 0..3 {
        let drops = Drops::new();
        let reader = Reader::inside(&rcu.flavor);
        for n in 0..many {
            rcu.defer_drop(Box::new(drops.value(n)));
            assert_eq!(drops.count(), 0, "before its grace period");
        }
        reader.leave();
        let mut more = many;
        eventually("those who queue run them", || {
            rcu.defer_drop(Box::new(drops.value(more)));
            more += 1;
            drops.count() >= many
        });
        assert!(rcu.stats().pending < many as u64);
        rcu.barrier();
        assert_eq!(drops.count(), more);
    }
}

fn manual_runs_nothing<F: Case>() {
    let rcu = F::alone();
    rcu.only(Callbacks::Manual);
    let drops = Drops::new();
    for n in 0..rounds(5000, 50) {
        rcu.defer_drop(Box::new(drops.value(n)));
    }
    // Grace periods alone run no callbacks.
    rcu.synchronize();
    rcu.cond_synchronize(rcu.start_poll());
    thread::sleep(SHORT);
    assert_eq!((drops.count(), rcu.stats().worker), (0, false));
    assert_eq!(rcu.since().pending, rounds(5000, 50) as u64);
    assert_eq!(rcu.drain(), rounds(5000, 50));
    assert_eq!(drops.count(), rounds(5000, 50));
}

/// Each mode to each: nothing is lost, and whoever is now in charge runs what
/// waited.
fn modes_change_with_callbacks_waiting<F: Case>() {
    let rcu = F::alone();
    for from in modes() {
        for to in modes() {
            rcu.only(from);
            let drops = Drops::new();
            let reader = Reader::inside(&rcu.flavor);
            for n in 0..10 {
                rcu.defer_drop(Box::new(drops.value(n)));
            }
            // In `Inline` mode a batch has been taken and left by now.
            rcu.set_callbacks(to);
            for n in 0..10 {
                rcu.defer_drop(Box::new(drops.value(n)));
            }
            assert_eq!(drops.count(), 0, "{from:?} to {to:?}");
            reader.leave();
            match to {
                Callbacks::Worker => {
                    eventually("the worker runs all", || drops.count() == 20);
                }
                Callbacks::Inline { threshold } => {
                    let mut more = 0;
                    eventually("those who queue run all", || {
                        (0..threshold).for_each(|_| rcu.call(|| ()));
                        more += 1;
                        drops.count() == 20
                    });
                }
                _ => {
                    rcu.drain();
                }
            }
            rcu.barrier();
            assert_eq!(drops.count(), 20, "{from:?} to {to:?}");
            assert_eq!(rcu.stats().pending, 0, "{from:?} to {to:?}");
        }
    }
}

/// Bug log 4: threads end with callbacks queued while barriers run: exact, and
/// it returns.
fn report_4_barrier_against_threads_that_leave<F: Case>() {
    let rcu = F::alone();
    for mode in modes() {
        rcu.only(mode);
        let (drops, each) = (Drops::new(), rounds(40, 3));
        let mut queued = 0;
        for _ in 0..rounds(40, 2) {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    let (flavor, drops) = (rcu.clone(), drops.clone());
                    thread::spawn(move || {
                        for n in 0..each {
                            drop(flavor.read());
                            flavor.defer_drop(Box::new(drops.value(n)));
                        }
                    })
                })
                .collect();
            let flavor = rcu.clone();
            within("barrier", move || flavor.barrier());
            for thread in threads {
                thread.join().expect("a thread");
            }
            queued += 4 * each;
            rcu.barrier();
            assert_eq!(drops.count(), queued, "{mode:?}");
        }
    }
}

/// Bug log 29: one reader parks, a writer goes on. The backlog grows, is told,
/// and goes.
fn report_29_a_reader_that_stays_inside<F: Case>() {
    let rcu = F::alone();
    let drops = Drops::new();
    let many = rounds(200_000, 100);
    let reader = Reader::inside(&rcu.flavor);
    for n in 0..many {
        rcu.defer_drop(Box::new(drops.value(n)));
    }
    let since = rcu.since();
    assert_eq!((since.pending, since.run), (many as u64, 0));
    assert_eq!(drops.count(), 0);
    reader.leave();
    rcu.barrier();
    assert_eq!((drops.count(), rcu.stats().pending), (many, 0));
}

/// Values are alive under their guards, whoever runs the callbacks, also for
/// threads that run them inside sections of their own.
fn readers_in_every_mode<F: Case>() {
    let rcu = F::alone();
    for mode in modes() {
        rcu.only(mode);
        let drops = Drops::new();
        let cell = RcuCell::new_in(drops.value(0), rcu.clone());
        let each = rounds(2000, 15);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for n in 0..each {
                        let guard = rcu.read();
                        let seen = cell.load(&guard);
                        cell.replace(drops.value(n));
                        seen.get();
                        if n % 8 == 0 {
                            thread::yield_now();
                        }
                        seen.get();
                        drop(guard);
                    }
                });
            }
        });
        rcu.barrier();
        assert_eq!(drops.count(), 3 * each, "{mode:?}");
    }
}

/// A callback that runs on the thread of a long section, with its guard there.
#[test]
fn an_inline_callback_does_not_run_before_its_own_threads_section_ends() {
    fn check<F: Case>() {
        let rcu = F::alone();
        rcu.only(Callbacks::Inline { threshold: 1 });
        let drops = Drops::new();
        let guard = rcu.read();
        let many = rounds(100, 10);
        for n in 0..many {
            rcu.defer_drop(Box::new(drops.value(n)));
        }
        assert_eq!(drops.count(), 0);
        drop(guard);
        rcu.call(|| ());
        rcu.call(|| ());
        assert_eq!(drops.count(), many);
        rcu.barrier();
    }
    check::<Arc<Rcu>>();
    check::<ThreadRcu>();
    check::<QsbrRcu>();
}

/// A poisoned lock, a panicking reader: the domain does not mind.
#[test]
fn a_reader_that_panics_leaves() {
    fn check<F: Case>() {
        let rcu = F::alone();
        let flavor = rcu.clone();
        let reader = thread::spawn(move || {
            let _outer = flavor.read();
            let _inner = flavor.read();
            panic!("inside a section");
        });
        assert!(reader.join().is_err());
        assert_eq!(rcu.synchronize_timeout(HANG), Ok(()));
    }
    check::<Arc<Rcu>>();
    check::<&'static Rcu>();
    check::<ThreadRcu>();
    check::<QsbrRcu>();
}

/// Threads that start and stop being the first user of a mode.
#[test]
fn modes_change_while_others_queue() {
    fn check<F: Case>() {
        let rcu = F::alone();
        let drops = Drops::new();
        let stop = AtomicBool::new(false);
        let queued = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        let guard = rcu.read();
                        rcu.defer_drop(Box::new(drops.value(0)));
                        queued.fetch_add(1, Ordering::SeqCst);
                        drop(guard);
                        thread::yield_now();
                    }
                });
            }
            for n in 0..rounds(300, 6) {
                let modes = modes();
                rcu.set_callbacks(modes[n % modes.len()]);
                if n % 5 == 0 {
                    rcu.barrier();
                }
                thread::yield_now();
            }
            stop.store(true, Ordering::Relaxed);
        });
        // Whatever mode was the last: all of them are run under a worker.
        if cfg!(miri) {
            rcu.barrier();
        } else {
            rcu.set_callbacks(Callbacks::Worker);
            eventually("the worker runs all", || {
                drops.count() == queued.load(Ordering::SeqCst)
            });
        }
        assert_eq!(drops.count(), queued.into_inner());
    }
    check::<Arc<Rcu>>();
    check::<ThreadRcu>();
    check::<QsbrRcu>();
}

/// The global domain's handle can be asked for at any time, also first.
#[test]
fn a_static_cell_is_made_at_its_first_use() {
    static CELL: OnceLock<RcuCell<usize>> = OnceLock::new();
    let _alone = <&'static Rcu>::alone();
    let cell = CELL.get_or_init(|| RcuCell::new(1));
    cell.update(|n| n + 1);
    assert_eq!(*cell.load(&Rcu::global().read()), 2);
}
