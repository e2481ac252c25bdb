//! Retiring and reclaiming: what stands behind a `Domain`.
//!
//! Floor 2 (`hp`), raw layer. Owns the shards, the inbox, the counters and the
//! pass; scans [`Slots`], runs deleters.
//!
//! # Retire
//!
//! Push {address, deleter} to the shard of the running CPU. No allocation, no
//! thread-local list, nothing to lose at thread exit. When the shard is due,
//! its list is taken and passed over by this thread, unlocked.
//!
//! # Pass
//!
//! Heavy barrier; snapshot of all slots; every object of the batch that is in
//! no slot is freed, the others go back. Deleters run with no lock held. If
//! one panics, the panic goes to the caller of the operation that reclaimed,
//! and the rest of the batch goes back first. If the barrier is refused,
//! everything goes back and nothing is freed.
//!
//! # Bound
//!
//! A shard is due at `threshold` objects beyond those that its last pass found
//! protected; the inbox is due at `threshold`. So at any time, in one domain,
//!
//! ```text
//! pending ≤ (shards + 1 + threads inside retire or reclaim) × MAX_THRESHOLD
//!           + objects that the last pass over their shard found protected
//! ```
//!
//! plus what running deleters have just retired.

use crate::pass::{Flight, Inside};
use crate::retired::{Retired, Run};
use crate::shard::{List, Locked, Shard};
use crate::slots::Slots;
use core::mem::MaybeUninit;
use core::ptr;
use percpu::barrier::BarrierLost;
use percpu::sync::UnsafeCell;
use percpu::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering, Statistic};

/// Shards of a domain.
#[cfg(not(any(loom, miri)))]
pub(crate) const SHARDS: usize = 64;
/// Shards of a domain under Miri, which walks what is borrowed.
#[cfg(all(miri, not(loom)))]
pub(crate) const SHARDS: usize = 4;
/// Shards of a domain under loom.
#[cfg(loom)]
pub(crate) const SHARDS: usize = 1;

/// Smallest number of objects for which a pass is worth its barrier.
#[cfg(not(loom))]
pub(crate) const MIN_THRESHOLD: usize = 512;
/// Smallest batch under loom.
#[cfg(loom)]
pub(crate) const MIN_THRESHOLD: usize = 2;

/// Largest threshold, however dear the barrier.
#[cfg(not(loom))]
pub(crate) const MAX_THRESHOLD: usize = 4096;
/// Largest batch under loom.
#[cfg(loom)]
pub(crate) const MAX_THRESHOLD: usize = 2;

/// Share of the time of a heavy barrier and a look at the slots, in
/// nanoseconds, that one retired object may be charged with, before the
/// threshold grows.
#[cfg(not(loom))]
const NANOS_PER_OBJECT: u64 = 4;

/// Objects that found every shard locked, or a batch that came back and did.
///
/// (The cell is for loom, which checks who opens it.)
struct Parcel {
    objects: UnsafeCell<Vec<Retired>>,
    next: *mut Parcel,
}

/// The state of a domain.
#[derive(Debug)]
pub(crate) struct Core {
    shards: [Shard; SHARDS],
    inbox: AtomicPtr<Parcel>,
    /// Objects in the inbox: never fewer than there are.
    inbox_len: AtomicUsize,
    flight: Flight,
    threshold: AtomicUsize,
    /// Set once, by a constructor: retiring never reclaims.
    manual: AtomicBool,
    posted: Statistic,
    reclaimed: Statistic,
    scans: Statistic,
    heavy: Statistic,
    refused: Statistic,
}

/// A domain's counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    pub(crate) retired: u64,
    pub(crate) reclaimed: u64,
    pub(crate) scans: u64,
    pub(crate) heavy: u64,
    pub(crate) refused: u64,
}

macro_rules! new_core {
    ($($const:ident)?) => {
        pub(crate) $($const)? fn new(manual: bool) -> Self {
            Self {
                shards: new_core!(@shards $($const)?),
                inbox: AtomicPtr::new(ptr::null_mut()),
                inbox_len: AtomicUsize::new(0),
                flight: Flight::new(),
                threshold: AtomicUsize::new(MIN_THRESHOLD),
                manual: AtomicBool::new(manual),
                posted: Statistic::new(0),
                reclaimed: Statistic::new(0),
                scans: Statistic::new(0),
                heavy: Statistic::new(0),
                refused: Statistic::new(0),
            }
        }
    };
    (@shards const) => { [const { Shard::new() }; SHARDS] };
    (@shards) => { std::array::from_fn(|_| Shard::new()) };
}

