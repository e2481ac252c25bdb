//! A limited number of readers at once, each of which can be boosted.
//!
//! Floor 3 (`rwsems`). Owns the table of owners; the mutexes are `pi`'s.
//!
//! A writer can inherit its priority to a reader only by waiting for something
//! that this reader owns. So each reader inside owns a *seat*, a PI mutex of a
//! table, and the writer takes all seats, one after the other. While it waits
//! for one, the reader in it runs at the writer's priority.
//!
//! ```text
//! reader:  free seat? ── yes ─▶ inside
//!             └─ no, or a writer is at work: wait for a seat, or for the door
//! writer:  door ─▶ flag up ─▶ seat 0 ─▶ seat 1 ─▶ … ─▶ inside ─▶ all back ─▶ flag down ─▶ door back
//! ```
//!
//! * **Exclusion** is by the seats alone: who has all of them is alone.
//! * **The door** is a PI mutex of writers. A reader that sees the flag waits
//!   there, and boosts the writer, and through it the reader that the writer waits
//!   for: the kernel follows such chains.
//! * **The limit** is the number of seats. It bounds how long a writer waits: that
//!   many sections.
//!
//! A thread can wait for one futex only, so readers are boosted *one after the
//! other*, in the order of their seats, and never two at the same time. (The
//! kernel's own version boosts all of them at once, from its own list.) On one CPU
//! that makes no difference, for readers run one after the other there anyway; on
//! several a writer waits for the sum of what is left of their sections where it
//! would wait for the longest.
//!
//! Reading again inside a section only counts. (A thread that is in no section of
//! such a lock does not look for its seat.) A writer may read, too.
//!
//! # A dead owner
//!
//! A seat or the door of a thread that has ended is taken over by the next writer,
//! or by a reader that waits for that seat.
//!
//! # Orderings
//!
//! What a reader does is handed on by its seat, what a writer does by every seat.
//! The flag carries nothing: it only sends readers to the door.
//!
//! Source: Steven Rostedt's multi-reader PI rwsems (RFC 2014; his rw_mutex of
//! 2008), from their description; seats are this project's way to do it with what
//! user space has.

use crate::futex::{Futex, Os};
use crate::lock::guards;
use crate::pi::{PiMutex, Taken};
use crate::sync::Padded;
use crate::{About, AtOnce, RwSem};
use core::cell::Cell;
use percpu::sync::atomic::{AtomicUsize, Ordering};

#[derive(Debug)]
struct Seat<F: Futex> {
    owner: PiMutex<F>,
    /// How often the owner has entered.
    depth: AtomicUsize,
}

/// The lock.
#[derive(Debug)]
pub struct PiMulti<F: Futex = Os> {
    door: PiMutex<F>,
    /// A writer has the door.
    writing: AtomicUsize,
    seats: Box<[Padded<Seat<F>>]>,
}

guards!(PiMulti, usize);

#[cfg(loom)]
loom::thread_local! {
    static INSIDE: Cell<usize> = Cell::new(0);
}
#[cfg(not(loom))]
thread_local! {
    /// Sections of all such locks that the thread is in.
    static INSIDE: Cell<usize> = const { Cell::new(0) };
}

impl<F: Futex> RwSem for PiMulti<F> {
    const ABOUT: About = About {
        name: "pi-multi",
        what: "a limited number of readers (as many as CPUs), each in a seat that is a PI mutex; a writer takes all seats",
        progress: "waits for as many sections as there are seats, and for those that are more urgent or came before",
        fairness: "by priority, then in turn; readers wait while a writer is at work",
        inherits: "a writer boosts the readers that it waits for, one after the other; who waits for a writer boosts it",
        source: "Steven Rostedt's multi-reader PI rwsems, RFC 2014",
        readers: AtOnce::Limit,
        nests: true,
        pi: true,
        percpu: false,
        locks: true,
    };

    type Read<'a> = Read<'a, F>;
    type Write<'a> = Write<'a, F>;

    fn new() -> Self {
        #[cfg(loom)]
        let limit = 2;
        #[cfg(not(loom))]
        let limit = std::thread::available_parallelism().map_or(1, Into::into);
        Self::with_limit(limit)
    }

