//! Deleters that retire, protect, wait, drain and panic.
//!
//! Bug log groups 5 and 6.

mod common;

use common::{Counted, Drops, OnDrop, drain_global_until, retire, rounds};
use hp::{Atomic, Domain, HazardPointer};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;

/// A value whose drop retires another one, `depth` levels down.
struct Nested {
    own: Counted,
    drops: Drops,
    depth: usize,
    domain: std::sync::Weak<Domain>,
}

impl Nested {
    fn new(drops: &Drops, depth: usize, domain: &Arc<Domain>) -> Self {
        Self {
            own: drops.value(depth),
            drops: drops.clone(),
            depth,
            domain: Arc::downgrade(domain),
        }
    }
}

impl Drop for Nested {
    fn drop(&mut self) {
        assert_eq!(self.own.get(), self.depth);
        if self.depth > 0 {
            let (drops, depth) = (self.drops.clone(), self.depth - 1);
            // While the domain itself is being dropped: to the global one.
            match self.domain.upgrade() {
                Some(domain) => retire(&domain, Self::new(&drops, depth, &domain)),
                None => drop(Atomic::new(Self {
                    own: drops.value(depth),
                    drops,
                    depth,
                    domain: std::sync::Weak::new(),
                })),
            }
        }
    }
}

/// Bug log 34: three levels, by a drain.
#[test]
fn report_34_three_levels_in_a_drain() {
    let drops = Drops::new();
    let domain = Arc::new(Domain::new());
    for _ in 0..10 {
        retire(&domain, Nested::new(&drops, 3, &domain));
    }
    assert_eq!(domain.drain(), 40);
    assert_eq!(drops.count(), 40);
}

/// Bug log 34: three levels, by the threshold.
#[test]
#[cfg_attr(miri, ignore = "needs a threshold's worth of objects, minutes there")]
fn report_34_three_levels_at_the_threshold() {
    let drops = Drops::new();
    let domain = Arc::new(Domain::new());
    let total = rounds(20_000, 600);
    for _ in 0..total {
        retire(&domain, Nested::new(&drops, 3, &domain));
    }
    assert!(drops.count() > 0, "the threshold was crossed");
    domain.drain();
    assert_eq!(drops.count(), 4 * total);
    assert_eq!(domain.stats().pending, 0);
}

/// Bug log 34: three levels, by dropping the domain.
#[test]
fn report_34_three_levels_when_the_domain_goes() {
    let drops = Drops::new();
    let domain = Arc::new(Domain::new());
    for _ in 0..10 {
        retire(&domain, Nested::new(&drops, 3, &domain));
    }
    drop(domain);
    drain_global_until(|| drops.count() == 40);
    assert_eq!(drops.count(), 40);
}

/// Bug log 35: the same from the exit of a thread.
#[test]
fn report_35_three_levels_from_a_thread_exit() {
    type AtExit = OnDrop<Box<dyn FnMut() + Send>>;
    thread_local! {
        static LAST: std::cell::RefCell<Option<AtExit>> = const { std::cell::RefCell::new(None) };
    }
    let drops = Drops::new();
    let domain = Arc::new(Domain::new());
    let worker = {
        let (drops, domain) = (drops.clone(), Arc::clone(&domain));
        thread::spawn(move || {
            LAST.set(Some(OnDrop(Box::new(move || {
                for _ in 0..10 {
                    retire(&domain, Nested::new(&drops, 3, &domain));
                }
                domain.drain();
            }))));
            drop(HazardPointer::new());
        })
    };
    worker.join().expect("worker");
    assert_eq!(drops.count(), 40);
}

/// Bug log 34: a batch that retires as many objects as it has.
#[test]
fn report_34_a_million_retired_by_one_batch() {
    let total = rounds(1_000_000, 100);
    let drops = Drops::new();
    let domain = Arc::new(Domain::new());
    let seed = {
        let (drops, domain) = (drops.clone(), Arc::downgrade(&domain));
        OnDrop(move || {
            if let Some(domain) = domain.upgrade() {
                for n in 0..total {
                    retire(&domain, drops.value(n));
                }
            }
        })
    };
    retire(&domain, seed);
    assert_eq!(domain.drain(), total + 1);
    assert_eq!(drops.count(), total);
}

/// Bug log 34: a list whose nodes own each other. Dropping one retires the
/// next; the stack must not grow with the list.
#[test]
fn report_34_a_chain_of_a_hundred_thousand() {
    struct Node {
        _own: Counted,
        _next: Atomic<Node>,
    }
    let length = rounds(100_000, 100);
    let drops = Drops::new();
    let count = drops.clone();
    // Far too small for a frame a node.
    thread::Builder::new()
        .stack_size(256 * 1024)
        .spawn(move || {
            let head = Atomic::<Node>::null();
            for n in 0..length {
                let next = head
                    .take()
                    .map_or_else(Atomic::null, |next| next.into_box().into());
                head.store(Node {
                    _own: drops.value(n),
                    _next: next,
                });
            }
            drop(head);
            Domain::global().drain();
        })
        .expect("a thread")
        .join()
        .expect("no overflow");
    drain_global_until(|| count.count() == length);
    assert_eq!(count.count(), length);
}

