//! Short concurrent histories of each structure under each scheme are linearizable; histories of structures with a planted
//! fault are found not to be.

mod common;

use common::{Random, linked, scaled, schemes};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;
use structures::linear::{Clock, Done, Model, linearize};
use structures::{
    Cell, Census, Queue, Scheme, Stack, Thread, Visit, VisitCell, dispatch, dispatch_cell,
};

const THREADS: usize = 3;
const EACH: usize = 4;
const ROUNDS: usize = scaled(400, 3);

#[derive(Clone, Copy, Debug)]
enum Op {
    /// Puts in; a cell gives what was there.
    Put(u64),
    /// Takes out; a cell is read.
    Take,
    /// What would be taken out.
    Look,
}
type Out = Option<u64>;
type History = Vec<Done<Op, Out>>;

/// Structures that are empty at first.
trait Subject: Sync {
    type Part<'a>
    where
        Self: 'a;
    fn part(&self) -> Self::Part<'_>;
    fn run(&self, part: &mut Self::Part<'_>, op: &Op) -> Out;
    /// Waits, between operations.
    fn wait(part: &mut Self::Part<'_>, barrier: &Barrier);
}

#[derive(Clone, PartialEq, Eq, Hash, Default)]
struct AsStack(Vec<u64>);

impl Model for AsStack {
    type Op = Op;
    type Out = Out;

    fn apply(&mut self, op: &Op) -> Out {
        match *op {
            Op::Put(value) => {
                self.0.push(value);
                None
            }
            Op::Take => self.0.pop(),
            Op::Look => self.0.last().copied(),
        }
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Default)]
struct AsQueue(VecDeque<u64>);

impl Model for AsQueue {
    type Op = Op;
    type Out = Out;

    fn apply(&mut self, op: &Op) -> Out {
        match *op {
            Op::Put(value) => {
                self.0.push_back(value);
                None
            }
            Op::Take => self.0.pop_front(),
            Op::Look => self.0.front().copied(),
        }
    }
}

/// A cell: putting in gives what was there.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
struct AsCell(u64);

impl Model for AsCell {
    type Op = Op;
    type Out = Out;

    fn apply(&mut self, op: &Op) -> Out {
        match *op {
            Op::Put(value) => Some(std::mem::replace(&mut self.0, value)),
            Op::Take | Op::Look => Some(self.0),
        }
    }
}

/// The first history of `rounds` that is not linearizable. After each round the subject is brought back to the model's
/// first state by `last`, operations of one thread that belong to the history.
fn find_fault<M, X>(
    subject: &X,
    rounds: usize,
    last: impl Fn(&X, &Clock) -> History,
) -> Option<History>
where
    M: Model<Op = Op, Out = Out> + Default,
    X: Subject,
{
    let clock = Clock::new();
    let barrier = Barrier::new(THREADS + 1);
    let arrived = AtomicUsize::new(0);
    let histories = Mutex::new(Vec::new());
    let over = AtomicUsize::new(0);
    thread::scope(|scope| {
        for number in 0..THREADS {
            let (clock, barrier, arrived, histories, over) =
                (&clock, &barrier, &arrived, &histories, &over);
            scope.spawn(move || {
                let mut part = subject.part();
                let mut random = Random::new(number as u64 + 1);
                let mut serial = (number as u64) << 32;
                for round in 1.. {
                    X::wait(&mut part, barrier);
                    if over.load(Ordering::Relaxed) != 0 {
                        return;
                    }
                    // All at once, as far as there are processors.
                    arrived.fetch_add(1, Ordering::AcqRel);
                    let mut spins = 0;
                    while arrived.load(Ordering::Acquire) < round * THREADS {
                        spins += 1;
                        if spins % 64 == 0 {
                            thread::yield_now();
                        }
                        std::hint::spin_loop();
                    }
                    let mut history = Vec::with_capacity(EACH);
                    for _ in 0..EACH {
                        serial += 1;
                        let op = match random.below(5) {
                            0 | 1 => Op::Put(serial),
                            2 | 3 => Op::Take,
                            _ => Op::Look,
                        };
                        history.push(clock.record(op, |op| subject.run(&mut part, op)));
                    }
                    histories.lock().unwrap().extend(history);
                    X::wait(&mut part, barrier);
                }
            });
        }
        let mut found = None;
        for _ in 0..rounds {
            barrier.wait();
            barrier.wait();
            let mut history = std::mem::take(&mut *histories.lock().unwrap());
            history.extend(last(subject, &clock));
            if linearize(&M::default(), &history).is_none() {
                found = Some(history);
                break;
            }
        }
        over.store(1, Ordering::Relaxed);
        barrier.wait();
        found
    })
}

/// Takes out until there is nothing.
fn drain<X: Subject>(subject: &X, clock: &Clock) -> History {
    let mut part = subject.part();
    let mut history = Vec::new();
    loop {
        let done = clock.record(Op::Take, |op| subject.run(&mut part, op));
        let empty = done.out.is_none();
        history.push(done);
        if empty {
            return history;
        }
    }
}

/// Puts the first number back.
fn reset<X: Subject>(subject: &X, clock: &Clock) -> History {
    let mut part = subject.part();
    vec![clock.record(Op::Put(0), |op| subject.run(&mut part, op))]
}

impl<S: Scheme> Subject for Stack<S> {
    type Part<'a> = S::Thread<'a, 1>;

    fn part(&self) -> Self::Part<'_> {
        self.thread()
    }

    fn run(&self, part: &mut Self::Part<'_>, op: &Op) -> Out {
        match *op {
            Op::Put(value) => {
                self.push(part, value);
                None
            }
            Op::Take => self.pop(part),
            Op::Look => self.peek(part),
        }
    }

    fn wait(part: &mut Self::Part<'_>, barrier: &Barrier) {
        part.idle(|| barrier.wait());
    }
}

impl<S: Scheme> Subject for Queue<S> {
    type Part<'a> = S::Thread<'a, 2>;

