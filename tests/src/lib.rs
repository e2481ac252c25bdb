//! What the tests that cross the crates share.
//!
//! Floor 4 of the workspace. The tests of this package run small programs
//! (`src/bin/*-child.rs`) in environments that a test process cannot give
//! itself: a forced rung, a system call filter, a signal timer. Each such
//! program prints one line that starts with `SUMMARY`; [`child`] runs it and
//! reads that line.

pub mod arguments;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod checkpoint;
pub mod child;
pub mod counting;
#[cfg(target_os = "linux")]
pub mod fork;
#[cfg(target_os = "linux")]
pub mod machine;
#[cfg(target_os = "linux")]
pub mod rcu_signals;
pub mod rcu_smoke;
#[cfg(target_os = "linux")]
pub mod seccomp;
#[cfg(target_os = "linux")]
pub mod signals;
pub mod smoke;

/// The chapters whose code uses more than one crate, and must compile and run.
#[cfg(doctest)]
mod book {
    #[doc = include_str!("../../docs/src/bad-days.md")]
    struct BadDays;
    #[doc = include_str!("../../README.md")]
    struct Readme;
}
