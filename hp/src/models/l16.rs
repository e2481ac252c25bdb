//! L16: the list of `structures`: insert, replace, remove, walk.
//!
//! Proves, on the list's own code: no link is read after it was freed; each
//! entry is retired once; of two that insert one key, one does; a removal and
//! a replacement of one entry do not both take it; a key that is replaced is
//! never absent; who finds an entry sees what its maker wrote, also where it
//! has itself unlinked what stood before. Two roles, on the rseq rung; the
//! smallest ones on all.
//!
//! Cannot show: more than two threads; long lists. The larger ones are
//! searches of at most three or four preemptions.

use super::keeper::{Role, Words};
use super::*;
use crate::structures::keep::Keeper;
use crate::structures::list::{Link, Node, Walk, leave};
use percpu::sim::harness::Model;
use percpu::sim::{CPU0, CPU1};

/// A key in a group, and a value: a power of two.
type Entry = (u32, u32);

pub(super) struct S {
    words: Words,
    bucket: Link,
    /// Sum of the values that each role got out.
    got: [Cell<u32>; 2],
}

fn walk<'a>(
    s: &'a S,
    role: &'a Role<'a>,
    order: usize,
    key: u32,
) -> (Walk<'a, Role<'a>, Entry>, bool, usize) {
    // SAFETY: the list has entries of this type; the bucket outlives it.
    let mut walk = unsafe { Walk::new(role, &s.bucket) };
    let (mut here, mut rank) = (false, 0);
    walk.to(&s.bucket, |link, entry: Option<&Node<Entry>>| {
        if link.order() > order {
            return true;
        }
        if let Some(entry) = entry
            && link.order() == order
        {
            if entry.data.0 == key {
                here = true;
                return true;
            }
            rank = entry.rank + 1;
        }
        false
    });
    (walk, here, rank)
}

fn get(s: &S, role: usize, order: usize, key: u32) -> Option<u32> {
    let role = s.words.role(role);
    let (walk, here, _) = walk(s, &role, order, key);
    if !here {
        return None;
    }
    let (_slot, node) = walk.take()?;
    // SAFETY: protected.
    let node = unsafe { node.as_ref() };
    node.link.life.touch();
    Some(node.data.1)
}

fn sweep(s: &S, role: &Role<'_>, order: usize) {
    // SAFETY: as in `walk`.
    let mut walk = unsafe { Walk::<_, Entry>::new(role, &s.bucket) };
    walk.to(&s.bucket, |link, _| link.order() > order);
}

/// As `Map::insert`. Whether the key was new.
fn insert(s: &S, role: usize, order: usize, key: u32, value: u32) -> bool {
    let (keeper, mut node) = (s.words.role(role), Node::boxed(order, (key, value)));
    loop {
        let (walk, here, rank) = walk(s, &keeper, order, key);
        if here {
            match walk.replace(node) {
                Ok(((slot, old), unlinked)) => {
                    // SAFETY: protected.
                    took(s, role, unsafe { old.as_ref() });
                    drop(slot);
                    if !unlinked {
                        sweep(s, &keeper, order);
                    }
                    keeper.pass();
                    return false;
                }
                Err(again) => node = again,
            }
        } else {
            node.rank = rank;
            match walk.insert(node) {
                Ok(_) => return true,
                Err(again) => node = again,
            }
        }
    }
}

/// As `Map::remove`. Whether the key was there.
fn remove(s: &S, role: usize, order: usize, key: u32) -> bool {
    let keeper = s.words.role(role);
    loop {
        let (walk, here, _) = walk(s, &keeper, order, key);
        if !here {
            return false;
        }
        if let Some(((slot, old), unlinked)) = walk.remove(|| ()) {
            // SAFETY: protected.
            took(s, role, unsafe { old.as_ref() });
            drop(slot);
            if !unlinked {
                sweep(s, &keeper, order);
            }
            keeper.pass();
            return true;
        }
    }
}

fn took(s: &S, role: usize, node: &Node<Entry>) {
    node.link.life.touch();
    s.got[role].set(s.got[role].get() + node.data.1);
}

fn with(entries: &[(usize, u32, u32)]) -> S {
    let s = S {
        words: Words::new(2),
        bucket: Link::new(0),
        got: Default::default(),
    };
    for &(order, key, value) in entries {
        assert!(insert(&s, 0, order, key, value));
    }
    s
}

/// What is in the list, in order; whatever left is out.
fn contents(s: &S) -> Vec<Entry> {
    let role = s.words.role(0);
    let mut entries = vec![];
    // SAFETY: as in `walk`.
    let mut walk = unsafe { Walk::<_, Entry>::new(&role, &s.bucket) };
    walk.to(&s.bucket, |_, entry: Option<&Node<Entry>>| {
        entries.extend(entry.map(|e| e.data));
        false
    });
    entries
}

