//! Which of hp's types may be sent and shared, for which payloads.
//!
//! Bug log 74, 75 and 79: pinned here, so that a change is a decision.

use hp::{Atomic, Domain, Guard, HazardPointer, Stats, Unlinked};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::MutexGuard;

macro_rules! is {
    ($type:ty: $($bound:tt)+) => {
        const _: () = {
            const fn is<T: ?Sized + $($bound)+>() {}
            is::<$type>();
        };
    };
}

/// Fails to compile when the type has the trait: then two impls fit the
/// inferred parameter.
macro_rules! is_not {
    ($type:ty: $bound:path) => {
        const _: () = {
            trait Either<A> {
                fn witness() {}
            }
            impl<T: ?Sized> Either<()> for T {}
            struct Has;
            impl<T: ?Sized + $bound> Either<Has> for T {}
            let _ = <$type as Either<_>>::witness;
        };
    };
}

// Payloads that may be both sent and shared.
is!(Atomic<u8>: Send + Sync + Unpin);
is!(Guard<u8>: Send + Sync + Unpin);
is!(Guard<[u8]>: Send + Sync);
is!(Guard<str>: Send + Sync);
is!(Unlinked<u8>: Send + Sync);

// May be sent, not shared: a cell hands references to many threads.
is_not!(Atomic<Cell<u8>>: Send);
is_not!(Atomic<Cell<u8>>: Sync);
is_not!(Guard<Cell<u8>>: Send);
is_not!(Guard<Cell<u8>>: Sync);
is_not!(Unlinked<Cell<u8>>: Send);
is_not!(Unlinked<Cell<u8>>: Sync);

// Neither sent nor shared. (`Atomic<Rc<u8>>` is refused as a type; see the
// programs that must not compile.)
is_not!(Guard<Rc<u8>>: Send);
is_not!(Guard<Rc<u8>>: Sync);

// Shared, not sent. A guard never drops its object, so it needs `Sync` alone.
is!(Guard<MutexGuard<'static, u8>>: Send + Sync);
is_not!(Guard<MutexGuard<'static, Cell<u8>>>: Send);
is_not!(Guard<MutexGuard<'static, Cell<u8>>>: Sync);

// What has no payload goes anywhere.
is!(HazardPointer: Send + Sync + Unpin);
is!(Domain: Send + Sync);
is!(Stats: Send + Sync + Copy);

// Nothing is cloned by mistake, and nothing is copied.
is!(Guard<u8>: Clone);
is_not!(Guard<u8>: Copy);
is_not!(Atomic<u8>: Clone);
is_not!(Unlinked<u8>: Clone);
is_not!(HazardPointer: Clone);
is_not!(Domain: Clone);

#[cfg(feature = "structures")]
mod structures {
    use hp::structures::{Map, MapIter, Stack, StackIntoIter, StackIterMut, TakeAll};
    use std::cell::Cell;
    use std::marker::PhantomData;
    use std::rc::Rc;
    use std::sync::MutexGuard;

    // A value is on one thread at a time: `Send` is enough for both.
    is!(Stack<u8>: Send + Sync + Unpin);
    is!(Stack<Cell<u8>>: Send + Sync);
    is_not!(Stack<Rc<u8>>: Send);
    is_not!(Stack<Rc<u8>>: Sync);
    is_not!(Stack<MutexGuard<'static, u8>>: Send);
    is_not!(Stack<MutexGuard<'static, u8>>: Sync);
    is!(TakeAll<Cell<u8>>: Send + Sync);
    is_not!(TakeAll<Rc<u8>>: Send);
    is_not!(TakeAll<Rc<u8>>: Sync);
    is!(StackIntoIter<Cell<u8>>: Send);
    is_not!(StackIntoIter<Rc<u8>>: Send);
    // As `&mut T`.
    is!(StackIterMut<'static, Cell<u8>>: Send);
    is_not!(StackIterMut<'static, Cell<u8>>: Sync);
    is_not!(StackIterMut<'static, Rc<u8>>: Send);
    is!(StackIterMut<'static, MutexGuard<'static, u8>>: Sync);

    // A map shares its keys and its values. (What is not `Send` is refused as
    // a type.)
    is!(Map<u8, u8>: Send + Sync + Unpin);
    is_not!(Map<u8, Cell<u8>>: Send);
    is_not!(Map<u8, Cell<u8>>: Sync);
    is_not!(Map<Cell<u8>, u8>: Send);
    is_not!(Map<Cell<u8>, u8>: Sync);
    is!(MapIter<'static, u8, u8>: Send + Sync);
    is_not!(MapIter<'static, u8, Cell<u8>>: Send);
    is_not!(MapIter<'static, u8, Cell<u8>>: Sync);
    is_not!(MapIter<'static, Cell<u8>, u8>: Send);

    // The hasher goes along and is shared.
    is!(Map<u8, u8, Cell<u8>>: Send);
    is_not!(Map<u8, u8, Cell<u8>>: Sync);
    is_not!(Map<u8, u8, Rc<u8>>: Send);
    is!(Map<u8, u8, PhantomData<MutexGuard<'static, u8>>>: Sync);
    is_not!(Map<u8, u8, PhantomData<MutexGuard<'static, u8>>>: Send);

    is_not!(Map<u8, u8>: Clone);
    is_not!(Stack<u8>: Clone);
}

/// The negative form must be able to fail: it is ambiguous exactly when the
/// positive form holds. (The rest is checked by compiling this file.)
#[test]
fn sizes_are_small() {
    let word = size_of::<usize>();
    assert_eq!(size_of::<Atomic<u64>>(), word);
    assert_eq!(size_of::<Guard<u64>>(), 2 * word);
    assert_eq!(size_of::<Option<Guard<u64>>>(), 2 * word);
    assert_eq!(size_of::<Guard<[u8]>>(), 3 * word);
    assert_eq!(size_of::<Unlinked<u64>>(), word);
    assert_eq!(size_of::<HazardPointer>(), word);
}
