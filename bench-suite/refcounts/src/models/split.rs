//! Split counts: load, fold and release against replacement.
//!
//! Proves: an object is freed once, after the last release and after it was
//! replaced; a loader sees it initialised; folding loses no reference and adds
//! none; loads of nothing leave nothing that matters.
//!
//! Cannot show: 16 bits overflowing (a unit test holds 70 000 references).
//!
//! Rungs: one is enough, no barrier of `percpu` is involved.

use super::*;
use crate::split::{Loaded, Slot};
use core::cell::Cell;
use percpu::sim::CPU0;

/// What the cell holds: freeing it poisons the object, which stays readable.
struct Payload(*const Object);

// SAFETY: the state of the model owns the object and outlives its roles.
unsafe impl Send for Payload {}
// SAFETY: as above.
unsafe impl Sync for Payload {}

impl Payload {
    fn object(&self) -> &Object {
        // SAFETY: as above.
        unsafe { &*self.0 }
    }
}

impl Drop for Payload {
    fn drop(&mut self) {
        self.object().free();
    }
}

struct S<const FOLD: u64> {
    slot: Slot<Payload, FOLD>,
    old: Box<Object>,
    new: Box<Object>,
}

fn setup<const FOLD: u64>() -> S<FOLD> {
    let (old, new) = (Box::new(Object::new(1)), Box::new(Object::blank()));
    S {
        slot: Slot::new(Payload(&raw const *old)),
        old,
        new,
    }
}

fn reader<const FOLD: u64>(s: &S<FOLD>) {
    if let Some(held) = s.slot.load() {
        held.object().read();
        s.slot.release(held);
    }
}

/// Gives back to the object only.
fn dropper<const FOLD: u64>(s: &S<FOLD>) {
    if let Some(held) = s.slot.load() {
        held.object().read();
    }
}

fn replacer<const FOLD: u64>(s: &S<FOLD>) {
    s.new.init(2);
    s.slot.replace(Payload(&raw const *s.new));
}

fn clearer<const FOLD: u64>(s: &S<FOLD>) {
    s.slot.clear();
}

fn all_freed<const FOLD: u64>(s: &S<FOLD>) {
    assert!(s.old.is_freed());
    assert!(!s.new.is_freed());
    assert!(s.slot.clear(), "nobody has the new one");
    assert!(s.new.is_freed());
}

fn old_freed<const FOLD: u64>(s: &S<FOLD>) {
    assert!(s.old.is_freed());
    assert!(s.slot.load().is_none());
    assert_eq!(s.slot.count(), 0);
}

/// Never folded.
const NEVER: u64 = 0x8000;

static ONE: Model<S<NEVER>> = Model {
    name: "split load against replace",
    rung: Rung::Fence,
    plans: &[CPU0, CPU0],
    setup,
    roles: &[reader, replacer],
    after: all_freed,
};

static DROPPED: Model<S<NEVER>> = Model {
    name: "split load and drop against replace",
    rung: Rung::Fence,
    plans: &[CPU0, CPU0],
    setup,
    roles: &[dropper, replacer],
    after: all_freed,
};

/// Two references, from one load each, are given back meanwhile.
static TWO: Model<(S<NEVER>, Kept, Kept)> = Model {
    name: "split two releases against replace",
    rung: Rung::Fence,
    plans: &[CPU0, CPU0, CPU0],
    setup: || {
        let s = setup();
        let kept = [0; 2].map(|_| Kept(Cell::new(s.slot.load())));
        let [a, b] = kept;
        (s, a, b)
    },
    roles: &[
        |(s, kept, _)| kept.release(s),
        |(_, _, kept)| kept.drop(),
        |(s, _, _)| replacer(s),
    ],
    after: |(s, _, _)| all_freed(s),
};

/// One is given back while another one is loaded.
static MIXED: Model<(S<NEVER>, Kept)> = Model {
    name: "split release, load, replace",
    rung: Rung::Fence,
    plans: &[CPU0, CPU0, CPU0],
    setup: || {
        let s = setup();
        let kept = Kept(Cell::new(s.slot.load()));
        (s, kept)
    },
    roles: &[
        |(s, kept)| kept.release(s),
        |(s, _)| dropper(s),
        |(s, _)| replacer(s),
    ],
    after: |(s, _)| all_freed(s),
};

static EMPTIED: Model<S<NEVER>> = Model {
    name: "split load against clear",
    rung: Rung::Fence,
    plans: &[CPU0, CPU0],
    setup,
    roles: &[reader, clearer],
    after: old_freed,
};

static EMPTY: Model<S<NEVER>> = Model {
    name: "split two loads of nothing",
    rung: Rung::Fence,
    plans: &[CPU0, CPU0],
    setup: || {
        let s = setup();
        s.slot.clear();
        s
    },
    roles: &[reader, reader],
    after: old_freed,
};

static FILLED: Model<S<NEVER>> = Model {
    name: "split load of nothing against replace",
    rung: Rung::Fence,
    plans: &[CPU0, CPU0],
    setup: EMPTY.setup,
    roles: &[reader, replacer],
    after: all_freed,
};

static FOLDED: Model<S<1>> = Model {
    name: "split every load folds",
    rung: Rung::Fence,
    plans: &[CPU0, CPU0],
    setup,
    roles: &[reader, replacer],
    after: all_freed,
};

/// Somebody has a reference already, and keeps it.
static FOLDED_TWO: Model<(S<2>, Kept)> = Model {
    name: "split the second load folds",
    rung: Rung::Fence,
    plans: &[CPU0, CPU0],
    setup: || {
        let s = setup();
        let kept = Kept(Cell::new(s.slot.load()));
        (s, kept)
    },
    roles: &[|(s, _)| reader(s), |(s, _)| replacer(s)],
    after: |(s, kept)| {
        assert!(!s.old.is_freed());
        assert!(s.slot.release(kept.0.take().expect("kept")));
        all_freed(s);
    },
};

/// … or gives it back meanwhile.
static FOLDED_THREE: Model<(S<2>, Kept)> = Model {
    name: "split a release while another load folds",
    rung: Rung::Fence,
    plans: &[CPU0, CPU0],
    setup: FOLDED_TWO.setup,
    roles: &[
        |(s, _)| reader(s),
        |(s, kept)| {
            kept.release(s);
        },
    ],
    after: |(s, _)| {
        assert!(!s.old.is_freed());
        replacer(s);
        all_freed(s);
    },
};

/// A reference that setup took.
struct Kept(Cell<Option<Loaded<Payload>>>);

impl Kept {
    fn release<const FOLD: u64>(&self, s: &S<FOLD>) {
        let held = self.0.take().expect("kept");
        held.object().read();
        s.slot.release(held);
    }

    fn drop(&self) {
        self.0.take().expect("kept").object().read();
    }
}

#[test]
fn load_against_replace() {
    ONE.check();
    DROPPED.check();
}

#[test]
fn two_loads() {
    TWO.check();
    MIXED.check();
}

#[test]
fn an_empty_cell() {
    EMPTIED.check();
    EMPTY.check();
    FILLED.check();
}

#[test]
fn a_fold() {
    FOLDED.check();
    FOLDED_TWO.check();
    FOLDED_THREE.check();
}
