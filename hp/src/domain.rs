//! Domains: where retired objects wait, and how much of them.
//!
//! Floor 2 (`hp`), structure level. A thin layer over [`crate::reclaim`].
//!
//! Slots belong to the process, not to a domain: any guard protects its object
//! whatever domain that object is retired to. Domains and guards cannot be
//! mixed up; a domain is only a bag with counters and a bound of its own.

#[cfg(not(loom))]
use crate::reclaim::Core;
use crate::retired::{Retired, Run};
use crate::slots::{Place, SLOTS};
#[cfg(loom)]
use crate::verify::Bag as Core;
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use core::time::Duration;
use percpu::barrier::heavy;
use percpu::wait::Backoff;
use std::time::Instant;

#[cfg(not(loom))]
static GLOBAL_CORE: Core = Core::new(false);
/// That of the execution.
#[cfg(loom)]
static GLOBAL_CORE: Modelled = Modelled;

#[cfg(loom)]
#[derive(Debug)]
struct Modelled;

#[cfg(loom)]
impl core::ops::Deref for Modelled {
    type Target = Core;

    fn deref(&self) -> &Core {
        &crate::verify::statics().global
    }
}

static GLOBAL: Domain = Domain {
    core: CoreRef::Global,
};

/// A bag of retired objects.
///
/// [`Domain::global`] is the one that the safe level uses. A domain of its own
/// lets a structure count, bound and drain its garbage apart from everybody
/// else's. Dropping a domain frees what can be freed and hands what is still
/// protected to the global one, so a domain may go before its guards.
#[derive(Debug)]
pub struct Domain {
    core: CoreRef,
}

#[derive(Debug)]
enum CoreRef {
    Global,
    Own(Box<Core>),
}

/// A domain's counters, taken without stopping anybody: each is exact at some
/// instant of the call, not all at the same one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Objects that were ever retired here.
    pub retired: u64,
    /// Objects whose deleter ran (or was begun, if it panicked).
    pub reclaimed: u64,
    /// Objects that wait: `retired - reclaimed`.
    pub pending: u64,
    /// Passes that looked at the slots.
    pub scans: u64,
    /// Heavy barriers that were asked for.
    pub heavy_barriers: u64,
    /// Heavy barriers that the kernel refused. Not 0 means that objects are
    /// kept for want of a barrier.
    pub barrier_failures: u64,
    /// Times that a protection took an overflow slot (of the whole process).
    pub overflow_acquires: u64,
}

/// The wait for an address took longer than was allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedOut;

impl core::fmt::Display for TimedOut {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the address is still protected")
    }
}

impl core::error::Error for TimedOut {}

