//! What all locks have in common.
//!
//! Floor 3 (`rwsems`). Owns the interface.

use crate::About;

/// A reader-writer lock without what it guards. Guards release when dropped, on
/// the thread that took them.
pub trait RwSem: Sized + Send + Sync + 'static {
    /// Name and description.
    const ABOUT: About;

    /// A reader inside.
    type Read<'a>;

    /// The writer inside.
    type Write<'a>;

    /// A free lock.
    fn new() -> Self;

    /// Enters as a reader.
    fn read(&self) -> Self::Read<'_>;

    /// Enters as a reader if that is possible at once.
    fn try_read(&self) -> Option<Self::Read<'_>>;

    /// Enters as the writer.
    fn write(&self) -> Self::Write<'_>;

    /// Enters as the writer if that is possible at once.
    fn try_write(&self) -> Option<Self::Write<'_>>;

    /// How many readers can be inside, where there is a limit.
    fn limit(&self) -> Option<usize> {
        None
    }
}

/// Makes the guard types of a lock out of its two ways to leave.
macro_rules! guards {
    ($lock:ident, $token:ty) => {
        /// A reader inside.
        #[derive(Debug)]
        #[must_use = "the lock is released at once"]
        pub struct Read<'a, F: crate::futex::Futex> {
            lock: &'a $lock<F>,
            token: $token,
            /// Stays on its thread.
            here: core::marker::PhantomData<*const ()>,
        }

        impl<'a, F: crate::futex::Futex> Read<'a, F> {
            #[inline(always)]
            fn new(lock: &'a $lock<F>, token: $token) -> Self {
                Self {
                    lock,
                    token,
                    here: core::marker::PhantomData,
                }
            }
        }

        impl<F: crate::futex::Futex> Drop for Read<'_, F> {
            #[inline(always)]
            fn drop(&mut self) {
                self.lock.leave(self.token);
            }
        }

        /// The writer inside.
        #[derive(Debug)]
        #[must_use = "the lock is released at once"]
        pub struct Write<'a, F: crate::futex::Futex> {
            lock: &'a $lock<F>,
            /// Stays on its thread.
            here: core::marker::PhantomData<*const ()>,
        }

        impl<'a, F: crate::futex::Futex> Write<'a, F> {
            #[inline(always)]
            fn new(lock: &'a $lock<F>) -> Self {
                Self {
                    lock,
                    here: core::marker::PhantomData,
                }
            }
        }

        impl<F: crate::futex::Futex> Drop for Write<'_, F> {
            #[inline(always)]
            fn drop(&mut self) {
                self.lock.leave_write();
            }
        }
    };
}
pub(crate) use guards;
