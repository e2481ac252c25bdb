//! The nodes of the skip list, and walks over its levels.
//!
//! Floor 3 (`structures`). Owns nodes, their counts, and how a level is walked; `skip` owns the operations.
//!
//! # What protects a node
//!
//! As in `chain`, on each level by itself: a walk stands on a node, and what `protect` finds in that node's `next` on a
//! level, without a mark, is linked on that level, so it was not retired. Going down a level needs no new look: a node
//! that was reached on a level is linked below it until it has a mark there, which the next `protect` sees.
//!
//! A walk that records its *ways* (the last node before the key on each level) keeps their slots: it takes another slot
//! for the first step on each level, since the node stood on is the way of the level above. Otherwise two slots change
//! roles.
//!
//! # Orderings
//!
//! | name | access | pairs with |
//! |---|---|---|
//! | "Link" | exchange of the predecessor's `next` on a level, Release | the Acquire of whoever finds the node there: `protect`, "Look" |
//! | "Look" | load of a node's `next`, Acquire | "Link", "Mark", "Unlink" |
//! | "Mark" | exchange of the node's own `next` on a level, AcqRel | Release: a mark is seen with those on the levels above; Acquire: as "Look", and "Check" |
//! | "Unlink" | exchange of the predecessor's `next` on a level, AcqRel | Release carries "Link" of the one behind on; Acquire comes before "Drop" |
//! | "Drop" | one link less, AcqRel | itself: whoever takes the last one comes after all that others did |

use crate::fault::{Fault, pause, planted};
use crate::map::{is_marked, marked};
use crate::scheme::{Guard, Scheme, untagged};
use crate::{Census, Life, Node};
use percpu::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::AtomicU64;

/// Levels. A quarter of a level's nodes are on the next: enough for millions.
pub(crate) const HEIGHT: usize = 10;

/// Random bits that decide whether a node goes one level up. Tests want high nodes.
const BITS: u32 = if cfg!(any(test, miri)) { 1 } else { 2 };

/// Slots: two, one more for each level but the first, and two for linking above level 0.
pub(crate) const SLOTS: usize = 2 + (HEIGHT - 1) + 2;

/// The first of those for linking.
const SPARE: usize = SLOTS - 2;

#[repr(C)]
pub(crate) struct Tower {
    next: AtomicPtr<Tower>,
    above: Box<[AtomicPtr<Tower>]>,
    /// Levels that it is linked on, and the inserter while it links.
    links: AtomicUsize,
    pub(crate) key: u64,
    pub(crate) value: u64,
    pub(crate) life: Life,
}

impl Node for Tower {
    fn life(&self) -> &Life {
        &self.life
    }
}

impl Tower {
    /// A node of a random height, with a link on level 0 to `behind`.
    pub(crate) fn new(key: u64, value: u64, behind: *mut Tower, census: &'static Census) -> Self {
        let above: Box<[_]> = (1..random_height())
            .map(|_| AtomicPtr::new(ptr::null_mut()))
            .collect();
        // A low node is linked when it is on level 0; nothing is left to do for the inserter.
        let inserter = usize::from(!above.is_empty() && !planted(Fault::Uncounted));
        Tower {
            next: AtomicPtr::new(behind),
            links: AtomicUsize::new(1 + inserter),
            key,
            value,
            life: Life::new(census, size_of::<Tower>() + size_of_val(&*above)),
            above,
        }
    }

    pub(crate) fn height(&self) -> usize {
        1 + self.above.len()
    }

    /// What is behind it on `level`.
    #[inline(always)]
    pub(crate) fn next(&self, level: usize) -> &AtomicPtr<Tower> {
        match level {
            0 => &self.next,
            _ => &self.above[level - 1],
        }
    }

    /// Marks `level`; says whether this thread did.
    #[inline(always)]
    pub(crate) fn mark(&self, level: usize) -> bool {
        let word = self.next(level);
        pause();
        // Relaxed: the exchange makes sure.
        let mut next = word.load(Ordering::Relaxed);
        while !is_marked(next) {
            // AcqRel: "Mark". Acquire on failure: "Look", if it is another's mark.
            match word.compare_exchange_weak(
                next,
                marked(next),
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => return true,
                Err(now) => next = now,
            }
        }
        false
    }
}

/// From 1 to [`HEIGHT`].
fn random_height() -> usize {
    /// Another start for each thread.
    static SEED: AtomicU64 = AtomicU64::new(1);
    thread_local! {
        static STATE: Cell<u64> = const { Cell::new(0) };
    }
    const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;
    let state = match STATE.get() {
        // Relaxed: any number will do.
        0 => SEED.fetch_add(2, std::sync::atomic::Ordering::Relaxed),
        state => state,
    }
    .wrapping_add(GOLDEN);
    STATE.set(state);
    // The finisher of splitmix64 (Steele, Lea, Flood 2014).
    let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    let up = (mixed ^ (mixed >> 31)).trailing_zeros() / BITS;
    1 + (up as usize).min(HEIGHT - 1)
}

