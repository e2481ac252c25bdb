//! A list that many walk while a few change it: [`RcuList`].
//!
//! Floor 2 (`rcu-lite`), public layer. Owns the nodes; retires through a
//! [`Flavor`].
//!
//! Readers follow `next` pointers and never wait. Writers hold a lock, so that
//! only one changes the list at a time; a reader sees each change whole or not
//! at all. A node that is taken out keeps its own `next`: whoever stands on it
//! walks on into the list as it was, or is.
//!
//! # Orderings
//!
//! *Link* (a Release store of a `next` pointer or of the head) pairs with the
//! Acquire of *follow*: a reader sees a node whole. Writers read what other
//! writers stored through the lock.

use crate::deferred::Unlinked;
use crate::lock::{Lock, Locked};
use crate::{Flavor, Rcu};
use core::fmt;
use core::marker::PhantomData;
use core::ptr;
use percpu::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use percpu::wait::Backoff;

struct Node<T> {
    value: T,
    next: AtomicPtr<Node<T>>,
}

/// A singly linked list: readers walk it under a guard without waiting,
/// writers take turns.
///
/// ```
/// use rcu_lite::{Rcu, RcuList};
///
/// let list: RcuList<&str> = RcuList::new();
/// list.push_back("b");
/// list.push_front("a");
/// let guard = Rcu::global().read();
/// let mut walk = list.iter(&guard);
/// assert_eq!(walk.next(), Some(&"a"));
/// list.remove_if(|name| *name == "a"); // the walk goes on
/// assert_eq!(walk.next(), Some(&"b"));
/// assert_eq!(list.iter(&guard).count(), 1);
/// ```
///
/// References borrow the list and the guard:
///
/// ```compile_fail
/// let list = rcu_lite::RcuList::new();
/// list.push_back(1);
/// let guard = rcu_lite::Rcu::global().read();
/// let first = list.iter(&guard).next();
/// drop(list);
/// assert_eq!(first, Some(&1));
/// ```
///
/// ```
/// let list = rcu_lite::RcuList::new();
/// list.push_back(1);
/// let guard = rcu_lite::Rcu::global().read();
/// let first = list.iter(&guard).next();
/// assert_eq!(first, Some(&1));
/// drop(list);
/// ```
pub struct RcuList<T, F: Flavor = &'static Rcu> {
    head: AtomicPtr<Node<T>>,
    len: AtomicUsize,
    flavor: F,
    writers: Lock,
    _owns: PhantomData<Box<Node<T>>>,
}

// SAFETY: sending the list sends its values.
unsafe impl<T: Send, F: Flavor> Send for RcuList<T, F> {}
// SAFETY: a shared list gives out `&T` on every thread, and takes and drops
// values on every thread.
unsafe impl<T: Send + Sync, F: Flavor> Sync for RcuList<T, F> {}

impl<T> RcuList<T> {
    /// An empty list of the process-wide [`Rcu`].
    #[must_use]
    pub fn new() -> Self {
        Self::new_in(Rcu::global())
    }
}

impl<T, F: Flavor> RcuList<T, F> {
    /// An empty list of `flavor`.
    #[must_use]
    pub fn new_in(flavor: F) -> Self {
        Self {
            head: AtomicPtr::new(ptr::null_mut()),
            len: AtomicUsize::new(0),
            flavor,
            writers: Lock::new(),
            _owns: PhantomData,
        }
    }

    /// What the list's readers enter and its nodes are retired to.
    #[inline]
    pub fn flavor(&self) -> &F {
        &self.flavor
    }

