//! A guard held across an `.await`, on an executor whose tasks move between
//! threads.
//!
//! `cargo run -p hp --example await`
//!
//! Each task loads a value, detaches its guard (so that it does not keep a slot
//! of the CPU on which it happened to run), waits several times, and then still
//! uses the value. Meanwhile the value is replaced again and again. The check:
//! every task reads the very value that it loaded, some tasks change threads,
//! and in the end all replaced values are dropped.

use hp::{Atomic, Domain};
use std::future::Future;
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

struct Value {
    number: u64,
    twice: u64,
}

static CELL: Atomic<Value> = Atomic::null();
static MADE: AtomicU64 = AtomicU64::new(0);
static DROPPED: AtomicU64 = AtomicU64::new(0);

impl Value {
    fn new(number: u64) -> Self {
        MADE.fetch_add(1, Ordering::Relaxed);
        Self {
            number,
            twice: 2 * number,
        }
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        // A task that reads a dropped value is caught.
        self.twice = u64::MAX;
        DROPPED.fetch_add(1, Ordering::Relaxed);
    }
}

/// What one task does. Returns whether its value stayed whole, and whether it
/// was resumed on another thread.
async fn task() -> (bool, bool) {
    let here = thread::current().id();
    let mut moved = false;
    let mut guard = CELL.load().expect("a value");
    let number = guard.number;
    guard.detach();
    // Eight times, and then until the cell holds another value.
    let mut pauses = 0;
    while pauses < 8 || CELL.load().is_some_and(|now| now.number == number) {
        pauses += 1;
        pause().await;
        moved |= thread::current().id() != here;
    }
    (guard.number == number && guard.twice == 2 * number, moved)
}

/// Lets the other tasks run once.
fn pause() -> impl Future<Output = ()> {
    let mut done = false;
    std::future::poll_fn(move |context| {
        if std::mem::replace(&mut done, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
}

/// A small executor: one queue, several threads, tasks anywhere.
struct Task {
    future: Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>,
    queue: Sender<Arc<Task>>,
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        let queue = self.queue.clone();
        // Fails only when the executor has ended.
        let _ = queue.send(self);
    }
}

fn work(queue: &Mutex<Receiver<Arc<Task>>>, left: &AtomicUsize) {
    while left.load(Ordering::Acquire) > 0 {
        let next = queue.lock().expect("the queue").try_recv();
        let Ok(task) = next else {
            thread::yield_now();
            continue;
        };
        // The lock is held over the poll: a task that was woken meanwhile may
        // be on another thread already.
        let mut slot = task.future.lock().expect("a task");
        let Some(mut future) = slot.take() else {
            continue;
        };
        let waker = Waker::from(Arc::clone(&task));
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Pending => *slot = Some(future),
            Poll::Ready(()) => _ = left.fetch_sub(1, Ordering::AcqRel),
        }
    }
}

const TASKS: usize = 1000;
const THREADS: usize = 3;

fn main() -> ExitCode {
    CELL.store(Value::new(0));
    let (sender, receiver) = channel();
    let receiver = Mutex::new(receiver);
    let left = AtomicUsize::new(TASKS);
    let whole = Arc::new(AtomicUsize::new(0));
    let moved = Arc::new(AtomicUsize::new(0));

    thread::scope(|scope| {
        let left = &left;
        // Tasks first, then the threads: all guards are held at once.
        for _ in 0..TASKS {
            let (whole, moved) = (Arc::clone(&whole), Arc::clone(&moved));
            let future = Box::pin(async move {
                let (was_whole, has_moved) = task().await;
                whole.fetch_add(usize::from(was_whole), Ordering::Relaxed);
                moved.fetch_add(usize::from(has_moved), Ordering::Relaxed);
            });
            let task = Arc::new(Task {
                future: Mutex::new(Some(future)),
                queue: sender.clone(),
            });
            task.wake();
        }
        for _ in 0..THREADS {
            scope.spawn(|| work(&receiver, left));
        }
        // The writer: replaces the value and reclaims while guards are held.
        scope.spawn(move || {
            let mut number = 0;
            while left.load(Ordering::Acquire) > 0 {
                number += 1;
                CELL.store(Value::new(number));
                if number % 64 == 0 {
                    Domain::global().drain();
                }
            }
        });
    });
    drop(CELL.take());
    Domain::global().drain();

    let (whole, moved) = (whole.load(Ordering::Relaxed), moved.load(Ordering::Relaxed));
    let (made, dropped) = (
        MADE.load(Ordering::Relaxed),
        DROPPED.load(Ordering::Relaxed),
    );
    println!(
        "{TASKS} tasks on {THREADS} threads, {moved} changed threads while holding a guard; \
         {whole} read the value that they had loaded; {made} values made, {dropped} dropped"
    );
    if whole == TASKS && made == dropped {
        ExitCode::SUCCESS
    } else {
        eprintln!("check failed");
        ExitCode::FAILURE
    }
}
