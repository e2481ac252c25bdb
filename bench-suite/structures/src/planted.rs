//! Each planted fault turns a check red; without one, all are green.
//!
//! Floor 3 (`structures`), tests only. Threads on few keys, over the hazard pointers that keep their dead (`broken`), or over
//! `hp` where the fault is only that something stays behind. A structure with a fault is not dropped: what it links may have
//! been retired as well.

use crate::fault::{Fault, plant};
use crate::schemes::{Control, Hp, Native, Textbook};
use crate::{Census, HashMap, List, Map, SkipList};
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

const THREADS: u64 = 4;
const EACH: u64 = if cfg!(miri) { 12 } else { 300 };
const KEYS: u64 = 4;

/// How long a fault may hide.
const PATIENCE: Duration = Duration::from_secs(if cfg!(miri) { 240 } else { 60 });

/// How a fault shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign {
    /// A dead node was looked at.
    Dead,
    /// A node was retired twice.
    Twice,
    /// The content is not what the operations left.
    Content,
    /// A removed node was never retired.
    Left,
}

/// Numbers that look random.
fn below(state: &mut u64, bound: u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state % bound
}

/// Operations of some threads. Gives, by key, how many more insertions than removals there were.
fn churn<M: Map>(map: &M, fault: Fault, seed: u64) -> [i64; KEYS as usize] {
    let sums = Mutex::new([0; KEYS as usize]);
    let barrier = Barrier::new(THREADS as usize);
    thread::scope(|scope| {
        for maker in 0..THREADS {
            let (sums, barrier) = (&sums, &barrier);
            scope.spawn(move || {
                plant(fault);
                let mut thread = map.thread();
                let mut random = (seed * THREADS + maker + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let mut sum = [0; KEYS as usize];
                barrier.wait();
                for turn in 0..EACH {
                    let key = below(&mut random, KEYS);
                    match below(&mut random, 5) {
                        0 | 1 => {
                            sum[key as usize] += i64::from(map.insert(&mut thread, key, turn));
                        }
                        2 | 3 => {
                            sum[key as usize] -= i64::from(map.remove(&mut thread, key).is_some());
                        }
                        _ => {
                            map.get(&mut thread, key);
                        }
                    }
                }
                let mut sums = sums.lock().unwrap();
                for (all, one) in sums.iter_mut().zip(sum) {
                    *all += one;
                }
            });
        }
    });
    sums.into_inner().unwrap()
}

/// What is there, by key.
fn content<M: Map>(map: &M) -> BTreeMap<u64, i64> {
    let mut content = BTreeMap::new();
    let mut thread = map.thread();
    // Bounded: a structure with a fault may have become a ring.
    map.scan(&mut thread, |key, _| *content.entry(key).or_default() += 1);
    content
}

/// A round over `Textbook`; what it shows.
fn textbook<M: Map<Scheme = Textbook<Control>>>(fault: Fault, seed: u64) -> Vec<Sign> {
    let census = Census::leak();
    let map = M::new(1, census);
    let sums = churn(&map, fault, seed);
    let mut signs = Vec::new();
    if census.dead_seen() > 0 {
        signs.push(Sign::Dead);
    }
    if map.scheme().retired_twice() {
        signs.push(Sign::Twice);
    }
    let wanted: BTreeMap<u64, i64> = (0..).zip(sums).filter(|(_, count)| *count != 0).collect();
    if content(&map) != wanted {
        signs.push(Sign::Content);
    }
    if fault == Fault::None {
        drop(map);
        assert_eq!(census.count().nodes, 0);
        assert_eq!(census.dead_seen(), 0);
    } else {
        keep(map);
    }
    signs
}

/// A round over `hp`: whether something was left.
fn left<M: Map<Scheme = Hp<Native>>>(fault: Fault, seed: u64) -> Vec<Sign> {
    let census = Census::leak();
    let map = M::new(1, census);
    churn(&map, fault, seed);
    map.flush();
    // Counted before anybody walks: a walk would find it.
    let nodes = census.count().nodes;
    let elements = content(&map).values().sum::<i64>();
    let mut signs = Vec::new();
    if i64::try_from(nodes) != Ok(elements) {
        signs.push(Sign::Left);
    }
    drop(map);
    assert_eq!((census.count().nodes, census.dead_seen()), (0, 0));
    signs
}

/// Keeps what cannot be dropped where leak checkers see it.
fn keep(map: impl Any + Send) {
    static KEPT: Mutex<Vec<Box<dyn Any + Send>>> = Mutex::new(Vec::new());
    KEPT.lock().unwrap().push(Box::new(map));
}

/// Rounds until one of `signs` shows.
#[track_caller]
fn shows(fault: Fault, signs: &[Sign], round: impl Fn(Fault, u64) -> Vec<Sign>) {
    let began = Instant::now();
    for seed in 1.. {
        let seen = round(fault, seed);
        if signs.iter().any(|sign| seen.contains(sign)) {
            return;
        }
        assert!(
            began.elapsed() < PATIENCE,
            "{fault:?} does not show in {seed} rounds"
        );
    }
}

type Kept = Textbook<Control>;

#[test]
fn without_a_fault_nothing_shows() {
    for seed in 1..if cfg!(miri) { 2 } else { 40 } {
        assert_eq!(textbook::<List<Kept>>(Fault::None, seed), []);
        assert_eq!(textbook::<HashMap<Kept>>(Fault::None, seed), []);
        assert_eq!(textbook::<SkipList<Kept>>(Fault::None, seed), []);
        assert_eq!(left::<List<Hp<Native>>>(Fault::None, seed), []);
        assert_eq!(left::<SkipList<Hp<Native>>>(Fault::None, seed), []);
    }
}

#[test]
fn an_unprotected_step_shows() {
    shows(Fault::Unprotected, &[Sign::Dead], textbook::<List<Kept>>);
    shows(
        Fault::Unprotected,
        &[Sign::Dead],
        textbook::<SkipList<Kept>>,
    );
}

#[test]
fn an_unvalidated_step_shows() {
    shows(Fault::Unvalidated, &[Sign::Dead], textbook::<List<Kept>>);
    shows(
        Fault::Unvalidated,
        &[Sign::Dead],
        textbook::<SkipList<Kept>>,
    );
}

#[test]
fn a_forgotten_mark_shows() {
    shows(Fault::Unmarked, &[Sign::Content], textbook::<List<Kept>>);
    shows(
        Fault::Unmarked,
        &[Sign::Content],
        textbook::<SkipList<Kept>>,
    );
}

#[test]
fn a_second_retirement_shows() {
    shows(Fault::RetiredTwice, &[Sign::Twice], textbook::<List<Kept>>);
    shows(
        Fault::RetiredTwice,
        &[Sign::Twice],
        textbook::<SkipList<Kept>>,
    );
}

#[test]
fn an_inserter_that_does_not_count_shows() {
    shows(
        Fault::Uncounted,
        &[Sign::Dead, Sign::Twice],
        textbook::<SkipList<Kept>>,
    );
}

#[test]
fn an_inserter_that_does_not_look_again_shows() {
    shows(
        Fault::Unchecked,
        &[Sign::Left],
        left::<SkipList<Hp<Native>>>,
    );
}
