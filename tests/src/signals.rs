//! Protections in signal handlers: who interrupts what, and what is checked.

use crate::counting;
use hp::{Atomic, Domain, Guard};
use std::cell::Cell;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// What the handler and the main program read.
static CELL: Atomic<[usize; 2]> = Atomic::null();
static RUNS: AtomicUsize = AtomicUsize::new(0);
static WRONG: AtomicUsize = AtomicUsize::new(0);
static ALLOCATED: AtomicUsize = AtomicUsize::new(0);

const MOST: usize = 12;

thread_local! {
    /// Guards that the next run of the handler takes at once, 2 to 12.
    static WIDTH: Cell<usize> = const { Cell::new(2) };
}

/// Takes some guards, reads through them, drops them. No allocation.
extern "C" fn handler(_: libc::c_int) {
    let before = counting::requests().0;
    let width = WIDTH.get();
    WIDTH.set(if width == MOST { 2 } else { width + 1 });
    {
        let mut held: [MaybeUninit<Guard<[usize; 2]>>; MOST] =
            [const { MaybeUninit::uninit() }; MOST];
        let mut taken = 0;
        for place in &mut held[..width] {
            let Some(guard) = CELL.load() else { break };
            place.write(guard);
            taken += 1;
        }
        for place in &mut held[..taken] {
            // SAFETY: the first `taken` places were written, and each is taken
            // out once.
            let guard = unsafe { place.assume_init_read() };
            if guard[0] != !guard[1] {
                WRONG.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
    RUNS.fetch_add(1, Ordering::Relaxed);
    ALLOCATED.fetch_add(counting::requests().0 - before, Ordering::Relaxed);
}

/// What was seen.
#[derive(Clone, Copy, Debug)]
pub struct Report {
    /// Runs of the handler.
    pub runs: usize,
    /// Values that were not what they should be.
    pub wrong: usize,
    /// Allocations inside the handler.
    pub allocated: usize,
    /// Slots that still held an address afterwards, with no guard left.
    pub leaked: usize,
    /// Rounds of the main program.
    pub rounds: usize,
}

/// Runs the handler every 200 µs, on this thread (all others must block
/// `SIGALRM`), while this thread protects,
/// detaches, waits and (if `full`) holds so many guards that the handler finds
/// the line full.
///
/// With `only_handler`, this thread only waits, so that its first protections
/// happen in the handler.
///
/// # Panics
///
/// If the timer cannot be set.
#[must_use]
pub fn run(time: Duration, full: bool, only_handler: bool) -> Report {
    hp::init_thread();
    CELL.store([1, !1]);
    // SAFETY: `action` is zeroed but for the handler, which is a static
    // function that makes no call that a handler must not make.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as extern "C" fn(libc::c_int) as usize;
        action.sa_flags = libc::SA_RESTART;
        assert_eq!(
            libc::sigaction(libc::SIGALRM, &raw const action, std::ptr::null_mut()),
            0
        );
    }
    timer(200);
    let start = Instant::now();
    let mut rounds = 0usize;
    let mut wrong = 0;
    let mut held = Vec::with_capacity(MOST);
    while start.elapsed() < time {
        rounds += 1;
        if only_handler {
            std::hint::spin_loop();
            continue;
        }
        for _ in 0..if full { 8 + rounds % 3 } else { rounds % 4 } {
            held.extend(CELL.load());
        }
        if let Some(guard) = held.first_mut()
            && rounds.is_multiple_of(3)
        {
            guard.detach();
        }
        if rounds.is_multiple_of(5) {
            let clone = held.last().cloned();
            wrong += usize::from(clone.is_some_and(|guard| guard[0] != !guard[1]));
        }
        for guard in held.drain(..) {
            wrong += usize::from(guard[0] != !guard[1]);
        }
        if rounds.is_multiple_of(64) {
            CELL.store([rounds, !rounds]);
        }
        if rounds.is_multiple_of(256) {
            // Waiting is interrupted as well.
            if let Some(old) = CELL.swap([rounds, !rounds]) {
                let old = old.into_box();
                wrong += usize::from(old[0] != !old[1]);
            }
        }
    }
    timer(0);
    let guard = CELL.load().expect("a value");
    let address = guard.as_ptr();
    drop(guard);
    let mut leaked = 0;
    hp::scan(address.cast(), |_| leaked += 1).expect("a barrier");
    Domain::global().drain();
    // Whatever is still kept is kept by a slot that nobody holds.
    leaked += Domain::global().stats().pending as usize;
    Report {
        runs: RUNS.load(Ordering::Relaxed),
        wrong: wrong + WRONG.load(Ordering::Relaxed),
        allocated: ALLOCATED.load(Ordering::Relaxed),
        leaked,
        rounds,
    }
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