    /// Walks the list as it is, and as it changes meanwhile.
    ///
    /// # Panics
    ///
    /// If `guard` is of another domain than the list.
    ///
    /// # Progress
    ///
    /// Wait-free a step.
    pub fn iter<'g>(&'g self, guard: &'g F::Guard<'_>) -> Iter<'g, T> {
        assert!(
            self.flavor.covers(guard),
            "the guard is of another RCU domain than the list"
        );
        Iter {
            // Acquire: "Follow", pairs with "Link".
            at: self.head.load(Ordering::Acquire),
            _in: PhantomData,
        }
    }

    /// Elements, as of some moment.
    #[must_use]
    pub fn len(&self) -> usize {
        // Relaxed: a snapshot.
        self.len.load(Ordering::Relaxed)
    }

    /// Whether there was no element at some moment.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The writers' lock, waited for. A writer that panicked (in a predicate,
    /// say) left the list whole, and so did one that vanished in a fork.
    fn lock(&self) -> Locked<'_> {
        let mut backoff = Backoff::new();
        loop {
            if let Some(writer) = self.writers.try_lock() {
                if writer.orphaned {
                    // The one that vanished may not have counted.
                    self.recount();
                }
                return writer;
            }
            backoff.snooze();
        }
    }

    #[cold]
    fn recount(&self) {
        let mut len = 0;
        // Relaxed (all): ordered by the writers' lock, which the caller has.
        let mut at = self.head.load(Ordering::Relaxed);
        // SAFETY: nodes of the list; only a writer retires them.
        while let Some(node) = unsafe { at.as_ref() } {
            len += 1;
            at = node.next.load(Ordering::Relaxed);
        }
        self.len.store(len, Ordering::Relaxed);
    }

    fn insert(&self, at: &AtomicPtr<Node<T>>, value: T) {
        let node = Box::into_raw(Box::new(Node {
            value,
            // Relaxed: ordered by the writers' lock.
            next: AtomicPtr::new(at.load(Ordering::Relaxed)),
        }));
        // Release: "Link".
        at.store(node, Ordering::Release);
        // Relaxed (both): under the writers' lock.
        self.len
            .store(self.len.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

impl<T: Send + Sync + 'static, F: Flavor> RcuList<T, F> {
    /// Puts `value` in front.
    pub fn push_front(&self, value: T) {
        let _writer = self.lock();
        self.insert(&self.head, value);
    }

    /// Puts `value` behind all others. Walks the list.
    pub fn push_back(&self, value: T) {
        let _writer = self.lock();
        self.insert(self.find(|_| false), value);
    }

    /// Puts `value` in front of the first element for which `pred` says yes, or
    /// behind all others: keeps a list in order.
    ///
    /// `pred` is called with the writers' lock held: it must not change this
    /// list.
    pub fn insert_before(&self, value: T, pred: impl FnMut(&T) -> bool) {
        let _writer = self.lock();
        self.insert(self.find(pred), value);
    }

    /// Takes out every element for which `pred` says yes. How many that were.
    ///
    /// `pred` is called with the writers' lock held: it must not change this
    /// list. If it panics, the elements that it had chosen are out and the rest
    /// is in.
    pub fn remove_if(&self, mut pred: impl FnMut(&T) -> bool) -> usize {
        let mut removed = Removed::new(self);
        let _writer = self.lock();
        let mut at = &self.head;
        loop {
            at = self.find_from(at, &mut pred);
            if !self.unlink(at, &mut removed) {
                return removed.nodes.len();
            }
        }
    }

    /// Takes out the first element for which `pred` says yes. Whether there was
    /// one. `pred` as in [`remove_if`](Self::remove_if).
    pub fn remove_first(&self, pred: impl FnMut(&T) -> bool) -> bool {
        let mut removed = Removed::new(self);
        let _writer = self.lock();
        self.unlink(self.find(pred), &mut removed)
    }

    /// Puts what `f` makes of it in the place of the first element for which it
    /// makes something. Whether it did. Readers see the old one or the new one.
    ///
    /// `f` is called with the writers' lock held: it must not change this list.
    pub fn replace_first(&self, mut f: impl FnMut(&T) -> Option<T>) -> bool {
        let mut removed = Removed::new(self);
        let _writer = self.lock();
        let mut new = None;
        let at = self.find(|value| {
            new = f(value);
            new.is_some()
        });
        let Some(new) = new else { return false };
        // Relaxed: ordered by the writers' lock.
        let old = at.load(Ordering::Relaxed);
        // SAFETY: `find` stopped at a node, which only a writer could retire.
        let next = unsafe { &*old }.next.load(Ordering::Relaxed);
        let node = Box::into_raw(Box::new(Node {
            value: new,
            next: AtomicPtr::new(next),
        }));
        // Release: "Link".
        at.store(node, Ordering::Release);
        removed.nodes.push(old);
        true
    }

    /// Takes out everything. How many elements that were.
    pub fn clear(&self) -> usize {
        self.remove_if(|_| true)
    }

    /// The pointer to the first node for which `pred` says yes, or the last
    /// pointer. Under the writers' lock.
    fn find(&self, mut pred: impl FnMut(&T) -> bool) -> &AtomicPtr<Node<T>> {
        self.find_from(&self.head, &mut pred)
    }

    fn find_from<'l>(
        &'l self,
        mut at: &'l AtomicPtr<Node<T>>,
        pred: &mut impl FnMut(&T) -> bool,
    ) -> &'l AtomicPtr<Node<T>> {
        // Relaxed: ordered by the writers' lock.
        // SAFETY: nodes of the list; only a writer retires them.
        while let Some(node) = unsafe { at.load(Ordering::Relaxed).as_ref() } {
            if pred(&node.value) {
                break;
            }
            at = &node.next;
        }
        at
    }

    /// Takes out the node that `at` points to. `false` if there is none.
    fn unlink(&self, at: &AtomicPtr<Node<T>>, removed: &mut Removed<'_, T, F>) -> bool {
        // Relaxed (all loads): ordered by the writers' lock.
        let node = at.load(Ordering::Relaxed);
        if node.is_null() {
            return false;
        }
        // SAFETY: a node of the list; only a writer retires it.
        let next = unsafe { &*node }.next.load(Ordering::Relaxed);
        // Release: "Link": what `next` points to was linked by a Release store
        // that a reader of this one would otherwise not have seen.
        at.store(next, Ordering::Release);
        // Relaxed (both): under the writers' lock.
        self.len
            .store(self.len.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
        removed.nodes.push(node);
        true
    }
}

