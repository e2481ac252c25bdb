//! Floor 3, bench-suite. Owns how threads of `schbench` sleep and wake: the word with two states, posting and waiting.
//! May touch the `futex` system call.
//!
//! The states are the original's. A word is BLOCKED (0) or RUNNING (1). *Post*: from BLOCKED to RUNNING, and only who
//! did that wakes. *Wait*: from RUNNING back to BLOCKED, or sleep as long as the word is BLOCKED, and look again,
//! whatever the reason of the return. So a post before the wait is not lost, and a second one is not counted.
//!
//! **Orderings.** All SeqCst. Two pairs need it, both of the shape "store mine, then look at yours": a worker marks
//! its word BLOCKED and then looks whether the run is over, while the ending thread says so and then posts; and a message
//! thread marks its word BLOCKED and then takes the list, while a worker joins the list and then posts.

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

pub(super) const BLOCKED: u32 = 0;
pub(super) const RUNNING: u32 = 1;

/// Who puts threads to sleep: the kernel, or a test.
pub(super) trait Futex: Send + Sync + 'static {
    /// Sleeps if `word` is [`BLOCKED`]; may return for any reason.
    fn sleep(&self, word: &AtomicU32);
    /// Wakes one that sleeps on `word`.
    fn wake(&self, word: &AtomicU32);
}

/// The kernel's, private to the process.
#[derive(Debug)]
pub(super) struct Kernel;

impl Futex for Kernel {
    fn sleep(&self, word: &AtomicU32) {
        // SAFETY: the word outlives the call; there is no timeout. Whether it returned for a wake, a signal or a changed
        // word makes no difference to the caller.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                word.as_ptr(),
                libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
                BLOCKED,
                std::ptr::null::<libc::timespec>(),
            );
        }
    }

    fn wake(&self, word: &AtomicU32) {
        // SAFETY: the word is alive; the call does not write it.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                word.as_ptr(),
                libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
                1,
            );
        }
    }
}

/// Lets whoever waits on `word`, or will, go on.
pub(super) fn post(futex: &impl Futex, word: &AtomicU32) {
    if word
        .compare_exchange(BLOCKED, RUNNING, SeqCst, SeqCst)
        .is_ok()
    {
        futex.wake(word);
    }
}

/// Returns once there was a post, and takes it.
pub(super) fn wait(futex: &impl Futex, word: &AtomicU32) {
    while word
        .compare_exchange(RUNNING, BLOCKED, SeqCst, SeqCst)
        .is_err()
    {
        futex.sleep(word);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::collections::HashMap;
    use std::sync::{Condvar, Mutex};

    /// A futex that returns for no reason as often as for one, and hands the CPU on between its steps.
    #[derive(Debug, Default)]
    pub(crate) struct Moody {
        /// How often each word was woken.
        wakes: Mutex<HashMap<usize, u64>>,
        woken: Condvar,
        /// Calls of `sleep`, for the choice.
        calls: AtomicU32,
    }

    impl Futex for Moody {
        fn sleep(&self, word: &AtomicU32) {
            if self.calls.fetch_add(1, SeqCst).wrapping_mul(0x9e37_79b9) >> 31 == 0 {
                return std::thread::yield_now();
            }
            let key = word.as_ptr() as usize;
            let mut wakes = self.wakes.lock().unwrap();
            // As the kernel: the word is looked at under the lock that a wake takes.
            if word.load(SeqCst) != BLOCKED {
                return;
            }
            let before = wakes.get(&key).copied().unwrap_or(0);
            while wakes.get(&key).copied().unwrap_or(0) == before {
                wakes = self.woken.wait(wakes).unwrap();
            }
        }

        fn wake(&self, word: &AtomicU32) {
            std::thread::yield_now();
            *self
                .wakes
                .lock()
                .unwrap()
                .entry(word.as_ptr() as usize)
                .or_default() += 1;
            self.woken.notify_all();
        }
    }

    #[test]
    fn a_post_before_the_wait_is_kept_and_counts_once() {
        let word = AtomicU32::new(BLOCKED);
        post(&Kernel, &word);
        post(&Kernel, &word);
        wait(&Kernel, &word);
        assert_eq!(word.load(SeqCst), BLOCKED);
    }

    #[test]
    fn the_kernel_wakes() {
        let (here, there) = (AtomicU32::new(BLOCKED), AtomicU32::new(BLOCKED));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..1000 {
                    wait(&Kernel, &there);
                    post(&Kernel, &here);
                }
            });
            for _ in 0..1000 {
                post(&Kernel, &there);
                wait(&Kernel, &here);
            }
        });
    }
}
