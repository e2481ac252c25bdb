//! A futex hash in user space: the model of the kernel's private hash, whose table is protected in many ways.
//!
//! Floor 3 of the workspace, beside `bench-suite`, which measures it. A crate of its own so that loom models the
//! waiters without the schemes that `bench-suite` compares.
//!
//! A thread *waits* on a word: it finds the word's bucket, says that it is there, takes the bucket's lock, looks
//! whether the word still holds what it expects, queues and sleeps. Another changes the word and *wakes*: it finds the
//! bucket, takes waiters out and wakes them. The table of buckets may be *replaced* by a smaller or larger one while
//! threads wait and operate; so each operation protects the table, and how is the subject:
//!
//! | scheme | an operation pays | a replacement waits for |
//! |---|---|---|
//! | `global` | nothing | is not possible |
//! | `immutable` | a load | is not possible |
//! | `refcount` | a compare-exchange and a subtraction, on one line of all threads | a moment without a reference |
//! | `rcuref` | an addition and a subtraction, on one line | the same |
//! | `percpu-ref`, `futex-ref` | two sections on the CPU's line; while a replacement is pending as `refcount` | the same, after one barrier or more |
//! | `split-count` | an addition and a compare-exchange on the pointer's own line | nobody |
//! | `hp` | a section and a store | nobody |
//! | `rcu`, `crossbeam-epoch`, `seize` | entering and leaving | nobody |
//!
//! A moment without a reference may never come while threads operate without a break: then the new table waits for
//! ever. [`Replaced`] and [`Census`] show it.
//!
//! | file | owns |
//! |---|---|
//! | `table` | buckets: announce, queue, wake, move |
//! | `map` | the order of an operation |
//! | `park` | how a thread sleeps: one real futex each |
//! | `scheme`, `schemes` | how a table is protected and replaced |
//! | `census` | what became of the tables |
//! | `models` | loom models of waiting, waking and moving |
//!
//! ```
//! use phash::{Handle, Phash, Replaced, Wait, schemes::Hp};
//! use std::sync::atomic::{AtomicU32, Ordering};
//!
//! let (hash, word) = (Phash::<Hp>::new(4), AtomicU32::new(0));
//! std::thread::scope(|scope| {
//!     scope.spawn(|| {
//!         let mut thread = Handle::new();
//!         while word.load(Ordering::Acquire) == 0 {
//!             hash.wait(&mut thread, &word, 0, None);
//!         }
//!     });
//!     let mut thread = Handle::new();
//!     assert_eq!(hash.replace(&thread, 8, None), Replaced::InUse);
//!     word.store(1, Ordering::Release);
//!     hash.wake(&mut thread, &word, usize::MAX);
//!     assert_eq!(hash.wait(&mut thread, &word, 0, None), Wait::Mismatch);
//! });
//! ```

#![cfg_attr(loom, allow(dead_code))]

mod census;
mod map;
#[cfg(all(test, loom))]
mod models;
mod park;
mod scheme;
#[cfg(not(loom))]
pub mod schemes;
mod sync;
mod table;

pub use census::Census;
pub use map::{Handle, Phash, Wait};
pub use park::{Futex, Sleep};
pub use scheme::{About, Replaced, Replaces, Scheme, Visit};
pub use table::{Table, index};
