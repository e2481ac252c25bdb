//! L6: retiring, reclaiming and draining at the same time.
//!
//! Proves, on the real `Core` with one shard and a threshold of two: every
//! retired object is freed exactly once, whoever collides with whom, and the
//! counters say so; what a retirer did before (its use of the object, its
//! unlinking) happens before the deleter, also when the list or the inbox took
//! the object to another thread (folly#1632); `drain` returns only when what
//! was retired before is freed, also what another thread's pass had taken or
//! was about to put back.
//!
//! Cannot show: that a wait ends on a busy machine (loom assumes that a thread
//! that yields is not scheduled for ever); more than one shard; a count that
//! overflows. Whole drains against whole passes, and two waits with a pass, are
//! searches of at most four and three preemptions; drains against a pass in
//! flight, and a flight's join against a wait, are explored wholly.
//!
//! Rungs: membarrier, which has the fewest steps; without readers the rung
//! hardly matters. The two models with a protection run on the rseq rung.

use super::*;
use crate::pass::{Flight, Joined};
use crate::reclaim::{Batch, Core};
use crate::shard::{Locked, Shard};
use crate::unlink::unlink;
use percpu::sim::CPU0;
use percpu::sim::harness::Model;
use percpu::sync::atomic::{AtomicUsize, Ordering};

struct S {
    slots: Box<Slots>,
    core: Core,
    nodes: [Box<Node>; 3],
    src: AtomicPtr<()>,
    reader: Thread,
    guard: Kept,
}

fn state(slots: Box<Slots>) -> S {
    state_of(slots, false)
}

/// With `manual`, retiring never reclaims.
fn state_of(slots: Box<Slots>, manual: bool) -> S {
    let nodes = [Node::new(1), Node::blank(), Node::blank()];
    S {
        slots,
        core: Core::new(manual),
        src: holding(&nodes[0]),
        nodes,
        reader: Thread::new(),
        guard: Kept(Cell::new(None)),
    }
}

fn retire(s: &S, n: usize) {
    s.core.retire(&s.slots, s.nodes[n].retired());
}

/// The first object waits already.
fn one_waits() -> S {
    let s = state(unused());
    retire(&s, 0);
    s
}

/// The deleter writes the object too, so this must come before it.
fn use_and_retire(s: &S, n: usize) {
    s.nodes[n].init(1);
    retire(s, n);
}

fn counts(s: &S, expected: u64) {
    let counters = s.core.counters();
    assert_eq!(
        (counters.retired, counters.reclaimed),
        (expected, expected),
        "retired, reclaimed"
    );
}

fn all_three(s: &S) {
    s.core.drain(&s.slots).unwrap();
    assert!(s.nodes.iter().all(|n| n.is_freed()), "lost");
    counts(s, 3);
}

fn only_first(s: &S) {
    s.core.drain(&s.slots).unwrap();
    assert!(s.nodes[0].is_freed(), "lost");
    counts(s, 1);
}

fn passer(s: &S) {
    s.core.reclaim(&s.slots, usize::MAX).unwrap();
}

/// Whatever was retired before is freed when this returns.
fn drainer(s: &S) {
    s.core.drain(&s.slots).unwrap();
    assert!(s.nodes[0].is_freed(), "drained too early");
}

static RETIRE_RETIRE: Model<S> = Model {
    name: "l6 retire, retire",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup: one_waits,
    roles: &[|s| use_and_retire(s, 1), |s| use_and_retire(s, 2)],
    after: all_three,
};

static RETIRE_PASS: Model<S> = Model {
    name: "l6 retire, reclaim",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup: || {
        let s = state_of(unused(), true);
        retire(&s, 0);
        s.nodes[2].init(1);
        retire(&s, 2);
        s
    },
    roles: &[|s| use_and_retire(s, 1), passer],
    after: all_three,
};

#[test]
fn retire_and_retire() {
    RETIRE_RETIRE.check();
}

#[test]
fn retire_and_reclaim() {
    RETIRE_PASS.check();
}

fn unlinker(s: &S) {
    let old = unlink(&s.src, ptr::null_mut());
    assert_eq!(old, s.nodes[0].address());
    retire(s, 0);
}

fn reader(s: &S) {
    if let Some((slot, object)) = s.slots.protect_with(&s.reader, &s.src, ALL_BITS) {
        Node::at(object).read();
        slot.release();
    }
}

