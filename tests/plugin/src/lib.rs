//! A plugin: a shared library with copies of `hp` and `rcu-lite` of its own, of
//! which its host knows a few C functions.
//!
//! Floor 4 of the workspace, tests only: what `dlopen` and `dlclose` do to code
//! whose threads, thread-locals, fork handlers and section descriptors lie in
//! an image that goes away.

use hp::{Atomic, Domain, HazardPointer};
use rcu_lite::{QsbrRcu, Rcu, RcuCell, ThreadRcu};
use std::sync::atomic::{AtomicU32, Ordering};

static CELL: Atomic<[u32; 2]> = Atomic::null();
static ROUNDS: AtomicU32 = AtomicU32::new(0);

/// Uses everything once, from the calling thread: guards of each kind, a held
/// hazard pointer, retiring, the three read sides, callbacks for the workers.
/// Returns the number of rounds, counted over all threads.
#[unsafe(no_mangle)]
pub extern "C" fn plugin_work(rounds: u32) -> u32 {
    let (rcu, thread, qsbr) = (
        RcuCell::new_in([0u32; 2], Rcu::global()),
        RcuCell::new_in([0u32; 2], ThreadRcu),
        RcuCell::new_in([0u32; 2], QsbrRcu),
    );
    for n in 0..rounds {
        CELL.store([n; 2]);
        let guard = CELL.load().expect("stored before");
        let mut own = guard.clone();
        own.detach();
        let mut hazard = HazardPointer::new();
        hazard.protect_raw(guard.as_ptr().cast());
        CELL.store([n + 1; 2]);
        assert_eq!(guard[0], guard[1]);
        assert_eq!(own[0], own[1]);
        rcu.replace([n; 2]);
        thread.replace([n; 2]);
        qsbr.replace([n; 2]);
        let guard = Rcu::global().read();
        assert_eq!(*rcu.load(&guard), [n; 2]);
        drop(guard);
        let guard = ThreadRcu.read();
        assert_eq!(*thread.load(&guard), [n; 2]);
        drop(guard);
        let guard = QsbrRcu.read();
        assert_eq!(*qsbr.load(&guard), [n; 2]);
        drop(guard);
        // Relaxed: a count, read when the threads have been joined.
        ROUNDS.fetch_add(1, Ordering::Relaxed);
    }
    ROUNDS.load(Ordering::Relaxed)
}

/// Reads only, `rounds` times: with sections a thread needs nothing of its own
/// for that. Returns how often there was a value.
#[unsafe(no_mangle)]
pub extern "C" fn plugin_read(rounds: u32) -> u32 {
    (0..rounds)
        .map(|_| u32::from(CELL.load().is_some_and(|guard| guard[0] == guard[1])))
        .sum()
}

/// What a library that is about to be unloaded has to do: no object of its
/// types waits any more. Returns what still waits.
#[unsafe(no_mangle)]
pub extern "C" fn plugin_leave() -> u64 {
    drop(CELL.take());
    Rcu::global().barrier();
    ThreadRcu.barrier();
    QsbrRcu.barrier();
    Domain::global().drain();
    Domain::global().stats().pending
}

/// The rung: 0 fence, 1 membarrier, 2 rseq.
#[unsafe(no_mangle)]
pub extern "C" fn plugin_rung() -> u32 {
    match hp::init() {
        hp::Rung::Rseq => 2,
        hp::Rung::Membarrier => 1,
        _ => 0,
    }
}
