//! Floor 3, bench-suite. Owns the tracker `seize`: a CPU that has an mm lazily is inside a guard.
//! May touch the `seize` crate.

use super::super::mm::Mm;
use super::super::tracker::{Cost, Interrupts, Tracker};
use crate::schemes::About;
use seize::{Collector, Guard, LocalGuard};
use std::ptr::NonNull;

/// A collector of its own; what is left in it is freed when it is dropped.
pub(crate) struct Seize(Collector);

impl Tracker for Seize {
    const ABOUT: About = About::new(
        "seize",
        "seize 0.5: inside a guard from grab to drop; tear-down retires and flushes its batch",
        "the thread's reservation, in a collector of its own",
    );

    type Mark = ();
    type Cpu<'t> = ();
    type Held<'t> = LocalGuard<'t>;

    fn new(_: usize) -> Self {
        Seize(Collector::new())
    }

    fn cpu(&self, _: usize) {}

    fn mark(&self) {}

    #[inline(always)]
    unsafe fn grab<'t>(&'t self, (): &mut (), _: NonNull<Mm<Self>>) -> LocalGuard<'t> {
        self.0.enter()
    }

    #[inline(always)]
    unsafe fn drop<'t>(&'t self, (): &mut (), _: NonNull<Mm<Self>>, held: LocalGuard<'t>) {
        drop(held);
    }

    unsafe fn tear_down(&self, (): &mut (), mm: NonNull<Mm<Self>>, _: &mut dyn Interrupts<Self>) {
        let guard = self.0.enter();
        // SAFETY: holders entered before this, nobody can grab it any more, and it is retired once. The function frees
        // what came from `Mm::new`.
        unsafe { guard.defer_retire(mm.as_ptr(), free) };
        guard.flush();
    }

    fn flush(&self, (): &mut ()) {
        self.0.enter().flush();
    }

    fn cost(&self) -> Cost {
        Cost {
            // Leaving is an exchange. Entering is a store: on Linux the barrier is the retiring thread's.
            locked: (0, 1),
            fences: (u32::from(!cfg!(target_os = "linux")), 0),
        }
    }
}

/// # Safety
/// As [`Mm::free`].
unsafe fn free(mm: *mut Mm<Seize>, _: &Collector) {
    // SAFETY: the caller's; it came from a `NonNull`.
    unsafe { Mm::free(NonNull::new_unchecked(mm)) };
}
