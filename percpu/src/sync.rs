//! The one switch between the standard library's primitives and loom's.
//!
//! Floor 1 (`percpu`). Owns nothing. Every other file of this workspace that
//! needs an atomic, a fence, a cell that crosses threads or a spin hint takes
//! it from here; a test greps that no other file of the crates that loom models
//! names the standard atomics.
//!
//! Under `--cfg loom` the types are loom's, so that a model runs the same code
//! as the product, ordering by ordering.

/// Atomic integers, atomic pointers and fences.
pub mod atomic {
    #[cfg(not(loom))]
    pub use core::sync::atomic::{
        AtomicBool, AtomicIsize, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering,
        compiler_fence, fence,
    };
    #[cfg(loom)]
    pub use loom::sync::atomic::{
        AtomicBool, AtomicIsize, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering,
    };

    /// A number that people read and no algorithm does. Always the standard
    /// one: a counter that every thread changes would multiply what loom has
    /// to explore, and nothing depends on its order.
    pub use core::sync::atomic::AtomicU64 as Statistic;

    /// loom runs one thread at a time and reorders nothing by compiling, so a
    /// compiler fence has no counterpart there.
    #[cfg(loom)]
    pub fn compiler_fence(_: Ordering) {}

    /// A fence that is its own step for loom: loom glues a fence to the access
    /// before it, so a relaxed RMW on a word shared by all fences makes the
    /// fence schedulable.
    #[cfg(loom)]
    pub fn fence(order: Ordering) {
        if order == Ordering::SeqCst {
            crate::sim::fence_step();
        }
        loom::sync::atomic::fence(order);
    }
}

/// A cell whose accesses loom checks for races.
#[cfg(loom)]
pub use loom::cell::UnsafeCell;

/// A cell with loom's interface and the standard library's cost.
#[cfg(not(loom))]
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct UnsafeCell<T: ?Sized>(core::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    /// Wraps `value`.
    pub const fn new(value: T) -> Self {
        Self(core::cell::UnsafeCell::new(value))
    }

    /// Runs `f` on a pointer for reading.
    #[inline(always)]
    pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }

    /// Runs `f` on a pointer for writing.
    #[inline(always)]
    pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}

/// Tells the processor that this is a waiting loop; a scheduling point for loom.
#[inline]
pub fn spin_loop() {
    #[cfg(loom)]
    loom::thread::yield_now();
    #[cfg(not(loom))]
    core::hint::spin_loop();
}

/// Gives the processor to another thread.
#[inline]
pub fn yield_now() {
    #[cfg(loom)]
    loom::thread::yield_now();
    #[cfg(not(loom))]
    std::thread::yield_now();
}
