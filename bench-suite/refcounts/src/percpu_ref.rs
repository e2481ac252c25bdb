//! A count that is spread over the CPUs until it is killed.
//!
//! Floor 3 (`refcounts`). Owns the mode and the shared count; adds on the
//! CPUs' lines through `per_cpu`, or in `shards` where sections do not run.
//!
//! # Modes
//!
//! | mode | gets and puts | the shared count holds |
//! |---|---|---|
//! | per-CPU | a section on the own line, or a shard | `BIAS` + initial reference + what late-comers of the last switch did |
//! | atomic, unfolded (only inside a switch) | the shared count | `BIAS` + … |
//! | atomic | the shared count | the references |
//! | atomic, dead | the shared count; `try_get_live` fails | the references without the initial one |
//!
//! ```text
//!            switch_to_atomic, kill                          kill: gives the initial
//!  per-CPU ──▶ gate shut ─▶ barrier ─▶ fold: += sum − BIAS ─▶ reference back ─▶ dead
//!     ▲                                                                          │
//!     └── gate open ◀─ words zeroed ◀─ += BIAS ◀─ switch_to_percpu, resurrect ◀──┘
//! ```
//!
//! # Why it is right
//!
//! * **The gate** is the mode word. A section tests it and adds in one step, so
//!   after the heavy barrier every addition is in the sum or was not made (see
//!   `per_cpu`). A shard's word is its own gate (see `shards`).
//! * **The bias.** Between the shutting of the gate and the fold, puts already
//!   go to the shared count while the gets that they belong to are still in the
//!   lines. With half of the number space on top it cannot reach zero, nor be
//!   mistaken for zero, until all is folded in, in one addition.
//! * **The order of a kill**: fold first, then give the initial reference back.
//!   Else a put could be the last although the lines hold more references.
//! * Lines wrap: one CPU may have all the gets and another all the puts.
//!
//! # Without sections
//!
//! On the rungs `membarrier` and `fence`, and for a thread that is not
//! registered or is interrupted all the time, "per-CPU" means a shard: one
//! uncontended atomic addition. The barrier is issued on the rung `rseq` only.
//!
//! # Orderings
//!
//! *Put* is Release, by whatever word. What puts of the lines and the shards
//! release, the sum takes (Acquire), and the kill's own *Put* of the initial
//! reference, which comes after the sum, hands on. Whoever takes the shared
//! count to zero is Acquire. *Open* (mode, Release)
//! pairs with the section's Acquire: the words are zero.
//!
//! # What is not caught
//!
//! The shared count does not saturate, and a put too many is not noticed.
//!
//! Source: `percpu_ref` (Linux, Tejun Heo and Kent Overstreet 2013). Testing
//! the gate and adding in one section, so that no read-side section is needed,
//! and shards that close themselves, are this project's.

use crate::per_cpu::{Added, PerCpu};
use crate::plain;
use crate::shards::Shards;
use crate::sync::{Mutex, Padded, lock};
use crate::{BarrierLost, Thread, Tracker};
use percpu::barrier::{Rung, heavy, rung};
use percpu::sync::atomic::{AtomicUsize, Ordering};

/// Mode: gets and puts go to the lines.
const PER_CPU: usize = 0;
/// Mode bit: gets and puts go to the shared count.
const ATOMIC: usize = 1;
/// Mode bit: killed. Only with [`ATOMIC`].
const DEAD: usize = 2;

/// On top of the shared count while it does not hold all references.
const BIAS: usize = 1 << (usize::BITS - 1);

/// What only a switch of the mode needs to know.
#[derive(Debug)]
struct Switch {
    /// The bias is off the shared count.
    folded: bool,
    /// The initial reference was given back.
    killed: bool,
}

/// The count. Begins per-CPU, with the initial reference.
#[derive(Debug)]
pub struct PercpuRef {
    /// Read by all, written by switches.
    mode: AtomicUsize,
    per_cpu: PerCpu,
    shards: Shards,
    switch: Mutex<Switch>,
    count: Padded<AtomicUsize>,
}

