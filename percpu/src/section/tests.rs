//! Every section against its plain twin, on scratch words.
#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "one SAFETY comment a group of calls"
)]

use super::*;
use crate::barrier::{Rung, rung};
use crate::line::{INACTIVE, WORDS};
use crate::sync::atomic::Ordering::Relaxed;
use core::ptr;

const FREE: usize = usize::MAX;
const ALL: usize = usize::MAX;

/// Runs `f` until it is not interrupted. `None` where sections do not run.
fn settled<R>(mut f: impl FnMut() -> Result<R, Miss>) -> Option<Result<R, Miss>> {
    if rung() != Rung::Rseq {
        assert_eq!(
            f().err(),
            Some(Miss::Unregistered),
            "a rung without sections"
        );
        return None;
    }
    wait_until_enabled();
    loop {
        match f() {
            Err(Miss::Restarted) => {}
            other => return Some(other),
        }
    }
}

/// Another test's thread may be the one that decided the rung and may not have
/// switched the sections on yet.
fn wait_until_enabled() {
    while !registered() {
        std::thread::yield_now();
    }
}

/// Scratch lines, one for every CPU that could be the running one.
fn scratch(fill: usize) -> Vec<Line> {
    let lines: Vec<Line> = (0..crate::possible_cpus().max(1))
        .map(|_| Line::new())
        .collect();
    for line in &lines {
        for word in line.words() {
            word.store(fill, Relaxed);
        }
    }
    lines
}

fn place(lines: &[Line], slot: *const AtomicUsize) -> (usize, usize) {
    let bytes = slot.addr() - lines.as_ptr().addr();
    (
        bytes / size_of::<Line>(),
        bytes % size_of::<Line>() / size_of::<usize>(),
    )
}

fn filled(lines: &[Line], fill: usize) -> usize {
    lines
        .iter()
        .flat_map(Line::words)
        .filter(|w| w.load(Relaxed) != fill)
        .count()
}

#[test]
fn search_takes_the_first_free_word_in_range_and_stores_the_masked_value() {
    let lines = scratch(FREE);
    let mut object = 7u64;
    let tagged: *mut () = (&raw mut object).cast::<()>().map_addr(|a| a | 1);
    let src = AtomicPtr::new(tagged);
    let run = |first, end, mask| {
        // SAFETY: scratch lines for every CPU; `tagged` is a live local.
        settled(|| unsafe { search_and_load(lines.as_ptr(), lines.len(), first, end, &src, mask) })
    };
    let Some(got) = run(0, WORDS, !1) else { return };
    let (slot, value) = got.unwrap();
    assert_eq!(value, tagged, "the caller gets the value with its tag");
    let (cpu, word) = place(&lines, slot);
    assert_eq!(word, 0);
    assert_eq!(lines[cpu].words()[0].load(Relaxed), tagged.addr() & !1);
    assert_eq!(filled(&lines, FREE), 1, "one store, nowhere else");

    let (slot, _) = run(3, 5, ALL).unwrap().unwrap();
    assert_eq!(place(&lines, slot).1, 3, "the range is respected");
    for line in &lines {
        line.words()[3].store(40, Relaxed);
        line.words()[4].store(40, Relaxed);
    }
    assert_eq!(run(3, 5, ALL), Some(Err(Miss::Busy)));
    assert_eq!(run(6, 7, 0), Some(Err(Miss::Null)), "masked to null");
}

#[test]
fn search_reports_null_inactive_and_out_of_range() {
    let null = AtomicPtr::new(ptr::null_mut());
    let some = AtomicPtr::new(ptr::without_provenance_mut(64));
    let free = scratch(FREE);
    let fresh = scratch(INACTIVE);
    // SAFETY (all calls): scratch lines, live sources.
    let search = |lines: &[Line], count, src: &AtomicPtr<()>| {
        settled(|| unsafe { search_and_load(lines.as_ptr(), count, 0, 8, src, ALL) })
    };
    let Some(answer) = search(&free, free.len(), &null) else {
        return;
    };
    assert_eq!(answer, Err(Miss::Null));
    assert_eq!(filled(&free, FREE), 0, "null claims nothing");
    assert!(matches!(
        search(&fresh, fresh.len(), &some),
        Some(Err(Miss::Inactive(index))) if index < fresh.len()
    ));
    assert_eq!(filled(&fresh, INACTIVE), 0);
    assert_eq!(
        search(&free, 0, &some),
        Some(Err(Miss::Unregistered)),
        "index beyond the table"
    );
}