impl Core {
    #[cfg(not(loom))]
    new_core!(const);
    #[cfg(loom)]
    new_core!();

    /// Hands over an unlinked object.
    #[inline(always)]
    pub(crate) fn retire(&self, slots: &Slots, object: Retired) {
        let (address, second, run) = object.into_words();
        self.retire_words(slots, address, second, run);
    }

    #[inline(never)]
    fn retire_words(
        &self,
        slots: &Slots,
        address: *mut (),
        second: MaybeUninit<*mut ()>,
        run: Run,
    ) {
        // SAFETY: as they came from `retire`.
        let object = unsafe { Retired::from_words((address, second, run)) };
        self.note_nested(1);
        // (The second mask is the compiler's bound.)
        let shard = &self.shards[shard_hint() & shard_mask() & (SHARDS - 1)];
        // Calls in tail position only, so that the common way needs no frame.
        let Some(mut list) = shard.try_lock() else {
            return self.retire_elsewhere(slots, address, second, run);
        };
        if list.objects.len() == list.objects.capacity() {
            return self.retire_growing(slots, list, address, second, run);
        }
        list.objects.push(object);
        list.count();
        if list.objects.len() >= list.due {
            self.due(slots, list);
        }
    }

    /// The shard's vector must grow for this object.
    #[cold]
    #[inline(never)]
    fn retire_growing(
        &self,
        slots: &Slots,
        mut list: Locked<'_>,
        address: *mut (),
        second: MaybeUninit<*mut ()>,
        run: Run,
    ) {
        // SAFETY: as they came from `retire`.
        list.objects
            .push(unsafe { Retired::from_words((address, second, run)) });
        list.count();
        if list.objects.len() >= list.due {
            self.due(slots, list);
        }
    }

    /// The running CPU's shard is locked: to the next one that is not, or to
    /// the inbox.
    #[cold]
    #[inline(never)]
    fn retire_elsewhere(
        &self,
        slots: &Slots,
        address: *mut (),
        second: MaybeUninit<*mut ()>,
        run: Run,
    ) {
        // SAFETY: as they came from `retire`.
        let object = unsafe { Retired::from_words((address, second, run)) };
        for shard in self.shards_near() {
            if let Some(mut list) = shard.try_lock() {
                list.objects.push(object);
                list.count();
                if list.objects.len() >= list.due {
                    self.due(slots, list);
                }
                return;
            }
        }
        // Relaxed: a statistic.
        self.posted.fetch_add(1, Ordering::Relaxed);
        self.post(vec![object]);
        // The holders of the shards may wait for the processor, and the inbox
        // must not grow meanwhile.
        // Relaxed: a count.
        if self.inbox_len.load(Ordering::Relaxed) >= self.threshold()
            && let Some(mut inside) = self.may_reclaim()
        {
            let mut batch = self.batch(slots);
            self.take_inbox(&mut batch.objects);
            // A refused barrier shows in the statistics; the batch goes back.
            let _ = batch.pass(&mut inside);
        }
    }

    /// Whether this thread may run deleters now: not in a domain that is
    /// reclaimed by hand, while unwinding, or inside a pass.
    fn may_reclaim(&self) -> Option<Inside> {
        // Relaxed: set before the domain was shared.
        if self.manual.load(Ordering::Relaxed) || unwinding() {
            return None;
        }
        Inside::enter()
    }

    /// Tells the pass that is running on this thread, if one is, that there is
    /// more to look at.
    #[inline(always)]
    fn note_nested(&self, count: usize) {
        let mut nesting = crate::thread::nesting();
        if nesting.inside {
            nesting.retired += count;
            crate::thread::set_nesting(nesting);
        }
    }

    /// The shards, beginning with the running CPU's.
    #[inline]
    fn shards_near(&self) -> impl Iterator<Item = &Shard> {
        let mask = shard_mask();
        let start = shard_hint();
        (0..=mask).map(move |n| &self.shards[start.wrapping_add(n) & mask])
    }

