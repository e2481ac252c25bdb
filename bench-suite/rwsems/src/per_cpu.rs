//! Readers that count on their CPU's line; a writer that stops them all.
//!
//! Floor 3 (`rwsems`). Owns the lines and the flag; counts through
//! `percpu::section`, and in shared words where sections do not run.
//!
//! * **Reader**: one restartable section, *own line; flag `== OPEN`; entered += 1*.
//!   To leave, on whatever CPU it is by then, another one: *left += 1*. No line is
//!   shared.
//! * **Writer**: raises the flag; heavy barrier; waits until all that entered have
//!   left. Every section that saw the flag down is committed before the barrier or
//!   starts again and finds it up: *entered* does not change any more. What leaves,
//!   wakes the writer.
//!
//! A reader that finds the flag up waits for the mutex of the writers. With that in
//! hand the flag is down, and it enters as any other.
//!
//! # No wake is lost
//!
//! A reader leaves, then looks at the flag; the writer raises the flag, then looks
//! at what has left. Between the reader's two steps stands a light barrier, between
//! the writer's two the heavy one: if the writer has not seen the reader leave, the
//! reader sees the flag, and tells. It tells by a number that grows; the writer
//! sleeps only if the number is what it was before it looked.
//!
//! # Without sections
//!
//! On the rungs `membarrier` and `fence`, and for a thread that is not registered or
//! is interrupted all the time: a reader adds to one of some shared words, and the
//! value that it replaces says whether that word is *closed*. The read-modify-write
//! orders the two sides, so there neither a barrier nor a second look is needed.
//!
//! # Orderings
//!
//! *Left* is Release (the section's commit, or the shared words) and pairs with the
//! Acquire of the writer's *Sum*. *Open* (flag and closed bits, Release) pairs with
//! the Acquire of the test of the flag. *Tell* (Release) pairs with *Listen*
//! (Acquire), as in `rwbase`.
//!
//! Source: big-reader locks (Linux 2.4 to 3.x: brlock, lglock), `percpu_rw_semaphore`
//! (Linux, Mikulas Patocka and Oleg Nesterov). Testing the flag and counting in one
//! section is this project's.

use crate::futex::{Futex, Os, Word};
use crate::sync::{Mutex, MutexGuard, Padded, lock, try_lock};
use crate::{About, AtOnce, RwSem};
use core::marker::PhantomData;
use percpu::barrier::{BarrierLost, Rung, heavy, light, rung};
use percpu::line::Line;
use percpu::section::{Miss, check_and_add};
use percpu::sync::atomic::{AtomicUsize, Ordering};

const OPEN: usize = 0;
const SHUT: usize = 1;

/// Words of a line.
const ENTERED: usize = 0;
const LEFT: usize = 1;

/// Of a shared word; the rest counts readers.
const CLOSED: usize = 1;
const ONE: usize = 2;

/// Interrupted sections before the caller has to do without.
const RESTARTS: usize = if cfg!(loom) { 1 } else { 64 };

/// The lock.
#[derive(Debug)]
pub struct PerCpu<F: Futex = Os> {
    /// Read by all, written by writers.
    flag: AtomicUsize,
    /// Never shut: for those who leave.
    always: AtomicUsize,
    lines: Box<[Line]>,
    shared: Box<[Padded<AtomicUsize>]>,
    /// What left a line and could not say so in one.
    left: Padded<AtomicUsize>,
    /// Grows when somebody leaves a waiting writer.
    told: Word,
    writers: Mutex<()>,
    futex: PhantomData<F>,
}

/// Where a reader is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Line,
    Shared(usize),
}

/// A reader inside.
#[derive(Debug)]
#[must_use = "the lock is released at once"]
pub struct Read<'a, F: Futex> {
    lock: &'a PerCpu<F>,
    place: Place,
    here: PhantomData<*const ()>,
}

