//! Tagged, misaligned, zero-sized, unsized, over-aligned and null pointers.
//!
//! Bug log group 10.

mod common;

use common::{Drops, holders, retire};
use hp::{Atomic, Domain, HazardPointer, ProtectError};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// Bug log 69: nothing is assumed about alignments beyond the type's own.
#[test]
fn report_69_types_of_alignment_one_and_two() {
    // Addresses of every residue, odd ones too.
    let mut bytes = vec![7u8; 64].into_boxed_slice();
    for byte in &mut bytes {
        let source = AtomicPtr::new(ptr::from_mut(byte));
        let mut hazard = HazardPointer::new();
        let got = hazard.protect(&source);
        // SAFETY: the bytes live until the end of the test.
        assert_eq!(unsafe { *got }, 7);
        assert_eq!(hazard.protected().map(|p| p.addr().get()), Some(got.addr()));
        assert_eq!(holders(got), 1);
        hazard.reset();
        assert_eq!(holders(got), 0);
    }
    let cell = Atomic::new(3u8);
    let (one, two) = (cell.load().expect("a value"), cell.load().expect("a value"));
    assert_eq!((*one, *two), (3, 3));
    let words = Atomic::new([1u16, 2]);
    assert_eq!(words.load().as_deref(), Some(&[1, 2]));
    let empty = Atomic::new([0u8; 0]);
    assert_eq!(empty.load().as_deref(), Some(&[]));
}

/// Bug log 71: a slot holds the address without its tag, and the caller gets
/// the tag back.
#[test]
fn report_71_tagged_pointers() {
    const TAG: usize = 0b11;
    let value = Box::into_raw(Box::new(0x1234_5678_u64));
    for tag in 0..=TAG {
        let source = AtomicPtr::new(value.map_addr(|a| a | tag));
        let mut hazard = HazardPointer::new();
        let got = hazard.protect_tagged(&source, TAG);
        assert_eq!(got.addr() & TAG, tag);
        assert_eq!(got.map_addr(|a| a & !TAG), value);
        assert_eq!(holders(value), 1, "the slot holds the plain address");
        assert_eq!(
            hazard.protected().map(|p| p.addr().get()),
            Some(value.addr())
        );
        let domain = Domain::manual();
        // SAFETY: nothing is freed: the deleter does nothing.
        unsafe {
            domain.retire_with(value.cast(), ptr::null_mut(), |_, _| ());
        }
        assert_eq!(domain.drain(), 0, "protected under its plain address");
        drop(hazard);
        assert_eq!(domain.drain(), 1);
    }
    // SAFETY: from a box, freed once.
    drop(unsafe { Box::from_raw(value) });
}

/// Bug log 71: a null needs no slot, with or without a tag, and ends what the
/// slot protected before.
#[test]
fn report_71_null_and_tagged_null() {
    let value = Box::into_raw(Box::new(1u64));
    let source = AtomicPtr::new(value);
    let mut hazard = HazardPointer::new();
    for tag in 0..4usize {
        source.store(value, Ordering::Relaxed);
        assert_eq!(hazard.protect(&source), value);
        assert_eq!(holders(value), 1);
        source.store(ptr::without_provenance_mut(tag), Ordering::Relaxed);
        let got = hazard.protect_tagged(&source, 3);
        assert_eq!(got.addr(), tag, "the tag of a null comes back");
        assert!(hazard.protected().is_none());
        assert_eq!(holders(value), 0);
    }
    source.store(ptr::null_mut(), Ordering::Relaxed);
    assert!(hazard.protect(&source).is_null());
    hazard.protect_raw(value.cast_const().cast());
    assert_eq!(holders(value), 1);
    hazard.protect_raw(ptr::null());
    assert!(hazard.protected().is_none());
    // SAFETY: from a box, freed once.
    drop(unsafe { Box::from_raw(value) });
}

