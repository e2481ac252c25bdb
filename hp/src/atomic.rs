//! A shared cell that owns a value and lets readers keep what they loaded.
//!
//! Floor 2 (`hp`), safe level, over [`crate::slots`] and [`crate::domain`].
//! Nothing here needs `unsafe` from its user.

use crate::guard::Guard;
use crate::slots::SLOTS;
use crate::unlink::{unlink, unlink_if};
use crate::unlinked::Unlinked;
use core::fmt;
use core::marker::PhantomData;
use core::ptr::{self, NonNull};
use percpu::sync::atomic::{AtomicPtr, Ordering};

/// An owning, nullable pointer that is read without locks and replaced as a
/// whole.
///
/// What is replaced is retired: dropped as soon as no guard protects it, on
/// whichever thread reclaims then (hence `T: Send + 'static`). Dropping the
/// cell retires its value; guards may outlive it.
///
/// There is no `Clone`: two cells are two cells, and a clone of the value is
/// what [`load`](Self::load) gives access to.
///
/// # Example
///
/// ```
/// use hp::Atomic;
///
/// static GREETING: Atomic<String> = Atomic::null();
///
/// GREETING.store("hello".to_string());
/// let guard = GREETING.load().expect("a value");
/// GREETING.store("good bye".to_string());
/// assert_eq!(*guard, "hello");                 // still there for this reader
/// assert_eq!(*GREETING.load().unwrap(), "good bye");
/// ```
pub struct Atomic<T: Send + 'static> {
    object: AtomicPtr<T>,
    _owns: PhantomData<Box<T>>,
}

// SAFETY: moving the cell moves access to `&T` for all its guards, which need
// not move along, hence `Sync`; the value may be dropped anywhere, hence `Send`.
unsafe impl<T: Send + Sync + 'static> Send for Atomic<T> {}
// SAFETY: as above; `&Atomic` gives guards and takes values.
unsafe impl<T: Send + Sync + 'static> Sync for Atomic<T> {}

impl<T: Send + 'static> Atomic<T> {
    /// An empty cell.
    #[must_use]
    pub const fn null() -> Self {
        Self {
            object: AtomicPtr::new(ptr::null_mut()),
            _owns: PhantomData,
        }
    }

    /// A cell with a value. (`Atomic::from` takes a box.)
    #[must_use]
    pub fn new(value: T) -> Self {
        Self::from(Box::new(value))
    }

    /// The present value, protected. `None` if the cell is empty.
    ///
    /// Everything that happened before the value was stored happens before
    /// this returns it.
    ///
    /// # Progress
    ///
    /// Wait-free on the rseq rung: one restartable section of a dozen
    /// instructions, no fence, no retry when the value changes. (After 128
    /// interruptions in a row, and in a thread that is not registered for
    /// rseq, as on the others.) Lock-free on the others: a retry means that the
    /// value changed. Async-signal-safe
    /// in a prepared thread ([`init_thread`](crate::init_thread)), as is
    /// dropping the guard.
    #[inline]
    #[must_use]
    pub fn load(&self) -> Option<Guard<T>> {
        // SAFETY: `AtomicPtr<T>` and `AtomicPtr<()>` are one pointer word.
        let src = unsafe { &*ptr::from_ref(&self.object).cast::<AtomicPtr<()>>() };
        let (slot, object) = SLOTS.protect(src)?;
        // SAFETY: the cell's values come from boxes and leave through
        // `Unlinked` and `Domain`, which respect slots.
        Some(unsafe { Guard::new(slot, object.cast()) })
    }

    /// Whether the cell is empty now.
    #[must_use]
    pub fn is_null(&self) -> bool {
        // Relaxed: nothing is dereferenced.
        self.object.load(Ordering::Relaxed).is_null()
    }

    /// Replaces the value; the old one is retired to the global domain.
    ///
    /// # Panics, Progress
    ///
    /// As [`Domain::retire_box`](crate::Domain::retire_box).
    #[inline]
    pub fn store(&self, value: impl Into<Box<T>>) {
        drop(self.swap(value));
    }

    /// Replaces the value and gives the old one, unlinked.
    #[inline]
    pub fn swap(&self, value: impl Into<Box<T>>) -> Option<Unlinked<T>> {
        self.exchange(Box::into_raw(value.into()))
    }

    /// Empties the cell and gives its value, unlinked.
    #[inline]
    pub fn take(&self) -> Option<Unlinked<T>> {
        self.exchange(ptr::null_mut())
    }

    #[inline]
    fn exchange(&self, new: *mut T) -> Option<Unlinked<T>> {
        let old = unlink(&self.object, new);
        // SAFETY: the exchange unlinked it; the cell owned it.
        NonNull::new(old).map(|old| unsafe { Unlinked::new(old) })
    }

    /// Replaces the value if it is still the one that `current` protects
    /// (`None`: if the cell is still empty). Compares identities, not
    /// contents; a protected value's address is not reused, so there is no
    /// ABA. (Values of a zero-sized type all have one address.)
    ///
    /// # Errors
    ///
    /// What the cell holds now, protected, and the value that was not stored.
    ///
    /// # Example
    ///
    /// ```
    /// let count = hp::Atomic::new(1);
    /// let mut now = count.load();
    /// loop {
    ///     let next = Box::new(now.as_deref().copied().unwrap_or(0) + 1);
    ///     match count.compare_exchange(now.as_ref(), Some(next)) {
    ///         Ok(_) => break,
    ///         Err(failed) => now = failed.current,
    ///     }
    /// }
    /// assert_eq!(*count.load().unwrap(), 2);
    /// ```
    pub fn compare_exchange(
        &self,
        current: Option<&Guard<T>>,
        new: Option<Box<T>>,
    ) -> Result<Option<Unlinked<T>>, CompareExchangeError<T>> {
        let expected = current.map_or(ptr::null_mut(), |g| g.as_ptr().cast_mut());
        let raw = new.map_or(ptr::null_mut(), Box::into_raw);
        match unlink_if(&self.object, expected, raw) {
            // SAFETY: as in `exchange`. (The found pointer, not `expected`: that
            // one came from a shared reference.)
            Some(old) => Ok(NonNull::new(old).map(|old| unsafe { Unlinked::new(old) })),
            None => Err(CompareExchangeError {
                current: self.load(),
                // SAFETY: the exchange did not take it; it is the box above.
                new: NonNull::new(raw).map(|raw| unsafe { Box::from_raw(raw.as_ptr()) }),
            }),
        }
    }

    /// Replaces the value by what `next` makes of it, again if it changed
    /// meanwhile. `next` may return `None` to leave the cell as it is. Gives
    /// what was replaced.
    ///
    /// # Progress
    ///
    /// Lock-free, `next` apart.
    pub fn update<B: Into<Box<T>>>(
        &self,
        mut next: impl FnMut(Option<&T>) -> Option<B>,
    ) -> Option<Unlinked<T>> {
        let mut now = self.load();
        loop {
            let new = next(now.as_deref())?.into();
            match self.compare_exchange(now.as_ref(), Some(new)) {
                Ok(old) => return old,
                Err(failed) => now = failed.current,
            }
        }
    }

    /// The value, for changing in place. `None` if the cell is empty or a
    /// guard still protects the value (guards borrow nothing, so `&mut self`
    /// alone does not exclude them). Costs one heavy barrier.
    pub fn get_mut(&mut self) -> Option<&mut T> {
        let object = NonNull::new(*self.object.get_mut())?;
        if !crate::domain::is_unreachable(object) {
            return None;
        }
        // SAFETY: no guard has it, and `&mut self` keeps new ones away.
        Some(unsafe { &mut *object.as_ptr() })
    }

    /// The value, after waiting until no guard protects it; see
    /// [`Unlinked::into_box`].
    #[must_use]
    pub fn into_inner(mut self) -> Option<Box<T>> {
        let object = NonNull::new(core::mem::replace(self.object.get_mut(), ptr::null_mut()))?;
        // SAFETY: the cell owned it and no longer does.
        Some(unsafe { Unlinked::new(object) }.into_box())
    }
}