#[test]
fn the_inline_claim_agrees_with_the_search() {
    static LINES: crate::line::Lines = crate::line::Lines::new();
    let mut object = 1u64;
    let object: *mut () = (&raw mut object).cast();
    let src = AtomicPtr::new(object);
    if rung() != Rung::Rseq {
        return;
    }
    wait_until_enabled();
    for index in 0..crate::possible_cpus() {
        LINES.activate(index, 8, FREE);
    }
    let base = LINES.first();
    loop {
        // SAFETY: a static table, a live local.
        let claimed = unsafe { claim_and_load(base, &src) };
        if claimed.slot.is_null() {
            assert_eq!(claimed.value.addr(), 1, "only an interruption may miss");
            continue;
        }
        assert_eq!(claimed.value, object);
        assert_eq!(place(LINES.all(), claimed.slot).1, 0);
        // SAFETY: points into the static table.
        assert_eq!(
            unsafe { (*claimed.slot).swap(FREE, Relaxed) },
            object.addr()
        );
        break;
    }
    let null = AtomicPtr::new(ptr::null_mut());
    // SAFETY: as above.
    let claimed = unsafe { claim_and_load(base, &null) };
    assert!(claimed.slot.is_null());
    for index in 0..crate::possible_cpus() {
        LINES.all()[index].words()[0].store(48, Relaxed);
    }
    // SAFETY: as above.
    let claimed = unsafe { claim_and_load(base, &src) };
    assert!(claimed.slot.is_null(), "word 0 is taken");
    assert!(!claimed.value.is_null(), "which is not the same as null");
}

/// Runs `f` until it is not interrupted. `None` where sections do not run.
fn settled_load(mut f: impl FnMut() -> *mut ()) -> Option<*mut ()> {
    settled(|| match f() {
        MISSED if registered() => Err(Miss::Restarted),
        MISSED => Err(Miss::Unregistered),
        value => Ok(value),
    })
    .map(|answer| answer.unwrap())
}

#[test]
fn load_into_stores_into_the_given_word_only() {
    let slot = AtomicUsize::new(FREE);
    let mut object = 3u64;
    let value: *mut () = (&raw mut object).cast();
    let src = AtomicPtr::new(value);
    // SAFETY (all): live locals; the slot is this thread's.
    let Some(got) = settled_load(|| unsafe { load_into(&src, &slot) }) else {
        return;
    };
    assert_eq!(got, value);
    assert_eq!(slot.load(Relaxed), value.addr());
    let null = AtomicPtr::new(ptr::null_mut());
    let got = settled_load(|| unsafe { load_into(&null, &slot) });
    assert_eq!(got, Some(ptr::null_mut()));
    assert_eq!(
        slot.load(Relaxed),
        value.addr(),
        "a miss leaves the slot alone"
    );
    let tagged = AtomicPtr::new(value.map_addr(|a| a | 1));
    slot.store(FREE, Relaxed);
    let got = settled_load(|| unsafe { load_into_masked(&tagged, &slot, !1) });
    assert_eq!(
        got,
        Some(value.map_addr(|a| a | 1)),
        "the caller gets the tag"
    );
    assert_eq!(slot.load(Relaxed), value.addr(), "the slot does not");
    let tagged_null = AtomicPtr::new(ptr::without_provenance_mut(1));
    let got = settled_load(|| unsafe { load_into_masked(&tagged_null, &slot, !1) });
    assert_eq!(got, Some(ptr::without_provenance_mut(1)));
    assert_eq!(
        slot.load(Relaxed),
        value.addr(),
        "a tagged null stores nothing"
    );
}