/// Bug log 71: one attempt, with the two ways in which it can fail.
#[test]
fn report_71_try_protect() {
    let first = Box::into_raw(Box::new(1u64));
    let second = Box::into_raw(Box::new(2u64));
    let source = AtomicPtr::new(first);
    let mut hazard = HazardPointer::new();
    assert_eq!(hazard.try_protect(first, &source), Ok(first));
    assert_eq!(holders(first), 1);

    source.store(second, Ordering::Relaxed);
    assert_eq!(
        hazard.try_protect(first, &source),
        Err(ProtectError::Changed(second))
    );
    assert!(hazard.protected().is_none(), "a failure protects nothing");

    assert_eq!(hazard.try_protect(second, &source), Ok(second));
    let tagged = second.map_addr(|a| a | 1);
    assert_eq!(
        hazard.try_protect(tagged, &source),
        Err(ProtectError::Misaligned(tagged))
    );
    assert!(hazard.protected().is_none(), "a failure protects nothing");
    assert_eq!(holders(second), 0);

    source.store(ptr::null_mut(), Ordering::Relaxed);
    assert_eq!(
        hazard.try_protect(ptr::null_mut(), &source),
        Ok(ptr::null_mut())
    );
    assert!(hazard.protected().is_none());
    assert_eq!(
        hazard.try_protect(first, &source),
        Err(ProtectError::Changed(ptr::null_mut()))
    );
    // SAFETY: from boxes, freed once each.
    unsafe {
        drop(Box::from_raw(first));
        drop(Box::from_raw(second));
    }
}

/// Bug log 71: a tag where none is allowed panics in debug builds.
#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "protect_tagged")]
fn report_71_an_untold_tag_panics_in_debug() {
    static VALUE: u64 = 1;
    let tagged = (&raw const VALUE).cast_mut().map_addr(|a| a | 1);
    let _ = HazardPointer::new().protect(&AtomicPtr::new(tagged));
}

/// The two largest addresses are the slots' own words.
#[test]
#[should_panic(expected = "no object's address")]
fn a_reserved_address_is_refused() {
    HazardPointer::new().protect_raw(ptr::without_provenance(usize::MAX - 1));
}

/// Zero-sized values: counted, dropped once each, kept while any of them is
/// guarded.
#[test]
fn zero_sized_values() {
    static DROPS: AtomicUsize = AtomicUsize::new(0);
    // An alignment that no other test of this process uses for a zero-sized
    // value, since all of one alignment share one address.
    #[repr(align(64))]
    struct Nothing;
    impl Drop for Nothing {
        fn drop(&mut self) {
            DROPS.fetch_add(1, Ordering::SeqCst);
        }
    }
    let domain = Domain::new();
    let cells: Vec<_> = (0..5).map(|_| Atomic::new(Nothing)).collect();
    let guard = cells[0].load();
    assert!(guard.is_some());
    for cell in &cells {
        cell.take().expect("a value").retire_in(&domain);
    }
    assert_eq!(domain.drain(), 0, "one address, one guard");
    drop(guard);
    assert_eq!(domain.drain(), 5);
    assert_eq!(DROPS.load(Ordering::SeqCst), 5);
    drop(Atomic::new(Nothing).into_inner());
    assert_eq!(DROPS.load(Ordering::SeqCst), 6);
}

/// Unsized boxes: slices, strings, trait objects, and a zero-length slice.
#[test]
fn unsized_values() {
    let drops = Drops::new();
    let domain = Domain::new();
    let slice: Box<[common::Counted]> = (0..4).map(|n| drops.value(n)).collect();
    let empty: Box<[common::Counted]> = Box::default();
    let object: Box<dyn Send> = Box::new(drops.value(4));
    let text: Box<str> = "text".into();
    let slice = Box::into_raw(slice);
    let mut hazard = HazardPointer::new();
    hazard.protect_raw(slice.cast_const().cast());
    // SAFETY: from boxes, once each, linked nowhere.
    unsafe {
        domain.retire_box(slice);
        domain.retire_box(Box::into_raw(empty));
        domain.retire_box(Box::into_raw(object));
        domain.retire_box(Box::into_raw(text));
    }
    assert_eq!(domain.drain(), 3);
    assert_eq!(drops.count(), 1, "the slice is protected by its address");
    // SAFETY: protected and alive.
    assert_eq!(unsafe { &(*slice)[3] }.get(), 3);
    drop(hazard);
    assert_eq!(domain.drain(), 1);
    assert_eq!(drops.count(), 5);
}

/// Bug log 70: over-aligned values go back to the allocator as they came.
#[test]
fn report_70_over_aligned_values() {
    #[repr(align(256))]
    struct Line(common::Counted);
    #[repr(align(4096))]
    struct Page(common::Counted);
    let drops = Drops::new();
    let domain = Domain::new();
    let (line, page) = (
        Atomic::new(Line(drops.value(1))),
        Atomic::new(Page(drops.value(2))),
    );
    let (line_guard, page_guard) = (line.load().expect("a value"), page.load().expect("a value"));
    assert_eq!(line_guard.as_ptr().addr() % 256, 0);
    assert_eq!(page_guard.as_ptr().addr() % 4096, 0);
    line.take().expect("a value").retire_in(&domain);
    page.take().expect("a value").retire_in(&domain);
    assert_eq!(domain.drain(), 0);
    assert_eq!((line_guard.0.get(), page_guard.0.get()), (1, 2));
    drop((line_guard, page_guard));
    assert_eq!(domain.drain(), 2);
    for n in 0..100 {
        retire(&domain, Page(drops.value(n)));
        retire(&domain, Line(drops.value(n)));
    }
    domain.drain();
    assert_eq!(drops.count(), 202);
}

