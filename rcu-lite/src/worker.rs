//! The worker thread: there while there is work.
//!
//! Floor 2 (`rcu-lite`). Owns the thread; what it runs belongs to the queue,
//! so nothing is lost when it leaves, cannot be started, or vanishes in a fork.
//!
//! # Leaving and queuing at the same time
//!
//! The worker first says that it has left, then locks each shard, looks for
//! callbacks, and sets the length at which somebody must look after the shard
//! to 1. A thread that queues does so under the same lock: before that look,
//! and its callback is found; or after, and it sees the 1 and, since the lock
//! handed it over, that there is no worker. (The inbox is emptied by an
//! exchange, which works like such a lock.)

use crate::local::Running;
use crate::queue::{CROWDED, Callbacks, Domain, pass};
use core::time::Duration;
use percpu::fork::generation;
use percpu::sync::atomic::Ordering;

/// What a worker gathers for, and sleeps when it finds nothing.
const NAP: Duration = Duration::from_millis(1);
/// A batch of more than this is followed by the next without a nap.
const BUSY: usize = 256;
/// Naps without work after which it leaves.
const LINGER: u32 = 50;
/// Callbacks more of a shard after which starting is tried again at the latest,
/// where it failed.
#[cfg(not(loom))]
const RETRY: usize = 1024;

/// Starts a worker. `false` if there is one.
#[cold]
pub(crate) fn start<D: Domain>(domain: &D) -> bool {
    let worker = &domain.queue().worker;
    let me = generation();
    // Relaxed: if it is stale, the exchange fails or starts one.
    let seen = worker.load(Ordering::Relaxed);
    if seen == me {
        return false;
    }
    // Relaxed (both): it decides who starts; what is handed over goes by the
    // shards' locks.
    if worker
        .compare_exchange(seen, me, Ordering::Relaxed, Ordering::Relaxed)
        .is_err()
    {
        return false;
    }
    #[cfg(not(loom))]
    spawn(domain);
    true
}

/// Starts the thread that [`start`] has announced. (Models have the
/// announcement only.)
#[cfg(not(loom))]
fn spawn<D: Domain>(domain: &D) {
    let worker = &domain.queue().worker;
    let keep = domain.keep();
    let started = without_signals(|| {
        std::thread::Builder::new()
            .name("rcu-lite".into())
            .spawn(move || run::<D>(keep))
    });
    let failed = &domain.queue().failed;
    if started.is_ok() {
        // Relaxed: a number that need not be right.
        failed.store(0, Ordering::Relaxed);
        return;
    }
    // The next callback tries again; after that every second one of a shard,
    // every fourth, ...
    // Relaxed (all): numbers that need not be right.
    let failures = failed.load(Ordering::Relaxed);
    failed.store(failures + 1, Ordering::Relaxed);
    let more = 1 << failures.min(RETRY.trailing_zeros().into());
    // Relaxed: as in `start`.
    worker.store(0, Ordering::Relaxed);
    domain
        .queue()
        .set_due(|queue, len| match queue.callbacks() {
            Callbacks::Worker => len + more,
            callbacks => callbacks.due().saturating_add(len),
        });
}

fn run<D: Domain>(domain: D::Keep) {
    spread();
    let queue = domain.queue();
    attend(&*domain);
    let mut idle = 0;
    loop {
        match pass(&*domain, Running::Free) {
            Some(n) if n > BUSY && queue.callbacks() == Callbacks::Worker => {
                idle = 0;
                continue;
            }
            Some(0) | None => idle += 1,
            Some(_) => idle = 0,
        }
        if domain.grace().is_closed() {
            // The handle is gone, perhaps by a callback that ran here: then the
            // rest is this thread's business, whatever the mode.
            loop {
                match pass(&*domain, Running::Free) {
                    Some(0) => return,
                    Some(_) => {}
                    // Whoever drops the handle is at it.
                    None => std::thread::sleep(NAP),
                }
            }
        }
        let left = |idle| {
            let leave = idle > LINGER || queue.callbacks() != Callbacks::Worker;
            leave && leave_unless_needed(&*domain)
        };
        // After the nap once more: the mode may have changed in it.
        if left(idle) || {
            std::thread::sleep(NAP);
            left(0)
        } {
            queue.trim();
            return;
        }
    }
}

/// From now on nobody needs to be told of callbacks, until they are too many.
pub(crate) fn attend<D: Domain>(domain: &D) {
    domain
        .queue()
        .set_due(|queue, len| match queue.callbacks() {
            Callbacks::Worker => len + CROWDED,
            Callbacks::Inline { threshold } => threshold.saturating_add(len),
            Callbacks::Manual => usize::MAX,
        });
}

/// See the module's page. `false` if this thread is the worker again.
pub(crate) fn leave_unless_needed<D: Domain>(domain: &D) -> bool {
    let queue = domain.queue();
    // Relaxed: handed over by the shards' locks below.
    queue.worker.store(0, Ordering::Relaxed);
    let found = queue.set_due(|queue, len| match queue.callbacks() {
        Callbacks::Worker => 1,
        Callbacks::Inline { threshold } => threshold.saturating_add(len),
        Callbacks::Manual => usize::MAX,
    });
    let needed = found || queue.is_under_way();
    if !needed || queue.callbacks() != Callbacks::Worker {
        return true;
    }
    // Relaxed (both): as in `start`. If another thread has started a worker,
    // that one has the work.
    let again = queue
        .worker
        .compare_exchange(0, generation(), Ordering::Relaxed, Ordering::Relaxed)
        .is_ok();
    if again {
        attend(domain);
    }
    !again
}

/// Lets this thread run where the main thread may, instead of where the thread
/// that happened to start it is bound to: it would fight that one for its CPU.
fn spread() {
    #[cfg(all(target_os = "linux", not(miri)))]
    // SAFETY: a plain bit set, zero of which is valid; the calls fill and read
    // one of this size. Where they fail nothing changes.
    unsafe {
        let mut cpus: libc::cpu_set_t = core::mem::zeroed();
        let size = size_of::<libc::cpu_set_t>();
        if libc::sched_getaffinity(libc::getpid(), size, &raw mut cpus) == 0 {
            libc::sched_setaffinity(0, size, &raw const cpus);
        }
    }
}

/// What a thread's own instructions cause.
#[cfg(all(unix, not(miri)))]
const OWN_SIGNALS: [libc::c_int; 6] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGSYS,
];

/// Runs `f`, which starts a thread, so that the thread blocks all signals but
/// those that it causes itself: the others belong to the program's own threads
/// (liburcu 1a990de). A fault whose signal is blocked would end the process
/// without its handler, and so would a call that a system call filter traps
/// (`SIGSYS`), which the handler was there to answer.
fn without_signals<R>(f: impl FnOnce() -> R) -> R {
    #[cfg(all(unix, not(miri)))]
    {
        use core::mem::MaybeUninit;
        let mut all = MaybeUninit::<libc::sigset_t>::uninit();
        let mut old = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: both point to sets; `old` is written if the call succeeds.
        let masked = unsafe {
            libc::sigfillset(all.as_mut_ptr());
            for own in OWN_SIGNALS {
                libc::sigdelset(all.as_mut_ptr(), own);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), old.as_mut_ptr()) == 0
        };
        let result = f();
        if masked {
            // SAFETY: `old` was written by the call above.
            unsafe {
                libc::pthread_sigmask(libc::SIG_SETMASK, old.as_ptr(), core::ptr::null_mut());
            }
        }
        result
    }
    #[cfg(not(all(unix, not(miri))))]
    f()
}
