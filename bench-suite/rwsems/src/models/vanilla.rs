//! `vanilla`: the count word and its queue.
//!
//! Proves: no reader is inside beside a writer, and no two writers; nobody stays
//! in the queue; a unit that meant nothing (a reader about to queue) does not keep
//! anybody from being woken; the handoff is not lost.
//!
//! Cannot show: who goes first.

use super::*;
use crate::futex::Os;
use crate::vanilla::Vanilla;
use percpu::sim::CPU0;

type L = Vanilla<Os>;

static ONE: Model<S<L>> = Model {
    name: "vanilla a reader and a writer",
    rung: Rung::Fence,
    plans: &[CPU0, CPU0],
    setup,
    roles: &[reader, writer],
    after: |s| free(s, 1),
};

static WRITERS: Model<S<L>> = Model {
    name: "vanilla two writers",
    rung: Rung::Fence,
    plans: &[CPU0, CPU0],
    setup,
    roles: &[writer, writer],
    after: |s| free(s, 2),
};

static TRIES: Model<S<L>> = Model {
    name: "vanilla attempts",
    rung: Rung::Fence,
    plans: &[CPU0, CPU0],
    setup,
    roles: &[
        |s| {
            try_reader(s);
            writer(s);
        },
        |s| {
            try_writer(s);
            reader(s);
        },
    ],
    after: |s| free_at_most(s, 2),
};

static READERS: Model<S<L>> = Model {
    name: "vanilla two readers and a writer",
    rung: Rung::Fence,
    plans: &[CPU0, CPU0, CPU0],
    setup,
    roles: &[reader, reader, writer],
    after: |s| free(s, 1),
};

static MIXED: Model<S<L>> = Model {
    name: "vanilla a reader and two writers",
    rung: Rung::Fence,
    plans: &[CPU0, CPU0, CPU0],
    setup,
    roles: &[reader, writer, writer],
    after: |s| free(s, 2),
};

#[test]
fn a_reader_and_a_writer() {
    ONE.check();
}

#[test]
fn two_writers() {
    WRITERS.check();
}

#[test]
fn attempts() {
    TRIES.search(4);
}

#[test]
fn two_readers_and_a_writer() {
    READERS.search(3);
}

#[test]
fn a_reader_and_two_writers() {
    MIXED.search(3);
}
