//! What the schemes have in common that put the next table into use at once.
//!
//! Floor 3 (`phash`). Owns the order of replacements.

use crate::scheme::Replaced;
use crate::sync::{Mutex, lock};
use crate::table::Table;
use std::time::Instant;

/// One replacement at a time.
#[derive(Debug, Default)]
pub(super) struct AtOnce(Mutex<()>);

impl AtOnce {
    /// Moves the waiters of `old()`, which protects the table in use, to `next`; and `publish`es that, which retires the
    /// old one. Never waits for users of the old table, so it needs no time limit.
    pub(super) fn replace<G: std::ops::Deref<Target = Table>>(
        &self,
        old: impl FnOnce() -> G,
        next: Table,
        publish: impl FnOnce(Table),
    ) -> Replaced {
        let _turn = lock(&self.0);
        let (census, asked): (_, Instant) = (next.census(), next.asked);
        let old = old();
        old.move_to(&next);
        publish(next);
        old.supersede();
        drop(old);
        census.in_use(asked);
        Replaced::InUse
    }
}
