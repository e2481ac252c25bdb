//! What the public tests share: the flavours as cases of one generic test,
//! values that count their drops, readers that stay inside on another thread.

#![allow(dead_code, reason = "each test binary uses a part of it")]
#![allow(unused_macros, unused_imports, reason = "as above")]

use rcu_lite::{Callbacks, Flavor, QsbrRcu, Rcu, Stats, ThreadRcu};
use std::any::Any;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// After this a test is said to hang. Nothing that works takes a tenth of it.
pub(crate) const HANG: Duration = Duration::from_secs(120);

/// What `synchronize_timeout` gets where it must time out.
pub(crate) const SHORT: Duration = Duration::from_millis(20);

/// A flavour under test.
pub(crate) trait Case: Flavor + Clone {
    /// Waiting inside a section of the same thread panics.
    const PANICS_INSIDE: bool;
    const NAME: &'static str;

    /// The flavour, and the right to it where there is one for all tests.
    fn pick() -> (Self, Option<MutexGuard<'static, ()>>);

    /// The flavour with nobody else using it.
    fn alone() -> Alone<Self> {
        watchdog();
        let (flavor, lock) = Self::pick();
        if cfg!(miri) {
            // Miri calls a thread that outlives `main` an error, and a worker
            // lingers.
            flavor.set_callbacks(Callbacks::Manual);
        }
        Alone {
            before: flavor.stats(),
            flavor,
            _lock: lock,
        }
    }
}

fn lock(of: &'static Mutex<()>) -> Option<MutexGuard<'static, ()>> {
    Some(of.lock().unwrap_or_else(PoisonError::into_inner))
}

/// A domain of its own.
impl Case for Arc<Rcu> {
    const PANICS_INSIDE: bool = false;
    const NAME: &'static str = "own domain";
    fn pick() -> (Self, Option<MutexGuard<'static, ()>>) {
        (Arc::new(Rcu::new()), None)
    }
}

/// The process-wide domain.
impl Case for &'static Rcu {
    const PANICS_INSIDE: bool = false;
    const NAME: &'static str = "global domain";
    fn pick() -> (Self, Option<MutexGuard<'static, ()>>) {
        static ONE: Mutex<()> = Mutex::new(());
        let lock = lock(&ONE);
        (Rcu::global(), lock)
    }
}

impl Case for ThreadRcu {
    const PANICS_INSIDE: bool = true;
    const NAME: &'static str = "thread";
    fn pick() -> (Self, Option<MutexGuard<'static, ()>>) {
        static ONE: Mutex<()> = Mutex::new(());
        let lock = lock(&ONE);
        (ThreadRcu, lock)
    }
}

impl Case for QsbrRcu {
    const PANICS_INSIDE: bool = true;
    const NAME: &'static str = "qsbr";
    fn pick() -> (Self, Option<MutexGuard<'static, ()>>) {
        static ONE: Mutex<()> = Mutex::new(());
        let lock = lock(&ONE);
        (QsbrRcu, lock)
    }
}

/// A flavour that no other test uses at this moment. Leaves it empty, with
/// its usual mode.
pub(crate) struct Alone<F: Case> {
    pub(crate) flavor: F,
    before: Stats,
    _lock: Option<MutexGuard<'static, ()>>,
}

impl<F: Case> Deref for Alone<F> {
    type Target = F;
    fn deref(&self) -> &F {
        &self.flavor
    }
}

impl<F: Case> Alone<F> {
    /// Changes who runs the callbacks, and waits until a worker of before has
    /// left.
    pub(crate) fn only(&self, callbacks: Callbacks) {
        self.flavor.set_callbacks(callbacks);
        if callbacks != Callbacks::Worker {
            eventually("the worker leaves", || !self.flavor.stats().worker);
        }
    }

