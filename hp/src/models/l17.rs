//! L17: the buckets of `structures`.
//!
//! Proves, on the table's own code: a bucket that two roles use first is put
//! into the list once, and both find what is there, also the one that does not
//! wait for it; the array is allocated once; who finds a bucket open finds its
//! link in the list. One of the roles doubles the table first.
//!
//! Cannot show: more than one doubling, and that one in a search of at most two
//! preemptions.
//!
//! Rungs: the rseq rung; what walkers protect by is the subject of L16, whose
//! smallest models run on all.

use super::keeper::Words;
use super::*;
use crate::structures::list::{Node, Walk};
use crate::structures::table::Table;
use percpu::sim::harness::Model;
use percpu::sim::{CPU0, CPU1};

/// Orders of bucket 1 of two begin with a set bit.
const UPPER: usize = 1 << (usize::BITS - 1) | 1;

struct S {
    words: Words,
    table: Table<u32>,
}

/// One bucket, and an entry of what becomes the second.
fn setup() -> S {
    let s = S {
        words: Words::new(2),
        table: Table::new(0),
    };
    insert(&s, 0, UPPER, 1);
    s
}

fn walk_to<R>(
    s: &S,
    role: usize,
    order: usize,
    f: impl FnOnce(&Walk<'_, super::keeper::Role<'_>, u32>, Option<u32>) -> R,
) -> R {
    let keeper = s.words.role(role);
    let start = s.table.start(&keeper, order);
    assert!(start.order() <= order, "a start stands before its entries");
    // SAFETY: the table's entries are of this type.
    let mut walk = unsafe { Walk::new(&keeper, start) };
    let mut found = None;
    walk.to(start, |link, entry: Option<&Node<u32>>| {
        if link.order() == order {
            found = entry.map(|entry| entry.data);
        }
        link.order() >= order
    });
    f(&walk, found)
}

fn insert(s: &S, role: usize, order: usize, value: u32) {
    let mut node = Node::boxed(order, value);
    loop {
        match walk_to(s, role, order, |walk, _| walk.insert(node)) {
            Ok(_) => return,
            Err(again) => node = again,
        }
    }
}

fn get(s: &S, role: usize, order: usize) -> Option<u32> {
    walk_to(s, role, order, |_, found| found)
}

fn after(s: &S, expected: &[(usize, u32)]) {
    let keeper = s.words.role(0);
    let mut orders = vec![];
    let mut nodes = vec![];
    // SAFETY: as above.
    let mut walk = unsafe { Walk::<_, u32>::new(&keeper, s.table.head()) };
    walk.to(s.table.head(), |link, entry| {
        orders.push(link.order());
        nodes.extend(entry.map(|node| ptr::from_ref(node).cast_mut()));
        false
    });
    drop(walk);
    assert!(orders.is_sorted(), "{orders:x?}");
    let mut buckets: Vec<_> = orders.iter().filter(|o| **o % 2 == 0).collect();
    buckets.dedup();
    assert_eq!(
        buckets.len() + expected.len(),
        orders.len(),
        "a bucket twice"
    );
    for &(order, value) in expected {
        assert_eq!(get(s, 0, order), Some(value));
    }
    for node in nodes {
        // SAFETY: a node of the list, whose end this is.
        drop(unsafe { Box::from_raw(node) });
    }
}

fn doubles(s: &S) {
    s.table.double(1);
}

static OPEN_OPEN: Model<S> = Model {
    name: "l17 first use, first use",
    rung: Rung::Rseq,
    plans: &[CPU0, CPU1],
    setup: || {
        let s = setup();
        doubles(&s);
        s
    },
    roles: &[
        |s| assert_eq!(get(s, 0, UPPER), Some(1)),
        |s| assert_eq!(get(s, 1, UPPER), Some(1)),
    ],
    after: |s| after(s, &[(UPPER, 1)]),
};

static DOUBLE_INSERT: Model<S> = Model {
    name: "l17 double and insert, insert",
    rung: Rung::Rseq,
    plans: &[CPU0, CPU1],
    setup,
    roles: &[
        |s| {
            doubles(s);
            insert(s, 0, UPPER + 2, 2);
        },
        |s| {
            insert(s, 1, UPPER + 4, 3);
            assert_eq!(get(s, 1, UPPER), Some(1));
        },
    ],
    after: |s| after(s, &[(UPPER, 1), (UPPER + 2, 2), (UPPER + 4, 3)]),
};

#[test]
fn two_open_a_bucket() {
    OPEN_OPEN.check();
}

#[test]
fn one_doubles() {
    DOUBLE_INSERT.search(2);
}
