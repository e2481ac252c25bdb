//! What each scheme promises to structures, by itself.

mod common;

use common::{linked, scaled};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering::*};
use std::sync::mpsc::channel;
use std::thread;
use structures::{Census, Guard, Life, Node, Protects, Scheme, Thread, Visit, dispatch, untagged};

#[repr(C)]
struct Number {
    number: u64,
    _more: u64,
    life: Life,
}

impl Node for Number {
    fn life(&self) -> &Life {
        &self.life
    }
}

fn make<S: Scheme>(number: u64, census: &'static Census) -> *mut Number {
    S::alloc(Number {
        number,
        _more: 0,
        life: Life::new(census, size_of::<Number>()),
    })
}

/// Enough retirements that every scheme tries to free.
const MANY: u64 = scaled(20_000, 300) as u64;

/// Replaces what is in `cell`, many times, in a thread of its own; the last one stays.
fn replace_often<S: Scheme>(scheme: &S, cell: &AtomicPtr<Number>, census: &'static Census) {
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut thread = scheme.thread::<1>();
            for number in 0..MANY {
                let old = cell.swap(make::<S>(number, census), AcqRel);
                if !old.is_null() {
                    // SAFETY: from `alloc`, and the swap unlinked it.
                    unsafe { thread.pin().retire(untagged(old)) };
                }
            }
        });
    });
}

fn for_all<V: Visit<Out = ()>>(visitor: impl Fn() -> V) {
    for about in linked() {
        dispatch(about.name, visitor()).expect("listed");
    }
}

struct Tags;

impl Visit for Tags {
    type Out = ();

    fn visit<S: Scheme>(self) {
        let census = Census::leak();
        let scheme = S::new();
        let node = make::<S>(5, census);
        assert_eq!(untagged(node), node, "no low bit is the address's");
        {
            let mut thread = scheme.thread::<2>();
            for tag in 0..align_of::<Number>() {
                let word = node.map_addr(|address| address | tag);
                let cell = AtomicPtr::new(word);
                let mut guard = thread.pin();
                assert_eq!(guard.protect(0, &cell), word, "{} {tag}", S::ABOUT.name);
                assert!(guard.unchanged(&cell, word));
                cell.store(ptr::without_provenance_mut(tag), Relaxed);
                assert_eq!(
                    guard.unchanged(&cell, word),
                    S::ABOUT.protects != Protects::Object,
                    "{}: only who protects one object need look again",
                    S::ABOUT.name
                );
                // Null, but for its tag.
                let null = guard.protect(1, &cell);
                assert_eq!(null.addr(), tag, "{}", S::ABOUT.name);
                guard.announce(1, null);
                guard.announce(1, word);
            }
        }
        // SAFETY: from `alloc`, and nobody else has it.
        unsafe { S::free(node) };
        assert_eq!(
            census.count().nodes,
            0,
            "{}: not freed at once",
            S::ABOUT.name
        );
    }
}

#[test]
fn tags_are_carried_and_masked() {
    for_all(|| Tags);
}

/// A node that is protected or announced outlives many retirements of others after its own.
struct Outlives {
    announces: bool,
}

impl Visit for Outlives {
    type Out = ();

    fn visit<S: Scheme>(self) {
        let census = Census::leak();
        let scheme = S::new();
        let cell = AtomicPtr::new(make::<S>(77, census));
        let mut thread = scheme.thread::<2>();
        {
            let mut guard = thread.pin();
            let node = if self.announces {
                // Nobody has unlinked it yet, which stands for the exchange.
                let node = cell.load(Acquire);
                guard.announce(1, node);
                node
            } else {
                guard.protect(1, &cell)
            };
            // Another slot changes nothing.
            let other = AtomicPtr::<Number>::new(ptr::null_mut());
            guard.protect(0, &other);
            guard.clear(0);
            replace_often(&scheme, &cell, census);
            // SAFETY: protected.
            let node = unsafe { &*node };
            assert!(census.look(&node.life), "{}: dead", S::ABOUT.name);
            assert_eq!(node.number, 77, "{}: another", S::ABOUT.name);
        }
        drop(thread);
        // SAFETY: the last one, which nobody else has.
        unsafe { S::free(cell.load(Acquire)) };
        scheme.flush();
    }
}

#[test]
fn a_protected_node_outlives_its_retirement() {
    for_all(|| Outlives { announces: false });
}

#[test]
fn an_announced_node_outlives_its_retirement() {
    for_all(|| Outlives { announces: true });
}

/// With slots: clearing one, or using it again, ends its protection and no other's.
struct Clears;

impl Visit for Clears {
    type Out = ();

    fn visit<S: Scheme>(self) {
        if S::ABOUT.protects != Protects::Object {
            return;
        }
        let census = Census::leak();
        let scheme = S::new();
        let cells: Vec<_> = (0..3)
            .map(|number| AtomicPtr::new(make::<S>(number, census)))
            .collect();
        let mut thread = scheme.thread::<3>();
        let mut guard = thread.pin();
        for (slot, cell) in cells.iter().enumerate() {
            guard.protect(slot, cell);
        }
        // Another thread unlinks and retires all three.
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut thread = scheme.thread::<1>();
                for cell in &cells {
                    let node = cell.swap(ptr::null_mut(), AcqRel);
                    // SAFETY: from `alloc`, and the swap unlinked it.
                    unsafe { thread.pin().retire(node) };
                }
            });
        });
        let living = || {
            // From a thread that has no part.
            thread::scope(|scope| scope.spawn(|| scheme.flush()).join().unwrap());
            census.count().nodes
        };
        assert_eq!(living(), 3, "{}", S::ABOUT.name);
        guard.clear(1);
        assert_eq!(living(), 2, "{}: clearing", S::ABOUT.name);
        guard.protect(0, &cells[0]);
        assert_eq!(living(), 1, "{}: using again", S::ABOUT.name);
        drop(guard);
        assert_eq!(living(), 0, "{}: the end", S::ABOUT.name);
        drop(thread);
    }
}

#[test]
fn slots_are_independent() {
    for_all(|| Clears);
}

/// A part may be dropped while others go on; what it retired is freed none the less.
struct Leaves;

impl Visit for Leaves {
    type Out = ();

    fn visit<S: Scheme>(self) {
        let census = Census::leak();
        let scheme = S::new();
        let cell = AtomicPtr::new(ptr::null_mut());
        thread::scope(|scope| {
            let (stop, stopped) = channel::<()>();
            let scheme = &scheme;
            let stays = scope.spawn(move || {
                let mut thread = scheme.thread::<1>();
                thread.idle(|| stopped.recv().unwrap());
            });
            for _ in 0..3 {
                replace_often(scheme, &cell, census);
            }
            stop.send(()).unwrap();
            stays.join().unwrap();
        });
        let last = cell.load(Acquire);
        // SAFETY: the last one, which nobody else has.
        unsafe { S::free(last) };
        scheme.flush();
        drop(scheme);
        let count = census.count();
        assert_eq!(count.made, 3 * MANY);
        if common::frees_all(&S::ABOUT) {
            assert_eq!(count.nodes, 0, "{}", S::ABOUT.name);
        } else {
            assert!(
                count.nodes < MANY,
                "{}: {} wait",
                S::ABOUT.name,
                count.nodes
            );
        }
    }
}

#[test]
fn what_a_thread_leaves_behind_is_freed() {
    for_all(|| Leaves);
}
