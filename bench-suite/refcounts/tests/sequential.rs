//! Each count against a few lines that cannot be wrong: one thread, any order
//! of calls.

use proptest::prelude::*;
use refcounts::futex_ref::{FutexRef, Table};
use refcounts::percpu_ref::PercpuRef;
use refcounts::plain::Plain;
use refcounts::rcuref::{Outcome, RcuRef};
use refcounts::split::{Loaded, Slot};
use refcounts::{Thread, Tracker, plain::IncNotZero};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Miri is slow.
fn config() -> ProptestConfig {
    ProptestConfig {
        cases: if cfg!(miri) { 2 } else { 512 },
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

const TINY: u32 = 1 << 24;

/// Calls at most.
const CALLS: usize = if cfg!(miri) { 40 } else { 200 };

proptest! {
    #![proptest_config(config())]

    /// 8-bit zones, started near an edge or in the middle.
    #[test]
    fn plain(start in 1..=Plain::<TINY>::MAX, calls in prop::collection::vec(0..3u8, 0..2 * CALLS)) {
        let count = Plain::<TINY>::new(start);
        let (mut refs, mut saturated) = (start, false);
        for call in calls {
            match call {
                0 if refs > 0 => {
                    count.get();
                    refs += 1;
                    saturated |= refs > Plain::<TINY>::MAX;
                }
                1 => {
                    prop_assert_eq!(count.get_unless_zero(), saturated || refs > 0);
                    if refs > 0 && !saturated {
                        refs += 1;
                        saturated |= refs > Plain::<TINY>::MAX;
                    }
                }
                2 if refs > 0 => {
                    prop_assert_eq!(count.put(), !saturated && refs == 1);
                    refs -= u32::from(!saturated);
                }
                _ => {}
            }
            prop_assert_eq!(count.count(), (!saturated).then_some(refs));
        }
    }

    #[test]
    fn rcuref(start in 1..=RcuRef::<TINY>::MAX, calls in prop::collection::vec(any::<bool>(), 0..2 * CALLS)) {
        let max = RcuRef::<TINY>::MAX;
        let count = RcuRef::<TINY>::new(start);
        let (mut refs, mut saturated) = (start, false);
        for get in calls {
            let dead = refs == 0;
            if get {
                prop_assert_eq!(count.get(), !dead);
                refs += u32::from(!dead && !saturated);
                saturated |= refs > max;
            } else {
                let expected = match refs {
                    0 => Outcome::Unbalanced,
                    _ if saturated => Outcome::Saturated,
                    1 => Outcome::Last,
                    _ => Outcome::Shared,
                };
                prop_assert_eq!(count.put_outcome(), expected);
                refs -= u32::from(!dead && !saturated);
            }
            prop_assert_eq!(count.is_dead(), refs == 0);
            if saturated {
                prop_assert!(count.read() > max);
            } else {
                prop_assert_eq!(count.read(), refs);
            }
        }
    }

    #[test]
    fn percpu_ref(calls in prop::collection::vec((0..9u8, 0..5usize), 0..CALLS)) {
        let count = PercpuRef::new();
        let (mut refs, mut dead) = (1usize, false);
        // References but the initial one.
        let held = |refs: usize, dead: bool| refs - usize::from(!dead);
        for (call, thread) in calls {
            let thread = Thread::at(thread);
            match call {
                0 if held(refs, dead) > 0 || !dead => {
                    count.get(&thread);
                    refs += 1;
                }
                1 => {
                    prop_assert_eq!(count.try_get(&thread), refs > 0);
                    refs += usize::from(refs > 0);
                }
                2 => {
                    prop_assert_eq!(count.try_get_live(&thread), !dead);
                    refs += usize::from(!dead);
                }
                3 | 4 if held(refs, dead) > 0 => {
                    refs -= 1;
                    prop_assert_eq!(count.put(&thread), refs == 0);
                }
                5 if !dead => {
                    refs -= 1;
                    dead = true;
                    prop_assert_eq!(count.kill(), Ok(refs == 0));
                }
                6 => prop_assert_eq!(count.switch_to_atomic(), Ok(())),
                7 => count.switch_to_percpu(),
                8 if dead && refs > 0 => {
                    count.resurrect();
                    (refs, dead) = (refs + 1, false);
                }
                8 if dead => {
                    count.reinit();
                    (refs, dead) = (1, false);
                }
                _ => {}
            }
            prop_assert_eq!(count.count(), refs);
            prop_assert_eq!(count.is_dying(), dead);
        }
    }

    #[test]
    fn futex_ref(calls in prop::collection::vec((0..7u8, 0..5usize), 0..CALLS)) {
        let count = FutexRef::new();
        let mut held: Vec<Table> = vec![];
        let (mut number, mut dropped) = (0, false);
        for (call, n) in calls {
            let thread = Thread::at(n);
            let dead = dropped && held.is_empty();
            match call {
                0 | 1 => match count.get(&thread) {
                    Some(table) => {
                        prop_assert!(!dead);
                        prop_assert_eq!(table.number(), number);
                        held.push(table);
                    }
                    None => prop_assert!(dead),
                },
                2 | 3 if !held.is_empty() => {
                    let table = held.swap_remove(n % held.len());
                    prop_assert_eq!(count.put(&thread, table), dropped && held.is_empty());
                }
                4 => {
                    prop_assert_eq!(count.drop_table(), Ok(!dropped && held.is_empty()));
                    dropped = true;
                }
                5 => {
                    let mut moved = None;
                    prop_assert_eq!(count.pivot(|from, to| moved = Some((from, to))), dead);
                    prop_assert_eq!(moved, dead.then_some((number, number + 1)));
                    if dead {
                        number += 1;
                        dropped = false;
                    }
                }
                6 => prop_assert_eq!(count.settle(), Ok(())),
                _ => {}
            }
            prop_assert_eq!(count.is_dead(), dropped && held.is_empty());
            prop_assert_eq!(count.count(), held.len() + usize::from(!dropped));
        }
    }

    #[test]
    fn split(calls in prop::collection::vec((0..7u8, 0..64usize), 0..CALLS)) {
        split_with::<1>(&calls)?;
        split_with::<3>(&calls)?;
        split_with::<0x4000>(&calls)?;
    }
}

/// Says when it is dropped, by its number.
struct Witness(usize, Arc<Vec<AtomicUsize>>);

impl Drop for Witness {
    fn drop(&mut self) {
        self.1[self.0].fetch_add(1, Relaxed);
    }
}

fn split_with<const FOLD: u64>(calls: &[(u8, usize)]) -> Result<(), TestCaseError> {
    let dropped: Arc<Vec<AtomicUsize>> =
        Arc::new((0..=CALLS).map(|_| AtomicUsize::new(0)).collect());
    let new = |n| Witness(n, Arc::clone(&dropped));
    let slot = Slot::<Witness, FOLD>::new(new(0));
    let (mut made, mut current) = (1, Some(0));
    let mut held: Vec<Loaded<Witness>> = vec![];
    for &(call, n) in calls {
        let old = current;
        match call {
            0..3 => match slot.load() {
                Some(loaded) => {
                    prop_assert_eq!(Some(loaded.0), current);
                    held.push(loaded);
                }
                None => prop_assert_eq!(current, None),
            },
            3 if !held.is_empty() => {
                let loaded = held.swap_remove(n % held.len());
                let number = loaded.0;
                let last = current != Some(number) && held.iter().all(|h| h.0 != number);
                prop_assert_eq!(slot.release(loaded), last);
            }
            4 if !held.is_empty() => drop(held.swap_remove(n % held.len())),
            5 => {
                current = Some(made);
                let freed = slot.replace(new(made));
                made += 1;
                prop_assert_eq!(freed, held.iter().all(|h| Some(h.0) != old));
            }
            6 => {
                current = None;
                prop_assert_eq!(slot.clear(), held.iter().all(|h| Some(h.0) != old));
            }
            _ => {}
        }
        for number in 0..made {
            let alive = current == Some(number) || held.iter().any(|h| h.0 == number);
            prop_assert_eq!(dropped[number].load(Relaxed), usize::from(!alive));
        }
        let references = held.iter().filter(|h| Some(h.0) == current).count();
        let expected = current.map_or(0, |_| references + 1);
        prop_assert_eq!(slot.count(), expected);
    }
    drop((slot, held));
    prop_assert!(dropped[..made].iter().all(|n| n.load(Relaxed) == 1));
    Ok(())
}

/// The interface that all have in common says the same of all.
fn through_the_trait<T: Tracker>() {
    let thread = Thread::new();
    let alone = T::new();
    assert_eq!(alone.count(), 1, "{}", T::NAME);
    assert_eq!(alone.kill(&thread), Ok(true), "{}", T::NAME);
    assert!(alone.try_get(&thread).is_none(), "{}", T::NAME);

    let shared = T::new();
    let first = shared.get(&thread).expect("alive");
    let second = shared.try_get(&thread).expect("alive");
    assert_eq!(shared.count(), 3, "{}", T::NAME);
    assert!(!shared.put(&thread, second), "{}", T::NAME);
    assert_eq!(shared.kill(&thread), Ok(false), "{}", T::NAME);
    assert!(shared.put(&thread, first), "{}", T::NAME);
    assert_eq!(shared.count(), 0, "{}", T::NAME);
    assert!(shared.try_get(&thread).is_none(), "{}", T::NAME);
}

#[test]
fn trackers() {
    through_the_trait::<Plain>();
    through_the_trait::<IncNotZero>();
    through_the_trait::<RcuRef>();
    through_the_trait::<PercpuRef>();
    through_the_trait::<FutexRef>();
    through_the_trait::<Slot<()>>();
}
