//! What an operation of the hash costs with each scheme: a wait that fails, on 1024 words of its own for each thread.
//!
//! Arguments: threads (default 2), buckets (1024), repetitions (5), names of schemes (all). Repetitions are interleaved;
//! the median is shown.
//! `hpbench phash` is the real measurement; this is for work on the crate.

use phash::{Handle, Phash, Scheme, Visit, schemes};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

struct Run {
    threads: usize,
    buckets: usize,
}

impl Visit for Run {
    type Out = f64;

    fn visit<S: Scheme>(self) -> f64 {
        let hash = Phash::<S>::new(self.buckets);
        let (start, over) = (Barrier::new(self.threads + 1), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..self.threads)
                .map(|_| {
                    scope.spawn(|| {
                        let words: Vec<AtomicU32> = (0..1024).map(|_| AtomicU32::new(0)).collect();
                        let mut thread = Handle::new();
                        start.wait();
                        let (mut ops, begun) = (0u64, Instant::now());
                        while !over.load(Relaxed) {
                            for word in &words {
                                hash.wait(&mut thread, word, 1234, None);
                            }
                            ops += 1024;
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
}

fn main() {
    let argument = |n, default| {
        std::env::args()
            .nth(n)
            .map_or(default, |text| text.parse().expect("a number"))
    };
    let (threads, buckets, runs) = (argument(1, 2), argument(2, 1024), argument(3, 5));
    let names: Vec<String> = std::env::args().skip(4).collect();
    let chosen: Vec<_> = schemes::ALL
        .iter()
        .filter(|about| names.is_empty() || names.iter().any(|name| name == about.name))
        .collect();
    let mut times = vec![Vec::new(); chosen.len()];
    for _ in 0..runs {
        for (about, times) in chosen.iter().zip(&mut times) {
            times.push(schemes::dispatch(about.name, Run { threads, buckets }).expect("listed"));
        }
    }
    for (about, times) in chosen.iter().zip(&mut times) {
        times.sort_by(f64::total_cmp);
        println!("{:<18}{:>8.2} ns", about.name, times[times.len() / 2]);
    }
}
