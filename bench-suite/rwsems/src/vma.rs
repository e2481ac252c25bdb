//! Readers that do not lock: they protect the description itself, and a writer
//! puts another one in its place.
//!
//! Floor 3 (`rwsems`). Owns the reference-counted variant; `hp` and `rcu-lite`
//! own the others.
//!
//! Nobody waits for anybody. In return a reader may go on with a description that
//! has been replaced: in the kernel a page fault that has taken its VMA's reference
//! goes on while another VMA takes its place only once the writer has waited for
//! that reference; these variants show what the readers' side costs without that
//! wait. Where a writer must know that the old description is out of use, it needs
//! a grace period (`rcu-lite`, `hp::synchronize`).
//!
//! | type | a read costs |
//! |---|---|
//! | [`Refcounted`] | a lookup in an RCU section, and an addition and a subtraction on one shared line: what the kernel does since 6.15 |
//! | [`Hazard`] | one restartable section and a store |
//! | [`Rcu`] | the same, for as long as the body runs: all garbage waits that long |

use crate::{About, AtOnce, Region, Vma};
use core::fmt;
use percpu::sync::atomic::{AtomicPtr, Ordering};
use refcounts::plain::Plain;
use std::ptr;
use std::sync::{Mutex, PoisonError};

const NOBODY: &str = "nobody waits for anybody";

const fn about(name: &'static str, what: &'static str, source: &'static str) -> About {
    About {
        name,
        what,
        progress: "readers do not wait; writers wait for writers",
        fairness: NOBODY,
        inherits: "not needed: nobody waits for readers",
        source,
        readers: AtOnce::All,
        nests: true,
        pi: false,
        percpu: true,
        locks: false,
    }
}

/// A description with a count of those that use it.
struct Counted {
    references: Plain,
    vma: Vma,
}

/// A reference count in the description, found in an RCU section.
///
/// A reader looks the description up, takes a reference unless there is none any
/// more, and leaves the section: the reference keeps the description for the body.
/// The writer unlinks the old one and gives the first reference back. Whoever gives
/// the last one back frees it after a grace period, because a lookup may still be
/// about to find that the count is 0.
pub struct Refcounted {
    current: AtomicPtr<Counted>,
    writers: Mutex<()>,
}

impl fmt::Debug for Refcounted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::ABOUT.name)
    }
}

/// A reference to a description.
struct Held(*const Counted);

impl Held {
    fn vma(&self) -> &Vma {
        // SAFETY: referenced, so it is not freed.
        unsafe { &(*self.0).vma }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: as above; if this is the last, it is freed after a grace
        // period, by which lookups that found it have gone.
        unsafe {
            if (*self.0).references.put() {
                rcu_lite::Rcu::global().defer_free(self.0.cast_mut());
            }
        }
    }
}

impl Refcounted {
    fn hold(&self) -> Held {
        let _lookup = rcu_lite::Rcu::global().read();
        loop {
            // Acquire: pairs with the writer's publication.
            let found = self.current.load(Ordering::Acquire);
            // SAFETY: not freed before the section ends.
            if unsafe { (*found).references.get_unless_zero() } {
                return Held(found);
            }
            // It has been replaced, and the next look finds the next one.
        }
    }
}

impl Region for Refcounted {
    const ABOUT: About = about(
        "vma-refcount",
        "no lock: a reference count in the description, found in an RCU section",
        "per-VMA locks of Linux 6.15 (vm_refcnt), the readers' side",
    );

    fn new(first: Vma) -> Self {
        Self {
            current: AtomicPtr::new(fresh(first)),
            writers: Mutex::new(()),
        }
    }

    #[inline]
    fn read<T>(&self, body: impl FnOnce(&Vma) -> T) -> T {
        body(self.hold().vma())
    }

    fn write(&self, mut change: impl FnMut(&Vma) -> Vma) {
        let _writers = self.writers.lock().unwrap_or_else(PoisonError::into_inner);
        // Relaxed: under the writers' mutex. It has its first reference still.
        let old = self.current.load(Ordering::Relaxed);
        // SAFETY: only writers take the first reference away.
        let next = change(unsafe { &(*old).vma });
        // Release: publishes the next one.
        self.current.store(fresh(next), Ordering::Release);
        drop(Held(old));
    }

    fn flush(&self) {
        rcu_lite::Rcu::global().barrier();
    }
}

fn fresh(vma: Vma) -> *mut Counted {
    Box::into_raw(Box::new(Counted {
        references: Plain::new(1),
        vma,
    }))
}

impl Drop for Refcounted {
    fn drop(&mut self) {
        let last = std::mem::replace(self.current.get_mut(), ptr::null_mut());
        drop(Held(last));
    }
}

/// A hazard pointer.
#[derive(Debug)]
pub struct Hazard(hp::Atomic<Vma>);

impl Region for Hazard {
    const ABOUT: About = about(
        "vma-hp",
        "no lock: a hazard pointer to the description",
        "hp::Atomic of this workspace",
    );

    fn new(first: Vma) -> Self {
        Self(hp::Atomic::new(first))
    }

    #[inline]
    fn read<T>(&self, body: impl FnOnce(&Vma) -> T) -> T {
        let vma = self.0.load().expect("never empty");
        body(&vma)
    }

    fn write(&self, mut change: impl FnMut(&Vma) -> Vma) {
        self.0.update(|old| Some(change(old.expect("never empty"))));
    }

    fn flush(&self) {
        hp::Domain::global().drain();
    }
}

/// An RCU section around the body.
#[derive(Debug)]
pub struct Rcu(rcu_lite::RcuCell<Vma>);

impl Region for Rcu {
    const ABOUT: About = about(
        "vma-rcu",
        "no lock: an RCU section around lookup and body",
        "rcu-lite of this workspace",
    );

    fn new(first: Vma) -> Self {
        Self(rcu_lite::RcuCell::new(first))
    }

    #[inline]
    fn read<T>(&self, body: impl FnOnce(&Vma) -> T) -> T {
        let section = rcu_lite::Rcu::global().read();
        body(self.0.load(&section))
    }

    fn write(&self, change: impl FnMut(&Vma) -> Vma) {
        self.0.update(change);
    }

    fn flush(&self) {
        rcu_lite::Rcu::global().barrier();
    }
}
