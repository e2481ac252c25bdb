//! T18: `futex_ref`, replacements against gets and puts.
//!
//! Proves: no get succeeds on a dead table, in particular not when the next
//! table is being dropped already; a table's contents are moved once, after all
//! uses, and seen by whoever gets the next table; lines and lanes begin anew.
//!
//! Cannot show: more than two replacements in a row, nor that waits end.
//!
//! Rungs: all three, but where a model says which one it is about.

use super::*;
use crate::{Thread, futex_ref::FutexRef};
use percpu::sim::{CPU0, CPU1, CUT, WANDERS};

struct S {
    count: FutexRef,
    tables: [Object; 3],
}

fn setup() -> S {
    S {
        count: FutexRef::new(),
        tables: [Object::new(1), Object::blank(), Object::blank()],
    }
}

fn pivot(s: &S) {
    s.count.pivot(|from, to| {
        s.tables[from].free();
        s.tables[to].init(1);
    });
}

fn drop_table(s: &S) {
    if s.count.drop_table().unwrap() {
        pivot(s);
    }
}

fn put_from(s: &S, thread: usize, table: crate::futex_ref::Table) {
    s.tables[table.number()].read();
    if s.count.put(&Thread::at(thread), table) {
        pivot(s);
    }
}

fn reader(s: &S) {
    match s.count.get(&Thread::at(0)) {
        Some(table) => put_from(s, 0, table),
        None => pivot(s),
    }
}

/// As [`reader`], from one lane to another.
fn crossing_reader(s: &S) {
    if let Some(table) = s.count.get(&Thread::at(0)) {
        put_from(s, 1, table);
    }
}

/// The current table is good for a reader and can be replaced.
fn sound(s: &S) {
    assert!(!s.count.is_dead());
    assert_eq!(s.count.count(), 1);
    let table = s.count.get(&Thread::at(0)).expect("alive");
    put_from(s, 0, table);
    assert!(s.count.drop_table().unwrap());
}

const PLANS: &[&[Plan]] = &[&[CPU0, CPU0], &[CPU1, CPU0], &[WANDERS, CPU0], &[CUT, CPU0]];

static DROP: Model<S> = Model {
    name: "t18 drop against get and put",
    rung: Rung::Rseq,
    plans: &[CPU0, CPU0],
    setup,
    roles: &[reader, drop_table],
    after: sound,
};

static CROSS: Model<S> = Model {
    name: "t18 drop against get and put, two lanes",
    rung: Rung::Fence,
    plans: &[CPU0, CPU0],
    setup,
    roles: &[crossing_reader, drop_table],
    after: sound,
};

#[test]
fn a_drop_against_get_and_put() {
    on_all_rungs(&DROP, PLANS);
    CROSS.check_portable();
}

/// Two who have references and a third who drops the initial one, who frees
/// without looking again.
static HELD: Model<S> = Model {
    name: "t18 drop against two puts",
    rung: Rung::Rseq,
    plans: &[CPU0, CPU1, CPU0],
    setup: || {
        let s = setup();
        for n in 0..2 {
            // Given back by the roles.
            let _ = s.count.get(&Thread::at(n)).expect("alive");
        }
        s
    },
    roles: &[
        |s| free_first(s, 0),
        |s| free_first(s, 1),
        |s| s.tables[0].free_if(s.count.drop_table().unwrap()),
    ],
    after: |s| assert!(s.tables[0].is_freed() && s.count.is_dead()),
};

/// The same with one of them in the middle of a put in a lane, and the table
/// shut: all of it would be too large.
static LANE: Model<S> = Model {
    name: "t18 fold against a put in a lane, and a put",
    rung: Rung::Fence,
    plans: &[CPU0, CPU0, CPU0],
    setup: || {
        let s = (HELD.setup)();
        s.count.begin_put();
        s.count.shut_only();
        s
    },
    roles: &[
        |s| {
            s.tables[0].read();
            s.count.finish_put();
        },
        HELD.roles[1],
        HELD.roles[2],
    ],
    after: HELD.after,
};

fn free_first(s: &S, thread: usize) {
    s.tables[0].read();
    let table = crate::futex_ref::Table::held(0);
    s.tables[0].free_if(s.count.put(&Thread::at(thread), table));
}

#[test]
fn a_drop_against_two_puts() {
    HELD.check();
    LANE.check_portable();
}

/// Somebody has a reference, so that the table is never dead.
static GET: Model<S> = Model {
    name: "t18 get while the table is dropped",
    rung: Rung::Rseq,
    plans: &[CPU0, CPU0],
    setup: || {
        let s = setup();
        let _ = s.count.get(&Thread::at(0)).expect("alive");
        s
    },
    roles: &[
        |s| {
            let table = s.count.get(&Thread::at(0)).expect("not dead");
            assert!(!s.count.put(&Thread::at(0), table), "a false last");
        },
        |s| assert!(!s.count.drop_table().unwrap()),
    ],
    after: |s| {
        assert!(
            s.count
                .put(&Thread::at(0), crate::futex_ref::Table::held(0))
        );
    },
};

#[test]
fn a_get_while_the_table_is_dropped() {
    on_all_rungs(&GET, PLANS);
}

/// Table 0 is dead at first; it is replaced, and its successor shut at once.
static TWICE: Model<S> = Model {
    name: "t18 a second replacement",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup: || {
        let s = setup();
        assert!(s.count.drop_table().unwrap());
        s
    },
    roles: &[
        |s| {
            // Never given back: the model would be large.
            if let Some(table) = s.count.get(&Thread::at(0)) {
                s.tables[table.number()].read();
            }
        },
        |s| {
            pivot(s);
            // What follows is the other models'.
            s.count.shut_only();
        },
    ],
    after: |s| {
        let _ = s.count.drop_table().unwrap();
    },
};

#[test]
fn a_second_replacement() {
    on_all_rungs(&TWICE, &[&[CPU0, CPU0], &[CUT, CPU0]]);
}

/// Lines that were not zero before.
static ANEW: Model<S> = Model {
    name: "t18 lines begin anew",
    rung: Rung::Rseq,
    plans: &[CPU0, CPU1],
    setup: || {
        let s = setup();
        let _ = s.count.get(&Thread::at(0)).expect("alive");
        s
    },
    roles: &[reader, |s| {
        if s.count.drop_table().unwrap() {
            unreachable!("somebody has a reference");
        }
        put_from(s, 1, crate::futex_ref::Table::held(0));
    }],
    after: sound,
};

#[test]
fn lines_begin_anew() {
    ANEW.check();
}

/// Somebody pivots who was not told that the last reference had gone.
static UNTOLD: Model<S> = Model {
    name: "t18 pivot by another than the last",
    rung: Rung::Membarrier,
    plans: &[CPU0, CPU0],
    setup: || {
        let s = setup();
        // Given back by the first role.
        let _ = s.count.get(&Thread::at(0)).expect("alive");
        assert!(!s.count.drop_table().unwrap());
        s
    },
    roles: &[
        |s| {
            s.tables[0].read();
            let table = crate::futex_ref::Table::held(0);
            assert!(s.count.put(&Thread::at(0), table));
        },
        pivot,
    ],
    after: |s| {
        pivot(s);
        sound(s);
    },
};

#[test]
fn a_pivot_by_another() {
    on_all_rungs(&UNTOLD, &[&[CPU0, CPU1]]);
}
