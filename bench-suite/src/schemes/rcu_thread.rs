//! Floor 3, bench-suite. Owns the variant `rcu-thread`: `rcu-lite` on per-thread counters.
//! May touch `rcu-lite`, through the scheme next door.

use super::About;
use super::rcu::{Variant, about};
use rcu_lite::ThreadRcu;

/// Per-thread counters, registered at the first read.
#[derive(Debug)]
pub(crate) struct PerThread;

impl Variant for PerThread {
    const ABOUT: About = about(
        "rcu-thread",
        "rcu-lite, per-thread counters: read, load, drop; sections nest",
        "per operation: `ThreadRcu::read`, with the thread's record, registered by its first read",
    );

    type Flavor = ThreadRcu;

    fn flavor() -> ThreadRcu {
        ThreadRcu
    }
}
