//! `pi-multi`: seats that are owned against a writer that takes them all. What a
//! seat orders is the mutex's, see `pi`; this is about the steps.
//!
//! Proves: no reader is inside beside the writer, also if it comes by the door;
//! two readers in one seat's queue both get in.
//!
//! Two seats are a search of at most four preemptions.
//!
//! Rungs: one is enough, no barrier of `percpu` is involved.
//!
//! Cannot show: priorities, see `pi`.

use super::*;
use crate::futex::Os;
use crate::pi_multi::PiMulti;

type L = PiMulti<Os>;

fn one_seat() -> S<L> {
    S {
        lock: PiMulti::with_limit(1),
        cell: UnsafeCell::new(0),
    }
}

static ONE: Model<S<L>> = Model {
    setup: one_seat,
    ..program(
        "pi-multi a reader and a writer, one seat",
        &[reader, writer],
        |s| free(s, 1),
    )
};

static SEATS: Model<S<L>> = program(
    "pi-multi a reader and a writer, two seats",
    &[reader, writer],
    |s| free(s, 1),
);

#[test]
fn one_seat_for_a_reader_and_a_writer() {
    ONE.check();
}

#[test]
fn two_seats_for_a_reader_and_a_writer() {
    SEATS.search(4);
}
