//! Forks: the child never waits for threads that it does not have.
//!
//! Bug log 47 and 51.
#![cfg(target_os = "linux")]

use hp::{Atomic, Domain, HazardPointer};
use std::process::Command;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;
use tests::fork::{SetWhenDropped, in_child, wait_for};

struct Counted<'a>(&'a AtomicUsize);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn retire_some(domain: &Domain, dropped: &'static AtomicUsize, n: usize) {
    for _ in 0..n {
        Atomic::new(Counted(dropped))
            .take()
            .expect("a value")
            .retire_in(domain);
    }
}

/// Everything that a child does with objects of its own.
fn use_everything(domain: &Domain) {
    static DROPPED: AtomicUsize = AtomicUsize::new(0);
    let before = DROPPED.load(Ordering::SeqCst);
    let cell = Atomic::new(Counted(&DROPPED));
    let mut guards: Vec<_> = (0..12).map(|_| cell.load().expect("a value")).collect();
    guards[1].detach();
    guards.push(guards[0].clone());
    cell.take().expect("a value").retire_in(domain);
    retire_some(domain, &DROPPED, 1000);
    domain.drain();
    assert_eq!(DROPPED.load(Ordering::SeqCst) - before, 1000);
    drop(guards);
    domain.drain();
    assert_eq!(DROPPED.load(Ordering::SeqCst) - before, 1001);
    let mine = Atomic::new(5u8);
    assert_eq!(mine.into_inner().as_deref(), Some(&5), "synchronize");
    thread::spawn(|| {
        let cell = Atomic::new(6u8);
        assert_eq!(cell.load().as_deref(), Some(&6));
    })
    .join()
    .expect("a thread of the child");
}

/// Bug log 47: three threads hold guards of every kind at the fork. The child
/// works, its child too, and the parent's objects stay in all of them.
#[test]
fn report_47_guards_of_threads_that_vanish() {
    static DROPPED: AtomicUsize = AtomicUsize::new(0);
    let domain = Domain::new();
    let cells: Vec<_> = (0..3).map(|_| Atomic::new(Counted(&DROPPED))).collect();
    let (held, done) = (Barrier::new(4), AtomicBool::new(false));
    thread::scope(|scope| {
        for (n, cell) in cells.iter().enumerate() {
            let (held, done) = (&held, &done);
            scope.spawn(move || {
                let mut guard = cell.load().expect("a value");
                let mut hazard = HazardPointer::new();
                hazard.protect_raw(guard.as_ptr().cast());
                if n == 1 {
                    guard.detach();
                }
                let clone = (n == 2).then(|| guard.clone());
                held.wait();
                wait_for(done);
                drop((guard, hazard, clone));
            });
        }
        held.wait();
        let finish = SetWhenDropped(&done);
        for cell in &cells {
            cell.take().expect("a value").retire_in(&domain);
        }
        let outcome = in_child(|| {
            use_everything(&domain);
            domain.drain();
            assert_eq!(domain.stats().pending, 3, "protected in the child as well");
            in_child(|| {
                use_everything(&domain);
                use_everything(Domain::global());
                assert_eq!(domain.stats().pending, 3);
                in_child(|| use_everything(&domain)).expect("third level");
            })
            .expect("second level");
            use_everything(&domain);
        });
        domain.drain();
        assert_eq!(DROPPED.load(Ordering::SeqCst), 0, "the parent goes on");
        drop(finish);
        outcome.expect("first level");
    });
    domain.drain();
    assert_eq!(DROPPED.load(Ordering::SeqCst), 3);
}

/// Bug log 47: the fork happens while other threads are inside retire, reclaim
/// and drain, with shards locked and passes counted.
#[test]
fn report_47_forks_while_others_retire() {
    static DROPPED: AtomicUsize = AtomicUsize::new(0);
    let domain = Domain::new();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for n in 0..3 {
            let (domain, stop) = (&domain, &stop);
            scope.spawn(move || {
                let mut round = 0usize;
                while !stop.load(Ordering::Relaxed) {
                    retire_some(domain, &DROPPED, 1);
                    round += 1;
                    if round % 500 == n * 100 {
                        domain.drain();
                    }
                }
            });
        }
        let finish = SetWhenDropped(&stop);
        let mut outcome = Ok(());
        for _ in 0..50 {
            outcome = outcome.and_then(|()| {
                in_child(|| {
                    use_everything(&domain);
                    use_everything(Domain::global());
                })
            });
            thread::sleep(Duration::from_micros(300));
        }
        drop(finish);
        outcome.expect("a child that hung, or lost its own objects");
    });
    domain.drain();
    assert_eq!(domain.stats().pending, 0);
    assert_eq!(
        DROPPED.load(Ordering::SeqCst) as u64,
        domain.stats().retired
    );
}

/// Bug log 47, `after_fork_in_child`: what only vanished threads protected can
/// be freed, what the child keeps stays.
#[test]
fn report_47_slots_of_vanished_threads_are_cleared() {
    static DROPPED: AtomicUsize = AtomicUsize::new(0);
    let domain = Domain::new();
    let cells: Vec<_> = (0..3).map(|_| Atomic::new(Counted(&DROPPED))).collect();
    let own_cell = Atomic::new(Counted(&DROPPED));
    let (held, done) = (Barrier::new(4), AtomicBool::new(false));
    thread::scope(|scope| {
        for cell in &cells {
            let (held, done) = (&held, &done);
            scope.spawn(move || {
                let guards: Vec<_> = (0..9).map(|_| cell.load()).collect();
                let clone = guards[8].clone();
                held.wait();
                wait_for(done);
                drop((guards, clone));
            });
        }
        held.wait();
        let finish = SetWhenDropped(&done);
        let mut own = own_cell.load().expect("a value");
        own.detach();
        let own_clone = own.clone();
        own_cell.take().expect("a value").retire_in(&domain);
        for cell in &cells {
            cell.take().expect("a value").retire_in(&domain);
        }
        domain.drain();
        assert_eq!(domain.stats().pending, 4);
        let outcome = in_child(|| {
            domain.drain();
            assert_eq!(domain.stats().pending, 4);
            // SAFETY: the forked child's only thread, whose only guards are
            // `own` and its clone.
            unsafe { hp::after_fork_in_child(&[own.as_ptr().cast()]) };
            domain.drain();
            assert_eq!(DROPPED.load(Ordering::SeqCst), 3, "theirs");
            assert_eq!(domain.stats().pending, 1, "ours");
            drop(own);
            domain.drain();
            assert_eq!(domain.stats().pending, 1, "its clone holds it");
            drop(own_clone);
            domain.drain();
            assert_eq!(domain.stats().pending, 0);
            use_everything(&domain);
        });
        domain.drain();
        // The parent's copies of `own` and its clone went with the closure.
        assert_eq!(DROPPED.load(Ordering::SeqCst), 1);
        drop(finish);
        outcome.expect("child");
    });
    domain.drain();
    assert_eq!(DROPPED.load(Ordering::SeqCst), 4);
}

/// Bug log 47: the fork comes before anything has decided the rung (threads
/// that only retire), in a process of its own.
#[test]
fn report_47_forks_before_the_rung_is_decided() {
    let outcome = tests::child::run(
        Command::new(env!("CARGO_BIN_EXE_hp-child")).arg("fork-early"),
        &[],
    )
    .expect_ok();
    assert_eq!(outcome.number("hung"), 0, "{outcome}");
    assert!(outcome.number("forks") > 0, "{outcome}");
}