/// What [`Atomic::compare_exchange`] gives back when it did not exchange.
pub struct CompareExchangeError<T> {
    /// What the cell held just after the failed exchange.
    pub current: Option<Guard<T>>,
    /// The value that was not stored.
    pub new: Option<Box<T>>,
}

impl<T> fmt::Debug for CompareExchangeError<T> {
    /// Addresses only, so that nothing is asked of `T`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let new: Option<*const T> = self.new.as_deref().map(ptr::from_ref);
        f.debug_struct("CompareExchangeError")
            .field("current", &self.current.as_ref().map(Guard::as_ptr))
            .field("new", &new)
            .finish()
    }
}

impl<T> fmt::Display for CompareExchangeError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the cell no longer held the expected value")
    }
}

impl<T> core::error::Error for CompareExchangeError<T> {}

impl<T: Send + 'static> Drop for Atomic<T> {
    fn drop(&mut self) {
        if let Some(object) = NonNull::new(*self.object.get_mut()) {
            // SAFETY: the cell owned it and is going.
            drop(unsafe { Unlinked::new(object) });
        }
    }
}

impl<T: Send + 'static> Default for Atomic<T> {
    /// An empty cell.
    fn default() -> Self {
        Self::null()
    }
}

impl<T: Send + 'static> From<Box<T>> for Atomic<T> {
    fn from(value: Box<T>) -> Self {
        Self {
            object: AtomicPtr::new(Box::into_raw(value)),
            _owns: PhantomData,
        }
    }
}

impl<T: Send + 'static> From<Option<Box<T>>> for Atomic<T> {
    fn from(value: Option<Box<T>>) -> Self {
        value.map_or_else(Self::null, Self::from)
    }
}

impl<T: Send + fmt::Debug + 'static> fmt::Debug for Atomic<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Atomic").field(&self.load()).finish()
    }
}

impl<T: Send + 'static> fmt::Pointer for Atomic<T> {
    /// The address; the object is not touched.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Relaxed: nothing is dereferenced.
        fmt::Pointer::fmt(&self.object.load(Ordering::Relaxed), f)
    }
}
