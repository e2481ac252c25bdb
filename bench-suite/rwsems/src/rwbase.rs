//! The rwsem of PREEMPT_RT today: a count of readers with a bias, and a PI
//! mutex for writers.
//!
//! Floor 3 (`rwsems`). Owns the count; the mutex is `pi`'s, the writer's sleep
//! `futex`'s.
//!
//! # The count
//!
//! | value | means | a reader |
//! |---|---|---|
//! | `BIAS` + n | n readers, no writer | adds 1 |
//! | n | n readers; a writer has the mutex and waits until n is 0 | adds 1 (it overtakes) |
//! | `INSIDE` | the writer is inside | waits for the mutex, so that the writer inherits its priority; adds 1 with the mutex in hand |
//!
//! A writer takes the mutex, takes the bias away, and replaces 0 by `INSIDE` as
//! soon as it can. Only the last reader out finds 0, and only while the bias is
//! away: it wakes the writer.
//!
//! # What is inherited
//!
//! Who waits for the mutex, reader or writer, boosts its owner. A writer that waits
//! for readers boosts nobody: nothing says who they are. That is why a reader
//! overtakes a waiting writer: it costs real-time readers nothing, and writers are
//! not real-time (so the kernel's reasoning). A stream of readers starves a writer.
//!
//! # A dead owner
//!
//! A writer that ends inside is noticed by whoever gets the mutex next, who puts
//! the bias back. A reader that ends inside is never counted out.
//!
//! # Orderings
//!
//! *Leave* (Release) pairs with *Enter* (Acquire), when the writer finds 0. *Open*
//! (Release) pairs with the Acquire of readers' additions; readers that waited for
//! the mutex have everything from that. *Tell* (Release) pairs with *Listen*
//! (Acquire): a writer that has seen the last reader's message also sees its 0, and
//! does not fall asleep.
//!
//! The kernel has a lock around the two steps "is it 0? then it is mine" and "may I
//! overtake?"; here they are one compare-exchange each.
//!
//! Source: `kernel/locking/rwbase_rt.c` (Linux 5.15; -rt since 4.9.20-rt16, Thomas
//! Gleixner).

use crate::futex::{Futex, Os, Word};
use crate::lock::guards;
use crate::pi::{PiMutex, Taken};
use crate::sync::Padded;
use crate::{About, AtOnce, RwSem};
use core::marker::PhantomData;
use percpu::sync::atomic::{AtomicU32, Ordering};

const BIAS: u32 = 1 << 31;
const INSIDE: u32 = 1 << 30;

/// The lock.
#[derive(Debug)]
pub struct RwBase<F: Futex = Os> {
    readers: Padded<AtomicU32>,
    /// Grows when the last reader has left a waiting writer.
    last: Word,
    writer: PiMutex<F>,
    futex: PhantomData<F>,
}

guards!(RwBase, ());

impl<F: Futex> RwSem for RwBase<F> {
    const ABOUT: About = About {
        name: "rwbase",
        what: "the rwsem of PREEMPT_RT today: a count of readers with a bias, a PI mutex for writers",
        progress: "readers wait for a writer inside; a writer waits for all readers, also those that come later",
        fairness: "readers overtake a waiting writer; writers by priority, then in turn",
        inherits: "the writer inside inherits from readers and writers; a writer that waits for readers boosts nobody",
        source: "kernel/locking/rwbase_rt.c, Linux 5.15 and later",
        readers: AtOnce::All,
        nests: true,
        pi: true,
        percpu: false,
        locks: true,
    };

    type Read<'a> = Read<'a, F>;
    type Write<'a> = Write<'a, F>;

    fn new() -> Self {
        Self {
            readers: Padded(AtomicU32::new(BIAS)),
            last: Word::new(0),
            writer: PiMutex::new(),
            futex: PhantomData,
        }
    }

    /// # Progress
    ///
    /// Lock-free while no writer is inside: an attempt fails when another
    /// thread's succeeds. Else waits for the writer, who inherits the caller's
    /// priority.
    #[inline]
    fn read(&self) -> Read<'_, F> {
        if !self.overtake() {
            self.read_cold();
        }
        Read::new(self, ())
    }

    fn try_read(&self) -> Option<Read<'_, F>> {
        self.overtake().then(|| Read::new(self, ()))
    }

    /// # Progress
    ///
    /// Waits for other writers, which inherit the caller's priority, and then for
    /// all readers, which do not; also for readers that come later.
    fn write(&self) -> Write<'_, F> {
        self.take_writer();
        // Relaxed: sends readers nowhere, see the table.
        self.readers.fetch_sub(BIAS, Ordering::Relaxed);
        loop {
            // Acquire: "Listen", pairs with "Tell".
            let heard = self.last.value.load(Ordering::Acquire);
            if self.finish() {
                return Write::new(self);
            }
            F::wait(&self.last, heard);
        }
    }

    fn try_write(&self) -> Option<Write<'_, F>> {
        if !self.writer.try_lock() {
            return None;
        }
        // Relaxed: as in `write`.
        self.readers.fetch_sub(BIAS, Ordering::Relaxed);
        if self.finish() {
            return Some(Write::new(self));
        }
        // Relaxed: nothing was done.
        self.readers.fetch_add(BIAS, Ordering::Relaxed);
        self.writer.unlock();
        None
    }
}

impl<F: Futex> RwBase<F> {
    /// Adds a reader unless a writer is inside.
    #[inline(always)]
    fn overtake(&self) -> bool {
        // Relaxed: a guess.
        let mut now = self.readers.load(Ordering::Relaxed);
        while now != INSIDE {
            // Acquire: pairs with "Open".
            match self.readers.compare_exchange_weak(
                now,
                now + 1,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return true,
                Err(seen) => now = seen,
            }
        }
        false
    }

    #[cold]
    #[inline(never)]
    fn read_cold(&self) {
        self.take_writer();
        // Relaxed: the mutex has brought what the writers did.
        self.readers.fetch_add(1, Ordering::Relaxed);
        self.writer.unlock();
    }

    /// Takes the mutex, with the bias in place.
    fn take_writer(&self) {
        if self.writer.lock() == Taken::FromTheDead {
            self.repair();
        }
    }

    /// The last writer has ended inside, or on the way.
    #[cold]
    fn repair(&self) {
        // Relaxed (all): only the owner of the mutex changes more than units.
        let mut now = self.readers.load(Ordering::Relaxed);
        while now & BIAS == 0 {
            let new = if now == INSIDE { BIAS } else { now + BIAS };
            match self
                .readers
                .compare_exchange(now, new, Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) => return,
                Err(seen) => now = seen,
            }
        }
    }

    /// Goes inside if the last reader has left.
    fn finish(&self) -> bool {
        // Acquire: "Enter", pairs with "Leave".
        self.readers
            .compare_exchange(0, INSIDE, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    #[inline]
    fn leave(&self, (): ()) {
        // Release: "Leave", pairs with "Enter".
        if self.readers.fetch_sub(1, Ordering::Release) == 1 {
            self.tell();
        }
    }

    #[cold]
    #[inline(never)]
    fn tell(&self) {
        // Release: "Tell", pairs with "Listen".
        self.last.value.fetch_add(1, Ordering::Release);
        F::wake(&self.last);
    }

    fn leave_write(&self) {
        // Release: "Open", pairs with the readers' additions.
        self.readers.fetch_add(BIAS - INSIDE, Ordering::Release);
        self.writer.unlock();
    }

    /// How often the mutex was taken from a thread that had ended.
    #[must_use]
    pub fn deaths(&self) -> u64 {
        self.writer.deaths()
    }
}
