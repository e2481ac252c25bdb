//! Sections in signal handlers: who interrupts what, and what is checked.

use crate::counting;
use rcu_lite::{Flavor, Rcu, RcuCell, Timeout};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

static RUNS: AtomicUsize = AtomicUsize::new(0);
static WRONG: AtomicUsize = AtomicUsize::new(0);
static ALLOCATED: AtomicUsize = AtomicUsize::new(0);

/// What the handler reads, found through a word that is stored before the
/// timer starts.
static SHARED: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());

/// What was seen.
#[derive(Clone, Copy, Debug)]
pub struct Report {
    /// Runs of the handler.
    pub runs: usize,
    /// Values that were not what they should be.
    pub wrong: usize,
    /// Allocations inside the handler.
    pub allocated: usize,
    /// Rounds of the main program.
    pub rounds: usize,
    /// Callbacks that still wait.
    pub pending: u64,
}

type Cell<F> = RcuCell<[usize; 2], F>;

/// Some sections on top of each other, read, left. No allocation.
extern "C" fn handler<F: Flavor>(_: libc::c_int) {
    let before = counting::requests().0;
    // SAFETY: stored by `run` of this very flavour, for ever.
    if let Some(cell) = unsafe { SHARED.load(Ordering::Acquire).cast::<Cell<F>>().as_ref() } {
        let outer = cell.flavor().read();
        let inner = cell.flavor().read();
        let seen = cell.load(&outer);
        let again = cell.load(&inner);
        if seen[0] != !seen[1] || again[0] != !again[1] {
            WRONG.fetch_add(1, Ordering::Relaxed);
        }
        drop((outer, inner));
        RUNS.fetch_add(1, Ordering::Relaxed);
    }
    ALLOCATED.fetch_add(counting::requests().0 - before, Ordering::Relaxed);
}

/// Runs the handler every 200 µs on this thread (all others must block
/// `SIGALRM`), while this thread reads, replaces and waits, and another one
/// waits for grace periods as well. With `only_handler` this thread reads no
/// more: all sections are the handler's.
///
/// # Panics
///
/// If the timer cannot be set.
#[must_use]
pub fn run<F: Flavor + Clone>(flavor: &F, time: Duration, only_handler: bool) -> Report {
    static STOP: AtomicBool = AtomicBool::new(false);
    let cell: &'static Cell<F> = Box::leak(Box::new(RcuCell::new_in([1, !1], flavor.clone())));
    // The thread's first section is not the handler's.
    drop(flavor.read());
    drop((flavor.read(), flavor.read()));
    SHARED.store(
        std::ptr::from_ref(cell).cast_mut().cast(),
        Ordering::Release,
    );
    let waiter = without_alarm(|| {
        let flavor = flavor.clone();
        thread::spawn(move || {
            while !STOP.load(Ordering::Relaxed) {
                cell.update(|old| [old[0] + 1, !(old[0] + 1)]);
                flavor.synchronize();
            }
        })
    });
    // SAFETY: `action` is zeroed but for the handler, which is a static
    // function that makes no call that a handler must not make.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler::<F> as extern "C" fn(libc::c_int) as usize;
        // Without SA_RESTART: calls that wait end early.
        assert_eq!(
            libc::sigaction(libc::SIGALRM, &raw const action, std::ptr::null_mut()),
            0
        );
    }
    timer(200);
    let start = Instant::now();
    let (mut rounds, mut wrong) = (0usize, 0);
    while start.elapsed() < time {
        rounds += 1;
        if only_handler {
            std::hint::spin_loop();
            continue;
        }
        for _ in 0..50 {
            let outer = flavor.read();
            let seen = cell.load(&outer);
            let inner = flavor.read();
            let again = cell.load(&inner);
            wrong += usize::from(seen[0] != !seen[1] || again[0] != !again[1]);
            drop(outer);
            wrong += usize::from(again[0] != !again[1]);
            drop(inner);
        }
        if rounds.is_multiple_of(16) {
            cell.replace([rounds, !rounds]);
        }
        if rounds.is_multiple_of(64) {
            flavor.synchronize();
        }
        if rounds.is_multiple_of(256) {
            flavor.barrier();
        }
    }
    timer(0);
    STOP.store(true, Ordering::Relaxed);
    waiter.join().expect("waiter");
    // Nobody is left inside.
    flavor.synchronize();
    flavor.barrier();
    Report {
        runs: RUNS.load(Ordering::Relaxed),
        wrong: wrong + WRONG.load(Ordering::Relaxed),
        allocated: ALLOCATED.load(Ordering::Relaxed),
        rounds,
        pending: flavor.stats().pending,
    }
}

