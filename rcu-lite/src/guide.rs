//! The chapter of the book whose code must compile and run.
//!
//! Floor 2 (`rcu-lite`); exists in documentation tests only.

#[doc = include_str!("../../docs/src/rcu.md")]
struct Rcu;
