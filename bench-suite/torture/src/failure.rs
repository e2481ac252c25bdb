//! The first thing that went wrong.
//!
//! Floor 3. Owns one place for it, which may be filled from a signal handler:
//! no lock, no allocation.

use serde::{Serialize, Serializer};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// What showed that something is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// A reader holds an element whose age is 2 or more.
    TooOld,
    /// A reader holds an element that is being used again.
    Unstamped,
    /// A reader holds an element that has been used again.
    Changed,
    /// A reader holds an element whose payload is not as it was made.
    Poisoned,
    /// An element was reclaimed that had not been unlinked, or not since.
    Twice,
    /// At the end, what had been unlinked was not all reclaimed.
    Lost,
    /// A thread did nothing for longer than the watchdog allows.
    Hung,
}

impl Sign {
    const ALL: [Self; 7] = [
        Self::TooOld,
        Self::Unstamped,
        Self::Changed,
        Self::Poisoned,
        Self::Twice,
        Self::Lost,
        Self::Hung,
    ];

    /// In words.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::TooOld => "a reader holds an element that was reclaimed",
            Self::Unstamped => "a reader holds an element that is being used again",
            Self::Changed => "a reader holds an element that has been used again",
            Self::Poisoned => "a reader sees a payload that was freed",
            Self::Twice => "an element was reclaimed twice",
            Self::Lost => "what was unlinked has not all been reclaimed",
            Self::Hung => "a thread makes no progress",
        }
    }

    fn number(self) -> u64 {
        Self::ALL.iter().position(|one| *one == self).unwrap_or(0) as u64
    }
}

impl Serialize for Sign {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// The first thing that went wrong, and where.
#[derive(Clone, Debug, Serialize)]
pub struct Failure {
    /// What was seen.
    pub sign: Sign,
    /// Who saw it, as in the list of threads.
    pub thread: String,
    /// On which CPU.
    pub cpu: u64,
    /// Milliseconds after the start.
    pub after_ms: f64,
    /// Which element. (Numbers of the pool; nothing for a thread that hangs.)
    pub element: Option<u64>,
    /// Its age then.
    pub age: Option<u64>,
    /// Its stamp when the reader got it.
    pub stamp: Option<u64>,
    /// Its stamp then; 0 while it belongs to nobody.
    pub stamp_now: Option<u64>,
    /// The thread's last steps, the oldest first, with milliseconds after the
    /// start.
    pub steps: Vec<(f64, &'static str)>,
}

/// The numbers of a [`Failure`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) sign: Sign,
    pub(crate) context: usize,
    pub(crate) cpu: usize,
    pub(crate) micros: u64,
    pub(crate) element: Option<usize>,
    pub(crate) age: usize,
    pub(crate) stamp: usize,
    pub(crate) stamp_now: usize,
}

const NONE: u64 = u64::MAX;

/// Nothing is there.
const EMPTY: u32 = 0;
/// Somebody fills it in.
const FILLING: u32 = 1;
/// It is there.
const FULL: u32 = 2;

/// The place for the first one.
#[derive(Debug)]
pub(crate) struct First {
    state: AtomicU32,
    words: [AtomicU64; 8],
}

impl First {
    pub(crate) fn new() -> Self {
        Self {
            state: AtomicU32::new(EMPTY),
            words: [const { AtomicU64::new(0) }; 8],
        }
    }

    /// Keeps it, if it is the first.
    pub(crate) fn put(&self, seen: Seen) {
        // Relaxed: a claim; the words are published below.
        if self
            .state
            .compare_exchange(EMPTY, FILLING, Ordering::Relaxed, Ordering::Relaxed)
            .is_err()
        {
            return;
        }
        let words = [
            seen.sign.number(),
            seen.context as u64,
            seen.cpu as u64,
            seen.micros,
            seen.element.map_or(NONE, |element| element as u64),
            seen.age as u64,
            seen.stamp as u64,
            seen.stamp_now as u64,
        ];
        for (place, word) in self.words.iter().zip(words) {
            place.store(word, Ordering::Relaxed);
        }
        // Release: the words, for `get`.
        self.state.store(FULL, Ordering::Release);
    }

    pub(crate) fn get(&self) -> Option<Seen> {
        // Acquire: "put".
        if self.state.load(Ordering::Acquire) != FULL {
            return None;
        }
        let word = |n: usize| self.words[n].load(Ordering::Relaxed);
        Some(Seen {
            sign: Sign::ALL[word(0) as usize],
            context: word(1) as usize,
            cpu: word(2) as usize,
            micros: word(3),
            element: (word(4) != NONE).then(|| word(4) as usize),
            age: word(5) as usize,
            stamp: word(6) as usize,
            stamp_now: word(7) as usize,
        })
    }
}