/// Waits for grace periods under a signal a millisecond, with a reader that
/// leaves now and then. How many ended, and how many signals came.
///
/// # Panics
///
/// If a wait ends with the reader inside.
#[must_use]
pub fn wait_under_signals<F: Flavor + Clone>(flavor: &F, time: Duration) -> (usize, usize) {
    extern "C" fn count(_: libc::c_int) {
        RUNS.fetch_add(1, Ordering::Relaxed);
    }
    static INSIDE: AtomicUsize = AtomicUsize::new(0);
    static STOP: AtomicBool = AtomicBool::new(false);
    let before = RUNS.load(Ordering::Relaxed);
    let reader = without_alarm(|| {
        let flavor = flavor.clone();
        thread::spawn(move || {
            while !STOP.load(Ordering::SeqCst) {
                let guard = flavor.read();
                INSIDE.fetch_add(1, Ordering::SeqCst);
                thread::sleep(Duration::from_millis(4));
                INSIDE.fetch_add(1, Ordering::SeqCst);
                drop(guard);
            }
        })
    });
    // SAFETY: as in `run`.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = count as extern "C" fn(libc::c_int) as usize;
        assert_eq!(
            libc::sigaction(libc::SIGALRM, &raw const action, std::ptr::null_mut()),
            0
        );
    }
    timer(1000);
    let start = Instant::now();
    let mut waits = 0;
    while start.elapsed() < time {
        // Odd: the reader is inside, and must have left when the wait ends.
        let inside = INSIDE.load(Ordering::SeqCst);
        match waits % 3 {
            0 => flavor.synchronize(),
            1 => flavor.barrier(),
            _ => {
                // Times out, and not early; then waits as long as it takes.
                let limit = Duration::from_millis(1);
                let begin = Instant::now();
                if flavor.synchronize_timeout(limit) == Err(Timeout::ReadersRemain) {
                    assert!(begin.elapsed() >= limit, "an interruption ended it");
                    flavor.synchronize();
                }
            }
        }
        // (A barrier with nothing queued waits for nobody.)
        if inside % 2 == 1 && waits % 3 != 1 {
            assert!(INSIDE.load(Ordering::SeqCst) > inside, "ended too early");
        }
        waits += 1;
    }
    timer(0);
    STOP.store(true, Ordering::SeqCst);
    reader.join().expect("reader");
    (waits, RUNS.load(Ordering::Relaxed) - before)
}

/// Runs `f`, whose threads block `SIGALRM`.
fn without_alarm<R>(f: impl FnOnce() -> R) -> R {
    // SAFETY: fills and passes sets of its own.
    unsafe {
        let mut alarm: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut alarm);
        libc::sigaddset(&raw mut alarm, libc::SIGALRM);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const alarm, &raw mut before);
        let result = f();
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        result
    }
}

/// A domain of this process that is never dropped.
#[must_use]
pub fn own_domain() -> &'static Rcu {
    static OWN: Rcu = Rcu::new();
    &OWN
}

/// A signal every `micros`, 0 for none.
fn timer(micros: i64) {
    let each = libc::timeval {
        tv_sec: 0,
        tv_usec: micros,
    };
    let interval = libc::itimerval {
        it_interval: each,
        it_value: each,
    };
    // SAFETY: the kernel reads `interval`.
    let answer =
        unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const interval, std::ptr::null_mut()) };
    assert_eq!(answer, 0, "{}", std::io::Error::last_os_error());
}
