//! Faults that rereading found, each as a test of what is right.

use rcu_lite::{Callbacks, QsbrRcu, Rcu, RcuList, ThreadRcu};
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Waits for what must come; a test that hangs is ended by the harness's user,
/// one that waits in vain fails here.
fn comes(what: &str, is: impl Fn() -> bool) {
    let start = Instant::now();
    while !is() {
        assert!(
            start.elapsed() < Duration::from_secs(60),
            "{what} never came"
        );
        thread::sleep(Duration::from_millis(1));
    }
}

/// A worker's handle was made from a reference to the block, which does not
/// reach the counts beside it: undefined, and only Miri says so.
#[test]
fn a_worker_outlives_the_domain_that_it_served() {
    let ran = Arc::new(AtomicUsize::new(0));
    for _ in 0..3 {
        let rcu = Rcu::new();
        let n = Arc::clone(&ran);
        rcu.call(move || {
            n.fetch_add(1, Ordering::Relaxed);
        });
        drop(rcu);
    }
    assert_eq!(ran.load(Ordering::Relaxed), 3);
    // The workers end within some naps.
    thread::sleep(Duration::from_millis(if cfg!(miri) { 500 } else { 20 }));
}

/// The table of a domain was written with zeroes, a megabyte each.
#[test]
#[cfg(all(target_os = "linux", not(miri)))]
fn a_domain_takes_memory_for_what_it_uses_only() {
    fn resident_kib() -> usize {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|l| l.starts_with("VmRSS:")).unwrap();
        let kib = line.split_whitespace().nth(1).unwrap();
        kib.parse().unwrap()
    }
    drop(Rcu::global().read());
    let before = resident_kib();
    let domains: Vec<Rcu> = (0..100).map(|_| Rcu::new()).collect();
    for rcu in &domains {
        drop(rcu.read());
    }
    let grown = resident_kib().saturating_sub(before);
    // A few pages each: lines of the CPUs used, the shared counters, the queue.
    assert!(grown < 100 * 128, "{grown} KiB for 100 domains");
}

struct Node {
    list: Arc<RcuList<Node, ThreadRcu>>,
    last: bool,
}

impl Drop for Node {
    fn drop(&mut self) {
        if !self.last {
            self.list.remove_if(|node| node.last);
        }
    }
}

/// Nodes were retired with the writers' lock held, so callbacks that the
/// retiring thread ran could not be writers.
#[test]
fn what_a_list_drops_may_change_the_list() {
    // `ThreadRcu` is shared with other tests of this file: none of them waits
    // for another one's callbacks.
    ThreadRcu.set_callbacks(Callbacks::Inline { threshold: 1 });
    let list = Arc::new(RcuList::new_in(ThreadRcu));
    for last in [false, true] {
        let list2 = Arc::clone(&list);
        list.push_back(Node { list: list2, last });
    }
    list.remove_first(|node| !node.last);
    ThreadRcu.barrier();
    assert!(list.is_empty());
    let again = Arc::clone(&list);
    ThreadRcu.call(move || {
        let inner = Arc::clone(&again);
        again.push_back(Node {
            list: inner,
            last: true,
        });
    });
    list.clear();
    ThreadRcu.barrier();
    list.clear();
    ThreadRcu.barrier();
    ThreadRcu.set_callbacks(Callbacks::Worker);
}

/// A batch that an inline pass had to leave was forgotten by a change of the
/// mode.
#[test]
fn a_batch_that_was_left_is_run_after_a_change_of_the_mode() {
    let rcu = Rcu::with_callbacks(Callbacks::Inline { threshold: 1 });
    let ran = Arc::new(AtomicBool::new(false));
    let guard = rcu.read();
    let flag = Arc::clone(&ran);
    rcu.call(move || flag.store(true, Ordering::Release));
    assert!(!ran.load(Ordering::Acquire), "before its grace period");
    drop(guard);
    rcu.set_callbacks(Callbacks::Worker);
    comes("the callback", || ran.load(Ordering::Acquire));
}

/// The first callback of each shard was run whatever the threshold.
#[test]
fn inline_runs_nothing_below_its_threshold() {
    let rcu = Rcu::with_callbacks(Callbacks::Inline { threshold: 1000 });
    for _ in 0..900 {
        rcu.call(|| ());
    }
    let stats = rcu.stats();
    assert_eq!((stats.run, stats.pending), (0, 900));
    assert_eq!(rcu.drain(), 900);
}

/// A busy worker did not notice that the mode had changed.
#[test]
#[cfg(not(miri))]
fn a_busy_worker_stops_when_the_mode_changes() {
    let rcu = Rcu::new();
    for _ in 0..5_000 {
        rcu.call(|| thread::sleep(Duration::from_micros(20)));
    }
    comes("the worker", || rcu.stats().run > 0);
    rcu.set_callbacks(Callbacks::Manual);
    for _ in 0..5_000 {
        rcu.call(|| ());
    }
    comes("the worker's end", || !rcu.stats().worker);
    let stats = rcu.stats();
    assert!(stats.pending >= 5_000, "{stats:?}");
}

/// `synchronize` hung instead of panicking in a thread-local's destructor, when
/// the thread's own record was gone but not its section.
#[test]
fn waiting_inside_a_section_is_noticed_during_teardown() {
    struct Late {
        panicked: Arc<AtomicUsize>,
        thread: Option<rcu_lite::thread::Guard<'static>>,
        online: Option<rcu_lite::qsbr::Online>,
    }
    impl Drop for Late {
        fn drop(&mut self) {
            let caught = [
                std::panic::catch_unwind(|| ThreadRcu.synchronize()).is_err(),
                std::panic::catch_unwind(|| QsbrRcu.synchronize()).is_err(),
            ];
            self.panicked
                .store(caught.iter().filter(|c| **c).count(), Ordering::Relaxed);
            self.thread = None;
            self.online = None;
            // Now nothing is in the way.
            ThreadRcu.synchronize();
            QsbrRcu.synchronize();
        }
    }
    thread_local! {
        static LATE: RefCell<Option<Late>> = const { RefCell::new(None) };
    }
    let panicked = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&panicked);
    thread::spawn(move || {
        // Registered first, so destroyed after the crate's own (or before, on
        // systems with another order; the answer is the same).
        LATE.with(|late| {
            *late.borrow_mut() = Some(Late {
                panicked: seen,
                thread: None,
                online: None,
            });
        });
        LATE.with(|late| {
            let mut late = late.borrow_mut();
            let late = late.as_mut().unwrap();
            late.thread = Some(ThreadRcu.read());
            late.online = Some(QsbrRcu.online());
        });
    })
    .join()
    .unwrap();
    assert_eq!(panicked.load(Ordering::Relaxed), 2);
}