/// Empty cells.
#[test]
fn null_cells() {
    let cell: Atomic<common::Counted> = Atomic::null();
    let drops = Drops::new();
    assert!(cell.is_null());
    assert!(cell.load().is_none());
    assert!(cell.take().is_none());
    assert!(cell.swap(drops.value(1)).is_none());
    assert!(!cell.is_null());
    drop(cell.take());
    assert!(cell.load().is_none());
    assert!(cell.update(|_| None::<common::Counted>).is_none());
    assert!(
        cell.update(|now| now.is_none().then(|| drops.value(2)))
            .is_none()
    );
    let replaced = cell.update(|now| now.map(|value| drops.value(value.get() + 1)));
    assert_eq!(replaced.expect("the old value").get(), 2);
    assert_eq!(cell.load().expect("a value").get(), 3);
    assert!(Atomic::<u8>::default().is_null());
    assert!(Atomic::<u8>::from(None).is_null());
    assert_eq!(
        Atomic::from(Some(Box::new(4u8))).load().as_deref(),
        Some(&4)
    );
    drop(cell);
    Domain::global().drain();
    assert_eq!(drops.count(), 3);
}

/// Opaque keys: they wait for slots that hold them, like addresses.
#[test]
fn keys() {
    static CLOSED: AtomicUsize = AtomicUsize::new(0);
    fn close(key: usize) {
        CLOSED.fetch_add(key, Ordering::SeqCst);
    }
    let domain = Domain::new();
    let mut hazard = HazardPointer::new();
    hazard.protect_raw(ptr::without_provenance(41));
    // SAFETY: `close` may be called at any time on any thread.
    unsafe {
        domain.retire_key(41, close);
        domain.retire_key(1, close);
        domain.retire_key(usize::MAX - 2, |_| ());
    }
    assert_eq!(domain.drain(), 2);
    assert_eq!(CLOSED.load(Ordering::SeqCst), 1);
    hazard.reset();
    assert_eq!(domain.drain(), 1);
    assert_eq!(CLOSED.load(Ordering::SeqCst), 42);
}

/// Keys that no slot can hold are refused before anything is queued.
#[test]
fn reserved_keys_are_refused() {
    for key in [0, usize::MAX - 1, usize::MAX] {
        let domain = Domain::new();
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            // SAFETY: the deleter does nothing.
            unsafe { domain.retire_key(key, |_| ()) };
        }));
        assert!(outcome.is_err(), "{key:#x}");
        assert_eq!(domain.stats().retired, 0);
    }
}

/// A deleter of one's own gets back both words that were retired.
#[test]
fn a_deleter_gets_its_context() {
    unsafe fn deleter(address: *mut (), context: *mut ()) {
        // SAFETY: the test passes a box and a counter that outlives it.
        unsafe {
            let value = Box::from_raw(address.cast::<usize>());
            (*context.cast::<AtomicUsize>()).fetch_add(*value, Ordering::SeqCst);
        }
    }
    let sum = AtomicUsize::new(0);
    let context = (&raw const sum).cast_mut().cast::<()>();
    let domain = Domain::new();
    let first = Box::into_raw(Box::new(30usize));
    let source = AtomicPtr::new(first);
    let mut hazard = HazardPointer::new();
    let got = hazard.protect(&source);
    source.store(ptr::null_mut(), Ordering::Release);
    // SAFETY: unlinked; the deleter takes the box, `sum` outlives the domain.
    unsafe {
        domain.retire_with(first.cast(), context, deleter);
        domain.retire_with(Box::into_raw(Box::new(12usize)).cast(), context, deleter);
        // Null is never protected.
        domain.retire_with(ptr::null_mut(), ptr::null_mut(), |_, _| ());
    }
    assert_eq!(domain.drain(), 2);
    assert_eq!(sum.load(Ordering::SeqCst), 12);
    // SAFETY: protected.
    assert_eq!(unsafe { *got }, 30);
    drop(hazard);
    assert_eq!(domain.drain(), 1);
    assert_eq!(sum.load(Ordering::SeqCst), 42);
}
