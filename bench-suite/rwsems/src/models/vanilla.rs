//! `vanilla`: the count word and its queue.
//!
//! Proves: no reader is inside beside a writer, and no two writers; nobody stays
//! in the queue; a unit that meant nothing (a reader about to queue) does not keep
//! anybody from being woken; the handoff is not lost.
//!
//! Cannot show: who goes first.
//!
//! Three roles are searches of at most three preemptions, attempts of four.
//!
//! Rungs: one is enough, no barrier of `percpu` is involved.

use super::*;
use crate::futex::Os;
use crate::vanilla::Vanilla;

type L = Vanilla<Os>;

#[test]
fn a_reader_and_a_writer() {
    static MODEL: Model<S<L>> = program("vanilla a reader and a writer", &[reader, writer], |s| {
        free(s, 1)
    });
    MODEL.check();
}

#[test]
fn two_writers() {
    static MODEL: Model<S<L>> = program("vanilla two writers", &[writer, writer], |s| free(s, 2));
    MODEL.check();
}

#[test]
fn attempts() {
    static MODEL: Model<S<L>> = program(
        "vanilla attempts",
        &[
            |s| {
                try_reader(s);
                writer(s);
            },
            |s| {
                try_writer(s);
                reader(s);
            },
        ],
        |s| free_at_most(s, 2),
    );
    MODEL.search(4);
}

#[test]
fn two_readers_and_a_writer() {
    static MODEL: Model<S<L>> = program(
        "vanilla two readers and a writer",
        &[reader, reader, writer],
        |s| free(s, 1),
    );
    MODEL.search(3);
}

#[test]
fn a_reader_and_two_writers() {
    static MODEL: Model<S<L>> = program(
        "vanilla a reader and two writers",
        &[reader, writer, writer],
        |s| free(s, 2),
    );
    MODEL.search(3);
}
