//! `rcuref`: one count in the table, taken by one addition.
//!
//! Floor 3 (`phash`). The kernel's private hash of 6.16-rc.

use super::counted::counted;
use crate::scheme::{About, Replaces};

counted! {
    /// A count with a dead zone.
    RcuRef over refcounts::rcuref::RcuRef,
    About {
        name: "rcuref",
        measures: "rcuref_t in the table: an addition and a subtraction on one line, found under RCU: the private hash of Linux 6.16-rc",
        replaces: Replaces::WhenUnused,
        percpu: true,
    }
}
