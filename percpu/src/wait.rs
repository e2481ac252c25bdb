//! Waiting: spin, then yield, then sleep.
//!
//! Floor 1 (`percpu`); touches nothing. Both crates above wait with it.

/// One wait loop's state.
#[derive(Debug, Default)]
pub struct Backoff {
    round: u32,
}

impl Backoff {
    /// A loop that has not waited yet.
    #[must_use]
    pub fn new() -> Self {
        Self { round: 0 }
    }

    /// Waits a little longer than last time: spinning for some hundred
    /// nanoseconds, then yielding, then sleeping up to a millisecond.
    pub fn snooze(&mut self) {
        #[cfg(loom)]
        crate::sim::looked_in_vain();
        #[cfg(not(loom))]
        match self.round {
            0..6 => (0..1u32 << self.round).for_each(|_| crate::sync::spin_loop()),
            6..16 => crate::sync::yield_now(),
            _ => std::thread::sleep(core::time::Duration::from_micros(
                50 << (self.round - 16).min(4),
            )),
        }
        self.round = self.round.saturating_add(1);
    }
}
