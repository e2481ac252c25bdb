//! What schemes that protect everything have in common: a guard that only loads.
//!
//! Floor 3 (`structures`). Owns the loads; the schemes beside it own entering, leaving and retiring. May name a setting of
//! `rcu-lite`.

/// Under Miri, which does not let a program end before its threads, the domains of `rcu-lite` have no worker.
pub(super) const NO_WORKER: rcu_lite::Callbacks = rcu_lite::Callbacks::Inline { threshold: 64 };

/// The part of [`Guard`](crate::Guard) that is a plain load, to be put into an `impl` of it.
macro_rules! only_loads {
    () => {
        #[inline(always)]
        fn protect<T>(&mut self, _: usize, src: &::percpu::sync::atomic::AtomicPtr<T>) -> *mut T {
            // Acquire: pairs with the store that published the node.
            src.load(::percpu::sync::atomic::Ordering::Acquire)
        }

        crate::schemes::section::never_looks_again!();
    };
}

/// As `only_loads`, without the load.
macro_rules! never_looks_again {
    () => {
        #[inline(always)]
        fn unchanged<T>(&self, _: &::percpu::sync::atomic::AtomicPtr<T>, _: *mut T) -> bool {
            true
        }

        #[inline(always)]
        fn announce<T>(&mut self, _: usize, _: *mut T) {}

        #[inline(always)]
        fn clear(&mut self, _: usize) {}
    };
}

pub(super) use {never_looks_again, only_loads};
