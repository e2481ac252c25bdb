//! `RcuCell` and `RcuList`, under every flavour.

mod common;

use common::{Case, Counted, Drops, eventually, flavours, message, rounds};
use proptest::prelude::*;
use rcu_lite::list::Iter;
use rcu_lite::{Callbacks, Rcu, RcuCell, RcuList};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

flavours!(
    compare_and_replace_succeeds_and_fails,
    compare_and_replace_of_nothing,
    compare_and_replace_under_contention,
    updates_are_not_lost,
    an_update_that_panics,
    a_cell_gives_its_value_back,
    list_operations,
    a_walker_goes_on_from_a_removed_element,
    a_predicate_that_panics,
    walkers_and_writers,
    values_that_retire_others,
);

fn compare_and_replace_succeeds_and_fails<F: Case>() {
    let rcu = F::alone();
    let drops = Drops::new();
    let cell = RcuCell::new_in(drops.value(1), rcu.clone());
    let guard = rcu.read();
    let first = cell.load(&guard);
    cell.compare_and_replace(&guard, first, drops.value(2))
        .expect("nobody else");
    let second = cell.load(&guard);
    assert_eq!((first.get(), second.get()), (1, 2), "both are alive");
    // Bug log 26: the error has the new box, and what is there is untouched.
    let new = Box::new(drops.value(3));
    let address: *const Counted = &raw const *new;
    let error = cell
        .compare_and_replace(&guard, first, new)
        .expect_err("it was replaced");
    assert!(std::ptr::eq(error.current, second));
    assert!(std::ptr::eq(&raw const *error.new, address));
    assert_eq!(error.new.get(), 3);
    assert!(format!("{error} {error:?}").contains("another thread"));
    assert_eq!(drops.count(), 0);
    drop(error);
    assert_eq!(drops.count(), 1, "the new one");
    assert_eq!((first.get(), cell.load(&guard).get()), (1, 2));
    drop(guard);
    rcu.barrier();
    assert_eq!(drops.count(), 2, "the first one");
}

/// All values of a type without a size are the same one.
fn compare_and_replace_of_nothing<F: Case>() {
    static DROPPED: AtomicUsize = AtomicUsize::new(0);
    struct Nothing;
    impl Drop for Nothing {
        fn drop(&mut self) {
            DROPPED.fetch_add(1, Ordering::SeqCst);
        }
    }
    let rcu = F::alone();
    // Other flavours run this at the same time: at least so many.
    let before = DROPPED.load(Ordering::SeqCst);
    let cell = RcuCell::new_in(Nothing, rcu.clone());
    for _ in 0..3 {
        let guard = rcu.read();
        let current = cell.load(&guard);
        assert!(
            cell.compare_and_replace(&guard, current, Nothing).is_ok(),
            "the very same"
        );
        assert!(
            cell.compare_and_replace(&guard, current, Nothing).is_ok(),
            "cannot be told from the one before"
        );
    }
    rcu.barrier();
    drop(cell);
    assert!(DROPPED.load(Ordering::SeqCst) - before >= 7);
    assert_eq!(rcu.since().run, 6);
}

/// One of those who compare with the same value wins.
fn compare_and_replace_under_contention<F: Case>() {
    let rcu = F::alone();
    let drops = Drops::new();
    let cell = RcuCell::new_in(drops.value(0), rcu.clone());
    let won = AtomicUsize::new(0);
    let each = rounds(500, 8);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..each {
                    let guard = rcu.read();
                    let current = cell.load(&guard);
                    let next = drops.value(current.get() + 1);
                    match cell.compare_and_replace(&guard, current, next) {
                        Ok(()) => _ = won.fetch_add(1, Ordering::SeqCst),
                        Err(error) => {
                            assert_eq!(error.new.get(), current.get() + 1);
                            assert!(error.current.get() > current.get());
                        }
                    }
                }
            });
        }
    });
    let won = won.into_inner();
    assert_eq!(cell.load(&rcu.read()).get(), won, "each winner added one");
    assert!(won >= each);
    rcu.barrier();
    drop(cell);
    assert_eq!(drops.count(), 4 * each + 1);
}

