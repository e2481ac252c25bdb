//! Harris and Michael's ordered chain: the list, and each bucket of the hash map.
//!
//! Floor 3 (`structures`). Owns the nodes and the algorithm; `list` and `hash` own heads.
//!
//! Removing is done in two steps. The *mark* in a node's own `next` says that it is removed, and keeps anything from being
//! linked behind it; then its predecessor's `next` is led past it. Whoever finds a marked node does the second step for the
//! remover, and whoever did it retires the node: one exchange succeeds, so one thread retires.
//!
//! # What protects a node
//!
//! A walk stands on a protected node and protects the one that its `next` names. `protect` returns what it found there
//! while the slot was filled. If that has no mark, the node stood on was not removed then, so it was linked, and so was the
//! next one: it had not been retired. If it has a mark, nothing is known of what comes behind, and the walk begins again
//! from the head. This is all the validation there is; a walk needs two slots, which change roles at each step.
//!
//! Schemes that keep everything need none of it for reading. A removed node that was linked when the operation began leads
//! to nodes that were linked then or later: its `next` is frozen, and as long as it is linked itself nobody can unlink the
//! one behind it (that takes an exchange of a `next` without a mark). So readers walk on, over marks, and never begin anew.
//!
//! # Orderings
//!
//! | name | access | pairs with |
//! |---|---|---|
//! | "Link" | exchange of the predecessor's `next`, Release | the Acquire of whoever finds the node: `protect`, "Look" |
//! | "Look" | load of a node's `next`, Acquire | "Link", "Mark", "Unlink": what it names is written, what it leads to may be published by "Unlink" in turn |
//! | "Mark" | exchange of the node's own `next`, AcqRel | Release: whoever sees the mark sees what the remover did before; Acquire: as "Look" |
//! | "Unlink" | exchange of the predecessor's `next`, AcqRel | Release carries "Link" of the one behind on; Acquire comes before the retirement |

use crate::fault::{Fault, pause, planted};
use crate::map::{Scan, is_marked, keeps_everything, marked};
use crate::scheme::{Guard, Scheme, untagged};
use crate::{Census, Life, Node};
use percpu::sync::atomic::{AtomicPtr, Ordering};
use std::ptr;

/// Slots of a thread: the node stood on, and the next.
pub(crate) const SLOTS: usize = 2;

#[repr(C)]
pub(crate) struct Entry {
    next: AtomicPtr<Entry>,
    key: u64,
    value: u64,
    life: Life,
}

impl Node for Entry {
    fn life(&self) -> &Life {
        &self.life
    }
}

/// A chain whose head somebody else owns.
#[derive(Clone, Copy)]
pub(crate) struct Chain<'a> {
    pub(crate) head: &'a AtomicPtr<Entry>,
    pub(crate) census: &'static Census,
}

/// Where a walk stands: the word that names the next node, and the slots.
struct Cursor<'a> {
    word: &'a AtomicPtr<Entry>,
    here: usize,
    next: usize,
}

/// What a walk found.
enum Found {
    /// A node that was not removed when it was looked at, protected; and its `next` then.
    Node(*mut Entry, *mut Entry),
    /// The end.
    End,
    /// The node stood on has been removed.
    Lost,
}

/// Where a key is or would be.
struct Place<'a> {
    word: &'a AtomicPtr<Entry>,
    /// The first node whose key is not less, protected, or null.
    node: *mut Entry,
    /// Its `next`.
    next: *mut Entry,
    /// Whether its key is the one looked for.
    found: bool,
}