impl Domain {
    /// The process-wide default domain. What it holds when the process ends is
    /// not freed.
    #[inline]
    #[must_use]
    pub fn global() -> &'static Domain {
        &GLOBAL
    }

    /// A domain of its own. Allocates about 8 KiB.
    #[must_use]
    pub fn new() -> Self {
        Self {
            core: CoreRef::Own(Box::new(Core::new(false))),
        }
    }

    /// A domain in which retiring never runs a deleter, however much waits: for
    /// threads that cannot afford one. Somebody else must call
    /// [`reclaim`](Self::reclaim) or [`drain`](Self::drain); the bound of
    /// [`pending_bound`](Self::pending_bound) does not hold.
    #[must_use]
    pub fn manual() -> Self {
        Self {
            core: CoreRef::Own(Box::new(Core::new(true))),
        }
    }

    #[inline]
    fn core(&self) -> &Core {
        match &self.core {
            CoreRef::Global => &GLOBAL_CORE,
            CoreRef::Own(core) => core,
        }
    }

    #[inline]
    pub(crate) fn retire(&self, object: Retired) {
        self.core().retire(&SLOTS, object);
    }

    /// Retires a boxed object, sized or not: it is dropped once no slot holds
    /// its address.
    ///
    /// Zero-sized objects have no address of their own (all of one alignment
    /// share one), so one of them waits for the guards of all of them.
    ///
    /// # Panics
    ///
    /// If this call reclaims and a deleter panics; see
    /// [`drain`](Self::drain).
    ///
    /// # Progress
    ///
    /// Lock-free; allocates nothing in the steady state. Now and then (once in
    /// 512–4096 calls) it reclaims: one heavy barrier, one look at every slot,
    /// and the deleters.
    ///
    /// # Safety
    ///
    /// * `object` came from [`Box::into_raw`] and is not dropped otherwise.
    /// * It is unlinked: no load that begins after this call can find it.
    #[inline]
    pub unsafe fn retire_box<T: ?Sized + Send + 'static>(&self, object: *mut T) {
        // SAFETY: the caller's contract; `T: Send`.
        self.retire(unsafe { Retired::boxed(object) });
    }

    /// Retires an address with a deleter of its own. The deleter gets the
    /// address and `context` back.
    ///
    /// Null and addresses that no slot can hold are never protected: their
    /// deleter runs in the next pass.
    ///
    /// # Panics, Progress
    ///
    /// As [`retire_box`](Self::retire_box).
    ///
    /// # Safety
    ///
    /// * The object is unlinked, as for [`retire_box`](Self::retire_box).
    /// * `deleter(address, context)` may be called once, on any thread, at any
    ///   later time.
    #[inline]
    pub unsafe fn retire_with(
        &self,
        address: *mut (),
        context: *mut (),
        deleter: unsafe fn(*mut (), *mut ()),
    ) {
        // SAFETY: `MaybeUninit<P>` has the ABI of `P`, and the second word is
        // always initialised here.
        let run = unsafe { core::mem::transmute::<unsafe fn(*mut (), *mut ()), Run>(deleter) };
        // SAFETY: the caller's contract.
        self.retire(unsafe { Retired::with(address, context, run) });
    }

    /// Retires an opaque key (an index, a file descriptor, …): `deleter(key)`
    /// runs once no slot holds the key. Keys are protected with
    /// [`HazardPointer::protect_raw`](crate::HazardPointer::protect_raw).
    ///
    /// # Panics
    ///
    /// If `key` is 0 or one of the two largest `usize` values, which no slot
    /// can hold; otherwise as [`retire_box`](Self::retire_box).
    ///
    /// # Safety
    ///
    /// As [`retire_with`](Self::retire_with). Keys share their space with
    /// addresses: a key that equals a protected address waits for it.
    pub unsafe fn retire_key(&self, key: usize, deleter: fn(usize)) {
        assert!(
            crate::slot::is_address(key),
            "key {key:#x} cannot be protected: 0 and the two largest values are reserved"
        );
        unsafe fn run(key: *mut (), second: MaybeUninit<*mut ()>) {
            // SAFETY: `second` is the function pointer stored below.
            let deleter =
                unsafe { core::mem::transmute::<*mut (), fn(usize)>(second.assume_init()) };
            deleter(key.addr());
        }
        // SAFETY: `run` gets its own word back; the rest is the caller's word.
        self.retire(unsafe {
            Retired::with(
                core::ptr::without_provenance_mut(key),
                deleter as *mut (),
                run,
            )
        });
    }

    /// One pass over at most `budget` waiting objects. Returns how many were
    /// freed. From inside a deleter: 0, at once.
    ///
    /// # Panics
    ///
    /// As [`drain`](Self::drain).
    ///
    /// # Progress
    ///
    /// One heavy barrier, one look at every slot, at most `budget` deleters.
    pub fn reclaim(&self, budget: usize) -> usize {
        // A refused barrier shows in `stats`.
        self.core().reclaim(&SLOTS, budget).unwrap_or(0)
    }

    /// Returns when everything that was retired before the call is freed or
    /// was found protected after the call began, including what deleters
    /// retired meanwhile on this thread. Returns how many objects this thread
    /// freed.
    ///
    /// From inside a deleter it returns 0 at once and drains nothing. (A drain
    /// that runs the deleter looks again, in its own domain; a pass that a
    /// retirement began does not.)
    ///
    /// # Panics
    ///
    /// If a deleter panics, with its panic, after putting the rest of the
    /// batch back. The object counts as reclaimed; everything else is freed by
    /// a later pass. If a deleter panics in another thread meanwhile, what that
    /// thread put back may still wait when this returns.
    ///
    /// # Progress
    ///
    /// Blocks for passes of other threads that are running deleters.
    pub fn drain(&self) -> usize {
        // A refused barrier shows in `stats`.
        self.core().drain(&SLOTS).unwrap_or(0)
    }

    /// The domain's counters.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let counters = self.core().counters();
        Stats {
            retired: counters.retired,
            reclaimed: counters.reclaimed,
            pending: counters.retired.saturating_sub(counters.reclaimed),
            scans: counters.scans,
            heavy_barriers: counters.heavy,
            barrier_failures: counters.refused,
            overflow_acquires: SLOTS.overflow_acquires(),
        }
    }

    /// The largest number of objects that can wait here while at most
    /// `retirers` threads are inside retire, reclaim or drain at one time, not
    /// counting objects that the last pass over their shard found protected
    /// (the next one looks again, at most 4096 retirements later) and objects
    /// that running deleters have just retired: (shards + 1 + retirers) × 4096, with one shard a
    /// possible CPU rounded up to a power of two, at most 64.
    #[must_use]
    pub fn pending_bound(&self, retirers: usize) -> usize {
        Core::pending_bound(retirers)
    }
}

