//! A stack.
//!
//! Floor 2 (`hp`), over [`super::keep`]. Owns the nodes; the safe level's
//! [`Stack`] and the code that the models run.
//!
//! # Purpose
//!
//! Treiber's stack (1986). Pushing and popping exchange `head`; both protect
//! the node that they compare with, so its address cannot come back meanwhile
//! as another node's (no ABA), nor can the pointer that is stored be one to an
//! object that is gone.
//!
//! # Who owns the value
//!
//! Whoever takes the node out of `head`, and nobody else: others that still
//! protect it read its `next` alone. So the value moves out at once, and what
//! is retired is a node without one: reclaiming it runs no code of `T` and
//! touches no `T`, on whatever thread and however late. That is why a stack
//! asks neither `T: 'static` nor `T: Sync`, and why there is no guard of the
//! value on top: it would look at what a popper has moved away.
//!
//! # Orderings
//!
//! *Push* (Release) – pairs with the Acquire of a protection, and of the
//! exchanges in [`crate::unlink`]: who finds a node finds it filled in.

#[cfg(not(loom))]
use super::keep::Process;
use super::keep::{Keeper, Life};
use crate::retired::Retired;
use crate::slot::Held;
use crate::unlink::{unlink, unlink_if};
use core::marker::PhantomData;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::ptr::{self, NonNull};
use percpu::sync::atomic::{AtomicPtr, Ordering};

#[derive(Debug)]
#[repr(C)]
pub(crate) struct Node<T> {
    pub(crate) life: Life,
    /// Not changed after the push.
    next: *mut (),
    value: ManuallyDrop<T>,
}

impl<T> Node<T> {
    fn boxed(value: T) -> Box<Self> {
        Box::new(Self {
            life: Life::new(),
            next: ptr::null_mut(),
            value: ManuallyDrop::new(value),
        })
    }

    /// Frees the memory of one whose value has been moved out.
    unsafe fn free(address: *mut (), _: MaybeUninit<*mut ()>) {
        // SAFETY: a node from a box that nobody protects; the value is in
        // `ManuallyDrop`.
        drop(unsafe { Box::from_raw(address.cast::<Self>()) });
    }

    /// Takes the value out of a node that left `head`, and retires the rest.
    ///
    /// # Safety
    ///
    /// The caller took the node out of `head`, and does this once.
    unsafe fn take<K: Keeper>(keeper: &K, node: NonNull<Self>, slot: Option<Held>) -> T {
        // SAFETY: alive until it is retired, which only we do. Read as memory:
        // others may be reading `next`.
        let value = unsafe { ptr::read(&raw const (*node.as_ptr()).value) };
        // Its slot would keep it from a pass that the retirement begins.
        drop(slot);
        // SAFETY: unlinked, and ours to retire; freeing it works on any thread.
        let rest = unsafe { Retired::with(node.as_ptr().cast(), ptr::null_mut(), Self::free) };
        let value = ManuallyDrop::into_inner(value);
        keeper.retire(rest);
        value
    }

    /// # Safety
    ///
    /// `node` is protected, or the caller owns it.
    #[inline(always)]
    unsafe fn next(node: NonNull<Self>) -> *mut () {
        // SAFETY: alive, by the caller's word; written before the push.
        unsafe {
            (*node.as_ptr()).life.touch();
            (*node.as_ptr()).next
        }
    }
}

/// The stack's word, and what is done to it.
#[derive(Debug)]
pub(crate) struct Raw<T> {
    head: AtomicPtr<()>,
    _nodes: PhantomData<*mut Node<T>>,
}

