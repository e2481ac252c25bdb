//! `percpu`: sections that count against a flag, a barrier and a sum.
//!
//! Proves: no reader is inside beside the writer, whatever CPU it enters and leaves
//! on, and also if it has to do without sections; the writer does not fall asleep
//! behind the last reader.
//!
//! Rungs: all three; with sections also interrupted ones and ones that move. Two
//! readers and a writer on the rseq rung, as a search of at most two preemptions.
//!
//! Cannot show: that the writer gets in while readers keep coming, and that the flag is
//! cleared in the end: what loom checks has no "in the end".

use super::*;
use crate::futex::Os;
use crate::per_cpu::PerCpu;
use percpu::sim::{CPU1, CUT, MOVED, WANDERS};

type L = PerCpu<Os>;

static ONE: Model<S<L>> = Model {
    name: "percpu a reader and a writer",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup,
    roles: &[reader, writer],
    after: |s| free(s, 1),
};

/// The flag is seen down by the second one after it was up.
static TWICE: Model<S<L>> = Model {
    name: "percpu a reader after a writer",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup,
    roles: &[reader, |s| {
        writer(s);
        reader(s);
    }],
    after: |s| free(s, 1),
};

static TRIES: Model<S<L>> = Model {
    name: "percpu attempts",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup,
    roles: &[try_reader, try_writer],
    after: |s| free_at_most(s, 1),
};

static READERS: Model<S<L>> = Model {
    name: "percpu two readers and a writer",
    rung: Rung::Rseq,
    plans: &[CPU0, CPU1, CPU0],
    setup,
    roles: &[reader, reader, writer],
    after: |s| free(s, 1),
};

/// Where a reader may be.
const PLANS: [&[Plan]; 4] = [
    &[CPU0, CPU0],
    &[CPU1, CPU0],
    &[WANDERS, CPU1],
    &[MOVED, CPU0],
];

#[test]
fn a_reader_and_a_writer() {
    for plans in PLANS {
        ONE.check_with(Rung::Rseq, plans);
    }
    // Enters by a section, leaves without; and neither by one.
    const LEAVES: Plan = &[percpu::sim::Step::on(0), percpu::sim::Step::cut(0)];
    ONE.check_with(Rung::Rseq, &[LEAVES, CPU0]);
    ONE.check_with(Rung::Rseq, &[CUT, CPU0]);
    ONE.check_portable();
}

#[test]
fn a_reader_after_a_writer() {
    TWICE.check_with(Rung::Rseq, &[CPU0, CPU0]);
    TWICE.check_with(Rung::Rseq, &[CPU1, CPU0]);
    TWICE.check_portable();
}

#[test]
fn attempts() {
    TRIES.check_with(Rung::Rseq, &[CPU0, CPU0]);
    TRIES.check_with(Rung::Rseq, &[WANDERS, CPU0]);
    TRIES.check_portable();
}

#[test]
fn two_readers_and_a_writer() {
    READERS.search(2);
}
