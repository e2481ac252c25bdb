//! `rwbase`: the bias against readers that overtake, leave last, or are inside
//! already.
//!
//! Proves: no reader is inside beside the writer; the writer does not fall asleep
//! behind the last reader; who waited for the mutex sees what the writer did.
//!
//! Cannot show: that a writer gets in while readers keep coming (it need not).

use super::*;
use crate::futex::Os;
use crate::rwbase::RwBase;
use percpu::sim::CPU0;

type L = RwBase<Os>;

static ONE: Model<S<L>> = Model {
    name: "rwbase a reader and a writer",
    rung: Rung::Fence,
    plans: &[CPU0, CPU0],
    setup,
    roles: &[reader, writer],
    after: |s| free(s, 1),
};

static TRIES: Model<S<L>> = Model {
    name: "rwbase attempts",
    rung: Rung::Fence,
    plans: &[CPU0, CPU0],
    setup,
    roles: &[
        |s| {
            try_reader(s);
            try_writer(s);
        },
        |s| {
            try_writer(s);
            reader(s);
        },
    ],
    after: |s| free_at_most(s, 2),
};

static WRITERS: Model<S<L>> = Model {
    name: "rwbase two writers",
    rung: Rung::Fence,
    plans: &[CPU0, CPU0],
    setup,
    roles: &[writer, writer],
    after: |s| free(s, 2),
};

static READERS: Model<S<L>> = Model {
    name: "rwbase two readers and a writer",
    rung: Rung::Fence,
    plans: &[CPU0, CPU0, CPU0],
    setup,
    roles: &[reader, reader, writer],
    after: |s| free(s, 1),
};

/// A reader that waits for the mutex must not count yet: the next writer would wait
/// for it.
static MIXED: Model<S<L>> = Model {
    name: "rwbase a reader and two writers",
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
fn attempts() {
    TRIES.search(3);
}

#[test]
fn two_writers() {
    WRITERS.check();
}

#[test]
fn two_readers_and_a_writer() {
    READERS.search(2);
}

#[test]
fn one_reader_and_two_writers() {
    MIXED.search(2);
}
