//! Many threads on one structure: nothing is lost, nothing is there twice,
//! every value is dropped once, and nobody reads a dead one.

#![cfg(feature = "structures")]

mod common;

use common::{Counted, Drops};
use hp::structures::{Map, Stack};
use std::collections::HashSet;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash, RandomState};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

const MIRI: bool = cfg!(miri);
const THREADS: usize = if MIRI { 3 } else { 4 };
const ROUNDS: usize = if MIRI { 25 } else { 20_000 };

fn drained(drops: &Drops, expected: usize) {
    common::drain_global_until(|| drops.count() >= expected);
    assert_eq!(drops.count(), expected, "lost or dropped twice");
}

/// A small generator, one a thread.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        // xorshift64 (Marsaglia 2003).
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % sides
    }
}

fn dice(thread: usize) -> Dice {
    Dice(0x9E37_79B9_7F4A_7C15 ^ (thread as u64 + 1))
}

#[test]
fn a_stack_gives_each_value_to_one() {
    let drops = Drops::new();
    let stack = Stack::new();
    let popped: Vec<usize> = thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS)
            .map(|t| {
                let (stack, drops) = (&stack, &drops);
                scope.spawn(move || {
                    let mut dice = dice(t);
                    let mut popped = vec![];
                    for n in 0..ROUNDS {
                        stack.push(drops.value(t * ROUNDS + n));
                        match dice.roll(50) {
                            0 => popped.extend(stack.take_all().map(|v: Counted| v.get())),
                            1..40 => popped.extend(stack.pop().map(|v| v.get())),
                            _ => (),
                        }
                    }
                    popped
                })
            })
            .collect();
        workers
            .into_iter()
            .flat_map(|w| w.join().unwrap())
            .collect()
    });
    let mut all: HashSet<usize> = HashSet::new();
    for value in popped.into_iter().chain(stack.into_iter().map(|v| v.get())) {
        assert!(all.insert(value), "{value} came twice");
    }
    assert_eq!(all.len(), THREADS * ROUNDS);
    assert_eq!(drops.count(), THREADS * ROUNDS);
}

#[test]
fn one_threads_values_come_in_the_order_of_a_stack() {
    // A single consumer of what two producers pushed before: of each one's,
    // the later before the earlier.
    let stack = Stack::new();
    thread::scope(|scope| {
        for t in 0..2 {
            let stack = &stack;
            scope.spawn(move || (0..ROUNDS).for_each(|n| stack.push((t, n))));
        }
    });
    let mut last = [ROUNDS; 2];
    while let Some((t, n)) = stack.pop() {
        assert_eq!(n + 1, last[t]);
        last[t] = n;
    }
    assert_eq!(last, [0, 0]);
}

#[test]
fn a_peek_sees_whole_values() {
    let stack = Stack::new();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..ROUNDS {
                stack.push([n, !n]);
                if n % 2 == 0 {
                    stack.pop();
                }
            }
            over.store(true, Ordering::Relaxed);
        });
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                if let Some([a, b]) = stack.peek() {
                    assert_eq!(a, !b);
                }
            }
        });
    });
}

type DefaultState = BuildHasherDefault<DefaultHasher>;

/// All keys in a few groups.
#[derive(Clone, Copy, Default)]
struct Few;

impl BuildHasher for Few {
    type Hasher = DefaultHasher;

    fn build_hasher(&self) -> DefaultHasher {
        DefaultHasher::new()
    }

    fn hash_one<T: Hash>(&self, value: T) -> u64 {
        DefaultState::new().hash_one(value) % 3
    }
}

/// Everybody does everything to a few keys, and holds some guards.
fn all_on_few_keys<S: BuildHasher + Default + Sync>(keys: usize) {
    let drops = Drops::new();
    let made = AtomicUsize::new(0);
    let map: Map<usize, Counted, S> = Map::default();
    thread::scope(|scope| {
        for t in 0..THREADS {
            let (map, drops, made) = (&map, &drops, &made);
            scope.spawn(move || {
                let mut dice = dice(t);
                let mut kept = vec![];
                let value = |key| {
                    made.fetch_add(1, Ordering::Relaxed);
                    drops.value(key)
                };
                let right = |key: usize, guard: &hp::Guard<Counted>| {
                    assert_eq!(guard.get(), key);
                };
                for _ in 0..ROUNDS {
                    let key = dice.roll(keys);
                    match dice.roll(20) {
                        0..5 => map
                            .insert(key, value(key))
                            .iter()
                            .for_each(|v| right(key, v)),
                        5..10 => map.remove(&key).iter().for_each(|v| right(key, v)),
                        10 => right(key, &map.get_or_insert_with(key, || value(key))),
                        11 if dice.roll(100) == 0 => {
                            map.iter().for_each(|e| assert_eq!(e.0, e.1.get()));
                        }
                        11 if dice.roll(100) == 0 => map.retain(|n, _| n % 2 == 0),
                        _ => {
                            let guard = map.get(&key);
                            guard.iter().for_each(|v| right(key, v));
                            kept.extend(guard);
                            if kept.len() > 20 {
                                kept.clear();
                            }
                        }
                    }
                }
            });
        }
    });
    assert_eq!(map.len(), map.iter().count());
    let distinct: HashSet<usize> = map.iter().map(|entry| entry.0).collect();
    assert_eq!(distinct.len(), map.len());
    drop(map);
    drained(&drops, made.load(Ordering::Relaxed));
}

