//! `hp::structures::Map`: what its documentation says, one sentence a test.

#![cfg(feature = "structures")]

mod common;

use common::Drops;
use hp::structures::Map;
use hp::{Domain, Guard};
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A hasher for keys that bring their hash along.
#[derive(Clone, Copy, Debug, Default)]
struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0 << 8 | u64::from(byte);
        }
    }

    fn write_u32(&mut self, n: u32) {
        self.0 = u64::from(n);
    }
}

type AsIsHash = BuildHasherDefault<AsIs>;

/// Everything in one group.
#[derive(Clone, Copy, Debug, Default)]
struct Same;

impl BuildHasher for Same {
    type Hasher = AsIs;

    fn build_hasher(&self) -> AsIs {
        AsIs(0)
    }

    fn hash_one<T: Hash>(&self, _: T) -> u64 {
        7
    }
}

fn drain() {
    Domain::global().drain();
}

fn sorted<S>(map: &Map<u32, u32, S>) -> Vec<(u32, u32)> {
    let mut all: Vec<_> = map.iter().map(|entry| *entry).collect();
    all.sort_unstable();
    all
}

#[test]
fn what_is_inserted_is_found_until_it_is_removed() {
    let map = Map::new();
    assert!(map.is_empty());
    assert!(map.insert("a".to_string(), 1).is_none());
    assert!(map.insert("b".to_string(), 2).is_none());
    assert_eq!(map.insert("a".to_string(), 3).as_deref(), Some(&1));
    assert_eq!(map.len(), 2);
    assert_eq!(map.get("a").as_deref(), Some(&3));
    assert_eq!(map.get_key_value("b").as_deref(), Some(&("b".into(), 2)));
    assert_eq!(map.remove("a").as_deref(), Some(&3));
    assert!(map.remove("a").is_none());
    assert!(map.get("a").is_none() && !map.contains_key("a"));
    assert!(map.contains_key("b"));
    assert_eq!(map.remove_entry("b").as_deref(), Some(&("b".into(), 2)));
    assert_eq!(map.len(), 0);
}

#[test]
fn it_grows_and_keeps_everything() {
    const N: u32 = if cfg!(miri) { 66 } else { 20_000 };
    let map = Map::new();
    let small = map.capacity();
    for n in 0..N {
        map.insert(n, n + 1);
    }
    assert!(map.capacity() > small);
    assert!(map.capacity() * 2 > N as usize / 2, "{}", map.capacity());
    assert_eq!(map.len(), N as usize);
    assert!((0..N).all(|n| map.get(&n).as_deref() == Some(&(n + 1))));
    assert!(map.get(&N).is_none());
    assert!(sorted(&map).into_iter().eq((0..N).map(|n| (n, n + 1))));
    for n in (0..N).step_by(2) {
        assert!(map.remove(&n).is_some());
    }
    assert!((0..N).all(|n| map.contains_key(&n) == (n % 2 == 1)));
}

#[test]
fn plain_hashers_fill_all_buckets() {
    // Multiples of a large power of two, hashed to themselves.
    const N: u32 = if cfg!(miri) { 16 } else { 4096 };
    let map: Map<u32, u32, AsIsHash> = Map::default();
    let begun = std::time::Instant::now();
    for n in 0..N {
        map.insert(n << 20, n);
    }
    assert!((0..N).all(|n| map.get(&(n << 20)).as_deref() == Some(&n)));
    // All in one bucket it would take minutes.
    assert!(cfg!(miri) || begun.elapsed().as_secs() < 20);
}

#[test]
fn keys_of_one_hash_are_told_apart() {
    const N: u32 = if cfg!(miri) { 14 } else { 40 };
    let map: Map<u32, u32, Same> = Map::default();
    for n in 0..N {
        assert!(map.insert(n, n).is_none());
    }
    for n in (0..N).step_by(3) {
        assert_eq!(map.insert(n, n + 100).as_deref(), Some(&n));
    }
    for n in (0..N).step_by(4) {
        assert!(map.remove(&n).is_some());
    }
    assert!(map.insert(0, 1000).is_none());
    let expected: Vec<_> = (0..N)
        .filter(|n| n % 4 != 0 || *n == 0)
        .map(|n| match n {
            0 => (0, 1000),
            n if n % 3 == 0 => (n, n + 100),
            n => (n, n),
        })
        .collect();
    assert_eq!(sorted(&map), expected);
}

