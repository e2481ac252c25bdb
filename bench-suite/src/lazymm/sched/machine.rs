//! Floor 3, bench-suite. Owns what simulated CPUs share: the tracker, the processes, and what each CPU shows to others.
//! May touch the tracker and the mm.
//!
//! A process is a line of address spaces: an *exec* of one of its tasks puts a new mm in the place of the old one. The
//! tasks on other CPUs stay users of the old one until their next switch; then they exit, and the next task of the
//! process on that CPU is born in the new one. So an mm that all CPUs share loses its users one by one, each to its own
//! CPU, and the last one may be anywhere. The process itself is a user of its newest mm.
//!
//! **Orderings.** Which mm is the newest is told by the mutex: joining it and replacing it are done under it, so whoever
//! joins finds it with a user. The word beside the mutex is a hint to look there, Relaxed. What a CPU shows of its mm is
//! Relaxed: where a check needs to see it, the slot's *Clear* or the interrupt's *Answer* carries it.

use super::super::invariants::Invariants;
use super::super::mm::{Census, Mm};
use super::super::tracker::Tracker;
use super::irq::{Ipi, Line};
use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a CPU shows that has the kernel's mm.
pub(super) const INIT: u64 = 0;

/// What the options ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Settings {
    /// Simulated CPUs.
    pub(super) cpus: usize,
    /// Of a hundred switches, how many go to a kernel thread.
    pub(super) kthread_share: u32,
    /// Processes that all CPUs share.
    pub(super) mms: usize,
    /// Switches between two execs of a CPU; 0 for none.
    pub(super) exit_every: u64,
    /// Turns of work after each switch.
    pub(super) work: u32,
    /// How interrupts come.
    pub(super) ipi: Ipi,
    /// Of the choice among user tasks.
    pub(super) seed: u64,
}

/// A line of address spaces, alone on its cache lines.
#[repr(align(128))]
pub(super) struct Process<T: Tracker> {
    newest: AtomicPtr<Mm<T>>,
    moving: Mutex<()>,
}

impl<T: Tracker> Process<T> {
    fn new(tracker: &T, census: &'static Census) -> Self {
        // The one user is the process.
        let mm = Mm::new(tracker.mark(), 1, census);
        Process {
            newest: AtomicPtr::new(mm.as_ptr()),
            moving: Mutex::default(),
        }
    }

    /// Whether `mm` has been replaced: a hint that comes a little late.
    #[inline(always)]
    pub(super) fn has_left(&self, mm: NonNull<Mm<T>>) -> bool {
        self.newest.load(Relaxed) != mm.as_ptr()
    }

    fn moving(&self) -> MutexGuard<'_, ()> {
        self.moving.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A task is born in the newest mm: one more user.
    pub(super) fn join(&self) -> NonNull<Mm<T>> {
        let _moving = self.moving();
        let mm =
            NonNull::new(self.newest.load(Relaxed)).expect("a process has an mm until the end");
        // SAFETY: the process is one of its users while the mutex is held.
        unsafe { mm.as_ref() }.join();
        mm
    }

    /// Replaces `old` by a new mm. Whether it did: another CPU may have been first. The caller then owes the leave of
    /// the process.
    pub(super) fn exec(&self, old: NonNull<Mm<T>>, tracker: &T, census: &'static Census) -> bool {
        let _moving = self.moving();
        if self.has_left(old) {
            return false;
        }
        let new = Mm::new(tracker.mark(), 1, census);
        self.newest.store(new.as_ptr(), Relaxed);
        true
    }

    /// The process ends. The caller owes the leave of the process.
    pub(super) fn end(&self) -> Option<NonNull<Mm<T>>> {
        let _moving = self.moving();
        NonNull::new(self.newest.swap(ptr::null_mut(), Relaxed))
    }
}

/// What a CPU shows to others.
#[derive(Debug)]
pub(super) struct Shown {
    /// Its interrupts.
    pub(super) line: Line,
    mm: ShownMm,
}

/// Written by the CPU at every switch.
#[derive(Debug)]
#[repr(align(128))]
struct ShownMm(AtomicU64);

impl Shown {
    /// The number of the mm that it has now.
    #[inline(always)]
    pub(super) fn has(&self, serial: u64) {
        self.mm.0.store(serial, Relaxed);
    }
}

/// All of it.
pub(super) struct Machine<T: Tracker> {
    pub(super) tracker: T,
    pub(super) settings: Settings,
    pub(super) processes: Box<[Process<T>]>,
    pub(super) cpus: Box<[Shown]>,
    /// The mm of the kernel, which never dies.
    pub(super) init: NonNull<Mm<T>>,
    pub(super) census: &'static Census,
    pub(super) invariants: Invariants,
    pub(super) course: Course,
}

/// How far the end of a run has come. Relaxed all: what the threads did is told by `join`, the interrupts, and the mms'
/// counts of users.
#[derive(Debug, Default)]
pub(super) struct Course {
    /// CPUs whose tasks have all exited.
    pub(super) ended: AtomicUsize,
    /// The processes have ended too, everything is torn down.
    pub(super) closed: AtomicBool,
    /// CPUs that have let go of their last mm.
    pub(super) idle: AtomicUsize,
}

// SAFETY: the pointers are to mms, which may be used and freed by any thread while the protocol says that they live.
unsafe impl<T: Tracker> Send for Machine<T> {}
// SAFETY: as above.
unsafe impl<T: Tracker> Sync for Machine<T> {}

impl<T: Tracker> Machine<T> {
    /// A machine at rest. The kernel's mm is not in the census.
    pub(super) fn new(settings: Settings) -> Self {
        let tracker = T::new(settings.cpus);
        let census = Census::leak();
        let shown = |_| Shown {
            line: Line::new(settings.ipi),
            mm: ShownMm(AtomicU64::new(INIT)),
        };
        Machine {
            processes: (0..settings.mms)
                .map(|_| Process::new(&tracker, census))
                .collect(),
            cpus: (0..settings.cpus).map(shown).collect(),
            init: Mm::new(tracker.mark(), 1, Census::leak()),
            census,
            invariants: Invariants::default(),
            course: Course::default(),
            settings,
            tracker,
        }
    }

    /// I2: after a tear-down no CPU has the mm of this number, which was at `address`. `freed`: how many had been
    /// freed before it was, so that a block that may have gone to a new mm is not taken for it.
    pub(super) fn nobody_has(&self, serial: u64, address: *const Mm<T>, freed: u64) {
        for (index, cpu) in self.cpus.iter().enumerate() {
            let in_slot = self.tracker.slot(index) == Some(address);
            let has = cpu.mm.0.load(Relaxed) == serial;
            if has || (in_slot && self.census.block_is_kept_since(freed)) {
                self.invariants.broken(2, 1);
            }
        }
    }
}
