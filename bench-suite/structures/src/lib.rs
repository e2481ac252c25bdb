//! Lock-free structures over many ways to keep their nodes alive.
//!
//! Floor 3 of the workspace, beside `bench-suite`, which measures them. What is compared is the scheme: the structures
//! are one code for all, so that whatever differs is the scheme's.
//!
//! | file | owns |
//! |---|---|
//! | `scheme` | the traits: scheme, a thread's part, an operation's protection |
//! | `schemes` | one file a scheme, and the registry |
//! | `about` | what people and structures should know of a scheme |
//! | `census` | births, deaths, canaries |
//! | `cell`, `stack`, `queue` | the structures |
//! | `map` | what the maps have in common |
//! | `chain`, `list`, `hash` | ordered chains: one, and a table of them |
//! | `tower`, `skip` | the skip list: its nodes and walks, its operations |
//! | `metered` | any scheme, with the time that retirements take |
//! | `alloc` | calls of the allocator |
//! | `linear` | whether a concurrent history could have happened one operation after another |
//!
//! ```
//! use structures::{Census, Stack, schemes::{Hp, Native}};
//!
//! let census = Census::leak();
//! let stack = Stack::<Hp<Native>>::new(census);
//! let mut thread = stack.thread();
//! stack.push(&mut thread, 1);
//! stack.push(&mut thread, 2);
//! assert_eq!(stack.pop(&mut thread), Some(2));
//! assert_eq!(stack.pop(&mut thread), Some(1));
//! assert_eq!(stack.pop(&mut thread), None);
//! drop(thread);
//! stack.flush();
//! assert_eq!((census.count().nodes, census.dead_seen()), (0, 0));
//! ```

mod about;
pub mod alloc;
mod cell;
mod census;
mod chain;
mod fault;
mod hash;
pub mod linear;
mod list;
mod map;
pub mod metered;
#[cfg(test)]
mod planted;
mod queue;
mod scheme;
pub mod schemes;
mod skip;
mod stack;
mod tower;

pub use about::{About, Kind, Protects, Support};
pub use cell::{Cell, SwapCell};
pub use census::{Census, Count, Life, Node};
pub use hash::HashMap;
pub use list::List;
pub use map::{Map, Scan};
pub use queue::Queue;
pub use scheme::{Guard, Scheme, Thread, tag_bits, untagged};
pub use schemes::{Visit, VisitCell, dispatch, dispatch_cell};
pub use skip::SkipList;
pub use stack::Stack;
