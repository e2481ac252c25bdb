//! Floor 3, bench-suite. Owns the tracker `haphazard`: a hazard pointer of a domain of its own for each CPU.
//! May touch the `haphazard` crate.
//!
//! Existence is guaranteed, so the address goes into the hazard pointer without a fence and without a second look
//! (`protect_raw`): that the holder was a user happens before the tear-down.

use super::super::mm::Mm;
use super::super::tracker::{Cost, Interrupts, Tracker};
use crate::schemes::About;
use haphazard::raw::Pointer;
use haphazard::{Domain, HazardPointer};
use std::ops::Deref;
use std::ptr::NonNull;

/// What keeps the domain apart from others.
pub(crate) struct Family;

/// A domain; its last retired mms are freed when it is dropped.
pub(crate) struct Haphazard(Domain<Family>);

/// A retired mm.
struct Retired<T: Tracker>(NonNull<Mm<T>>);

impl<T: Tracker> Deref for Retired<T> {
    type Target = Mm<T>;

    fn deref(&self) -> &Mm<T> {
        // SAFETY: freed by the destructor below, not before.
        unsafe { self.0.as_ref() }
    }
}

impl<T: Tracker> Drop for Retired<T> {
    fn drop(&mut self) {
        // SAFETY: made from what was retired, once, when no hazard pointer has it.
        unsafe { Mm::free(self.0) };
    }
}

// SAFETY: the pointer is kept as it is.
unsafe impl<T: Tracker> Pointer<Mm<T>> for Retired<T> {
    fn into_raw(self) -> *mut Mm<T> {
        let pointer = self.0.as_ptr();
        std::mem::forget(self);
        pointer
    }

    unsafe fn from_raw(pointer: *mut Mm<T>) -> Self {
        // SAFETY: the caller's: it came from a `NonNull`.
        Retired(unsafe { NonNull::new_unchecked(pointer) })
    }
}

impl Tracker for Haphazard {
    const ABOUT: About = About::new(
        "haphazard",
        "haphazard 0.1: protect_raw to grab, reset_protection to drop; tear-down retires and reclaims eagerly",
        "one HazardPointer per CPU, in a domain of its own",
    );

    type Mark = ();
    type Cpu<'t> = HazardPointer<'t, Family>;
    type Held<'t> = ();

    fn new(_: usize) -> Self {
        Haphazard(Domain::new(&Family))
    }

    fn cpu(&self, _: usize) -> HazardPointer<'_, Family> {
        HazardPointer::new_in_domain(&self.0)
    }

    fn mark(&self) {}

    #[inline(always)]
    unsafe fn grab<'t>(&'t self, cpu: &mut HazardPointer<'t, Family>, mm: NonNull<Mm<Self>>) {
        cpu.protect_raw(mm.as_ptr());
    }

    #[inline(always)]
    unsafe fn drop<'t>(
        &'t self,
        cpu: &mut HazardPointer<'t, Family>,
        _: NonNull<Mm<Self>>,
        (): (),
    ) {
        cpu.reset_protection();
    }

    unsafe fn tear_down<'t>(
        &'t self,
        _: &mut HazardPointer<'t, Family>,
        mm: NonNull<Mm<Self>>,
        _: &mut dyn Interrupts<Self>,
    ) {
        // SAFETY: nobody can grab it any more; retired once; the memory is there until the domain reclaims it.
        unsafe { self.0.retire_ptr::<_, Retired<Self>>(mm.as_ptr()) };
        self.0.eager_reclaim();
    }

    fn flush(&self, _: &mut HazardPointer<'_, Family>) {
        self.0.eager_reclaim();
    }

    fn cost(&self) -> Cost {
        Cost::NOTHING
    }
}
