//! The ordered list: one chain.
//!
//! Floor 3 (`structures`). Owns the head; the algorithm is `chain`'s.

use crate::chain::{self, Chain, Entry};
use crate::map::{Map, Scan};
use crate::scheme::{Scheme, Thread};
use crate::{Census, Kind};
use percpu::sync::atomic::AtomicPtr;
use std::fmt;
use std::ptr;

/// An ordered list of keys with values.
pub struct List<S: Scheme> {
    head: AtomicPtr<Entry>,
    census: &'static Census,
    scheme: S,
}

impl<S: Scheme> fmt::Debug for List<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "List over {}", S::ABOUT.name)
    }
}

impl<S: Scheme> List<S> {
    #[inline(always)]
    fn chain(&self) -> Chain<'_> {
        Chain {
            head: &self.head,
            census: self.census,
        }
    }
}

impl<S: Scheme> Map for List<S> {
    type Scheme = S;

    type Thread<'a> = S::Thread<'a, { chain::SLOTS }>;

    const KIND: Kind = Kind::List;

    fn new(_: usize, census: &'static Census) -> Self {
        List {
            head: AtomicPtr::new(ptr::null_mut()),
            census,
            scheme: S::new(),
        }
    }

    fn thread(&self) -> Self::Thread<'_> {
        self.scheme.thread()
    }

    #[inline]
    fn get(&self, thread: &mut Self::Thread<'_>, key: u64) -> Option<u64> {
        self.chain().get::<S, _>(&mut thread.pin(), key)
    }

    #[inline]
    fn insert(&self, thread: &mut Self::Thread<'_>, key: u64, value: u64) -> bool {
        self.chain().insert::<S, _>(&mut thread.pin(), key, value)
    }

    #[inline]
    fn remove(&self, thread: &mut Self::Thread<'_>, key: u64) -> Option<u64> {
        self.chain().remove(&mut thread.pin(), key)
    }

    fn scan(&self, thread: &mut Self::Thread<'_>, visit: impl FnMut(u64, u64)) -> Scan {
        self.chain().scan::<S, _>(&mut thread.pin(), visit)
    }

    fn hold(&self, thread: &mut Self::Thread<'_>, pause: impl FnOnce()) {
        let mut guard = thread.pin();
        let node = self.chain().first(&mut guard);
        pause();
        // SAFETY: null, or protected by `first`.
        unsafe { self.chain().look_at(node) };
    }

    fn flush(&self) {
        self.scheme.flush();
    }

    fn scheme(&self) -> &S {
        &self.scheme
    }
}

impl<S: Scheme> Drop for List<S> {
    fn drop(&mut self) {
        // SAFETY: `&mut self`: nobody else has what is still linked.
        unsafe { chain::free_all::<S>(&mut self.head) };
    }
}