/// The thread that frees is not the one that unlinked.
static HANDED_ON: Model<S> = Model {
    name: "l6 protect, unlink and retire, reclaim",
    rung: Rung::Rseq,
    plans: &[CPU0, CPU0, CPU0],
    setup: || state(opened()),
    roles: &[reader, unlinker, passer],
    after: only_first,
};

/// The same with the list alone, as it is handed on under the shard's lock.
fn list_taker(s: &S) {
    let taken = s
        .core
        .shard()
        .try_lock()
        .map(|mut list| core::mem::take(&mut list.objects));
    if let Some(object) = taken.and_then(|mut list| list.pop()) {
        heavy().unwrap();
        if !s.slots.is_protected(object.address()) {
            // SAFETY: unlinked, and no slot holds it.
            unsafe { object.reclaim() };
        }
    }
}

static LIST_HANDED_ON: Model<S> = Model {
    name: "l6 protect, unlink and retire, take the list",
    rung: Rung::Rseq,
    plans: &[CPU0, CPU0, CPU0],
    setup: || state(opened()),
    roles: &[reader, unlinker, list_taker],
    after: |_| (),
};

#[test]
fn the_unlinking_goes_with_the_list() {
    LIST_HANDED_ON.check();
}

#[test]
fn the_unlinking_goes_with_the_object() {
    HANDED_ON.check();
}

static DRAIN_PASS: Model<S> = Model {
    name: "l6 drain, reclaim",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup: one_waits,
    roles: &[drainer, passer],
    after: only_first,
};

static DRAIN_DRAIN: Model<S> = Model {
    name: "l6 drain, drain",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup: one_waits,
    roles: &[drainer, drainer],
    after: only_first,
};

/// The first object waits and is protected.
fn one_is_protected() -> S {
    let s = state(unused());
    let (slot, _) = s
        .slots
        .protect_with(&s.reader, &s.src, ALL_BITS)
        .expect("not null");
    s.guard.0.set(Some(slot));
    retire(&s, 0);
    s
}

/// The first object is protected until the drainer lets go of it.
static DRAIN_PUT_BACK: Model<S> = Model {
    name: "l6 let go and drain, reclaim",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup: one_is_protected,
    roles: &[
        |s| {
            s.guard.take().release();
            drainer(s);
        },
        passer,
    ],
    after: only_first,
};

/// From end to end these are too many steps for every order: a search. Their
/// parts are explored wholly below.
#[test]
fn a_drain_waits_for_a_pass() {
    DRAIN_PASS.search(BOUND);
}

#[test]
fn two_drains() {
    DRAIN_DRAIN.search(BOUND);
}

#[test]
fn a_drain_waits_for_what_goes_back() {
    DRAIN_PUT_BACK.search(BOUND);
}

const BOUND: usize = 4;

/// A pass that has taken its objects before the roles begin.
struct B {
    /// First, so that it goes before what it borrows.
    batch: Cell<Option<Batch<'static>>>,
    s: Box<S>,
}

fn in_flight(s: S) -> B {
    let s = Box::new(s);
    // SAFETY: the state is in a box that lives as long as the batch.
    let longer: &'static S = unsafe { &*ptr::from_ref(&*s) };
    B {
        batch: Cell::new(Some(longer.core.begin(&longer.slots))),
        s,
    }
}

static DRAIN_FLYING: Model<B> = Model {
    name: "l6 drain, a pass in flight",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup: || in_flight(one_waits()),
    roles: &[
        |b| drainer(&b.s),
        |b| {
            b.batch.take().unwrap().go_on();
        },
    ],
    after: |b| only_first(&b.s),
};

static DRAIN_FLYING_BACK: Model<B> = Model {
    name: "l6 let go and drain, a pass in flight",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup: || in_flight(one_is_protected()),
    roles: &[
        |b| {
            b.s.guard.take().release();
            drainer(&b.s);
        },
        |b| {
            b.batch.take().unwrap().go_on();
        },
    ],
    after: |b| only_first(&b.s),
};

#[test]
fn a_drain_waits_for_a_pass_in_flight() {
    DRAIN_FLYING.check();
}

#[test]
fn a_drain_waits_for_a_pass_in_flight_to_put_back() {
    DRAIN_FLYING_BACK.check();
}

/// The shard is locked by a thread that waits for the processor.
struct L {
    locked: Cell<Option<Locked<'static>>>,
    s: Box<S>,
}

