//! Slots for the models of `structures`: a few words for each role, filled,
//! released and scanned as the real ones are.
//!
//! Floor 2 (`hp`), for models. Owns a retired node's end: if no word holds its
//! address after a heavy barrier, its life ends (reading it fails from then
//! on); its memory is kept until the execution is over. Each role looks at what
//! it retired itself, when it retires and when it says ([`Role::pass`]).

use super::*;
use crate::overflow;
use crate::slot::{Held, RESERVED, is_address};
use crate::structures::keep::{Keeper, Life};
use core::cell::RefCell;
use percpu::sync::atomic::{AtomicUsize, Ordering};

/// Words of a role: a walk's two, a successor, and one to hold.
const WORDS: usize = 3;

/// What the roles share.
pub(super) struct Words {
    words: Box<[[AtomicUsize; WORDS]]>,
    /// What each role retired: nodes that live, and others. (loom runs one
    /// thread at a time.)
    alive: Box<[RefCell<Vec<Retired>>]>,
    ended: RefCell<Vec<Retired>>,
    /// A role whose retirements look at no slot; see [`Words::lazy`].
    lazy: Cell<Option<usize>>,
}

impl Words {
    pub(super) fn new(roles: usize) -> Self {
        let word = |_| AtomicUsize::new(FREE);
        Self {
            words: (0..roles).map(|_| std::array::from_fn(word)).collect(),
            alive: (0..roles).map(|_| RefCell::default()).collect(),
            ended: RefCell::default(),
            lazy: Cell::new(None),
        }
    }

    /// Retiring is no more than a push for this role, as it is nearly always.
    /// Otherwise each looks at all slots, and takes by Acquire what the other
    /// roles did before they filled them: then nobody would miss the orderings
    /// by which one role's entries reach another.
    pub(super) fn lazy(&self, role: usize) {
        self.lazy.set(Some(role));
    }

    pub(super) fn role(&self, role: usize) -> Role<'_> {
        Role { all: self, role }
    }

    fn protects(&self, address: usize) -> bool {
        let mut found = false;
        for word in self.words.iter().flatten() {
            // Acquire: as in a scan.
            let word = word.load(Ordering::Acquire);
            found |= is_address(word) && word == address;
        }
        found
    }

    /// How many nodes were retired; frees their memory.
    pub(super) fn free_all(&self) -> usize {
        let mut waiting = self.ended.take();
        for alive in &self.alive {
            waiting.append(&mut alive.borrow_mut());
        }
        let count = waiting.len();
        let mut addresses: Vec<_> = waiting.iter().map(Retired::address).collect();
        addresses.sort_unstable();
        addresses.dedup();
        assert_eq!(addresses.len(), count, "retired twice");
        for node in waiting {
            // SAFETY: the roles are over, and each was retired once.
            unsafe { node.reclaim() };
        }
        count
    }
}

/// One role's share.
pub(super) struct Role<'a> {
    all: &'a Words,
    role: usize,
}

impl Role<'_> {
    /// Ends the life of what this role retired and nobody protects.
    pub(super) fn pass(&self) {
        let batch = self.all.alive[self.role].take();
        if batch.is_empty() || self.all.lazy.get() == Some(self.role) {
            self.all.alive[self.role].borrow_mut().extend(batch);
            return;
        }
        heavy().unwrap();
        for node in batch {
            if self.all.protects(node.address()) {
                self.all.alive[self.role].borrow_mut().push(node);
            } else {
                // SAFETY: nodes begin with their life, and their memory is kept.
                unsafe { &*node.pointer().cast::<Life>() }.end();
                self.all.ended.borrow_mut().push(node);
            }
        }
    }

    fn protects(&self, address: usize) -> bool {
        // Relaxed: only this role stores to it.
        self.all.words[self.role]
            .iter()
            .any(|word| word.load(Ordering::Relaxed) == address)
    }

    fn free_word(&self) -> &AtomicUsize {
        let mut words = self.all.words[self.role].iter();
        // Relaxed: only this role stores to it.
        words
            .find(|word| word.load(Ordering::Relaxed) == FREE)
            .expect("a free word")
    }
}

impl Keeper for Role<'_> {
    fn protect(&self, src: &AtomicPtr<()>) -> Option<(Held, NonNull<()>)> {
        let word = self.free_word();
        let value = overflow::fill(src, word, ALL_BITS, FREE).ok()?;
        Some((Held(SlotRef::percpu(NonNull::from(word))), value))
    }

    fn refill(&self, slot: &mut Held, src: &AtomicPtr<()>) -> Option<NonNull<()>> {
        overflow::fill(src, slot.0.word(), ALL_BITS, RESERVED).ok()
    }

    fn hold(&self, address: NonNull<()>) -> Held {
        let word = self.free_word();
        // Release: "Publish".
        word.store(address.addr().get(), Ordering::Release);
        Held(SlotRef::percpu(NonNull::from(word)))
    }

    fn retire(&self, node: Retired) {
        let own = self.protects(node.address());
        self.all.alive[self.role].borrow_mut().push(node);
        // What it protects itself cannot go yet.
        if !own {
            self.pass();
        }
    }
}
