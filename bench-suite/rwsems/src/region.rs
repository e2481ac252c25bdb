//! What is measured: the description of an address range, read by many and
//! replaced by few.
//!
//! Floor 3 (`rwsems`). Owns the description, and a lock with one behind it.

use crate::{About, RwSem};
use core::fmt;
use percpu::sync::UnsafeCell;

/// The description of an address range. It knows whether it is whole: one that
/// was torn by a writer, or freed, is not.
#[derive(Debug)]
pub struct Vma {
    start: usize,
    len: usize,
    generation: u64,
    check: u64,
}

impl Vma {
    /// The first description of a range.
    #[must_use]
    pub fn new(start: usize, len: usize) -> Self {
        Self::of(start, len, 0)
    }

    fn of(start: usize, len: usize, generation: u64) -> Self {
        Self {
            start,
            len,
            generation,
            check: Self::sum(start, len, generation),
        }
    }

    /// The next description of the same range.
    #[must_use]
    pub fn next(&self) -> Self {
        Self::of(self.start, self.len, self.generation + 1)
    }

    /// Where the range begins.
    #[must_use]
    pub fn start(&self) -> usize {
        self.start
    }

    /// How long it is.
    #[must_use]
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.len
    }

    /// How many descriptions there were before.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Whether nobody has torn or freed it.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        // SAFETY: reads its own word; the compiler may not take it from an
        // earlier look.
        let check = unsafe { core::ptr::read_volatile(&raw const self.check) };
        check == Self::sum(self.start, self.len, self.generation)
    }

    fn sum(start: usize, len: usize, generation: u64) -> u64 {
        (start as u64).rotate_left(17) ^ (len as u64).rotate_left(40) ^ !generation
    }
}

impl Drop for Vma {
    /// Who still looks will know.
    fn drop(&mut self) {
        let dead = !Self::sum(self.start, self.len, self.generation);
        // SAFETY: writes its own word; volatile, or it would be left out.
        unsafe { core::ptr::write_volatile(&raw mut self.check, dead) };
    }
}

/// A description that can be read and replaced.
pub trait Region: Sized + Send + Sync + 'static {
    /// Name and description of the way it is protected.
    const ABOUT: About;

    /// A region with this description.
    fn new(first: Vma) -> Self;

    /// Runs `body` with the description, which lives as long as that.
    fn read<T>(&self, body: impl FnOnce(&Vma) -> T) -> T;

    /// Puts what `change` makes of the description in its place; writers one
    /// after the other. `change` may be called more than once.
    fn write(&self, change: impl FnMut(&Vma) -> Vma);

    /// Frees what replaced descriptions can be freed.
    fn flush(&self) {}
}

/// A description behind a lock.
pub struct Locked<L> {
    lock: L,
    vma: UnsafeCell<Vma>,
}

// SAFETY: the cell is read by readers and written by the writer of the lock.
unsafe impl<L: RwSem> Sync for Locked<L> {}

impl<L: RwSem> fmt::Debug for Locked<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(L::ABOUT.name)
    }
}

impl<L: RwSem> Locked<L> {
    /// The lock.
    pub fn lock(&self) -> &L {
        &self.lock
    }
}

impl<L: RwSem> Region for Locked<L> {
    const ABOUT: About = L::ABOUT;

    fn new(first: Vma) -> Self {
        Self {
            lock: L::new(),
            vma: UnsafeCell::new(first),
        }
    }

    #[inline]
    fn read<T>(&self, body: impl FnOnce(&Vma) -> T) -> T {
        let _guard = self.lock.read();
        // SAFETY: a reader is inside.
        self.vma.with(|vma| body(unsafe { &*vma }))
    }

    fn write(&self, mut change: impl FnMut(&Vma) -> Vma) {
        let _guard = self.lock.write();
        // SAFETY: the writer is inside, alone.
        self.vma.with_mut(|vma| unsafe { *vma = change(&*vma) });
    }
}
