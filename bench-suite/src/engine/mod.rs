//! Floor 3, bench-suite. Owns how runs are planned, started, timed and isolated.
//! May touch the operating system; knows schemes only through the workloads that it is handed.

pub(crate) mod cgroup;
pub(crate) mod child;
pub(crate) mod clock;
pub(crate) mod crew;
pub(crate) mod interrupt;
pub(crate) mod job;
pub(crate) mod pin;
pub(crate) mod places;
pub(crate) mod plan;
pub(crate) mod room;
pub(crate) mod sysroot;
pub(crate) mod weather;
pub(crate) mod windows;
