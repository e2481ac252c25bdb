//! The ordered list under [`Map`](super::Map): entries of all buckets, and the
//! buckets' own links between them.
//!
//! Floor 2 (`hp`), over [`super::keep`]. Owns the links and every change of
//! them; knows nothing of keys, hashes and tables of buckets.
//!
//! # Purpose
//!
//! Maged Michael's list (2002) with Shalev and Shavit's *split order* (2006):
//! one list for the whole map, sorted by the hash, in which a bucket is a link
//! that stands before its entries. Doubling the number of buckets
//! moves no entry; it puts more such links in.
//!
//! # Order
//!
//! | link | order | may leave |
//! |---|---|---|
//! | a bucket's | its reversed number, an even number | never |
//! | an entry's | its hash with bit 0 set | yes |
//!
//! Entries of equal order are a *group*. A new one goes to the end of its
//! group and has a larger *rank* than those before it; a replacement takes
//! its predecessor's place and rank. So (order, rank) strictly increases along
//! the list, and whoever was at such a place finds the next one again.
//!
//! # Leaving
//!
//! An entry leaves in two steps. *Mark*: bit 0 of its `next` is set, and
//! `next` never changes again; it has left in the eyes of everybody from now
//! on. *Unlink*: the link before it, itself unmarked, is made to point past
//! it; whoever does that retires it. A replacement is put in by the mark
//! itself: the marked `next` points to it, and it to the rest.
//!
//! # Reading
//!
//! Two slots, hand over hand. The link before (a bucket, or an entry in the
//! first slot) is alive, so its `next` may be protected in the second slot. If
//! what came out is unmarked, the link before had not left when it was read,
//! so neither had what it points to been unlinked: its scan, which follows a
//! heavy barrier after the unlinking, finds the slot. If it is marked, the walk
//! begins anew at the bucket.
//!
//! # Why an absent key is absent
//!
//! The walk goes from an unmarked `u` to `v` only while nothing is between
//! them, and keys appear at the end of their group only. So what appears
//! behind a walker in the group that it looks through, it does not need to
//! see: the last link it read, which leads out of the group, would then have
//! been another one. At that read the key is absent.
//!
//! # ABA
//!
//! Every pointer that is compared and then replaced is protected by the one who
//! compares (the successor of a replaced entry, too), so its address means the
//! same node throughout. The mark is set without comparing.
//!
//! # Orderings
//!
//! * *Publish* (Release, of the exchange that puts an entry or a bucket in) –
//!   pairs with the Acquire of a protection.
//! * *Look* (Acquire, of the `next` of a link that is marked or may be) – pairs
//!   with *Publish*: whoever unlinks passes on a `next` that others will
//!   follow.
//! * The mark itself is Relaxed. It publishes nothing, and as a
//!   read-modify-write it hands on the *Publish* before it.

use super::keep::{Keeper, Life};
use crate::retired::Retired;
use crate::slot::Held;
use crate::unlink::unlink_if;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ptr::{self, NonNull};
use percpu::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// In `next`: the link's owner has left.
const MARK: usize = 1;

fn is_marked(next: *mut ()) -> bool {
    next.addr() & MARK != 0
}

fn unmarked(next: *mut ()) -> *mut () {
    next.map_addr(|a| a & !MARK)
}

/// Sets the mark; gives what was there.
#[inline]
fn mark(next: &AtomicPtr<()>) -> *mut () {
    // Relaxed: see "Orderings".
    #[cfg(not(loom))]
    return next.fetch_or(MARK, Ordering::Relaxed);
    // loom's pointers have no bits.
    #[cfg(loom)]
    {
        let mut now: *mut () = ptr::null_mut();
        loop {
            let marked = now.map_addr(|a| a | MARK);
            match next.compare_exchange(now, marked, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(was) => return was,
                Err(other) => now = other,
            }
        }
    }
}

/// What the list is made of.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Link {
    pub(crate) life: Life,
    next: AtomicPtr<()>,
    /// Written before the link is published, by whoever links it.
    order: AtomicUsize,
}

