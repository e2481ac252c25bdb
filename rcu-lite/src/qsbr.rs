//! The quiescent-state flavour: [`QsbrRcu`].
//!
//! Floor 2 (`rcu-lite`), public layer over `records`. Owns the process-wide
//! records of this flavour and the thread-locals that find a thread's own.
//!
//! # Reader
//!
//! A thread is *online* while it has an [`Online`] handle (or a guard without
//! one). Online, it is inside one section that lasts until it announces a
//! quiescent state, so a guard of a handle does nothing at all: the borrow of
//! the handle keeps the announcement away.
//!
//! Announcing is: load the epoch, and store it if it is a new one. No barrier:
//! a grace period waits for *the new epoch* to appear, and whoever stores it has
//! seen what was unlinked before (Acquire) and is done with what it read before
//! (Release). Going online needs a fence, because a record that seems offline
//! is not waited for; it pairs with the fence of the grace period, which
//! therefore sends no interrupts to anybody.
//!
//! Source: liburcu's `qsbr` flavour; the handle whose borrow stands for the
//! section is this project's.

#[cfg(not(loom))]
pub use public::{Guard, Online, QsbrRcu};

use crate::records::{Record, Records};
use percpu::sync::atomic::{Ordering, fence};

/// One more reason for the thread to be online. (A signal handler may come in
/// between: it finds the reason counted, and the word tells it whether the
/// thread is online yet.)
pub(crate) fn enter(records: &Records, record: &Record) {
    // Relaxed (both): only the owner touches it.
    let holders = record.holders.load(Ordering::Relaxed);
    record.holders.store(holders + 1, Ordering::Relaxed);
    if record.depth() == 0 {
        record.set(records.epoch());
        // SeqCst: pairs with the fence of the grace period.
        fence(Ordering::SeqCst);
    }
}

/// One reason less.
pub(crate) fn leave(record: &Record) {
    // Relaxed (both): only the owner touches it.
    let holders = record.holders.load(Ordering::Relaxed) - 1;
    record.holders.store(holders, Ordering::Relaxed);
    if holders == 0 {
        record.clear();
    }
}

/// Announces a quiescent state of a thread that is online for one reason.
#[inline(always)]
pub(crate) fn announce(records: &Records, record: &Record) {
    let epoch = records.epoch();
    if record.word() != epoch {
        record.set(epoch);
    }
}

/// The flavour's one domain.
#[cfg(not(loom))]
type Core = crate::process_wide::ProcessWide<crate::records::Fenced>;

#[cfg(not(loom))]
mod public {
    use super::{Core, announce, enter, leave};
    use crate::flavor::surface;
    use crate::grace::Grace;
    use crate::queue::{Domain, Queue};
    use crate::records::{Fenced, Record, Records};
    use core::cell::Cell;
    use core::fmt;
    use core::marker::PhantomData;
    use core::ptr;
    use percpu::sync::atomic::{AtomicBool, Ordering};

    static CORE: Core = Core::new(Fenced(Records::new()));

    thread_local! {
        static RECORD: Cell<*const Record> = const { Cell::new(ptr::null()) };
        /// The record that the thread was online with when its destructor ran.
        static LEFT: Cell<*const Record> = const { Cell::new(ptr::null()) };
        /// Handles and guards made during teardown.
        static LATE: Cell<usize> = const { Cell::new(0) };
        /// Its destructor gives the record back.
        static EXIT: Exit = const { Exit };
    }

    struct Exit;

    impl Drop for Exit {
        fn drop(&mut self) {
            // SAFETY: records of a static live for ever.
            if let Some(record) = unsafe { RECORD.replace(ptr::null()).as_ref() } {
                // Relaxed: only the owner touches it.
                if record.holders.load(Ordering::Relaxed) == 0 {
                    CORE.records.0.give_back(record);
                    return;
                }
                LEFT.set(record);
                // A handle in a thread-local that is destroyed later,
                // which gives it back, or one that was leaked. (Nobody may take
                // it over before: the handle may go offline and come back.)
            }
        }
    }

