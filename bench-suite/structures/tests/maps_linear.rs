//! Short concurrent histories of each map under each scheme are linearizable; those of a map with a planted fault are found
//! not to be.
//!
//! Keys are independent in the sequential model, and linearizability is local (Herlihy and Wing 1990): it is enough that
//! the history of each key by itself could have happened.

mod common;

use common::maps::{OnMap, each, name};
use common::{Random, scaled};
use std::collections::BTreeMap;
use std::sync::{Barrier, Mutex};
use std::thread;
use structures::linear::{Clock, Done, Model, linearize};
use structures::{Census, Map, Thread};

const THREADS: usize = 3;
const EACH: usize = 6;
const KEYS: u64 = 2;
const ROUNDS: usize = scaled(300, 2);

#[derive(Clone, Copy, Debug)]
enum Op {
    Get,
    Insert(u64),
    Remove,
}

/// What is under a key. An insertion gives what stood in its way.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
struct Key(Option<u64>);

/// Whether it was put in, or the value.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Out {
    Inserted(bool),
    Value(Option<u64>),
}

impl Model for Key {
    type Op = Op;
    type Out = Out;

    fn apply(&mut self, op: &Op) -> Out {
        match *op {
            Op::Get => Out::Value(self.0),
            Op::Remove => Out::Value(self.0.take()),
            Op::Insert(value) => {
                let new = self.0.is_none();
                self.0.get_or_insert(value);
                Out::Inserted(new)
            }
        }
    }
}

type History = Vec<Done<Op, Out>>;

/// What is looked at.
trait Subject: Sync {
    type Part<'a>
    where
        Self: 'a;
    fn part(&self) -> Self::Part<'_>;
    fn run(&self, part: &mut Self::Part<'_>, key: u64, op: Op) -> Out;
    /// Waits, between operations.
    fn wait(part: &mut Self::Part<'_>, barrier: &Barrier);
}

struct Of<M>(M);

impl<M: Map> Subject for Of<M> {
    type Part<'a> = M::Thread<'a>;

    fn part(&self) -> Self::Part<'_> {
        self.0.thread()
    }

    fn run(&self, part: &mut Self::Part<'_>, key: u64, op: Op) -> Out {
        match op {
            Op::Get => Out::Value(self.0.get(part, key)),
            Op::Insert(value) => Out::Inserted(self.0.insert(part, key, value)),
            Op::Remove => Out::Value(self.0.remove(part, key)),
        }
    }

    fn wait(part: &mut Self::Part<'_>, barrier: &Barrier) {
        part.idle(|| barrier.wait());
    }
}

/// The first history of `rounds`, of one key, that could not have happened.
fn find_fault<X: Subject>(subject: &X, rounds: usize) -> Option<History> {
    let clock = Clock::new();
    let barrier = Barrier::new(THREADS + 1);
    let histories: [Mutex<History>; KEYS as usize] = Default::default();
    let over = Mutex::new(false);
    thread::scope(|scope| {
        for number in 0..THREADS as u64 {
            let (clock, barrier, histories, over) = (&clock, &barrier, &histories, &over);
            scope.spawn(move || {
                let mut part = subject.part();
                let mut random = Random::new(number + 1);
                let mut serial = number << 32;
                loop {
                    X::wait(&mut part, barrier);
                    if *over.lock().unwrap() {
                        return;
                    }
                    let mut history = Vec::with_capacity(EACH);
                    for _ in 0..EACH {
                        serial += 1;
                        let key = random.below(KEYS);
                        let op = match random.below(4) {
                            0 => Op::Get,
                            1 => Op::Remove,
                            _ => Op::Insert(serial),
                        };
                        let done = clock.record(op, |op| subject.run(&mut part, key, *op));
                        history.push((key, done));
                    }
                    for (key, done) in history {
                        histories[key as usize].lock().unwrap().push(done);
                    }
                    X::wait(&mut part, barrier);
                }
            });
        }
        let mut found = None;
        for _ in 0..rounds {
            barrier.wait();
            barrier.wait();
            for key in 0..KEYS {
                let mut history = std::mem::take(&mut *histories[key as usize].lock().unwrap());
                // Back to the model's first state, as a part of the history.
                let mut part = subject.part();
                for op in [Op::Remove, Op::Get] {
                    history.push(clock.record(op, |op| subject.run(&mut part, key, *op)));
                }
                if linearize(&Key::default(), &history).is_none() {
                    found.get_or_insert(history);
                }
            }
            if found.is_some() {
                break;
            }
        }
        *over.lock().unwrap() = true;
        barrier.wait();
        found
    })
}

struct Linearizable;

impl OnMap for Linearizable {
    fn run<M: Map>(&self) {
        let found = find_fault(&Of(M::new(1, Census::leak())), ROUNDS);
        assert!(found.is_none(), "{}: {found:#?}", name::<M>());
    }
}

#[test]
fn histories_of_maps_are_linearizable() {
    each(&Linearizable);
}

/// What a map behind a lock does wrong.
#[derive(Clone, Copy, PartialEq)]
enum Planted {
    /// Nothing.
    Nothing,
    /// Looks and puts in, in two steps.
    Overwrites,
    /// Looks and takes out, in two steps.
    TakesTwice,
    /// Now and then a reader sees what a reader saw before.
    Remembers,
}

struct Faulty {
    map: Mutex<BTreeMap<u64, u64>>,
    planted: Planted,
}

impl Faulty {
    fn with(planted: Planted) -> Self {
        Faulty {
            map: Mutex::default(),
            planted,
        }
    }
}

impl Subject for Faulty {
    /// What was seen last under each key.
    type Part<'a> = [Option<u64>; KEYS as usize];

    fn part(&self) -> Self::Part<'_> {
        Default::default()
    }

    fn run(&self, seen: &mut Self::Part<'_>, key: u64, op: Op) -> Out {
        let lock = || self.map.lock().unwrap();
        match (op, self.planted) {
            (Op::Get, planted) => {
                let remembered = seen[key as usize].take();
                let now = lock().get(&key).copied();
                seen[key as usize] = now;
                match remembered {
                    Some(old) if planted == Planted::Remembers => Out::Value(Some(old)),
                    _ => Out::Value(now),
                }
            }
            (Op::Insert(value), Planted::Overwrites) => {
                let new = !lock().contains_key(&key);
                thread::yield_now();
                if new {
                    lock().insert(key, value);
                }
                Out::Inserted(new)
            }
            (Op::Insert(value), _) => {
                let mut map = lock();
                let new = !map.contains_key(&key);
                map.entry(key).or_insert(value);
                Out::Inserted(new)
            }
            (Op::Remove, Planted::TakesTwice) => {
                let old = lock().get(&key).copied();
                thread::yield_now();
                lock().remove(&key);
                Out::Value(old)
            }
            (Op::Remove, _) => Out::Value(lock().remove(&key)),
        }
    }

    fn wait(_: &mut Self::Part<'_>, barrier: &Barrier) {
        barrier.wait();
    }
}

#[test]
fn a_map_behind_a_lock_is_linearizable() {
    let map = Faulty::with(Planted::Nothing);
    assert!(find_fault(&map, ROUNDS).is_none());
}

#[test]
fn a_map_behind_a_lock_with_a_fault_is_found() {
    for planted in [Planted::Overwrites, Planted::TakesTwice, Planted::Remembers] {
        let found = find_fault(&Faulty::with(planted), scaled(100_000, 200));
        assert!(found.is_some());
    }
}
