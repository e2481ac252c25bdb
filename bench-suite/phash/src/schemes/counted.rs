//! What the schemes have in common that count references in each table, and replace it when the last has gone.
//!
//! Floor 3 (`phash`). Owns the pointer to the table in use, and the one that waits.
//!
//! As Linux 6.16 does it: a get finds the table under RCU and takes a reference unless the last has gone. To replace a
//! table its initial reference is given back; *dead* it is when the last one is, and then whoever notices – the last
//! put, a get that fails, the request itself – turns: moves the waiters, puts the next table into use, and leaves the
//! old one to RCU. Until then operations go on with the old table, and while they do not leave a moment without a
//! reference, the next one waits.
//!
//! A put is inside a section, too: its thread may be about to look at the count once more when another one frees it.

use crate::scheme::Replaced;
use crate::sync::{Condvar, Mutex, MutexGuard, Padded, lock, wait};
use crate::table::Table;
use percpu::sync::atomic::{AtomicPtr, Ordering};
use rcu_lite::ThreadRcu;
use refcounts::{Thread, Tracker};
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::time::Instant;

/// A table and its references.
#[derive(Debug)]
struct Counted<T> {
    count: Padded<T>,
    /// How many there were before.
    number: u64,
    table: Table,
}

/// What only replacements need to know.
#[derive(Debug)]
struct Writer {
    /// Of the table in use.
    number: u64,
    /// The table that waits.
    next: Option<Table>,
    /// The initial reference to the table in use was given back.
    killed: bool,
}

/// The pointer, and what replaces it.
#[derive(Debug)]
pub(super) struct Home<T: Tracker> {
    current: AtomicPtr<Counted<T>>,
    writer: Mutex<Writer>,
    turned: Condvar,
}

/// A reference to the table in use.
pub(super) struct Held<'a, T: Tracker> {
    home: &'a Home<T>,
    thread: &'a Thread,
    counted: *const Counted<T>,
    held: ManuallyDrop<T::Held>,
}

impl<T: Tracker> Home<T> {
    pub(super) fn new(first: Table) -> Self {
        Home {
            current: AtomicPtr::new(Self::boxed(0, first)),
            writer: Mutex::new(Writer {
                number: 0,
                next: None,
                killed: false,
            }),
            turned: Condvar::new(),
        }
    }

    fn boxed(number: u64, table: Table) -> *mut Counted<T> {
        Box::into_raw(Box::new(Counted {
            count: Padded(T::new()),
            number,
            table,
        }))
    }

    #[inline(always)]
    pub(super) fn protect<'a>(&'a self, thread: &'a Thread) -> Held<'a, T> {
        loop {
            let section = ThreadRcu.read();
            // Acquire: pairs with "Publish".
            let counted = self.current.load(Ordering::Acquire);
            // SAFETY: found in the section; what is replaced is freed after a grace period.
            if let Some(held) = unsafe { &(*counted).count }.try_get(thread) {
                drop(section);
                return Held {
                    home: self,
                    thread,
                    counted,
                    held: ManuallyDrop::new(held),
                };
            }
            // SAFETY: as above.
            let number = unsafe { (*counted).number };
            drop(section);
            self.turn(number);
        }
    }

    /// By whom knows that table `number` is dead.
    #[cold]
    #[inline(never)]
    fn turn(&self, number: u64) {
        self.turn_locked(&mut lock(&self.writer), number);
    }

    fn turn_locked(&self, writer: &mut Writer, number: u64) {
        if writer.number != number {
            return;
        }
        let next = writer.next.take().expect("dead only for a successor");
        // Relaxed: changed under the lock.
        let old = self.current.load(Ordering::Relaxed);
        // SAFETY: the current one is freed below at the earliest.
        unsafe { &(*old).table }.move_to(&next);
        let (census, asked) = (next.census(), next.asked);
        // Release: "Publish".
        self.current
            .store(Self::boxed(number + 1, next), Ordering::Release);
        census.in_use(asked);
        (writer.number, writer.killed) = (number + 1, false);
        self.turned.notify_all();
        // SAFETY: from a box, taken out under the lock.
        unsafe { ThreadRcu.defer_free(old) };
    }

