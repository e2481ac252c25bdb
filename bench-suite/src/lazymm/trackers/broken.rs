//! Floor 3, bench-suite. Owns the hidden trackers `broken-i1` to `broken-i6`: each breaks the invariant of its number on
//! purpose, so that the checks are seen to work; and `broken-panic`, whose last CPU panics. Touches nothing else. Refused unless `HPBENCH_ALLOW_BROKEN=1`.
//!
//! All are a slot a CPU with a scan that interrupts, and one mistake. What they free stays in memory (see `mm`), so
//! that looking at it is no undefined behaviour.
//!
//! | | mistake | shows in |
//! |---|---|---|
//! | `broken-i1` | a drop frees the mm under its users | all |
//! | `broken-i2` | tear-down does not scan | `sched`, where holders outlive users |
//! | `broken-i3` | a grab clears its slot again, before the switch | all |
//! | `broken-i4` | a drop does not clear the slot | all |
//! | `broken-i5` | tear-down frees twice | all |
//! | `broken-i6` | tear-down interrupts a CPU that does not have the mm | all |

use super::super::mm::Mm;
use super::super::tracker::{Cost, Interrupts, Tracker};
use crate::schemes::About;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// Slots, with the mistake `I`.
pub(crate) struct Broken<const I: u8> {
    slots: Box<[AtomicPtr<Mm<Self>>]>,
    busy: AtomicU64,
    reasons: AtomicU64,
}

const NAMES: [&str; 8] = [
    "",
    "broken-i1",
    "broken-i2",
    "broken-i3",
    "broken-i4",
    "broken-i5",
    "broken-i6",
    "broken-panic",
];

impl<const I: u8> Tracker for Broken<I> {
    const ABOUT: About = About {
        hidden: true,
        ..About::new(
            NAMES[I as usize],
            "breaks an invariant: the run must fail",
            "none",
        )
    };

    const FREES_AT_ONCE: bool = true;

    type Mark = ();
    type Cpu<'t> = usize;
    type Held<'t> = ();

    fn new(cpus: usize) -> Self {
        Broken {
            slots: (0..cpus).map(|_| AtomicPtr::default()).collect(),
            busy: AtomicU64::new(0),
            reasons: AtomicU64::new(0),
        }
    }

    fn cpu(&self, index: usize) -> usize {
        index
    }

    fn mark(&self) {}

    unsafe fn grab(&self, cpu: &mut usize, mm: NonNull<Mm<Self>>) {
        let before = self.slots[*cpu].swap(mm.as_ptr(), Ordering::SeqCst);
        if !before.is_null() {
            self.busy.fetch_add(1, Ordering::Relaxed);
        }
        if I == 7 && *cpu + 1 == self.slots.len() {
            panic!("broken on purpose");
        }
        if I == 3 {
            self.slots[*cpu].store(ptr::null_mut(), Ordering::SeqCst);
        }
    }

    unsafe fn drop(&self, cpu: &mut usize, mm: NonNull<Mm<Self>>, (): ()) {
        if I != 4 {
            self.slots[*cpu].store(ptr::null_mut(), Ordering::SeqCst);
        }
        // SAFETY: not a free: blocks of hidden trackers stay.
        if I == 1 && unsafe { mm.as_ref().is_alive() } {
            // SAFETY: as above.
            unsafe { Mm::free(mm) };
        }
    }

    unsafe fn tear_down(
        &self,
        _: &mut usize,
        mm: NonNull<Mm<Self>>,
        interrupts: &mut dyn Interrupts<Self>,
    ) {
        for (cpu, slot) in self.slots.iter().enumerate() {
            let matches = slot.load(Ordering::SeqCst) == mm.as_ptr();
            self.reasons
                .fetch_add(u64::from(matches), Ordering::Relaxed);
            if (matches && I != 2 && I != 4) || I == 6 {
                interrupts.let_go(cpu, mm);
            }
        }
        if I != 1 {
            // SAFETY: blocks of hidden trackers stay.
            unsafe { Mm::free(mm) };
        }
        if I == 5 {
            // SAFETY: as above; the second time it is counted.
            unsafe { Mm::free(mm) };
        }
    }

    unsafe fn interrupted(&self, index: usize, _: NonNull<Mm<Self>>, (): ()) {
        if I != 4 {
            self.slots[index].store(ptr::null_mut(), Ordering::SeqCst);
        }
    }

    fn cost(&self) -> Cost {
        Cost::NOTHING
    }

    fn slot(&self, index: usize) -> Option<*const Mm<Self>> {
        Some(self.slots[index].load(Ordering::SeqCst))
    }

    fn busy(&self) -> u64 {
        self.busy.load(Ordering::Relaxed)
    }

    fn reasons(&self) -> u64 {
        self.reasons.load(Ordering::Relaxed)
    }
}
