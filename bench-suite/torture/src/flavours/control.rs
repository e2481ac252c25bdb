//! Counts on elements: a scheme that is slow and right, and the same with one
//! fault each.
//!
//! Floor 3. That the faults are found is what makes a clean run of the others
//! worth something. Elements are never freed, so a count may be raised before
//! it is known whether the element is still published; if it is not, the count
//! is lowered again and the reader begins anew.
//!
//! All orderings are SeqCst: who raised the count and then found the element
//! published did so before it was unlinked, so the writer sees the count.

use super::{Flavour, Parcel};
use crate::cpus;
use crate::plan::Dimension;
use crate::world::{Element, World};
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicIsize, AtomicPtr, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

/// Nothing is wrong.
pub(super) const NONE: u8 = 0;
pub(super) const WAIT: u8 = 1;
pub(super) const SLEEP: u8 = 2;
pub(super) const HANDOVER: u8 = 3;
pub(super) const SIGNAL: u8 = 4;
pub(super) const VALIDATE: u8 = 5;
pub(super) const CLAIM: u8 = 6;
pub(super) const CHURN: u8 = 7;
pub(super) const STUTTER: u8 = 8;
pub(super) const STARVE: u8 = 9;
pub(super) const LEAK: u8 = 10;
pub(super) const TWICE: u8 = 11;
pub(super) const HANG: u8 = 12;

/// Longest patience of the writer of [`SLEEP`].
const PATIENCE: Duration = Duration::from_millis(2);

/// After so long a thread of [`STUTTER`] is forgotten.
const FORGOTTEN: Duration = Duration::from_millis(5);

/// Slots of [`CLAIM`], one for each CPU.
const SLOTS: usize = 256;

thread_local! {
    /// What the thread protects, for the handler of [`SIGNAL`].
    static HELD: Cell<Option<&'static AtomicIsize>> = const { Cell::new(None) };
}

/// See the module.
pub(super) struct Control<const FAULT: u8> {
    world: &'static World,
    published: AtomicPtr<Element>,
    counts: &'static [AtomicIsize],
    threads: AtomicUsize,
    updates: AtomicUsize,
    reads: AtomicUsize,
    slots: Vec<AtomicPtr<Element>>,
}

/// What a reader keeps.
pub(super) struct Reader {
    last: Instant,
    /// The writers know it.
    known: bool,
}

/// A protection; dropping it releases.
struct Hold<'a> {
    element: &'static Element,
    place: Place<'a>,
}

enum Place<'a> {
    Nowhere,
    Count(&'static AtomicIsize),
    Slot(&'a AtomicPtr<Element>),
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        match self.place {
            Place::Nowhere => {}
            Place::Count(count) => {
                count.fetch_sub(1, SeqCst);
            }
            Place::Slot(slot) => slot.store(ptr::null_mut(), SeqCst),
        }
    }
}

/// Somebody else may run here.
fn window() {
    for _ in 0..200 {
        std::hint::spin_loop();
    }
}

impl<const FAULT: u8> Control<FAULT> {
    fn published(&self) -> Option<&'static Element> {
        // SAFETY: elements are never freed.
        unsafe { self.published.load(SeqCst).as_ref() }
    }

    fn is_published(&self, element: &Element) -> bool {
        ptr::eq(self.published.load(SeqCst), element)
    }

    fn protect(&self) -> Option<Hold<'_>> {
        loop {
            let element = self.published()?;
            if FAULT == VALIDATE {
                window();
            }
            let count = &self.counts[element.number];
            count.fetch_add(1, SeqCst);
            let hold = Hold {
                element,
                place: Place::Count(count),
            };
            if FAULT == VALIDATE || self.is_published(element) {
                return Some(hold);
            }
        }
    }

    /// [`CLAIM`]: looks whether the CPU's slot is free, then fills it.
    fn claim(&self) -> Option<Hold<'_>> {
        let slot = &self.slots[cpus::current() % SLOTS];
        if !slot.load(SeqCst).is_null() {
            return self.protect();
        }
        window();
        loop {
            let element = self.published()?;
            slot.store(ptr::from_ref(element).cast_mut(), SeqCst);
            let hold = Hold {
                element,
                place: Place::Slot(slot),
            };
            if self.is_published(element) {
                return Some(hold);
            }
        }
    }

    fn void(&self) -> Option<Hold<'_>> {
        Some(Hold {
            element: self.published()?,
            place: Place::Nowhere,
        })
    }

    fn by(&self, reader: &Reader) -> Option<Hold<'_>> {
        let overlooked = match FAULT {
            CHURN => !reader.known,
            STUTTER => reader.last.elapsed() > FORGOTTEN,
            _ => false,
        };
        if overlooked {
            self.void()
        } else if FAULT == CLAIM {
            self.claim()
        } else {
            self.protect()
        }
    }

    fn held(&self, element: &Element) -> bool {
        self.counts[element.number].load(SeqCst) > 0
            || (FAULT == CLAIM
                && self
                    .slots
                    .iter()
                    .any(|slot| ptr::eq(slot.load(SeqCst), element)))
    }

    fn reclaim(&self, old: &'static Element) {
        self.world.unlinked(old);
        let n = self.updates.fetch_add(1, SeqCst);
        if FAULT == LEAK && n % 64 == 63 {
            return;
        }
        let start = Instant::now();
        while FAULT != WAIT && self.held(old) && self.world.running() {
            if FAULT == SLEEP && start.elapsed() > PATIENCE {
                break;
            }
            thread::sleep(Duration::from_micros(50));
        }
        // A run that ends early leaves nobody waiting, and nothing to judge.
        while FAULT != HANG && FAULT != WAIT && FAULT != SLEEP && self.held(old) {
            thread::yield_now();
        }
        self.world.reclaimed(old);
        if FAULT == TWICE && n % 64 == 63 {
            self.world.reclaimed(old);
        }
    }
}