/// Bug log 37: retiring inside a protection, while another thread waits for
/// that protection, blocks nobody.
#[test]
fn report_37_retire_while_somebody_waits_for_us() {
    for _ in 0..rounds(50, 3) {
        let drops = Drops::new();
        let domain = Domain::new();
        let cell = Atomic::new(drops.value(1));
        let guard = cell.load().expect("a value");
        let unlinked = cell.take().expect("a value");
        let both = Barrier::new(2);
        thread::scope(|scope| {
            scope.spawn(|| {
                both.wait();
                assert_eq!(unlinked.into_box().get(), 1);
            });
            both.wait();
            for n in 0..rounds(2000, 30) {
                retire(&domain, drops.value(n));
            }
            domain.drain();
            drop(guard);
        });
        domain.drain();
        assert_eq!(drops.count(), rounds(2000, 30) + 1);
    }
}

/// Bug log 38: a deleter that waits for another address, protects, reclaims
/// and drains – its own domain, another one, the global one.
#[test]
fn report_38_a_deleter_that_calls_everything() {
    let drops = Drops::new();
    let domain = Arc::new(Domain::new());
    let other = Arc::new(Domain::new());
    let ran = Arc::new(AtomicUsize::new(0));
    for n in 0..20 {
        let (ran, drops) = (Arc::clone(&ran), drops.clone());
        let (own, other) = (Arc::downgrade(&domain), Arc::clone(&other));
        retire(
            &domain,
            OnDrop(move || {
                let cell = Atomic::new(drops.value(n));
                let guards: Vec<_> = (0..10).map(|_| cell.load().expect("a value")).collect();
                assert!(guards.iter().all(|guard| guard.get() == n));
                drop(guards);
                cell.take().expect("a value").retire_in(&other);
                let fresh = Atomic::new(n);
                assert_eq!(fresh.into_inner().as_deref(), Some(&n), "synchronize");
                let mut hazard = HazardPointer::new();
                hazard.reset();
                assert_eq!(other.drain(), 0, "not from inside a deleter");
                assert_eq!(other.reclaim(usize::MAX), 0, "not from inside a deleter");
                if let Some(own) = own.upgrade() {
                    assert_eq!(own.drain(), 0, "not from inside a deleter");
                    assert_eq!(own.reclaim(5), 0, "not from inside a deleter");
                }
                assert_eq!(Domain::global().drain(), 0, "not from inside a deleter");
                ran.fetch_add(1, Ordering::SeqCst);
            }),
        );
    }
    assert_eq!(domain.drain(), 20);
    assert_eq!(ran.load(Ordering::SeqCst), 20);
    other.drain();
    assert_eq!(drops.count(), 20);
}

/// Bug log 39: dropping a structure while holding guards of it waits for
/// nothing.
#[test]
fn report_39_dropping_a_structure_while_reading_it() {
    let drops = Drops::new();
    let cells: Vec<_> = (0..30).map(|n| Atomic::new(drops.value(n))).collect();
    let guards: Vec<_> = cells
        .iter()
        .map(|cell| cell.load().expect("a value"))
        .collect();
    drop(cells);
    for (n, guard) in guards.iter().enumerate() {
        assert_eq!(guard.get(), n);
    }
    drop(guards);
    drain_global_until(|| drops.count() == 30);
    assert_eq!(drops.count(), 30);
}

/// Bug log 41: a thread that the standard library did not make.
#[cfg(unix)]
#[test]
#[cfg_attr(miri, ignore = "Miri has no pthread_create for programs")]
fn report_41_a_foreign_thread() {
    extern "C" fn body(argument: *mut libc::c_void) -> *mut libc::c_void {
        // SAFETY: the test below passes a pointer that outlives the thread.
        let drops = unsafe { &*argument.cast::<Drops>() };
        let cell = Atomic::new(drops.value(1));
        let guards: Vec<_> = (0..10).map(|_| cell.load()).collect();
        cell.store(drops.value(2));
        drop((guards, cell));
        Domain::global().drain();
        std::ptr::null_mut()
    }
    let drops = Drops::new();
    let mut thread: libc::pthread_t = 0;
    let argument = (&raw const drops).cast_mut().cast();
    // SAFETY: `body` has the right signature; the thread is joined below.
    let (made, joined) = unsafe {
        (
            libc::pthread_create(&raw mut thread, std::ptr::null(), body, argument),
            libc::pthread_join(thread, std::ptr::null_mut()),
        )
    };
    assert_eq!((made, joined), (0, 0));
    drain_global_until(|| drops.count() == 2);
    assert_eq!(drops.count(), 2);
}

/// Panics when dropped, in a way that can be told from a failed assertion.
struct Bomb(Counted);

