//! A machine of many CPUs, as `ci/guest.sh` boots one: two sockets with several
//! cores of two threads, on a kernel that has restartable sequences and no
//! concurrency ids (Linux 6.1: the field reads 0 on every CPU, so that lines
//! indexed by it would all be one).
#![cfg(target_os = "linux")]

use hp::{Atomic, Domain, Guard, Rung};
use std::process::Command;
use std::thread;
use tests::child::run;
use tests::machine;

/// The line that holds the guard's address, as scans see it.
fn line(guard: &Guard<usize>) -> Option<usize> {
    let mut places = Vec::new();
    hp::scan(guard.as_ptr().cast(), |place| places.push(place)).expect("a barrier");
    assert_eq!(places.len(), 1, "one guard, one slot: {places:?}");
    places[0].cpu
}

fn on(cpu: usize) {
    machine::set_affinity(0, &[cpu]).expect("one of the allowed CPUs");
    assert_eq!(torture::cpus::current(), cpu);
}

/// Each CPU has a line of its own, and a guard taken there is in it.
#[test]
#[ignore = "for the guest of ci/guest.sh"]
fn every_cpu_has_its_line() {
    assert_eq!(hp::init(), Rung::Rseq);
    assert_eq!(percpu::capabilities().index, "cpu_id");
    let cpus = machine::allowed_cpus();
    assert!(cpus.len() >= 8, "{cpus:?}");
    let cell = Atomic::new(7usize);
    for &cpu in &cpus {
        on(cpu);
        // The first load on a CPU opens its line.
        drop(cell.load());
        let guard = cell.load().expect("a value");
        assert_eq!(line(&guard), Some(cpu));
    }
}

/// One thread takes a guard on each CPU in turn, and lets go of them on another:
/// a scan finds all of them, in all lines, and nothing is freed before.
#[test]
#[ignore = "for the guest of ci/guest.sh"]
fn guards_of_a_thread_that_goes_round() {
    let cpus = machine::allowed_cpus();
    let domain = Domain::new();
    let cells: Vec<_> = cpus.iter().map(|&cpu| Atomic::new(cpu)).collect();
    let guards: Vec<_> = cpus
        .iter()
        .zip(&cells)
        .map(|(&cpu, cell)| {
            on(cpu);
            drop(cell.load());
            cell.load().expect("a value")
        })
        .collect();
    for cell in &cells {
        cell.take().expect("a value").retire_in(&domain);
    }
    assert_eq!(domain.drain(), 0);
    for (guard, &cpu) in guards.iter().zip(&cpus) {
        assert_eq!((**guard, line(guard)), (cpu, Some(cpu)));
    }
    let half = cpus.len() / 2;
    let mut guards = guards.into_iter();
    guards.by_ref().take(half).for_each(drop);
    assert_eq!(domain.drain(), half);
    thread::spawn(move || guards.for_each(drop))
        .join()
        .expect("a thread");
    assert_eq!(domain.drain(), cpus.len() - half);
}

/// Asked for by name, the index that this kernel does not have is not taken.
#[test]
#[ignore = "for the guest of ci/guest.sh"]
fn concurrency_ids_are_not_believed() {
    let mut program = Command::new(env!("CARGO_BIN_EXE_hp-child"));
    program.args(["smoke", "rounds=200"]);
    let outcome = run(&mut program, &[("HP_INDEX", "mm_cid")]).expect_ok();
    assert_eq!(outcome.field("rung"), "rseq", "{outcome}");
    assert_eq!(outcome.field("index"), "cpu_id", "{outcome}");
}