fn updates_are_not_lost<F: Case>() {
    let rcu = F::alone();
    let drops = Drops::new();
    let cell = RcuCell::new_in((drops.value(0), 0usize), rcu.clone());
    let (each, tries) = (rounds(1000, 8), AtomicUsize::new(0));
    thread::scope(|scope| {
        for me in 0..4 {
            let (cell, drops, tries) = (&cell, &drops, &tries);
            scope.spawn(move || {
                for _ in 0..each {
                    cell.update(|(count, sum)| {
                        tries.fetch_add(1, Ordering::Relaxed);
                        (drops.value(count.get() + 1), sum + me)
                    });
                }
            });
        }
    });
    let guard = rcu.read();
    let (count, sum) = cell.load(&guard);
    assert_eq!((count.get(), *sum), (4 * each, (1 + 2 + 3) * each));
    drop(guard);
    rcu.barrier();
    // Those that lost were dropped at once, those replaced by now.
    assert_eq!(drops.count(), tries.load(Ordering::Relaxed));
    drop(cell);
    assert_eq!(drops.count(), tries.load(Ordering::Relaxed) + 1);
}

/// The closure's panic leaves the value as it was, and no section behind.
fn an_update_that_panics<F: Case>() {
    let rcu = F::alone();
    let drops = Drops::new();
    let cell = RcuCell::new_in(drops.value(5), rcu.clone());
    let said = message(|| cell.update(|old| panic!("saw {}", old.get())));
    assert_eq!(said, "saw 5");
    rcu.synchronize();
    assert_eq!((cell.load(&rcu.read()).get(), drops.count()), (5, 0));
}

fn a_cell_gives_its_value_back<F: Case>() {
    let rcu = F::alone();
    let drops = Drops::new();
    let mut cell = RcuCell::new_in(drops.value(1), rcu.clone());
    *cell.get_mut() = drops.value(2);
    assert_eq!(drops.count(), 1, "at once");
    cell.replace_box(Box::new(drops.value(3)));
    let value = cell.into_inner();
    assert_eq!(value.get(), 3);
    rcu.barrier();
    assert_eq!(drops.count(), 2);
    drop(value);
    assert_eq!(drops.count(), 3);
    let cell = RcuCell::new_in(vec![1, 2], rcu.clone());
    assert_eq!(format!("{cell:?}"), "RcuCell([1, 2])");
    assert_eq!(RcuCell::<u8>::default().into_inner(), 0);
    assert_eq!(*RcuCell::from(9).get_mut(), 9);
}

fn list_operations<F: Case>() {
    let rcu = F::alone();
    let drops = Drops::new();
    let list = RcuList::new_in(rcu.clone());
    let all = |list: &RcuList<Counted, F>| -> Vec<usize> {
        list.iter(&rcu.read()).map(Counted::get).collect()
    };
    assert!(list.is_empty() && all(&list).is_empty());
    assert!(!list.remove_first(|_| true));
    assert_eq!((list.remove_if(|_| true), list.clear()), (0, 0));
    list.push_back(drops.value(3));
    list.push_front(drops.value(1));
    list.push_back(drops.value(5));
    list.insert_before(drops.value(2), |v| v.get() > 2);
    list.insert_before(drops.value(9), |v| v.get() > 8);
    assert_eq!(all(&list), [1, 2, 3, 5, 9]);
    assert!(list.replace_first(|v| (v.get() == 3).then(|| drops.value(4))));
    assert!(!list.replace_first(|v| (v.get() == 3).then(|| drops.value(4))));
    assert_eq!((all(&list), list.len()), (vec![1, 2, 4, 5, 9], 5));
    assert!(list.remove_first(|v| v.get() == 1));
    assert_eq!(list.remove_if(|v| v.get() % 2 == 1), 2);
    assert_eq!((all(&list), list.len()), (vec![2, 4], 2));
    rcu.barrier();
    assert_eq!(drops.count(), 4);
    assert_eq!((list.clear(), list.len(), all(&list).len()), (2, 0, 0));
    rcu.barrier();
    assert_eq!(drops.count(), 6);
    list.push_back(drops.value(7));
    drop(list);
    assert_eq!(drops.count(), 7, "at once: it has no readers");
}

