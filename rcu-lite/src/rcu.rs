//! The per-CPU flavour: [`Rcu`] and its [`Guard`].
//!
//! Floor 2 (`rcu-lite`), public layer over `counters` and `domain`. Owns the
//! handle of a domain; see [`crate::counters`] for how readers are counted.

use crate::Callbacks;
use crate::counters::{Counters, Entered};
use crate::domain::{Core, Head};
use crate::flavor::surface;
use crate::queue::finish;
use core::fmt;
use core::ptr;
use percpu::sync::atomic::{AtomicPtr, Ordering};
use std::sync::Arc;

/// RCU with per-CPU counters: a domain.
///
/// Reading costs a restartable section and a store, and no barrier: about as
/// much as a hazard pointer. (Two sections where the CPU's slot is taken.) Guards are [`Send`], may be held across `.await`, nest, and
/// may be dropped by another thread. No thread registers. There may be many
/// domains; a long reader of one does not hold up the others.
///
/// Dropping a domain runs all callbacks that wait.
///
/// # Inside a section
///
/// [`synchronize`](Self::synchronize) (and `barrier`, `drain`,
/// `cond_synchronize`) inside a read-side section of the same domain **waits
/// for itself, for ever**. This flavour cannot see it, since guards belong to no
/// thread; [`ThreadRcu`](crate::ThreadRcu) and [`QsbrRcu`](crate::QsbrRcu)
/// panic. [`synchronize_timeout`](Self::synchronize_timeout) bounds it.
///
/// # Fork
///
/// A child inherits the counts of its parent's readers, and with them those
/// that only threads it does not have could take back: its grace periods then
/// never end (`synchronize_timeout` says so). See
/// [`after_fork_in_child`](Self::after_fork_in_child).
///
/// # Example
///
/// ```
/// use rcu_lite::{Rcu, RcuCell};
///
/// static CONFIG: std::sync::LazyLock<RcuCell<String>> =
///     std::sync::LazyLock::new(|| RcuCell::new("first".into()));
///
/// let rcu = Rcu::global();
/// let guard = rcu.read();
/// let seen = CONFIG.load(&guard);
/// CONFIG.replace("second".into()); // `seen` stays readable
/// assert_eq!((seen.as_str(), CONFIG.load(&guard).as_str()), ("first", "second"));
/// drop(guard);
/// rcu.barrier(); // "first" has been dropped
/// ```
pub struct Rcu {
    /// [`UNMADE`] at first.
    head: AtomicPtr<Head>,
    /// The block, as in the head. Only stored: for leak checkers, which do not
    /// look into mappings.
    core: AtomicPtr<Core>,
    /// What the block begins with; see `set_callbacks`.
    callbacks: Callbacks,
}

/// Stands for every domain that nobody has used: its lines are inactive for
/// ever, so that readers need no test of their own for it.
static UNMADE: Head = Head {
    counters: Counters::new(),
    core: AtomicPtr::new(ptr::null_mut()),
};

static GLOBAL: Rcu = Rcu::new();

impl Rcu {
    /// A domain. Its memory is made at its first use.
    #[must_use]
    pub const fn new() -> Self {
        Self::with_callbacks(Callbacks::Worker)
    }

    /// A domain whose callbacks are run as `callbacks` says.
    #[must_use]
    pub const fn with_callbacks(callbacks: Callbacks) -> Self {
        Self {
            head: AtomicPtr::new((&raw const UNMADE).cast_mut()),
            core: AtomicPtr::new(ptr::null_mut()),
            callbacks,
        }
    }

