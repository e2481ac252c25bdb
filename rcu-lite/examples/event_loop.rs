//! Workers with a loop of their own, and readers that cost nothing.
//!
//! `cargo run -p rcu-lite --example event_loop`
//!
//! Each worker waits for requests (offline, so that nobody waits for it),
//! answers all that have come (each with plain loads), and announces a quiescent
//! state before the next turn. Meanwhile the table that they read is replaced,
//! and the old one freed after a grace period. The check: all answers are right,
//! no worker reads a freed table, grace periods end also while workers are idle,
//! and in the end all replaced tables are dropped.

use rcu_lite::{QsbrRcu, RcuCell};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Answers: `factor` times the request.
struct Table {
    factor: u64,
    answers: [u64; 16],
}

static MADE: AtomicU64 = AtomicU64::new(0);
static DROPPED: AtomicU64 = AtomicU64::new(0);

impl Table {
    fn new(factor: u64) -> Self {
        MADE.fetch_add(1, Ordering::Relaxed);
        Self {
            factor,
            answers: std::array::from_fn(|request| factor * request as u64),
        }
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        // A worker that reads it afterwards gives a wrong answer.
        self.answers = [u64::MAX; 16];
        DROPPED.fetch_add(1, Ordering::Relaxed);
    }
}

/// Answers requests until there are no more. How many, and how many wrongly.
fn worker(table: &RcuCell<Table, QsbrRcu>, inbox: &Receiver<usize>) -> (u64, u64) {
    let (mut answered, mut wrong) = (0, 0);
    let mut online = QsbrRcu.online();
    // Blocks, so offline: a grace period does not wait for an idle worker.
    while let Ok(first) = online.offline(|| inbox.recv()) {
        // What has come meanwhile is answered in the same turn.
        for request in std::iter::once(first).chain(inbox.try_iter()) {
            let guard = online.read(); // nothing
            let table = table.load(&guard); // a load
            wrong += u64::from(table.answers[request] != table.factor * request as u64);
            answered += 1;
        }
        // The compiler has seen to it that no reference is left.
        online.quiescent_state();
    }
    (answered, wrong)
}

const WORKERS: usize = 2;
const TIME: Duration = Duration::from_millis(500);

fn main() -> ExitCode {
    let table = RcuCell::new_in(Table::new(1), QsbrRcu);
    let mut asked = 0_u64;

    let (answered, wrong, idle) = thread::scope(|scope| {
        let table = &table;
        let (senders, workers): (Vec<Sender<usize>>, Vec<_>) = (0..WORKERS)
            .map(|_| {
                let (sender, inbox) = channel();
                (sender, scope.spawn(move || worker(table, &inbox)))
            })
            .unzip();
        let begin = Instant::now();
        let mut turn = 0;
        while begin.elapsed() < TIME {
            for request in 0..64 {
                let to = &senders[(turn + request) % WORKERS];
                to.send(request % 16).expect("a worker");
                asked += 1;
            }
            table.update(|now| Table::new(now.factor % 1000 + 1));
            turn += 1;
            if turn % 16 == 0 {
                // This thread is not online, so it may wait.
                QsbrRcu.synchronize();
            }
        }
        // The workers are idle now, or will be soon: offline, so this ends.
        let idle = QsbrRcu.synchronize_timeout(Duration::from_secs(30));
        drop(senders);
        let (mut answered, mut wrong) = (0, 0);
        for worker in workers {
            let (more, bad) = worker.join().expect("a worker");
            answered += more;
            wrong += bad;
        }
        (answered, wrong, idle)
    });

    QsbrRcu.barrier();
    let (made, dropped) = (
        MADE.load(Ordering::Relaxed),
        DROPPED.load(Ordering::Relaxed),
    );
    println!(
        "{answered} of {asked} requests answered, {wrong} wrongly; {made} tables made, {dropped} dropped, in {} grace periods",
        QsbrRcu.stats().grace_periods
    );
    if answered == asked && wrong == 0 && idle.is_ok() && made > 1 && dropped == made - 1 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
