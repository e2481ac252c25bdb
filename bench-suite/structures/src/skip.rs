//! The skip list: ordered chains, each a sparser copy of the one below.
//!
//! Floor 3 (`structures`). Owns the map's operations; nodes and walks are `tower`'s. Sources: Pugh 1990; Fraser 2004; Herlihy
//! and Shavit's book, chapter 14. The counting is that of reference counts on links, as crossbeam's skip list has it.
//!
//! A node is in the chains of level 0 to its height. It is in the map from when it is linked on level 0 until its `next`
//! there is marked; the levels above are only ways to it. It is linked from below to above and marked from above to below.
//! So a node that has no mark on a level, and is linked there, is linked on all levels below.
//!
//! # Retired once
//!
//! A node counts who may still have a use for it as a part of the list: one for each level that it is linked on, and one for
//! the inserter while it links. The inserter counts a level before it tries to link it. Whoever leads a chain past the
//! node takes one off, and so does the inserter when it has done; whoever takes the last one retires the node. By then it
//! is on no level and comes to none.
//!
//! # No node is left behind
//!
//! A removal marks all levels and then walks to the key, which unlinks whatever is marked on the way. The inserter of the
//! same node may link one more level behind its back. So after the last level it looks at its node's topmost `next`, the
//! first that a removal marks, by an exchange ("Check"): either it sees the mark, and walks itself, or the mark comes after,
//! acquires "Check" and the links before it, and the removal's walk finds them.
//!
//! # Orderings
//!
//! Those of `tower`, and:
//!
//! | name | access | pairs with |
//! |---|---|---|
//! | "Check" | exchange of the new node's topmost `next` by itself, AcqRel | "Mark" of the same word: one of the two sees the other |
//! | "Aim" | exchange of the new node's own `next` on a level, before it is linked there, Relaxed | "Mark" of the same word; "Link" publishes it |

use crate::fault::{Fault, pause, planted};
use crate::map::{Map, Scan, is_marked, keeps_everything};
use crate::scheme::{Guard, Scheme, Thread, untagged};
use crate::tower::{self, HEIGHT, Lost, Place, SLOTS, Tower, Towers, Walk, add_link, drop_link};
use crate::{Census, Kind};
use percpu::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::fmt;
use std::ptr;

/// A skip list.
pub struct SkipList<S: Scheme> {
    heads: [AtomicPtr<Tower>; HEIGHT],
    /// Levels that may be in use.
    height: AtomicUsize,
    census: &'static Census,
    scheme: S,
}

impl<S: Scheme> fmt::Debug for SkipList<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SkipList over {}", S::ABOUT.name)
    }
}

impl<S: Scheme> SkipList<S> {
    #[inline(always)]
    fn towers(&self) -> Towers<'_> {
        Towers {
            heads: &self.heads,
            height: &self.height,
            census: self.census,
        }
    }

    /// Links `node`, which is on level 0, on the levels above, unless it is removed meanwhile. Ends the inserter's link.
    ///
    /// # Safety
    ///
    /// The caller is the node's inserter and has a link; `walk` recorded the ways to its key.
    unsafe fn raise<G: Guard>(&self, guard: &mut G, mut walk: Walk, node: *mut Tower) {
        // SAFETY: the inserter's link keeps it, here and below.
        let (key, height) = unsafe { ((*node).key, (*node).height()) };
        // Relaxed: a hint.
        if self.height.load(Ordering::Relaxed) < height {
            self.height.fetch_max(height, Ordering::Relaxed);
        }
        pause();
        let mut level = 1;
        while level < height {
            // SAFETY: as above; the way is protected by the walk.
            match unsafe { self.link(guard, walk.ways[level], level, node) } {
                Ok(Linked::Yes) => level += 1,
                Ok(Linked::Removed) => break,
                Err(Lost) => {
                    walk = self.towers().find::<true, G>(guard, key);
                    if walk.node != node {
                        break;
                    }
                }
            }
        }
        pause();
        // SAFETY: as above.
        let tower = unsafe { &*node };
        self.census.look(&tower.life);
        let top = tower.next(height - 1);
        if !planted(Fault::Unchecked) && check(top) {
            self.towers().find::<true, G>(guard, key);
        }
        if !planted(Fault::Uncounted) {
            // SAFETY: the inserter's own.
            unsafe { drop_link(guard, node) };
        }
    }

    /// Links `node` on `level`, behind `way` or what has come behind that.
    ///
    /// # Safety
    ///
    /// As for [`raise`](Self::raise); `way` is null, or protected and was found on `level` before the node's key.
    #[inline(always)]
    unsafe fn link<G: Guard>(
        &self,
        guard: &mut G,
        way: *mut Tower,
        level: usize,
        node: *mut Tower,
    ) -> Result<Linked, Lost> {
        // SAFETY: the inserter's link keeps it.
        let (own, key) = unsafe { ((*node).next(level), (*node).key) };
        let mut place = Place::at(way);
        loop {
            let behind = self.towers().advance(guard, &mut place, level, key)?;
            pause();
            // Relaxed: only this thread and "Mark" change it.
            let aim = own.load(Ordering::Relaxed);
            // Relaxed: "Aim".
            if is_marked(aim)
                || own
                    .compare_exchange(aim, behind, Ordering::Relaxed, Ordering::Relaxed)
                    .is_err()
            {
                return Ok(Linked::Removed);
            }
            // SAFETY: the place is protected, and was reached on this level.
            let word = unsafe { self.towers().word(place.node, level) };
            // SAFETY: this thread is the inserter, and has a link. Counted before it can be found on this level.
            unsafe { add_link(node) };
            pause();
            // Release: "Link". Relaxed on failure: looked at again.
            if word
                .compare_exchange(behind, node, Ordering::Release, Ordering::Relaxed)
                .is_ok()
            {
                return Ok(Linked::Yes);
            }
            // SAFETY: not linked, so the link is this thread's still.
            unsafe { drop_link(guard, node) };
        }
    }
}

