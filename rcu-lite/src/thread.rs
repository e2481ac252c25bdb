//! The per-thread flavour: [`ThreadRcu`].
//!
//! Floor 2 (`rcu-lite`), public layer over `records`. Owns the process-wide
//! records of this flavour, the thread-locals that find a thread's own, and
//! what happens when a thread ends or the process forks.
//!
//! # Reader
//!
//! Outermost: store the epoch into the thread's record – light barrier. Nested:
//! add 1. Leave: subtract 1. See the module `records` for why one turn is enough.
//!
//! On the fence rung the light barrier is a fence; so that the others need not
//! ask for the rung, the pointer that the straight way uses stays null there.
//!
//! # The end of a thread
//!
//! A destructor gives the record back. One that is still inside (a guard in a
//! thread-local that is destroyed later; a guard that was leaked) is *abandoned*:
//! free as soon as it is quiescent. A section that begins later in the thread's
//! teardown nests in that, or takes a record and abandons it at once.
//!
//! Source: liburcu's `memb` flavour (a word a thread, nesting in its low bits),
//! with a 48-bit epoch instead of a phase bit.

#[cfg(not(loom))]
pub use public::{Guard, ThreadRcu};

use crate::records::{DEEPEST, Record, Records};
use percpu::barrier::{Rung, light_on};

/// Enters, outermost or nested.
///
/// # Panics
///
/// At the 65 536th section on top of each other.
#[inline(always)]
pub(crate) fn enter(records: &Records, record: &Record, rung: Rung) {
    let word = record.word();
    if word & DEEPEST == 0 {
        record.set(records.epoch());
        light_on(rung);
    } else {
        nest(record, word, rung);
    }
}

/// Enters once more. Out of line: the outermost section is the one that must
/// be cheap.
#[cold]
#[inline(never)]
fn nest(record: &Record, word: u64, rung: Rung) {
    if word & DEEPEST == DEEPEST {
        too_deep();
    }
    record.nest(word);
    // For a signal handler that came in between the outermost section's store
    // and its barrier.
    light_on(rung);
}

#[cold]
#[inline(never)]
fn too_deep() -> ! {
    panic!("more than {DEEPEST} read-side sections of one thread on top of each other")
}

/// The flavour's one domain.
#[cfg(not(loom))]
type Core = crate::process_wide::ProcessWide<crate::records::Asymmetric>;

#[cfg(not(loom))]
mod public {
    use super::{Core, enter};
    use crate::flavor::surface;
    use crate::grace::Grace;
    use crate::queue::{Domain, Queue};
    use crate::records::{Asymmetric, Record, Records};
    use core::cell::Cell;
    use core::fmt;
    use core::marker::PhantomData;
    use core::ptr;
    use percpu::barrier::{Rung, rung};
    use percpu::sync::atomic::{AtomicBool, Ordering};

    static CORE: Core = Core::new(Asymmetric(Records::new()));

    /// What a thread knows of itself. Constant, and without a destructor.
    struct Local {
        /// The record, on the rungs whose light barrier is none.
        straight: Cell<*const Record>,
        /// The record.
        record: Cell<*const Record>,
        /// The record that the thread abandoned last: the one that it was inside
        /// of when its destructor ran, or one of a later section.
        left: Cell<*const Record>,
    }

    thread_local! {
        static LOCAL: Local = const {
            Local {
                straight: Cell::new(ptr::null()),
                record: Cell::new(ptr::null()),
                left: Cell::new(ptr::null()),
            }
        };
        /// Its destructor gives the record back.
        static EXIT: Exit = const { Exit };
    }

    struct Exit;

    impl Drop for Exit {
        fn drop(&mut self) {
            LOCAL.with(|local| {
                local.straight.set(ptr::null());
                let record = local.record.replace(ptr::null());
                // SAFETY: records of a static live for ever.
                if let Some(record) = unsafe { record.as_ref() } {
                    if record.depth() == 0 {
                        CORE.records.0.give_back(record);
                    } else {
                        // A guard in a thread-local that is destroyed later; or
                        // one that was leaked, and protects references that
                        // other threads may have.
                        local.left.set(record);
                        CORE.records.0.abandon(record);
                    }
                }
            });
        }
    }

    /// RCU with a counter a thread: the cheapest readers that nest.
    ///
    /// One domain, process-wide; this is its handle. Threads register by
    /// themselves at their first section and are forgotten when they end.
    /// Guards stay on their thread.
    ///
    /// A grace period looks at the record of every thread that ever read at
    /// the same time as others; records are reused.
    ///
    /// # Inside a section
    ///
    /// Whatever waits for a grace period panics there instead of waiting for
    /// itself.
    ///
    /// # Fork
    ///
    /// A child forgets the readers of threads that it does not have and keeps
    /// those of the forking thread. So the forking thread must not go on using
    /// references that another thread lent to it, whose guard that one holds.
    /// (A guard that was leaked by a thread that has ended still counts.)
    ///
    /// Callbacks that were being run, or waited for by the worker, are lost in
    /// the child; those still queued run there as well as in the parent, once
    /// the child queues one or calls [`barrier`](Self::barrier). A callback that
    /// forks must `exec` or `_exit` in the child.
    ///
    /// # Example
    ///
    /// ```
    /// use rcu_lite::{RcuCell, ThreadRcu};
    ///
    /// let cell = RcuCell::new_in(1, ThreadRcu);
    /// {
    ///     let guard = ThreadRcu.read();
    ///     assert_eq!(*cell.load(&guard), 1);
    /// }
    /// cell.update(|n| n + 1);
    /// ThreadRcu.synchronize();
    /// assert_eq!(*cell.load(&ThreadRcu.read()), 2);
    /// ```
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct ThreadRcu;