/// The writer inside.
#[derive(Debug)]
#[must_use = "the lock is released at once"]
pub struct Write<'a, F: Futex> {
    lock: &'a PerCpu<F>,
    _writers: MutexGuard<'a, ()>,
}

impl<F: Futex> Drop for Read<'_, F> {
    #[inline(always)]
    fn drop(&mut self) {
        self.lock.leave(self.place);
    }
}

impl<F: Futex> Drop for Write<'_, F> {
    fn drop(&mut self) {
        self.lock.open();
    }
}

impl<F: Futex> RwSem for PerCpu<F> {
    const ABOUT: About = About {
        name: "percpu",
        what: "readers count on their CPU's line in a restartable section; a writer raises a flag, issues a barrier and waits for the sum",
        progress: "readers wait for a writer; a writer waits for a barrier and the readers inside",
        fairness: "a writer before new readers; then who gets the mutex",
        inherits: "nothing",
        source: "brlock and percpu_rw_semaphore of Linux, over this project's sections",
        readers: AtOnce::All,
        nests: false,
        pi: false,
        percpu: true,
        locks: true,
    };

    type Read<'a> = Read<'a, F>;
    type Write<'a> = Write<'a, F>;

    fn new() -> Self {
        // Sections run from now on.
        let _ = rung();
        #[cfg(loom)]
        let (lines, shared) = (percpu::line::MAX_LINES, 1);
        #[cfg(not(loom))]
        let (lines, shared) = (percpu::possible_cpus(), percpu::possible_cpus().max(16));
        Self {
            flag: AtomicUsize::new(OPEN),
            always: AtomicUsize::new(OPEN),
            lines: (0..lines).map(|_| Line::new()).collect(),
            shared: (0..shared).map(|_| Padded(AtomicUsize::new(0))).collect(),
            left: Padded(AtomicUsize::new(0)),
            told: Word::new(0),
            writers: Mutex::new(()),
            futex: PhantomData,
        }
    }

    /// # Progress
    ///
    /// Wait-free while no writer is inside or waits; else waits for it.
    #[inline]
    fn read(&self) -> Read<'_, F> {
        match self.enter() {
            Some(place) => self.guard(place),
            None => self.read_cold(),
        }
    }

    fn try_read(&self) -> Option<Read<'_, F>> {
        self.enter().map(|place| self.guard(place))
    }

    /// # Panics
    ///
    /// If the kernel refuses a barrier that it granted before.
    ///
    /// # Progress
    ///
    /// Waits for other writers, for a barrier, and for the readers inside; not for
    /// readers that come later.
    fn write(&self) -> Write<'_, F> {
        let writers = lock(&self.writers);
        if self.shut().is_err() {
            self.open();
            drop(writers);
            panic!("the kernel has refused a barrier");
        }
        loop {
            // Acquire: "Listen", pairs with "Tell".
            let heard = self.told.value.load(Ordering::Acquire);
            if self.inside() == 0 {
                return Write {
                    lock: self,
                    _writers: writers,
                };
            }
            F::wait(&self.told, heard);
        }
    }

    /// Stops readers for the time of a barrier, also if it fails.
    fn try_write(&self) -> Option<Write<'_, F>> {
        let writers = try_lock(&self.writers)?;
        if self.shut().is_ok() && self.inside() == 0 {
            return Some(Write {
                lock: self,
                _writers: writers,
            });
        }
        self.open();
        None
    }
}