/// Whether a node is on one more level.
enum Linked {
    /// It is.
    Yes,
    /// It is removed, and comes to no more levels.
    Removed,
}

/// Whether a removal has marked `top`. If not, one that does so later comes after all that this thread did.
#[inline(always)]
fn check(top: &AtomicPtr<Tower>) -> bool {
    // Relaxed: the exchange makes sure, and a mark stays.
    let seen = top.load(Ordering::Relaxed);
    // AcqRel: "Check". Only "Mark" can come in between. Relaxed on failure: the walk that follows acquires what it finds.
    is_marked(seen)
        || top
            .compare_exchange(seen, seen, Ordering::AcqRel, Ordering::Relaxed)
            .is_err()
}

impl<S: Scheme> Map for SkipList<S> {
    type Scheme = S;

    type Thread<'a> = S::Thread<'a, SLOTS>;

    const KIND: Kind = Kind::Skip;

    fn new(_: usize, census: &'static Census) -> Self {
        SkipList {
            heads: std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
            height: AtomicUsize::new(1),
            census,
            scheme: S::new(),
        }
    }

    fn thread(&self) -> Self::Thread<'_> {
        self.scheme.thread()
    }

    #[inline]
    fn get(&self, thread: &mut Self::Thread<'_>, key: u64) -> Option<u64> {
        let mut guard = thread.pin();
        if keeps_everything::<S>() {
            return self.get_over_marks(&mut guard, key);
        }
        let walk = self.towers().find::<false, _>(&mut guard, key);
        // SAFETY: protected by `find`.
        walk.found.then(|| unsafe { (*walk.node).value })
    }

    #[inline]
    fn insert(&self, thread: &mut Self::Thread<'_>, key: u64, value: u64) -> bool {
        let mut guard = thread.pin();
        let mut new: *mut Tower = ptr::null_mut();
        loop {
            let walk = self.towers().find::<true, _>(&mut guard, key);
            if walk.found {
                if !new.is_null() {
                    // SAFETY: from `alloc`, and never published.
                    unsafe { S::free(new) };
                }
                return false;
            }
            if new.is_null() {
                new = S::alloc(Tower::new(key, value, walk.node, self.census));
            } else {
                // SAFETY: not published yet. Relaxed: "Link" publishes it.
                unsafe { (*new).next(0).store(walk.node, Ordering::Relaxed) };
            }
            // SAFETY: not published yet.
            let height = unsafe { (*new).height() };
            // SAFETY: protected by the walk.
            let word = unsafe { self.towers().word(walk.place.node, 0) };
            pause();
            // Release: "Link". Relaxed on failure: found again.
            if word
                .compare_exchange(walk.node, new, Ordering::Release, Ordering::Relaxed)
                .is_ok()
            {
                if height > 1 {
                    // SAFETY: this thread is the inserter, and a high node is born with the inserter's link.
                    unsafe { self.raise(&mut guard, walk, new) };
                }
                return true;
            }
        }
    }

    #[inline]
    fn remove(&self, thread: &mut Self::Thread<'_>, key: u64) -> Option<u64> {
        let mut guard = thread.pin();
        let walk = self.towers().find::<true, _>(&mut guard, key);
        if !walk.found {
            return None;
        }
        // SAFETY: protected by `find`, until the next one.
        let tower = unsafe { &*walk.node };
        let (value, height) = (tower.value, tower.height());
        if !planted(Fault::Unmarked) {
            for level in (1..height).rev() {
                tower.mark(level);
            }
            if !tower.mark(0) {
                // Another has removed it since.
                return None;
            }
        }
        let mut left = false;
        for level in (0..height).rev() {
            // Relaxed: marked, so it does not change any more; "Mark" has acquired it.
            let next = tower.next(level).load(Ordering::Relaxed);
            // SAFETY: the ways are protected by the walk.
            let word = unsafe { self.towers().word(walk.ways[level], level) };
            left |= !self.towers().unlink(&mut guard, word, walk.node, next);
        }
        if left {
            if planted(Fault::RetiredTwice) {
                // SAFETY: none: this is the fault. The schemes that it is planted under notice.
                unsafe { guard.retire(walk.node) };
            }
            self.towers().find::<true, _>(&mut guard, key);
        }
        Some(value)
    }

    fn scan(&self, thread: &mut Self::Thread<'_>, mut visit: impl FnMut(u64, u64)) -> Scan {
        let mut guard = thread.pin();
        let mut scan = Scan::default();
        if keeps_everything::<S>() {
            let mut next = guard.protect(0, &self.heads[0]);
            // SAFETY: null, or kept by the guard, as in `chain`.
            while let Some(tower) = unsafe { untagged(next).as_ref() } {
                self.census.look(&tower.life);
                // Acquire: "Look".
                next = guard.protect(0, tower.next(0));
                if !is_marked(next) {
                    visit(tower.key, tower.value);
                    scan.elements += 1;
                }
            }
            return scan;
        }
        let mut place = Place::start();
        let mut from = Some(0);
        while let Some(key) = from {
            match self.towers().advance(&mut guard, &mut place, 0, key) {
                Err(Lost) => {
                    place = self.towers().find::<true, _>(&mut guard, key).place;
                    scan.restarts += 1;
                }
                Ok(node) => {
                    // SAFETY: null, or protected by `advance`.
                    let Some(tower) = (unsafe { node.as_ref() }) else {
                        break;
                    };
                    visit(tower.key, tower.value);
                    scan.elements += 1;
                    from = tower.key.checked_add(1);
                    place.step(node);
                }
            }
        }
        scan
    }

    fn hold(&self, thread: &mut Self::Thread<'_>, pause: impl FnOnce()) {
        let mut guard = thread.pin();
        let node = guard.protect(0, &self.heads[0]);
        pause();
        // SAFETY: null, or protected: a head has no mark, so the node was linked when `protect` found it there.
        if let Some(tower) = unsafe { node.as_ref() } {
            self.census.look(&tower.life);
        }
    }

    fn flush(&self) {
        self.scheme.flush();
    }

    fn scheme(&self) -> &S {
        &self.scheme
    }
}