#[test]
fn claim_stores_the_given_value() {
    let lines = scratch(FREE);
    // SAFETY: scratch lines.
    let run = || settled(|| unsafe { claim(lines.as_ptr(), lines.len(), 1, 3, 96) });
    let Some(got) = run() else { return };
    let (cpu, word) = place(&lines, got.unwrap());
    assert_eq!((word, lines[cpu].words()[1].load(Relaxed)), (1, 96));
    for line in &lines {
        line.words()[1].store(1, Relaxed);
        line.words()[2].store(1, Relaxed);
    }
    assert_eq!(run(), Some(Err(Miss::Busy)));
}

#[test]
fn counters_add_up_and_wrap() {
    let lines = scratch(1);
    let phase = AtomicUsize::new(1);
    let total = |word: usize| {
        lines.iter().fold(0usize, |sum, l| {
            sum.wrapping_add(l.words()[word].load(Relaxed))
        })
    };

    let start = lines.len();
    let counted = || {
        // SAFETY: scratch lines; `phase` is live and below WORDS.
        settled(|| match unsafe { load_and_add(lines.as_ptr(), &phase) } {
            NOT_COUNTED if registered() => Err(Miss::Restarted),
            NOT_COUNTED => Err(Miss::Unregistered),
            word => Ok(word),
        })
    };
    let Some(got) = counted() else { return };
    assert_eq!(got, Ok(1));
    assert_eq!(total(1), start + 1);
    phase.store(15, Relaxed);
    assert_eq!(counted(), Some(Ok(15)));
    assert_eq!((total(1), total(15)), (start + 1, start + 1));
    // SAFETY: scratch lines; 15 is below WORDS.
    while !unsafe { add(lines.as_ptr(), 15) } {}
    assert_eq!(total(15), start + 2);
    for line in &lines {
        line.words()[3].store(usize::MAX - 1, Relaxed);
        line.words()[4].store(crate::line::INACTIVE, Relaxed);
    }
    // SAFETY: as above.
    while !unsafe { add(lines.as_ptr(), 3) } {}
    assert!(
        lines
            .iter()
            .any(|l| l.words()[3].load(Relaxed) == usize::MAX)
    );
    for _ in 0..1000 {
        phase.store(4, Relaxed);
        // SAFETY (both): as above.
        assert_eq!(unsafe { load_and_add(lines.as_ptr(), &phase) }, NOT_COUNTED);
        assert!(
            !unsafe { add(lines.as_ptr(), 4) },
            "a word that is not open"
        );
    }
    assert_eq!(total(4), 0);

    let flag = AtomicUsize::new(0);
    let check = |expected| {
        // SAFETY: scratch lines; `flag` is live.
        settled(|| unsafe { check_and_add(&flag, expected, lines.as_ptr(), lines.len(), 7, 2) })
    };
    assert_eq!(check(0), Some(Ok(())));
    assert_eq!(check(1), Some(Err(Miss::Mismatch)));
    assert_eq!(total(7), start + 2);
}

/// librseq and tcmalloc reports (bug log 82): nothing of the kernel's fields is
/// written, so they stay plausible however many sections run.
#[test]
fn report_82_kernel_fields_stay_the_kernels() {
    let lines = scratch(FREE);
    let some = AtomicPtr::new(ptr::without_provenance_mut(64));
    if rung() != Rung::Rseq {
        return;
    }
    wait_until_enabled();
    for _ in 0..200_000 {
        // SAFETY: scratch lines, a live local.
        match unsafe { search_and_load(lines.as_ptr(), lines.len(), 0, 8, &some, ALL) } {
            // SAFETY: points into `lines`.
            Ok((slot, _)) => unsafe { (*slot).store(FREE, Relaxed) },
            Err(miss) => assert_eq!(miss, Miss::Restarted),
        }
        assert!(index_hint() < crate::possible_cpus());
    }
}