#[derive(Debug, PartialEq)]
struct Bang(usize);

impl Drop for Bomb {
    fn drop(&mut self) {
        std::panic::resume_unwind(Box::new(Bang(self.0.get())));
    }
}

/// The payload of a [`Bomb`] that went off in `f`.
fn bang(f: impl FnOnce()) -> Option<usize> {
    let payload = catch_unwind(AssertUnwindSafe(f)).err()?;
    match payload.downcast::<Bang>() {
        Ok(bang) => Some(bang.0),
        Err(other) => std::panic::resume_unwind(other),
    }
}

/// Bug log 44: [ok, panic, ok].
#[test]
fn report_44_a_panic_in_the_middle_of_a_batch() {
    let drops = Drops::new();
    let domain = Domain::new();
    retire(&domain, drops.value(1));
    retire(&domain, Bomb(drops.value(2)));
    retire(&domain, drops.value(3));
    assert_eq!(
        bang(|| {
            domain.drain();
        }),
        Some(2)
    );
    let stats = domain.stats();
    assert_eq!(stats.reclaimed + stats.pending, 3, "{stats:?}");
    domain.drain();
    assert_eq!(drops.count(), 3, "each exactly once");
    let stats = domain.stats();
    assert_eq!((stats.retired, stats.reclaimed, stats.pending), (3, 3, 0));
    // Usable, and not marked as inside a pass.
    retire(&domain, drops.value(4));
    assert_eq!(domain.drain(), 1);
    assert_eq!(drops.count(), 4);
}

/// Bug log 44: several bombs in one batch go off one drain at a time.
#[test]
fn report_44_many_panics_in_a_batch() {
    let drops = Drops::new();
    let domain = Domain::new();
    for n in 0..50 {
        retire(&domain, drops.value(n));
        if n % 10 == 5 {
            retire(&domain, Bomb(drops.value(n)));
        }
    }
    let mut bangs = Vec::new();
    while let Some(n) = bang(|| {
        domain.drain();
    }) {
        bangs.push(n);
    }
    bangs.sort_unstable();
    assert_eq!(bangs, [5, 15, 25, 35, 45]);
    assert_eq!(drops.count(), 55);
    assert_eq!(domain.stats().pending, 0);
}

/// Bug log 44: the panic comes out of the retire that reclaimed.
#[test]
#[cfg_attr(miri, ignore = "needs a threshold's worth of objects, minutes there")]
fn report_44_a_panic_in_a_retire() {
    let drops = Drops::new();
    let domain = Domain::new();
    let total = rounds(20_000, 1500);
    let mut bangs = 0;
    for n in 0..total {
        if n == 100 {
            retire(&domain, Bomb(drops.value(n)));
        } else if bang(|| retire(&domain, drops.value(n))).is_some() {
            bangs += 1;
        }
    }
    assert_eq!(bangs, 1, "once, from the retire that met the threshold");
    domain.drain();
    assert_eq!(drops.count(), total);
    assert_eq!(domain.stats().pending, 0);
}

/// Bug log 45: the object is taken off the list before its deleter runs, so a
/// panicking deleter is not met again, also when the domain goes.
#[test]
fn report_45_a_panic_while_the_domain_goes() {
    let drops = Drops::new();
    let domain = Domain::new();
    for n in 0..5 {
        retire(&domain, drops.value(n));
    }
    retire(&domain, Bomb(drops.value(5)));
    for n in 6..10 {
        retire(&domain, drops.value(n));
    }
    assert_eq!(bang(|| drop(domain)), Some(5));
    drain_global_until(|| drops.count() == 10);
    assert_eq!(drops.count(), 10, "the rest was handed over");
}

/// Bug log 45: a domain that goes while its thread unwinds must not panic
/// again.
#[test]
fn report_45_a_domain_that_goes_in_an_unwinding() {
    let drops = Drops::new();
    let outcome = bang(|| {
        let domain = Domain::new();
        for n in 0..rounds(5000, 30) {
            retire(&domain, drops.value(n));
        }
        let cell = Atomic::new(drops.value(0));
        let _guard = cell.load();
        std::panic::resume_unwind(Box::new(Bang(77)));
    });
    assert_eq!(outcome, Some(77));
    drain_global_until(|| drops.count() == rounds(5000, 30) + 1);
    assert_eq!(drops.count(), rounds(5000, 30) + 1);
}

/// A guard that is held across a panic goes with it.
#[test]
fn guards_go_when_their_owner_unwinds() {
    let drops = Drops::new();
    let domain = Domain::new();
    let cell = Atomic::new(drops.value(1));
    let outcome = bang(|| {
        let first = cell.load().expect("a value");
        let mut second = first.clone();
        second.detach();
        std::panic::resume_unwind(Box::new(Bang(first.get() + second.get())));
    });
    assert_eq!(outcome, Some(2));
    cell.take().expect("a value").retire_in(&domain);
    assert_eq!(domain.drain(), 1);
}