#[test]
fn get_or_insert_with_makes_once() {
    let map = Map::new();
    let made = AtomicUsize::new(0);
    let make = || made.fetch_add(1, Ordering::Relaxed);
    assert_eq!(*map.get_or_insert_with(1, make), 0);
    assert_eq!(*map.get_or_insert_with(1, make), 0);
    assert_eq!(*map.get_or_insert_with(2, make), 1);
    assert_eq!(made.load(Ordering::Relaxed), 2);
    assert_eq!(map.len(), 2);
    // What is removed at once stays for whoever has it.
    let kept = map.get_or_insert_with(3, make);
    map.remove(&3);
    assert_eq!(*kept, 2);
}

#[test]
fn guards_outlive_entries_and_the_map() {
    let drops = Drops::new();
    let map = Map::new();
    map.insert(1, drops.value(10));
    map.insert(2, drops.value(20));
    let removed = map.remove(&1).unwrap();
    let (got, entry) = (map.get(&2).unwrap(), map.get_key_value(&2).unwrap());
    let replaced = map.insert(2, drops.value(21)).unwrap();
    let fresh = map.get_or_insert_with(3, || drops.value(30));
    drop(map);
    drain();
    assert_eq!(drops.count(), 1, "only the one nobody holds");
    assert_eq!((removed.get(), got.get(), entry.1.get()), (10, 20, 20));
    assert_eq!((replaced.get(), fresh.get()), (20, 30));
    drop((removed, got, entry, replaced, fresh));
    drain();
    assert_eq!(drops.count(), 4);
}

#[test]
fn a_guard_may_go_to_another_thread() {
    let map = Map::new();
    map.insert(1, "one".to_string());
    let guard: Guard<String> = map.get(&1).unwrap();
    let length = std::thread::spawn(move || guard.len()).join().unwrap();
    assert_eq!(length, 3);
}

#[test]
fn every_value_is_dropped_once() {
    let drops = Drops::new();
    let map: Map<u32, _> = (0..50).map(|n| (n, drops.value(1))).collect();
    for n in 0..20 {
        map.insert(n, drops.value(2)); // 20 replaced
    }
    for n in 10..30 {
        map.remove(&n); // 20 removed
    }
    map.retain(|n, _| n % 2 == 0); // of 0..10 and 30..50: 15
    drain();
    assert_eq!(drops.count(), 55);
    assert_eq!(map.len(), 15);
    map.clear();
    assert!(map.is_empty() && map.iter().next().is_none());
    map.insert(0, drops.value(3));
    drop(map);
    drain();
    assert_eq!(drops.count(), 71);
}

#[test]
fn an_iterator_passes_over_what_leaves_before_it() {
    // One group and many: the cursor's own entry leaves, and is replaced.
    fn run<S: BuildHasher + Default>() {
        let map: Map<u32, u32, S> = (0..10).map(|n| (n, n)).collect();
        let mut iter = map.iter();
        let mut seen = vec![iter.next().unwrap().0];
        map.remove(&seen[0]);
        seen.push(iter.next().unwrap().0);
        map.insert(seen[1], 100);
        seen.push(iter.next().unwrap().0);
        let left: Vec<u32> = (0..10).filter(|n| !seen.contains(n)).collect();
        map.remove(&left[0]);
        map.remove(&seen[2]);
        map.remove(&seen[1]);
        seen.extend(iter.by_ref().map(|entry| entry.0));
        assert!(iter.next().is_none(), "fused");
        seen.sort_unstable();
        let expected: Vec<u32> = (0..10).filter(|n| *n != left[0]).collect();
        assert_eq!(seen, expected);
    }
    run::<std::hash::RandomState>();
    run::<AsIsHash>();
    run::<Same>();
}

#[test]
fn an_iterator_gives_once_what_stays_while_the_map_grows() {
    const N: u32 = if cfg!(miri) { 8 } else { 1000 };
    let map: Map<u32, u32> = (0..N).map(|n| (n, n)).collect();
    let mut seen = vec![];
    for (step, entry) in (0..).zip(&map) {
        if entry.0 < N {
            seen.push(entry.0);
        }
        if step < 4 * N {
            map.insert(N + step, 0);
            map.remove(&(N + step / 2));
        }
    }
    seen.sort_unstable();
    assert!(seen.into_iter().eq(0..N));
}

#[test]
fn values_that_are_not_shared_stay_on_their_thread_and_work() {
    let map = Map::new();
    map.insert(1, std::cell::Cell::new(1));
    map.get(&1).unwrap().set(2);
    assert_eq!(map.get(&1).unwrap().get(), 2);
}