/// Every value is in the list or was taken out by one role, and each that was
/// taken out has been retired (once).
fn ends(s: &S, expected: &[u32], sum: u32) {
    let keys: Vec<u32> = contents(s).iter().map(|entry| entry.0).collect();
    assert_eq!(keys, expected);
    let there: u32 = contents(s).iter().map(|entry| entry.1).sum();
    let got: u32 = s.got.iter().map(Cell::get).sum();
    assert_eq!(there + got, sum, "lost or twice");
    // The rest is taken out, so that its memory is freed.
    for (key, _) in contents(s) {
        assert!((1..4).any(|n| remove(s, 0, 2 * n - 1, key)));
    }
    assert_eq!(s.words.free_all() as u32, sum.count_ones(), "retired");
}

/// [`with`], and this role does not look at slots.
fn lazily(role: usize, entries: &[(usize, u32, u32)]) -> S {
    let s = with(entries);
    s.words.lazy(role);
    s
}

const A: (usize, u32, u32) = (1, 1, 1);
const B: (usize, u32, u32) = (3, 2, 2);

macro_rules! model {
    ($name:ident, $text:literal, $setup:expr, $one:expr, $two:expr, $after:expr) => {
        static $name: Model<S> = Model {
            name: $text,
            rung: Rung::Rseq,
            plans: &[CPU0, CPU1],
            setup: $setup,
            roles: &[$one, $two],
            after: $after,
        };
    };
}

model!(
    REMOVE_WALK,
    "l16 remove, walk past it",
    || with(&[A, B]),
    |s| assert!(remove(s, 0, 1, 1)),
    |s| assert_eq!(get(s, 1, 3, 2), Some(2)),
    |s| ends(s, &[2], 3)
);
// The walker stands at the first; then both leave, first the one, then the other.
model!(
    REMOVE_TWO_WALK,
    "l16 remove two, walk past them",
    || with(&[A, B]),
    |s| {
        assert!(remove(s, 0, 1, 1));
        assert!(remove(s, 0, 3, 2));
    },
    |s| assert!(get(s, 1, 3, 2).is_none_or(|value| value == 2)),
    |s| ends(s, &[], 3)
);
model!(
    REMOVE_GET,
    "l16 remove, get it",
    || with(&[A]),
    |s| assert!(remove(s, 0, 1, 1)),
    |s| assert!(get(s, 1, 1, 1).is_none_or(|value| value == 1)),
    |s| ends(s, &[], 1)
);
model!(
    REMOVE_BOTH,
    "l16 remove, remove its neighbour",
    || with(&[A, B]),
    |s| assert!(remove(s, 0, 1, 1)),
    |s| assert!(remove(s, 1, 3, 2)),
    |s| ends(s, &[], 3)
);
model!(
    REMOVE_TWICE,
    "l16 remove, remove it",
    || with(&[A]),
    |s| _ = remove(s, 0, 1, 1),
    |s| _ = remove(s, 1, 1, 1),
    |s| ends(s, &[], 1)
);
model!(
    REMOVE_INSERT,
    "l16 remove, insert behind it",
    || with(&[A]),
    |s| {
        assert!(remove(s, 0, 1, 1));
        assert!(get(s, 0, 3, 2).is_none_or(|value| value == 2));
    },
    |s| assert!(insert(s, 1, 3, 2, 2)),
    |s| ends(s, &[2], 3)
);
model!(
    LAZY_REMOVE_INSERT,
    "l16 remove without a scan, insert behind it",
    || lazily(0, &[A]),
    |s| {
        assert!(remove(s, 0, 1, 1));
        assert!(get(s, 0, 3, 2).is_none_or(|value| value == 2));
    },
    |s| assert!(insert(s, 1, 3, 2, 2)),
    |s| ends(s, &[2], 3)
);

/// Marks without unlinking.
fn leaves(s: &S, role: usize, order: usize, key: u32) {
    let keeper = s.words.role(role);
    let (walk, here, _) = walk(s, &keeper, order, key);
    assert!(here);
    let Some((slot, node)) = walk.take() else {
        panic!("an entry has a slot")
    };
    // SAFETY: protected.
    unsafe {
        took(s, role, node.as_ref());
        assert!(leave(node));
    }
    drop(slot);
}

