//! RCU-style reclamation on per-CPU counters: **not written yet**.
//!
//! Floor 2 of the workspace, over `percpu`; knows nothing of `hp`.
//!
//! This crate is empty. It holds the place of the workspace's second
//! reclamation scheme, so that the folders, the checks and the layering rule
//! (`hp` and `rcu-lite` do not import each other) are in place before the code
//! is. Nothing here can be used, and nothing here is promised to stay.
//!
//! What it is meant to become:
//!
//! * read-side sections that count themselves on the running CPU's line
//!   (`percpu::section::load_and_add`), may nest, sleep, and end on another
//!   thread;
//! * `synchronize`, callbacks, polled grace periods, and a counter of what
//!   waits, because a stalled reader holds up *everything* that is retired
//!   after it began;
//! * flavours with per-thread counters and with announced quiescent states
//!   behind one trait.
//!
//! Until then use `hp`: a hazard pointer holds up one object only, however
//! long it is held.
