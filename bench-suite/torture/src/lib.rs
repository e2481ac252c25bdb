//! Torture: does anybody ever see what nobody may have any more?
//!
//! Floor 3, bench-suite. Owns elements that carry their age, the threads that
//! misbehave around them, and one file for each flavour. May use threads,
//! affinity and signals; knows nothing of command lines and files. After
//! Linux' `rcutorture` (the pipe of ages) and the proposed `hazptrtorture`
//! (what is varied).
//!
//! # Ages
//!
//! | age | meaning | who sets it |
//! |---|---|---|
//! | 0 | published | the writer, before publishing |
//! | 1 | unlinked; who protected it before may still have it | the writer, after unlinking |
//! | 2 | reclaimed: nobody may have it | the flavour, when its wait or deleter says so |
//! | 3 and more | reclaimed some updates ago | a writer, one more with each update |
//!
//! A reader looks at an element's age while it protects it, at least twice.
//! *What is protected is not reclaimed*, by hazard pointers; *what could be
//! found in a section is not reclaimed before the section ends*, by RCU. So for
//! both a reader sees 0 and 1, and nothing else: an element of age 2 in a
//! reader's hand is the fault that this program looks for. (Age 1 is no fault
//! however long it lasts: that is the reader's right.) An element that has been
//! used again meanwhile is told by its stamp, which no two publications share.
//!
//! Each element has a payload on the heap, which is poisoned and freed when the
//! element is reclaimed; a reader compares all of its words.
//!
//! # When nothing is wrong
//!
//! That proves little if nothing could have been found. [`flavours`] has
//! flavours with a planted fault, one for each [`Dimension`] and for each sign;
//! the tests run them and expect to see it.
#![cfg(target_os = "linux")]

pub mod cpus;
mod crew;
pub mod dice;
mod failure;
pub mod flavours;
mod handler;
mod plan;
mod report;
mod run;
mod world;

pub use failure::{Failure, Sign};
pub use flavours::{About, all, find};
pub use plan::{Dimension, Plan};
pub use report::{AGES, Progress, Report};