    /// The thread's record, online for one reason more; in a thread that is
    /// being torn down one for this reason alone, and `true`.
    fn go_online() -> (&'static Record, bool) {
        // SAFETY: records of a static live for ever.
        if let Some(record) = unsafe { RECORD.get().as_ref() } {
            enter(&CORE.records.0, record);
            return (record, false);
        }
        forget_others_after_fork();
        let record = CORE.records.0.take();
        let late = EXIT.try_with(|_| ()).is_err();
        enter(&CORE.records.0, record);
        if late {
            LATE.set(LATE.get() + 1);
        } else {
            RECORD.set(record);
        }
        (record, late)
    }

    fn go_offline(record: &'static Record, late: bool) {
        leave(record);
        if late {
            LATE.set(LATE.get() - 1);
            CORE.records.0.give_back(record);
        } else if !ptr::eq(RECORD.get(), record) {
            // After the end of the thread's own hold on it.
            // Relaxed: only the owner touches it.
            if record.holders.load(Ordering::Relaxed) == 0 {
                LEFT.set(ptr::null());
                CORE.records.0.give_back(record);
            }
        }
    }

    /// Has the records of vanished threads cleared in every forked child.
    fn forget_others_after_fork() {
        static ARMED: AtomicBool = AtomicBool::new(false);
        extern "C" fn child() {
            // What a thread took in its teardown it cannot name: then all stay.
            if LATE.get() == 0 {
                CORE.records.0.forget_others([RECORD.get(), LEFT.get()]);
            }
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

    /// RCU by announced quiescent states: readers cost nothing.
    ///
    /// One domain, process-wide; this is its handle. A thread that reads often
    /// goes [`online`](Self::online) and announces from time to time that it
    /// holds no reference. Grace periods wait for every thread that is online,
    /// also for one that sleeps: go [`offline`](Online::offline) around
    /// whatever blocks. They interrupt nobody (no process-wide barrier), and
    /// work alike on every rung.
    ///
    /// [`read`](Self::read) without a handle works too: it goes online for as
    /// long as the guard lives, at the cost of a fence.
    ///
    /// # Fork
    ///
    /// As [`ThreadRcu`](crate::ThreadRcu).
    ///
    /// # Example
    ///
    /// ```
    /// use rcu_lite::{QsbrRcu, RcuCell};
    ///
    /// let cell = RcuCell::new_in(1, QsbrRcu);
    /// let mut online = QsbrRcu.online();
    /// for _ in 0..3 {
    ///     assert_eq!(*cell.load(&online.read()), 1); // a plain load
    ///     online.quiescent_state();
    /// }
    /// online.offline(|| std::thread::yield_now()); // anything that blocks
    /// ```
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct QsbrRcu;

    impl QsbrRcu {
        #[inline(always)]
        fn core(&self) -> &'static Core {
            &CORE
        }

        /// Puts the calling thread online, until the handle is dropped.
        ///
        /// # Progress
        ///
        /// Wait-free but for a thread's first time, which takes a record.
        pub fn online(&self) -> Online {
            let (record, late) = go_online();
            Online {
                record,
                late,
                _here: PhantomData,
            }
        }

        /// A read-side critical section without a handle: puts the thread
        /// online while the guard lives. (With a handle, [`Online::read`] is
        /// free.)
        ///
        /// # Progress
        ///
        /// As [`online`](Self::online).
        #[must_use = "the section ends when the guard is dropped"]
        pub fn read(&self) -> Guard<'static> {
            let (record, late) = go_online();
            Guard {
                alone: Some(record),
                late,
                _here: PhantomData,
            }
        }
    }