impl<T> Raw<T> {
    #[cfg(not(loom))]
    const fn new() -> Self {
        Self {
            head: AtomicPtr::new(ptr::null_mut()),
            _nodes: PhantomData,
        }
    }

    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        Self {
            head: AtomicPtr::new(ptr::null_mut()),
            _nodes: PhantomData,
        }
    }

    /// What `head` points to, protected in `slot`.
    #[inline(always)]
    fn top<K: Keeper>(&self, keeper: &K, slot: &mut Option<Held>) -> Option<NonNull<Node<T>>> {
        let node = match slot {
            Some(slot) => keeper.refill(slot, &self.head)?,
            none => {
                let (new, node) = keeper.protect(&self.head)?;
                *none = Some(new);
                node
            }
        };
        Some(node.cast())
    }

    /// Puts a value on top; gives the node.
    #[inline]
    pub(crate) fn push<K: Keeper>(&self, keeper: &K, value: T) -> NonNull<Node<T>> {
        let node = NonNull::from(Box::leak(Node::boxed(value)));
        let mut slot = None;
        loop {
            let top = self
                .top(keeper, &mut slot)
                .map_or(ptr::null_mut(), |top| top.as_ptr().cast::<()>());
            // SAFETY: not yet pushed, hence ours.
            unsafe { (*node.as_ptr()).next = top };
            // Release: "Push". Relaxed on failure: what was found is not used.
            if self
                .head
                .compare_exchange(
                    top,
                    node.as_ptr().cast(),
                    Ordering::Release,
                    Ordering::Relaxed,
                )
                .is_ok()
            {
                return node;
            }
        }
    }

    #[inline]
    pub(crate) fn pop<K: Keeper>(&self, keeper: &K) -> Option<T> {
        let mut slot = None;
        loop {
            let top = self.top(keeper, &mut slot)?;
            // SAFETY: protected.
            let next = unsafe { Node::next(top) };
            if unlink_if(&self.head, top.as_ptr().cast(), next).is_some() {
                // SAFETY: the exchange took it out.
                return Some(unsafe { Node::take(keeper, top, slot) });
            }
        }
    }

    /// Takes all nodes; gives the first.
    pub(crate) fn take_all(&self) -> Option<NonNull<Node<T>>> {
        NonNull::new(unlink(&self.head, ptr::null_mut()).cast())
    }

    fn first_mut(&mut self) -> Option<NonNull<Node<T>>> {
        // Relaxed: exclusive.
        NonNull::new(self.head.load(Ordering::Relaxed).cast())
    }

    /// Pops for an owner of the stack.
    fn take_first(&mut self) -> Option<T> {
        // SAFETY: from a box, and linked; nobody protects it, since no
        // operation is in progress.
        let node = unsafe { Box::from_raw(self.first_mut()?.as_ptr()) };
        // Relaxed: exclusive.
        self.head.store(node.next, Ordering::Relaxed);
        Some(ManuallyDrop::into_inner(node.value))
    }
}

/// The next value of a chain that [`Raw::take_all`] took.
///
/// # Safety
///
/// `first` is what is left of such a chain, and the caller's.
pub(crate) unsafe fn take_next<K: Keeper, T>(
    keeper: &K,
    first: &mut Option<NonNull<Node<T>>>,
) -> Option<T> {
    let node = (*first)?;
    // SAFETY: in the chain, hence not retired.
    *first = unsafe { NonNull::new(Node::next(node).cast()) };
    // SAFETY: no longer in `head`, and the chain is the caller's.
    Some(unsafe { Node::take(keeper, node, None) })
}

/// A lock-free stack: last in, first out.
///
/// [`pop`](Self::pop) gives the value itself, at once: nobody else ever looks
/// at it. That also means that there is no guard of the value on top;
/// [`peek`](Self::peek) copies, and [`peek_mut`](Self::peek_mut) takes the
/// stack for itself. Values may borrow (`T` need not be `'static`).
///
/// # Progress
///
/// Pushing, popping and peeking are lock-free: a retry means that another
/// thread pushed or popped. Memory of popped nodes is bounded as that of the
/// global [`Domain`](crate::Domain) is.
///
/// # Bounds
///
/// `Send` and `Sync` if `T: Send`: a value is on one thread at a time.
///
/// # Source
///
/// Treiber, *Systems Programming: Coping with Parallelism* (1986).
///
/// # Example
///
/// ```
/// use hp::structures::Stack;
///
/// let jobs = Stack::new();
/// std::thread::scope(|scope| {
///     scope.spawn(|| (0..100).for_each(|n| jobs.push(n)));
///     scope.spawn(|| (100..200).for_each(|n| jobs.push(n)));
/// });
/// let mut sum = 0;
/// while let Some(n) = jobs.pop() {
///     sum += n;
/// }
/// assert_eq!(sum, (0..200).sum());
/// ```
#[cfg(not(loom))]
pub struct Stack<T> {
    raw: Raw<T>,
}