    /// Gives the initial reference back, if that has not been done.
    fn kill(&self, writer: &mut Writer, thread: &Thread) {
        if writer.killed {
            return;
        }
        // Relaxed: changed under the lock.
        let current = self.current.load(Ordering::Relaxed);
        // SAFETY: the current one, which is freed under the lock.
        if let Ok(last) = unsafe { &(*current).count }.kill(thread) {
            writer.killed = true;
            if last {
                let number = writer.number;
                self.turn_locked(writer, number);
            }
        }
        // Else a barrier was refused: whoever waits next tries again.
    }

    pub(super) fn replace(&self, thread: &Thread, next: Table, until: Option<Instant>) -> Replaced {
        let mut writer = lock(&self.writer);
        while writer.next.is_some() {
            writer = match self.wait(writer, thread, until) {
                Some(writer) => writer,
                None => return Replaced::Busy,
            };
        }
        let number = writer.number;
        writer.next = Some(next);
        self.kill(&mut writer, thread);
        while writer.number == number {
            writer = match self.wait(writer, thread, until) {
                Some(writer) => writer,
                None => return Replaced::Pending,
            };
        }
        Replaced::InUse
    }

    fn wait<'a>(
        &'a self,
        mut writer: MutexGuard<'a, Writer>,
        thread: &Thread,
        until: Option<Instant>,
    ) -> Option<MutexGuard<'a, Writer>> {
        if !writer.killed {
            self.kill(&mut writer, thread);
            if writer.next.is_none() {
                return Some(writer);
            }
        }
        wait(&self.turned, writer, until)
    }

    pub(super) fn flush(&self) {
        ThreadRcu.barrier();
    }
}

impl<T: Tracker> Drop for Home<T> {
    fn drop(&mut self) {
        // Relaxed: nobody else is left.
        // SAFETY: from a box.
        drop(unsafe { Box::from_raw(self.current.load(Ordering::Relaxed)) });
    }
}

impl<T: Tracker> Deref for Held<'_, T> {
    type Target = Table;

    #[inline(always)]
    fn deref(&self) -> &Table {
        // SAFETY: referenced.
        unsafe { &(*self.counted).table }
    }
}

impl<T: Tracker> Drop for Held<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: taken once, here.
        let held = unsafe { ManuallyDrop::take(&mut self.held) };
        let section = ThreadRcu.read();
        // SAFETY: referenced until the put, and found in the section until its end.
        let (number, last) = unsafe {
            let number = (*self.counted).number;
            (number, (*self.counted).count.put(self.thread, held))
        };
        drop(section);
        if last {
            self.home.turn(number);
        }
    }
}

impl<T: Tracker> std::fmt::Debug for Held<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Held").field(&**self).finish()
    }
}

/// A scheme out of a count.
macro_rules! counted {
    ($(#[$doc:meta])* $name:ident over $tracker:ty, $about:expr) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name($crate::schemes::counted::Home<$tracker>);

        /// A reference to the table in use.
        #[derive(Debug)]
        pub struct Reference<'a>($crate::schemes::counted::Held<'a, $tracker>);

        impl std::ops::Deref for Reference<'_> {
            type Target = $crate::table::Table;

            #[inline(always)]
            fn deref(&self) -> &$crate::table::Table {
                &self.0
            }
        }

        impl $crate::scheme::Scheme for $name {
            const ABOUT: $crate::scheme::About = $about;

            type Guard<'a> = Reference<'a>;

            fn new(first: $crate::table::Table) -> Self {
                $name($crate::schemes::counted::Home::new(first))
            }

            #[inline(always)]
            fn protect<'a>(&'a self, thread: &'a refcounts::Thread) -> Reference<'a> {
                Reference(self.0.protect(thread))
            }

            fn replace(
                &self,
                thread: &refcounts::Thread,
                next: $crate::table::Table,
                until: Option<std::time::Instant>,
            ) -> $crate::scheme::Replaced {
                self.0.replace(thread, next, until)
            }

            fn flush(&self) {
                self.0.flush();
            }
        }
    };
}
pub(super) use counted;
