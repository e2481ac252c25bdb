//! One thread: each map under each scheme does what a `BTreeMap` does.

mod common;

use common::maps::{OnMap, each, name};
use common::{frees_all, scaled};
use proptest::prelude::*;
use std::collections::BTreeMap;
use structures::{Census, Map, Scan, Scheme, Thread};

#[derive(Clone, Copy, Debug)]
enum Op {
    Get(u64),
    Insert(u64, u64),
    Remove(u64),
    Scan,
}

struct Agrees(Vec<Op>);

impl OnMap for Agrees {
    fn run<M: Map>(&self) {
        let census = Census::leak();
        let map = M::new(4, census);
        let mut model = BTreeMap::new();
        let mut thread = map.thread();
        for op in &self.0 {
            match *op {
                Op::Get(key) => assert_eq!(
                    map.get(&mut thread, key),
                    model.get(&key).copied(),
                    "{}: {op:?}",
                    name::<M>()
                ),
                Op::Insert(key, value) => {
                    let new = !model.contains_key(&key);
                    assert_eq!(
                        map.insert(&mut thread, key, value),
                        new,
                        "{}: {op:?}",
                        name::<M>()
                    );
                    model.entry(key).or_insert(value);
                }
                Op::Remove(key) => assert_eq!(
                    map.remove(&mut thread, key),
                    model.remove(&key),
                    "{}: {op:?}",
                    name::<M>()
                ),
                Op::Scan => {
                    let mut seen = Vec::new();
                    let scan = map.scan(&mut thread, |key, value| seen.push((key, value)));
                    assert_eq!(
                        scan,
                        Scan {
                            elements: model.len() as u64,
                            restarts: 0
                        }
                    );
                    if M::KIND == structures::Kind::Hash {
                        seen.sort_unstable();
                    }
                    assert!(
                        seen.iter().copied().eq(model.iter().map(|(k, v)| (*k, *v))),
                        "{}: {seen:?}",
                        name::<M>()
                    );
                }
            }
            thread.idle(|| ());
        }
        drop(thread);
        map.flush();
        assert!(
            census.count().nodes >= model.len() as u64,
            "{}: freed too much",
            name::<M>()
        );
        drop(map);
        assert_eq!(census.dead_seen(), 0, "{}", name::<M>());
        if frees_all(&M::Scheme::ABOUT) {
            let count = census.count();
            assert_eq!((count.nodes, count.bytes), (0, 0), "{}", name::<M>());
        }
    }
}

/// Few keys, and both ends of what a key can be.
fn key() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0..12u64, 1 => Just(u64::MAX), 1 => Just(u64::MAX - 1)]
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        3 => key().prop_map(Op::Get),
        4 => (key(), any::<u64>()).prop_map(|(key, value)| Op::Insert(key, value)),
        3 => key().prop_map(Op::Remove),
        1 => Just(Op::Scan),
    ];
    prop::collection::vec(op, 0..scaled(200, 14))
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: scaled(48, 2) as u32,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_map_is_a_btree_map(ops in ops()) {
        each(&Agrees(ops));
    }
}