    /// A shard has reached its length: passes over its list unless this thread
    /// must not run deleters now.
    #[cold]
    #[inline(never)]
    fn due(&self, slots: &Slots, mut list: Locked<'_>) {
        if list.due == 0 {
            // The shard's first object.
            list.due = self.threshold();
            if list.objects.len() < list.due {
                return;
            }
        }
        let Some(mut inside) = self.may_reclaim() else {
            return;
        };
        let mut batch = self.batch(slots);
        let List {
            objects,
            spare,
            held,
            ..
        } = &mut *list;
        batch.objects = core::mem::replace(objects, core::mem::take(spare));
        batch.held = core::mem::take(held);
        drop(list);
        // Relaxed: a count. What does not fit in waits for its own turn.
        if batch.objects.len() + self.inbox_len.load(Ordering::Relaxed) <= MAX_THRESHOLD {
            self.take_inbox(&mut batch.objects);
        }
        // A refused barrier shows in the statistics; the batch goes back.
        let _ = batch.pass(&mut inside);
    }

    fn batch<'a>(&'a self, slots: &'a Slots) -> Batch<'a> {
        Batch {
            core: self,
            slots,
            objects: Vec::new(),
            held: Vec::new(),
            kept: 0,
            joined: self.flight.join(),
        }
    }

    /// Adapts the threshold to what a barrier and a look at the slots cost.
    #[cfg(not(loom))]
    fn adapt(&self, cost: core::time::Duration) {
        let nanos = u64::try_from(cost.as_nanos()).unwrap_or(u64::MAX);
        let wanted = usize::try_from(nanos / NANOS_PER_OBJECT)
            .unwrap_or(usize::MAX)
            .min(2 * MAX_THRESHOLD);
        // A quarter of the way, so that one late interrupt does not decide.
        // Relaxed: a tuning value.
        self.threshold.store(
            ((3 * self.threshold() + wanted) / 4).clamp(MIN_THRESHOLD, MAX_THRESHOLD),
            Ordering::Relaxed,
        );
    }

    fn threshold(&self) -> usize {
        // Relaxed: a tuning value.
        self.threshold.load(Ordering::Relaxed)
    }

    /// Puts objects where a later pass finds them.
    ///
    /// `kept` of them were looked at and must stay; the shard is due that much
    /// later. (What comes back unseen does not put it off.)
    fn put_back(&self, objects: &mut Vec<Retired>, held: &mut Vec<usize>, kept: usize) {
        for shard in self.shards_near() {
            if let Some(mut list) = shard.try_lock() {
                list.due = kept + self.threshold();
                if list.objects.is_empty() {
                    core::mem::swap(&mut list.objects, objects);
                } else {
                    list.objects.append(objects);
                }
                if objects.capacity() > list.spare.capacity() {
                    core::mem::swap(&mut list.spare, objects);
                }
                if held.capacity() > list.held.capacity() {
                    held.clear();
                    core::mem::swap(&mut list.held, held);
                }
                return;
            }
        }
        if !objects.is_empty() {
            self.post(core::mem::take(objects));
        }
    }

