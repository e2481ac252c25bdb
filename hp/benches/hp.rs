//! What one operation costs on one thread, nobody else running.
//!
//! `cargo bench -p hp --bench hp`. The rung is this machine's best; force a
//! lower one with `HP_BARRIER=membarrier` or `fence`. Sweeps over threads, and
//! the comparison with other libraries, are `hpbench`'s.

use criterion::{Criterion, criterion_group, criterion_main};
use hp::{Atomic, Guard, HazardPointer};
use std::array;
use std::hint::black_box;
use std::sync::atomic::AtomicPtr;

fn protect(c: &mut Criterion) {
    let mut group = c.benchmark_group(format!("protect ({})", hp::init()));

    let cell: Atomic<u64> = Atomic::new(7);
    group.bench_function("load and drop", |b| {
        b.iter(|| black_box(&cell).load().map(|guard| *guard));
    });

    let empty: Atomic<u64> = Atomic::null();
    group.bench_function("load of an empty cell", |b| {
        b.iter(|| black_box(&empty).load().map(|guard| *guard));
    });

    let mut value = 7_u64;
    let source = AtomicPtr::new(&raw mut value);
    let mut hazard = HazardPointer::new();
    group.bench_function("held slot, protect again", |b| {
        // SAFETY: the value outlives the bench.
        b.iter(|| unsafe { *hazard.protect(black_box(&source)) });
    });
    group.bench_function("held slot, protect and reset", |b| {
        b.iter(|| {
            // SAFETY: as above.
            let value = unsafe { *hazard.protect(black_box(&source)) };
            hazard.reset();
            value
        });
    });
    group.bench_function("take a slot, protect, give it back", |b| {
        // SAFETY: as above.
        b.iter(|| unsafe { *HazardPointer::new().protect(black_box(&source)) });
    });
    group.finish();
}

fn nested<const N: usize>(
    group: &mut criterion::BenchmarkGroup<'_, impl criterion::measurement::Measurement>,
) {
    let cells: [Atomic<u64>; N] = array::from_fn(|i| Atomic::new(i as u64));
    group.throughput(criterion::Throughput::Elements(N as u64));
    group.bench_function(N.to_string(), |b| {
        b.iter(|| {
            let guards: [Option<Guard<u64>>; N] = array::from_fn(|i| black_box(&cells[i]).load());
            guards.iter().flatten().map(|guard| **guard).sum::<u64>()
        });
    });
}

/// All N guards are alive at once: the second to the eighth search the CPU's
/// line, the ninth finds it full and goes to an overflow slot.
fn guards_at_once(c: &mut Criterion) {
    let mut group = c.benchmark_group("guards at once");
    nested::<1>(&mut group);
    nested::<2>(&mut group);
    nested::<4>(&mut group);
    nested::<9>(&mut group);
    group.finish();
}

/// Allocation, exchange, retiring and the share of a pass, freeing included.
fn retire(c: &mut Criterion) {
    let mut group = c.benchmark_group("retire");
    let cell: Atomic<u64> = Atomic::new(0);
    group.bench_function("store", |b| b.iter(|| black_box(&cell).store(black_box(1))));
    group.bench_function("box alone (for comparison)", |b| {
        b.iter(|| drop(black_box(Box::new(black_box(1_u64)))));
    });
    group.finish();
}

fn move_and_share(c: &mut Criterion) {
    let mut group = c.benchmark_group("guard");
    let cell: Atomic<u64> = Atomic::new(7);
    group.bench_function("load, detach, drop", |b| {
        b.iter(|| {
            let mut guard = black_box(&cell).load();
            if let Some(guard) = &mut guard {
                guard.detach();
            }
            guard.map(|guard| *guard)
        });
    });

    let guard = cell.load().expect("a value");
    group.bench_function("clone and drop, of a guard in the CPU's line", |b| {
        b.iter(|| drop(black_box(guard.clone())));
    });
    let mut detached = cell.load().expect("a value");
    detached.detach();
    group.bench_function("clone and drop, of a detached guard", |b| {
        b.iter(|| drop(black_box(detached.clone())));
    });
    group.finish();
}

criterion_group!(benches, protect, guards_at_once, retire, move_and_share);
criterion_main!(benches);
