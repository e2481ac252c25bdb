//! Floor 3, bench-suite. Owns the tracker `none`: nothing is tracked.
//! Touches only the mm.
//!
//! A torn down mm is kept and freed with the tracker, when no CPU is left: the bound that no tracker can beat.

use super::super::mm::Mm;
use super::super::tracker::{Cost, Interrupts, Tracker};
use crate::schemes::About;
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

/// What each CPU has torn down.
#[derive(Debug)]
pub(crate) struct Untracked {
    kept: Box<[Kept]>,
}

/// One CPU's, on its own pair of lines.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Kept(Mutex<Vec<NonNull<Mm<Untracked>>>>);

// SAFETY: an mm may be freed by any thread, and this is all that is done with these.
unsafe impl Send for Kept {}
// SAFETY: the list is behind its mutex.
unsafe impl Sync for Kept {}

impl Tracker for Untracked {
    const ABOUT: About = About::new(
        "none",
        "nothing is tracked: an mm stays until the end of the run (the bound)",
        "none",
    );

    const FREES_LAST: bool = true;

    type Mark = ();
    type Cpu<'t> = usize;
    type Held<'t> = ();

    fn new(cpus: usize) -> Self {
        Untracked {
            kept: (0..cpus).map(|_| Kept::default()).collect(),
        }
    }

    fn cpu(&self, index: usize) -> usize {
        index
    }

    fn mark(&self) {}

    #[inline(always)]
    unsafe fn grab(&self, _: &mut usize, _: NonNull<Mm<Self>>) {}

    #[inline(always)]
    unsafe fn drop(&self, _: &mut usize, _: NonNull<Mm<Self>>, (): ()) {}

    unsafe fn tear_down(
        &self,
        cpu: &mut usize,
        mm: NonNull<Mm<Self>>,
        _: &mut dyn Interrupts<Self>,
    ) {
        let mut kept = self.kept[*cpu]
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        kept.push(mm);
    }

    fn cost(&self) -> Cost {
        Cost::NOTHING
    }
}

impl Drop for Untracked {
    fn drop(&mut self) {
        for kept in &mut self.kept {
            for mm in kept
                .0
                .get_mut()
                .unwrap_or_else(PoisonError::into_inner)
                .drain(..)
            {
                // SAFETY: torn down, and the CPUs, which borrow this tracker, are gone.
                unsafe { Mm::free(mm) };
            }
        }
    }
}