    impl ThreadRcu {
        #[inline(always)]
        fn core(&self) -> &'static Core {
            &CORE
        }

        /// Begins a read-side critical section, or goes one deeper.
        ///
        /// # Panics
        ///
        /// At the 65 536th section of a thread on top of each other.
        ///
        /// # Progress
        ///
        /// Wait-free. A thread's first section takes a record (lock-free, and
        /// allocates if none is free).
        #[inline(always)]
        #[must_use = "the section ends when the guard is dropped"]
        pub fn read(&self) -> Guard<'static> {
            let record = LOCAL.with(|local| local.straight.get());
            if record.is_null() {
                return read_cold();
            }
            // SAFETY: records of a static live for ever.
            let record = unsafe { &*record };
            enter(&CORE.records.0, record, Rung::Membarrier);
            Guard {
                record,
                _here: PhantomData,
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn read_cold() -> Guard<'static> {
        let rung = rung();
        let known = LOCAL.with(|local| local.record.get());
        // SAFETY: records of a static live for ever.
        if let Some(record) = unsafe { known.as_ref() } {
            enter(&CORE.records.0, record, rung);
            return Guard {
                record,
                _here: PhantomData,
            };
        }
        let left = LOCAL.with(|local| local.left.get());
        // SAFETY: as above.
        if let Some(record) = unsafe { left.as_ref() }
            && record.is_left_inside()
        {
            enter(&CORE.records.0, record, rung);
            return Guard {
                record,
                _here: PhantomData,
            };
        }
        forget_others_after_fork();
        let record = CORE.records.0.take();
        let late = EXIT.try_with(|_| ()).is_err();
        enter(&CORE.records.0, record, rung);
        LOCAL.with(|local| {
            if late {
                local.left.set(record);
                CORE.records.0.abandon(record);
            } else {
                local.record.set(record);
                if rung != Rung::Fence {
                    local.straight.set(record);
                }
            }
        });
        Guard {
            record,
            _here: PhantomData,
        }
    }

    /// Has the records of vanished threads cleared in every forked child.
    fn forget_others_after_fork() {
        static ARMED: AtomicBool = AtomicBool::new(false);
        extern "C" fn child() {
            let mine = LOCAL.with(|local| local.record.get());
            // (Records that were abandoned stay anyway.)
            CORE.records.0.forget_others([mine, ptr::null()]);
        }
        // Relaxed (both): armed before it is said, so that a fork by whoever
        // reads it finds the handler; twice does no harm.
        if !ARMED.load(Ordering::Relaxed) {
            // SAFETY: loads and stores atomics, and a thread-local without
            // initialiser.
            unsafe { percpu::fork::on_child(child) };
            ARMED.store(true, Ordering::Relaxed);
        }
    }

    impl Domain for Core {
        type Keep = &'static Core;

        fn keep(&self) -> &'static Core {
            &CORE
        }

        fn grace(&self) -> &Grace {
            &self.grace
        }

        fn queue(&self) -> &Queue {
            &self.queue
        }

        fn assert_outside(&self, what: &str) {
            let inside = LOCAL.with(|local| {
                // SAFETY: records of a static live for ever.
                let known = |record: &Cell<*const Record>| unsafe { record.get().as_ref() };
                known(&local.record).is_some_and(|record| record.depth() > 0)
                    || known(&local.left).is_some_and(Record::is_left_inside)
            });
            assert!(
                !inside,
                "`{what}` called inside a read-side section of this thread: it would wait for itself"
            );
        }
    }

    surface!(
        ThreadRcu,
        guard = Guard,
        covers = |_: &ThreadRcu, _: &Guard<'_>| true,
        inside = "# Panics\n\nInside a read-side section of the calling thread, for which it would wait."
    );

    /// A read-side critical section of [`ThreadRcu`]; ends when dropped.
    /// Forgetting it stops grace periods for ever.
    ///
    /// Stays on its thread:
    ///
    /// ```compile_fail
    /// let guard = rcu_lite::ThreadRcu.read();
    /// std::thread::spawn(move || drop(guard));
    /// ```
    ///
    /// ```
    /// let guard = rcu_lite::Rcu::global().read();
    /// std::thread::spawn(move || drop(guard)).join().unwrap();
    /// ```
    #[must_use = "the section ends when the guard is dropped"]
    pub struct Guard<'a> {
        record: &'static Record,
        _here: PhantomData<(&'a (), *const ())>,
    }

    impl fmt::Debug for Guard<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("rcu_lite::thread::Guard")
        }
    }

    impl Drop for Guard<'_> {
        #[inline(always)]
        fn drop(&mut self) {
            self.record.leave();
        }
    }
}
