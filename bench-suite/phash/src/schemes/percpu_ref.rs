//! `percpu-ref`: a count spread over the CPUs, gathered when the table is to be replaced.
//!
//! Floor 3 (`phash`).

use super::counted::counted;
use crate::scheme::{About, Replaces};

counted! {
    /// A count of its own for each table.
    PercpuRef over refcounts::percpu_ref::PercpuRef,
    About {
        name: "percpu-ref",
        measures: "percpu_ref in each table: an addition and a subtraction on the CPU's line, found under RCU; one shared count from the request for a replacement on",
        replaces: Replaces::WhenUnused,
        percpu: true,
    }
}
