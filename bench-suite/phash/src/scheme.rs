//! What a way to protect the table has to offer.
//!
//! Floor 3 (`phash`). Owns the trait and the registry; `schemes` fills them in.

use crate::table::Table;
use refcounts::Thread;
use std::ops::Deref;
use std::time::Instant;

/// How a table gives way to the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replaces {
    /// It never does.
    Never,
    /// As in the kernel: when the last reference to it has gone. Its waiters are moved, then the next table is put into
    /// use. Operations that never leave a moment without a reference keep the next table waiting for ever.
    WhenUnused,
    /// At once: its waiters are moved, the next table is put into use, and it is freed when nobody has it any more.
    AtOnce,
}

/// What people should know of a scheme.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// The name in tables.
    pub name: &'static str,
    /// How the table is protected, and what it is in the kernel.
    pub measures: &'static str,
    /// How it gives way.
    pub replaces: Replaces,
    /// Whether the rung of `percpu` matters.
    pub percpu: bool,
}

/// How a request to replace the table ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replaced {
    /// The new table is in use.
    InUse,
    /// The time is over and operations still use the old table. The request stands: it is carried out when it can be.
    Pending,
    /// The time is over and an earlier request is still pending: this one was not made.
    Busy,
    /// Tables of this scheme are not replaced.
    Never,
}

/// A way to protect the table.
pub trait Scheme: Send + Sync + Sized + 'static {
    /// What people should know of it.
    const ABOUT: About;

    /// The protection: the table stays as long as it is held.
    type Guard<'a>: Deref<Target = Table>;

    /// With a first table.
    fn new(first: Table) -> Self;

    /// Protects the table in use.
    fn protect<'a>(&'a self, thread: &'a Thread) -> Self::Guard<'a>;

    /// Puts `next` into use, not waiting longer than `until`. Requests are carried out one after the other, each
    /// waiting for its turn, as `prctl(PR_FUTEX_HASH)` does.
    fn replace(&self, thread: &Thread, next: Table, until: Option<Instant>) -> Replaced;

    /// Frees what can be freed now.
    fn flush(&self) {}
}

/// Something to do with a scheme that is known by name only.
pub trait Visit {
    /// What comes of it.
    type Out;

    /// Does it.
    fn visit<S: Scheme>(self) -> Self::Out;
}
