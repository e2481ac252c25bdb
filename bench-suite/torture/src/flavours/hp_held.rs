//! The structure level of `hp`: slots that a reader holds.
//!
//! Floor 3. Elements themselves are published, by their addresses.

use super::{Flavour, Parcel};
use crate::world::{Element, World};
use hp::{Domain, HazardPointer, ProtectError};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::thread;
use std::time::Duration;

/// See the module.
pub(super) struct HpHeld {
    world: &'static World,
    published: AtomicPtr<Element>,
    domain: Domain,
}

/// What a reader holds all the time, and more for [`many`](Flavour::many).
pub(super) struct Held {
    slots: [HazardPointer; 2],
    more: Vec<HazardPointer>,
}

/// A published address, or none.
fn element(address: *const Element) -> Option<&'static Element> {
    // SAFETY: elements are never freed (what is checked is the age).
    unsafe { address.as_ref() }
}

impl HpHeld {
    /// Takes the published one out.
    fn replace(&self, new: *mut Element) -> Option<&'static Element> {
        let old = element(self.published.swap(new, Ordering::AcqRel))?;
        self.world.unlinked(old);
        Some(old)
    }

    fn retire(&self, old: &'static Element) {
        unsafe fn reclaim(element: *mut (), world: *mut ()) {
            // SAFETY: both were made of references that live for ever.
            unsafe { (*world.cast::<World>()).reclaimed(&*element.cast::<Element>()) };
        }
        let address = ptr::from_ref(old).cast_mut().cast();
        let world = ptr::from_ref(self.world).cast_mut().cast();
        // SAFETY: unlinked, and by the caller alone; both live for ever.
        unsafe { self.domain.retire_with(address, world, reclaim) };
    }
}

impl Flavour for HpHeld {
    type Thread = Held;

    const READS: &'static [&'static str] =
        &["protect", "protect and reset", "try_protect", "protect_raw"];
    const UPDATES: &'static [&'static str] =
        &["synchronize", "retire", "synchronize_timeout", "scan"];

    fn new(world: &'static World) -> Self {
        Self {
            world,
            published: AtomicPtr::new(ptr::null_mut()),
            domain: Domain::new(),
        }
    }

    fn begin(&self) -> Held {
        hp::init_thread();
        Held {
            slots: HazardPointer::array(),
            more: Vec::with_capacity(64),
        }
    }

    fn inside(&self, held: &mut Held, how: usize, visit: &mut dyn FnMut(&'static Element)) {
        let [first, second] = &mut held.slots;
        let address = match how {
            2 => {
                let mut guess = self.published.load(Ordering::Relaxed);
                loop {
                    match first.try_protect(guess, &self.published) {
                        Ok(address) => break address,
                        Err(ProtectError::Changed(now)) => guess = now,
                        Err(ProtectError::Misaligned(_)) => unreachable!("elements are aligned"),
                    }
                }
            }
            _ => first.protect(&self.published),
        };
        let Some(element) = element(address) else {
            return;
        };
        match how {
            3 => {
                // In a slot that is filled by hand, and looked at again.
                second.protect_raw(address.cast_const().cast());
                hp::light_barrier();
                if self.published.load(Ordering::Acquire) == address {
                    first.reset();
                }
                visit(element);
                second.reset();
            }
            1 => {
                visit(element);
                first.reset();
            }
            // It stays protected until the next time.
            _ => visit(element),
        }
    }

    fn many(&self, held: &mut Held, count: usize, visit: &mut dyn FnMut(&[&'static Element])) {
        held.more.resize_with(count, HazardPointer::new);
        let elements: Vec<_> = held
            .more
            .iter_mut()
            .filter_map(|slot| element(slot.protect(&self.published)))
            .collect();
        visit(&elements);
        held.more.clear();
    }

    fn outside(&self, held: &mut Held, f: &mut dyn FnMut()) {
        held.slots.iter_mut().for_each(HazardPointer::reset);
        f();
    }

    fn parcel(&self, _: &mut Held) -> Option<Parcel> {
        let mut slot = HazardPointer::new();
        let element = element(slot.protect(&self.published))?;
        Some(Parcel {
            element,
            hold: Box::new(slot),
        })
    }

    fn in_handler(&self, visit: &mut dyn FnMut(&'static Element)) {
        let mut slot = HazardPointer::new();
        if let Some(element) = element(slot.protect(&self.published)) {
            visit(element);
        }
    }

    fn update(&self, new: &'static Element, how: usize) {
        let Some(old) = self.replace(ptr::from_ref(new).cast_mut()) else {
            return;
        };
        let address = ptr::from_ref(old).cast::<()>();
        match how {
            1 => return self.retire(old),
            2 => while hp::synchronize_timeout(address, Duration::from_micros(300)).is_err() {},
            3 => loop {
                let mut holders = 0;
                if hp::scan(address, |_| holders += 1).is_ok() && holders == 0 {
                    break;
                }
                thread::sleep(Duration::from_micros(50));
            },
            _ => hp::synchronize(address),
        }
        self.world.reclaimed(old);
    }

    fn flush(&self) {
        self.domain.drain();
    }

    fn finish(&self) {
        if let Some(old) = self.replace(ptr::null_mut()) {
            self.retire(old);
        }
        self.flush();
    }

    fn facts(&self) -> Vec<(&'static str, u64)> {
        super::hp::facts(&self.domain)
    }
}
