//! The kernel's futexes out of a mutex and a condition variable.
//!
//! Floor 3 (`rwsems`). Owns the lists of those who wait. For loom (whose models
//! run the locks' own fast paths over it), for Miri, and where there are no
//! futexes; priorities do not exist here.
//!
//! The kernel looks at the word and queues the caller under one lock, and wakes
//! under the same: so does this, so that a wake between the look and the sleep
//! is not lost. Its own changes of a PI futex are fully ordered.

use crate::futex::{Refused, Word};
use crate::os::{OWNER, WAITERS};
use crate::sync::{Condvar, Mutex, lock};
use core::cell::Cell;
use percpu::sync::atomic::Ordering;

#[derive(Debug)]
pub(crate) struct Beside {
    kernel: Mutex<Kernel>,
    changed: Condvar,
}

/// What the kernel keeps about a word.
#[derive(Debug, Default)]
struct Kernel {
    /// Threads that wait.
    waiting: usize,
    /// Wakes that nobody has taken yet.
    woken: usize,
    /// Threads that wait for a PI futex, the next one first.
    queue: Vec<u32>,
}

impl Beside {
    pub(crate) fn new() -> Self {
        Self {
            kernel: Mutex::new(Kernel::default()),
            changed: Condvar::new(),
        }
    }
}

pub(crate) fn wait(word: &Word, expected: u32) {
    let mut kernel = lock(&word.beside.kernel);
    // Relaxed: under the lock that every wake takes.
    if word.value.load(Ordering::Relaxed) != expected {
        return;
    }
    kernel.waiting += 1;
    while kernel.woken == 0 {
        kernel = word
            .beside
            .changed
            .wait(kernel)
            .unwrap_or_else(std::sync::PoisonError::into_inner);
    }
    kernel.woken -= 1;
    kernel.waiting -= 1;
}

pub(crate) fn wake(word: &Word) {
    let mut kernel = lock(&word.beside.kernel);
    if kernel.woken < kernel.waiting {
        kernel.woken += 1;
        word.beside.changed.notify_all();
    }
}

pub(crate) fn lock_pi(word: &Word) -> Result<(), Refused> {
    let me = thread_id();
    let mut kernel = lock(&word.beside.kernel);
    // AcqRel: as the kernel's.
    let seen = word.value.fetch_or(WAITERS, Ordering::AcqRel);
    if seen & OWNER == me {
        return Err(Refused::Deadlock);
    }
    if seen & OWNER == 0 {
        let more = if kernel.queue.is_empty() { 0 } else { WAITERS };
        word.value.swap(me | more, Ordering::AcqRel);
        return Ok(());
    }
    kernel.queue.push(me);
    // Relaxed: what the last owner did comes with the lock.
    while word.value.load(Ordering::Relaxed) & OWNER != me {
        kernel = word
            .beside
            .changed
            .wait(kernel)
            .unwrap_or_else(std::sync::PoisonError::into_inner);
    }
    Ok(())
}

pub(crate) fn unlock_pi(word: &Word) -> Result<(), Refused> {
    let mut kernel = lock(&word.beside.kernel);
    let next = if kernel.queue.is_empty() {
        0
    } else {
        let next = kernel.queue.remove(0);
        next | if kernel.queue.is_empty() { 0 } else { WAITERS }
    };
    word.value.swap(next, Ordering::AcqRel);
    word.beside.changed.notify_all();
    Ok(())
}

pub(crate) fn pi_available() -> Result<(), &'static str> {
    Err("PI futexes are Linux's")
}

#[cfg(loom)]
loom::thread_local! {
    static ID: Cell<u32> = Cell::new(0);
}
#[cfg(not(loom))]
thread_local! {
    static ID: Cell<u32> = const { Cell::new(0) };
}

/// Another number for each thread. Under loom the same in every execution, where it decides which seat a thread tries
/// first.
pub(crate) fn thread_id() -> u32 {
    ID.with(|id| {
        if id.get() == 0 {
            id.set(new_id());
        }
        id.get()
    })
}

#[cfg(not(loom))]
fn new_id() -> u32 {
    use percpu::sync::atomic::{AtomicU32, Ordering::Relaxed};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Relaxed: numbers differ, that is all.
    1 + NEXT.fetch_add(1, Relaxed) % (OWNER - 1)
}

#[cfg(loom)]
fn new_id() -> u32 {
    let name = format!("{:?}", loom::thread::current().id());
    let digits: String = name.chars().filter(char::is_ascii_digit).collect();
    1 + digits.parse::<u32>().expect("loom numbers its threads")
}
