//! `refcount`: one count in the table, taken unless it is zero.
//!
//! Floor 3 (`phash`).

use super::counted::counted;
use crate::scheme::{About, Replaces};
use refcounts::plain::IncNotZero;

counted! {
    /// A count that is taken by compare-exchange.
    Refcount over IncNotZero,
    About {
        name: "refcount",
        measures: "a reference count in the table: a compare-exchange loop and a subtraction on one line, found under RCU",
        replaces: Replaces::WhenUnused,
        percpu: true,
    }
}