// SAFETY: a value goes to whoever pops it, on any thread (`Send`); no two
// threads have references to one, so `Sync` is not needed. (`peek` copies, and
// what is `Copy` has no interior that a reference could change.)
#[cfg(not(loom))]
unsafe impl<T: Send> Send for Stack<T> {}
// SAFETY: as above.
#[cfg(not(loom))]
unsafe impl<T: Send> Sync for Stack<T> {}

#[cfg(not(loom))]
impl<T> Stack<T> {
    /// An empty stack. Allocates nothing.
    #[must_use]
    pub const fn new() -> Self {
        Self { raw: Raw::new() }
    }

    /// Puts a value on top.
    ///
    /// # Progress
    ///
    /// Lock-free; allocates one node.
    #[inline]
    pub fn push(&self, value: T) {
        self.raw.push(&Process, value);
    }

    /// Takes the value on top. `None` if the stack is empty.
    ///
    /// Everything that happened before the value was pushed happens before
    /// this returns it.
    ///
    /// # Panics
    ///
    /// If this call reclaims and a destructor of somebody else's object
    /// panics, as with [`Domain::retire_box`](crate::Domain::retire_box). The
    /// value popped is dropped then.
    ///
    /// # Progress
    ///
    /// Lock-free; allocates nothing in the steady state.
    #[inline]
    pub fn pop(&self) -> Option<T> {
        self.raw.pop(&Process)
    }

    /// Takes all values with one exchange: an iterator over them, the top one
    /// first. Those that it is not asked for are dropped with it.
    ///
    /// # Example
    ///
    /// ```
    /// let stack = hp::structures::Stack::from_iter(1..=3);
    /// let all = stack.take_all();
    /// assert!(stack.is_empty());
    /// assert_eq!(all.collect::<Vec<_>>(), [3, 2, 1]);
    /// ```
    ///
    /// # Progress
    ///
    /// Wait-free.
    #[must_use = "what is not iterated over is dropped"]
    pub fn take_all(&self) -> TakeAll<T> {
        TakeAll {
            first: self.raw.take_all(),
            _owns: PhantomData,
        }
    }

    /// A copy of the value on top. It may have been popped by the time that
    /// this returns.
    ///
    /// # Progress
    ///
    /// As [`Atomic::load`](crate::Atomic::load).
    #[must_use]
    pub fn peek(&self) -> Option<T>
    where
        T: Copy,
    {
        let mut slot = None;
        let top = self.raw.top(&Process, &mut slot)?;
        // SAFETY: protected, and a value in a node is never written: who pops
        // reads it, too. A copy needs no reference to be shared.
        Some(*unsafe { ptr::read(&raw const (*top.as_ptr()).value) })
    }

    /// The value on top, for changing in place.
    #[must_use]
    pub fn peek_mut(&mut self) -> Option<&mut T> {
        self.iter_mut().next()
    }

    /// Whether the stack is empty now.
    ///
    /// # Progress
    ///
    /// Wait-free: one load.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        // Relaxed: nothing is dereferenced.
        self.raw.head.load(Ordering::Relaxed).is_null()
    }

    /// The values, the top one first. Takes the stack for itself; there is no
    /// iterator over a stack that others pop from, since they take the values
    /// away.
    pub fn iter_mut(&mut self) -> IterMut<'_, T> {
        IterMut {
            next: self.raw.first_mut(),
            _stack: PhantomData,
        }
    }

    /// Removes all values and drops them.
    ///
    /// # Panics
    ///
    /// If a value's destructor does, after the others were dropped, and as
    /// [`pop`](Self::pop).
    ///
    /// # Progress
    ///
    /// Wait-free but for the destructors and retiring the nodes, which is
    /// lock-free.
    pub fn clear(&self) {
        drop(self.take_all());
    }
}

#[cfg(not(loom))]
mod owned;
#[cfg(not(loom))]
pub use owned::{IntoIter, IterMut, TakeAll};
