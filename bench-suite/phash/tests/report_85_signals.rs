//! Report 85 (userspace-rcu b2633d2 and others): a futex wait that returns early, by a signal or for no reason, was taken
//! for a wake-up, or the state was not looked at again. A program of its own: the timer is the process's.
#![cfg(target_os = "linux")]

mod common;

use phash::{Handle, Phash, Scheme, Visit, Wait};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::SeqCst};

static SIGNALS: AtomicUsize = AtomicUsize::new(0);

extern "C" fn count(_: libc::c_int) {
    SIGNALS.fetch_add(1, SeqCst);
}

/// A signal each millisecond, whose handler does not restart system calls.
fn storm() {
    // SAFETY: the handler adds to an atomic; zeroed is a valid `sigaction`.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = count as *const () as usize;
        assert_eq!(
            libc::sigaction(libc::SIGALRM, &action, std::ptr::null_mut()),
            0
        );
        let each = libc::timeval {
            tv_sec: 0,
            tv_usec: 1000,
        };
        let timer = libc::itimerval {
            it_interval: each,
            it_value: each,
        };
        assert_eq!(
            libc::syscall(libc::SYS_setitimer, libc::ITIMER_REAL, &timer, 0usize),
            0
        );
    }
}

struct Patience;

impl Visit for Patience {
    type Out = ();

    fn visit<S: Scheme>(self) {
        let (hash, word) = (Phash::<S>::new(2), AtomicU32::new(0));
        let woken = AtomicUsize::new(0);
        let mut thread = Handle::new();
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let wait = hash.wait(&mut Handle::new(), &word, 0, None);
                    assert_eq!(wait, Wait::Woken);
                    woken.fetch_add(1, SeqCst);
                });
            }
            while hash.look(&thread, |table| table.queued()) < 3 {
                std::thread::yield_now();
            }
            let before = SIGNALS.load(SeqCst);
            while SIGNALS.load(SeqCst) < before + 20 {
                std::thread::yield_now();
            }
            assert_eq!(
                woken.load(SeqCst),
                0,
                "{}: woken by a signal",
                S::ABOUT.name
            );
            assert_eq!(hash.wake(&mut thread, &word, 2), 2);
            assert_eq!(hash.wake(&mut thread, &word, 9), 1);
        });
        assert_eq!(woken.load(SeqCst), 3, "{}", S::ABOUT.name);
    }
}

#[test]
#[cfg_attr(miri, ignore = "signals")]
fn report_85_a_signal_is_no_wake_up() {
    storm();
    common::each(|| Patience);
}
