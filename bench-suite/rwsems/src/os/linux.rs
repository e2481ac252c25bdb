//! Futexes of Linux.
//!
//! Floor 3 (`rwsems`). Owns the system calls.

use crate::futex::{Refused, Word};
use core::cell::Cell;
use core::ptr;
use std::time::Duration;

/// The kernel keeps its own lists.
#[derive(Debug)]
pub(crate) struct Beside;

impl Beside {
    pub(crate) fn new() -> Self {
        Self
    }
}

/// One call without a timeout and a second word. The error number, if it failed.
fn call(word: &Word, op: libc::c_int, value: u32) -> Result<(), i32> {
    // SAFETY: the word outlives the call, and is aligned. No other memory is
    // passed.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.value.as_ptr(),
            op | libc::FUTEX_PRIVATE_FLAG,
            value,
            ptr::null::<libc::timespec>(),
            ptr::null::<u32>(),
            0,
        )
    };
    if answer < 0 {
        Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(0))
    } else {
        Ok(())
    }
}

pub(crate) fn wait(word: &Word, expected: u32) {
    if let Err(errno) = call(word, libc::FUTEX_WAIT, expected) {
        after_wait(errno);
    }
}

/// The caller looks again in any case; where the call does not exist (a filter),
/// it must not do so as fast as it can.
fn after_wait(errno: i32) {
    if !matches!(errno, libc::EAGAIN | libc::EINTR) {
        std::thread::sleep(Duration::from_millis(1));
    }
}

pub(crate) fn wake(word: &Word) {
    // An error means that there is nobody to wake.
    let _ = call(word, libc::FUTEX_WAKE, 1);
}

fn refused(errno: i32) -> Refused {
    match errno {
        libc::EAGAIN => Refused::Again,
        libc::EINTR => Refused::Interrupted,
        libc::ESRCH => Refused::OwnerGone,
        libc::EDEADLK => Refused::Deadlock,
        libc::ENOSYS => Refused::Missing,
        other => Refused::Other(other),
    }
}

pub(crate) fn lock_pi(word: &Word) -> Result<(), Refused> {
    call(word, libc::FUTEX_LOCK_PI, 0).map_err(refused)
}

pub(crate) fn unlock_pi(word: &Word) -> Result<(), Refused> {
    call(word, libc::FUTEX_UNLOCK_PI, 0).map_err(refused)
}

/// Unlocking what nobody owns changes nothing and is refused in its own way.
pub(crate) fn pi_available() -> Result<(), &'static str> {
    match call(&Word::new(0), libc::FUTEX_UNLOCK_PI, 0) {
        Err(libc::EPERM) => Ok(()),
        Err(libc::ENOSYS) => Err("this kernel has no PI futexes, or a filter hides them"),
        _ => Err("PI futexes answer in an unknown way here"),
    }
}

/// The number of the calling thread, as the kernel writes it into PI futexes.
pub(crate) fn thread_id() -> u32 {
    thread_local! {
        static ID: Cell<(usize, u32)> = const { Cell::new((0, 0)) };
    }
    // A forked child has another number.
    let generation = percpu::fork::generation();
    let (of, id) = ID.get();
    if of == generation {
        return id;
    }
    // SAFETY: asks, touches no memory.
    let id = unsafe { libc::gettid() }.cast_unsigned();
    ID.set((generation, id));
    id
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn answers_without_waiting() {
        let word = Word::new(1);
        let start = Instant::now();
        wait(&word, 0);
        assert!(start.elapsed() < Duration::from_secs(1));
        wake(&word);
        assert_eq!(call(&word, libc::FUTEX_WAIT, 0), Err(libc::EAGAIN));
    }

    #[test]
    fn pi_is_there_and_says_what_is_wrong() {
        pi_available().expect("PI futexes");
        let word = Word::new(thread_id());
        assert_eq!(lock_pi(&word), Err(Refused::Deadlock));
        assert_eq!(unlock_pi(&word), Ok(()));
        assert_eq!(word.peek(), 0);
        assert_eq!(lock_pi(&word), Ok(()));
        assert_eq!(word.peek(), thread_id());
    }

    /// Report 85 (liburcu): a wait that does not exist returned at once, and
    /// the loop around it burnt a CPU.
    #[test]
    fn report_85_a_missing_call_does_not_spin() {
        let start = Instant::now();
        after_wait(libc::ENOSYS);
        assert!(start.elapsed() >= Duration::from_millis(1));
    }
}
