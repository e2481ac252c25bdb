//! What the hidden comparison costs against `==`.
//!
//! `cargo bench -p hp --bench ptr_eq`. Both do what the re-check of a hazard
//! pointer does: load, load again, compare, go on with the second. With `==`
//! the compiler is free to go on with the first, which is the error that
//! `ptr_eq` prevents; the question here is what preventing it costs.

use criterion::{Criterion, criterion_group, criterion_main};
use hp::ptr_eq;
use std::hint::black_box;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Loads twice and reads through the second pointer if `same` says so.
#[inline(always)]
fn recheck(source: &AtomicPtr<u64>, same: impl Fn(*const u64, *const u64) -> bool) -> u64 {
    loop {
        let first = source.load(Ordering::Acquire);
        let second = source.load(Ordering::Acquire);
        if same(first, second) {
            // SAFETY: the benches' values outlive them.
            return unsafe { *second };
        }
    }
}

fn compare(c: &mut Criterion) {
    let mut group = c.benchmark_group("compare two pointers");
    let (a, b) = (Box::new(1_u64), Box::new(2_u64));
    let (a, b): (*const u64, *const u64) = (&raw const *a, &raw const *b);
    group.bench_function("==", |bench| bench.iter(|| black_box(a) == black_box(b)));
    group.bench_function("ptr_eq", |bench| {
        bench.iter(|| ptr_eq(black_box(a), black_box(b)));
    });
    group.finish();
}

fn load_twice(c: &mut Criterion) {
    let mut group = c.benchmark_group("load, load again, compare, read");
    let mut value = 7_u64;
    let source = AtomicPtr::new(&raw mut value);
    group.bench_function("==", |b| {
        b.iter(|| recheck(black_box(&source), |first, second| first == second));
    });
    group.bench_function("ptr_eq", |b| {
        b.iter(|| recheck(black_box(&source), ptr_eq));
    });
    group.finish();
}

criterion_group!(benches, compare, load_twice);
criterion_main!(benches);