fn a_walker_goes_on_from_a_removed_element<F: Case>() {
    let rcu = F::alone();
    let drops = Drops::new();
    let list = RcuList::new_in(rcu.clone());
    (0..6).for_each(|n| list.push_back(drops.value(n)));
    let guard = rcu.read();
    let mut walk = list.iter(&guard);
    let first = walk.next().expect("0");
    let mut fork = walk.clone();
    // The walk stands before 1, which goes, and so do its neighbours.
    list.remove_if(|v| v.get() <= 2);
    list.push_front(drops.value(99));
    list.push_back(drops.value(6));
    let rest: Vec<_> = walk.map(Counted::get).collect();
    assert_eq!((first.get(), rest), (0, vec![1, 2, 3, 4, 5, 6]));
    list.clear();
    let rest: Vec<_> = fork.by_ref().map(Counted::get).collect();
    assert_eq!(rest, [1, 2, 3, 4, 5, 6], "as it was");
    assert!(fork.next().is_none());
    assert_eq!(drops.count(), 0);
    drop(guard);
    rcu.barrier();
    assert_eq!(drops.count(), 8);
}

/// What it had chosen is out, the rest is in, and the list works.
fn a_predicate_that_panics<F: Case>() {
    let rcu = F::alone();
    let drops = Drops::new();
    let list = RcuList::new_in(rcu.clone());
    (0..6).for_each(|n| list.push_back(drops.value(n)));
    let said = message(|| {
        list.remove_if(|v| {
            assert!(v.get() < 3, "three");
            v.get() % 2 == 0
        });
    });
    assert_eq!(said, "three");
    let said = message(|| _ = list.replace_first(|_| panic!("replacing")));
    assert_eq!(said, "replacing");
    list.push_back(drops.value(6));
    let left: Vec<_> = list.iter(&rcu.read()).map(Counted::get).collect();
    assert_eq!((left, list.len()), (vec![1, 3, 4, 5, 6], 5));
    rcu.barrier();
    assert_eq!(drops.count(), 2);
}

