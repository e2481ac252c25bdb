//! Floor 3, bench-suite. Owns the variant `sdd`: scalable delayed deallocation (an epoch scheme).
//! May touch the `sdd` crate.

use super::{About, Callback, Object, Scheme, Support};
use sdd::{AtomicOwned, Guard, Owned, Tag};
use std::sync::atomic::Ordering;

/// `AtomicOwned`, which its documentation calls faster than `AtomicShared` for a value with one owner.
#[derive(Debug)]
pub(crate) struct Sdd(AtomicOwned<Object>);

impl Scheme for Sdd {
    const ABOUT: About = About {
        defer: Support::Yes,
        ..About::new(
            "sdd",
            "sdd 4: `Guard::new`, `AtomicOwned::load`, drop",
            "per operation: a Guard, with the thread's cached collector",
        )
    };

    type Reader<'a> = ();

    fn new(first: Object) -> Self {
        Sdd(AtomicOwned::new(first))
    }

    fn reader(&self) {}

    #[inline(always)]
    fn read(&self, _: &mut ()) -> bool {
        let guard = Guard::new();
        self.0
            .load(Ordering::Acquire, &guard)
            .as_ref()
            .is_some_and(Object::is_alive)
    }

    fn hold(&self, _: &mut (), inside: impl FnOnce()) -> bool {
        let guard = Guard::new();
        let object = self.0.load(Ordering::Acquire, &guard);
        inside();
        object.as_ref().is_some_and(Object::is_alive)
    }

    #[inline]
    fn write(&self, object: Object) {
        // The old value is retired when it is dropped here.
        drop(
            self.0
                .swap((Some(Owned::new(object)), Tag::None), Ordering::AcqRel),
        );
    }

    #[inline]
    fn defer(&self, _: &mut (), callback: Callback) {
        Guard::new().defer_execute(move || callback.run());
    }

    fn pass(&self) {
        let guard = Guard::new();
        guard.set_has_garbage();
        guard.accelerate();
    }
}
