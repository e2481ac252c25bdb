//! Reference counts to measure against.
//!
//! Floor 3 of the workspace, beside `bench-suite`, which runs them as trackers
//! of a shared object. A crate of its own so that loom models them without the
//! other schemes that `bench-suite` compares. Depends on `percpu` only; knows
//! nothing of `hp` or `rcu-lite`.
//!
//! | scheme | a get and a put cost | hazards | source |
//! |---|---|---|---|
//! | [`plain`] | one atomic addition each on one shared line; a weak lookup is a compare-exchange loop (N threads: N² attempts) | a get without a reference is a use after free; a count that overflows stays where it is and the object leaks | `refcount_t` (Linux), `Arc` |
//! | [`rcuref`] | one atomic addition each on one shared line, weak or not | the object must outlive a put that has lost its last reference and not yet tried the compare-exchange: free it after a grace period. A count of 0 does not mean dead | `rcuref_t` (Linux 6.4) |
//! | [`percpu_ref`] | one restartable section each on the CPU's own line; without sections one atomic addition on one of many lines; after [`kill`](percpu_ref::PercpuRef::kill) as `plain` | nobody sees the count reach zero before it is killed; a switch interrupts all running threads and looks at every CPU's line; a line for each possible CPU | `percpu_ref` (Linux) |
//! | [`split`] | one atomic addition to load and one compare-exchange to release, both on the cell's line; on the object's once the cell was replaced | 65 535 loads at once, so counts are folded at a threshold; addresses of 48 bits | Williams; folly's `AtomicSharedPtr` |
//! | [`lazy_slots`] | a store each in the CPU's own slot, and two fences or none; tearing down looks at all slots and interrupts whoever has it | no count at all; one lazily held object a CPU | the kernel's hazard pointers for lazy mms (2024) |
//! | [`futex_ref`] | as `percpu_ref`, and a load of the table's number; in atomic mode, and without sections, two more additions to announce the lookup | one set of counters for all tables of a process: a replacement waits for two grace periods, or lookups of the last table would count in the next one | futex private hash (Linux 6.17) |
//!
//! All are written from the descriptions of these algorithms; no code is taken
//! from them. What each zone, bias and barrier is for stands in the module.
//! `Arc` and `arc-swap` are used directly by `bench-suite`.
//!
//! # Counts, not pointers
//!
//! But for [`split`], a count here owns no object: it says when the last
//! reference has gone, and a wrong sequence of calls gives wrong answers, not
//! undefined behaviour. What the answers are worth to an object that lives
//! beside the count is what the models (`models`, under `--cfg loom`) check.
//!
//! # Example
//!
//! ```
//! use refcounts::{Thread, Tracker, percpu_ref::PercpuRef};
//!
//! let thread = Thread::new();
//! let count = PercpuRef::new();                       // holds the initial reference
//! assert!(count.try_get(&thread));
//! assert!(!count.kill().expect("barrier"));           // somebody still has one
//! assert!(!count.try_get_live(&thread));
//! assert!(count.put(&thread));                        // the last one: free the object
//!
//! // The same through the trait that all have in common.
//! fn once<T: Tracker>(thread: &Thread) -> bool {
//!     let tracker = T::new();
//!     let held = tracker.get(thread).expect("alive");
//!     tracker.put(thread, held);
//!     tracker.kill(thread).expect("barrier")
//! }
//! assert!(once::<PercpuRef>(&thread));
//! ```

pub mod futex_ref;
pub mod lazy_slots;
mod lookups;
#[cfg(all(test, loom))]
mod models;
mod per_cpu;
pub mod percpu_ref;
pub mod plain;
pub mod rcuref;
mod shards;
pub mod split;
mod sync;
mod thread;
mod tracker;

pub use percpu::barrier::BarrierLost;
pub use thread::Thread;
pub use tracker::Tracker;