fn locked() -> L {
    let s = Box::new(state_of(unused(), true));
    retire(&s, 0);
    // SAFETY: the state is in a box that lives as long as the lock.
    let longer: &'static S = unsafe { &*ptr::from_ref(&*s) };
    L {
        locked: Cell::new(longer.core.shard().try_lock()),
        s,
    }
}

static POST_POST: Model<L> = Model {
    name: "l6 two retire to the inbox",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup: locked,
    roles: &[|l| use_and_retire(&l.s, 1), |l| use_and_retire(&l.s, 2)],
    after: |l| {
        drop(l.locked.take());
        all_three(&l.s);
    },
};

#[test]
fn two_post() {
    POST_POST.check();
}

/// A flight by itself. It is a small grace period: a pass that has not seen
/// what came before a wait is waited for.
struct F {
    flight: Flight,
    gone: AtomicUsize,
    object: Box<Node>,
}

fn flight() -> F {
    F {
        flight: Flight::new(),
        gone: AtomicUsize::new(0),
        object: Node::new(1),
    }
}

fn flyer(f: &F) {
    let joined = f.flight.join();
    // Relaxed: the flight alone must order it.
    if f.gone.load(Ordering::Relaxed) == 0 {
        f.object.read();
    }
    drop(joined);
}

fn waiter(f: &F) {
    // Relaxed: as above.
    f.gone.store(1, Ordering::Relaxed);
    f.flight.wait();
    f.object.free();
}

static FLIGHT: Model<F> = Model {
    name: "l6 join and leave, wait",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup: flight,
    roles: &[flyer, waiter],
    after: |_| (),
};

/// Another drainer flips meanwhile.
static FLIGHT_TWO_FLIPS: Model<F> = Model {
    name: "l6 join and leave, wait, wait",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0, CPU0],
    setup: flight,
    roles: &[flyer, waiter, |f| f.flight.wait()],
    after: |_| (),
};

/// One pass is inside from the start; the count of another one comes before or
/// after its leave, and must not hide it.
struct Two {
    joined: Cell<Option<Joined<'static>>>,
    f: Box<F>,
}

static FLIGHT_TWO_PASSES: Model<Two> = Model {
    name: "l6 leave, join and leave, wait",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0, CPU0],
    setup: || {
        let f = Box::new(flight());
        // SAFETY: the flight is in a box that lives as long as the pass.
        let longer: &'static F = unsafe { &*ptr::from_ref(&*f) };
        Two {
            joined: Cell::new(Some(longer.flight.join())),
            f,
        }
    },
    roles: &[
        |two| {
            let joined = two.joined.take();
            two.f.object.read();
            drop(joined);
        },
        |two| drop(two.f.flight.join()),
        |two| waiter(&two.f),
    ],
    after: |_| (),
};

#[test]
fn a_wait_sees_a_pass_or_the_pass_sees_the_wait() {
    FLIGHT.check();
}

#[test]
fn two_waits_and_a_pass() {
    FLIGHT_TWO_FLIPS.search(3);
}

#[test]
fn two_passes_and_a_wait() {
    FLIGHT_TWO_PASSES.check();
}

/// What a pass did before it left is known to a second drainer through the
/// first one, which waited for it.
static FLIGHT_SECOND_HAND: Model<F> = Model {
    name: "l6 a pass in flight, two waits",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0, CPU0],
    setup: flight,
    roles: &[
        |f| {
            let joined = f.flight.join();
            // Release: the waiter below came after this pass had joined.
            f.gone.store(1, Ordering::Release);
            f.object.free();
            drop(joined);
        },
        |f| f.flight.wait(),
        |f| {
            // Acquire: pairs with the store above.
            if f.gone.load(Ordering::Acquire) == 1 {
                f.flight.wait();
                assert!(f.object.is_freed());
            }
        },
    ],
    after: |_| (),
};

#[test]
fn what_a_pass_did_reaches_the_second_waiter() {
    FLIGHT_SECOND_HAND.check();
}

/// A shard by itself.
static SHARD: Model<Shard> = Model {
    name: "l6 three lock one shard",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0, CPU0],
    setup: Shard::new,
    roles: &[lock_once, lock_once, lock_once],
    after: |s| assert!(s.try_lock().is_some_and(|list| list.due <= 3)),
};

fn lock_once(s: &Shard) {
    if let Some(mut list) = s.try_lock() {
        list.due += 1;
    }
}

#[test]
fn one_holder_at_a_time() {
    SHARD.check();
}
