//! Many threads on each map under each scheme. What was put in is there or was taken out once; scans miss nothing that was
//! there all the time; nobody looks at a dead node.

mod common;

use common::maps::{OnMap, each, name};
use common::{Random, frees_all, scaled};
use std::collections::HashMap as Counts;
use std::thread;
use structures::{Census, Kind, Map, Scheme};

const THREADS: usize = 4;
const EACH: usize = scaled(8_000, 8);
/// Every fourth stays all the time.
const KEYS: u64 = scaled(48, 8) as u64;

const fn stays(key: u64) -> bool {
    key.is_multiple_of(4)
}

/// A value that names its key, maker and turn.
fn value(key: u64, maker: usize, turn: usize) -> u64 {
    key << 40 | (maker as u64) << 32 | turn as u64
}

#[derive(Default)]
struct Did {
    inserted: Vec<u64>,
    removed: Vec<u64>,
}

fn work<M: Map>(map: &M, maker: usize) -> Did {
    let mut thread = map.thread();
    let mut random = Random::new(maker as u64 + 1);
    let mut did = Did::default();
    let of =
        |key: u64, value: u64| assert_eq!(value >> 40, key, "{}: another's value", name::<M>());
    for turn in 0..EACH {
        let key = random.below(KEYS);
        match random.below(8) {
            0..3 => {
                let new = value(key, maker, turn);
                if map.insert(&mut thread, key, new) {
                    assert!(!stays(key), "{}: {key} was gone", name::<M>());
                    did.inserted.push(new);
                }
            }
            3..6 if !stays(key) => {
                if let Some(old) = map.remove(&mut thread, key) {
                    of(key, old);
                    did.removed.push(old);
                }
            }
            _ => match map.get(&mut thread, key) {
                Some(seen) => of(key, seen),
                None => assert!(!stays(key), "{}: {key} was gone", name::<M>()),
            },
        }
        if turn % (EACH / 8).max(4) == 0 {
            scan(map, &mut thread);
        }
    }
    did
}

/// What stays is seen once, and nothing twice.
fn scan<M: Map>(map: &M, thread: &mut M::Thread<'_>) {
    let mut seen = Vec::new();
    let scan = map.scan(thread, |key, value| {
        assert_eq!(value >> 40, key, "{}: another's value", name::<M>());
        seen.push(key);
    });
    assert_eq!(scan.elements, seen.len() as u64);
    if M::KIND != Kind::Hash {
        assert!(seen.is_sorted(), "{}: {seen:?}", name::<M>());
    }
    seen.sort_unstable();
    assert!(
        seen.windows(2).all(|w| w[0] < w[1]),
        "{}: {seen:?}",
        name::<M>()
    );
    for key in (0..KEYS).filter(|key| stays(*key)) {
        assert!(
            seen.binary_search(&key).is_ok(),
            "{}: {key} was missed",
            name::<M>()
        );
    }
}

struct Stress;

impl OnMap for Stress {
    fn run<M: Map>(&self) {
        let census = Census::leak();
        let map = M::new(KEYS as usize / 4, census);
        let mut all = Did::default();
        {
            let mut thread = map.thread();
            for key in (0..KEYS).filter(|key| stays(*key)) {
                let value = value(key, THREADS, 0);
                assert!(map.insert(&mut thread, key, value));
                all.inserted.push(value);
            }
        }
        thread::scope(|scope| {
            let map = &map;
            let crew: Vec<_> = (0..THREADS)
                .map(|maker| scope.spawn(move || work(map, maker)))
                .collect();
            for did in crew.into_iter().map(|t| t.join().unwrap()) {
                all.inserted.extend(did.inserted);
                all.removed.extend(did.removed);
            }
        });
        // What was put in and not taken out is there.
        let mut balance: Counts<u64, i32> = Counts::new();
        for value in all.inserted {
            *balance.entry(value).or_default() += 1;
        }
        for value in all.removed {
            *balance.entry(value).or_default() -= 1;
        }
        {
            let mut thread = map.thread();
            for key in 0..KEYS {
                if let Some(value) = map.get(&mut thread, key) {
                    *balance.entry(value).or_default() -= 1;
                }
            }
        }
        balance.retain(|_, count| *count != 0);
        assert!(balance.is_empty(), "{}: {balance:x?}", name::<M>());
        map.flush();
        drop(map);
        assert_eq!(
            census.dead_seen(),
            0,
            "{}: a dead node was looked at",
            name::<M>()
        );
        if frees_all(&M::Scheme::ABOUT) {
            let count = census.count();
            assert_eq!((count.nodes, count.bytes), (0, 0), "{}", name::<M>());
        }
    }
}

#[test]
fn a_map_holds_what_was_put_in() {
    each(&Stress);
}

/// Nothing that was removed stays behind in the structure: with everything flushed, only the elements are left.
struct NothingLeft;

impl OnMap for NothingLeft {
    fn run<M: Map>(&self) {
        // The others free later, or at the end.
        if !M::Scheme::ABOUT.percpu {
            return;
        }
        let census = Census::leak();
        let map = M::new(4, census);
        for _ in 0..scaled(200, 1) {
            thread::scope(|scope| {
                for maker in 0..THREADS {
                    let map = &map;
                    scope.spawn(move || {
                        let mut thread = map.thread();
                        let mut random = Random::new(maker as u64 + 1);
                        for turn in 0..scaled(60, 4) {
                            let key = random.below(4);
                            if random.below(2) == 0 {
                                map.insert(&mut thread, key, value(key, maker, turn));
                            } else {
                                map.remove(&mut thread, key);
                            }
                        }
                    });
                }
            });
            map.flush();
            let elements = map.scan(&mut map.thread(), |_, _| ()).elements;
            assert_eq!(census.count().nodes, elements, "{}", name::<M>());
        }
    }
}

#[test]
fn no_removed_node_stays_behind() {
    each(&NothingLeft);
}
