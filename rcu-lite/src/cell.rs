//! One value that many read and few replace: [`RcuCell`].
//!
//! Floor 2 (`rcu-lite`), public layer. Owns the pointer to the value; retires
//! through a [`Flavor`].
//!
//! # Orderings
//!
//! *Publish* (the exchange that puts a value in, Release half) pairs with the
//! Acquire of *load*: a reader sees the value whole. The exchange's Acquire
//! half does the same for whoever gets the old value to retire or to look at.
//! That a retired value is not dropped too early is the grace period's matter.

use crate::deferred::Unlinked;
use crate::{Flavor, Rcu};
use core::fmt;
use core::marker::PhantomData;
use core::ptr;
use percpu::sync::atomic::{AtomicPtr, Ordering};

/// A value that is read under a guard and replaced as a whole.
///
/// What is replaced is dropped after a grace period of the cell's flavour, by
/// whoever runs that domain's callbacks.
///
/// The references that [`load`](Self::load) gives borrow the cell and the
/// guard; so a cell that is dropped, or borrowed mutably, has no readers and
/// drops its value at once.
///
/// ```
/// use rcu_lite::{Rcu, RcuCell};
///
/// let cell = RcuCell::new(vec![1, 2, 3]);
/// std::thread::scope(|s| {
///     s.spawn(|| {
///         let guard = Rcu::global().read();
///         assert!(cell.load(&guard).len() >= 3);
///     });
///     cell.update(|old| old.iter().copied().chain([4]).collect());
/// });
/// assert_eq!(cell.load(&Rcu::global().read()).len(), 4);
/// ```
///
/// A reference does not outlive its guard:
///
/// ```compile_fail
/// let cell = rcu_lite::RcuCell::new(1);
/// let seen = cell.load(&rcu_lite::Rcu::global().read());
/// assert_eq!(*seen, 1);
/// ```
///
/// ```
/// let cell = rcu_lite::RcuCell::new(1);
/// let guard = rcu_lite::Rcu::global().read();
/// let seen = cell.load(&guard);
/// assert_eq!(*seen, 1);
/// ```
///
/// Values that must stay on a thread cannot be replaced, since another one may
/// drop them:
///
/// ```compile_fail
/// rcu_lite::RcuCell::new(std::rc::Rc::new(1)).replace(std::rc::Rc::new(2));
/// ```
///
/// ```
/// rcu_lite::RcuCell::new(std::sync::Arc::new(1)).replace(std::sync::Arc::new(2));
/// ```
pub struct RcuCell<T, F: Flavor = &'static Rcu> {
    /// From a box, never null.
    value: AtomicPtr<T>,
    flavor: F,
    _owns: PhantomData<Box<T>>,
}

// SAFETY: sending the cell sends the value.
unsafe impl<T: Send, F: Flavor> Send for RcuCell<T, F> {}
// SAFETY: a shared cell gives out `&T` on every thread, and takes and drops
// values on every thread.
unsafe impl<T: Send + Sync, F: Flavor> Sync for RcuCell<T, F> {}

impl<T> RcuCell<T> {
    /// A cell of the process-wide [`Rcu`].
    #[must_use]
    pub fn new(value: T) -> Self {
        Self::new_in(value, Rcu::global())
    }
}

impl<T, F: Flavor> RcuCell<T, F> {
    /// A cell of `flavor`: [`ThreadRcu`](crate::ThreadRcu),
    /// [`QsbrRcu`](crate::QsbrRcu), a `&'static Rcu`, or an `Arc<Rcu>`.
    #[must_use]
    pub fn new_in(value: T, flavor: F) -> Self {
        Self {
            value: AtomicPtr::new(Box::into_raw(Box::new(value))),
            flavor,
            _owns: PhantomData,
        }
    }

    /// What the cell's readers enter and its values are retired to.
    #[inline(always)]
    pub fn flavor(&self) -> &F {
        &self.flavor
    }

    /// The value, for as long as `guard` lives.
    ///
    /// # Panics
    ///
    /// If `guard` is of another domain than the cell.
    ///
    /// # Progress
    ///
    /// Wait-free: one load.
    #[inline(always)]
    pub fn load<'g>(&'g self, guard: &'g F::Guard<'_>) -> &'g T {
        self.assert_covered(guard);
        // Acquire: "Load", pairs with "Publish".
        let value = self.value.load(Ordering::Acquire);
        // SAFETY: never null. What is taken out of the cell is dropped after a
        // grace period of the domain that `guard` is in, or when nobody borrows
        // the cell.
        unsafe { &*value }
    }

    #[inline(always)]
    fn assert_covered(&self, guard: &F::Guard<'_>) {
        if !self.flavor.covers(guard) {
            other_domain();
        }
    }

    /// The value, without a guard.
    #[inline]
    pub fn get_mut(&mut self) -> &mut T {
        // Relaxed: the cell is the caller's alone.
        let value = self.value.load(Ordering::Relaxed);
        // SAFETY: never null, and `&mut self` proves that nobody reads it.
        unsafe { &mut *value }
    }

    /// Takes the value out. No reader can have it: it is not waited for.
    #[must_use]
    pub fn into_inner(self) -> T {
        let this = core::mem::ManuallyDrop::new(self);
        // Relaxed: the cell is the caller's alone.
        let value = this.value.load(Ordering::Relaxed);
        // SAFETY: the flavour is read once, and dropped here; the cell is not.
        drop(unsafe { ptr::read(&this.flavor) });
        // SAFETY: from a box, and nobody else has it.
        *unsafe { Box::from_raw(value) }
    }
}

