//! A thread's handle: which shared word it counts in where it cannot count in
//! its CPU's.
//!
//! Floor 3 (`refcounts`). Owns the numbering of threads.

/// Passed to every get and put. Any handle does for any count, and a reference
/// may be put with another handle than it was got with.
#[derive(Debug)]
pub struct Thread {
    number: usize,
}

impl Thread {
    /// A handle with the next number.
    #[must_use]
    pub fn new() -> Self {
        use percpu::sync::atomic::Ordering::Relaxed;
        use percpu::sync::atomic::Statistic;
        static NEXT: Statistic = Statistic::new(0);
        // Relaxed: numbers spread threads out, nothing depends on them.
        Self::at(NEXT.fetch_add(1, Relaxed) as usize)
    }

    /// A handle with this number.
    #[must_use]
    pub fn at(number: usize) -> Self {
        Self { number }
    }

    /// The thread's word among `count`.
    #[inline(always)]
    pub(crate) fn among(&self, count: usize) -> usize {
        self.number % count
    }
}

impl Default for Thread {
    fn default() -> Self {
        Self::new()
    }
}

/// Words that threads without sections share.
pub(crate) fn shared_words() -> usize {
    #[cfg(loom)]
    return 2;
    #[cfg(not(loom))]
    percpu::possible_cpus().max(16)
}