    fn part(&self) -> Self::Part<'_> {
        self.thread()
    }

    fn run(&self, part: &mut Self::Part<'_>, op: &Op) -> Out {
        match *op {
            Op::Put(value) => {
                self.enqueue(part, value);
                None
            }
            Op::Take => self.dequeue(part),
            Op::Look => self.peek(part),
        }
    }

    fn wait(part: &mut Self::Part<'_>, barrier: &Barrier) {
        part.idle(|| barrier.wait());
    }
}

struct CellSubject<C>(C);

impl<C: Cell> Subject for CellSubject<C> {
    type Part<'a> = C::Thread<'a>;

    fn part(&self) -> Self::Part<'_> {
        self.0.thread()
    }

    fn run(&self, part: &mut Self::Part<'_>, op: &Op) -> Out {
        Some(match *op {
            Op::Put(value) => self.0.swap(part, value),
            Op::Take | Op::Look => self.0.get(part),
        })
    }

    fn wait(part: &mut Self::Part<'_>, barrier: &Barrier) {
        C::idle(part, || barrier.wait());
    }
}

struct OnStack;

impl Visit for OnStack {
    type Out = ();

    fn visit<S: Scheme>(self) {
        let stack = Stack::<S>::new(Census::leak());
        let found = find_fault::<AsStack, _>(&stack, ROUNDS, drain);
        assert!(found.is_none(), "{}: {found:#?}", S::ABOUT.name);
    }
}

struct OnQueue;

impl Visit for OnQueue {
    type Out = ();

    fn visit<S: Scheme>(self) {
        let queue = Queue::<S>::new(Census::leak());
        let found = find_fault::<AsQueue, _>(&queue, ROUNDS, drain);
        assert!(found.is_none(), "{}: {found:#?}", S::ABOUT.name);
    }
}

struct OnCell;

impl VisitCell for OnCell {
    type Out = ();

    fn visit<C: Cell>(self) {
        let cell = CellSubject(C::new(0, Census::leak()));
        let found = find_fault::<AsCell, _>(&cell, ROUNDS, reset_cell);
        assert!(found.is_none(), "{}: {found:#?}", C::ABOUT.name);
    }
}

fn reset_cell<C: Cell>(cell: &CellSubject<C>, clock: &Clock) -> History {
    reset(cell, clock)
}

#[test]
fn histories_of_a_stack_are_linearizable() {
    for about in linked() {
        dispatch(about.name, OnStack).expect("listed");
    }
}

#[test]
fn histories_of_a_queue_are_linearizable() {
    for about in linked() {
        dispatch(about.name, OnQueue).expect("listed");
    }
}

#[test]
fn histories_of_a_cell_are_linearizable() {
    for about in schemes() {
        dispatch_cell(about.name, OnCell).expect("listed");
    }
}

/// What a structure with a lock does wrong.
#[derive(Clone, Copy, PartialEq)]
enum Planted {
    /// Nothing.
    Nothing,
    /// Looks and takes in two steps.
    TakesTwice,
    /// Puts in after it has said that it had.
    PutsLate,
}

/// A deque behind a lock, with a fault.
struct Faulty(Mutex<VecDeque<u64>>, Planted);

impl Subject for Faulty {
    /// What is still to be put in.
    type Part<'a> = Option<u64>;

    fn part(&self) -> Option<u64> {
        None
    }

    fn run(&self, late: &mut Option<u64>, op: &Op) -> Out {
        let lock = || self.0.lock().unwrap();
        if let Some(value) = late.take() {
            lock().push_back(value);
        }
        match (*op, self.1) {
            (Op::Put(value), Planted::PutsLate) => {
                *late = Some(value);
                None
            }
            (Op::Put(value), _) => {
                lock().push_back(value);
                None
            }
            (Op::Take, Planted::TakesTwice) => {
                let first = lock().front().copied();
                thread::yield_now();
                lock().pop_front();
                first
            }
            (Op::Take, _) => lock().pop_front(),
            (Op::Look, _) => lock().front().copied(),
        }
    }

    fn wait(late: &mut Option<u64>, barrier: &Barrier) {
        // Nothing stays behind: the fault must show within the round.
        let _ = late.take();
        barrier.wait();
    }
}

#[test]
fn a_queue_behind_a_lock_is_linearizable() {
    let queue = Faulty(Mutex::default(), Planted::Nothing);
    assert!(find_fault::<AsQueue, _>(&queue, ROUNDS, drain).is_none());
}

#[test]
fn a_queue_that_takes_in_two_steps_is_found() {
    let queue = Faulty(Mutex::default(), Planted::TakesTwice);
    let found = find_fault::<AsQueue, _>(&queue, scaled(100_000, 200), drain);
    assert!(found.is_some());
}

#[test]
fn a_queue_that_puts_in_late_is_found() {
    let queue = Faulty(Mutex::default(), Planted::PutsLate);
    let found = find_fault::<AsQueue, _>(&queue, scaled(100_000, 200), drain);
    assert!(found.is_some());
}

#[test]
fn a_queue_is_no_stack() {
    let queue = Faulty(Mutex::default(), Planted::Nothing);
    let found = find_fault::<AsStack, _>(&queue, scaled(100_000, 200), drain);
    assert!(found.is_some());
}