model!(
    LEAVE_WALK,
    "l16 insert behind it and mark, walk past it",
    || lazily(1, &[A]),
    |s| {
        assert!(insert(s, 0, 3, 2, 2));
        leaves(s, 0, 1, 1);
    },
    |s| assert!(get(s, 1, 3, 2).is_none_or(|value| value == 2)),
    |s| ends(s, &[2], 3)
);
model!(
    INSERT_GET,
    "l16 insert, get it",
    || with(&[]),
    |s| assert!(insert(s, 0, 1, 1, 1)),
    |s| assert!(get(s, 1, 1, 1).is_none_or(|value| value == 1)),
    |s| ends(s, &[1], 1)
);
model!(
    INSERT_TWICE,
    "l16 insert, insert the same key",
    || with(&[]),
    |s| _ = insert(s, 0, 1, 1, 1),
    |s| _ = insert(s, 1, 1, 1, 2),
    |s| ends(s, &[1], 3)
);
model!(
    REPLACE_GET,
    "l16 replace, get it",
    || with(&[A]),
    |s| assert!(!insert(s, 0, 1, 1, 2)),
    |s| assert!(get(s, 1, 1, 1).is_some(), "absent"),
    |s| ends(s, &[1], 3)
);
model!(
    LAZY_REPLACE_GET,
    "l16 replace, get it without a scan",
    || lazily(1, &[A]),
    |s| assert!(!insert(s, 0, 1, 1, 2)),
    |s| assert!(get(s, 1, 1, 1).is_some(), "absent"),
    |s| ends(s, &[1], 3)
);
model!(
    REPLACE_WALK,
    "l16 replace, walk past it",
    || with(&[A, B]),
    |s| assert!(!insert(s, 0, 1, 1, 4)),
    |s| assert_eq!(get(s, 1, 3, 2), Some(2)),
    |s| ends(s, &[1, 2], 7)
);
model!(
    REPLACE_REMOVE,
    "l16 replace, remove it",
    || with(&[A]),
    |s| _ = insert(s, 0, 1, 1, 2),
    |s| assert!(remove(s, 1, 1, 1)),
    |s| {
        let there: Vec<u32> = contents(s).iter().map(|entry| entry.0).collect();
        ends(s, &there, 3);
    }
);
model!(
    REPLACE_NEXT,
    "l16 replace, remove its successor",
    || with(&[A, B]),
    |s| assert!(!insert(s, 0, 1, 1, 4)),
    |s| assert!(remove(s, 1, 3, 2)),
    |s| ends(s, &[1], 7)
);

// Two keys of one order.
model!(
    GROUP,
    "l16 insert two keys of a group",
    || with(&[]),
    |s| assert!(insert(s, 0, 1, 1, 1)),
    |s| assert!(insert(s, 1, 1, 2, 2)),
    |s| {
        let role = s.words.role(0);
        let mut ranks = vec![];
        // SAFETY: as in `walk`.
        let mut walk = unsafe { Walk::<_, Entry>::new(&role, &s.bucket) };
        walk.to(&s.bucket, |_, entry: Option<&Node<Entry>>| {
            ranks.extend(entry.map(|e| e.rank));
            false
        });
        drop(walk);
        assert_eq!(ranks, [0, 1], "ranks increase");
        let there: Vec<u32> = contents(s).iter().map(|entry| entry.0).collect();
        ends(s, &there, 3);
    }
);

/// As `Map::get_or_insert_with`: held before it is put in, used after another role
/// may have removed it.
fn insert_held(s: &S, role: usize) {
    let keeper = s.words.role(role);
    let node = Node::boxed(1, (1, 1));
    let slot = keeper.hold(NonNull::from(&*node).cast());
    let (walk, here, _) = walk(s, &keeper, 1, 1);
    assert!(!here);
    let Ok(node) = walk.insert(node) else {
        panic!("nobody else inserts")
    };
    drop(walk);
    // SAFETY: protected by `slot`.
    unsafe { node.as_ref() }.link.life.touch();
    drop(slot);
}

model!(
    HELD,
    "l16 insert and hold, remove it",
    || with(&[]),
    |s| insert_held(s, 0),
    |s| _ = remove(s, 1, 1, 1),
    |s| {
        let there: Vec<u32> = contents(s).iter().map(|entry| entry.0).collect();
        ends(s, &there, 1);
    }
);

#[test]
fn insert_and_get() {
    on_all_rungs(&INSERT_GET, &[&[CPU0, CPU1]]);
}

#[test]
fn remove_and_get() {
    on_all_rungs(&REMOVE_GET, &[&[CPU0, CPU1]]);
}

#[test]
fn leave_and_walk() {
    LEAVE_WALK.check();
    LEAVE_WALK.check_with(Rung::Membarrier, &[CPU0, CPU1]);
}

#[test]
fn remove_and_walk() {
    REMOVE_WALK.search(4);
}

#[test]
fn remove_two_and_walk() {
    REMOVE_TWO_WALK.search(3);
}

#[test]
fn remove_twice() {
    REMOVE_TWICE.search(4);
}

#[test]
fn remove_neighbours() {
    REMOVE_BOTH.search(3);
}

#[test]
fn remove_and_insert() {
    REMOVE_INSERT.search(3);
    LAZY_REMOVE_INSERT.search(3);
}

#[test]
fn insert_twice() {
    INSERT_TWICE.check();
}

#[test]
fn insert_a_group() {
    GROUP.check();
}

#[test]
fn replace_and_get() {
    REPLACE_GET.check();
    LAZY_REPLACE_GET.check();
}

#[test]
fn replace_and_walk() {
    REPLACE_WALK.search(3);
}

#[test]
fn replace_and_remove() {
    REPLACE_REMOVE.search(3);
}

#[test]
fn replace_and_remove_next() {
    REPLACE_NEXT.search(3);
}

#[test]
fn insert_and_hold() {
    HELD.check();
}
