//! A retired object: an address, and what to do when nobody protects it.
//!
//! Floor 2 (`hp`), raw layer. Owns the type erasure of deleters; three words,
//! so that retiring allocates nothing, not even for unsized boxes.

use core::mem::{MaybeUninit, size_of};
use core::ptr;

/// A deleter: gets the retired address and the second word of its record.
pub(crate) type Run = unsafe fn(*mut (), MaybeUninit<*mut ()>);

/// An object that waits to be reclaimed.
#[derive(Clone, Copy)]
pub(crate) struct Retired {
    address: *mut (),
    second: MaybeUninit<*mut ()>,
    run: Run,
}

// SAFETY: whoever makes one vouches that its deleter may run on any thread
// (`T: Send` for boxes, the caller's word for the others).
unsafe impl Send for Retired {}

impl core::fmt::Debug for Retired {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        // The address only: the object may be anything, also dead.
        f.debug_tuple("Retired").field(&self.address).finish()
    }
}

impl Retired {
    /// A boxed object, thin or wide.
    ///
    /// # Safety
    ///
    /// `object` came from `Box::into_raw`, may be dropped on any thread, and
    /// nobody else drops it.
    pub(crate) unsafe fn boxed<T: ?Sized>(object: *mut T) -> Self {
        /// What `*mut T` is for thin and for wide pointers.
        const fn words<T: ?Sized>() -> usize {
            size_of::<*mut T>() / size_of::<*mut ()>()
        }
        unsafe fn run<T: ?Sized>(address: *mut (), second: MaybeUninit<*mut ()>) {
            let mut object = MaybeUninit::<*mut T>::uninit();
            // SAFETY: puts back the one or two words that `boxed` took out of
            // the same type; a box of it is what the caller of `boxed` gave.
            unsafe {
                let to = object.as_mut_ptr().cast::<MaybeUninit<*mut ()>>();
                to.write(MaybeUninit::new(address));
                if words::<T>() == 2 {
                    to.add(1).write(second);
                }
                #[cfg(not(loom))]
                drop(Box::from_raw(object.assume_init()));
                #[cfg(loom)]
                crate::verify::bury(object.assume_init());
            }
        }
        const { assert!(words::<T>() <= 2, "pointers are one or two words") };
        let mut second = MaybeUninit::uninit();
        if words::<T>() == 2 {
            // SAFETY: a wide pointer is two words, the address first; the
            // second is copied bytewise, whatever it means.
            second = unsafe {
                ptr::from_ref(&object)
                    .cast::<MaybeUninit<*mut ()>>()
                    .add(1)
                    .read()
            };
        }
        Self {
            address: object.cast(),
            second,
            run: run::<T>,
        }
    }

    /// Anything, with a deleter and a word for it.
    ///
    /// # Safety
    ///
    /// `run` may be called once with these two words, on any thread.
    pub(crate) unsafe fn with(address: *mut (), second: *mut (), run: Run) -> Self {
        Self {
            address,
            second: MaybeUninit::new(second),
            run,
        }
    }

    /// The three words, for passing them in registers: copied through memory
    /// word by word and read back two at a time they would miss the store
    /// buffer's forwarding, which costs more than the rest of retiring.
    #[inline(always)]
    pub(crate) fn into_words(self) -> (*mut (), MaybeUninit<*mut ()>, Run) {
        (self.address, self.second, self.run)
    }

    /// # Safety
    ///
    /// The words came from [`into_words`](Self::into_words).
    #[inline(always)]
    pub(crate) unsafe fn from_words(
        (address, second, run): (*mut (), MaybeUninit<*mut ()>, Run),
    ) -> Self {
        Self {
            address,
            second,
            run,
        }
    }

    #[inline]
    pub(crate) fn address(&self) -> usize {
        self.address.addr()
    }

    /// For models, which look at what they free.
    #[cfg(loom)]
    pub(crate) fn pointer(&self) -> *mut () {
        self.address
    }

    /// Runs the deleter.
    ///
    /// # Safety
    ///
    /// Nobody protects the address, and this is the only call.
    pub(crate) unsafe fn reclaim(self) {
        // SAFETY: the constructor's contract, and the caller's.
        unsafe { (self.run)(self.address, self.second) }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::rc::Rc;

    #[test]
    fn thin_wide_and_zero_sized_boxes_come_back_whole() {
        let count = Rc::new(());
        let thin = Box::into_raw(Box::new(Rc::clone(&count)));
        let slice: *mut [Rc<()>] =
            Box::into_raw(vec![Rc::clone(&count), Rc::clone(&count)].into_boxed_slice());
        let object: *mut dyn std::any::Any = Box::into_raw(Box::new(Rc::clone(&count)));
        assert_eq!(Rc::strong_count(&count), 5);
        for retired in [
            // SAFETY: each came from a box, and stays on this thread.
            unsafe { Retired::boxed(thin) },
            // SAFETY: as above.
            unsafe { Retired::boxed(slice) },
            // SAFETY: as above.
            unsafe { Retired::boxed(object) },
            // SAFETY: as above.
            unsafe { Retired::boxed(Box::into_raw(Box::new(()))) },
        ] {
            // SAFETY: once each.
            unsafe { retired.reclaim() };
        }
        assert_eq!(Rc::strong_count(&count), 1);
    }

    #[test]
    fn over_aligned_boxes_keep_their_alignment() {
        #[repr(align(256))]
        struct Wide(u8);
        impl Drop for Wide {
            fn drop(&mut self) {
                assert_eq!(ptr::from_ref(self).addr() % 256, 0);
                assert_eq!(self.0, 9);
            }
        }
        // SAFETY: from a box, once.
        unsafe { Retired::boxed(Box::into_raw(Box::new(Wide(9)))).reclaim() };
    }
}