    /// A thread that is online: its references stay valid until it announces a
    /// quiescent state.
    ///
    /// A quiescent state cannot be announced while a reference is held:
    ///
    /// ```compile_fail
    /// use rcu_lite::{QsbrRcu, RcuCell};
    /// let cell = RcuCell::new_in(1, QsbrRcu);
    /// let mut online = QsbrRcu.online();
    /// let guard = online.read();
    /// let seen = cell.load(&guard);
    /// online.quiescent_state();
    /// assert_eq!(*seen, 1);
    /// drop(guard);
    /// ```
    ///
    /// ```
    /// use rcu_lite::{QsbrRcu, RcuCell};
    /// let cell = RcuCell::new_in(1, QsbrRcu);
    /// let mut online = QsbrRcu.online();
    /// let guard = online.read();
    /// let seen = cell.load(&guard);
    /// assert_eq!(*seen, 1);
    /// drop(guard);
    /// online.quiescent_state();
    /// ```
    #[must_use = "the thread goes offline when the handle is dropped"]
    pub struct Online {
        record: &'static Record,
        late: bool,
        _here: PhantomData<*const ()>,
    }

    impl Online {
        /// A read-side critical section. Costs nothing.
        ///
        /// # Progress
        ///
        /// Wait-free.
        #[inline(always)]
        #[must_use = "the section ends when the guard is dropped"]
        pub fn read(&self) -> Guard<'_> {
            Guard {
                alone: None,
                late: false,
                _here: PhantomData,
            }
        }

        /// Announces that this thread holds no reference. `false`, and nothing
        /// is announced, while the thread has another handle, or a guard
        /// without one.
        ///
        /// # Progress
        ///
        /// Wait-free; two loads where no grace period began since.
        #[inline(always)]
        pub fn quiescent_state(&mut self) -> bool {
            // Relaxed: only the owner touches it.
            let alone = self.record.holders.load(Ordering::Relaxed) == 1;
            if alone {
                announce(&CORE.records.0, self.record);
            }
            alone
        }

        /// Runs `f` with this handle offline, so that grace periods do not wait
        /// for this thread. (They do while it has another handle, or a guard
        /// without one.)
        pub fn offline<R>(&mut self, f: impl FnOnce() -> R) -> R {
            struct Back(&'static Record, usize);
            impl Drop for Back {
                fn drop(&mut self) {
                    enter(&CORE.records.0, self.0);
                    LATE.set(LATE.get() + self.1);
                }
            }
            // A handle of teardown has its record, and counts, by itself.
            let late = usize::from(self.late);
            LATE.set(LATE.get() - late);
            leave(self.record);
            let _back = Back(self.record, late);
            f()
        }

        /// Waits for a grace period, offline.
        ///
        /// # Panics
        ///
        /// If the thread has another handle, or a guard without one.
        pub fn synchronize(&mut self) {
            self.offline(|| QsbrRcu.synchronize());
        }
    }

    impl fmt::Debug for Online {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("rcu_lite::qsbr::Online")
        }
    }

    impl Drop for Online {
        fn drop(&mut self) {
            go_offline(self.record, self.late);
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
            let inside = |record: *const Record| {
                // SAFETY: records of a static live for ever.
                // Relaxed: only the owner touches it.
                unsafe { record.as_ref() }
                    .is_some_and(|record| record.holders.load(Ordering::Relaxed) > 0)
            };
            let online = LATE.get() > 0 || inside(RECORD.get()) || inside(LEFT.get());
            assert!(
                !online,
                "`{what}` called by a thread that is online: it would wait for itself (see `Online::offline`)"
            );
        }
    }

    surface!(
        QsbrRcu,
        guard = Guard,
        covers = |_: &QsbrRcu, _: &Guard<'_>| true,
        inside = "# Panics\n\nIf the calling thread is online, for which it would wait. See\n[`Online::synchronize`] and [`Online::offline`]."
    );

    /// A read-side critical section of [`QsbrRcu`].
    #[must_use = "the section ends when the guard is dropped"]
    pub struct Guard<'a> {
        /// The record, if there is no handle behind the guard.
        alone: Option<&'static Record>,
        late: bool,
        _here: PhantomData<(&'a (), *const ())>,
    }

    impl fmt::Debug for Guard<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("rcu_lite::qsbr::Guard")
        }
    }

    impl Drop for Guard<'_> {
        #[inline(always)]
        fn drop(&mut self) {
            if let Some(record) = self.alone {
                go_offline(record, self.late);
            }
        }
    }
}
