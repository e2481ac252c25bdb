//! The plain swap cell: one object, replaced as a whole.
//!
//! Floor 3 (`structures`). The smallest structure, and the only one that a reference-counted cell can be: [`Cell`] is what
//! both have in common.
//!
//! # Orderings
//!
//! "Swap", AcqRel: Release pairs with the Acquire of `protect`, and Acquire takes the old object's publication.

use crate::scheme::{Guard, Scheme, Thread};
use crate::{About, Census, Life, Node};
use percpu::sync::atomic::{AtomicPtr, Ordering};
use std::fmt;

/// A number in an object that is replaced as a whole.
pub trait Cell: Send + Sync + Sized + 'static {
    /// What people should know of the scheme.
    const ABOUT: About;

    /// A thread's part.
    type Thread<'a>
    where
        Self: 'a;

    /// With a first number; its objects are counted in `census`.
    fn new(first: u64, census: &'static Census) -> Self;

    /// The calling thread's part.
    fn thread(&self) -> Self::Thread<'_>;

    /// The present number.
    fn get(&self, thread: &mut Self::Thread<'_>) -> u64;

    /// Puts `value` in and gives what was there.
    fn swap(&self, thread: &mut Self::Thread<'_>, value: u64) -> u64;

    /// Runs `pause`, in which the thread sleeps between operations.
    fn idle<R>(thread: &mut Self::Thread<'_>, pause: impl FnOnce() -> R) -> R;

    /// Runs `pause` while the present number's object is protected, then looks at it again.
    fn hold(&self, thread: &mut Self::Thread<'_>, pause: impl FnOnce()) -> u64;

    /// Frees what can be freed now; see [`Scheme::flush`].
    fn flush(&self);
}

/// Slots: the object.
const SLOTS: usize = 1;
const OBJECT: usize = 0;

/// The object. The first word is the allocator's once it is freed, and so is the second.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Object {
    pub(crate) value: u64,
    /// The payload of a program's object would be here.
    _more: u64,
    pub(crate) life: Life,
}

impl Object {
    #[inline(always)]
    pub(crate) fn new(value: u64, census: &'static Census) -> Self {
        Object {
            value,
            _more: !value,
            life: Life::new(census, size_of::<Object>()),
        }
    }
}

impl Node for Object {
    fn life(&self) -> &Life {
        &self.life
    }
}

/// A cell over a scheme. Never null.
pub struct SwapCell<S: Scheme> {
    object: AtomicPtr<Object>,
    census: &'static Census,
    scheme: S,
}

impl<S: Scheme> fmt::Debug for SwapCell<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SwapCell over {}", S::ABOUT.name)
    }
}

impl<S: Scheme> SwapCell<S> {
    /// The scheme.
    pub fn scheme(&self) -> &S {
        &self.scheme
    }
}

impl<S: Scheme> Cell for SwapCell<S> {
    const ABOUT: About = S::ABOUT;

    type Thread<'a> = S::Thread<'a, SLOTS>;

    fn new(first: u64, census: &'static Census) -> Self {
        SwapCell {
            object: AtomicPtr::new(S::alloc(Object::new(first, census))),
            census,
            scheme: S::new(),
        }
    }

    fn thread(&self) -> Self::Thread<'_> {
        self.scheme.thread()
    }

    #[inline]
    fn get(&self, thread: &mut Self::Thread<'_>) -> u64 {
        self.hold(thread, || ())
    }

    #[inline]
    fn swap(&self, thread: &mut Self::Thread<'_>, value: u64) -> u64 {
        let new = S::alloc(Object::new(value, self.census));
        let mut guard = thread.pin();
        // AcqRel: "Swap".
        let old = self.object.swap(new, Ordering::AcqRel);
        // SAFETY: never null; taken out by this thread, which alone retires it, below.
        let before = unsafe { (*old).value };
        // SAFETY: as above; from `alloc`.
        unsafe { guard.retire(old) };
        before
    }

    fn idle<R>(thread: &mut Self::Thread<'_>, pause: impl FnOnce() -> R) -> R {
        thread.idle(pause)
    }

    #[inline(always)]
    fn hold(&self, thread: &mut Self::Thread<'_>, pause: impl FnOnce()) -> u64 {
        let mut guard = thread.pin();
        let object = guard.protect(OBJECT, &self.object);
        pause();
        // SAFETY: never null, and protected: found in the cell, and whoever takes it from there retires it.
        let object = unsafe { &*object };
        self.census.look(&object.life);
        object.value
    }

    fn flush(&self) {
        self.scheme.flush();
    }
}

impl<S: Scheme> Drop for SwapCell<S> {
    fn drop(&mut self) {
        // SAFETY: never null; `&mut self`: nobody else has what is still in the cell.
        unsafe { S::free(*self.object.get_mut()) };
    }
}
