//! Floor 3, bench-suite. Owns the trackers `hp-mb` and `hp-asym`: a hazard slot a CPU, as in the kernel patch.
//! May touch the crate `refcounts`, where the slots and their model are.
//!
//! `hp-mb` has the patch's two full fences, `hp-asym` none: the one who tears down pays with a process-wide barrier.
//! Not over `hp::SlotArray`, whose slots any thread may claim: a claim there is a compare-exchange, and that locked
//! instruction is what this tracker is measured to do without.
//!
//! Tearing down looks at all slots. A CPU that has the mm is interrupted: it goes over to the initial mm and clears its
//! slot. Then its slot is looked at again (the patch's second interrupt asks the CPU itself; so does the workload).

use super::super::mm::Mm;
use super::super::tracker::{Cost, Interrupts, Tracker};
use crate::schemes::About;
use percpu::barrier::{Rung, rung};
pub(crate) use refcounts::lazy_slots::{Asymmetric, Symmetric};
use refcounts::lazy_slots::{Fences, LazySlots};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// One of the two.
pub(crate) trait Kind: Fences {
    /// Its description.
    const ABOUT: About;
    /// Full fences of a grab, and of a drop.
    fn fences() -> u32;
}

impl Kind for Symmetric {
    const ABOUT: About = About::new(
        "hp-mb",
        "a hazard slot a CPU with the two full fences of the kernel patch",
        "a fence and a store each; tearing down scans and interrupts who has it",
    );

    fn fences() -> u32 {
        1
    }
}

impl Kind for Asymmetric {
    const ABOUT: About = About::new(
        "hp-asym",
        "a hazard slot a CPU without fences",
        "a store each; tearing down pays with one process-wide barrier, scans and interrupts who has it",
    )
    .over_percpu();

    fn fences() -> u32 {
        u32::from(rung() == Rung::Fence)
    }
}

/// Slots, and what went on in them.
#[derive(Debug)]
pub(crate) struct Hp<K> {
    slots: LazySlots<K>,
    seen: Seen,
}

/// What went on, off the line that every grab reads.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Seen {
    /// Grabs that found their slot busy.
    busy: AtomicU64,
    /// Slots that a scan found.
    matches: AtomicU64,
}

impl<K: Kind> Hp<K> {
    /// Scans for `mm`, interrupts who has it and looks again. Whether it can be freed.
    pub(super) fn chase(
        &self,
        mm: NonNull<Mm<Self>>,
        interrupts: &mut dyn Interrupts<Self>,
    ) -> bool {
        let address = mm.addr().get();
        let mut clear = true;
        let scanned = self.slots.find(address, |cpu| {
            // Relaxed: read when the run is over.
            self.seen.matches.fetch_add(1, Relaxed);
            interrupts.let_go(cpu, mm);
            clear &= !self.slots.has(cpu, address);
        });
        clear && scanned.is_ok()
    }
}

impl<K: Kind> Tracker for Hp<K> {
    const ABOUT: About = K::ABOUT;
    const FREES_AT_ONCE: bool = true;

    type Mark = ();
    type Cpu<'t> = usize;
    type Held<'t> = ();

    fn new(cpus: usize) -> Self {
        // Decided before a signal handler can be the first to ask.
        let _ = rung();
        Hp {
            slots: LazySlots::new(cpus),
            seen: Seen::default(),
        }
    }

    fn cpu(&self, index: usize) -> usize {
        index
    }

    fn mark(&self) {}

    #[inline(always)]
    unsafe fn grab(&self, cpu: &mut usize, mm: NonNull<Mm<Self>>) {
        if !self.slots.grab(*cpu, mm.addr().get()) {
            self.found_busy();
        }
    }

    #[inline(always)]
    unsafe fn drop(&self, cpu: &mut usize, _: NonNull<Mm<Self>>, (): ()) {
        self.slots.clear(*cpu);
    }

    unsafe fn tear_down(
        &self,
        _: &mut usize,
        mm: NonNull<Mm<Self>>,
        interrupts: &mut dyn Interrupts<Self>,
    ) {
        if self.chase(mm, interrupts) {
            // SAFETY: no slot has it, and none can get it: only users grab.
            unsafe { Mm::free(mm) };
        }
        // Else it leaks, and I5 tells.
    }

    unsafe fn interrupted(&self, cpu: usize, _: NonNull<Mm<Self>>, (): ()) {
        self.slots.clear(cpu);
    }

    fn cost(&self) -> Cost {
        Cost {
            fences: (K::fences(), K::fences()),
            ..Cost::NOTHING
        }
    }

    #[inline(always)]
    fn slot(&self, index: usize) -> Option<*const Mm<Self>> {
        Some(std::ptr::without_provenance(self.slots.get(index)))
    }

    fn busy(&self) -> u64 {
        self.seen.busy.load(Relaxed)
    }

    fn reasons(&self) -> u64 {
        self.seen.matches.load(Relaxed)
    }
}

impl<K> Hp<K> {
    #[cold]
    fn found_busy(&self) {
        self.seen.busy.fetch_add(1, Relaxed);
    }
}
