//! Floor 3, bench-suite. Owns the hidden variant `broken`, the negative control of the correctness gate.
//! Touches only the object.
//!
//! It "frees" the old object at once whoever reads it: it poisons it, but keeps the memory in a pool of its own, so
//! that the reader's look at a dead object is no undefined behaviour. The first object is never used again, so a reader
//! parked on it is certain to find it dead; the others take turns. It loses every other callback. Refused unless
//! `HPBENCH_ALLOW_BROKEN=1`.

use super::{About, Callback, Object, Scheme, Support};
use std::sync::atomic::{AtomicUsize, Ordering};

const POOL: usize = 256;

/// A pool of objects of which one is published.
#[derive(Debug)]
pub(crate) struct Broken {
    pool: [Object; POOL],
    published: AtomicUsize,
}

/// Whether the environment asks for the negative control.
pub(crate) fn allowed() -> bool {
    std::env::var_os("HPBENCH_ALLOW_BROKEN").is_some_and(|value| value == "1")
}

impl Scheme for Broken {
    const ABOUT: About = About {
        defer: Support::Yes,
        hidden: true,
        ..About::new(
            "broken",
            "frees while readers look: the run must fail",
            "none",
        )
    };

    type Reader<'a> = ();

    fn new(first: Object) -> Self {
        let pool = std::array::from_fn(|i| Object::new(i as u64, None));
        drop(first);
        Broken {
            pool,
            published: AtomicUsize::new(0),
        }
    }

    fn reader(&self) {}

    #[inline]
    fn read(&self, reader: &mut ()) -> bool {
        self.hold(reader, || (0..64).for_each(|_| std::hint::spin_loop()))
    }

    fn hold(&self, _: &mut (), inside: impl FnOnce()) -> bool {
        let object = &self.pool[place(self.published.load(Ordering::Acquire))];
        inside();
        object.is_alive()
    }

    fn write(&self, object: Object) {
        drop(object);
        let old = self.published.fetch_add(1, Ordering::AcqRel);
        self.pool[place(old + 2)].revive();
        self.pool[place(old)].poison();
    }

    fn defer(&self, _: &mut (), callback: Callback) {
        // Every other one is lost.
        if self
            .published
            .fetch_add(1, Ordering::AcqRel)
            .is_multiple_of(2)
        {
            callback.run();
        }
    }
}

/// Where the object of that many writes is: first 0, then 1 to POOL - 1 in turn.
fn place(writes: usize) -> usize {
    match writes {
        0 => 0,
        n => 1 + (n - 1) % (POOL - 1),
    }
}
