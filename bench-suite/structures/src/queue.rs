//! Michael and Scott's queue.
//!
//! Floor 3 (`structures`). A chain from `head` to the last node; the node at `head` is a dummy whose value is gone already.
//! `tail` is the last node or, between the two exchanges of an enqueue, the one before it; whoever finds it behind moves
//! it on.
//!
//! # What protects the successor
//!
//! A dequeue follows `head`, then that node's `next`. A node goes on pointing to its successor when it is dead, so finding
//! it there does not show that the successor lives. But the value is read only after the exchange of `head`, which
//! succeeds only if `head` was that node all along (it is protected, so no other has its address): then the successor,
//! announced before, was not even unlinked. A peek makes no exchange: it protects the successor and looks at `head` again.
//!
//! A node is unlinked when `head` leaves it, so `tail` must have left it before: a dequeue looks at `tail` after it has
//! read `head`, and moves it on if it is the same. `tail` never falls behind `head`, hence it is past the node for good.
//! (That the enqueuer whose second exchange is missing protects the node all the while is no substitute. An enqueuer that
//! finds it through `tail` has it in a slot that a scan in progress may have passed.)
//!
//! # Orderings
//!
//! | name | access | pairs with |
//! |---|---|---|
//! | "Link" | exchange of the last `next`, Release | Acquire loads of `next`: the node's value |
//! | "Move" | exchange of `tail`, Release | the Acquire of an enqueue's `protect`: what "Link" published is carried on |
//! | "Dequeue" | exchange of `head`, AcqRel | Release carries the new dummy on to `protect`; Acquire comes before the retirement |

use crate::scheme::{Guard, Scheme, Thread};
use crate::{Census, Life, Node};
use percpu::sync::atomic::{AtomicPtr, Ordering};
use std::fmt;
use std::ptr;

/// Slots: what `head` or `tail` points to, and the one behind `head`.
const SLOTS: usize = 2;
const END: usize = 0;
const NEXT: usize = 1;

#[repr(C)]
struct Element {
    next: AtomicPtr<Element>,
    value: u64,
    life: Life,
}

impl Node for Element {
    fn life(&self) -> &Life {
        &self.life
    }
}

/// Alone on its pair of cache lines: enqueuers and dequeuers do not disturb each other.
#[repr(align(128))]
struct Padded<T>(T);

/// A queue of numbers.
pub struct Queue<S: Scheme> {
    head: Padded<AtomicPtr<Element>>,
    tail: Padded<AtomicPtr<Element>>,
    census: &'static Census,
    scheme: S,
}

impl<S: Scheme> fmt::Debug for Queue<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Queue over {}", S::ABOUT.name)
    }
}

fn element<S: Scheme>(value: u64, census: &'static Census) -> *mut Element {
    S::alloc(Element {
        next: AtomicPtr::new(ptr::null_mut()),
        value,
        life: Life::new(census, size_of::<Element>()),
    })
}

impl<S: Scheme> Queue<S> {
    /// Empty, but for the dummy; its nodes are counted in `census`.
    #[must_use]
    pub fn new(census: &'static Census) -> Self {
        let dummy = element::<S>(0, census);
        Queue {
            head: Padded(AtomicPtr::new(dummy)),
            tail: Padded(AtomicPtr::new(dummy)),
            census,
            scheme: S::new(),
        }
    }