impl Default for Domain {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        if let CoreRef::Own(core) = &mut self.core {
            /// Hands the rest over, also when a deleter panics.
            struct HandOver<'a>(&'a mut Core);
            impl Drop for HandOver<'_> {
                fn drop(&mut self) {
                    GLOBAL_CORE.adopt(self.0.take_all());
                }
            }
            let rest = HandOver(core);
            // Not while unwinding: a second panic would abort. A refused
            // barrier frees nothing; all of it is handed over.
            if !std::thread::panicking() {
                let _ = rest.0.drain(&SLOTS);
            }
        }
    }
}

/// Waits until no slot holds `address`, which the caller has unlinked.
///
/// Waits for ever if the caller itself protects the address (guards are not
/// bound to threads, so this cannot be told from another thread's long hold):
/// where that may happen use [`synchronize_timeout`]. If the kernel refuses
/// the barrier it asks again, for ever.
///
/// # Progress
///
/// Blocks for the holders of that address only; new protections of other
/// addresses do not hold it up.
pub fn synchronize(address: *const ()) {
    let done = wait_for(address.addr(), None);
    debug_assert!(done.is_ok(), "no deadline, no timeout");
}

/// As [`synchronize`], for at most `timeout`.
///
/// # Errors
///
/// [`TimedOut`] if some slot still holds the address then.
pub fn synchronize_timeout(address: *const (), timeout: Duration) -> Result<(), TimedOut> {
    wait_for(address.addr(), Instant::now().checked_add(timeout))
}

fn wait_for(address: usize, deadline: Option<Instant>) -> Result<(), TimedOut> {
    let late = || deadline.is_some_and(|d| Instant::now() >= d);
    let mut backoff = Backoff::new();
    while heavy().is_err() {
        if late() {
            return Err(TimedOut);
        }
        backoff.snooze();
    }
    let mut backoff = Backoff::new();
    while SLOTS.is_protected(address) {
        if late() {
            return Err(TimedOut);
        }
        backoff.snooze();
    }
    Ok(())
}

/// One heavy barrier and one look at every slot: calls `on_match` with the
/// place of each slot that holds `address`. Waits for nobody.
///
/// # Errors
///
/// [`BarrierLost`](percpu::barrier::BarrierLost) if the kernel refuses the
/// barrier; `on_match` was then not called and nothing may be concluded.
pub fn scan(
    address: *const (),
    mut on_match: impl FnMut(Place),
) -> Result<(), percpu::barrier::BarrierLost> {
    heavy()?;
    SLOTS.for_each_protected(|place, _, word| {
        if word == address.addr() {
            on_match(place);
        }
    });
    Ok(())
}

/// Whether an unlinked object that only guards can reach is reachable no more.
/// A refused barrier counts as "still reachable".
pub(crate) fn is_unreachable<T>(object: NonNull<T>) -> bool {
    heavy().is_ok() && !SLOTS.is_protected(object.addr().get())
}
