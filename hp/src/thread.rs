//! The calling thread's handle, and giving its record back at thread exit.
//!
//! Floor 2 (`hp`), raw layer. Owns the thread-locals of the crate: about 40
//! bytes of every thread's static storage, without a destructor but for one
//! that is registered at the thread's first overflow.

use crate::overflow::Thread;

#[cfg(not(loom))]
mod local {
    use super::Thread;
    use core::cell::Cell;

    thread_local! {
        /// Const-initialised and without a destructor: usable at any time,
        /// also from destructors of other thread-locals.
        static THREAD: Thread = const { Thread::new() };
        /// Its destructor gives the record back.
        static EXIT: Exit = const { Exit };
        static TOKEN: Cell<usize> = const { Cell::new(usize::MAX) };
        /// See `crate::pass`.
        static PASS: Cell<crate::pass::Nesting> = const { Cell::new(crate::pass::Nesting::NONE) };
    }

    struct Exit;

    impl Drop for Exit {
        fn drop(&mut self) {
            THREAD.with(Thread::leave);
        }
    }

    /// Runs `f` on the thread's handle. Works during thread teardown.
    #[inline]
    pub(crate) fn with<R>(f: impl FnOnce(&Thread) -> R) -> R {
        THREAD.with(f)
    }

    /// Registers the destructor. `false` during thread teardown, when it can
    /// no longer be registered: the thread must then take no record.
    pub(crate) fn arm_exit(_: &Thread) -> bool {
        EXIT.try_with(|_| ()).is_ok()
    }

    /// A small number that differs between threads; spreads threads over
    /// shards where there is no CPU index.
    pub(crate) fn token() -> usize {
        use percpu::sync::atomic::{AtomicUsize, Ordering};
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        TOKEN.with(|token| {
            if token.get() == usize::MAX {
                // Relaxed: any distribution is right.
                token.set(NEXT.fetch_add(1, Ordering::Relaxed) & (usize::MAX >> 1));
            }
            token.get()
        })
    }

    /// The thread's place in a reclaim pass.
    #[inline]
    pub(crate) fn nesting() -> crate::pass::Nesting {
        PASS.with(Cell::get)
    }

    pub(crate) fn set_nesting(nesting: crate::pass::Nesting) {
        PASS.with(|p| p.set(nesting));
    }
}

#[cfg(not(loom))]
pub(crate) use local::{arm_exit, nesting, set_nesting, token, with};

#[cfg(loom)]
mod modelled {
    use super::Thread;
    use crate::pass::Nesting;
    use core::cell::Cell;

    loom::thread_local! {
        static PASS: Cell<Nesting> = Cell::new(Nesting::NONE);
        /// Not given back when the thread ends: the execution ends soon after.
        static THREAD: Thread = Thread::new();
    }

    /// Runs `f` on the thread's handle. (The models of this crate have handles
    /// of their own.)
    pub(crate) fn with<R>(f: impl FnOnce(&Thread) -> R) -> R {
        THREAD.with(f)
    }

    /// Models call `Thread::leave` themselves.
    pub(crate) fn arm_exit(_: &Thread) -> bool {
        true
    }

    /// Models have one shard.
    pub(crate) fn token() -> usize {
        0
    }

    pub(crate) fn nesting() -> Nesting {
        PASS.with(Cell::get)
    }

    pub(crate) fn set_nesting(nesting: Nesting) {
        PASS.with(|p| p.set(nesting));
    }
}

#[cfg(loom)]
pub(crate) use modelled::{arm_exit, nesting, set_nesting, token, with};