    /// Lock-free, but allocates: only when every shard is locked.
    #[cold]
    fn post(&self, objects: Vec<Retired>) {
        // Relaxed: a count; before the objects can be taken, so that it never
        // falls below 0.
        self.inbox_len.fetch_add(objects.len(), Ordering::Relaxed);
        let parcel = Box::into_raw(Box::new(Parcel {
            objects: UnsafeCell::new(objects),
            next: ptr::null_mut(),
        }));
        // A guess, checked by the exchange.
        let mut head = ptr::null_mut();
        loop {
            // SAFETY: the parcel is this thread's until the exchange succeeds.
            unsafe { (*parcel).next = head };
            // Release: pairs with the Acquire of `take_inbox`; as a shard's
            // lock. Relaxed on failure: a guess again.
            match self.inbox.compare_exchange_weak(
                head,
                parcel,
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// Takes all that was posted. (A whole-list exchange has no ABA.)
    fn take_inbox(&self, into: &mut Vec<Retired>) {
        // Relaxed look: an empty inbox is the rule.
        if self.inbox.load(Ordering::Relaxed).is_null() {
            return;
        }
        // Acquire: pairs with the Release in `post`.
        let mut next = self.inbox.swap(ptr::null_mut(), Ordering::Acquire);
        let before = into.len();
        while !next.is_null() {
            // SAFETY: the exchange made the chain this thread's.
            let parcel = unsafe { Box::from_raw(next) };
            // SAFETY: as above.
            parcel
                .objects
                .with_mut(|objects| into.append(unsafe { &mut *objects }));
            next = parcel.next;
        }
        // Relaxed: a count.
        self.inbox_len
            .fetch_sub(into.len() - before, Ordering::Relaxed);
    }

    /// Takes up to `budget` objects from all shards and the inbox. Waits for a
    /// locked shard (its holder only pushes or takes a vector), but not for
    /// one that belongs to a thread lost in a fork.
    fn take(&self, into: &mut Vec<Retired>, budget: usize) {
        if budget == usize::MAX {
            self.take_inbox(into);
        }
        for shard in self.shards_near() {
            let room = budget - into.len();
            if room == 0 {
                return;
            }
            let mut backoff = percpu::wait::Backoff::new();
            loop {
                if let Some(mut list) = shard.try_lock() {
                    if list.objects.len() > room {
                        // From the front: what goes back goes to the end, so
                        // that small budgets get round to everything.
                        into.extend(list.objects.drain(..room));
                    } else {
                        if into.is_empty() {
                            core::mem::swap(into, &mut list.objects);
                        } else {
                            into.append(&mut list.objects);
                        }
                        list.due = self.threshold();
                    }
                    break;
                }
                if shard.is_orphan() {
                    break;
                }
                backoff.snooze();
            }
        }
        if into.len() < budget {
            self.take_inbox(into);
            if into.len() > budget {
                self.put_back(&mut into.split_off(budget), &mut Vec::new(), 0);
            }
        }
    }

    /// One pass over at most `budget` objects. Returns how many were freed; 0
    /// from inside a deleter.
    ///
    /// # Errors
    ///
    /// The barrier was refused; nothing was freed.
    pub(crate) fn reclaim(&self, slots: &Slots, budget: usize) -> Result<usize, BarrierLost> {
        let Some(mut inside) = Inside::enter() else {
            return Ok(0);
        };
        let mut batch = self.batch(slots);
        self.take(&mut batch.objects, budget);
        batch.pass(&mut inside)
    }

    /// Frees all that was retired before the call, except what is protected.
    /// Returns how many objects this thread freed. Does nothing inside a
    /// deleter: a drain that runs it looks again afterwards.
    pub(crate) fn drain(&self, slots: &Slots) -> Result<usize, BarrierLost> {
        let mut freed = 0;
        if crate::thread::nesting().inside {
            return Ok(0);
        }
        // Batches that went back since this call began are in a shard again.
        self.flight.wait();
        loop {
            let Some(mut inside) = Inside::enter() else {
                return Ok(freed);
            };
            let mut batch = self.batch(slots);
            self.take(&mut batch.objects, usize::MAX);
            freed += batch.pass(&mut inside)?;
            // Look again only for what the deleters themselves retired, so
            // that steady retirers cannot capture this thread.
            if inside.retired() == 0 {
                break;
            }
        }
        // Batches that were taken while this thread was looking.
        self.flight.wait();
        Ok(freed)
    }

    /// Takes everything without freeing anything. For `Domain`'s drop.
    pub(crate) fn take_all(&mut self) -> Vec<Retired> {
        let mut all = Vec::new();
        self.take(&mut all, usize::MAX);
        all
    }

    /// Takes over another domain's objects.
    pub(crate) fn adopt(&self, mut objects: Vec<Retired>) {
        if !objects.is_empty() {
            self.note_nested(objects.len());
            // Relaxed: a statistic.
            self.posted
                .fetch_add(objects.len() as u64, Ordering::Relaxed);
            self.put_back(&mut objects, &mut Vec::new(), 0);
        }
    }

    /// For models: a pass that has taken its objects and goes on later.
    #[cfg(loom)]
    pub(crate) fn begin<'a>(&'a self, slots: &'a Slots) -> Batch<'a> {
        let mut batch = self.batch(slots);
        self.take(&mut batch.objects, usize::MAX);
        batch
    }

    /// For models: the one shard.
    #[cfg(loom)]
    pub(crate) fn shard(&self) -> &Shard {
        &self.shards[0]
    }

    pub(crate) fn counters(&self) -> Counters {
        // Acquire, both: pair with the Release additions in `Freed::drop` and
        // `pass`. Whoever reclaimed an object had taken its retirer's lock, so
        // that the retirements read afterwards are no fewer; likewise scans
        // and barriers. Relaxed, the others: statistics.
        let reclaimed = self.reclaimed.load(Ordering::Acquire);
        let scans = self.scans.load(Ordering::Acquire);
        Counters {
            reclaimed,
            scans,
            retired: self.shards.iter().map(Shard::retired).sum::<u64>()
                + self.posted.load(Ordering::Relaxed),
            heavy: self.heavy.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
        }
    }

    /// See the module's bound.
    pub(crate) fn pending_bound(retirers: usize) -> usize {
        (shard_mask() + 2 + retirers) * MAX_THRESHOLD
    }
}

/// Objects that a pass has taken. Whatever is left goes back when this is
/// dropped, also while a deleter's panic unwinds.
pub(crate) struct Batch<'a> {
    core: &'a Core,
    slots: &'a Slots,
    objects: Vec<Retired>,
    held: Vec<usize>,
    /// Objects that were looked at and stay.
    kept: usize,
    joined: crate::pass::Joined<'a>,
}

/// Below this many protected addresses a linear look is quickest.
const LINEAR: usize = 8;

impl Batch<'_> {
    /// For models: the rest of a pass.
    #[cfg(loom)]
    pub(crate) fn go_on(mut self) -> usize {
        let mut inside = Inside::enter().expect("not inside a pass");
        self.pass(&mut inside).expect("a barrier")
    }

    /// Frees what is in no slot. Returns how many.
    fn pass(&mut self, _inside: &mut Inside) -> Result<usize, BarrierLost> {
        debug_assert!(ptr::eq(self.joined.flight(), &raw const self.core.flight));
        if self.objects.is_empty() {
            return Ok(0);
        }
        #[cfg(not(loom))]
        let start = std::time::Instant::now();
        if let Err(lost) = self.barrier() {
            self.kept = self.objects.len();
            return Err(lost);
        }
        // Release: pairs with the Acquire in `counters`.
        self.core.scans.fetch_add(1, Ordering::Release);
        self.held.clear();
        self.slots
            .for_each_protected(|_, _, address| self.held.push(address));
        #[cfg(not(loom))]
        self.core.adapt(start.elapsed());
        let linear = self.held.len() <= LINEAR;
        if !linear {
            self.held.sort_unstable();
        }
        let mut freed = Freed {
            core: self.core,
            count: 0,
        };
        if self.held.is_empty() {
            // Taken out first: a panic must not meet an object again.
            while let Some(object) = self.objects.pop() {
                freed.count += 1;
                // SAFETY: unlinked before it was retired, the barrier came
                // after, and no slot held anything: nobody can protect it.
                unsafe { object.reclaim() };
            }
            return Ok(freed.count);
        }
        let mut index = self.objects.len();
        while index > 0 {
            index -= 1;
            let address = self.objects[index].address();
            let protected = if linear {
                self.held.contains(&address)
            } else {
                self.held.binary_search(&address).is_ok()
            };
            if protected {
                self.kept += 1;
            } else {
                // Taken out first, as above.
                let object = self.objects.swap_remove(index);
                freed.count += 1;
                // SAFETY: as above; no slot held this address.
                unsafe { object.reclaim() };
            }
        }
        Ok(freed.count)
    }

    fn barrier(&self) -> Result<(), BarrierLost> {
        // Relaxed, both: statistics.
        self.core.heavy.fetch_add(1, Ordering::Relaxed);
        percpu::barrier::heavy().inspect_err(|_| {
            self.core.refused.fetch_add(1, Ordering::Relaxed);
        })
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        self.core
            .put_back(&mut self.objects, &mut self.held, self.kept);
    }
}

/// Adds to the domain's counter what was freed, also when a deleter panics.
struct Freed<'a> {
    core: &'a Core,
    count: usize,
}