impl<'a> Chain<'a> {
    fn start(self) -> Cursor<'a> {
        Cursor {
            word: self.head,
            here: 0,
            next: 1,
        }
    }

    /// The next node that is not removed. Those that are, are unlinked on the way.
    #[inline(always)]
    fn look<G: Guard>(self, guard: &mut G, cursor: &Cursor<'a>) -> Found {
        loop {
            let mut node = if planted(Fault::Unprotected) {
                cursor.word.load(Ordering::Acquire)
            } else {
                guard.protect(cursor.next, cursor.word)
            };
            pause();
            let lost = is_marked(node);
            if lost {
                if !planted(Fault::Unvalidated) {
                    return Found::Lost;
                }
                node = untagged(node);
            }
            // SAFETY: null, or protected: the word had no mark when `protect` found the node in it; see the module.
            let Some(entry) = (unsafe { node.as_ref() }) else {
                return Found::End;
            };
            self.census.look(&entry.life);
            // Acquire: "Look".
            let next = entry.next.load(Ordering::Acquire);
            // The second half of the fault: nothing can be unlinked behind a mark.
            if !is_marked(next) || (planted(Fault::Unvalidated) && lost) {
                return Found::Node(node, next);
            }
            self.unlink(guard, cursor.word, node, next);
        }
    }

    /// Leads `word` past the marked `node`; says whether this thread did.
    #[inline(always)]
    fn unlink<G: Guard>(
        self,
        guard: &mut G,
        word: &AtomicPtr<Entry>,
        node: *mut Entry,
        next: *mut Entry,
    ) -> bool {
        pause();
        // AcqRel: "Unlink". Relaxed on failure: looked at again. `node` is protected, so no other has its address.
        let done = word
            .compare_exchange(node, untagged(next), Ordering::AcqRel, Ordering::Relaxed)
            .is_ok();
        if done {
            // SAFETY: from `alloc`; marked, so that nothing can link it again, and led past by this thread alone.
            unsafe { guard.retire(node) };
        }
        done
    }

    /// The first node whose key is at least `key`.
    #[inline(always)]
    fn find<G: Guard>(self, guard: &mut G, key: u64) -> Place<'a> {
        let mut cursor = self.start();
        loop {
            let (node, next, found) = match self.look(guard, &cursor) {
                Found::Lost => {
                    cursor = self.start();
                    continue;
                }
                Found::Node(node, next) => {
                    // SAFETY: protected, and stays so while the cursor stands on it.
                    let entry: &'a Entry = unsafe { &*node };
                    if entry.key < key {
                        cursor = cursor.step(entry);
                        continue;
                    }
                    (node, next, entry.key == key)
                }
                Found::End => (ptr::null_mut(), ptr::null_mut(), false),
            };
            return Place {
                word: cursor.word,
                node,
                next,
                found,
            };
        }
    }

    /// The value under `key`.
    #[inline(always)]
    pub(crate) fn get<S: Scheme, G: Guard>(self, guard: &mut G, key: u64) -> Option<u64> {
        if keeps_everything::<S>() {
            let mut next = guard.protect(0, self.head);
            // SAFETY: null, or kept by the guard; see the module.
            while let Some(entry) = unsafe { untagged(next).as_ref() } {
                self.census.look(&entry.life);
                // Acquire: "Look".
                next = guard.protect(0, &entry.next);
                if entry.key >= key {
                    return (entry.key == key && !is_marked(next)).then_some(entry.value);
                }
            }
            return None;
        }
        let place = self.find(guard, key);
        // SAFETY: protected by `find`.
        place.found.then(|| unsafe { (*place.node).value })
    }

    /// Puts `value` under `key`, if nothing is there.
    #[inline(always)]
    pub(crate) fn insert<S: Scheme, G: Guard>(self, guard: &mut G, key: u64, value: u64) -> bool {
        let mut new: *mut Entry = ptr::null_mut();
        loop {
            let place = self.find(guard, key);
            if place.found {
                if !new.is_null() {
                    // SAFETY: from `alloc`, and never published.
                    unsafe { S::free(new) };
                }
                return false;
            }
            if new.is_null() {
                new = S::alloc(Entry {
                    next: AtomicPtr::new(place.node),
                    key,
                    value,
                    life: Life::new(self.census, size_of::<Entry>()),
                });
            } else {
                // SAFETY: not published yet. Relaxed: "Link" publishes it.
                unsafe { (*new).next.store(place.node, Ordering::Relaxed) };
            }
            pause();
            // Release: "Link". Relaxed on failure: found again. What is behind is protected, so it is no other node at the
            // same address; the word had a mark if the one before were removed.
            if place
                .word
                .compare_exchange(place.node, new, Ordering::Release, Ordering::Relaxed)
                .is_ok()
            {
                return true;
            }
        }
    }

    /// Takes out what is under `key`.
    #[inline(always)]
    pub(crate) fn remove<G: Guard>(self, guard: &mut G, key: u64) -> Option<u64> {
        loop {
            let place = self.find(guard, key);
            if !place.found {
                return None;
            }
            // SAFETY: protected by `find`, until the next one.
            let entry = unsafe { &*place.node };
            let value = entry.value;
            pause();
            // AcqRel: "Mark". Relaxed on failure: found again.
            if !planted(Fault::Unmarked)
                && entry
                    .next
                    .compare_exchange(
                        place.next,
                        marked(place.next),
                        Ordering::AcqRel,
                        Ordering::Relaxed,
                    )
                    .is_err()
            {
                continue;
            }
            if !self.unlink(guard, place.word, place.node, place.next) {
                if planted(Fault::RetiredTwice) {
                    // SAFETY: none: this is the fault. The schemes that it is planted under notice.
                    unsafe { guard.retire(place.node) };
                }
                // Somebody else did, or the word has changed: a walk to there sees to it.
                self.find(guard, key);
            }
            return Some(value);
        }
    }

    /// The first node, protected, or null.
    pub(crate) fn first<G: Guard>(self, guard: &mut G) -> *mut Entry {
        // A head has no mark, so the node was linked when `protect` found it there.
        guard.protect(0, self.head)
    }

    /// Looks at a node.
    ///
    /// # Safety
    ///
    /// It is null, or protected.
    pub(crate) unsafe fn look_at(self, node: *mut Entry) {
        // SAFETY: the caller's.
        if let Some(entry) = unsafe { node.as_ref() } {
            self.census.look(&entry.life);
        }
    }

    /// Visits all elements.
    pub(crate) fn scan<S: Scheme, G: Guard>(
        self,
        guard: &mut G,
        mut visit: impl FnMut(u64, u64),
    ) -> Scan {
        let mut scan = Scan::default();
        if keeps_everything::<S>() {
            let mut next = guard.protect(0, self.head);
            // SAFETY: null, or kept by the guard; see the module.
            while let Some(entry) = unsafe { untagged(next).as_ref() } {
                self.census.look(&entry.life);
                // Acquire: "Look".
                next = guard.protect(0, &entry.next);
                if !is_marked(next) {
                    visit(entry.key, entry.value);
                    scan.elements += 1;
                }
            }
            return scan;
        }
        let mut cursor = self.start();
        let mut last = None;
        loop {
            match self.look(guard, &cursor) {
                Found::Lost => {
                    cursor = self.start();
                    scan.restarts += 1;
                }
                Found::End => return scan,
                Found::Node(node, _) => {
                    // SAFETY: protected, and stays so while the cursor stands on it.
                    let entry: &'a Entry = unsafe { &*node };
                    // After a new beginning, what has been visited is passed over.
                    if last.is_none_or(|last| last < entry.key) {
                        visit(entry.key, entry.value);
                        scan.elements += 1;
                        last = Some(entry.key);
                    }
                    cursor = cursor.step(entry);
                }
            }
        }
    }
}

impl<'a> Cursor<'a> {
    /// On to `entry`, which is in the slot `next`. The slots change roles.
    #[inline(always)]
    fn step(self, entry: &'a Entry) -> Self {
        Cursor {
            word: &entry.next,
            here: self.next,
            next: self.here,
        }
    }
}

/// Frees what is linked.
///
/// # Safety
///
/// The chain that begins at `head` is of nodes from `S::alloc`, and nobody else has it.
pub(crate) unsafe fn free_all<S: Scheme>(head: &mut AtomicPtr<Entry>) {
    // Relaxed: nobody else has it.
    let mut next = head.load(Ordering::Relaxed);
    while !next.is_null() {
        let node = untagged(next);
        // SAFETY: the caller's; each node is linked once. A marked one that is still linked has not been retired.
        unsafe {
            next = untagged((*node).next.load(Ordering::Relaxed));
            S::free(node);
        }
    }
}
