//! Floor 3, bench-suite. Owns the work of one request of `schbench`: products of matrices under a lock of this CPU.
//! May ask on which CPU it runs.
//!
//! As in the original each element of a product is stored at every step of its sum (a C compiler cannot know that the
//! three matrices do not overlap), and the lock is only ever tried: who finds it taken spins, and who was moved to
//! another CPU meanwhile gives it back and begins again. The lock penalises preemption: a thread that was preempted in
//! its work leaves the lock of its CPU taken.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A lock for each CPU, each on lines of its own.
#[derive(Debug)]
pub(super) struct Locks(Vec<Lock>);

#[derive(Debug, Default)]
#[repr(align(128))]
struct Lock(AtomicBool);

/// Given back when dropped.
#[derive(Debug)]
struct Held<'a>(&'a Lock);

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `take`.
        self.0.0.store(false, Ordering::Release);
    }
}

fn here() -> usize {
    // SAFETY: takes nothing; -1 (no such call) becomes CPU 0, which is the same for all.
    usize::try_from(unsafe { libc::sched_getcpu() }).unwrap_or(0)
}

impl Locks {
    pub(super) fn new() -> Self {
        // SAFETY: takes a number.
        let cpus = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_CONF) };
        let cpus = usize::try_from(cpus).unwrap_or(1).max(1);
        Locks((0..cpus).map(|_| Lock::default()).collect())
    }

    /// The lock of the CPU that this thread runs on, now and when it was taken.
    fn take(&self) -> Held<'_> {
        loop {
            let cpu = here();
            let lock = &self.0[cpu % self.0.len()];
            // Acquire: pairs with the Release in `drop`.
            while lock.0.swap(true, Ordering::Acquire) {
                std::hint::spin_loop();
            }
            let held = Held(lock);
            if here() == cpu {
                return held;
            }
        }
    }
}

/// Two factors of `size` x `size`, zeros.
#[derive(Debug)]
pub(super) struct Factors(Vec<u64>);

impl Factors {
    pub(super) fn new(size: usize) -> Self {
        Factors(vec![0; 2 * size * size])
    }
}

/// What a worker computes on.
#[derive(Debug)]
pub(super) struct Desk {
    size: usize,
    own: Factors,
    common: Option<Arc<Factors>>,
    product: Vec<u64>,
    /// Of a hundred products, how many are of the worker's own factors.
    share: u64,
    /// What is left over of the shares.
    due: u64,
}

/// Edge of square matrices of which three fit into `kib`.
pub(super) fn edge(kib: u64) -> usize {
    ((kib * 1024 / 3 / 8) as f64).sqrt() as usize
}

impl Desk {
    /// With `common`, `share` % of the products are of factors of its own, the others of the common ones.
    pub(super) fn new(size: usize, common: Option<Arc<Factors>>, share: u64) -> Self {
        Desk {
            size,
            own: Factors::new(size),
            common,
            product: vec![0; size * size],
            share,
            due: 0,
        }
    }

    /// `count` products, under a lock if there are any.
    pub(super) fn work(&mut self, count: u64, locks: Option<&Locks>) {
        let _held = locks.map(Locks::take);
        for _ in 0..count {
            self.due += self.share;
            let own = self.due >= 100;
            self.due -= if own { 100 } else { 0 };
            match &self.common {
                Some(common) if !own => multiply(&common.0, &mut self.product, self.size),
                _ => multiply(&self.own.0, &mut self.product, self.size),
            }
        }
    }
}

fn multiply(factors: &[u64], product: &mut [u64], size: usize) {
    let (a, b) = factors.split_at(size * size);
    for i in 0..size {
        for j in 0..size {
            let mut sum = 0u64;
            let place = &raw mut product[i * size + j];
            for k in 0..size {
                sum = sum.wrapping_add(a[i * size + k].wrapping_mul(b[k * size + j]));
                // SAFETY: an element of the slice, which is borrowed here alone.
                unsafe { place.write_volatile(sum) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn products_are_products() {
        let mut product = [9; 4];
        multiply(&[1, 2, 3, 4, 5, 6, 7, 8], &mut product, 2);
        assert_eq!(product, [19, 22, 43, 50]);
        assert_eq!(edge(256), 104);
        assert_eq!(edge(0), 0);
        multiply(&[], &mut [], 0);
    }

    #[test]
    fn shares_are_kept() {
        // The common factors give another product than the zeros of the worker's own.
        let common = Arc::new(Factors(vec![1, 1]));
        let mut desk = Desk::new(1, Some(common), 30);
        let mut own = 0;
        for _ in 0..100 {
            desk.work(1, None);
            own += u64::from(desk.product[0] == 0);
        }
        assert_eq!(own, 30);
        let mut alone = Desk::new(1, None, 0);
        alone.work(3, Some(&Locks::new()));
        assert_eq!(alone.product, [0]);
    }

    /// Plain additions under the locks of one CPU are exact.
    #[test]
    fn a_lock_excludes() {
        let locks = Locks(vec![Lock::default()]);
        let count = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..2000 {
                        let _held = locks.take();
                        count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(count.into_inner(), 6000);
    }
}
