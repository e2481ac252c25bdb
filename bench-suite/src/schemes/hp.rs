//! Floor 3, bench-suite. Owns the variants `hp`, `hp-membarrier` and `hp-fence`: the safe level of `hp`.
//! May touch `hp`.
//!
//! The three run the same code. The rung is a property of the process, so the engine runs the forced ones in a child
//! whose environment asks for that rung.

use super::{About, Object, Scheme};
use std::fmt::Debug;
use std::marker::PhantomData;

/// Which rung the process is expected to be on.
pub(crate) trait Rung: Debug + Send + Sync {
    /// The description of the variant.
    const ABOUT: About;
}

const HOLDER: &str = "per-operation guard: `Atomic::load`, dereference, drop";

/// Whatever rung the process has.
#[derive(Debug)]
pub(crate) struct Native;

impl Rung for Native {
    const ABOUT: About = About::new(
        "hp",
        "hazard pointers in per-CPU slots, on the rung that this machine offers",
        HOLDER,
    )
    .over_percpu();
}

/// The membarrier rung.
#[derive(Debug)]
pub(crate) struct Membarrier;

impl Rung for Membarrier {
    const ABOUT: About = About {
        rung: Some("membarrier"),
        ..About::new(
            "hp-membarrier",
            "hp forced to the membarrier rung: publish, compiler fence, re-read",
            HOLDER,
        )
        .over_percpu()
    };
}

/// The fence rung.
#[derive(Debug)]
pub(crate) struct Fence;

impl Rung for Fence {
    const ABOUT: About = About {
        rung: Some("fence"),
        ..About::new(
            "hp-fence",
            "hp forced to the fence rung: publish, full fence, re-read",
            HOLDER,
        )
        .over_percpu()
    };
}

/// `hp::Atomic` as a user of the safe level would use it.
#[derive(Debug)]
pub(crate) struct Hp<R>(hp::Atomic<Object>, PhantomData<R>);

impl<R: Rung> Scheme for Hp<R> {
    const ABOUT: About = R::ABOUT;

    type Reader<'a>
        = ()
    where
        R: 'a;

    fn new(first: Object) -> Self {
        Hp(hp::Atomic::new(first), PhantomData)
    }

    fn reader(&self) {}

    #[inline(always)]
    fn read(&self, _: &mut ()) -> bool {
        match self.0.load() {
            Some(object) => object.is_alive(),
            None => false,
        }
    }

    fn hold(&self, _: &mut (), inside: impl FnOnce()) -> bool {
        let object = self.0.load();
        inside();
        object.is_some_and(|object| object.is_alive())
    }

    #[inline]
    fn write(&self, object: Object) {
        self.0.store(object);
    }

    fn pass(&self) {
        hp::Domain::global().reclaim(usize::MAX);
    }

    fn flush(&self) {
        hp::Domain::global().drain();
    }

    fn bound(&self, writers: usize) -> Option<usize> {
        Some(hp::Domain::global().pending_bound(writers))
    }
}