#[test]
fn debug_default_and_extend() {
    let mut map: Map<u32, &str> = Map::default();
    map.extend([(1, "one")]);
    assert_eq!(format!("{map:?}"), r#"{1: "one"}"#);
    (&map).extend([(2, "two"), (1, "uno")]);
    assert_eq!(map.len(), 2);
    assert_eq!(map.get(&1).as_deref(), Some(&"uno"));
    assert!(Map::<u32, u32>::with_capacity(1000).capacity() >= 1000);
}

#[test]
#[should_panic = "capacity overflow"]
fn a_capacity_that_cannot_be_is_refused() {
    drop(Map::<u8, u8>::with_capacity(usize::MAX / 2));
}

/// A key whose comparison and hashing panic when told to.
#[derive(Debug)]
struct Fuse(u32);

static BLOWN: AtomicBool = AtomicBool::new(false);
static HASH_BLOWN: AtomicBool = AtomicBool::new(false);

impl PartialEq for Fuse {
    fn eq(&self, other: &Self) -> bool {
        assert!(!BLOWN.load(Ordering::Relaxed), "blown");
        self.0 == other.0
    }
}

impl Eq for Fuse {}

impl Hash for Fuse {
    fn hash<H: Hasher>(&self, _: &mut H) {
        assert!(!HASH_BLOWN.load(Ordering::Relaxed), "blown");
    }
}

#[test]
fn a_comparison_or_a_hash_that_panics_changes_nothing() {
    let drops = Drops::new();
    let map: Map<Fuse, _> = (0..3).map(|n| (Fuse(n), drops.value(1))).collect();
    let tries: [&dyn Fn(); 4] = [
        &|| drop(map.insert(Fuse(1), drops.value(2))),
        &|| drop(map.remove(&Fuse(1))),
        &|| drop(map.get(&Fuse(1))),
        &|| drop(map.get_or_insert_with(Fuse(9), || unreachable!())),
    ];
    for (fuse, lost) in [(&BLOWN, 1), (&HASH_BLOWN, 2)] {
        fuse.store(true, Ordering::Relaxed);
        for attempt in tries {
            assert!(catch_unwind(AssertUnwindSafe(attempt)).is_err());
        }
        fuse.store(false, Ordering::Relaxed);
        assert_eq!(drops.count(), lost, "the values that were not inserted");
    }
    assert_eq!(map.len(), 3);
    assert!((0..3).all(|n| map.contains_key(&Fuse(n))));
    let made = catch_unwind(AssertUnwindSafe(|| {
        map.get_or_insert_with(Fuse(9), || panic!("made"))
    }));
    assert!(made.is_err() && map.len() == 3);
    drop(map);
    drain();
    assert_eq!(drops.count(), 5);
}

/// A value whose drop uses the map that it was in.
struct Reenters {
    map: std::sync::Weak<Map<u32, Reenters>>,
    key: u32,
}

impl Drop for Reenters {
    fn drop(&mut self) {
        if let Some(map) = self.map.upgrade() {
            let value = |key| Reenters {
                map: std::sync::Weak::new(),
                key,
            };
            drop(map.insert(self.key + 100, value(self.key)));
            assert!(
                map.get(&(self.key + 100))
                    .is_some_and(|v| v.key == self.key)
            );
        }
    }
}

#[test]
fn a_destructor_may_use_the_map() {
    let map = std::sync::Arc::new(Map::new());
    for key in 0..5 {
        let value = Reenters {
            map: std::sync::Arc::downgrade(&map),
            key,
        };
        map.insert(key, value);
    }
    map.clear();
    drain();
    assert_eq!(map.len(), 5);
    assert!((100..105).all(|key| map.contains_key(&key)));
}

static SEEN: Map<u32, u32, AsIsHash> = Map::with_hasher(AsIsHash::new());

/// A key whose comparison uses another map.
struct Nosy(u32);

impl PartialEq for Nosy {
    fn eq(&self, other: &Self) -> bool {
        SEEN.insert(self.0, other.0);
        self.0 == other.0
    }
}

impl Eq for Nosy {}

impl Hash for Nosy {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

#[test]
fn a_comparison_may_use_a_map() {
    let map = Map::new();
    for n in 0..5 {
        map.insert(Nosy(n), n);
    }
    assert!(map.get(&Nosy(3)).is_some());
    assert!(!SEEN.is_empty());
}
