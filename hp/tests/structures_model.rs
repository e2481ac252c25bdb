//! Random sequences of operations on a map and a stack, against the standard
//! library's, with guards that stay around.

#![cfg(feature = "structures")]

mod common;

use common::{Counted, Drops};
use hp::Guard;
use hp::structures::{Map, Stack};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash, RandomState};

const KEYS: u32 = 12;

#[derive(Clone, Debug)]
enum Op {
    Insert(u32),
    GetOrInsert(u32),
    Remove(u32),
    RemoveEntry(u32),
    Get(u32),
    GetKeyValue(u32),
    Contains(u32),
    /// Steps of an iterator that stays open.
    Iterate(usize),
    Compare,
    Retain(u32),
    Clear,
    DropGuard(usize),
    Drain,
}

fn op() -> impl Strategy<Value = Op> {
    let key = 0..KEYS;
    let n = 0usize..64;
    prop_oneof![
        8 => key.clone().prop_map(Op::Insert),
        3 => key.clone().prop_map(Op::GetOrInsert),
        5 => key.clone().prop_map(Op::Remove),
        2 => key.clone().prop_map(Op::RemoveEntry),
        4 => key.clone().prop_map(Op::Get),
        2 => key.clone().prop_map(Op::GetKeyValue),
        1 => key.clone().prop_map(Op::Contains),
        4 => (1usize..4).prop_map(Op::Iterate),
        1 => Just(Op::Compare),
        1 => key.prop_map(Op::Retain),
        1 => Just(Op::Clear),
        6 => n.prop_map(Op::DropGuard),
        2 => Just(Op::Drain),
    ]
}

type Entry = (u32, Counted);
type DefaultState = BuildHasherDefault<DefaultHasher>;

/// Few hashes.
#[derive(Default)]
struct Few;

impl BuildHasher for Few {
    type Hasher = DefaultHasher;

    fn build_hasher(&self) -> DefaultHasher {
        DefaultHasher::new()
    }

    fn hash_one<T: Hash>(&self, value: T) -> u64 {
        DefaultState::new().hash_one(value) % 2
    }
}

fn map_is_a_map<S: BuildHasher + Default>(ops: &[Op]) {
    let drops = Drops::new();
    let map: Map<u32, Counted, S> = Map::default();
    let mut model: HashMap<u32, usize> = HashMap::new();
    // Values are numbered as they are made.
    let mut made = 0;
    let mut guards: Vec<(Guard<Counted>, usize)> = vec![];
    let mut entries: Vec<(Guard<Entry>, (u32, usize))> = vec![];
    let mut iter = map.iter();
    // Keys that were there since the iterator began, and that it gave.
    let (mut stayed, mut given): (Vec<u32>, Vec<u32>) = (vec![], vec![]);
    for op in ops {
        match *op {
            Op::Insert(key) => {
                let old = map.insert(key, drops.value(made));
                let expected = model.insert(key, made);
                made += 1;
                assert_eq!(old.as_ref().map(|v| v.get()), expected);
                guards.extend(old.zip(expected));
            }
            Op::GetOrInsert(key) => {
                let guard = map.get_or_insert_with(key, || {
                    made += 1;
                    drops.value(made - 1)
                });
                let expected = *model.entry(key).or_insert(made - 1);
                assert_eq!(guard.get(), expected);
                guards.push((guard, expected));
            }
            Op::Remove(key) => {
                let (old, expected) = (map.remove(&key), model.remove(&key));
                assert_eq!(old.as_ref().map(|v| v.get()), expected);
                guards.extend(old.zip(expected));
                stayed.retain(|k| *k != key);
            }
            Op::RemoveEntry(key) => {
                let (old, expected) = (map.remove_entry(&key), model.remove_entry(&key));
                assert_eq!(old.as_ref().map(|e| (e.0, e.1.get())), expected);
                entries.extend(old.zip(expected));
                stayed.retain(|k| *k != key);
            }
            Op::Get(key) => {
                let guard = map.get(&key);
                assert_eq!(guard.as_ref().map(|v| v.get()), model.get(&key).copied());
                guards.extend(guard.zip(model.get(&key).copied()));
            }
            Op::GetKeyValue(key) => {
                let entry = map.get_key_value(&key);
                let expected = model.get(&key).map(|v| (key, *v));
                assert_eq!(entry.as_ref().map(|e| (e.0, e.1.get())), expected);
                entries.extend(entry.zip(expected));
            }
            Op::Contains(key) => assert_eq!(map.contains_key(&key), model.contains_key(&key)),
            Op::Iterate(steps) => {
                for _ in 0..steps {
                    if let Some(entry) = iter.next() {
                        assert_eq!(model.get(&entry.0), Some(&entry.1.get()));
                        given.push(entry.0);
                        let expected = (entry.0, entry.1.get());
                        entries.push((entry, expected));
                    } else {
                        for key in &stayed {
                            let times = given.iter().filter(|k| *k == key).count();
                            assert_eq!(times, 1, "{key} stayed");
                        }
                        iter = map.iter();
                        stayed = model.keys().copied().collect();
                        given.clear();
                    }
                }
            }
            Op::Compare => {
                let mut all: Vec<_> = map.iter().map(|e| (e.0, e.1.get())).collect();
                let mut expected: Vec<_> = model.iter().map(|(k, v)| (*k, *v)).collect();
                all.sort_unstable();
                expected.sort_unstable();
                assert_eq!(all, expected);
            }
            Op::Retain(limit) => {
                map.retain(|key, _| *key < limit);
                model.retain(|key, _| *key < limit);
                stayed.retain(|key| *key < limit);
            }
            Op::Clear => {
                map.clear();
                model.clear();
                stayed.clear();
            }
            Op::DropGuard(n) => {
                if !guards.is_empty() {
                    guards.swap_remove(n % guards.len());
                }
                if !entries.is_empty() {
                    entries.swap_remove(n % entries.len());
                }
            }
            Op::Drain => drop(hp::Domain::global().drain()),
        }
        assert_eq!(map.len(), model.len());
        // Whatever is held is alive, and what it was.
        assert!(guards.iter().all(|(guard, value)| guard.get() == *value));
        assert!(
            entries
                .iter()
                .all(|(e, (k, v))| (e.0, e.1.get()) == (*k, *v))
        );
    }
    drop(iter);
    drop(map);
    let mut alive: Vec<usize> = guards.iter().map(|(_, value)| *value).collect();
    alive.extend(entries.iter().map(|(_, entry)| entry.1));
    alive.sort_unstable();
    alive.dedup();
    common::drain_global_until(|| drops.count() == made - alive.len());
    assert_eq!(drops.count(), made - alive.len());
    drop((guards, entries));
    common::drain_global_until(|| drops.count() == made);
    assert_eq!(drops.count(), made);
}