    /// The calling thread's part.
    pub fn thread(&self) -> S::Thread<'_, SLOTS> {
        self.scheme.thread()
    }

    /// Puts `value` at the end.
    #[inline]
    pub fn enqueue(&self, thread: &mut S::Thread<'_, SLOTS>, value: u64) {
        let node = element::<S>(value, self.census);
        let mut guard = thread.pin();
        loop {
            let tail = guard.protect(END, &self.tail.0);
            // SAFETY: never null, and protected: `tail` leaves a node before that is retired.
            let last = unsafe { &*tail };
            self.census.look(&last.life);
            // Acquire: what is moved on to was linked before; "Link".
            let next = last.next.load(Ordering::Acquire);
            if !next.is_null() {
                self.move_tail(tail, next);
                continue;
            }
            // Release: "Link". Relaxed on failure: found again.
            if last
                .next
                .compare_exchange(next, node, Ordering::Release, Ordering::Relaxed)
                .is_ok()
            {
                self.move_tail(tail, node);
                return;
            }
        }
    }

    /// Moves `tail` on, if nobody else has.
    #[inline(always)]
    fn move_tail(&self, from: *mut Element, to: *mut Element) {
        // Release: "Move". Relaxed on failure: somebody else has. `from` is protected, so this is not a new node there.
        let _ = self
            .tail
            .0
            .compare_exchange(from, to, Ordering::Release, Ordering::Relaxed);
    }

    /// Takes what is first.
    #[inline]
    pub fn dequeue(&self, thread: &mut S::Thread<'_, SLOTS>) -> Option<u64> {
        let mut guard = thread.pin();
        loop {
            let head = guard.protect(END, &self.head.0);
            // SAFETY: never null, and protected: found in `head`, and whoever takes it from there retires it.
            let dummy = unsafe { &*head };
            self.census.look(&dummy.life);
            // Acquire: read after `head`.
            let tail = self.tail.0.load(Ordering::Acquire);
            // Acquire: "Link".
            let next = dummy.next.load(Ordering::Acquire);
            if next.is_null() {
                // The last node: `head` has not gone past it.
                return None;
            }
            if head == tail {
                self.move_tail(tail, next);
                continue;
            }
            guard.announce(NEXT, next);
            // AcqRel: "Dequeue". Relaxed on failure: found again.
            if self
                .head
                .0
                .compare_exchange(head, next, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
            {
                // SAFETY: from `alloc`; this thread alone took it from `head`, and `tail` has left it.
                unsafe { guard.retire(head) };
                // SAFETY: announced while it was linked; see the module.
                let first = unsafe { &*next };
                self.census.look(&first.life);
                return Some(first.value);
            }
        }
    }

    /// What is first, which stays.
    #[inline]
    pub fn peek(&self, thread: &mut S::Thread<'_, SLOTS>) -> Option<u64> {
        self.hold(thread, || ())
    }

    /// What is first, which stays, and lives while `pause` runs: it is looked at afterwards.
    #[inline(always)]
    pub fn hold(&self, thread: &mut S::Thread<'_, SLOTS>, pause: impl FnOnce()) -> Option<u64> {
        let mut guard = thread.pin();
        let next = loop {
            let head = guard.protect(END, &self.head.0);
            // SAFETY: as in `dequeue`.
            let dummy = unsafe { &*head };
            self.census.look(&dummy.life);
            let next = guard.protect(NEXT, &dummy.next);
            // The second look; see the module.
            if guard.unchanged(&self.head.0, head) {
                break next;
            }
        };
        pause();
        // SAFETY: null, or protected while `head` was still the node before it; see the module.
        let first = unsafe { next.as_ref() }?;
        self.census.look(&first.life);
        Some(first.value)
    }

    /// Frees what can be freed now; see [`Scheme::flush`].
    pub fn flush(&self) {
        self.scheme.flush();
    }

    /// The scheme.
    pub fn scheme(&self) -> &S {
        &self.scheme
    }
}

impl<S: Scheme> Drop for Queue<S> {
    fn drop(&mut self) {
        let mut next = *self.head.0.get_mut();
        while !next.is_null() {
            let node = next;
            // SAFETY: `&mut self`: nobody else has what is still linked.
            unsafe {
                next = *(*node).next.get_mut();
                S::free(node);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schemes::{Control, Textbook};

    type Subject = Queue<Textbook<Control>>;

    /// A queue as an enqueuer leaves it between its two exchanges, and the node that `tail` has not been moved on to.
    fn behind() -> (Subject, *mut Element) {
        let queue = Subject::new(Census::leak());
        let node = element::<Textbook<Control>>(5, queue.census);
        let last = queue.tail.0.load(Ordering::Relaxed);
        // SAFETY: nobody else has the queue.
        unsafe { (*last).next.store(node, Ordering::Release) };
        (queue, node)
    }

    #[test]
    fn a_dequeue_moves_a_tail_that_is_behind_before_it_retires() {
        let (queue, node) = behind();
        let mut thread = queue.thread();
        assert_eq!(queue.dequeue(&mut thread), Some(5));
        // Else it would point to the node that was retired.
        assert_eq!(queue.tail.0.load(Ordering::Relaxed), node);
        assert_eq!(queue.dequeue(&mut thread), None);
    }

    #[test]
    fn an_enqueue_moves_a_tail_that_is_behind() {
        let (queue, node) = behind();
        let mut thread = queue.thread();
        queue.enqueue(&mut thread, 6);
        // SAFETY: nobody takes it.
        let last = unsafe { (*node).next.load(Ordering::Relaxed) };
        assert_eq!(queue.tail.0.load(Ordering::Relaxed), last);
        assert_eq!(queue.peek(&mut thread), Some(5));
        assert_eq!(queue.dequeue(&mut thread), Some(5));
        assert_eq!(queue.dequeue(&mut thread), Some(6));
    }
}