/// The levels of a list whose heads somebody else owns.
#[derive(Clone, Copy)]
pub(crate) struct Towers<'a> {
    pub(crate) heads: &'a [AtomicPtr<Tower>; HEIGHT],
    /// Levels that may be in use.
    pub(crate) height: &'a AtomicUsize,
    pub(crate) census: &'static Census,
}

/// Where a walk stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// Null: at the head.
    pub(crate) node: *mut Tower,
    /// Its slot, or one that is free.
    here: usize,
    /// Whether `here` is of no use any more after the next step.
    passing: bool,
    /// The slot for the next node.
    ahead: usize,
    /// The first slot not yet taken.
    fresh: usize,
}

impl Place {
    /// At the head.
    pub(crate) const fn start() -> Self {
        Place {
            node: ptr::null_mut(),
            here: 0,
            passing: true,
            ahead: 1,
            fresh: 2,
        }
    }

    /// At a way that a walk has recorded, with slots apart from the walk's.
    pub(crate) const fn at(way: *mut Tower) -> Self {
        Place {
            node: way,
            here: SPARE,
            passing: true,
            ahead: SPARE + 1,
            fresh: SLOTS,
        }
    }

    /// On to `node`, which is in the slot `ahead`.
    #[inline(always)]
    pub(crate) fn step(&mut self, node: *mut Tower) {
        self.node = node;
        let mut free = self.here;
        if !self.passing {
            free = self.fresh;
            self.fresh += 1;
            self.passing = true;
        }
        self.here = self.ahead;
        self.ahead = free;
    }

    /// Keeps the slot of the node stood on.
    #[inline(always)]
    fn settle(&mut self) {
        self.passing = self.node.is_null();
    }
}

/// The node stood on has been removed.
#[derive(Debug)]
pub(crate) struct Lost;

/// How a key was reached.
#[derive(Debug)]
pub(crate) struct Walk {
    /// The last node before the key, on each level; null: the head. Protected, if recorded.
    pub(crate) ways: [*mut Tower; HEIGHT],
    /// The last of them, on level 0.
    pub(crate) place: Place,
    /// The first node whose key is not less, protected, or null.
    pub(crate) node: *mut Tower,
    /// Whether its key is the one looked for.
    pub(crate) found: bool,
}

impl<'a> Towers<'a> {
    /// The word that names what is behind `node`, or first, on `level`.
    ///
    /// # Safety
    ///
    /// `node` is null, or stays alive as long as the word is used, and is higher than `level`.
    #[inline(always)]
    pub(crate) unsafe fn word(self, node: *mut Tower, level: usize) -> &'a AtomicPtr<Tower> {
        // SAFETY: the caller's.
        match unsafe { node.as_ref() } {
            Some(tower) => tower.next(level),
            None => &self.heads[level],
        }
    }

    /// The first node from `place` on that is not removed and whose key is at least `key`, protected, or null. Removed ones
    /// are unlinked on the way.
    #[inline(always)]
    pub(crate) fn advance<G: Guard>(
        self,
        guard: &mut G,
        place: &mut Place,
        level: usize,
        key: u64,
    ) -> Result<*mut Tower, Lost> {
        loop {
            // SAFETY: the node stood on is protected, and was reached on this level or one above.
            let word = unsafe { self.word(place.node, level) };
            let mut node = if planted(Fault::Unprotected) {
                word.load(Ordering::Acquire)
            } else {
                guard.protect(place.ahead, word)
            };
            pause();
            let lost = is_marked(node);
            if lost {
                if !planted(Fault::Unvalidated) {
                    return Err(Lost);
                }
                node = untagged(node);
            }
            // SAFETY: null, or protected: the word had no mark when `protect` found the node in it; see the module.
            let Some(tower) = (unsafe { node.as_ref() }) else {
                return Ok(node);
            };
            self.census.look(&tower.life);
            // Acquire: "Look".
            let next = tower.next(level).load(Ordering::Acquire);
            // The second half of the fault: nothing can be unlinked behind a mark.
            if is_marked(next) && !(planted(Fault::Unvalidated) && lost) {
                self.unlink(guard, word, node, next);
            } else if tower.key < key {
                place.step(node);
            } else {
                return Ok(node);
            }
        }
    }

    /// Leads `word` past the marked `node` on a level; says whether this thread did.
    #[inline(always)]
    pub(crate) fn unlink<G: Guard>(
        self,
        guard: &mut G,
        word: &AtomicPtr<Tower>,
        node: *mut Tower,
        next: *mut Tower,
    ) -> bool {
        pause();
        // AcqRel: "Unlink". Relaxed on failure: looked at again. `node` is protected, so no other has its address.
        let done = word
            .compare_exchange(node, untagged(next), Ordering::AcqRel, Ordering::Relaxed)
            .is_ok();
        if done {
            // SAFETY: this thread alone led this level past it.
            unsafe { drop_link(guard, node) };
        }
        done
    }

    /// The way to `key` from the top. With `RECORD`, the ways are kept; without, the walk ends where the key is seen first.
    #[inline(always)]
    pub(crate) fn find<const RECORD: bool, G: Guard>(self, guard: &mut G, key: u64) -> Walk {
        'anew: loop {
            let mut walk = Walk {
                ways: [ptr::null_mut(); HEIGHT],
                place: Place::start(),
                node: ptr::null_mut(),
                found: false,
            };
            // Relaxed: a level missed is a longer way, and perhaps a removed node that the next walk unlinks.
            let height = self.height.load(Ordering::Relaxed);
            for level in (0..height).rev() {
                let Ok(node) = self.advance(guard, &mut walk.place, level, key) else {
                    continue 'anew;
                };
                walk.node = node;
                // SAFETY: null, or protected by `advance`.
                let tower = unsafe { node.as_ref() };
                walk.found = tower.is_some_and(|tower| tower.key == key);
                if RECORD {
                    walk.ways[level] = walk.place.node;
                    walk.place.settle();
                } else if level > 0
                    && let Some(tower) = tower.filter(|_| walk.found)
                {
                    // Without a mark here it had none on level 0 a moment ago, so it was in the map. If it has one now,
                    // the key was gone at that moment. Acquire: "Look".
                    walk.found = !is_marked(tower.next.load(Ordering::Acquire));
                    return walk;
                }
            }
            return walk;
        }
    }
}