    /// # Progress
    ///
    /// Waits for a writer at work, which inherits the caller's priority; or for
    /// one of the readers inside, which does too, where all seats are taken.
    #[inline]
    fn read(&self) -> Read<'_, F> {
        let seat = match self.sit() {
            Some(seat) => seat,
            None => self.wait(),
        };
        self.enter(seat)
    }

    fn try_read(&self) -> Option<Read<'_, F>> {
        self.sit().map(|seat| self.enter(seat))
    }

    /// # Panics
    ///
    /// If the caller is inside.
    ///
    /// # Progress
    ///
    /// Waits for other writers, and for the readers inside, one after the other;
    /// whoever it waits for inherits its priority. Not for readers that come
    /// later.
    fn write(&self) -> Write<'_, F> {
        // Before anything is taken.
        assert!(
            !inside() || self.own_seat().is_none(),
            "deadlock: the thread would wait for itself"
        );
        let _ = self.door.lock();
        // Relaxed: carries nothing.
        self.writing.store(1, Ordering::Relaxed);
        for seat in &self.seats {
            let _ = seat.owner.lock();
            // Relaxed (all, of the depth): the owner's own.
            seat.depth.store(0, Ordering::Relaxed);
        }
        count(1);
        Write::new(self)
    }

    fn try_write(&self) -> Option<Write<'_, F>> {
        if !self.door.try_lock() {
            return None;
        }
        for (n, seat) in self.seats.iter().enumerate() {
            if !seat.owner.try_lock() {
                for seat in &self.seats[..n] {
                    seat.owner.unlock();
                }
                self.door.unlock();
                return None;
            }
            seat.depth.store(0, Ordering::Relaxed);
        }
        // Relaxed: as above. Not before: who only tries sends nobody away.
        self.writing.store(1, Ordering::Relaxed);
        count(1);
        Some(Write::new(self))
    }

    fn limit(&self) -> Option<usize> {
        Some(self.seats.len())
    }
}

/// Changes the number of sections that the thread is in. Wrapping: -1 is
/// `usize::MAX`.
fn count(change: usize) {
    // Not there while the thread ends: then it looks for its seat in vain, or
    // needlessly.
    let _ = INSIDE.try_with(|inside| inside.set(inside.get().wrapping_add(change)));
}

fn inside() -> bool {
    INSIDE.try_with(|inside| inside.get() != 0).unwrap_or(true)
}

impl<F: Futex> PiMulti<F> {
    /// A lock that lets `limit` readers in.
    ///
    /// # Panics
    ///
    /// If that is none.
    #[must_use]
    pub fn with_limit(limit: usize) -> Self {
        assert!(limit > 0, "a lock for no reader");
        let seat = || Seat {
            owner: PiMutex::new(),
            depth: AtomicUsize::new(0),
        };
        Self {
            door: PiMutex::new(),
            writing: AtomicUsize::new(0),
            seats: (0..limit).map(|_| Padded(seat())).collect(),
        }
    }

    /// The seat to begin with: threads go to different ones.
    fn favourite(&self) -> usize {
        crate::os::thread_id() as usize % self.seats.len()
    }

    fn own_seat(&self) -> Option<usize> {
        self.seats.iter().position(|seat| seat.owner.is_mine())
    }

    /// A seat that can be had at once: the thread's own, or a free one.
    #[inline]
    fn sit(&self) -> Option<usize> {
        if inside()
            && let Some(mine) = self.own_seat()
        {
            return Some(mine);
        }
        // Relaxed: carries nothing; a writer that comes later waits for the seat.
        if self.writing.load(Ordering::Relaxed) != 0 {
            return None;
        }
        let (first, count) = (self.favourite(), self.seats.len());
        (first..first + count)
            .map(|n| n % count)
            .find(|&n| self.take(n, false))
    }

    /// Takes a seat that is not the thread's own.
    fn take(&self, n: usize, wait: bool) -> bool {
        let seat = &self.seats[n];
        if wait {
            let _ = seat.owner.lock();
        } else if !seat.owner.try_lock() {
            return false;
        }
        seat.depth.store(0, Ordering::Relaxed);
        true
    }

    #[cold]
    #[inline(never)]
    fn wait(&self) -> usize {
        let favourite = self.favourite();
        // Relaxed: as in `sit`.
        if self.writing.load(Ordering::Relaxed) == 0 {
            self.take(favourite, true);
            return favourite;
        }
        // With the door in hand there is no writer, and none begins.
        if self.door.lock() == Taken::FromTheDead {
            // Relaxed: it was the dead writer's.
            self.writing.store(0, Ordering::Relaxed);
        }
        let seat = self.sit().unwrap_or_else(|| {
            self.take(favourite, true);
            favourite
        });
        self.door.unlock();
        seat
    }

    #[inline(always)]
    fn enter(&self, seat: usize) -> Read<'_, F> {
        self.seats[seat].depth.fetch_add(1, Ordering::Relaxed);
        count(1);
        Read::new(self, seat)
    }

    #[inline]
    fn leave(&self, seat: usize) {
        let seat = &self.seats[seat];
        count(usize::MAX);
        if seat.depth.fetch_sub(1, Ordering::Relaxed) == 1 {
            // A reader in a writer's section has it from the writer.
            // Relaxed: the writer's own flag.
            if self.writing.load(Ordering::Relaxed) != 0 && self.door.is_mine() {
                return;
            }
            seat.owner.unlock();
        }
    }

    fn leave_write(&self) {
        count(usize::MAX);
        for seat in &self.seats {
            seat.owner.unlock();
        }
        // Relaxed: carries nothing; under the door.
        self.writing.store(0, Ordering::Relaxed);
        self.door.unlock();
    }

    /// How often a seat or the door was taken from a thread that had ended.
    #[must_use]
    pub fn deaths(&self) -> u64 {
        let seats = self.seats.iter().map(|seat| seat.owner.deaths());
        seats.sum::<u64>() + self.door.deaths()
    }
}
