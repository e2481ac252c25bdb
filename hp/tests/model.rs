//! Random sequences of operations on one cell, its guards and a domain,
//! against a sequential model of what must be alive and what must be dropped.

mod common;

use common::{Counted, Drops};
use hp::{Atomic, Domain, Guard, HazardPointer, Unlinked};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

/// One operation. Numbers choose among what there is at that moment.
#[derive(Clone, Debug)]
enum Op {
    Load,
    Clone(usize),
    Detach(usize),
    DropGuard(usize),
    Store,
    Swap,
    Take,
    /// Expects what guard `n` protects, or an empty cell.
    Exchange(Option<usize>, bool),
    Update,
    GetMut,
    RetireUnlinked(usize),
    DropUnlinked(usize),
    IntoBox(usize),
    Hold(usize),
    Reset(usize),
    Reclaim(usize),
    Drain,
    /// Drops the domain and makes another.
    Renew,
}

fn op() -> impl Strategy<Value = Op> {
    let n = 0usize..64;
    prop_oneof![
        6 => Just(Op::Load),
        2 => n.clone().prop_map(Op::Clone),
        2 => n.clone().prop_map(Op::Detach),
        5 => n.clone().prop_map(Op::DropGuard),
        3 => Just(Op::Store),
        4 => Just(Op::Swap),
        2 => Just(Op::Take),
        4 => (proptest::option::of(n.clone()), any::<bool>())
            .prop_map(|(n, some)| Op::Exchange(n, some)),
        1 => Just(Op::Update),
        1 => Just(Op::GetMut),
        4 => n.clone().prop_map(Op::RetireUnlinked),
        2 => n.clone().prop_map(Op::DropUnlinked),
        2 => n.clone().prop_map(Op::IntoBox),
        2 => n.clone().prop_map(Op::Hold),
        1 => n.clone().prop_map(Op::Reset),
        2 => n.prop_map(Op::Reclaim),
        2 => Just(Op::Drain),
        1 => Just(Op::Renew),
    ]
}

/// Where a value is, besides in guards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Cell,
    Unlinked,
    Own,
    Global,
    Dropped,
}

/// The real things, and what they should be.
struct Machine {
    cell: Atomic<Counted>,
    guards: Vec<Guard<Counted>>,
    hazards: [(HazardPointer, Option<usize>); 2],
    unlinked: Vec<Unlinked<Counted>>,
    domain: Domain,
    drops: Drops,
    place: BTreeMap<usize, Place>,
    next: usize,
    /// What the domain in use should have counted.
    retired: u64,
}

impl Machine {
    fn new() -> Self {
        Self {
            cell: Atomic::null(),
            guards: Vec::new(),
            hazards: [(HazardPointer::new(), None), (HazardPointer::new(), None)],
            unlinked: Vec::new(),
            domain: Domain::new(),
            drops: Drops::new(),
            place: BTreeMap::new(),
            next: 0,
            retired: 0,
        }
    }

    fn fresh(&mut self) -> Box<Counted> {
        self.next += 1;
        Box::new(self.drops.value(self.next))
    }

    fn in_cell(&self) -> Option<usize> {
        self.place
            .iter()
            .find_map(|(&value, &place)| (place == Place::Cell).then_some(value))
    }

    fn protected(&self) -> BTreeSet<usize> {
        let held = self.hazards.iter().filter_map(|(_, value)| *value);
        self.guards
            .iter()
            .map(|guard| guard.get())
            .chain(held)
            .collect()
    }

    fn at(&self, wanted: Place) -> Vec<usize> {
        self.place
            .iter()
            .filter(|&(_, &place)| place == wanted)
            .map(|(&value, _)| value)
            .collect()
    }

    /// What a full pass over `place` must free: all of it that nobody holds.
    fn free(&mut self, place: Place) -> usize {
        let protected = self.protected();
        let gone: Vec<_> = self
            .at(place)
            .into_iter()
            .filter(|value| !protected.contains(value))
            .collect();
        for value in &gone {
            self.place.insert(*value, Place::Dropped);
        }
        gone.len()
    }

