//! Reader-writer semaphores to measure against.
//!
//! Floor 3 of the workspace, beside `bench-suite`, which runs them around page
//! faults. A crate of its own so that loom models them without the rest.
//! Depends on `percpu` (per-CPU readers), on `hp`, `rcu-lite` and `refcounts`
//! (variants whose readers do not lock), on `parking_lot`, and on the futex
//! calls of Linux.
//!
//! The kernel's semaphore around an address space, `mmap_sem`, has had several
//! designs. Here they are as locks of user space, so that one machine with one
//! kernel can run them side by side. They are *models*: what they cost in the
//! kernel, with its scheduler's help, is not measured.
//!
//! | name | type | readers at once | who goes first | inheritance |
//! |---|---|---|---|---|
//! | `vanilla` | [`vanilla::Vanilla`] | all | in turn: who comes behind a waiter queues; all queued readers go together | none |
//! | `pi-single` | [`pi_single::PiSingle`] | 1 | by priority, then in turn | who holds it runs at the priority of who waits |
//! | `pi-multi` | [`pi_multi::PiMulti`] | a limit, the CPUs | by priority, then in turn | a writer boosts the readers that it waits for, one after the other; who waits for a writer boosts that |
//! | `rwbase` | [`rwbase::RwBase`] | all | readers overtake a waiting writer | readers and writers boost the writer inside; a writer that waits for readers boosts nobody |
//! | `std` | [`plain::Std`] | all | writers before new readers | none |
//! | `parking-lot` | [`plain::ParkingLot`] | all | in turn, about | none |
//! | `percpu` | [`per_cpu::PerCpu`] | all, without a shared line | a writer before new readers | none |
//! | `vma-refcount` | [`vma::Refcounted`] | all, one shared count | nobody waits for anybody | not needed |
//! | `vma-hp` | [`vma::Hazard`] | all | nobody waits for anybody | not needed |
//! | `vma-rcu` | [`vma::Rcu`] | all | nobody waits for anybody | not needed |
//!
//! All are written from the descriptions of these algorithms; no code is taken
//! from them. The source of each is named in its module.
//!
//! # One interface
//!
//! A lock is a [`RwSem`]. What is measured is a [`Region`]: a description of an
//! address range ([`Vma`]) that readers look at and writers replace. A lock and
//! a description behind it are one ([`Locked`]); the variants without locks
//! protect the description itself. [`dispatch`] finds one by its name.
//!
//! # What all have in common
//!
//! * **Guards stay on their thread**: a PI futex belongs to the thread that took
//!   it.
//! * **No poisoning.** A panic inside releases; what it left half done is seen
//!   by the next one. Of `std`'s lock the poison is ignored.
//! * **No half-way.** Nothing here is a future, and no call can be given up:
//!   a thread that waits waits until it has the lock. Interrupted system calls
//!   are made again. Cancelling threads (`pthread_cancel`) is not supported.
//! * **Fork.** A lock that is held while the process forks stays held in the
//!   child.
//! * **A thread that ends inside** (by losing a guard) leaves the lock held. Those
//!   made of PI futexes notice and go on ([`pi`](mod@pi), "A dead owner"); the
//!   others do not.
//!
//! # Example
//!
//! ```
//! use rwsems::{Locked, Region, RwSem, Vma, rwbase::RwBase};
//!
//! let region: Locked<RwBase> = Region::new(Vma::new(0x1000, 4096));
//! let end = region.read(|vma| vma.start() + vma.len());
//! region.write(|vma| vma.next());
//! assert_eq!(region.read(|vma| vma.generation()), 1);
//! # assert_eq!(end, 0x2000);
//!
//! let lock: RwBase = RwSem::new();
//! let first = lock.read();
//! assert!(lock.try_read().is_some() && lock.try_write().is_none());
//! drop(first);
//! assert!(lock.try_write().is_some());
//! ```

// loom builds leave out what its models do not run.
// (Nobody spins there: a range of turns is empty.)
#![cfg_attr(loom, allow(dead_code, clippy::reversed_empty_ranges))]

mod about;
pub mod futex;
mod lock;
#[cfg(all(test, loom))]
mod models;
mod os;
pub mod per_cpu;
pub mod pi;
pub mod pi_multi;
pub mod pi_single;
#[cfg(not(loom))]
pub mod plain;
#[cfg(not(loom))]
pub mod probe;
mod region;
#[cfg(not(loom))]
mod registry;
pub mod rwbase;
mod sync;
pub mod vanilla;
#[cfg(not(loom))]
pub mod vma;

pub use about::{About, AtOnce};
pub use lock::RwSem;
pub use region::{Locked, Region, Vma};
#[cfg(not(loom))]
pub use registry::{Visit, VisitLock, all, dispatch, dispatch_lock, find};
