//! Floor 3, bench-suite. Owns the tracker `crossbeam-epoch`: a CPU that has an mm lazily is pinned.
//! May touch the `crossbeam-epoch` crate.

use super::super::mm::Mm;
use super::super::tracker::{Cost, Interrupts, Tracker};
use super::Torn;
use crate::schemes::About;
use crossbeam_epoch::{Collector, Guard, LocalHandle};
use std::ptr::NonNull;

/// A collector of its own; what it has deferred runs when it is dropped, at the latest.
pub(crate) struct Crossbeam(Collector);

impl Tracker for Crossbeam {
    const ABOUT: About = About::new(
        "crossbeam-epoch",
        "crossbeam-epoch 0.9: pinned from grab to drop; tear-down defers and flushes",
        "one participant per CPU, in a collector of its own",
    );

    type Mark = ();
    type Cpu<'t> = LocalHandle;
    type Held<'t> = Guard;

    fn new(_: usize) -> Self {
        Crossbeam(Collector::new())
    }

    fn cpu(&self, _: usize) -> LocalHandle {
        self.0.register()
    }

    fn mark(&self) {}

    #[inline(always)]
    unsafe fn grab(&self, cpu: &mut LocalHandle, _: NonNull<Mm<Self>>) -> Guard {
        cpu.pin()
    }

    #[inline(always)]
    unsafe fn drop(&self, _: &mut LocalHandle, _: NonNull<Mm<Self>>, held: Guard) {
        drop(held);
    }

    unsafe fn tear_down(
        &self,
        cpu: &mut LocalHandle,
        mm: NonNull<Mm<Self>>,
        _: &mut dyn Interrupts<Self>,
    ) {
        let torn = Torn(mm);
        let guard = cpu.pin();
        // SAFETY: holders were pinned before this, nobody can grab it any more, and it is deferred once.
        unsafe { guard.defer_unchecked(move || torn.free()) };
        guard.flush();
    }

    fn flush(&self, cpu: &mut LocalHandle) {
        cpu.pin().flush();
    }

    fn cost(&self) -> Cost {
        // Pinning is a compare-exchange instead of a fence on x86.
        let x86 = cfg!(any(target_arch = "x86", target_arch = "x86_64"));
        Cost {
            locked: (u32::from(x86), 0),
            fences: (u32::from(!x86), 0),
        }
    }
}
