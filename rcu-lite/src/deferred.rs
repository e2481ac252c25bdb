//! A call that is made later: a closure of any size in four words.
//!
//! Floor 2 (`rcu-lite`), raw layer; touches nothing but the closure.

use core::mem::{ManuallyDrop, MaybeUninit, align_of, size_of};

/// Words that a closure may have to be kept without a box: a fat pointer and
/// one more.
const INLINE: usize = 3;

type Words = [MaybeUninit<usize>; INLINE];

/// A closure that will be called once, perhaps by another thread. Dropping it
/// uncalled leaks what it captured.
pub(crate) struct Deferred {
    call: unsafe fn(*mut Words),
    words: Words,
}

// SAFETY: `new` takes closures that are `Send` only.
unsafe impl Send for Deferred {}

impl core::fmt::Debug for Deferred {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Deferred")
    }
}

impl Deferred {
    /// Keeps `f`: in place if it fits, else in a box.
    #[inline]
    pub(crate) fn new<F: FnOnce() + Send + 'static>(f: F) -> Self {
        if size_of::<F>() <= size_of::<Words>() && align_of::<F>() <= align_of::<Words>() {
            // SAFETY: size and alignment were tested.
            unsafe { Self::in_place(f) }
        } else {
            let f = Box::new(f);
            // SAFETY: a box of a sized type is one word.
            unsafe { Self::in_place(f) }
        }
    }

    /// # Safety
    ///
    /// `F` fits into [`Words`].
    #[inline]
    unsafe fn in_place<F: FnOnce() + Send + 'static>(f: F) -> Self {
        /// # Safety
        ///
        /// `words` holds an `F`, which is taken out.
        unsafe fn call<F: FnOnce()>(words: *mut Words) {
            // SAFETY: the caller's.
            let f = unsafe { words.cast::<F>().read() };
            f();
        }
        let mut words: Words = [MaybeUninit::uninit(); INLINE];
        // SAFETY: the caller's.
        unsafe { words.as_mut_ptr().cast::<F>().write(f) };
        Self {
            call: call::<F>,
            words,
        }
    }

    /// Makes the call.
    #[inline]
    pub(crate) fn call(self) {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: written by `in_place` for this very function, and called
        // once, since `self` is consumed.
        unsafe { (this.call)(&raw mut this.words) }
    }
}

/// A boxed value that readers may still look at. Not a `Box` before its grace
/// period is over: that would claim to be the only way to the value, already
/// by being moved.
pub(crate) struct Unlinked<T: ?Sized>(*mut T);

// SAFETY: stands for the box.
unsafe impl<T: ?Sized + Send> Send for Unlinked<T> {}

impl<T: ?Sized> Unlinked<T> {
    /// # Safety
    ///
    /// `value` came out of a box, nobody else frees it, and [`free`](Self::free)
    /// is called when no reader has it any more.
    #[inline]
    pub(crate) unsafe fn new(value: *mut T) -> Self {
        Self(value)
    }

    /// Drops the value and frees its box.
    pub(crate) fn free(self) {
        // SAFETY: the promise of `new`.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::mpsc::channel;

    #[test]
    fn closures_of_every_size_are_called_once() {
        #[repr(align(64))]
        struct Aligned(u8);
        let count = Arc::new(());
        let (tx, rx) = channel();
        let big = [7u64; 20];
        let aligned = Aligned(3);
        let (a, b, c, d) = (tx.clone(), tx.clone(), tx.clone(), tx);
        let (k, l) = (Arc::clone(&count), Arc::clone(&count));
        for f in [
            Deferred::new(move || {
                let _k = &k;
                a.send(1).unwrap();
            }),
            Deferred::new(move || {
                let _l = &l;
                b.send(big.iter().sum()).unwrap();
            }),
            Deferred::new(move || c.send({ &aligned }.0.into()).unwrap()),
            Deferred::new(move || d.send(4).unwrap()),
        ] {
            f.call();
        }
        assert_eq!(rx.iter().collect::<Vec<u64>>(), [1, 140, 3, 4]);
        assert_eq!(Arc::strong_count(&count), 1, "captures are dropped");
        Deferred::new(|| ()).call();
    }
}
