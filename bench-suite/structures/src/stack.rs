//! Treiber's stack.
//!
//! Floor 3 (`structures`). A pop protects the top, reads what is below it, and exchanges the top for that. A protected
//! node is not made anew at its address, so there is no ABA. A push follows no pointer and needs no protection under any
//! scheme.
//!
//! # Orderings
//!
//! | name | access | pairs with |
//! |---|---|---|
//! | "Push" | exchange of the top, Release | the Acquire of `protect` of whoever finds the node, straight or below others: all changes of the top are exchanges, so a later one carries an earlier one's release on |
//! | "Pop" | exchange of the top, AcqRel | unlinks: Acquire, before the retirement |

use crate::scheme::{Guard, Scheme, Thread};
use crate::{Census, Life, Node};
use percpu::sync::atomic::{AtomicPtr, Ordering};
use std::fmt;
use std::ptr;

/// Slots: the top.
const SLOTS: usize = 1;
const TOP: usize = 0;

#[repr(C)]
struct Element {
    below: AtomicPtr<Element>,
    value: u64,
    life: Life,
}

impl Node for Element {
    fn life(&self) -> &Life {
        &self.life
    }
}

/// A stack of numbers.
pub struct Stack<S: Scheme> {
    top: AtomicPtr<Element>,
    census: &'static Census,
    scheme: S,
}

impl<S: Scheme> fmt::Debug for Stack<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stack over {}", S::ABOUT.name)
    }
}

impl<S: Scheme> Stack<S> {
    /// Empty; its nodes are counted in `census`.
    #[must_use]
    pub fn new(census: &'static Census) -> Self {
        Stack {
            top: AtomicPtr::new(ptr::null_mut()),
            census,
            scheme: S::new(),
        }
    }

    /// The calling thread's part.
    pub fn thread(&self) -> S::Thread<'_, SLOTS> {
        self.scheme.thread()
    }

    /// Puts `value` on top.
    #[inline]
    pub fn push(&self, thread: &mut S::Thread<'_, SLOTS>, value: u64) {
        // Relaxed: not followed.
        let mut top = self.top.load(Ordering::Relaxed);
        let node = S::alloc(Element {
            below: AtomicPtr::new(top),
            value,
            life: Life::new(self.census, size_of::<Element>()),
        });
        loop {
            // Release: "Push". Relaxed on failure: not followed.
            match self
                .top
                .compare_exchange_weak(top, node, Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => break,
                Err(now) => top = now,
            }
            // SAFETY: not published yet. Relaxed: "Push" publishes it.
            unsafe { (*node).below.store(top, Ordering::Relaxed) };
        }
        thread.quiescent();
    }

    /// Takes the top.
    #[inline]
    pub fn pop(&self, thread: &mut S::Thread<'_, SLOTS>) -> Option<u64> {
        let mut guard = thread.pin();
        loop {
            let top = guard.protect(TOP, &self.top);
            // SAFETY: null, or protected: found in `top` by `protect`, and whoever takes it from there retires it.
            let node = unsafe { top.as_ref() }?;
            self.census.look(&node.life);
            // Relaxed: written before "Push".
            let below = node.below.load(Ordering::Relaxed);
            // AcqRel: "Pop". Relaxed on failure: not used.
            if self
                .top
                .compare_exchange(top, below, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
            {
                let value = node.value;
                // SAFETY: from `alloc`, and this thread alone took it.
                unsafe { guard.retire(top) };
                return Some(value);
            }
        }
    }

    /// The top, which stays.
    #[inline]
    pub fn peek(&self, thread: &mut S::Thread<'_, SLOTS>) -> Option<u64> {
        self.hold(thread, || ())
    }

    /// The top, which stays, and lives while `pause` runs: it is looked at afterwards.
    #[inline(always)]
    pub fn hold(&self, thread: &mut S::Thread<'_, SLOTS>, pause: impl FnOnce()) -> Option<u64> {
        let mut guard = thread.pin();
        let top = guard.protect(TOP, &self.top);
        pause();
        // SAFETY: as in `pop`.
        let node = unsafe { top.as_ref() }?;
        self.census.look(&node.life);
        Some(node.value)
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

impl<S: Scheme> Drop for Stack<S> {
    fn drop(&mut self) {
        let mut next = *self.top.get_mut();
        while !next.is_null() {
            let node = next;
            // SAFETY: `&mut self`: nobody else has what is still linked.
            unsafe {
                next = *(*node).below.get_mut();
                S::free(node);
            }
        }
    }
}