    fn unlink(&mut self, old: Option<Unlinked<Counted>>) -> Result<(), TestCaseError> {
        let expected = self.in_cell();
        prop_assert_eq!(old.as_ref().map(|old| old.get()), expected);
        if let Some(old) = old {
            self.place.insert(old.get(), Place::Unlinked);
            self.unlinked.push(old);
        }
        Ok(())
    }

    fn step(&mut self, op: Op) -> Result<(), TestCaseError> {
        match op {
            Op::Load => {
                let guard = self.cell.load();
                prop_assert_eq!(guard.as_ref().map(|guard| guard.get()), self.in_cell());
                self.guards.extend(guard);
            }
            Op::Clone(n) if !self.guards.is_empty() => {
                let clone = self.guards[n % self.guards.len()].clone();
                self.guards.push(clone);
            }
            Op::Detach(n) if !self.guards.is_empty() => {
                let n = n % self.guards.len();
                self.guards[n].detach();
            }
            Op::DropGuard(n) if !self.guards.is_empty() => {
                drop(self.guards.swap_remove(n % self.guards.len()));
            }
            Op::Store => {
                let new = self.fresh();
                if let Some(old) = self.in_cell() {
                    self.place.insert(old, Place::Global);
                }
                self.place.insert(new.get(), Place::Cell);
                self.cell.store(new);
            }
            Op::Swap => {
                let new = self.fresh();
                let value = new.get();
                let old = self.cell.swap(new);
                self.unlink(old)?;
                self.place.insert(value, Place::Cell);
            }
            Op::Take => {
                let old = self.cell.take();
                self.unlink(old)?;
            }
            Op::Exchange(n, some) => {
                let guard = n
                    .filter(|_| !self.guards.is_empty())
                    .map(|n| self.guards[n % self.guards.len()].clone());
                let expected = guard.as_ref().map(|guard| guard.get());
                let now = self.in_cell();
                let new = some.then(|| self.fresh());
                let value = new.as_deref().map(Counted::get);
                match self.cell.compare_exchange(guard.as_ref(), new) {
                    Ok(old) => {
                        prop_assert_eq!(expected, now);
                        self.unlink(old)?;
                        if let Some(value) = value {
                            self.place.insert(value, Place::Cell);
                        }
                    }
                    Err(failed) => {
                        prop_assert_ne!(expected, now);
                        prop_assert_eq!(failed.current.as_ref().map(|g| g.get()), now);
                        prop_assert_eq!(failed.new.as_deref().map(Counted::get), value);
                        if let Some(value) = value {
                            self.place.insert(value, Place::Dropped);
                        }
                    }
                }
            }
            Op::Update => {
                let new = self.fresh();
                let (value, now) = (new.get(), self.in_cell());
                let mut new = Some(new);
                let old = self.cell.update(|seen| {
                    assert_eq!(seen.map(Counted::get), now);
                    new.take()
                });
                self.unlink(old)?;
                self.place.insert(value, Place::Cell);
            }
            Op::GetMut => {
                let now = self.in_cell();
                let free = now.is_some_and(|now| !self.protected().contains(&now));
                let got = self.cell.get_mut().map(|value| value.get());
                prop_assert_eq!(got, now.filter(|_| free));
            }
            Op::RetireUnlinked(n) if !self.unlinked.is_empty() => {
                let old = self.unlinked.swap_remove(n % self.unlinked.len());
                self.place.insert(old.get(), Place::Own);
                old.retire_in(&self.domain);
                self.retired += 1;
            }
            Op::DropUnlinked(n) if !self.unlinked.is_empty() => {
                let old = self.unlinked.swap_remove(n % self.unlinked.len());
                self.place.insert(old.get(), Place::Global);
                drop(old);
            }
            Op::IntoBox(n) if !self.unlinked.is_empty() => {
                let old = self.unlinked.swap_remove(n % self.unlinked.len());
                let value = old.get();
                let held = self.protected().contains(&value);
                match old.try_into_box(Duration::ZERO) {
                    Ok(back) => {
                        prop_assert!(!held);
                        prop_assert_eq!(back.get(), value);
                        self.place.insert(value, Place::Dropped);
                    }
                    Err(old) => {
                        // With no time at all it may also give up early.
                        self.unlinked.push(old);
                    }
                }
            }
            Op::Hold(n) if !self.guards.is_empty() => {
                let guard = &self.guards[n % self.guards.len()];
                let (hazard, holds) = &mut self.hazards[n % 2];
                hazard.protect_raw(guard.as_ptr().cast());
                *holds = Some(guard.get());
            }
            Op::Reset(n) => {
                let (hazard, holds) = &mut self.hazards[n % 2];
                hazard.reset();
                *holds = None;
            }
            Op::Reclaim(budget) => {
                let before = self.drops.count();
                let freed = self.domain.reclaim(budget);
                prop_assert!(freed <= budget);
                prop_assert_eq!(self.drops.count() - before, freed);
                // Which ones is the domain's business: those that are gone
                // from it must not be protected.
                let left = self.domain.stats().pending;
                let own = self.at(Place::Own);
                prop_assert_eq!(left, (own.len() - freed) as u64);
                let (domain, drops) = (&self.domain, &self.drops);
                // Make it certain again by a full pass.
                let before = drops.count();
                let rest = domain.drain();
                prop_assert_eq!(drops.count() - before, rest);
                let all = self.free(Place::Own);
                prop_assert_eq!(all, freed + rest);
            }
            Op::Drain => {
                let freed = self.domain.drain();
                prop_assert_eq!(freed, self.free(Place::Own));
            }
            Op::Renew => {
                self.domain = Domain::new();
                self.retired = 0;
                self.free(Place::Own);
                for kept in self.at(Place::Own) {
                    self.place.insert(kept, Place::Global);
                }
            }
            // Nothing to choose from.
            _ => {}
        }
        self.check()
    }