    /// What has been counted since the test began.
    pub(crate) fn since(&self) -> Stats {
        let now = self.flavor.stats();
        let mut since = now;
        since.grace_periods -= self.before.grace_periods;
        since.queued -= self.before.queued;
        since.run -= self.before.run;
        since.panicked -= self.before.panicked;
        since
    }
}

impl<F: Case> Drop for Alone<F> {
    fn drop(&mut self) {
        if thread::panicking() {
            // What is broken may hang.
            return;
        }
        self.flavor.barrier();
        if cfg!(miri) {
            self.flavor.set_callbacks(Callbacks::Manual);
            eventually("the worker leaves", || !self.flavor.stats().worker);
        } else {
            self.flavor.set_callbacks(Callbacks::Worker);
        }
    }
}

/// Instantiates generic tests for every flavour.
macro_rules! flavours {
    ($($test:ident),+ $(,)?) => {
        flavours!(@in own_domain, std::sync::Arc<rcu_lite::Rcu>: $($test)+);
        flavours!(@in global_domain, &'static rcu_lite::Rcu: $($test)+);
        flavours!(@in thread_rcu, rcu_lite::ThreadRcu: $($test)+);
        flavours!(@in qsbr_rcu, rcu_lite::QsbrRcu: $($test)+);
    };
    (@in $name:ident, $flavor:ty: $($test:ident)+) => {
        mod $name {
            $(
                #[test]
                fn $test() {
                    super::$test::<$flavor>();
                }
            )+
        }
    };
}
pub(crate) use flavours;

/// Every way to run callbacks.
pub(crate) fn modes() -> Vec<Callbacks> {
    let mut modes = vec![
        Callbacks::Manual,
        Callbacks::Inline { threshold: 1 },
        Callbacks::Inline { threshold: 64 },
    ];
    if !cfg!(miri) {
        modes.push(Callbacks::Worker);
    }
    modes
}

/// Ends the process if it is still there after five times [`HANG`]: a test
/// that hangs fails.
fn watchdog() {
    static ONCE: Once = Once::new();
    if !cfg!(miri) {
        ONCE.call_once(|| {
            thread::spawn(|| {
                thread::sleep(HANG * 5);
                eprintln!("the tests hang");
                std::process::abort();
            });
        });
    }
}

/// Waits until `done`.
pub(crate) fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < HANG, "never: {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Runs `f` on another thread. Panics if it does, or if it hangs.
pub(crate) fn within<R: Send + 'static>(what: &str, f: impl FnOnce() -> R + Send + 'static) -> R {
    let (tx, rx) = channel();
    let thread = thread::spawn(move || {
        let result = f();
        let _ = tx.send(());
        result
    });
    match rx.recv_timeout(HANG) {
        Err(std::sync::mpsc::RecvTimeoutError::Timeout) => panic!("hangs: {what}"),
        _ => match thread.join() {
            Ok(result) => result,
            Err(payload) => std::panic::resume_unwind(payload),
        },
    }
}

/// The message that `f` panics with.
pub(crate) fn message(f: impl FnOnce()) -> String {
    let payload = catch_unwind(AssertUnwindSafe(f)).expect_err("no panic");
    text(&*payload)
}

pub(crate) fn text(payload: &(dyn Any + Send)) -> String {
    payload
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| payload.downcast_ref::<&str>().map(ToString::to_string))
        .expect("a text")
}

/// A thread that is inside a section until told to leave.
pub(crate) struct Reader {
    leave: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Reader {
    /// Returns when the thread is inside.
    pub(crate) fn inside<F: Case>(flavor: &F) -> Self {
        let flavor = flavor.clone();
        Self::hold(move |inside, leave| {
            let guard = flavor.read();
            inside.send(()).expect("the test");
            let _ = leave.recv();
            drop(guard);
        })
    }

    /// A thread that runs `f`, which says that it is inside and waits to leave.
    pub(crate) fn hold(f: impl FnOnce(Sender<()>, Receiver<()>) + Send + 'static) -> Self {
        let (inside_tx, inside_rx) = channel();
        let (leave_tx, leave_rx) = channel();
        let thread = thread::spawn(move || f(inside_tx, leave_rx));
        inside_rx.recv_timeout(HANG).expect("inside");
        Self {
            leave: Some(leave_tx),
            thread: Some(thread),
        }
    }

    /// Returns when the thread has left and ended.
    pub(crate) fn leave(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.leave = None;
        if let Some(thread) = self.thread.take() {
            thread.join().expect("reader");
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.leave = None;
        if !thread::panicking() {
            self.end();
        }
    }
}

const ALIVE: u64 = 0x600D_600D_600D_600D;
const DEAD: u64 = 0xDEAD_DEAD_DEAD_DEAD;

/// Makes values and counts how many of them were dropped.
#[derive(Clone, Debug, Default)]
pub(crate) struct Drops(Arc<AtomicUsize>);

impl Drops {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    /// Counts one, as a callback may.
    pub(crate) fn one(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn value(&self, value: usize) -> Counted {
        Counted {
            canary: AtomicU64::new(ALIVE),
            value,
            drops: self.clone(),
        }
    }
}

/// A value whose drop is counted and that knows when it is dead.
#[derive(Debug)]
pub(crate) struct Counted {
    canary: AtomicU64,
    value: usize,
    drops: Drops,
}

impl Counted {
    /// The number it was made with. Panics if the value is dead.
    pub(crate) fn get(&self) -> usize {
        assert_eq!(
            self.canary.load(Ordering::Relaxed),
            ALIVE,
            "read a dead value"
        );
        self.value
    }

    /// Another value, counted by the same counter.
    pub(crate) fn sibling(&self, value: usize) -> Self {
        self.get();
        self.drops.value(value)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let canary = self.canary.swap(DEAD, Ordering::Relaxed);
        assert_eq!(canary, ALIVE, "dropped twice");
        self.drops.one();
    }
}

/// Calls `f` when dropped.
pub(crate) struct OnDrop<F: FnMut()>(pub(crate) F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// `full` rounds, or a few under Miri.
pub(crate) const fn rounds(full: usize, miri: usize) -> usize {
    if cfg!(miri) { miri } else { full }
}
