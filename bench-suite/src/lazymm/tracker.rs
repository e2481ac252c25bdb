//! Floor 3, bench-suite. Owns what lazy-mm compares: ways to know that nobody uses an address space ("mm") lazily any
//! more, behind one trait. Touches nothing; each tracker is a file of `trackers`.
//!
//! A CPU that leaves a user task for a kernel thread goes on with the mm of that task: it *grabs* it, lazily. When a
//! user task runs again, it *drops* it. The mm lives as long as it has users (tasks that run in it) or lazy holders.
//! When the last user has gone the mm is *torn down*: freed once no CPU has it any more.

use super::mm::Mm;
use crate::schemes::About;
use std::ptr::NonNull;

/// A way to track lazy holders.
pub(crate) trait Tracker: Sized + Send + Sync + 'static {
    /// Name and description.
    const ABOUT: About;

    /// What an mm carries for it (a count, a mask, nothing). Made for an mm whose users hold it.
    type Mark: Send + Sync;

    /// What a CPU keeps (a participant, a handle, its number). Made and used by the thread that plays this CPU.
    type Cpu<'t>
    where
        Self: 't;

    /// What `grab` leaves for `drop`, on the same CPU.
    type Held<'t>
    where
        Self: 't;

    /// For CPUs `0..cpus`.
    fn new(cpus: usize) -> Self;

    /// The state of CPU `index`; called once by the thread that plays it.
    fn cpu(&self, index: usize) -> Self::Cpu<'_>;

    /// The mark of a new mm.
    fn mark(&self) -> Self::Mark;

    /// The CPU begins to run a user task of `mm` (`switch_mm`). Only who sends interrupts to all CPUs that have run in
    /// the mm needs to know.
    ///
    /// # Safety
    /// `mm` is alive: the caller is one of its users.
    #[inline(always)]
    unsafe fn run_user(&self, cpu: &mut Self::Cpu<'_>, mm: NonNull<Mm<Self>>) {
        let _ = (cpu, mm);
    }

    /// A user task of `mm` gives way to a kernel thread: the CPU goes on with the mm. Existence is guaranteed, so
    /// nothing is read again.
    ///
    /// # Safety
    /// `mm` is alive until this returns: the caller is one of its users.
    unsafe fn grab<'t>(&'t self, cpu: &mut Self::Cpu<'t>, mm: NonNull<Mm<Self>>) -> Self::Held<'t>;

    /// A user task runs again (or the CPU was interrupted for this mm): the CPU lets go. Frees the mm if that was what
    /// it waited for and the tracker frees it here.
    ///
    /// # Safety
    /// `held` is what [`grab`](Self::grab) returned for this `mm` on this CPU, and is given back once.
    unsafe fn drop<'t>(
        &'t self,
        cpu: &mut Self::Cpu<'t>,
        mm: NonNull<Mm<Self>>,
        held: Self::Held<'t>,
    );

    /// The same in an interrupt for `mm`, of trackers that send them: without the state of the CPU, which may be in the
    /// middle of a [`tear_down`](Self::tear_down) of another mm. Async-signal-safe.
    ///
    /// # Safety
    /// As [`drop`](Self::drop), by the thread that plays CPU `index`.
    unsafe fn interrupted<'t>(&'t self, index: usize, mm: NonNull<Mm<Self>>, held: Self::Held<'t>) {
        let _ = (index, mm, held);
        unreachable!("{} sends no interrupts", Self::ABOUT.name);
    }

    /// The last user has gone. On return the mm is freed, or will be by a later [`drop`](Self::drop) or by the scheme's own
    /// way. May call `interrupts` for CPUs that have the mm; each call returns when that CPU has let go.
    ///
    /// # Safety
    /// Called once for each mm, by its last user; nobody can grab it any more.
    unsafe fn tear_down<'t>(
        &'t self,
        cpu: &mut Self::Cpu<'t>,
        mm: NonNull<Mm<Self>>,
        interrupts: &mut dyn Interrupts<Self>,
    );

    /// Lets the scheme free what can be freed now: called by the thread of `cpu` when nothing else is left to do.
    fn flush<'t>(&'t self, cpu: &mut Self::Cpu<'t>) {
        let _ = cpu;
    }

    /// Whether a torn down mm is free, with every CPU interrupted that had it, when [`tear_down`](Self::tear_down) returns.
    const FREES_AT_ONCE: bool = false;

    /// Whether it frees mms only when it is itself dropped, so that there is nothing to wait for.
    const FREES_LAST: bool = false;

    /// What a grab and a drop cost, as the code of the tracker says.
    fn cost(&self) -> Cost;

    /// What the slot of CPU `index` holds now (null: nothing), for trackers with a slot a CPU. For invariants I2 and I3.
    fn slot(&self, index: usize) -> Option<*const Mm<Self>> {
        let _ = index;
        None
    }

    /// How often a grab found its slot in use (invariant I4).
    fn busy(&self) -> u64 {
        0
    }

    /// How many interrupts tear-downs had reason for so far: slots that matched, or bits of the mask that were set
    /// (invariant I6).
    fn reasons(&self) -> u64 {
        0
    }
}

/// Instructions that others wait for, or that wait for others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cost {
    /// Locked read-modify-writes of a grab, and of a drop.
    pub(crate) locked: (u32, u32),
    /// Full fences of a grab, and of a drop.
    pub(crate) fences: (u32, u32),
}

impl Cost {
    /// Neither.
    pub(crate) const NOTHING: Cost = Cost {
        locked: (0, 0),
        fences: (0, 0),
    };
}

/// What an interprocessor interrupt does.
pub(crate) trait Interrupts<T: Tracker> {
    /// CPU `cpu` lets go of `mm` if it has it lazily (switches to the initial mm and calls its `drop` or clears its slot).
    /// Returns when that has been done.
    fn let_go(&mut self, cpu: usize, mm: NonNull<Mm<T>>);

    /// The same for all of `cpus`, which may be interrupted at the same time.
    fn let_all_go(&mut self, cpus: &[usize], mm: NonNull<Mm<T>>) {
        for &cpu in cpus {
            self.let_go(cpu, mm);
        }
    }
}