impl Drop for Freed<'_> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `counters`.
        self.core
            .reclaimed
            .fetch_add(self.count as u64, Ordering::Release);
    }
}

#[cfg(not(loom))]
fn unwinding() -> bool {
    std::thread::panicking()
}

#[cfg(loom)]
fn unwinding() -> bool {
    false
}

/// Shards in use, less one: a power of two that covers the machine's CPUs.
#[cfg(not(loom))]
#[inline]
fn shard_mask() -> usize {
    static MASK: AtomicUsize = AtomicUsize::new(usize::MAX);
    #[cold]
    fn compute() -> usize {
        let mask = percpu::possible_cpus().next_power_of_two().min(SHARDS) - 1;
        // Relaxed: every thread computes the same.
        MASK.store(mask, Ordering::Relaxed);
        mask
    }
    // Relaxed: as above.
    match MASK.load(Ordering::Relaxed) {
        usize::MAX => compute(),
        mask => mask,
    }
}

#[cfg(loom)]
fn shard_mask() -> usize {
    SHARDS - 1
}

/// Spreads threads over anything that there are several of.
#[inline]
pub(crate) fn shard_hint() -> usize {
    match percpu::section::index_hint() {
        percpu::section::NO_INDEX => crate::thread::token(),
        index => index,
    }
}
