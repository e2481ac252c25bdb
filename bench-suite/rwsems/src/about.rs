//! What is known of a variant beside how it runs.
//!
//! Floor 3 (`rwsems`). Owns the description.

/// How many readers can be inside at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtOnce {
    /// One.
    One,
    /// As many as the lock was made for.
    Limit,
    /// All.
    All,
}

/// The description of a variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub what: &'static str,
    /// What a call can wait for.
    pub progress: &'static str,
    /// Who goes first.
    pub fairness: &'static str,
    /// Whose priority is inherited by whom.
    pub inherits: &'static str,
    /// Where the algorithm is from.
    pub source: &'static str,
    /// Readers inside at the same time.
    pub readers: AtOnce,
    /// Whether a reader may enter again while a writer waits.
    pub nests: bool,
    /// Whether it needs the PI futexes of Linux.
    pub pi: bool,
    /// Whether `percpu` is under it, so that its rung matters.
    pub percpu: bool,
    /// Whether it locks at all.
    pub locks: bool,
}
