//! Floor 3, bench-suite. Owns the variants `liburcu-memb`, `liburcu-qsbr` and `liburcu-bp`: Debian's userspace RCU.
//! May touch liburcu through `shim.c` and `flavours`. Only there with the feature `liburcu`.
//!
//! The loops of `read` are compiled in C with the library's inline functions, as its users compile theirs; a call from
//! Rust for each read would cost more than the read.
//!
//! A thread that reads or defers has a [`Registered`] state. With qsbr it is online from there on, announces a
//! quiescent state after each operation, and is offline where it sleeps. `call_rcu` wants its caller to bring the head
//! of the callback: it is allocated for each call here, where programs embed it in an object that they have anyway.

mod flavours;

pub(super) use flavours::{Bp, Memb, Qsbr};

use super::{About, Callback, Object, Scheme, Support};
use flavours::{Flavour, Head};
use std::marker::PhantomData;
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

const NOT_WRITTEN: &str =
    "it is here for the comparison of read, grace and defer; its updaters queue without bound";

/// What all flavours have in common.
pub(super) const fn about(name: &'static str, measures: &'static str) -> About {
    About {
        synchronizes: true,
        defer: Support::Yes,
        ..About::new(
            name,
            measures,
            "per thread: registration; per operation: a read-side critical section, compiled in C",
        )
        .without_writing(NOT_WRITTEN)
    }
}

/// A cell of RCU-protected objects.
#[derive(Debug)]
pub(crate) struct Liburcu<F> {
    cell: AtomicPtr<Object>,
    flavour: PhantomData<F>,
}

/// The registration of the calling thread, taken back on drop. Bound to the thread.
#[derive(Debug)]
pub(crate) struct Registered<F: Flavour>(PhantomData<(F, *mut ())>);

impl<F: Flavour> Registered<F> {
    fn new() -> Self {
        // SAFETY: a thread has at most one state of a scheme, so it is not registered yet.
        unsafe { (F::shim().enter)() };
        Registered(PhantomData)
    }
}

impl<F: Flavour> Drop for Registered<F> {
    fn drop(&mut self) {
        // SAFETY: `new` registered this thread (the type is not `Send`), and no section is open between operations.
        unsafe { (F::shim().leave)() };
    }
}

/// A queued callback: the head that the library asks for, and what to run.
#[repr(C)]
struct Queued {
    head: Head,
    callback: Callback,
}

/// Runs a [`Queued`] and frees it.
unsafe extern "C" fn run(head: *mut Head) {
    // SAFETY: `defer` made it with `Box::into_raw` of a `Queued`, whose first field is the head; the library calls
    // each callback once.
    let queued = unsafe { Box::from_raw(head.cast::<Queued>()) };
    queued.callback.run();
}

impl<F: Flavour> Scheme for Liburcu<F> {
    const ABOUT: About = F::ABOUT;

    type Reader<'a>
        = Registered<F>
    where
        F: 'a;

    fn new(first: Object) -> Self {
        Liburcu {
            cell: AtomicPtr::new(Box::into_raw(Box::new(first))),
            flavour: PhantomData,
        }
    }

    fn reader(&self) -> Registered<F> {
        Registered::new()
    }

    fn read(&self, reader: &mut Registered<F>) -> bool {
        self.read_batch(reader, 1) == 0
    }

    #[inline(always)]
    fn read_batch(&self, _: &mut Registered<F>, count: u64) -> u64 {
        // SAFETY: the thread is registered (bp does it itself). The cell holds an object whose canary is at that
        // offset, and what was taken out of it is freed after a grace period.
        unsafe {
            (F::shim().read_batch)(
                self.cell.as_ptr().cast(),
                Object::CANARY_OFFSET,
                Object::ALIVE,
                count,
            )
        }
    }

    fn hold(&self, _: &mut Registered<F>, inside: impl FnOnce()) -> bool {
        // SAFETY: the thread is registered; `unlock` below ends the section.
        let object = unsafe { (F::shim().lock)(self.cell.as_ptr().cast()) };
        inside();
        // SAFETY: the section keeps the object, which `new` or `write` put there.
        let alive = unsafe { (*object.cast::<Object>()).is_alive() };
        // SAFETY: this thread opened the section above; the reference is gone.
        unsafe { (F::shim().unlock)() };
        alive
    }

    fn idle(&self, _: &mut Registered<F>, pause: impl FnOnce()) {
        // SAFETY: the thread is registered and in no section.
        unsafe { (F::shim().offline)() };
        pause();
        // SAFETY: it is registered, and offline.
        unsafe { (F::shim().online)() };
    }

    /// Not measured.
    fn write(&self, object: Object) {
        // AcqRel: releases the new object to readers, and hands over the old one's history.
        let old = self
            .cell
            .swap(Box::into_raw(Box::new(object)), Ordering::AcqRel);
        self.synchronize();
        // SAFETY: the swap unlinked `old`, which came from `Box::into_raw`; the grace period saw all its readers leave.
        drop(unsafe { Box::from_raw(old) });
    }

    fn synchronize(&self) -> bool {
        // SAFETY: no workload calls this inside a section. The library takes an online caller offline meanwhile.
        unsafe { (F::shim().synchronize)() };
        true
    }

    #[inline]
    fn defer(&self, _: &mut Registered<F>, callback: Callback) {
        let queued = Box::new(Queued {
            head: Head::new(),
            callback,
        });
        // SAFETY: the thread is registered; the head stays where it is until `run` frees it.
        unsafe { (F::shim().call)(Box::into_raw(queued).cast(), run) };
    }

    fn flush(&self) {
        // SAFETY: not called inside a section, nor from a callback.
        unsafe { (F::shim().barrier)() };
    }
}

impl<F> Drop for Liburcu<F> {
    fn drop(&mut self) {
        let last = mem::replace(self.cell.get_mut(), ptr::null_mut());
        // SAFETY: `&mut self` proves that no reader or writer is left, and the pointer came from `Box::into_raw`.
        drop(unsafe { Box::from_raw(last) });
    }
}