/// Walkers see every element that stays, in order, and nothing dead.
fn walkers_and_writers<F: Case>() {
    const STEADY: usize = 8;
    let rcu = F::alone();
    let drops = Drops::new();
    let list = RcuList::new_in(rcu.clone());
    // Multiples of ten stay, the others come and go between them.
    (0..STEADY).for_each(|n| list.push_back(drops.value(n * 10)));
    let stop = AtomicBool::new(false);
    let (walks, each) = (AtomicUsize::new(0), rounds(600, 6));
    thread::scope(|scope| {
        let (list, drops, rcu) = (&list, &drops, &rcu);
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) || walks.load(Ordering::Relaxed) < 4 {
                    let guard = rcu.read();
                    let mut steady = 0;
                    let mut last = None;
                    for (n, value) in list.iter(&guard).enumerate() {
                        let value = value.get();
                        assert!(last <= Some(value), "{last:?} before {value}");
                        last = Some(value);
                        steady += usize::from(value % 10 == 0);
                        if n % 7 == 0 {
                            thread::yield_now();
                        }
                    }
                    assert_eq!(steady, STEADY);
                    walks.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let writers: Vec<_> = (1..=2)
            .map(|me| {
                scope.spawn(move || {
                    for n in 0..each {
                        let value = n % STEADY * 10 + me;
                        list.insert_before(drops.value(value), |v| v.get() > value);
                        match n % 3 {
                            0 => assert!(list.remove_first(|v| v.get() == value)),
                            1 => assert!(list.replace_first(|v| {
                                (v.get() == value).then(|| drops.value(value))
                            })),
                            _ => {}
                        }
                        if n % 50 == 0 {
                            list.remove_if(|v| v.get() % 10 == me);
                        }
                        if n % 100 == 99 {
                            rcu.synchronize();
                        }
                    }
                    list.remove_if(|v| v.get() % 10 == me);
                })
            })
            .collect();
        for writer in writers {
            writer.join().expect("writer");
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(list.len(), STEADY);
    rcu.barrier();
    let replaced = 2 * each.div_ceil(3) - 2 * usize::from(each % 3 == 1);
    assert_eq!(drops.count(), 2 * each + replaced);
}

/// A dropped value that itself replaces and defers.
fn values_that_retire_others<F: Case>() {
    struct Chain<F: Case> {
        left: usize,
        flavor: F,
        drops: Drops,
    }
    impl<F: Case> Drop for Chain<F> {
        fn drop(&mut self) {
            self.drops.one();
            if self.left > 0 {
                self.flavor.defer_drop(Box::new(Chain {
                    left: self.left - 1,
                    flavor: self.flavor.clone(),
                    drops: self.drops.clone(),
                }));
            }
        }
    }
    let rcu = F::alone();
    let drops = Drops::new();
    let cell = RcuCell::new_in(None, rcu.clone());
    for _ in 0..10 {
        cell.replace(Some(Chain {
            left: 5,
            flavor: rcu.clone(),
            drops: drops.clone(),
        }));
    }
    cell.replace(None);
    eventually("the chains end", || {
        rcu.barrier();
        drops.count() == 60
    });
    rcu.barrier();
    assert_eq!((drops.count(), rcu.since().pending), (60, 0));
}

#[derive(Clone, Debug)]
enum Op {
    PushFront,
    PushBack,
    /// In front of the n-th.
    Insert(usize),
    RemoveNth(usize),
    ReplaceNth(usize),
    RemoveEvery(usize),
    Clear,
    /// A walker, from the start.
    Walk,
    /// One step of the n-th walker.
    Step(usize),
    /// The n-th walker to its end.
    Finish(usize),
    Drain,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        3 => Just(Op::PushFront),
        4 => Just(Op::PushBack),
        3 => (0..12usize).prop_map(Op::Insert),
        4 => (0..12usize).prop_map(Op::RemoveNth),
        3 => (0..12usize).prop_map(Op::ReplaceNth),
        1 => (2..5usize).prop_map(Op::RemoveEvery),
        1 => Just(Op::Clear),
        3 => Just(Op::Walk),
        8 => (0..6usize).prop_map(Op::Step),
        2 => (0..6usize).prop_map(Op::Finish),
        1 => Just(Op::Drain),
    ]
}

/// A walk under way: what it has seen, and what was in the list when it began
/// and has been in it ever since.
struct Walker<'g> {
    at: Iter<'g, Counted>,
    seen: Vec<usize>,
    steady: Vec<usize>,
}

impl Walker<'_> {
    /// One step; `false` at the end, where everything is checked.
    fn step(&mut self) -> bool {
        if let Some(value) = self.at.next() {
            self.seen.push(value.get());
            return true;
        }
        let distinct: HashSet<_> = self.seen.iter().collect();
        assert_eq!(distinct.len(), self.seen.len(), "no element twice");
        let met: Vec<_> = self
            .seen
            .iter()
            .copied()
            .filter(|id| self.steady.contains(id))
            .collect();
        assert_eq!(met, self.steady, "all that stayed, in order");
        false
    }
}

