//! Floor 3, bench-suite. Owns the trackers `rcuref`, `percpu-ref` and `split-count`: counts of `refcounts` beside each
//! mm. May touch that crate and `percpu`.
//!
//! The count begins with one reference, that of all users together; a lazy holder takes one more. Tear-down gives the
//! first one back, and whoever gives the last one back frees.
//!
//! `rcuref` asks that its word outlives a put that has lost the last reference to a get in between. There is none here:
//! gets are made by users, and before the last of them has gone the count cannot reach zero. So the put that takes it
//! there is alone, and frees at once.

use super::super::mm::Mm;
use super::super::tracker::{Cost, Interrupts, Tracker};
use crate::schemes::About;
use percpu::barrier::{Rung, rung};
use refcounts::percpu_ref::PercpuRef;
use refcounts::rcuref::RcuRef;
use refcounts::split::Slot;
use refcounts::{Thread, Tracker as Count};
use std::marker::PhantomData;
use std::ptr::NonNull;

/// Which count.
pub(crate) trait Which: Send + Sync + 'static {
    /// Description of the tracker.
    const ABOUT: About;
    /// The count.
    type Count: Count;
    /// See [`Tracker::cost`].
    fn locked() -> (u32, u32) {
        (1, 1)
    }
}

/// One word with a dead zone.
pub(crate) struct Rcuref;

impl Which for Rcuref {
    const ABOUT: About = About::new(
        "rcuref",
        "rcuref in the mm: one locked addition each, zones instead of a compare-exchange",
        "a reference per lazy holder",
    );
    type Count = RcuRef;
}

/// A line for each CPU until it is killed.
pub(crate) struct PerCpu;

impl Which for PerCpu {
    const ABOUT: About = About::new(
        "percpu-ref",
        "percpu_ref in the mm: a restartable section on the CPU's own line; tear-down kills it",
        "a reference per lazy holder; a line per CPU in each mm",
    )
    .over_percpu();
    type Count = PercpuRef;

    fn locked() -> (u32, u32) {
        if rung() == Rung::Rseq { (0, 0) } else { (1, 1) }
    }
}

/// The cell counts who came, the object who left.
pub(crate) struct Split;

impl Which for Split {
    const ABOUT: About = About::new(
        "split-count",
        "split count in the mm: one locked addition to grab, one compare-exchange to drop",
        "a reference per lazy holder",
    );
    type Count = Slot<()>;
}

/// The tracker of one of them.
pub(crate) struct Counted<W>(PhantomData<W>);

impl<W: Which> Tracker for Counted<W> {
    const ABOUT: About = W::ABOUT;

    type Mark = W::Count;
    type Cpu<'t> = Thread;
    type Held<'t> = <W::Count as Count>::Held;

    fn new(_: usize) -> Self {
        Counted(PhantomData)
    }

    fn cpu(&self, index: usize) -> Thread {
        Thread::at(index)
    }

    fn mark(&self) -> W::Count {
        W::Count::new()
    }

    #[inline(always)]
    unsafe fn grab(&self, cpu: &mut Thread, mm: NonNull<Mm<Self>>) -> <W::Count as Count>::Held {
        // SAFETY: the caller is a user of the mm.
        let mark = unsafe { mm.as_ref().mark() };
        mark.get(cpu)
            .expect("a user's mm has not given up its first reference")
    }

    #[inline(always)]
    unsafe fn drop(
        &self,
        cpu: &mut Thread,
        mm: NonNull<Mm<Self>>,
        held: <W::Count as Count>::Held,
    ) {
        // SAFETY: the reference in `held` keeps the mm.
        if unsafe { mm.as_ref().mark() }.put(cpu, held) {
            // SAFETY: it was the last one, given back after the first.
            unsafe { Mm::free(mm) };
        }
    }

    unsafe fn tear_down(
        &self,
        cpu: &mut Thread,
        mm: NonNull<Mm<Self>>,
        _: &mut dyn Interrupts<Self>,
    ) {
        // A lost barrier leaves the mm for good, and I5 tells.
        // SAFETY: the first reference keeps the mm until here.
        if unsafe { mm.as_ref().mark() }.kill(cpu) == Ok(true) {
            // SAFETY: it was the last reference.
            unsafe { Mm::free(mm) };
        }
    }

    fn cost(&self) -> Cost {
        Cost {
            locked: W::locked(),
            ..Cost::NOTHING
        }
    }
}
