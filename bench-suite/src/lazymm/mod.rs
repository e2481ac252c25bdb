//! Floor 3, bench-suite. Owns `hpbench lazy-mm`: who knows that a CPU still has an address space ("mm") that it only
//! borrows, in three workloads. May touch `engine`, `report`, the parts of `ctxsw` and what the trackers track with.
//!
//! | file | owns |
//! |---|---|
//! | `tracker` | the contract: grab, drop, tear down |
//! | `trackers` | one file per way to track, and their registry |
//! | `mm` | the tracked object: canary, users, census of the living and the freed |
//! | `invariants` | I1 to I6: what was broken, how often, and what that makes of a record |

pub(crate) mod invariants;
pub(crate) mod mm;
pub(crate) mod tracker;
pub(crate) mod trackers;