    fn check(&self) -> Result<(), TestCaseError> {
        // Every guard's value is alive, or `get` panics.
        let protected = self.protected();
        for value in &protected {
            prop_assert!(self.place[value] != Place::Dropped, "{} is gone", value);
        }
        let dropped = self.at(Place::Dropped).len();
        // The global domain reclaims when it likes.
        let global = self.at(Place::Global);
        let may = global
            .iter()
            .filter(|value| !protected.contains(value))
            .count();
        let drops = self.drops.count();
        prop_assert!((dropped..=dropped + may).contains(&drops));
        let stats = self.domain.stats();
        prop_assert_eq!(stats.retired, self.retired);
        prop_assert_eq!(stats.pending, self.at(Place::Own).len() as u64);
        prop_assert_eq!(stats.reclaimed + stats.pending, stats.retired);
        Ok(())
    }

    /// Everything goes; everything must have been dropped, once.
    fn finish(self) -> Result<(), TestCaseError> {
        let (made, drops) = (self.next, self.drops.clone());
        drop(self);
        Domain::global().drain();
        prop_assert_eq!(drops.count(), made);
        Ok(())
    }
}

/// Threads that take turns: each performs an operation while the others stand
/// still, so that the sequential model holds, and what one made another ends.
struct Crew {
    members: Vec<Member>,
    answer: mpsc::Sender<Answer>,
    answers: mpsc::Receiver<Answer>,
}

struct Member {
    work: mpsc::Sender<(Machine, Op)>,
    thread: thread::JoinHandle<()>,
}

type Answer = (Machine, Result<(), TestCaseError>);

impl Crew {
    /// Each on a CPU of its own as far as there are any.
    fn new(size: usize) -> Self {
        let (answer, answers) = mpsc::channel();
        let members = (0..size).map(|n| member(n, answer.clone())).collect();
        Self {
            members,
            answer,
            answers,
        }
    }