impl PercpuRef {
    /// A count that holds the initial reference.
    #[must_use]
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        // Sections run from now on.
        let _ = rung();
        Self {
            mode: AtomicUsize::new(PER_CPU),
            per_cpu: PerCpu::new(),
            shards: Shards::new(),
            switch: Mutex::new(Switch {
                folded: false,
                killed: false,
            }),
            count: Padded(AtomicUsize::new(BIAS + 1)),
        }
    }

    /// Adds to the spread count. `false`: it is shut, use the shared one.
    #[inline(always)]
    fn spread(&self, thread: &Thread, n: usize) -> bool {
        match self.per_cpu.add(&self.mode, PER_CPU, n) {
            Added::Yes => true,
            Added::Shut => false,
            Added::Unable => self.shards.add(thread, n),
        }
    }

    /// One more reference; the caller has one.
    ///
    /// # Progress
    ///
    /// Wait-free.
    #[inline]
    pub fn get(&self, thread: &Thread) {
        if !self.spread(thread, 1) {
            // Relaxed: the caller has the object already.
            self.count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// One more reference unless the last one has gone.
    ///
    /// # Progress
    ///
    /// Wait-free per-CPU; lock-free in atomic mode.
    #[inline]
    pub fn try_get(&self, thread: &Thread) -> bool {
        self.spread(thread, 1) || plain::get_unless_zero(&self.count)
    }

    /// One more reference unless the count was killed. (As in the kernel, a
    /// call that overlaps with a kill may win; a kill of a count that was in
    /// atomic mode already does not wait for it.)
    ///
    /// # Progress
    ///
    /// As [`try_get`](Self::try_get).
    #[inline]
    pub fn try_get_live(&self, thread: &Thread) -> bool {
        // Relaxed: a kill that happened before is seen; one that overlaps may
        // be missed.
        self.spread(thread, 1)
            || (self.mode.load(Ordering::Relaxed) & DEAD == 0
                && plain::get_unless_zero(&self.count))
    }

    /// Gives a reference back. Whether it was the last; never before the kill.
    ///
    /// # Progress
    ///
    /// Wait-free.
    #[inline]
    pub fn put(&self, thread: &Thread) -> bool {
        !self.spread(thread, usize::MAX) && plain::put(&self.count)
    }

    /// [`kill_and_confirm`](Self::kill_and_confirm) with nothing to confirm.
    ///
    /// # Errors
    ///
    /// As there.
    ///
    /// # Panics
    ///
    /// As there.
    pub fn kill(&self) -> Result<bool, BarrierLost> {
        self.kill_and_confirm(|| ())
    }

    /// Kills the count: per-CPU counting ends, `confirm` is called when no
    /// [`try_get_live`](Self::try_get_live) that begins can succeed and every
    /// reference is in the shared count, and the initial reference is given
    /// back. Whether that was the last; if not, some put will be.
    ///
    /// # Errors
    ///
    /// [`BarrierLost`]: the count is shut but not killed, no put is the last.
    /// May be called again.
    ///
    /// # Panics
    ///
    /// If the count was killed already and not revived.
    ///
    /// # Progress
    ///
    /// Waits for another switch, and for the barrier; never for references.
    pub fn kill_and_confirm(&self, confirm: impl FnOnce()) -> Result<bool, BarrierLost> {
        let mut switch = lock(&self.switch);
        assert!(!switch.killed, "killed twice");
        self.fold(&mut switch, ATOMIC | DEAD)?;
        switch.killed = true;
        confirm();
        drop(switch);
        Ok(plain::put(&self.count))
    }

    /// Counts in the shared count from now on, so that its value is known. The
    /// caller has a reference.
    ///
    /// # Errors
    ///
    /// [`BarrierLost`]: shut, but not folded. May be called again.
    ///
    /// # Progress
    ///
    /// As [`kill`](Self::kill).
    pub fn switch_to_atomic(&self) -> Result<(), BarrierLost> {
        let mut switch = lock(&self.switch);
        // Relaxed: only holders of the lock change it.
        let dead = self.mode.load(Ordering::Relaxed) & DEAD;
        self.fold(&mut switch, ATOMIC | dead)
    }

    /// Counts on the CPUs' lines again. Does nothing to a killed count, which
    /// [`resurrect`](Self::resurrect) switches back. The caller has a
    /// reference.
    ///
    /// # Progress
    ///
    /// Waits for another switch.
    pub fn switch_to_percpu(&self) {
        let mut switch = lock(&self.switch);
        if switch.folded && !switch.killed {
            self.spread_out(&mut switch, 0);
        }
    }

    /// Revives a killed count: the initial reference is back, counting is
    /// per-CPU. The caller has a reference, or was told that the last one had
    /// gone (then [`reinit`](Self::reinit) says it better).
    ///
    /// # Panics
    ///
    /// If the count is not killed.
    ///
    /// # Progress
    ///
    /// Waits for another switch.
    pub fn resurrect(&self) {
        let mut switch = lock(&self.switch);
        assert!(switch.killed, "not killed");
        self.spread_out(&mut switch, 1);
        switch.killed = false;
    }

    /// Begins anew, after the last reference of a killed count has gone.
    ///
    /// # Panics
    ///
    /// If the count is not killed, or somebody has a reference.
    ///
    /// # Progress
    ///
    /// Waits for another switch.
    pub fn reinit(&self) {
        // Relaxed: the caller was told.
        assert_eq!(self.count.load(Ordering::Relaxed), 0, "referenced");
        self.resurrect();
    }

    /// Shuts the gate and takes everything into the shared count.
    fn fold(&self, switch: &mut Switch, mode: usize) -> Result<(), BarrierLost> {
        // Relaxed: the barrier makes it visible to sections; for the others the
        // shards' words decide.
        self.mode.store(mode, Ordering::Relaxed);
        if switch.folded {
            return Ok(());
        }
        if rung() == Rung::Rseq {
            heavy()?;
        }
        let sum = self.per_cpu.sum().wrapping_add(self.shards.close());
        // Relaxed: what the sum has taken is handed on by the put of the initial
        // reference, which comes after every fold.
        self.count
            .fetch_add(sum.wrapping_sub(BIAS), Ordering::Relaxed);
        switch.folded = true;
        Ok(())
    }

    /// Puts the bias on, and `more` references, and opens the gate.
    fn spread_out(&self, switch: &mut Switch, more: usize) {
        // Relaxed: first, so that nobody counts in an open word without it.
        self.count
            .fetch_add(BIAS.wrapping_add(more), Ordering::Relaxed);
        self.per_cpu.reset();
        self.shards.open();
        // Release: "Open", pairs with the section's test of the mode.
        self.mode.store(PER_CPU, Ordering::Release);
        switch.folded = false;
    }

    /// Whether the count was killed and not revived.
    #[must_use]
    pub fn is_dying(&self) -> bool {
        // Relaxed: as in `try_get_live`.
        self.mode.load(Ordering::Relaxed) & DEAD != 0
    }

    /// References now: exact while nobody gets or puts.
    #[must_use]
    pub fn count(&self) -> usize {
        let switch = lock(&self.switch);
        // Relaxed: for people and tests.
        let count = self.count.load(Ordering::Relaxed);
        if switch.folded {
            return count;
        }
        count
            .wrapping_sub(BIAS)
            .wrapping_add(self.per_cpu.sum())
            .wrapping_add(self.shards.sum())
    }
}

impl Tracker for PercpuRef {
    type Held = ();
    const NAME: &'static str = "percpu-ref";

    fn new() -> Self {
        PercpuRef::new()
    }

    #[inline]
    fn get(&self, thread: &Thread) -> Option<()> {
        self.get(thread);
        Some(())
    }

    #[inline]
    fn try_get(&self, thread: &Thread) -> Option<()> {
        self.try_get(thread).then_some(())
    }

    #[inline]
    fn put(&self, thread: &Thread, (): ()) -> bool {
        self.put(thread)
    }

    fn kill(&self, _: &Thread) -> Result<bool, BarrierLost> {
        self.kill()
    }

    fn count(&self) -> usize {
        self.count()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_the_last_before_the_kill() {
        let (count, thread) = (PercpuRef::new(), Thread::new());
        count.get(&thread);
        assert_eq!(count.count(), 2);
        assert!(!count.put(&thread));
        // One put too many is not noticed per CPU, and is made good.
        assert!(!count.put(&thread));
        count.get(&thread);
        let mut confirmed = false;
        assert_eq!(count.kill_and_confirm(|| confirmed = true), Ok(true));
        assert!(confirmed && count.is_dying());
        assert!(!count.try_get(&thread) && !count.try_get_live(&thread));
    }

    #[test]
    fn a_reference_outlives_the_kill() {
        let (count, thread) = (PercpuRef::new(), Thread::new());
        count.get(&thread);
        assert_eq!(count.kill(), Ok(false));
        assert!(!count.try_get_live(&thread));
        assert!(count.try_get(&thread));
        count.get(&thread);
        assert_eq!(count.count(), 3);
        assert!(!count.put(&thread));
        assert!(!count.put(&thread));
        assert!(count.put(&thread));
    }

    #[test]
    fn there_and_back() {
        let (count, thread) = (PercpuRef::new(), Thread::new());
        for references in 1..20 {
            count.switch_to_atomic().unwrap();
            count.switch_to_atomic().unwrap();
            assert_eq!(count.count(), references);
            count.switch_to_percpu();
            count.switch_to_percpu();
            count.get(&thread);
            assert_eq!(count.count(), references + 1);
        }
    }

    #[test]
    fn revived_with_references_and_without() {
        let (count, thread) = (PercpuRef::new(), Thread::new());
        count.get(&thread);
        assert_eq!(count.kill(), Ok(false));
        count.switch_to_percpu();
        assert!(!count.try_get_live(&thread), "still dead");
        count.resurrect();
        assert!(count.try_get_live(&thread));
        assert_eq!(count.count(), 3);
        assert_eq!(count.kill(), Ok(false));
        assert!(!count.put(&thread));
        assert!(count.put(&thread));
        count.reinit();
        assert_eq!(count.count(), 1);
        assert_eq!(count.kill(), Ok(true));
    }

    #[test]
    #[should_panic(expected = "killed twice")]
    fn killed_twice() {
        let count = PercpuRef::new();
        count.get(&Thread::new());
        count.kill().unwrap();
        let _ = count.kill();
    }

    #[test]
    #[should_panic(expected = "referenced")]
    fn begun_anew_too_early() {
        let count = PercpuRef::new();
        count.get(&Thread::new());
        count.kill().unwrap();
        count.reinit();
    }

    /// One thread gets, another puts: their words go their own ways.
    #[test]
    fn words_of_one_sign() {
        let count = PercpuRef::new();
        std::thread::scope(|scope| {
            scope.spawn(|| (0..1000).for_each(|_| count.get(&Thread::at(0))));
        });
        std::thread::scope(|scope| {
            scope.spawn(|| (0..1000).for_each(|_| assert!(!count.put(&Thread::at(1)))));
        });
        assert_eq!(count.count(), 1);
        assert_eq!(count.kill(), Ok(true));
    }
}
