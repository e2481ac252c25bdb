//! One PI mutex for readers and writers: the lock of PREEMPT_RT until 2017.
//!
//! Floor 3 (`rwsems`). Owns the depth; the mutex is `pi`'s.
//!
//! Readers exclude each other, too. Whoever is inside may enter again, as a
//! reader: only a depth is counted then. The owner inherits from all who wait,
//! and that is all there is to inherit, so that no one waits longer than the one
//! section in front of it takes: what real time asks for, paid with parallel
//! readers.
//!
//! # A dead owner
//!
//! The next one is inside at depth 1, whatever the dead one's was.
//!
//! # Orderings
//!
//! The depth is the owner's own; the mutex hands it on.
//!
//! Source: `rt_down_read` of the -rt patches up to 4.9.20-rt15 (Thomas Gleixner
//! and others).

use crate::futex::{Futex, Os};
use crate::lock::guards;
use crate::pi::PiMutex;
use crate::{About, AtOnce, RwSem};
use percpu::sync::atomic::{AtomicUsize, Ordering};

/// The lock.
#[derive(Debug)]
pub struct PiSingle<F: Futex = Os> {
    owner: PiMutex<F>,
    depth: AtomicUsize,
}

guards!(PiSingle, ());

impl<F: Futex> RwSem for PiSingle<F> {
    const ABOUT: About = About {
        name: "pi-single",
        what: "one recursive PI mutex for readers and writers: one reader at a time",
        progress: "waits for the owner, and for those that are more urgent or came before",
        fairness: "by priority, then in turn",
        inherits: "the owner inherits from all who wait",
        source: "rt_down_read of the -rt patches up to 4.9.20-rt15",
        readers: AtOnce::One,
        nests: true,
        pi: true,
        percpu: false,
        locks: true,
    };

    type Read<'a> = Read<'a, F>;
    type Write<'a> = Write<'a, F>;

    fn new() -> Self {
        Self {
            owner: PiMutex::new(),
            depth: AtomicUsize::new(0),
        }
    }

    /// # Progress
    ///
    /// Waits for the owner, who inherits the caller's priority; not if that is
    /// the caller.
    #[inline]
    fn read(&self) -> Read<'_, F> {
        if self.owner.is_mine() {
            // Relaxed (all, of the depth): the owner's own.
            self.depth.fetch_add(1, Ordering::Relaxed);
        } else {
            let _ = self.owner.lock();
            self.depth.store(1, Ordering::Relaxed);
        }
        Read::new(self, ())
    }

    fn try_read(&self) -> Option<Read<'_, F>> {
        if self.owner.is_mine() {
            self.depth.fetch_add(1, Ordering::Relaxed);
        } else if self.owner.try_lock() {
            self.depth.store(1, Ordering::Relaxed);
        } else {
            return None;
        }
        Some(Read::new(self, ()))
    }

    /// # Panics
    ///
    /// If the caller is inside.
    ///
    /// # Progress
    ///
    /// Waits for the owner, who inherits the caller's priority.
    #[inline]
    fn write(&self) -> Write<'_, F> {
        let _ = self.owner.lock();
        self.depth.store(1, Ordering::Relaxed);
        Write::new(self)
    }

    fn try_write(&self) -> Option<Write<'_, F>> {
        self.owner.try_lock().then(|| {
            self.depth.store(1, Ordering::Relaxed);
            Write::new(self)
        })
    }

    fn limit(&self) -> Option<usize> {
        Some(1)
    }
}

impl<F: Futex> PiSingle<F> {
    #[inline]
    fn leave(&self, (): ()) {
        if self.depth.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.owner.unlock();
        }
    }

    #[inline]
    fn leave_write(&self) {
        self.leave(());
    }

    /// How often it was taken from a thread that had ended inside.
    #[must_use]
    pub fn deaths(&self) -> u64 {
        self.owner.deaths()
    }
}
