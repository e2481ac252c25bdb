//! `futex-ref`: one set of per-CPU counters for all tables of the hash.
//!
//! Floor 3 (`phash`). The kernel's private hash since 6.17. Two tables exist at a time, in two places that are used in
//! turn; a reference says which. Needs no RCU to find a table: the reference is taken first.
//!
//! # Locks
//!
//! The writer's lock comes before the one inside the counters.

use crate::scheme::{About, Replaced, Replaces, Scheme};
use crate::sync::{Condvar, Mutex, MutexGuard, lock, wait};
use crate::table::Table;
use percpu::sync::atomic::{AtomicPtr, Ordering};
use refcounts::Thread;
use refcounts::futex_ref::{FutexRef as Counters, Table as Number};
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr;
use std::time::Instant;

/// What only replacements need to know.
#[derive(Debug, Default)]
struct Writer {
    /// Replacements so far.
    done: usize,
    /// The table that waits.
    next: Option<Table>,
    /// The initial reference to the table in use was given back.
    dropped: bool,
}

/// The counters and the places.
#[derive(Debug)]
pub struct FutexRef {
    counters: Counters,
    places: [AtomicPtr<Table>; 2],
    writer: Mutex<Writer>,
    turned: Condvar,
}

/// A reference to the table in use.
#[derive(Debug)]
pub struct Reference<'a> {
    home: &'a FutexRef,
    thread: &'a Thread,
    table: *const Table,
    number: ManuallyDrop<Number>,
}

impl Deref for Reference<'_> {
    type Target = Table;

    #[inline(always)]
    fn deref(&self) -> &Table {
        // SAFETY: referenced.
        unsafe { &*self.table }
    }
}

impl Drop for Reference<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: taken once, here.
        let number = unsafe { ManuallyDrop::take(&mut self.number) };
        if self.home.counters.put(self.thread, number) {
            self.home.turn();
        }
    }
}

impl FutexRef {
    fn place(&self, number: usize) -> &AtomicPtr<Table> {
        &self.places[number & 1]
    }

    /// By whom has seen that the table in use is dead.
    #[cold]
    #[inline(never)]
    fn turn(&self) {
        self.turn_locked(&mut lock(&self.writer));
    }

    fn turn_locked(&self, writer: &mut Writer) {
        let turned = self.counters.pivot(|from, to| {
            let next = writer.next.take().expect("dead only for a successor");
            // Relaxed (all): published by the counters' "Ready", and nobody has either place now.
            let old = self.place(from).swap(ptr::null_mut(), Ordering::Relaxed);
            // SAFETY: from a box; nobody has a reference.
            let old = unsafe { Box::from_raw(old) };
            old.move_to(&next);
            self.place(to)
                .store(Box::into_raw(Box::new(next)), Ordering::Relaxed);
        });
        if turned {
            writer.done += 1;
            writer.dropped = false;
            // Relaxed: stored above.
            let current = self.place(writer.done).load(Ordering::Relaxed);
            // SAFETY: the current one is freed under the lock.
            let (census, asked) = unsafe { ((*current).census(), (*current).asked) };
            census.in_use(asked);
            self.turned.notify_all();
        }
    }

    /// Gives the initial reference back, if that has not been done.
    fn drop_table(&self, writer: &mut Writer) {
        if writer.dropped {
            return;
        }
        if let Ok(last) = self.counters.drop_table() {
            writer.dropped = true;
            if last {
                self.turn_locked(writer);
            }
        }
        // Else a barrier was refused: whoever waits next tries again.
    }

    fn wait<'a>(
        &'a self,
        mut writer: MutexGuard<'a, Writer>,
        until: Option<Instant>,
    ) -> Option<MutexGuard<'a, Writer>> {
        if !writer.dropped {
            self.drop_table(&mut writer);
            if writer.next.is_none() {
                return Some(writer);
            }
        }
        wait(&self.turned, writer, until)
    }
}

impl Scheme for FutexRef {
    const ABOUT: About = About {
        name: "futex-ref",
        measures: "one set of per-CPU counters for all tables: an addition and a subtraction on the CPU's line; one shared count from the request for a replacement on: the private hash of Linux 6.17",
        replaces: Replaces::WhenUnused,
        percpu: true,
    };

    type Guard<'a> = Reference<'a>;

    fn new(first: Table) -> Self {
        FutexRef {
            counters: Counters::new(),
            places: [
                AtomicPtr::new(Box::into_raw(Box::new(first))),
                AtomicPtr::new(ptr::null_mut()),
            ],
            writer: Mutex::default(),
            turned: Condvar::new(),
        }
    }

    #[inline(always)]
    fn protect<'a>(&'a self, thread: &'a Thread) -> Reference<'a> {
        loop {
            if let Some(number) = self.counters.get(thread) {
                return Reference {
                    home: self,
                    thread,
                    // Relaxed: the reference came after the counters' "Ready".
                    table: self.place(number.number()).load(Ordering::Relaxed),
                    number: ManuallyDrop::new(number),
                };
            }
            self.turn();
        }
    }

    fn replace(&self, _: &Thread, next: Table, until: Option<Instant>) -> Replaced {
        let mut writer = lock(&self.writer);
        while writer.next.is_some() {
            writer = match self.wait(writer, until) {
                Some(writer) => writer,
                None => return Replaced::Busy,
            };
        }
        let done = writer.done;
        writer.next = Some(next);
        self.drop_table(&mut writer);
        while writer.done == done {
            writer = match self.wait(writer, until) {
                Some(writer) => writer,
                None => return Replaced::Pending,
            };
        }
        Replaced::InUse
    }
}

impl Drop for FutexRef {
    fn drop(&mut self) {
        for place in &self.places {
            // Relaxed: nobody else is left.
            let table = place.load(Ordering::Relaxed);
            if !table.is_null() {
                // SAFETY: from a box.
                drop(unsafe { Box::from_raw(table) });
            }
        }
    }
}