#[test]
fn a_map_of_few_keys() {
    all_on_few_keys::<RandomState>(5);
}

#[test]
fn a_map_of_few_groups() {
    all_on_few_keys::<Few>(12);
}

#[test]
fn a_map_of_many_keys() {
    all_on_few_keys::<RandomState>(if MIRI { 30 } else { 3000 });
}

/// Insertions and removals by exact ownership: a value names who inserted it,
/// so that the balance of each key is exact.
#[test]
fn what_goes_in_comes_out_once() {
    const KEYS: usize = 4;
    let map: Map<usize, usize> = Map::new();
    let balance: Vec<AtomicUsize> = (0..KEYS).map(|_| AtomicUsize::new(0)).collect();
    thread::scope(|scope| {
        for t in 0..THREADS {
            let (map, balance) = (&map, &balance);
            scope.spawn(move || {
                let mut dice = dice(t);
                for n in 0..ROUNDS {
                    let key = dice.roll(KEYS);
                    if dice.roll(2) == 0 {
                        if map.insert(key, t * ROUNDS + n).is_none() {
                            balance[key].fetch_add(1, Ordering::Relaxed);
                        }
                    } else if map.remove(&key).is_some() {
                        balance[key].fetch_sub(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    for (key, balance) in balance.iter().enumerate() {
        assert_eq!(
            usize::from(map.contains_key(&key)),
            balance.load(Ordering::Relaxed)
        );
    }
}

#[test]
fn each_value_is_given_back_once() {
    // Every inserted value leaves as the result of exactly one insertion or
    // removal, or is there in the end.
    const KEYS: usize = 3;
    let map: Map<usize, usize> = Map::new();
    let left: Vec<usize> = thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS)
            .map(|t| {
                let map = &map;
                scope.spawn(move || {
                    let mut dice = dice(t);
                    let mut left = vec![];
                    for n in 0..ROUNDS {
                        left.extend(map.insert(dice.roll(KEYS), t * ROUNDS + n).map(|v| *v));
                        if dice.roll(3) == 0 {
                            left.extend(map.remove(&dice.roll(KEYS)).map(|v| *v));
                        }
                    }
                    left
                })
            })
            .collect();
        workers
            .into_iter()
            .flat_map(|w| w.join().unwrap())
            .collect()
    });
    let mut all = HashSet::new();
    for value in left.into_iter().chain(map.iter().map(|entry| entry.1)) {
        assert!(all.insert(value), "{value} left twice");
    }
    assert_eq!(all.len(), THREADS * ROUNDS);
}

#[test]
fn a_replaced_key_is_never_absent() {
    let map: Map<usize, usize> = Map::new();
    map.insert(1, 0);
    map.insert(2, 0);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..ROUNDS {
                map.insert(1, n);
                // Neighbours come and go, buckets open.
                map.insert(n + 10, 0);
                map.remove(&(n + 9));
            }
            over.store(true, Ordering::Relaxed);
        });
        scope.spawn(|| {
            let mut last = 0;
            while !over.load(Ordering::Relaxed) {
                let now = *map.get(&1).expect("always there");
                assert!(now >= last, "{now} after {last}");
                last = now;
                assert!(map.contains_key(&2));
                let mut found = 0;
                map.iter().for_each(|e| found += usize::from(e.0 == 2));
                assert_eq!(found, 1);
            }
        });
    });
}

/// An iterator under fire gives what stays exactly once.
fn iterate_while_others_change<S: BuildHasher + Default + Sync>(stay: usize) {
    let map: Map<usize, usize, S> = (0..stay).map(|n| (n, n)).collect();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        for t in 0..2 {
            let (map, over) = (&map, &over);
            scope.spawn(move || {
                let mut dice = dice(t);
                for _ in 0..ROUNDS / 4 {
                    let key = stay + dice.roll(2 * stay);
                    if dice.roll(2) == 0 {
                        map.insert(key, key);
                    } else {
                        map.remove(&key);
                    }
                    // Cursors on those that stay lose their entry, too.
                    map.insert(dice.roll(stay), 7);
                }
                over.store(true, Ordering::Relaxed);
            });
        }
        scope.spawn(|| {
            let mut once = false;
            while !once || !over.load(Ordering::Relaxed) {
                once = true;
                let mut seen = vec![0; stay];
                for entry in &map {
                    if entry.0 < stay {
                        seen[entry.0] += 1;
                    }
                }
                // A replaced entry is there all the time, as one or the other.
                assert!(seen.iter().all(|&n| n == 1), "{seen:?}");
            }
        });
    });
}

#[test]
fn an_iterator_gives_what_stays_once() {
    iterate_while_others_change::<RandomState>(if MIRI { 5 } else { 50 });
}

#[test]
fn an_iterator_gives_what_stays_once_in_groups() {
    iterate_while_others_change::<Few>(if MIRI { 5 } else { 20 });
}
