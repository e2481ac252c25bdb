//! The interface that the three flavours share.
//!
//! Floor 2 (`rcu-lite`), public layer. Owns the trait [`Flavor`] and the macro
//! that gives each flavour the same methods; touches the engine beneath.

use crate::{Callbacks, Cookie, Stats, Timeout};
use core::time::Duration;
use std::sync::Arc;

pub(crate) mod sealed {
    /// Keeps implementations in this crate: `RcuCell` relies on `covers`.
    pub trait Sealed {}
    impl<F: Sealed> Sealed for &'static F {}
    impl<F: Sealed> Sealed for std::sync::Arc<F> {}
}

/// A way to do RCU: [`Rcu`](crate::Rcu), [`ThreadRcu`](crate::ThreadRcu) or
/// [`QsbrRcu`](crate::QsbrRcu), or a `&'static` reference or an [`Arc`] of one.
///
/// The methods are those that each flavour has itself; the trait is for code
/// that leaves the choice to its user.
///
/// ```
/// use rcu_lite::{Flavor, QsbrRcu, Rcu, RcuCell, ThreadRcu};
///
/// fn sum<F: Flavor>(cell: &RcuCell<Vec<u64>, F>) -> u64 {
///     let guard = cell.flavor().read();
///     cell.load(&guard).iter().sum()
/// }
///
/// assert_eq!(sum(&RcuCell::new(vec![1, 2])), 3); // the process-wide `Rcu`
/// assert_eq!(sum(&RcuCell::new_in(vec![3, 4], ThreadRcu)), 7);
/// assert_eq!(sum(&RcuCell::new_in(vec![5, 6], QsbrRcu)), 11);
/// # QsbrRcu.barrier();
/// ```
pub trait Flavor: sealed::Sealed + Send + Sync + 'static {
    /// A read-side critical section.
    type Guard<'a>
    where
        Self: 'a;

    /// Begins a read-side critical section, which lasts until the guard is
    /// dropped.
    fn read(&self) -> Self::Guard<'_>;

    /// Whether `guard` is a section of this very domain.
    fn covers(&self, guard: &Self::Guard<'_>) -> bool;

    /// Waits for a grace period.
    fn synchronize(&self);

    /// Waits for a grace period, at most for `limit`.
    ///
    /// # Errors
    ///
    /// [`Timeout`] if none has ended by then.
    fn synchronize_timeout(&self, limit: Duration) -> Result<(), Timeout>;

    /// Has `f` called after a grace period.
    fn call<C: FnOnce() + Send + 'static>(&self, f: C);

    /// Drops `value` after a grace period.
    fn defer_drop<T: ?Sized + Send + 'static>(&self, value: Box<T>);

    /// Frees the box that `value` came out of after a grace period.
    ///
    /// # Safety
    ///
    /// * `value` came out of a [`Box`], and nobody else frees it.
    /// * Readers that begin from now on cannot reach it, and others use it
    ///   inside sections of this domain only, by shared references.
    unsafe fn defer_free<T: ?Sized + Send + 'static>(&self, value: *mut T) {
        // SAFETY: the caller's.
        let value = unsafe { crate::deferred::Unlinked::new(value) };
        self.call(move || value.free());
    }

    /// Waits until every callback that was queued before has run.
    fn barrier(&self);

    /// As [`barrier`](Self::barrier); returns how many callbacks this thread
    /// ran for it.
    fn drain(&self) -> usize;

    /// Asks for a grace period without waiting for it.
    fn start_poll(&self) -> Cookie;

    /// Whether the grace period of `cookie` is over. Helps it along.
    fn poll(&self, cookie: &Cookie) -> bool;

    /// Waits until the grace period of `cookie` is over.
    fn cond_synchronize(&self, cookie: Cookie);

    /// Numbers.
    fn stats(&self) -> Stats;

    /// Changes who runs the callbacks.
    fn set_callbacks(&self, callbacks: Callbacks);
}

