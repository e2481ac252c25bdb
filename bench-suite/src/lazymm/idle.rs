//! Floor 3, bench-suite. Owns a count of runnable threads a CPU, for `track --grab idle`. May ask which CPU runs.
//!
//! The kernel grabs when a CPU goes idle, not whenever a task blocks. A user task does not see that; it can count. A
//! thread that blocks takes itself off the count of its CPU, and grabs if it was the last there. Who wakes another one
//! puts it back on, on the CPU where it went to sleep, *before* the message: a woken thread that does not run yet is
//! runnable, and a CPU that has one does not go idle. (Were a thread to put itself on when it runs again, every block
//! of a crowded CPU would look like idleness.) A thread that wakes up on another CPU moves its count there.
//!
//! Threads that are no part of the run are not counted, so this is a guess, to be held against the kernel's own counts
//! of idle entries, which stand beside it in the record.
//!
//! **Orderings.** All Relaxed: a count decides nothing but whether to grab, and either is safe.

use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering::Relaxed};

/// Alone on its pair of cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Padded<V>(V);

/// Runnable threads of the run, CPU by CPU.
#[derive(Debug)]
pub(super) struct Runnable(Box<[Padded<AtomicI64>]>);

impl Runnable {
    /// None yet, for all CPUs that there can be.
    pub(super) fn new() -> Self {
        Runnable(
            (0..percpu::possible_cpus())
                .map(|_| Padded::default())
                .collect(),
        )
    }

    fn of(&self, cpu: usize) -> &AtomicI64 {
        &self.0[cpu % self.0.len()].0
    }
}

/// Where a thread is counted, or was when it went to sleep; and where it was counted by who woke it, which is another
/// place if it has moved meanwhile.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Home {
    counted: AtomicUsize,
    woken: AtomicUsize,
}

/// A thread and its partner.
#[derive(Debug)]
pub(super) struct Counted<'a> {
    runnable: &'a Runnable,
    mine: &'a Home,
    partner: &'a Home,
}

impl<'a> Counted<'a> {
    /// Counts the calling thread, which runs.
    pub(super) fn new(runnable: &'a Runnable, mine: &'a Home, partner: &'a Home) -> Self {
        let here = this_cpu();
        mine.counted.store(here, Relaxed);
        runnable.of(here).fetch_add(1, Relaxed);
        Counted {
            runnable,
            mine,
            partner,
        }
    }

    /// Before a message to the partner.
    pub(super) fn waking(&self) {
        let home = self.partner.counted.load(Relaxed);
        // The message that follows makes it visible.
        self.partner.woken.store(home, Relaxed);
        self.runnable.of(home).fetch_add(1, Relaxed);
    }

    /// Before this thread blocks. Whether its CPU has nobody else.
    pub(super) fn blocks(&self) -> bool {
        let here = self.settle(self.mine.counted.load(Relaxed));
        self.runnable.of(here).fetch_sub(1, Relaxed) == 1
    }

    /// After it was woken, and so counted.
    pub(super) fn runs(&self) {
        self.settle(self.mine.woken.load(Relaxed));
    }

    /// It is counted on `home`: counts it where it runs, which is told.
    fn settle(&self, home: usize) -> usize {
        let here = this_cpu();
        if home != here {
            self.runnable.of(here).fetch_add(1, Relaxed);
            self.runnable.of(home).fetch_sub(1, Relaxed);
        }
        self.mine.counted.store(here, Relaxed);
        here
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        let home = self.mine.counted.load(Relaxed);
        self.runnable.of(home).fetch_sub(1, Relaxed);
    }
}

fn this_cpu() -> usize {
    // SAFETY: takes nothing and returns a number.
    usize::try_from(unsafe { libc::sched_getcpu() }).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::pin;

    #[test]
    fn a_cpu_with_a_woken_thread_is_not_idle() {
        std::thread::spawn(|| {
            pin::bind(pin::allowed()[0]).unwrap();
            let (runnable, a, b) = (Runnable::new(), Home::default(), Home::default());
            let one = Counted::new(&runnable, &a, &b);
            let two = Counted::new(&runnable, &b, &a);
            assert!(!two.blocks(), "the other one runs");
            assert!(one.blocks(), "alone");
            two.waking();
            one.runs();
            one.waking();
            assert!(
                !one.blocks(),
                "the other one is woken, though it has not run"
            );
            two.runs();
            assert!(two.blocks(), "alone again");
            one.waking();
            two.waking();
            let count = runnable.of(this_cpu());
            assert_eq!(count.load(Relaxed), 2);
            drop((one, two));
            assert_eq!(count.load(Relaxed), 0);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn who_moves_before_sleeping_leaves_no_count_behind() {
        let &[first, second, ..] = pin::allowed().as_slice() else {
            return;
        };
        std::thread::spawn(move || {
            pin::bind(first).unwrap();
            let (runnable, a, b) = (Runnable::new(), Home::default(), Home::default());
            let one = Counted::new(&runnable, &a, &b);
            let two = Counted::new(&runnable, &b, &a);
            let counts = || [first, second].map(|cpu| runnable.of(cpu).load(Relaxed));
            two.waking();
            pin::bind(second).unwrap();
            assert!(one.blocks(), "counted on the CPU that it came from");
            one.runs();
            assert_eq!(counts(), [1, 1]);
            assert!(one.blocks(), "alone on this one");
            two.waking();
            pin::bind(first).unwrap();
            one.runs();
            assert_eq!(counts(), [2, 0], "it moved in its sleep");
            drop((one, two));
            assert_eq!(counts(), [0, 0]);
        })
        .join()
        .unwrap();
    }
}