impl<S: Scheme> SkipList<S> {
    /// The value under `key`, for schemes that keep everything: as in `chain`, over removed nodes. But the way down begins
    /// at a node that had no mark when it was seen. Such a one was linked on the level below, too. One with a mark might
    /// have been unlinked there long ago, and lead to what was freed before this operation began.
    #[inline(always)]
    fn get_over_marks<G: Guard>(&self, guard: &mut G, key: u64) -> Option<u64> {
        let mut from: *mut Tower = ptr::null_mut();
        // Relaxed: a level missed is a longer way.
        for level in (0..self.height.load(Ordering::Relaxed)).rev() {
            // SAFETY: kept by the guard; reached on this level or one above.
            let mut node = untagged(guard.protect(0, unsafe { self.towers().word(from, level) }));
            // SAFETY: null, or kept by the guard.
            while let Some(tower) = unsafe { node.as_ref() } {
                self.census.look(&tower.life);
                // Acquire: "Look".
                let next = guard.protect(0, tower.next(level));
                if !is_marked(next) {
                    if tower.key > key {
                        break;
                    }
                    if tower.key == key {
                        // As in `find`.
                        let gone = level > 0 && is_marked(guard.protect(0, tower.next(0)));
                        return (!gone).then_some(tower.value);
                    }
                    from = node;
                }
                node = untagged(next);
            }
        }
        None
    }
}

impl<S: Scheme> Drop for SkipList<S> {
    fn drop(&mut self) {
        // SAFETY: `&mut self`: nobody else has what is still linked.
        unsafe { tower::free_all::<S>(&mut self.heads) };
    }
}
