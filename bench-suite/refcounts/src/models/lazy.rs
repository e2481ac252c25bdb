//! The slots of lazy address spaces: two CPUs, one object, one exit of each.
//!
//! Proves (I2): after the last user has scanned and interrupted whom it found,
//! no CPU has the object, and all uses came before the freeing: also where the
//! scan finds a slot that was cleared, or holds another object by then. The
//! same with the barriers, on every rung, and with a fence on both sides.
//!
//! Cannot show: what the fences are for. The order that the scan needs comes
//! by the count of users, so no model fails without them; see `lazy_slots`.
//!
//! A CPU is a mutex, held where its interrupts are off; an interrupt is what
//! another thread does under it.

use super::*;
use crate::lazy_slots::{Asymmetric, Fences, LazySlots, Symmetric};
use crate::sync::{Mutex, lock};
use percpu::sim::{CPU0, CPU1};
use percpu::sync::atomic::{AtomicUsize, Ordering};

const INIT: usize = 0;
const A: usize = 16;
const B: usize = 32;

struct S<F> {
    slots: LazySlots<F>,
    /// What each has now.
    cpus: [Mutex<usize>; 2],
    users: AtomicUsize,
    object: Object,
}

fn setup<F: Fences>() -> S<F> {
    S {
        slots: LazySlots::new(2),
        cpus: [Mutex::new(A), Mutex::new(A)],
        users: AtomicUsize::new(2),
        object: Object::new(1),
    }
}

/// A user task of A on CPU `n` exits; the CPU borrows A until a user task of B
/// runs, gives way, and B is borrowed.
fn exit<F: Fences>(s: &S<F>, n: usize, borrows_again: bool) {
    {
        let _off = lock(&s.cpus[n]);
        assert!(s.slots.grab(n, A), "I4");
    }
    // AcqRel: "Leave" and "Last".
    if s.users.fetch_sub(1, Ordering::AcqRel) == 1 {
        tear_down(s);
    }
    {
        let has = lock(&s.cpus[n]);
        if *has == A {
            s.object.read();
        }
    }
    let mut has = lock(&s.cpus[n]);
    if *has == A {
        s.slots.clear(n);
    }
    *has = B;
    if borrows_again {
        assert!(s.slots.grab(n, B), "I4");
    }
}

fn tear_down<F: Fences>(s: &S<F>) {
    s.slots
        .find(A, |cpu| {
            let mut has = lock(&s.cpus[cpu]);
            if *has == A {
                *has = INIT;
                s.slots.clear(cpu);
            }
            drop(has);
            assert!(!s.slots.has(cpu, A), "I2");
        })
        .expect("models have their barrier");
    s.object.free();
    for cpu in &s.cpus {
        assert_ne!(*lock(cpu), A, "I2");
    }
}

fn freed<F: Fences>(s: &S<F>) {
    assert!(s.object.is_freed(), "I5");
}

const fn exits<F: Fences>() -> Model<S<F>> {
    Model {
        name: "lazy two exits",
        rung: Rung::Fence,
        plans: &[CPU0, CPU1],
        setup: setup::<F>,
        roles: &[|s| exit(s, 0, false), |s| exit(s, 1, false)],
        after: freed::<F>,
    }
}

const fn borrows_again<F: Fences>() -> Model<S<F>> {
    Model {
        name: "lazy a slot that is used again",
        rung: Rung::Fence,
        plans: &[CPU0, CPU1],
        setup: setup::<F>,
        roles: &[|s| exit(s, 0, true), |s| exit(s, 1, false)],
        after: freed::<F>,
    }
}

static SYMMETRIC: [Model<S<Symmetric>>; 2] = [exits(), borrows_again()];
static ASYMMETRIC: [Model<S<Asymmetric>>; 2] = [exits(), borrows_again()];

#[test]
fn with_fences_on_both_sides() {
    SYMMETRIC.iter().for_each(|model| model.check());
}

#[test]
fn with_a_barrier_on_one_side() {
    for model in &ASYMMETRIC {
        on_all_rungs(model, &[&[CPU0, CPU1]]);
    }
}
