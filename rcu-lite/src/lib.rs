//! RCU-style reclamation: readers that never wait, and writers that wait until
//! the readers of the old value have left.
//!
//! Floor 2 of the workspace, over `percpu`; knows nothing of `hp`.
//!
//! Three flavours share one interface ([`Flavor`]):
//!
//! | | [`Rcu`] | [`ThreadRcu`] | [`QsbrRcu`] |
//! |---|---|---|---|
//! | a reader costs | a restartable section and a store (two sections where the CPU's slot is taken) | a store and a load more than nothing | nothing, but must announce |
//! | guards | `Send`, may sleep, cross `.await` | stay on their thread | stay on their thread |
//! | domains | many | one | one |
//! | threads register | no | by themselves | by themselves, or go [`online`](QsbrRcu::online) |
//! | a grace period looks at | a line a CPU | a record a thread | a record a thread |
//! | and interrupts | running threads | running threads | nobody |
//! | `synchronize` inside a section | never returns | panics | panics |
//!
//! ```
//! use rcu_lite::{Rcu, RcuCell};
//!
//! let cell = RcuCell::new(String::from("old"));
//! let guard = Rcu::global().read();
//! let seen: &String = cell.load(&guard);     // valid until `guard` is dropped
//! cell.replace(String::from("new"));         // does not wait
//! assert_eq!(seen, "old");
//! drop(guard);
//! Rcu::global().barrier();                   // "old" has been dropped
//! ```
//!
//! For structures of your own: unlink, then [`defer_free`](Rcu::defer_free) or
//! [`call`](Rcu::call); or [`synchronize`](Rcu::synchronize) and free; or
//! [`start_poll`](Rcu::start_poll) and free when [`poll`](Rcu::poll) says so.
//!
//! ```
//! # use rcu_lite::Rcu;
//! # use std::sync::atomic::{AtomicPtr, Ordering};
//! let shared = AtomicPtr::new(Box::into_raw(Box::new(1)));
//! let rcu = Rcu::global();
//!
//! // A reader.
//! let guard = rcu.read();
//! // SAFETY: never null; what is replaced is freed after a grace period.
//! assert_eq!(unsafe { *shared.load(Ordering::Acquire) }, 1);
//! drop(guard);
//!
//! // A writer.
//! let old = shared.swap(Box::into_raw(Box::new(2)), Ordering::AcqRel);
//! // SAFETY: unlinked by this thread alone, and from a box.
//! unsafe { rcu.defer_free(old) };
//! # // SAFETY: nobody else is left.
//! # drop(unsafe { Box::from_raw(shared.into_inner()) });
//! # rcu.barrier();
//! ```
//!
//! # RCU or hazard pointers?
//!
//! A section protects **everything** that its reader can reach, at no cost an
//! object: right for walks through lists and trees. In return one reader that
//! stays inside holds up all reclamation of the domain: what waits has no
//! bound ([`Stats::pending`] counts it). A hazard pointer (`hp`) protects one
//! object, and holds up only that one.
//!
//! # Promises
//!
//! * Readers are wait-free.
//! * A grace period waits for the readers that began before it, and for no
//!   reader that began after it.
//! * Threads that wait at the same time share grace periods.
//! * `call` and `defer_drop` never wait for readers, and run nothing unless
//!   asked to ([`Callbacks::Inline`]).
//! * Callbacks wait in the domain, not in threads: a thread that exits loses
//!   none. They are run once each, all of them when a domain is dropped; those
//!   that wait when the process ends are not.
//!
//! # Names
//!
//! | C++26 `<rcu>` | liburcu | here | difference |
//! |---|---|---|---|
//! | `rcu_domain`, `rcu_default_domain()` | a flavour is a domain | [`Rcu`], [`Rcu::global`] | any number of domains here; C++26 offers the default one only |
//! | – | `urcu-memb`, `urcu-bp` | [`ThreadRcu`] | registers as `bp` does, costs what `memb` does |
//! | – | `urcu-qsbr` | [`QsbrRcu`] | the borrow of [`Online`](qsbr::Online) keeps announcements out of sections |
//! | `lock`, `unlock` | `rcu_read_lock`, `rcu_read_unlock` | [`read`](Rcu::read), dropping the guard | |
//! | – | `rcu_dereference` | [`RcuCell::load`], or an Acquire load | |
//! | – | `rcu_assign_pointer`, `rcu_xchg_pointer` | [`RcuCell::replace`], or an AcqRel exchange | retires the old value |
//! | – | `rcu_cmpxchg_pointer` | [`RcuCell::compare_and_replace`], [`RcuCell::update`] | |
//! | `rcu_synchronize` | `synchronize_rcu` | [`synchronize`](Rcu::synchronize), [`synchronize_timeout`](Rcu::synchronize_timeout) | panics in a section where the flavour can tell |
//! | `rcu_retire`, `rcu_obj_base::retire` | `call_rcu`, `defer_rcu` | [`call`](Rcu::call), [`defer_drop`](Rcu::defer_drop) | nothing to embed in the object, no thread to create or register |
//! | `rcu_barrier` | `rcu_barrier`, `rcu_defer_barrier` | [`barrier`](Rcu::barrier) | helps; [`drain`](Rcu::drain) where there is no worker |
//! | – | `start_poll_synchronize_rcu`, `poll_state_synchronize_rcu` | [`start_poll`](Rcu::start_poll), [`poll`](Rcu::poll), [`cond_synchronize`](Rcu::cond_synchronize) | polling drives the grace period |
//! | – | `rcu_quiescent_state` | [`quiescent_state`](qsbr::Online::quiescent_state) | |
//! | – | `rcu_thread_offline`, `rcu_thread_online` | [`offline`](qsbr::Online::offline), [`online`](QsbrRcu::online) | scopes |
//! | – | `rcu_register_thread` | – | not needed |
//! | – | `call_rcu_before_fork` … | – | see each flavour's *Fork* |
//!
//! # Features
//!
//! None. Depends on `percpu` and `libc`.
//!
//! # Limits
//!
//! * Sections are restartable sequences on x86-64 Linux with glibc ≥ 2.35;
//!   elsewhere [`Rcu`]'s readers count with atomic additions (some five times
//!   as dear), [`ThreadRcu`]'s are unchanged where Linux has `membarrier` and
//!   pay a fence where not, [`QsbrRcu`]'s are the same everywhere.
//! * Forgetting a guard stops the grace periods of its domain for ever.
//! * A domain of its own takes a megabyte of address space (a page of memory
//!   for each 32 CPUs).

