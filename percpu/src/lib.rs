//! The floor under `hp` and `rcu-lite`: the running CPU's slot line.
//!
//! Floor 1 of the workspace. It owns
//!
//! * [`section`] — restartable critical sections on the running CPU's line
//!   (inline assembly on x86-64 Linux; every other target takes the portable
//!   path of its caller),
//! * [`barrier`] — process-wide asymmetric barriers and the choice of the rung,
//! * [`mod@line`] — the lines themselves and the set of lines in use,
//! * [`sync`] — the one switch between the standard primitives and loom's,
//! * [`capabilities()`] — which rung runs here and why.
//!
//! It knows nothing of hazard pointers or grace periods, and depends on `libc`
//! alone.
//!
//! # Environment
//!
//! `HP_BARRIER=rseq|membarrier|fence` forces a lower rung (tests, sandboxes):
//! `fence` asks neither the C library nor the kernel anything.
//! `HP_INDEX=cpu_id|mm_cid` overrides the field that indexes lines: `cpu_id`, or
//! `mm_cid` where the kernel has it and more than 512 CPUs are possible.
//! Both are read once, when the rung is decided.
//!
//! # Example
//!
//! ```
//! let here = percpu::capabilities();
//! println!("{here}");
//! percpu::barrier::light();                  // a reader's side
//! percpu::barrier::heavy().expect("barrier"); // a reclaimer's side
//! ```

// loom builds leave out what its models do not run, and with it the callers of
// much of the rest.
#![cfg_attr(loom, allow(dead_code))]

pub mod barrier;
#[cfg(not(loom))]
mod capabilities;
pub mod fork;
pub mod line;
#[cfg(all(test, loom))]
mod models;
pub mod section;
#[cfg(loom)]
pub mod sim;
pub mod sync;
#[cfg(not(loom))]
mod topology;
pub mod wait;

#[cfg(not(loom))]
pub use capabilities::{Capabilities, capabilities};
#[cfg(not(loom))]
pub use topology::possible_cpus;