/// One link of `node` less; retires it after the last.
///
/// # Safety
///
/// The link was the caller's: a level that it led past the node, or the inserter's.
#[inline(always)]
pub(crate) unsafe fn drop_link<G: Guard>(guard: &mut G, node: *mut Tower) {
    pause();
    // SAFETY: the link that is dropped kept it from being retired. AcqRel: "Drop".
    if unsafe { (*node).links.fetch_sub(1, Ordering::AcqRel) } == 1 {
        // SAFETY: from `alloc`; it is on no level, and no inserter will link it; only one thread takes the last link.
        unsafe { guard.retire(node) };
    }
}

/// One link of `node` more.
///
/// # Safety
///
/// The caller is its inserter, and has a link.
#[inline(always)]
pub(crate) unsafe fn add_link(node: *mut Tower) {
    // SAFETY: the caller's link keeps it. Relaxed: it is not the first one.
    unsafe { (*node).links.fetch_add(1, Ordering::Relaxed) };
}

/// Frees what is linked.
///
/// # Safety
///
/// The levels are of nodes from `S::alloc`, and nobody else has them.
pub(crate) unsafe fn free_all<S: Scheme>(heads: &mut [AtomicPtr<Tower>; HEIGHT]) {
    for (level, head) in heads.iter_mut().enumerate() {
        // Relaxed: nobody else has it, here and below.
        let mut next = head.load(Ordering::Relaxed);
        while !next.is_null() {
            let node = untagged(next);
            // SAFETY: the caller's; a node is freed with its last link, and its links are the levels that it is on.
            unsafe {
                next = untagged((*node).next(level).load(Ordering::Relaxed));
                if (*node).links.fetch_sub(1, Ordering::Relaxed) == 1 {
                    S::free(node);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_has_slots_enough() {
        // A first step from a way that is kept, on each level.
        let mut place = Place::start();
        let mut node = ptr::null_mut::<Tower>();
        let mut kept = Vec::new();
        for _ in 0..HEIGHT {
            for _ in 0..3 {
                node = node.wrapping_byte_add(64);
                place.step(node);
                assert!(!kept.contains(&place.here) && !kept.contains(&place.ahead));
                assert_ne!(place.here, place.ahead);
            }
            place.settle();
            kept.push(place.here);
        }
        assert_eq!(place.fresh, SPARE);
    }

    #[test]
    fn heights_halve() {
        let mut of = [0; HEIGHT + 1];
        for _ in 0..4096 {
            of[random_height()] += 1;
        }
        assert_eq!(of[0], 0);
        assert!((1850..2250).contains(&of[1]), "{of:?}");
        assert!((900..1150).contains(&of[2]), "{of:?}");
        assert!(of[HEIGHT] > 0, "{of:?}");
    }
}
