//! Waiting in the kernel, and the seam where tests take its place.
//!
//! Floor 3 (`rwsems`). Owns the word that is waited on; touches the kernel
//! through `os`.
//!
//! Each lock is generic over a [`Futex`]: [`Os`] asks the kernel, and a test may
//! answer without having waited, as the kernel may too (a signal, a value that
//! changed and changed back). Every caller looks again after every return.

use crate::os;
use core::fmt;
use percpu::sync::atomic::{AtomicU32, Ordering};

/// A word that threads can wait on.
pub struct Word {
    pub(crate) value: AtomicU32,
    #[allow(dead_code, reason = "the kernel keeps its own")]
    pub(crate) beside: os::Beside,
}

impl Word {
    /// A word with this value.
    #[must_use]
    pub fn new(value: u32) -> Self {
        Self {
            value: AtomicU32::new(value),
            beside: os::Beside::new(),
        }
    }

    /// Its value now.
    #[must_use]
    pub fn peek(&self) -> u32 {
        // Relaxed: for tests.
        self.value.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.peek())
    }
}

/// Why the kernel did not give a PI futex away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The owner is about to end, or something else that will be over soon.
    Again,
    /// A signal came.
    Interrupted,
    /// There is no thread with the owner's number.
    OwnerGone,
    /// The caller owns it, or waits in a circle.
    Deadlock,
    /// This kernel has no PI futexes, or a filter hides them.
    Missing,
    /// Another error number.
    Other(i32),
}

/// The calls that locks make when they have to wait.
pub trait Futex: fmt::Debug + Send + Sync + 'static {
    /// Sleeps if the word is `expected`, until woken. May return at any time.
    fn wait(word: &Word, expected: u32) {
        os::wait(word, expected);
    }

    /// Wakes one thread that waits on the word.
    fn wake(word: &Word) {
        os::wake(word);
    }

    /// Waits for a PI futex; its owner inherits the caller's priority. On
    /// success the word holds the caller's number.
    ///
    /// # Errors
    ///
    /// [`Refused`]; nothing has changed then.
    fn lock_pi(word: &Word) -> Result<(), Refused> {
        os::lock_pi(word)
    }

    /// Hands a PI futex on to the most urgent thread that waits.
    ///
    /// # Errors
    ///
    /// [`Refused`]; nothing has changed then.
    fn unlock_pi(word: &Word) -> Result<(), Refused> {
        os::unlock_pi(word)
    }
}

/// The kernel's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Os;

impl Futex for Os {}

/// Whether PI futexes can be had here.
///
/// # Errors
///
/// Why not.
pub fn pi_available() -> Result<(), &'static str> {
    os::pi_available()
}
