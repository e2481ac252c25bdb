//! loom models of waiting, waking, giving up and moving, on this crate's own code.
//!
//! Floor 3 (`phash`), compiled for tests under `--cfg loom` only. The scheme is the models' own: its tables live as long
//! as the hash, so that what is looked at is the waiters alone. (How each scheme protects a table is the other crates':
//! `hp`, `rcu-lite`, and `refcounts` with T18 for `futex-ref`.)
//!
//! Proves: no wake-up is lost, with a replacement at any point of both sides; whom a wake says it woke was woken, and
//! nobody else; a wait that gives up is out of whatever table it was moved to. A lost wake-up is a deadlock, which loom
//! reports. Sleeps return for no reason, too: loom's `Notify` does.
//!
//! Cannot show: that spinning ends; more than two tables; SeqCst by accesses alone (loom takes them for AcqRel, so a
//! fence stands beside the announcement here).

mod waiters;

use crate::park::Sleep;
use crate::scheme::{About, Replaced, Replaces, Scheme};
use crate::table::Table;
use crate::{Handle, Phash, Wait};
use loom::sync::Notify;
use percpu::sync::UnsafeCell;
use percpu::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use refcounts::Thread;
use std::fmt;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Frees its tables with itself.
struct Lasting {
    current: AtomicPtr<Table>,
    all: Mutex<Vec<*mut Table>>,
}

// SAFETY: the pointers are to tables that it owns.
unsafe impl Send for Lasting {}
// SAFETY: as above.
unsafe impl Sync for Lasting {}

impl Scheme for Lasting {
    const ABOUT: About = About {
        name: "lasting",
        measures: "models",
        replaces: Replaces::AtOnce,
        percpu: false,
    };

    type Guard<'a> = &'a Table;

    fn new(first: Table) -> Self {
        let first = Box::into_raw(Box::new(first));
        Lasting {
            current: AtomicPtr::new(first),
            all: Mutex::new(vec![first]),
        }
    }

    fn protect<'a>(&'a self, _: &'a Thread) -> &'a Table {
        // SAFETY: freed by `drop`. Acquire: pairs with "Publish".
        unsafe { &*self.current.load(Ordering::Acquire) }
    }

    fn replace(&self, thread: &Thread, next: Table, _: Option<Instant>) -> Replaced {
        let old = self.protect(thread);
        old.move_to(&next);
        let next = Box::into_raw(Box::new(next));
        self.all.lock().unwrap().push(next);
        // Release: "Publish".
        self.current.store(next, Ordering::Release);
        old.supersede();
        Replaced::InUse
    }
}

impl Drop for Lasting {
    fn drop(&mut self) {
        for &table in self.all.lock().unwrap().iter() {
            // SAFETY: from a box.
            drop(unsafe { Box::from_raw(table) });
        }
    }
}

/// loom's own way to sleep.
struct Loom(Notify);

impl fmt::Debug for Loom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Loom")
    }
}

impl Sleep for Loom {
    fn sleep(&self, _: &AtomicU32, _: u32, _: Option<Instant>) {
        self.0.wait();
    }

    fn wake(&self, _: &AtomicU32) {
        self.0.notify();
    }
}

fn handle() -> Handle {
    Handle::that_sleeps(Loom(Notify::new()))
}

struct S {
    hash: Phash<Lasting>,
    word: AtomicU32,
    /// What a waker did before.
    past: Past,
    /// What the roles saw.
    wait: Mutex<Option<Wait>>,
    woken: Mutex<usize>,
}

struct Past(UnsafeCell<u32>);

// SAFETY: loom checks.
unsafe impl Sync for Past {}

fn setup() -> S {
    S {
        hash: Phash::new(1),
        word: AtomicU32::new(0),
        past: Past(UnsafeCell::new(0)),
        wait: Mutex::default(),
        woken: Mutex::default(),
    }
}

fn waiter(s: &S) {
    let wait = s.hash.wait(&mut handle(), &s.word, 0, None);
    if wait == Wait::Woken {
        // SAFETY: loom checks.
        s.past.0.with(|past| assert_eq!(unsafe { *past }, 5));
    }
    *s.wait.lock().unwrap() = Some(wait);
}

/// Its time is over before it begins.
fn hasty(s: &S) {
    let past = Instant::now().checked_sub(Duration::from_secs(1));
    let wait = s.hash.wait(&mut handle(), &s.word, 0, past);
    *s.wait.lock().unwrap() = Some(wait);
}

fn waker(s: &S) {
    // SAFETY: loom checks.
    s.past.0.with_mut(|past| unsafe { *past = 5 });
    // Relaxed: the wake orders it.
    s.word.store(1, Ordering::Relaxed);
    just_wakes(s);
}

/// The word stays as it is.
fn just_wakes(s: &S) {
    *s.woken.lock().unwrap() = s.hash.wake(&mut handle(), &s.word, 1);
}

fn replacer(s: &S) {
    s.hash.replace(&handle(), 2, None);
}

/// Who was woken says so, and nobody is left.
fn agree(s: &S, otherwise: Wait) {
    let woken = *s.woken.lock().unwrap() == 1;
    let expected = if woken { Wait::Woken } else { otherwise };
    assert_eq!(*s.wait.lock().unwrap(), Some(expected));
    let left = s
        .hash
        .look(&handle(), |table| (table.queued(), table.announced()));
    assert_eq!(left, (0, 0));
}