impl Link {
    #[cfg(not(loom))]
    pub(crate) const fn new(order: usize) -> Self {
        Self {
            life: Life::new(),
            next: AtomicPtr::new(ptr::null_mut()),
            order: AtomicUsize::new(order),
        }
    }

    #[cfg(loom)]
    pub(crate) fn new(order: usize) -> Self {
        Self {
            life: Life::new(),
            next: AtomicPtr::new(ptr::null_mut()),
            order: AtomicUsize::new(order),
        }
    }

    #[inline(always)]
    pub(crate) fn order(&self) -> usize {
        // Relaxed: written before "Publish", whose partner the caller has.
        self.order.load(Ordering::Relaxed)
    }

    /// For a bucket that is not linked yet and that the caller alone links.
    pub(crate) fn set_order(&self, order: usize) {
        // Relaxed: carried by "Publish".
        self.order.store(order, Ordering::Relaxed);
    }

    /// What it points to, for an owner of the whole list.
    pub(crate) fn next_mut(&mut self) -> *mut () {
        // Relaxed: exclusive.
        unmarked(self.next.load(Ordering::Relaxed))
    }

    fn is_entry(&self) -> bool {
        self.order() & 1 != 0
    }
}

/// An entry.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Node<T> {
    pub(crate) link: Link,
    /// Place in its group; set before it is published.
    pub(crate) rank: usize,
    pub(crate) data: T,
}

impl<T> Node<T> {
    pub(crate) fn boxed(order: usize, data: T) -> Box<Self> {
        debug_assert!(order & 1 != 0, "an entry's order is odd");
        Box::new(Self {
            link: Link::new(order),
            rank: 0,
            data,
        })
    }

    /// Frees one that was linked.
    ///
    /// # Safety
    ///
    /// `address` is a node of this type from a box that nobody uses.
    unsafe fn free(address: *mut (), _: MaybeUninit<*mut ()>) {
        // SAFETY: the caller's word.
        drop(unsafe { Box::from_raw(address.cast::<Self>()) });
    }

    /// An unlinked one that waits.
    ///
    /// # Safety
    ///
    /// `node` came from a box and is unlinked, and only the caller retires it.
    /// `T: Send + 'static`.
    pub(crate) unsafe fn retired(node: *mut ()) -> Retired {
        // SAFETY: once, on any thread, by the caller's word.
        unsafe { Retired::with(node, ptr::null_mut(), Self::free) }
    }
}

/// The link at an address.
///
/// # Safety
///
/// It is a link that is alive for `'a`.
#[inline(always)]
unsafe fn at<'a>(address: NonNull<()>) -> &'a Link {
    // SAFETY: the caller's word.
    let link = unsafe { address.cast::<Link>().as_ref() };
    link.life.touch();
    link
}

/// A place in the list: a link, and what comes after it, both kept alive.
pub(crate) struct Walk<'a, K: Keeper, T> {
    keeper: &'a K,
    before: NonNull<()>,
    before_slot: Option<Held>,
    /// Null at the end of the list.
    here: *mut (),
    here_slot: Option<Held>,
    _list: PhantomData<(&'a Link, *const Node<T>)>,
}

/// An entry that is protected.
pub(crate) type Kept<T> = (Held, NonNull<Node<T>>);

impl<'a, K: Keeper, T> Walk<'a, K, T> {
    /// # Safety
    ///
    /// In every list that this walks the odd links are `Node<T>`s from boxes,
    /// the even ones outlive `'a`, links are changed by this module alone, and
    /// nodes are freed through `keeper`'s kind only.
    #[inline(always)]
    pub(crate) unsafe fn new(keeper: &'a K, start: &'a Link) -> Self {
        Self {
            keeper,
            before: NonNull::from(start).cast(),
            before_slot: None,
            here: ptr::null_mut(),
            here_slot: None,
            _list: PhantomData,
        }
    }