    fn step(&self, n: usize, machine: Machine, op: Op) -> Answer {
        self.members[n].work.send((machine, op)).expect("a member");
        self.answers.recv().expect("this holds a sender itself")
    }

    /// Another thread takes the place of member `n`, on another CPU; `n`'s ends.
    fn replace(&mut self, n: usize) {
        let new = member(n + 1, self.answer.clone());
        end(std::mem::replace(&mut self.members[n], new));
    }
}

fn member(n: usize, answer: mpsc::Sender<Answer>) -> Member {
    let (work, orders) = mpsc::channel::<(Machine, Op)>();
    let thread = thread::spawn(move || {
        settle(n);
        for (mut machine, op) in orders {
            let result = panic::catch_unwind(AssertUnwindSafe(|| machine.step(op)))
                .unwrap_or_else(|_| Err(TestCaseError::fail("a panic, see above")));
            answer.send((machine, result)).expect("the crew listens");
        }
    });
    Member { work, thread }
}

/// Waits for the thread, with its thread-locals.
fn end(member: Member) {
    drop(member.work);
    member.thread.join().expect("a member ends");
}

/// Binds the calling thread to the `n`th of the CPUs that it may use.
fn settle(n: usize) {
    #[cfg(all(target_os = "linux", not(miri)))]
    // SAFETY: a CPU set is plain bits; the calls fill and read one of this size.
    unsafe {
        let size = size_of::<libc::cpu_set_t>();
        let mut allowed: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size, &raw mut allowed) == 0 {
            let cpus: Vec<_> = (0..libc::CPU_SETSIZE as usize)
                .filter(|&cpu| libc::CPU_ISSET(cpu, &allowed))
                .collect();
            let mut one: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(cpus[n % cpus.len()], &mut one);
            libc::sched_setaffinity(0, size, &raw const one);
        }
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    let _ = n;
}

/// How many sequences, and of which seed: the same in every run, or what
/// `PROPTEST_CASES` and `HP_MODEL_SEED` (a number) ask for.
fn runner(cases: u32) -> TestRunner {
    let asked = |name| std::env::var(name).ok().filter(|text| !text.is_empty());
    let cases = asked("PROPTEST_CASES").map_or(cases, |text| text.parse().expect("a number"));
    let seed: u64 = asked("HP_MODEL_SEED").map_or(0, |text| text.parse().expect("a number"));
    println!("{cases} sequences, HP_MODEL_SEED={seed}");
    let config = Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
}

/// One test at a time: what one leaves to the global domain another would free,
/// between two looks of the first.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn any_sequence_agrees_with_the_model() {
    let _one = alone();
    let length = if cfg!(miri) { 15 } else { 150 };
    runner(if cfg!(miri) { 2 } else { 400 })
        .run(&proptest::collection::vec(op(), 0..length), |ops| {
            let mut machine = Machine::new();
            for op in ops {
                machine.step(op)?;
            }
            machine.finish()
        })
        .unwrap_or_else(|failure| panic!("{failure}"));
}

/// The same, each operation by one of three threads, which may end (`None`) and
/// be followed by a fresh one: guards, hazard pointers and what waits pass from
/// thread to thread and from CPU to CPU, and outlive whoever made them.
#[test]
fn any_sequence_over_threads_agrees_with_the_model() {
    const CREW: usize = 3;
    let _one = alone();
    let length = if cfg!(miri) { 15 } else { 120 };
    let order = (0..CREW, proptest::option::weighted(0.95, op()));
    runner(if cfg!(miri) { 2 } else { 300 })
        .run(&proptest::collection::vec(order, 0..length), |orders| {
            let mut crew = Crew::new(CREW);
            let mut machine = Machine::new();
            let mut result = Ok(());
            for (n, op) in orders {
                match op {
                    Some(op) => (machine, result) = crew.step(n, machine, op),
                    None => crew.replace(n),
                }
                if result.is_err() {
                    break;
                }
            }
            crew.members.into_iter().for_each(end);
            result?;
            machine.finish()
        })
        .unwrap_or_else(|failure| panic!("{failure}"));
}