// (There is one shard there, so that places are taken modulo 1.)
#![cfg_attr(loom, allow(dead_code, clippy::modulo_one))]

mod calls;
mod cookie;
mod counters;
mod deferred;
mod domain;
mod grace;
mod local;
mod lock;
#[cfg(all(test, loom))]
mod models;
#[cfg(not(loom))]
mod process_wide;
pub mod qsbr;
mod queue;
mod records;
mod shard;
mod stats;
pub mod thread;
mod worker;

// Models have a flavour of their own: loom's atomics cannot be static.
#[cfg(any(test, not(loom)))]
mod cell;
#[cfg(any(test, not(loom)))]
mod flavor;
#[cfg(all(doctest, not(loom)))]
mod guide;
#[cfg(any(test, not(loom)))]
pub mod list;
#[cfg(not(loom))]
mod rcu;

/// Makes what the process makes once: decides the rung (which registers with
/// the kernel; some milliseconds where other threads run already), and the
/// process-wide [`Rcu`].
///
/// Calling it is never needed. It keeps that time out of the first section and
/// the first grace period.
#[cfg(not(loom))]
pub fn init() {
    let _ = percpu::barrier::rung();
    drop(Rcu::global().read());
}

#[cfg(any(test, not(loom)))]
pub use cell::{RcuCell, Replaced};
pub use cookie::Cookie;
#[cfg(any(test, not(loom)))]
pub use flavor::Flavor;
pub use grace::Timeout;
#[cfg(any(test, not(loom)))]
pub use list::RcuList;
#[cfg(all(test, loom))]
pub use models::Rcu;
#[cfg(not(loom))]
pub use qsbr::QsbrRcu;
pub use queue::Callbacks;
#[cfg(not(loom))]
pub use rcu::{Guard, Rcu};
pub use stats::Stats;
#[cfg(not(loom))]
pub use thread::ThreadRcu;
