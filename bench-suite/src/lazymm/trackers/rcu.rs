//! Floor 3, bench-suite. Owns the tracker `rcu`: a CPU that has an mm lazily is inside a read-side section of
//! `rcu-lite`. May touch that crate and `percpu`.

use super::super::mm::Mm;
use super::super::tracker::{Cost, Interrupts, Tracker};
use super::Torn;
use crate::schemes::About;
use percpu::barrier::{Rung, rung};
use rcu_lite::Guard;
use std::ptr::NonNull;

/// The global domain.
pub(crate) struct Rcu;

impl Tracker for Rcu {
    const ABOUT: About = About::new(
        "rcu",
        "rcu-lite, per-CPU counters: inside a read-side section from grab to drop; tear-down queues a callback",
        "`Rcu::read` of the global domain; CPUs keep nothing",
    )
    .over_percpu();

    type Mark = ();
    type Cpu<'t> = ();
    type Held<'t> = Guard<'static>;

    fn new(_: usize) -> Self {
        Rcu
    }

    fn cpu(&self, _: usize) {}

    fn mark(&self) {}

    #[inline(always)]
    unsafe fn grab(&self, (): &mut (), _: NonNull<Mm<Self>>) -> Guard<'static> {
        rcu_lite::Rcu::global().read()
    }

    #[inline(always)]
    unsafe fn drop(&self, (): &mut (), _: NonNull<Mm<Self>>, held: Guard<'static>) {
        drop(held);
    }

    unsafe fn tear_down(&self, (): &mut (), mm: NonNull<Mm<Self>>, _: &mut dyn Interrupts<Self>) {
        let torn = Torn(mm);
        // SAFETY: holders are in sections that began before this, and nobody can grab it any more.
        rcu_lite::Rcu::global().call(move || unsafe { torn.free() });
    }

    fn flush(&self, (): &mut ()) {
        rcu_lite::Rcu::global().barrier();
    }

    fn cost(&self) -> Cost {
        let locked = u32::from(rung() != Rung::Rseq);
        Cost {
            locked: (locked, locked),
            ..Cost::NOTHING
        }
    }
}