    /// From `start` to the first link that has not left and at which `stop`
    /// says so, or to the end. Unlinks what has left on the way. `false` if
    /// `start` itself has left (no bucket does).
    ///
    /// `stop` may be asked about the same link again: the walk begins anew
    /// when others change the list under it.
    ///
    /// # Progress
    ///
    /// Lock-free.
    #[inline]
    pub(crate) fn to(
        &mut self,
        start: &'a Link,
        mut stop: impl FnMut(&Link, Option<&Node<T>>) -> bool,
    ) -> bool {
        'anew: loop {
            self.before = NonNull::from(start).cast();
            if !self.load() {
                // SAFETY: `start` is alive.
                return !start.is_entry();
            }
            loop {
                let Some(here) = NonNull::new(self.here) else {
                    return true;
                };
                // SAFETY: protected, or a bucket's, by `load`.
                let link = unsafe { at(here) };
                // Acquire: "Look".
                let next = link.next.load(Ordering::Acquire);
                link.life.touch();
                if is_marked(next) {
                    if !self.unlink(unmarked(next)) || !self.load() {
                        continue 'anew;
                    }
                    continue;
                }
                let entry = if link.is_entry() {
                    // SAFETY: odd links are entries; alive as the link is.
                    Some(unsafe { here.cast::<Node<T>>().as_ref() })
                } else {
                    None
                };
                if stop(link, entry) {
                    return true;
                }
                self.before = here;
                core::mem::swap(&mut self.before_slot, &mut self.here_slot);
                if !self.load() {
                    continue 'anew;
                }
            }
        }
    }

    /// Protects what the link before points to. `false` if that has left.
    #[inline(always)]
    fn load(&mut self) -> bool {
        // SAFETY: a bucket's, or protected since it was `here`.
        let before = unsafe { at(self.before) };
        let value = match &mut self.here_slot {
            Some(slot) => self.keeper.refill(slot, &before.next),
            none => match self.keeper.protect(&before.next) {
                Some((slot, value)) => {
                    *none = Some(slot);
                    Some(value)
                }
                None => None,
            },
        };
        before.life.touch();
        self.here = value.map_or(ptr::null_mut(), NonNull::as_ptr);
        !is_marked(self.here)
    }

    /// Makes the link before point past `here`, which is marked, and retires
    /// it. `false` if somebody else did or the link before has changed.
    #[inline(never)]
    fn unlink(&mut self, next: *mut ()) -> bool {
        // SAFETY: as in `load`.
        let before = unsafe { at(self.before) };
        let unlinked = unlink_if(&before.next, self.here, next).is_some();
        before.life.touch();
        if !unlinked {
            return false;
        }
        // Its slot would keep it from a pass that the retirement begins.
        self.here_slot = None;
        // SAFETY: an entry (buckets are never marked), unlinked by us alone.
        self.keeper.retire(unsafe { Node::<T>::retired(self.here) });
        true
    }

    /// The entry here, protected, with a slot that is its own.
    #[inline(always)]
    pub(crate) fn take(mut self) -> Option<Kept<T>> {
        let node = NonNull::new(self.here)?.cast();
        Some((self.here_slot.take()?, node))
    }

    /// Puts a bucket's link in, before `here`. `false` if the place has changed.
    ///
    /// # Safety
    ///
    /// `bucket` is a bucket's link that is in no list, outlives this one, and
    /// is the caller's alone to put in.
    pub(crate) unsafe fn insert_bucket(&self, bucket: NonNull<Link>) -> bool {
        // SAFETY: the caller's word.
        unsafe { self.put(bucket) }
    }

    /// Puts an entry in, before `here`. The node itself if the place has
    /// changed.
    #[inline]
    pub(crate) fn insert(&self, node: Box<Node<T>>) -> Result<NonNull<Node<T>>, Box<Node<T>>> {
        let node = NonNull::from(Box::leak(node));
        // SAFETY: a node begins with its link, and is ours until it is put in.
        if unsafe { self.put(node.cast()) } {
            Ok(node)
        } else {
            // SAFETY: from the box above, and in no list.
            Err(unsafe { Box::from_raw(node.as_ptr()) })
        }
    }

    /// # Safety
    ///
    /// `link` is alive, and the caller's until this has put it in; from then on
    /// nothing keeps it.
    #[inline(always)]
    unsafe fn put(&self, link: NonNull<Link>) -> bool {
        // No reference to it stays: others may free it before this returns.
        // SAFETY: the caller's word. Relaxed: carried by "Publish".
        unsafe { link.as_ref() }
            .next
            .store(self.here, Ordering::Relaxed);
        // SAFETY: as in `load`.
        let before = unsafe { at(self.before) };
        // Release: "Publish". Relaxed on failure: what was found is not used.
        let put = before
            .next
            .compare_exchange(
                self.here,
                link.as_ptr().cast(),
                Ordering::Release,
                Ordering::Relaxed,
            )
            .is_ok();
        before.life.touch();
        put
    }

    /// Puts `node` in the place of the entry here, which leaves. Gives that
    /// one, and whether it is unlinked already; the node itself if the entry
    /// has left before, or its successor changed.
    pub(crate) fn replace(
        mut self,
        mut node: Box<Node<T>>,
    ) -> Result<(Kept<T>, bool), Box<Node<T>>> {
        let Some(old) = NonNull::new(self.here) else {
            return Err(node);
        };
        // SAFETY: protected; `to` stopped at this entry.
        let entry = unsafe { old.cast::<Node<T>>().as_ref() };
        entry.link.life.touch();
        // The successor stays protected until it is compared: see "ABA".
        let successor = self.keeper.protect(&entry.link.next);
        let next = successor
            .as_ref()
            .map_or(ptr::null_mut(), |(_, next)| next.as_ptr());
        if is_marked(next) {
            return Err(node);
        }
        node.rank = entry.rank;
        // Relaxed: carried by "Publish".
        node.link.next.store(next, Ordering::Relaxed);
        let new = Box::into_raw(node).cast::<()>();
        let marked = new.map_addr(|a| a | MARK);
        // Release: "Publish". Relaxed on failure: not used.
        if entry
            .link
            .next
            .compare_exchange(next, marked, Ordering::Release, Ordering::Relaxed)
            .is_err()
        {
            // SAFETY: from the box above, and in no list.
            return Err(unsafe { Box::from_raw(new.cast()) });
        }
        drop(successor);
        let Some(slot) = self.here_slot.take() else {
            unreachable!("an entry that was walked to has its slot")
        };
        let unlinked = self.unlink(new);
        Ok(((slot, old.cast()), unlinked))
    }

    /// Marks the entry here and takes it out. Gives it, and whether it is
    /// unlinked already; `None` if somebody else marked it. `left` runs between
    /// the two (retiring may panic).
    pub(crate) fn remove(mut self, left: impl FnOnce()) -> Option<(Kept<T>, bool)> {
        let old = NonNull::new(self.here)?;
        // SAFETY: protected; `to` stopped at this entry.
        let link = unsafe { at(old) };
        let next = mark_entry(link)?;
        left();
        let slot = self.here_slot.take()?;
        let unlinked = self.unlink(next);
        Some(((slot, old.cast()), unlinked))
    }
}

/// Marks an entry; gives its successor. `None` if it was marked.
fn mark_entry(link: &Link) -> Option<*mut ()> {
    if is_marked(mark(&link.next)) {
        return None;
    }
    // Acquire: "Look". It never changes again.
    Some(unmarked(link.next.load(Ordering::Acquire)))
}

/// Marks an entry that the caller protects. `false` if it was marked.
///
/// # Safety
///
/// `node` is protected and was in the list.
pub(crate) unsafe fn leave<T>(node: NonNull<Node<T>>) -> bool {
    // SAFETY: the caller's word.
    mark_entry(unsafe { at(node.cast()) }).is_some()
}