    /// The process-wide domain, which [`RcuCell::new`](crate::RcuCell::new)
    /// uses.
    #[inline(always)]
    #[must_use]
    pub fn global() -> &'static Rcu {
        &GLOBAL
    }

    #[inline(always)]
    fn head(&self) -> &Head {
        // Acquire: pairs with the Release in `make`.
        // SAFETY: `UNMADE`, or a head that lives until the handle is dropped.
        unsafe { &*self.head.load(Ordering::Acquire) }
    }

    #[inline]
    fn core(&self) -> &Core {
        // Relaxed: stored before the head was published.
        let core = self.head().core.load(Ordering::Relaxed);
        if core.is_null() {
            return self.make();
        }
        // SAFETY: the handle holds a count until it is dropped.
        unsafe { &*core }
    }

    #[cold]
    #[inline(never)]
    fn make(&self) -> &Core {
        let core = Core::new(self.callbacks);
        let head = ptr::from_ref(core.head()).cast_mut();
        // AcqRel: Release publishes the block; the failure's Acquire takes in
        // another thread's.
        match self.head.compare_exchange(
            (&raw const UNMADE).cast_mut(),
            head,
            Ordering::AcqRel,
            Ordering::Acquire,
        ) {
            Ok(_) => {
                // The handle's count.
                let core = Arc::into_raw(core);
                // Relaxed: nobody loads it.
                self.core.store(core.cast_mut(), Ordering::Relaxed);
                // SAFETY: counted.
                unsafe { &*core }
            }
            Err(_) => self.core(),
        }
    }

    /// Begins a read-side critical section: until the guard is dropped, what
    /// readers can reach now is not freed by way of this domain.
    ///
    /// # Progress
    ///
    /// Wait-free. The first use of a domain allocates, the first use of a CPU
    /// writes its line once.
    #[inline(always)]
    #[must_use = "the section ends when the guard is dropped"]
    pub fn read(&self) -> Guard<'_> {
        let entered = match self.head().counters.enter() {
            Some(entered) => entered,
            None => self.enter_cold(),
        };
        Guard { rcu: self, entered }
    }

    #[cold]
    #[inline(never)]
    fn enter_cold(&self) -> Entered {
        self.core().counters().enter_cold()
    }

    /// Forgets, in a forked child, every reader that this domain had.
    ///
    /// # Safety
    ///
    /// * This is the child of a `fork`, and its only thread.
    /// * Guards of this domain from before the fork are neither used nor
    ///   dropped in the child: they are forgotten ([`core::mem::forget`]), and
    ///   references that were loaded with them are not used.
    pub unsafe fn after_fork_in_child(&self) {
        // SAFETY: the caller's. (The domain that stands for unused ones has no
        // readers and must not be written.)
        unsafe {
            if !ptr::eq(self.head(), &raw const UNMADE) {
                self.head().counters.reset();
            }
        }
    }
}

impl Default for Rcu {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Rcu {
    fn drop(&mut self) {
        // Relaxed: stored before the head was published, and `&mut self`.
        let core = self.head().core.load(Ordering::Relaxed);
        if core.is_null() {
            return;
        }
        // Guards borrow the handle, so there is no reader: nothing to wait for.
        // SAFETY: the count that `make` left.
        let core = unsafe { Arc::from_raw(core) };
        finish(&*core);
    }
}

impl fmt::Debug for Rcu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rcu")
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

surface!(
    Rcu,
    guard = Guard,
    covers = |rcu: &Rcu, guard: &Guard<'_>| ptr::eq(rcu, guard.rcu),
    inside = "**Inside a read-side section of this domain it waits for ever.**"
);

/// A read-side critical section of an [`Rcu`]; ends when dropped, on whichever
/// thread that is. Forgetting it stops the domain's grace periods for ever.
#[must_use = "the section ends when the guard is dropped"]
pub struct Guard<'a> {
    rcu: &'a Rcu,
    entered: Entered,
}

impl<'a> Guard<'a> {
    /// The domain that was entered.
    #[must_use]
    pub fn rcu(&self) -> &'a Rcu {
        self.rcu
    }
}

impl Clone for Guard<'_> {
    /// Another section, which begins now, inside this one.
    fn clone(&self) -> Self {
        self.rcu.read()
    }
}

impl fmt::Debug for Guard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("rcu_lite::Guard")
    }
}

impl Drop for Guard<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.rcu.head().counters.leave(self.entered);
    }
}

const _: () = {
    const fn shared<T: Send + Sync>() {}
    shared::<Rcu>();
    shared::<Guard<'static>>();
};