impl<T: Send + Sync + 'static, F: Flavor> RcuCell<T, F> {
    /// Puts `value` in and drops the old one after a grace period.
    ///
    /// # Progress
    ///
    /// As [`Flavor::call`]: does not wait for readers. Allocates the value's
    /// box.
    #[inline]
    pub fn replace(&self, value: T) {
        self.replace_box(Box::new(value));
    }

    /// [`replace`](Self::replace) with a box that exists already.
    #[inline]
    pub fn replace_box(&self, value: Box<T>) {
        // AcqRel: "Publish"; Acquire for whoever drops the old value.
        let old = self.value.swap(Box::into_raw(value), Ordering::AcqRel);
        // SAFETY: taken out by this exchange, so retired once.
        unsafe { self.retire(old) };
    }

    /// Replaces the value by what `f` makes of it; again, if another thread
    /// replaced it in the meantime, with what that one put in.
    ///
    /// # Progress
    ///
    /// Lock-free; calls `f` as often as it loses.
    pub fn update(&self, mut f: impl FnMut(&T) -> T) {
        let guard = self.flavor.read();
        // Acquire: "Load".
        let mut current = self.value.load(Ordering::Acquire);
        let old = loop {
            // SAFETY: loaded inside the section, see `load`.
            let new = Box::into_raw(Box::new(f(unsafe { &*current })));
            match self.exchange(current, new) {
                Ok(old) => break old,
                Err(now) => {
                    // SAFETY: it was not published.
                    drop(unsafe { Box::from_raw(new) });
                    current = now;
                }
            }
        };
        drop(guard);
        // SAFETY: taken out by the exchange, so retired once.
        unsafe { self.retire(old) };
    }

    /// Puts `new` in if the value is still the very one that `current` refers
    /// to, as [`load`](Self::load) gave it under `guard`. The old one is
    /// dropped after a grace period.
    ///
    /// (Compared by address. The guard keeps the address from being used
    /// again. All values of a zero-sized type are the same one.)
    ///
    /// # Errors
    ///
    /// [`Replaced`]: another thread was first. It holds what is there now, and
    /// `new`.
    ///
    /// # Panics
    ///
    /// If `guard` is of another domain than the cell.
    ///
    /// # Progress
    ///
    /// Lock-free; does not wait for readers.
    pub fn compare_and_replace<'g>(
        &'g self,
        guard: &'g F::Guard<'_>,
        current: &'g T,
        new: impl Into<Box<T>>,
    ) -> Result<(), Replaced<'g, T>> {
        self.assert_covered(guard);
        let new = Box::into_raw(new.into());
        let current = ptr::from_ref(current).cast_mut();
        match self.exchange(current, new) {
            Ok(old) => {
                // SAFETY: taken out by this exchange, so retired once.
                unsafe { self.retire(old) };
                Ok(())
            }
            Err(now) => Err(Replaced {
                // SAFETY: loaded inside the section, see `load`.
                current: unsafe { &*now },
                // SAFETY: it was not published.
                new: unsafe { Box::from_raw(new) },
            }),
        }
    }

    /// The old value's pointer as the cell had it: one that was made from the
    /// caller's `&T` may be compared, but not freed.
    fn exchange(&self, current: *mut T, new: *mut T) -> Result<*mut T, *mut T> {
        // AcqRel: "Publish", and as in `replace_box`. Acquire: "Load".
        self.value
            .compare_exchange(current, new, Ordering::AcqRel, Ordering::Acquire)
    }

    /// # Safety
    ///
    /// `old` came out of the cell, and nobody else retires it.
    #[inline]
    unsafe fn retire(&self, old: *mut T) {
        // SAFETY: every value of the cell came out of a box. Readers use it
        // by references only, and not after the grace period.
        let old = unsafe { Unlinked::new(old) };
        self.flavor.call(move || old.free());
    }
}

#[cold]
#[inline(never)]
fn other_domain() -> ! {
    panic!("the guard is of another RCU domain than the cell")
}

/// Why [`RcuCell::compare_and_replace`] did not.
pub struct Replaced<'g, T> {
    /// What is in the cell.
    pub current: &'g T,
    /// What was to be put in.
    pub new: Box<T>,
}

impl<T> fmt::Debug for Replaced<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replaced").finish_non_exhaustive()
    }
}

impl<T> fmt::Display for Replaced<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("another thread replaced the value first")
    }
}

impl<T> core::error::Error for Replaced<'_, T> {}

impl<T, F: Flavor> Drop for RcuCell<T, F> {
    fn drop(&mut self) {
        // Relaxed: the cell is the caller's alone.
        let value = self.value.load(Ordering::Relaxed);
        // SAFETY: from a box, and nobody borrows the cell.
        drop(unsafe { Box::from_raw(value) });
    }
}

impl<T: Default> Default for RcuCell<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> From<T> for RcuCell<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: fmt::Debug, F: Flavor> fmt::Debug for RcuCell<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let guard = self.flavor.read();
        f.debug_tuple("RcuCell").field(self.load(&guard)).finish()
    }
}
