//! Floor 3, bench-suite. Owns the tracker `shootdown`: lazy holders are not tracked; tearing down interrupts every CPU
//! that has ever run in the mm (the kernel's `MMU_LAZY_TLB_SHOOTDOWN`).
//! Touches only the mm's mask.
//!
//! Grab and drop are a full fence each, which the kernel has in their place for its membarrier.
//!
//! **Orderings.** A bit is set while the CPU is a user; giving up being one is a Release that whoever is the last
//! acquires. So Relaxed is enough for the mask.

use super::super::mm::Mm;
use super::super::tracker::{Cost, Interrupts, Tracker};
use crate::schemes::About;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// How many CPUs there are, and how many bits were found.
#[derive(Debug)]
pub(crate) struct Shootdown {
    cpus: usize,
    matches: AtomicU64,
}

/// The CPUs that have run in the mm, `mm_cpumask`.
#[derive(Debug)]
pub(crate) struct Mask(Box<[AtomicU64]>);

impl Mask {
    fn new(cpus: usize) -> Self {
        Mask((0..cpus.div_ceil(64)).map(|_| AtomicU64::new(0)).collect())
    }

    #[inline(always)]
    fn set(&self, cpu: usize) {
        let word = &self.0[cpu / 64];
        let bit = 1 << (cpu % 64);
        // Looked at first: setting takes the line from all the others.
        if word.load(Ordering::Relaxed) & bit == 0 {
            word.fetch_or(bit, Ordering::Relaxed);
        }
    }

    /// CPUs in it.
    fn cpus(&self) -> Vec<usize> {
        let bits = |(at, word): (usize, &AtomicU64)| {
            let word = word.load(Ordering::Relaxed);
            (0..64)
                .filter(move |bit| word >> bit & 1 == 1)
                .map(move |bit| at * 64 + bit)
        };
        self.0.iter().enumerate().flat_map(bits).collect()
    }
}

impl Tracker for Shootdown {
    const ABOUT: About = About::new(
        "shootdown",
        "nobody is tracked: tearing down interrupts every CPU that has run in the mm",
        "a fence each; tearing down interrupts all CPUs of the mm's mask",
    );
    const FREES_AT_ONCE: bool = true;

    type Mark = Mask;
    type Cpu<'t> = usize;
    type Held<'t> = ();

    fn new(cpus: usize) -> Self {
        Shootdown {
            cpus,
            matches: AtomicU64::new(0),
        }
    }

    fn cpu(&self, index: usize) -> usize {
        index
    }

    fn mark(&self) -> Mask {
        Mask::new(self.cpus)
    }

    #[inline(always)]
    unsafe fn run_user(&self, cpu: &mut usize, mm: NonNull<Mm<Self>>) {
        // SAFETY: alive by contract.
        unsafe { mm.as_ref() }.mark().set(*cpu);
    }

    #[inline(always)]
    unsafe fn grab(&self, _: &mut usize, _: NonNull<Mm<Self>>) {
        // The fence that the kernel's membarrier needs; it orders nothing here.
        fence(Ordering::SeqCst);
    }

    #[inline(always)]
    unsafe fn drop(&self, _: &mut usize, _: NonNull<Mm<Self>>, (): ()) {
        // As in `grab`.
        fence(Ordering::SeqCst);
    }

    unsafe fn tear_down(
        &self,
        _: &mut usize,
        mm: NonNull<Mm<Self>>,
        interrupts: &mut dyn Interrupts<Self>,
    ) {
        // SAFETY: alive until freed below.
        let cpus = unsafe { mm.as_ref() }.mark().cpus();
        // Relaxed: read when the run is over.
        self.matches.fetch_add(cpus.len() as u64, Ordering::Relaxed);
        interrupts.let_all_go(&cpus, mm);
        // SAFETY: whoever has it lazily has run in it, and has let go.
        unsafe { Mm::free(mm) };
    }

    unsafe fn interrupted(&self, _: usize, _: NonNull<Mm<Self>>, (): ()) {
        // Nothing is held, so nothing is to be cleared.
    }

    fn cost(&self) -> Cost {
        Cost {
            fences: (1, 1),
            ..Cost::NOTHING
        }
    }

    fn reasons(&self) -> u64 {
        self.matches.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_has_the_cpus_that_ran() {
        let mask = Mask::new(130);
        for cpu in [0, 63, 64, 129, 64] {
            mask.set(cpu);
        }
        assert_eq!(mask.cpus(), [0, 63, 64, 129]);
    }
}
