//! What an operation costs with each scheme: reads of a cell with one swap in 64, push and pop, enqueue and dequeue.
//!
//! Arguments: threads (default 2), repetitions (5), names of schemes (all). Repetitions are interleaved; the median is
//! shown, in nanoseconds for each operation of a thread. Nodes that wait at the end of a run are shown in the last column
//! (of the stack). This is for work on the crate; nothing is pinned, and nothing is said about the machine.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use structures::{
    Cell, Census, Queue, Scheme, Stack, Support, Visit, VisitCell, dispatch, dispatch_cell, schemes,
};

/// Operations between two looks at the clock.
const BATCH: u64 = 256;

/// Runs what `worker` gives in each thread until the time is over; nanoseconds for each operation.
fn run<W: FnMut()>(threads: usize, operations: u64, worker: impl Fn() -> W + Sync) -> f64 {
    let (start, over) = (Barrier::new(threads + 1), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    start.wait();
                    let mut batch = worker();
                    let (mut ops, begun) = (0u64, Instant::now());
                    while !over.load(Relaxed) {
                        batch();
                        ops += operations;
                    }
                    begun.elapsed().as_nanos() as f64 / ops as f64
                })
            })
            .collect();
        start.wait();
        std::thread::sleep(Duration::from_millis(150));
        over.store(true, Relaxed);
        let times: Vec<f64> = workers.into_iter().map(|w| w.join().unwrap()).collect();
        times.iter().sum::<f64>() / times.len() as f64
    })
}

struct OnCell(usize);

impl VisitCell for OnCell {
    type Out = f64;

    fn visit<C: Cell>(self) -> f64 {
        let census = Census::leak();
        let cell = C::new(0, census);
        let time = run(self.0, BATCH, || {
            let mut thread = cell.thread();
            let cell = &cell;
            move || {
                for turn in 0..BATCH {
                    if turn % 64 == 0 {
                        cell.swap(&mut thread, turn);
                    } else {
                        std::hint::black_box(cell.get(&mut thread));
                    }
                }
            }
        });
        assert_eq!(census.dead_seen(), 0, "{}", C::ABOUT.name);
        time
    }
}

struct OnStack(usize);

impl Visit for OnStack {
    type Out = (f64, u64);

    fn visit<S: Scheme>(self) -> (f64, u64) {
        let census = Census::leak();
        let stack = Stack::<S>::new(census);
        let time = run(self.0, 2 * BATCH, || {
            let mut thread = stack.thread();
            let stack = &stack;
            move || {
                for turn in 0..BATCH {
                    stack.push(&mut thread, turn);
                    std::hint::black_box(stack.pop(&mut thread));
                }
            }
        });
        assert_eq!(census.dead_seen(), 0, "{}", S::ABOUT.name);
        (time, census.count().nodes)
    }
}

struct OnQueue(usize);

impl Visit for OnQueue {
    type Out = f64;

    fn visit<S: Scheme>(self) -> f64 {
        let census = Census::leak();
        let queue = Queue::<S>::new(census);
        let time = run(self.0, 2 * BATCH, || {
            let mut thread = queue.thread();
            let queue = &queue;
            move || {
                for turn in 0..BATCH {
                    queue.enqueue(&mut thread, turn);
                    std::hint::black_box(queue.dequeue(&mut thread));
                }
            }
        });
        assert_eq!(census.dead_seen(), 0, "{}", S::ABOUT.name);
        time
    }
}

fn main() {
    let argument = |n, default| {
        std::env::args()
            .nth(n)
            .map_or(default, |text| text.parse().expect("a number"))
    };
    let (threads, runs) = (argument(1, 2), argument(2, 5));
    let names: Vec<String> = std::env::args().skip(3).collect();
    let rung = std::env::var("HP_BARRIER").ok();
    let chosen: Vec<_> = schemes::listed()
        .filter(|about| {
            if names.is_empty() {
                about.rung.is_none() || about.rung == rung.as_deref()
            } else {
                names.iter().any(|name| name == about.name)
            }
        })
        .collect();
    let mut times = vec![[const { Vec::new() }; 4]; chosen.len()];
    for _ in 0..runs {
        for (about, times) in chosen.iter().zip(&mut times) {
            times[0].extend(dispatch_cell(about.name, OnCell(threads)));
            if about.linked == Support::Yes
                && let Some((time, waiting)) = dispatch(about.name, OnStack(threads))
            {
                times[1].push(time);
                times[3].push(waiting as f64);
            }
            times[2].extend(dispatch(about.name, OnQueue(threads)));
        }
    }
    println!("{threads} threads, median of {runs}: ns/operation, nodes");
    println!(
        "{:<16} {:>8} {:>8} {:>8} {:>10}",
        "", "cell", "stack", "queue", "waiting"
    );
    for (about, times) in chosen.iter().zip(&mut times) {
        let cells: Vec<String> = times
            .iter_mut()
            .map(|times| {
                times.sort_by(f64::total_cmp);
                times
                    .get(times.len() / 2)
                    .map_or("-".into(), |t| format!("{t:.1}"))
            })
            .collect();
        println!(
            "{:<16} {:>8} {:>8} {:>8} {:>10}",
            about.name, cells[0], cells[1], cells[2], cells[3]
        );
    }
}