/// Nodes that a writer took out. Retired when dropped, which is after the
/// writers' lock was given back: retiring may run callbacks
/// ([`Callbacks::Inline`](crate::Callbacks::Inline)), and those may be writers
/// of this list.
struct Removed<'l, T: Send + Sync + 'static, F: Flavor> {
    list: &'l RcuList<T, F>,
    nodes: Vec<*mut Node<T>>,
}

impl<'l, T: Send + Sync + 'static, F: Flavor> Removed<'l, T, F> {
    /// To be made before the lock is taken.
    fn new(list: &'l RcuList<T, F>) -> Self {
        Self {
            list,
            nodes: Vec::new(),
        }
    }
}

impl<T: Send + Sync + 'static, F: Flavor> Drop for Removed<'_, T, F> {
    fn drop(&mut self) {
        for node in self.nodes.drain(..) {
            // SAFETY: from a box, and out of the list, by the one writer, which
            // retires it once. Readers use it by references only, and not after
            // the grace period. Its `next` is a bare pointer: nothing follows
            // it.
            let node = unsafe { Unlinked::new(node) };
            self.list.flavor.call(move || node.free());
        }
    }
}

impl<T, F: Flavor> Drop for RcuList<T, F> {
    fn drop(&mut self) {
        // Relaxed (both): the list is the caller's alone.
        let mut at = self.head.load(Ordering::Relaxed);
        while !at.is_null() {
            // SAFETY: from a box, and nobody borrows the list.
            let node = unsafe { Box::from_raw(at) };
            at = node.next.load(Ordering::Relaxed);
        }
    }
}

impl<T> Default for RcuList<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Send + Sync + 'static> FromIterator<T> for RcuList<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let list = Self::new();
        let mut last = &list.head;
        for value in values {
            list.insert(last, value);
            // Relaxed: the list is the caller's alone.
            // SAFETY: just inserted.
            last = unsafe { &(*last.load(Ordering::Relaxed)).next };
        }
        list
    }
}

impl<T: fmt::Debug, F: Flavor> fmt::Debug for RcuList<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let guard = self.flavor.read();
        f.debug_list().entries(self.iter(&guard)).finish()
    }
}

/// A walk through an [`RcuList`].
pub struct Iter<'g, T> {
    at: *mut Node<T>,
    _in: PhantomData<&'g T>,
}

// SAFETY: stands for a `&T`, and the guard is borrowed, not held.
unsafe impl<T: Sync> Send for Iter<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Iter<'_, T> {}

impl<'g, T> Iterator for Iter<'g, T> {
    type Item = &'g T;

    #[inline]
    fn next(&mut self) -> Option<&'g T> {
        // SAFETY: linked when the section had begun, so not dropped before it
        // ends; or when its predecessor was, which is the same.
        let node = unsafe { self.at.as_ref() }?;
        // Acquire: "Follow", pairs with "Link".
        self.at = node.next.load(Ordering::Acquire);
        Some(&node.value)
    }
}

impl<T> core::iter::FusedIterator for Iter<'_, T> {}

impl<T> Clone for Iter<'_, T> {
    fn clone(&self) -> Self {
        Iter {
            at: self.at,
            _in: PhantomData,
        }
    }
}

impl<T> fmt::Debug for Iter<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("rcu_lite::list::Iter")
    }
}
