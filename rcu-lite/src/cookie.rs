//! What a polled grace period is asked for with.
//!
//! Floor 2 (`rcu-lite`); touches nothing.

/// Stands for a grace period of one domain that began after
/// [`start_poll`](crate::Flavor::start_poll) was called.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a cookie does nothing until it is polled"]
pub struct Cookie {
    target: u64,
    domain: usize,
}

impl Cookie {
    pub(crate) fn new(target: u64, domain: *const ()) -> Self {
        Self {
            target,
            domain: domain.addr(),
        }
    }

    /// The target.
    ///
    /// # Panics
    ///
    /// If the cookie is of another domain.
    pub(crate) fn target(&self, domain: *const ()) -> u64 {
        assert!(
            self.domain == domain.addr(),
            "the cookie is of another domain"
        );
        self.target
    }
}
