//! The primitives of this crate, for structures that are to be modelled.
//!
//! Floor 2 (`hp`). Owns [`Life`]; everything else is a name for what `percpu`
//! has. A structure that takes its atomics from here runs unchanged under
//! loom: with `--cfg loom` these are loom's types, otherwise the standard
//! library's. See the chapter *Verifying your own structure with loom*.
//!
//! What is here under `--cfg loom` is for tests and may change in any release;
//! without it the atomics are `core`'s.

pub use percpu::sync::{UnsafeCell, atomic, spin_loop, yield_now};

/// Whether an object is alive, for loom: nothing at all in other builds.
///
/// loom does not see that memory is freed. A node that has a `Life`, which
/// readers [`touch`](Self::touch) whenever they use the node, lets it see: a
/// touch that races with the drop is reported, and so is one that comes after.
/// ([`Domain::retire_box`](crate::Domain::retire_box) keeps the memory until
/// the execution is over, so that late touches find out.)
///
/// # Example
///
/// ```
/// struct Node {
///     life: hp::sync::Life,
///     value: u32,
/// }
///
/// let node = Node { life: hp::sync::Life::new(), value: 5 };
/// node.life.touch();
/// assert_eq!(node.value, 5);
/// assert_eq!(size_of::<hp::sync::Life>(), 0);
/// ```
#[cfg(not(loom))]
#[derive(Debug, Default)]
pub struct Life;

#[cfg(not(loom))]
impl Life {
    /// Of an object that begins to live.
    #[must_use]
    pub const fn new() -> Self {
        Self
    }

    /// The object is used.
    #[inline(always)]
    pub fn touch(&self) {}
}

/// See the other one.
#[cfg(loom)]
#[derive(Debug)]
pub struct Life(UnsafeCell<State>);

#[cfg(loom)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Alive,
    Over,
}

#[cfg(loom)]
impl Life {
    /// Of an object that begins to live. Its maker has written to it: whoever
    /// touches it must have got it by a publication.
    #[must_use]
    pub fn new() -> Self {
        let life = Self(UnsafeCell::new(State::Over));
        // SAFETY: loom checks.
        life.0.with_mut(|state| unsafe { *state = State::Alive });
        life
    }

    /// The object is used.
    ///
    /// # Panics
    ///
    /// If it lives no more; loom does if its end is not ordered after this.
    pub fn touch(&self) {
        // SAFETY: loom checks.
        let state = self.0.with(|state| unsafe { *state });
        assert_eq!(state, State::Alive, "use after free");
    }

    /// It ends, before it is dropped.
    pub(crate) fn end(&self) {
        self.touch();
        // SAFETY: loom checks.
        self.0.with_mut(|state| unsafe { *state = State::Over });
    }
}

#[cfg(loom)]
impl Default for Life {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(loom)]
impl Drop for Life {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        // SAFETY: loom checks.
        self.0.with_mut(|state| unsafe { *state = State::Over });
    }
}