impl<F: Futex> PerCpu<F> {
    #[inline(always)]
    fn guard(&self, place: Place) -> Read<'_, F> {
        Read {
            lock: self,
            place,
            here: PhantomData,
        }
    }

    /// Counts the caller in, unless a writer is there.
    #[inline(always)]
    fn enter(&self) -> Option<Place> {
        match self.section(&self.flag, ENTERED) {
            Ok(()) => Some(Place::Line),
            Err(Miss::Mismatch) => None,
            Err(miss) => self.enter_again(miss),
        }
    }

    #[inline(always)]
    fn section(&self, flag: &AtomicUsize, word: usize) -> Result<(), Miss> {
        let lines = self.lines.as_ptr();
        // SAFETY: so many lines; both words are in them; sections change them,
        // and nobody else does.
        unsafe { check_and_add(flag, OPEN, lines, self.lines.len(), word, 1) }
    }

    #[cold]
    #[inline(never)]
    fn enter_again(&self, mut miss: Miss) -> Option<Place> {
        for _ in 0..RESTARTS {
            if miss != Miss::Restarted {
                break;
            }
            match self.section(&self.flag, ENTERED) {
                Ok(()) => return Some(Place::Line),
                Err(Miss::Mismatch) => return None,
                Err(other) => miss = other,
            }
        }
        let place = crate::os::thread_id() as usize % self.shared.len();
        // Acquire: pairs with "Open".
        if self.shared[place].fetch_add(ONE, Ordering::Acquire) & CLOSED == 0 {
            return Some(Place::Shared(place));
        }
        self.leave_shared(place);
        None
    }

    #[cold]
    #[inline(never)]
    fn read_cold(&self) -> Read<'_, F> {
        let _writers = lock(&self.writers);
        let place = self.enter().expect("open while no writer has the mutex");
        self.guard(place)
    }

    #[inline(always)]
    fn leave(&self, place: Place) {
        match place {
            Place::Line => {
                if self.section(&self.always, LEFT).is_err() {
                    self.leave_again();
                }
                light();
                // Relaxed: the barriers order it after what was counted.
                if self.flag.load(Ordering::Relaxed) != OPEN {
                    self.tell();
                }
            }
            Place::Shared(place) => self.leave_shared(place),
        }
    }

    #[cold]
    #[inline(never)]
    fn leave_again(&self) {
        for _ in 0..RESTARTS {
            match self.section(&self.always, LEFT) {
                Ok(()) => return,
                Err(Miss::Restarted) => {}
                Err(_) => break,
            }
        }
        // Release: "Left".
        self.left.fetch_add(1, Ordering::Release);
    }

    fn leave_shared(&self, place: usize) {
        // Release: "Left".
        if self.shared[place].fetch_sub(ONE, Ordering::Release) & CLOSED != 0 {
            self.tell();
        }
    }

    #[cold]
    #[inline(never)]
    fn tell(&self) {
        // Release: "Tell", pairs with "Listen".
        self.told.value.fetch_add(1, Ordering::Release);
        F::wake(&self.told);
    }

    /// Nobody enters any more.
    fn shut(&self) -> Result<(), BarrierLost> {
        // Relaxed: the barrier makes it visible to sections.
        self.flag.store(SHUT, Ordering::Relaxed);
        for word in &self.shared {
            // Relaxed: the word orders the two sides by itself.
            word.fetch_or(CLOSED, Ordering::Relaxed);
        }
        if rung() == Rung::Rseq {
            heavy()?;
        }
        Ok(())
    }

    /// Readers inside, after [`shut`](Self::shut). May be too many, never too few.
    fn inside(&self) -> usize {
        let mut sum = 0usize;
        for line in &self.lines {
            // Relaxed: it does not change any more.
            sum = sum.wrapping_add(line.words()[ENTERED].load(Ordering::Relaxed));
            // Acquire: "Sum", pairs with "Left".
            sum = sum.wrapping_sub(line.words()[LEFT].load(Ordering::Acquire));
        }
        // Acquire (both): "Sum".
        sum = sum.wrapping_sub(self.left.load(Ordering::Acquire));
        for word in &self.shared {
            sum = sum.wrapping_add(word.load(Ordering::Acquire) / ONE);
        }
        sum
    }

    fn open(&self) {
        for word in &self.shared {
            // Release: "Open".
            word.fetch_and(!CLOSED, Ordering::Release);
        }
        // Release: "Open", pairs with the section's test of the flag.
        self.flag.store(OPEN, Ordering::Release);
    }
}
