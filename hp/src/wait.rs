//! Waiting: spin, then yield, then sleep.
//!
//! Floor 2 (`hp`), raw layer; touches nothing.

/// One wait loop's state.
#[derive(Debug)]
pub(crate) struct Backoff {
    round: u32,
}

impl Backoff {
    pub(crate) fn new() -> Self {
        Self { round: 0 }
    }

    /// Waits a little longer than last time: spinning for some hundred
    /// nanoseconds, then yielding, then sleeping up to a millisecond.
    pub(crate) fn snooze(&mut self) {
        #[cfg(loom)]
        percpu::sim::looked_in_vain();
        #[cfg(not(loom))]
        match self.round {
            0..6 => (0..1u32 << self.round).for_each(|_| percpu::sync::spin_loop()),
            6..16 => percpu::sync::yield_now(),
            _ => std::thread::sleep(core::time::Duration::from_micros(
                50 << (self.round - 16).min(4),
            )),
        }
        self.round = self.round.saturating_add(1);
    }
}
