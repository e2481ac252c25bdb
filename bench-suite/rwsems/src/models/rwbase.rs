//! `rwbase`: the bias against readers that overtake, leave last, or are inside
//! already.
//!
//! Proves: no reader is inside beside the writer; the writer does not fall asleep
//! behind the last reader; who waited for the mutex sees what the writer did.
//!
//! Cannot show: that a writer gets in while readers keep coming (it need not).
//!
//! Three roles are searches of at most two preemptions, attempts of three.
//!
//! Rungs: one is enough, no barrier of `percpu` is involved.

use super::*;
use crate::futex::Os;
use crate::rwbase::RwBase;

type L = RwBase<Os>;

#[test]
fn a_reader_and_a_writer() {
    static MODEL: Model<S<L>> = program("rwbase a reader and a writer", &[reader, writer], |s| {
        free(s, 1)
    });
    MODEL.check();
}

#[test]
fn attempts() {
    static MODEL: Model<S<L>> = program(
        "rwbase attempts",
        &[
            |s| {
                try_reader(s);
                try_writer(s);
            },
            |s| {
                try_writer(s);
                reader(s);
            },
        ],
        |s| free_at_most(s, 2),
    );
    MODEL.search(3);
}

#[test]
fn two_writers() {
    static MODEL: Model<S<L>> = program("rwbase two writers", &[writer, writer], |s| free(s, 2));
    MODEL.check();
}

#[test]
fn two_readers_and_a_writer() {
    static MODEL: Model<S<L>> = program(
        "rwbase two readers and a writer",
        &[reader, reader, writer],
        |s| free(s, 1),
    );
    MODEL.search(2);
}

/// A reader that waits for the mutex must not count yet: the next writer would wait
/// for it.
#[test]
fn one_reader_and_two_writers() {
    static MODEL: Model<S<L>> = program(
        "rwbase a reader and two writers",
        &[reader, writer, writer],
        |s| free(s, 2),
    );
    MODEL.search(2);
}