impl<const FAULT: u8> Flavour for Control<FAULT> {
    type Thread = Reader;

    const READS: &'static [&'static str] = &["protect"];
    const UPDATES: &'static [&'static str] = &["wait"];
    const WITHOUT: &'static [(Dimension, &'static str)] = &[];

    fn new(world: &'static World) -> Self {
        let counts: Box<[_]> = (0..World::ELEMENTS).map(|_| AtomicIsize::new(0)).collect();
        Self {
            world,
            published: AtomicPtr::new(ptr::null_mut()),
            counts: crate::world::keep(counts),
            threads: AtomicUsize::new(0),
            updates: AtomicUsize::new(0),
            reads: AtomicUsize::new(0),
            slots: (0..SLOTS)
                .map(|_| AtomicPtr::new(ptr::null_mut()))
                .collect(),
        }
    }

    fn begin(&self) -> Reader {
        let number = self.threads.fetch_add(1, SeqCst);
        Reader {
            last: Instant::now(),
            known: number < self.world.plan.readers(),
        }
    }

    fn inside(&self, reader: &mut Reader, _: usize, visit: &mut dyn FnMut(&'static Element)) {
        if let Some(hold) = self.by(reader) {
            if FAULT == SIGNAL
                && let Place::Count(count) = &hold.place
            {
                HELD.set(Some(count));
            }
            visit(hold.element);
            // Nothing is left if a handler has released it.
            let released = FAULT == SIGNAL && HELD.take().is_none();
            let forgotten = FAULT == HANG && self.reads.fetch_add(1, SeqCst) % 5000 == 4999;
            if released || forgotten {
                std::mem::forget(hold);
            }
        }
        reader.last = Instant::now();
    }

    fn many(&self, reader: &mut Reader, count: usize, visit: &mut dyn FnMut(&[&'static Element])) {
        let holds: Vec<_> = (0..count)
            .filter_map(|n| match FAULT {
                STARVE if n >= 8 => self.void(),
                _ => self.by(reader),
            })
            .collect();
        let elements: Vec<_> = holds.iter().map(|hold| hold.element).collect();
        visit(&elements);
        drop(holds);
        reader.last = Instant::now();
    }

    fn parcel(&self, reader: &mut Reader) -> Option<Parcel> {
        // Counted in any case: the slot of a CPU could not be sent.
        let hold = if FAULT == CHURN || FAULT == STUTTER {
            self.by(reader)?
        } else {
            self.protect()?
        };
        let element = hold.element;
        let count = match hold.place {
            Place::Count(count) => Some(count),
            _ => None,
        };
        std::mem::forget(hold);
        if FAULT == HANDOVER
            && let Some(count) = count
        {
            count.fetch_sub(1, SeqCst);
        }
        let count = count.filter(|_| FAULT != HANDOVER);
        Some(Parcel {
            element,
            hold: Box::new(Sent(count)),
        })
    }

    fn in_handler(&self, visit: &mut dyn FnMut(&'static Element)) {
        if FAULT == SIGNAL
            && let Some(count) = HELD.take()
        {
            count.fetch_sub(1, SeqCst);
        }
        if let Some(hold) = self.protect() {
            visit(hold.element);
        }
    }

    fn update(&self, element: &'static Element, _: usize) {
        let new = ptr::from_ref(element).cast_mut();
        // SAFETY: elements are never freed.
        if let Some(old) = unsafe { self.published.swap(new, SeqCst).as_ref() } {
            self.reclaim(old);
        }
    }

    fn flush(&self) {}

    fn finish(&self) {
        // SAFETY: as above.
        if let Some(old) = unsafe { self.published.swap(ptr::null_mut(), SeqCst).as_ref() } {
            self.reclaim(old);
        }
    }
}

/// A count that another thread lowers.
struct Sent(Option<&'static AtomicIsize>);

impl Drop for Sent {
    fn drop(&mut self) {
        if let Some(count) = self.0 {
            count.fetch_sub(1, SeqCst);
        }
    }
}