/// The list against a vector, with walkers that stand anywhere meanwhile.
fn list_against_vec(ops: &[Op]) {
    let rcu = Rcu::with_callbacks(Callbacks::Manual);
    let leaked = Box::into_raw(Box::new(rcu));
    // SAFETY: freed at the end, when nobody has it any more.
    let rcu: &'static Rcu = unsafe { &*leaked };
    {
        let drops = Drops::new();
        let list = RcuList::new_in(rcu);
        let mut model: Vec<usize> = Vec::new();
        let mut next = 0;
        let mut fresh = || {
            next += 1;
            next
        };
        let guard = rcu.read();
        let mut walkers: Vec<Walker<'_>> = Vec::new();
        for op in ops {
            match *op {
                Op::PushFront => {
                    let id = fresh();
                    list.push_front(drops.value(id));
                    model.insert(0, id);
                }
                Op::PushBack => {
                    let id = fresh();
                    list.push_back(drops.value(id));
                    model.push(id);
                }
                Op::Insert(n) => {
                    let id = fresh();
                    let at = model.get(n).copied();
                    list.insert_before(drops.value(id), |v| Some(v.get()) == at);
                    model.insert(n.min(model.len()), id);
                }
                Op::RemoveNth(n) => {
                    let at = model.get(n).copied();
                    assert_eq!(list.remove_first(|v| Some(v.get()) == at), at.is_some());
                    model.retain(|id| Some(*id) != at);
                }
                Op::ReplaceNth(n) => {
                    let (id, at) = (fresh(), model.get(n).copied());
                    let done =
                        list.replace_first(|v| (Some(v.get()) == at).then(|| drops.value(id)));
                    assert_eq!(done, at.is_some());
                    if let Some(place) = model.get_mut(n) {
                        *place = id;
                    }
                }
                Op::RemoveEvery(n) => {
                    let before = model.len();
                    model.retain(|id| id % n != 0);
                    assert_eq!(list.remove_if(|v| v.get() % n == 0), before - model.len());
                }
                Op::Clear => {
                    assert_eq!(list.clear(), model.len());
                    model.clear();
                }
                Op::Walk => walkers.push(Walker {
                    at: list.iter(&guard),
                    seen: Vec::new(),
                    steady: model.clone(),
                }),
                Op::Step(n) => {
                    if n < walkers.len() && !walkers[n].step() {
                        walkers.swap_remove(n);
                    }
                }
                Op::Finish(n) => {
                    if n < walkers.len() {
                        let mut walker = walkers.swap_remove(n);
                        while walker.step() {}
                    }
                }
                Op::Drain => {
                    // The guard holds everything up.
                    assert!(!rcu.poll(&rcu.start_poll()));
                }
            }
            for walker in &mut walkers {
                walker.steady.retain(|id| model.contains(id));
            }
            let now: Vec<_> = list.iter(&guard).map(Counted::get).collect();
            assert_eq!(now, model);
            assert_eq!(
                (list.len(), list.is_empty()),
                (model.len(), model.is_empty())
            );
        }
        for walker in &mut walkers {
            while walker.step() {}
        }
        assert_eq!(drops.count() as u64, 0, "a walker could be anywhere");
        drop(walkers);
        drop(guard);
        let waiting = rcu.stats().pending;
        assert_eq!(rcu.drain() as u64, waiting);
        assert_eq!(drops.count() as u64, waiting);
        let left = model.len();
        drop(list);
        assert_eq!(drops.count() as u64, waiting + left as u64);
    }
    // SAFETY: leaked above; list, guard and walkers are gone.
    drop(unsafe { Box::from_raw(leaked) });
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 3 } else { 256 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]
    #[test]
    fn the_list_is_a_vector(ops in prop::collection::vec(op(), 0..if cfg!(miri) { 30 } else { 120 })) {
        list_against_vec(&ops);
    }
}

/// Values in the domain's own callbacks that hold the domain.
#[test]
fn a_cell_that_owns_its_domain() {
    let drops = Drops::new();
    let rcu = Arc::new(Rcu::with_callbacks(Callbacks::Manual));
    let cell = RcuCell::new_in(drops.value(1), Arc::clone(&rcu));
    let list: RcuList<_, Arc<Rcu>> = RcuList::new_in(rcu);
    cell.replace(drops.value(2));
    list.push_back(drops.value(3));
    list.clear();
    assert_eq!(drops.count(), 0);
    drop(cell);
    assert_eq!(drops.count(), 1, "its value, not what it replaced");
    drop(list);
    assert_eq!(drops.count(), 3, "the last handle went");
}
