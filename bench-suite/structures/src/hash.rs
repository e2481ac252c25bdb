//! The hash map: a table of ordered chains, of a size chosen once.
//!
//! Floor 3 (`structures`). Owns the table; the algorithm is `chain`'s. As in the programs that it is compared with, the
//! table does not grow: what is measured is how nodes are kept alive.

use crate::chain::{self, Chain, Entry};
use crate::map::{Map, Scan};
use crate::scheme::{Scheme, Thread};
use crate::{Census, Kind};
use percpu::sync::atomic::AtomicPtr;
use std::fmt;
use std::ptr;

/// A hash map.
pub struct HashMap<S: Scheme> {
    /// A power of two of them.
    heads: Box<[AtomicPtr<Entry>]>,
    census: &'static Census,
    scheme: S,
}

impl<S: Scheme> fmt::Debug for HashMap<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HashMap over {}", S::ABOUT.name)
    }
}

impl<S: Scheme> HashMap<S> {
    #[inline(always)]
    fn chain<'a>(&'a self, head: &'a AtomicPtr<Entry>) -> Chain<'a> {
        Chain {
            head,
            census: self.census,
        }
    }

    #[inline(always)]
    fn chain_of(&self, key: u64) -> Chain<'_> {
        self.chain(&self.heads[index(key, self.heads.len())])
    }
}

/// Multiplicative: neighbouring keys go to different chains, and the upper bits of the product decide.
#[inline(always)]
fn index(key: u64, chains: usize) -> usize {
    // 2^64 over the golden ratio.
    let product = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((u128::from(product) * chains as u128) >> 64) as usize
}

impl<S: Scheme> Map for HashMap<S> {
    type Scheme = S;

    type Thread<'a> = S::Thread<'a, { chain::SLOTS }>;

    const KIND: Kind = Kind::Hash;

    /// One chain for each expected element, rounded up to a power of two.
    fn new(elements: usize, census: &'static Census) -> Self {
        let chains = elements.max(1).next_power_of_two();
        HashMap {
            heads: (0..chains)
                .map(|_| AtomicPtr::new(ptr::null_mut()))
                .collect(),
            census,
            scheme: S::new(),
        }
    }

    fn thread(&self) -> Self::Thread<'_> {
        self.scheme.thread()
    }

    #[inline]
    fn get(&self, thread: &mut Self::Thread<'_>, key: u64) -> Option<u64> {
        self.chain_of(key).get::<S, _>(&mut thread.pin(), key)
    }

    #[inline]
    fn insert(&self, thread: &mut Self::Thread<'_>, key: u64, value: u64) -> bool {
        self.chain_of(key)
            .insert::<S, _>(&mut thread.pin(), key, value)
    }

    #[inline]
    fn remove(&self, thread: &mut Self::Thread<'_>, key: u64) -> Option<u64> {
        self.chain_of(key).remove(&mut thread.pin(), key)
    }

    fn scan(&self, thread: &mut Self::Thread<'_>, mut visit: impl FnMut(u64, u64)) -> Scan {
        let mut guard = thread.pin();
        let mut whole = Scan::default();
        for head in &self.heads {
            let part = self.chain(head).scan::<S, _>(&mut guard, &mut visit);
            whole.elements += part.elements;
            whole.restarts += part.restarts;
        }
        whole
    }

    fn hold(&self, thread: &mut Self::Thread<'_>, pause: impl FnOnce()) {
        let mut guard = thread.pin();
        let mut firsts = self
            .heads
            .iter()
            .map(|head| self.chain(head).first(&mut guard));
        let node = firsts.find(|node| !node.is_null());
        pause();
        if let Some(node) = node {
            // SAFETY: protected by `first`, whose slot no other head has used since.
            unsafe { self.chain(&self.heads[0]).look_at(node) };
        }
    }

    fn flush(&self) {
        self.scheme.flush();
    }

    fn scheme(&self) -> &S {
        &self.scheme
    }
}

impl<S: Scheme> Drop for HashMap<S> {
    fn drop(&mut self) {
        for head in &mut self.heads {
            // SAFETY: `&mut self`: nobody else has what is still linked.
            unsafe { chain::free_all::<S>(head) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::index;

    #[test]
    fn keys_spread_over_chains() {
        let mut taken = [0u32; 1024];
        for key in 0..4096 {
            taken[index(key, taken.len())] += 1;
        }
        assert!(taken.iter().all(|&n| (2..=6).contains(&n)), "{taken:?}");
        assert!((0..100).all(|key| index(key, 1) == 0));
    }
}
