//! What one operation on each structure costs under each scheme, on one thread, nobody else running.
//!
//! `cargo bench -p structures`, `cargo bench -p structures -- hash`. The rung is this machine's best; with
//! `HP_BARRIER=membarrier` or `fence`, the schemes over `percpu` run on that one. Threads, mixes and what waits are
//! `hpbench structures`'s.
//!
//! An update is a pair (push and pop, insert and remove of one key), so that the structure is as large after it as before.

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use structures::{
    Cell, Census, HashMap, List, Map, Queue, Scheme, SkipList, Stack, Visit, VisitCell, dispatch,
    dispatch_cell, schemes,
};

/// Elements of the maps, at every second key.
const ELEMENTS: u64 = 1 << 14;

/// Elements of the list.
const FEW: u64 = 256;

type Group<'a> = BenchmarkGroup<'a, WallTime>;

/// The schemes that this process can be.
fn names() -> impl Iterator<Item = &'static str> {
    let rung = std::env::var("HP_BARRIER").ok();
    schemes::listed()
        .filter(move |about| about.rung.is_none() || about.rung == rung.as_deref())
        .map(|about| about.name)
}

/// Keys that no prefetcher foresees.
struct Keys(u64);

impl Keys {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 32) * bound) >> 32
    }
}

struct OnCell<'a, 'b>(&'a mut Group<'b>, bool);

impl VisitCell for OnCell<'_, '_> {
    type Out = ();

    fn visit<C: Cell>(self) {
        let OnCell(group, updates) = self;
        let cell = C::new(7, Census::leak());
        let mut thread = cell.thread();
        group.bench_function(BenchmarkId::from_parameter(C::ABOUT.name), |b| {
            if updates {
                b.iter(|| cell.swap(&mut thread, black_box(8)));
            } else {
                b.iter(|| cell.get(&mut thread));
            }
        });
    }
}

fn cell(c: &mut Criterion) {
    for (what, updates) in [("get", false), ("swap", true)] {
        let mut group = c.benchmark_group(format!("cell/{what}"));
        for name in names() {
            dispatch_cell(name, OnCell(&mut group, updates)).expect("all have cells");
        }
    }
}

struct OnStack<'a, 'b>(&'a mut Group<'b>);

impl Visit for OnStack<'_, '_> {
    type Out = ();

    fn visit<S: Scheme>(self) {
        let stack = Stack::<S>::new(Census::leak());
        let mut thread = stack.thread();
        self.0
            .bench_function(BenchmarkId::from_parameter(S::ABOUT.name), |b| {
                b.iter(|| {
                    stack.push(&mut thread, black_box(7));
                    stack.pop(&mut thread)
                });
            });
    }
}

fn stack(c: &mut Criterion) {
    let mut group = c.benchmark_group("stack/push and pop");
    for name in names() {
        dispatch(name, OnStack(&mut group));
    }
}

struct OnQueue<'a, 'b>(&'a mut Group<'b>);

impl Visit for OnQueue<'_, '_> {
    type Out = ();

    fn visit<S: Scheme>(self) {
        let queue = Queue::<S>::new(Census::leak());
        let mut thread = queue.thread();
        self.0
            .bench_function(BenchmarkId::from_parameter(S::ABOUT.name), |b| {
                b.iter(|| {
                    queue.enqueue(&mut thread, black_box(7));
                    queue.dequeue(&mut thread)
                });
            });
    }
}

fn queue(c: &mut Criterion) {
    let mut group = c.benchmark_group("queue/enqueue and dequeue");
    for name in names() {
        dispatch(name, OnQueue(&mut group));
    }
}

/// What is done to a map.
#[derive(Clone, Copy)]
enum Doing {
    Get,
    Update,
    Walk,
}

fn on_map<M: Map>(group: &mut Group<'_>, elements: u64, doing: Doing) {
    let map = M::new(elements as usize, Census::leak());
    let mut thread = map.thread();
    // From the highest down: a list is not walked for each.
    for key in (0..elements).rev() {
        assert!(map.insert(&mut thread, 2 * key, key));
    }
    let mut keys = Keys(0x9e37_79b9_7f4a_7c15);
    let name = <M::Scheme as Scheme>::ABOUT.name;
    group.bench_function(BenchmarkId::from_parameter(name), |b| match doing {
        Doing::Get => b.iter(|| map.get(&mut thread, 2 * keys.below(elements))),
        Doing::Update => b.iter(|| {
            let key = 2 * keys.below(elements) + 1;
            map.insert(&mut thread, key, key);
            map.remove(&mut thread, key)
        }),
        Doing::Walk => b.iter(|| {
            map.scan(&mut thread, |key, _| {
                black_box(key);
            })
        }),
    });
}

macro_rules! map_benches {
    ($bench:ident, $map:ident, $name:literal, $elements:expr) => {
        fn $bench(c: &mut Criterion) {
            struct On<'a, 'b>(&'a mut Group<'b>, Doing);

            impl Visit for On<'_, '_> {
                type Out = ();

                fn visit<S: Scheme>(self) {
                    on_map::<$map<S>>(self.0, $elements, self.1);
                }
            }

            for (what, doing) in [
                ("get", Doing::Get),
                ("insert and remove", Doing::Update),
                ("walk", Doing::Walk),
            ] {
                let mut group = c.benchmark_group(format!(concat!($name, "/{}"), what));
                for name in names() {
                    dispatch(name, On(&mut group, doing));
                }
            }
        }
    };
}

map_benches!(list, List, "list", FEW);
map_benches!(hash, HashMap, "hash", ELEMENTS);
map_benches!(skip, SkipList, "skip", ELEMENTS);

fn quick() -> Criterion {
    Criterion::default()
        .warm_up_time(std::time::Duration::from_millis(200))
        .measurement_time(std::time::Duration::from_millis(500))
        .sample_size(30)
}

criterion_group! {
    name = benches;
    config = quick();
    targets = cell, stack, queue, list, hash, skip
}
criterion_main!(benches);
