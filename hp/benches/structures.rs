//! What one operation on a structure costs on one thread, nobody else running.
//!
//! `cargo bench -p hp --features structures --bench structures`. The standard
//! library's, behind a lock that nobody else wants, stand beside for scale.
//! Threads, and other libraries, are `hpbench`'s.

use criterion::{Criterion, criterion_group, criterion_main};
use hp::structures::{Map, Stack};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::hint::black_box;
use std::sync::{Mutex, RwLock};

/// No secret, so that two runs hash alike.
type Hash = BuildHasherDefault<DefaultHasher>;

const N: u64 = 1000;

fn map(c: &mut Criterion) {
    let mut group = c.benchmark_group(format!("map of {N} ({})", hp::init()));
    let map: Map<u64, u64, Hash> = (0..N).map(|n| (n, n)).collect();
    let locked: RwLock<HashMap<u64, u64, Hash>> = RwLock::new((0..N).map(|n| (n, n)).collect());

    // The keys in turn, so that neither branches nor lines are learnt by heart.
    let mut key = 0;
    let mut next = || {
        key = (key + 379) % N;
        key
    };
    group.bench_function("get", |b| b.iter(|| map.get(&next()).map(|v| *v)));
    group.bench_function("get of an absent key", |b| {
        b.iter(|| map.get(&(N + next())).map(|v| *v));
    });
    group.bench_function("contains_key", |b| b.iter(|| map.contains_key(&next())));
    group.bench_function("RwLock<HashMap>: get", |b| {
        b.iter(|| locked.read().unwrap().get(&next()).copied());
    });
    group.bench_function("replace", |b| {
        b.iter(|| map.insert(next(), 1).map(|v| *v));
    });
    group.bench_function("insert and remove", |b| {
        b.iter(|| {
            let key = N + next();
            map.insert(key, 1);
            map.remove(&key).map(|v| *v)
        });
    });
    group.bench_function("RwLock<HashMap>: insert and remove", |b| {
        b.iter(|| {
            let key = N + next();
            locked.write().unwrap().insert(key, 1);
            locked.write().unwrap().remove(&key)
        });
    });
    group.throughput(criterion::Throughput::Elements(N));
    group.bench_function("iterate", |b| {
        b.iter(|| map.iter().map(|entry| entry.1).sum::<u64>());
    });
    group.finish();
}

/// The way through one bucket: `n` entries of one hash, the last one wanted.
fn long_way(c: &mut Criterion) {
    #[derive(Default)]
    struct Same;
    impl std::hash::BuildHasher for Same {
        type Hasher = DefaultHasher;
        fn build_hasher(&self) -> DefaultHasher {
            DefaultHasher::new()
        }
        fn hash_one<T: std::hash::Hash>(&self, _: T) -> u64 {
            7
        }
    }
    let mut group = c.benchmark_group("get, nth of its group");
    for n in [1_u64, 2, 3, 4, 8, 16] {
        let map: Map<u64, u64, Same> = (1..=n).map(|n| (n, n)).collect();
        group.bench_function(n.to_string(), |b| {
            b.iter(|| map.get(&black_box(n)).map(|v| *v));
        });
    }
    group.finish();
}

fn stack(c: &mut Criterion) {
    let mut group = c.benchmark_group("stack");
    let stack = Stack::new();
    group.bench_function("push and pop", |b| {
        b.iter(|| {
            stack.push(black_box(1_u64));
            stack.pop()
        });
    });
    stack.push(1);
    group.bench_function("peek", |b| b.iter(|| black_box(&stack).peek()));
    let locked = Mutex::new(vec![]);
    group.bench_function("Mutex<Vec>: push and pop", |b| {
        b.iter(|| {
            locked.lock().unwrap().push(black_box(Box::new(1_u64)));
            locked.lock().unwrap().pop()
        });
    });
    group.finish();
}

criterion_group!(benches, map, long_way, stack);
criterion_main!(benches);