/// The common methods of a flavour, and its implementation of [`Flavor`].
/// The flavour's `core` finds the engine; `$inside` says what a flavour does about a wait
/// inside a section.
macro_rules! surface {
    ($flavor:ty, guard = $guard:ident, covers = $covers:expr, inside = $inside:literal) => {
        impl $flavor {
            /// Waits for a grace period: until every read-side critical section
            /// that had begun when this was called has ended. Sections that
            /// begin later are not waited for.
            ///
            /// Threads that wait at the same time share grace periods: any
            /// number of them need two.
            ///
            #[doc = $inside]
            ///
            /// # Progress
            ///
            /// Blocks: some microseconds for the process-wide barrier, then for
            /// as long as the longest section. While the kernel refuses the
            /// barrier that it granted before, it keeps trying (see
            /// [`Stats::barriers_lost`]($crate::Stats::barriers_lost)).
            pub fn synchronize(&self) {
                let domain = self.core();
                $crate::queue::assert_may_wait(domain, "synchronize");
                let target = $crate::queue::Domain::grace(domain).snap();
                let _ = $crate::queue::Domain::grace(domain).wait(domain, target, None);
            }

            /// As [`synchronize`](Self::synchronize), but gives up after `limit`.
            /// (With a limit of zero it looks once.)
            ///
            /// # Errors
            ///
            /// [`Timeout`]($crate::Timeout): no grace period has ended; what was
            /// to be freed must not be. The one in progress goes on when
            /// somebody else waits or polls.
            ///
            /// # Panics
            ///
            /// Where [`synchronize`](Self::synchronize) does.
            pub fn synchronize_timeout(
                &self,
                limit: core::time::Duration,
            ) -> Result<(), $crate::Timeout> {
                let domain = self.core();
                $crate::queue::assert_may_wait(domain, "synchronize_timeout");
                // A limit beyond the clock's end is none.
                let deadline = std::time::Instant::now().checked_add(limit);
                let target = $crate::queue::Domain::grace(domain).snap();
                $crate::queue::Domain::grace(domain).wait(domain, target, deadline)
            }

            /// Has `f` called after a grace period, by whoever runs this
            /// domain's callbacks (see [`Callbacks`]($crate::Callbacks)).
            ///
            /// Callbacks of a domain run one at a time, in no promised order,
            /// outside of read-side sections. A callback may queue others and
            /// call [`synchronize`](Self::synchronize) (not with
            /// [`Callbacks::Inline`]($crate::Callbacks::Inline)); it must not
            /// call [`barrier`](Self::barrier) or [`drain`](Self::drain) on its
            /// own domain, which panic there. A panic in a callback is caught,
            /// reported by the panic hook and counted; the others run.
            ///
            /// Callbacks that wait when the process ends are not run.
            ///
            /// # Progress
            ///
            /// Lock-free but for the allocator (with
            /// [`Callbacks::Inline`]($crate::Callbacks::Inline), what it runs
            /// comes on top), and never waits for readers:
            /// may be called inside a read-side section. A closure of up to
            /// three words is queued without an allocation of its own. The
            /// first one may start a thread. What waits is not bounded: one
            /// reader that stays inside holds up all callbacks.
            #[inline]
            pub fn call<C: FnOnce() + Send + 'static>(&self, f: C) {
                $crate::queue::call(self.core(), f);
            }

            /// Drops `value` after a grace period. As
            /// [`call`](Self::call), without an allocation.
            ///
            /// For what was unlinked from a structure while readers may still
            /// look at it, [`defer_free`](Self::defer_free) says it better: a
            /// `Box` claims that nobody else has its value. (Miri's default
            /// model calls that an error; nothing else does today.)
            #[inline]
            pub fn defer_drop<T: ?Sized + Send + 'static>(&self, value: Box<T>) {
                self.call(move || drop(value));
            }

            /// Frees the box that `value` came out of after a grace period.
            /// As [`defer_drop`](Self::defer_drop), while readers that began
            /// before may still look at the value.
            ///
            /// # Safety
            ///
            /// * `value` came out of a [`Box`] ([`Box::into_raw`]), and nobody
            ///   else frees it.
            /// * Readers that begin from now on cannot reach it, and others use
            ///   it inside sections of this domain only, by shared references.
            #[inline]
            pub unsafe fn defer_free<T: ?Sized + Send + 'static>(&self, value: *mut T) {
                // SAFETY: the caller's.
                let value = unsafe { $crate::deferred::Unlinked::new(value) };
                self.call(move || value.free());
            }

            /// Waits until every callback that was queued before has run. Runs
            /// them itself if nobody else does.
            ///
            /// # Panics
            ///
            /// Inside a callback of the same domain, for which it would wait,
            /// and where [`synchronize`](Self::synchronize) does.
            ///
            /// # Progress
            ///
            /// Blocks, for one or two grace periods and for the callbacks.
            pub fn barrier(&self) {
                $crate::queue::barrier(self.core(), "barrier");
            }

            /// As [`barrier`](Self::barrier). Returns how many callbacks this
            /// thread ran.
            ///
            /// # Panics
            ///
            /// Where [`barrier`](Self::barrier) does.
            pub fn drain(&self) -> usize {
                $crate::queue::barrier(self.core(), "drain")
            }

            /// Asks for a grace period that begins from now on, without
            /// waiting for it. Nothing happens in the background: somebody must
            /// poll, or wait for another grace period.
            ///
            /// # Progress
            ///
            /// Does not wait for readers; may be called inside a section.
            pub fn start_poll(&self) -> $crate::Cookie {
                let domain = self.core();
                let target = $crate::queue::Domain::grace(domain).snap();
                $crate::queue::Domain::grace(domain).advance(domain, target);
                $crate::Cookie::new(target, core::ptr::from_ref(domain).cast())
            }

            /// Whether the grace period of `cookie` is over. Does what can be
            /// done for it without waiting.
            ///
            /// # Panics
            ///
            /// If the cookie is of another domain.
            ///
            /// # Progress
            ///
            /// Does not wait for readers; may be called inside a section (and
            /// says no there, unless the section began later).
            #[must_use]
            pub fn poll(&self, cookie: &$crate::Cookie) -> bool {
                let domain = self.core();
                let target = cookie.target(core::ptr::from_ref(domain).cast());
                $crate::queue::Domain::grace(domain).advance(domain, target)
            }

            /// Waits until the grace period of `cookie` is over: at once, if it
            /// is.
            ///
            /// # Panics
            ///
            /// If the cookie is of another domain, and where
            /// [`synchronize`](Self::synchronize) does.
            pub fn cond_synchronize(&self, cookie: $crate::Cookie) {
                let domain = self.core();
                let target = cookie.target(core::ptr::from_ref(domain).cast());
                if $crate::queue::Domain::grace(domain).reached(target) {
                    return;
                }
                $crate::queue::assert_may_wait(domain, "cond_synchronize");
                let _ = $crate::queue::Domain::grace(domain).wait(domain, target, None);
            }

            /// Numbers: grace periods, callbacks, the longest wait.
            #[must_use]
            pub fn stats(&self) -> $crate::Stats {
                let domain = self.core();
                $crate::queue::Domain::queue(domain)
                    .stats($crate::queue::Domain::grace(domain))
            }

            /// Changes who runs the callbacks, also those that wait already.
            pub fn set_callbacks(&self, callbacks: $crate::Callbacks) {
                $crate::queue::set_callbacks(self.core(), callbacks);
            }
        }

        impl $crate::flavor::sealed::Sealed for $flavor {}

        impl $crate::Flavor for $flavor {
            type Guard<'a> = $guard<'a>;

            #[inline(always)]
            fn read(&self) -> $guard<'_> {
                self.read()
            }

            #[inline(always)]
            fn covers(&self, guard: &$guard<'_>) -> bool {
                ($covers)(self, guard)
            }

            $crate::flavor::forward!(<$flavor>::);
        }
    };
}
pub(crate) use surface;

