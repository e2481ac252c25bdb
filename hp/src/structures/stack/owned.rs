//! What needs no concurrency: whole stacks, and their iterators.
//!
//! Floor 2 (`hp`), safe level. Gives out values that are the caller's alone;
//! touches the nodes through [`super`] only, but for the references of
//! [`IterMut`].

use super::{Node, NonNull, PhantomData, Process, Stack, take_next};
use core::fmt;

/// The values of a stack that [`Stack::take_all`] emptied.
pub struct TakeAll<T> {
    pub(super) first: Option<NonNull<Node<T>>>,
    pub(super) _owns: PhantomData<T>,
}

// SAFETY: it owns values and gives them out by `&mut self`.
unsafe impl<T: Send> Send for TakeAll<T> {}
// SAFETY: `&TakeAll` gives nothing.
unsafe impl<T: Send> Sync for TakeAll<T> {}

impl<T> Iterator for TakeAll<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        // SAFETY: what `take_all` gave, and ours.
        unsafe { take_next(&Process, &mut self.first) }
    }
}

impl<T> core::iter::FusedIterator for TakeAll<T> {}

impl<T> Drop for TakeAll<T> {
    fn drop(&mut self) {
        drop_each(|| self.next());
    }
}

impl<T> fmt::Debug for TakeAll<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TakeAll").finish_non_exhaustive()
    }
}

/// Drops each value that `next` gives, also those after one whose
/// destructor panics.
fn drop_each<T>(next: impl FnMut() -> Option<T>) {
    struct Rest<T, F: FnMut() -> Option<T>>(F);
    impl<T, F: FnMut() -> Option<T>> Drop for Rest<T, F> {
        fn drop(&mut self) {
            while (self.0)().is_some() {}
        }
    }
    let mut rest = Rest(next);
    while (rest.0)().is_some() {}
}

/// A stack's values, the top one first.
pub struct IntoIter<T> {
    stack: Stack<T>,
}

impl<T> Iterator for IntoIter<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.stack.raw.take_first()
    }
}

impl<T> core::iter::FusedIterator for IntoIter<T> {}

impl<T> fmt::Debug for IntoIter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IntoIter").finish_non_exhaustive()
    }
}

/// References to a stack's values, the top one first.
pub struct IterMut<'a, T> {
    pub(super) next: Option<NonNull<Node<T>>>,
    pub(super) _stack: PhantomData<&'a mut T>,
}

// SAFETY: it is `&mut T`s.
unsafe impl<T: Send> Send for IterMut<'_, T> {}
// SAFETY: `&IterMut` gives nothing.
unsafe impl<T: Sync> Sync for IterMut<'_, T> {}

impl<'a, T> Iterator for IterMut<'a, T> {
    type Item = &'a mut T;

    fn next(&mut self) -> Option<&'a mut T> {
        let node = self.next?.as_ptr();
        // SAFETY: linked in a stack that is borrowed for `'a`; each node
        // is met once.
        unsafe {
            self.next = NonNull::new((*node).next.cast());
            Some(&mut (*node).value)
        }
    }
}

impl<T> core::iter::FusedIterator for IterMut<'_, T> {}

impl<T> fmt::Debug for IterMut<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IterMut").finish_non_exhaustive()
    }
}

impl<T> Drop for Stack<T> {
    fn drop(&mut self) {
        drop_each(|| self.raw.take_first());
    }
}

impl<T> IntoIterator for Stack<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;

    fn into_iter(self) -> IntoIter<T> {
        IntoIter { stack: self }
    }
}

impl<'a, T> IntoIterator for &'a mut Stack<T> {
    type Item = &'a mut T;
    type IntoIter = IterMut<'a, T>;

    fn into_iter(self) -> IterMut<'a, T> {
        self.iter_mut()
    }
}

impl<T> Default for Stack<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> FromIterator<T> for Stack<T> {
    /// The last one is on top.
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let stack = Self::new();
        values.into_iter().for_each(|value| stack.push(value));
        stack
    }
}

impl<T> Extend<T> for Stack<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, values: I) {
        values.into_iter().for_each(|value| self.push(value));
    }
}

impl<T> Extend<T> for &Stack<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, values: I) {
        values.into_iter().for_each(|value| self.push(value));
    }
}

impl<T> fmt::Debug for Stack<T> {
    /// Whether it is empty; a shared stack's values cannot be looked at.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stack")
            .field("is_empty", &self.is_empty())
            .finish_non_exhaustive()
    }
}