#[derive(Clone, Debug)]
enum StackOp {
    Push,
    Pop,
    Peek,
    TakeAll(usize),
    IterMut,
}

fn stack_op() -> impl Strategy<Value = StackOp> {
    prop_oneof![
        8 => Just(StackOp::Push),
        5 => Just(StackOp::Pop),
        2 => Just(StackOp::Peek),
        1 => (0usize..5).prop_map(StackOp::TakeAll),
        1 => Just(StackOp::IterMut),
    ]
}

fn stack_is_a_stack(ops: &[StackOp]) {
    let mut stack = Stack::new();
    let mut model = vec![];
    for (n, op) in ops.iter().enumerate() {
        match *op {
            StackOp::Push => {
                stack.push(n);
                model.push(n);
            }
            StackOp::Pop => assert_eq!(stack.pop(), model.pop()),
            StackOp::Peek => assert_eq!(stack.peek().as_ref(), model.last()),
            StackOp::TakeAll(some) => {
                let taken: Vec<usize> = stack.take_all().take(some).collect();
                let expected: Vec<usize> = model.drain(..).rev().take(some).collect();
                assert_eq!(taken, expected);
            }
            StackOp::IterMut => {
                stack.iter_mut().for_each(|value| *value += 1);
                model.iter_mut().for_each(|value| *value += 1);
            }
        }
        assert_eq!(stack.is_empty(), model.is_empty());
    }
    model.reverse();
    assert_eq!(stack.into_iter().collect::<Vec<_>>(), model);
}

fn for_all<O: std::fmt::Debug>(op: impl Strategy<Value = O>, check: impl Fn(&[O])) {
    let config = Config {
        cases: if cfg!(miri) { 2 } else { 150 },
        failure_persistence: None,
        ..Config::default()
    };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let length = if cfg!(miri) { 15 } else { 150 };
    TestRunner::new_with_rng(config, rng)
        .run(&proptest::collection::vec(op, 0..length), |ops| {
            check(&ops);
            Ok(())
        })
        .unwrap_or_else(|failure| panic!("{failure}"));
}

#[test]
fn a_map_is_a_map() {
    for_all(op(), map_is_a_map::<RandomState>);
}

#[test]
fn a_map_of_few_hashes_is_a_map() {
    for_all(op(), map_is_a_map::<Few>);
}

#[test]
fn a_stack_is_a_stack() {
    for_all(stack_op(), stack_is_a_stack);
}