/// The methods of [`Flavor`] but for those that guards appear in, on `self`.
macro_rules! forward {
    ($($of:tt)*) => {
        fn synchronize(&self) {
            $($of)*synchronize(self);
        }

        fn synchronize_timeout(
            &self,
            limit: core::time::Duration,
        ) -> Result<(), $crate::Timeout> {
            $($of)*synchronize_timeout(self, limit)
        }

        #[inline]
        fn call<C: FnOnce() + Send + 'static>(&self, f: C) {
            $($of)*call(self, f);
        }

        #[inline]
        fn defer_drop<T: ?Sized + Send + 'static>(&self, value: Box<T>) {
            $($of)*defer_drop(self, value);
        }

        fn barrier(&self) {
            $($of)*barrier(self);
        }

        fn drain(&self) -> usize {
            $($of)*drain(self)
        }

        fn start_poll(&self) -> $crate::Cookie {
            $($of)*start_poll(self)
        }

        fn poll(&self, cookie: &$crate::Cookie) -> bool {
            $($of)*poll(self, cookie)
        }

        fn cond_synchronize(&self, cookie: $crate::Cookie) {
            $($of)*cond_synchronize(self, cookie);
        }

        fn stats(&self) -> $crate::Stats {
            $($of)*stats(self)
        }

        fn set_callbacks(&self, callbacks: $crate::Callbacks) {
            $($of)*set_callbacks(self, callbacks);
        }
    };
}
pub(crate) use forward;

impl<F: Flavor> Flavor for &'static F {
    type Guard<'a> = F::Guard<'a>;

    #[inline(always)]
    fn read(&self) -> F::Guard<'_> {
        F::read(self)
    }

    #[inline(always)]
    fn covers(&self, guard: &F::Guard<'_>) -> bool {
        F::covers(self, guard)
    }

    forward!(F::);
}

impl<F: Flavor> Flavor for Arc<F> {
    type Guard<'a> = F::Guard<'a>;

    #[inline(always)]
    fn read(&self) -> F::Guard<'_> {
        F::read(self)
    }

    #[inline(always)]
    fn covers(&self, guard: &F::Guard<'_>) -> bool {
        F::covers(self, guard)
    }

    forward!(F::);
}
