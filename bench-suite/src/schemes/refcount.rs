//! Floor 3, bench-suite. Owns the variant `refcount`: a split atomic reference count.
//! Touches only the object.
//!
//! A count in the object alone cannot be taken safely: the object may be freed between loading its address and
//! incrementing. So the cell's word carries, beside the address, the number of readers who took a reference through
//! it (*external*), and the object carries what the others add up to (*internal*):
//!
//! ```text
//! word     = external:16 | address:48            references held = external + internal - (LINKED while in the cell)
//! acquire  : word += 1 << 48                      one RMW gives address and reference together
//! release  : internal -= 1; free if it became 0
//! unlink   : old = word.swap(new)                 internal += old.external - LINKED; free if it became 0
//! transfer : internal += n; word.external -= n    by a reader who sees many externals, before 16 bits overflow;
//!            if the cell has moved on: internal -= n
//! ```
//! `internal` starts at LINKED, larger than any count of readers, so no release can reach zero before the unlink.
//! A transfer counts `n` references twice for a moment, never too few; the reader who does it holds a reference
//! himself, so the address in the word cannot be that of another object.
//! At most TRANSFER + (number of threads) externals can pile up, which stays below 2^16 for the thread counts allowed.
//!
//! **Orderings.** acquire: Acquire, pairs with the AcqRel swap that published the object. release and unlink: AcqRel,
//! so that whoever brings the count to zero has seen all other uses. transfer: Relaxed on `internal` is enough, since
//! the reference held keeps the object; the word is changed with Relaxed, too, as it publishes nothing.

use super::{About, Object, Scheme};
use std::sync::atomic::{
    AtomicI64, AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed},
};

const SHIFT: u32 = 48;
const ADDRESS: u64 = (1 << SHIFT) - 1;
const LINKED: i64 = 1 << 40;
const TRANSFER: u64 = 1 << 14;

struct Counted {
    internal: AtomicI64,
    object: Object,
}

fn word(object: Object) -> u64 {
    let address = Box::into_raw(Box::new(Counted {
        internal: AtomicI64::new(LINKED),
        object,
    }))
    .expose_provenance() as u64;
    assert_eq!(
        address & !ADDRESS,
        0,
        "addresses above 48 bits are not supported by the variant refcount"
    );
    address
}

fn address(word: u64) -> *const Counted {
    std::ptr::with_exposed_provenance((word & ADDRESS) as usize)
}

/// One cell.
#[derive(Debug)]
pub(crate) struct Refcount(AtomicU64);

/// One reference, given back on drop.
struct Reference(*const Counted);

impl Reference {
    #[inline(always)]
    fn get(&self) -> &Counted {
        // SAFETY: this reference is counted, and the object is freed only when no reference is.
        unsafe { &*self.0 }
    }
}

impl Drop for Reference {
    #[inline(always)]
    fn drop(&mut self) {
        add(self.0, -1);
    }
}

/// Adds to the internal count and frees at zero.
#[inline(always)]
fn add(counted: *const Counted, change: i64) {
    // SAFETY: the caller owns a reference (or the link) until this very operation.
    let before = unsafe { (*counted).internal.fetch_add(change, AcqRel) };
    if before + change == 0 {
        // SAFETY: zero means that neither the cell nor a reader refers to the object, and it came from a `Box`.
        drop(unsafe { Box::from_raw(counted.cast_mut()) });
    }
}

impl Refcount {
    #[inline(always)]
    fn acquire(&self) -> Reference {
        let before = self.0.fetch_add(1 << SHIFT, Acquire);
        let reference = Reference(address(before));
        if before >> SHIFT >= TRANSFER {
            self.transfer(&reference, before);
        }
        reference
    }

    #[cold]
    fn transfer(&self, reference: &Reference, seen: u64) {
        let many = seen >> SHIFT;
        reference.get().internal.fetch_add(many as i64, Relaxed);
        let moved = self.0.fetch_update(Relaxed, Relaxed, |word| {
            let same = word & ADDRESS == seen & ADDRESS;
            (same && word >> SHIFT >= many).then(|| word - (many << SHIFT))
        });
        if moved.is_err() {
            // Our own reference is still counted, so this cannot reach zero.
            reference.get().internal.fetch_sub(many as i64, AcqRel);
        }
    }
}

impl Scheme for Refcount {
    const ABOUT: About = About::new(
        "refcount",
        "split atomic reference count: one RMW on the cell, one on the object",
        "per operation: every read takes and gives back a reference",
    )
    .without_waiting("no deferred reclaim: the last reference frees");

    type Reader<'a> = ();

    fn new(first: Object) -> Self {
        Refcount(AtomicU64::new(word(first)))
    }

    fn reader(&self) {}

    #[inline(always)]
    fn read(&self, _: &mut ()) -> bool {
        self.acquire().get().object.is_alive()
    }

    fn hold(&self, _: &mut (), inside: impl FnOnce()) -> bool {
        let reference = self.acquire();
        inside();
        reference.get().object.is_alive()
    }

    #[inline]
    fn write(&self, object: Object) {
        let old = self.0.swap(word(object), AcqRel);
        add(address(old), (old >> SHIFT) as i64 - LINKED);
    }
}

impl Drop for Refcount {
    fn drop(&mut self) {
        let last = *self.0.get_mut();
        add(address(last), (last >> SHIFT) as i64 - LINKED);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schemes::Census;

    #[test]
    fn externals_are_moved_before_they_overflow() {
        let census = Census::leak();
        let cell = Refcount::new(Object::new(0, Some(census)));
        for _ in 0..200_000 {
            assert!(cell.read(&mut ()));
        }
        assert!(cell.0.load(Relaxed) >> SHIFT <= TRANSFER + 1);
        assert!(cell.hold(&mut (), || cell.write(Object::new(1, Some(census)))));
        assert_eq!(census.living(), 1);
        drop(cell);
        assert_eq!(census.living(), 0);
    }

    #[test]
    fn readers_and_writers_leave_nothing_behind() {
        let census = Census::leak();
        let cell = Refcount::new(Object::new(0, Some(census)));
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| (0..100_000).for_each(|_| assert!(cell.read(&mut ()))));
                scope.spawn(|| {
                    (0..20_000).for_each(|serial| cell.write(Object::new(serial, Some(census))))
                });
            }
        });
        assert_eq!(census.living(), 1);
        drop(cell);
        assert_eq!(census.living(), 0);
    }
}
