//! Floor 3, bench-suite. Owns what `structures` asks of a structure, whichever it is: one operation, a pause inside, a
//! walk, the content at the end. May touch the crate `structures`.
//!
//! Values name where they come from, so that a reader can tell whether what it read is whole, and the content at the end
//! can be checked against the operations by a count and a sum.

use super::dist::Op;
use ::structures::metered::{Meter, Metered};
use ::structures::schemes::ArcCell;
use ::structures::{Cell, Census, Map, Queue, Scan, Scheme, Stack, SwapCell, Thread};

/// What an operation did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Did {
    /// The value given is in.
    pub(super) put: bool,
    /// A value that was in, and is not any more.
    pub(super) took: Option<u64>,
    /// A value that was seen.
    pub(super) saw: Option<u64>,
}

/// A structure under a scheme.
pub(super) trait Subject: Send + Sync + Sized {
    /// What a thread keeps between operations.
    type Thread<'a>
    where
        Self: 'a;

    /// Nodes that are no elements: a dummy.
    const OTHERS: u64 = 0;

    /// Empty (but for a cell's object); `elements` are expected at a time.
    fn new(elements: u64, census: &'static Census) -> Self;

    fn thread(&self) -> Self::Thread<'_>;

    /// The value that the `serial`-th insertion of `worker` puts in.
    #[inline(always)]
    fn value(key: u64, worker: usize, serial: u64) -> u64 {
        let _ = key;
        seal((worker as u64 & 0xfff) << 36 | serial & 0xf_ffff_ffff)
    }

    /// Whether `value` can have been put under `key`.
    #[inline(always)]
    fn is_whole(key: u64, value: u64) -> bool {
        let _ = key;
        seal(value >> 16) == value
    }

    /// One operation.
    fn act(&self, thread: &mut Self::Thread<'_>, op: Op, key: u64, value: u64) -> Did;

    /// Runs `pause` with something protected.
    fn hold(&self, thread: &mut Self::Thread<'_>, pause: impl FnOnce());

    /// Runs `pause`, in which the thread sleeps between operations.
    fn idle(thread: &mut Self::Thread<'_>, pause: impl FnOnce());

    /// Visits all elements. Only where there is a walk.
    fn walk(&self, thread: &mut Self::Thread<'_>, visit: impl FnMut(u64, u64)) -> Scan {
        let _ = (thread, visit);
        Scan::default()
    }

    /// Visits what is in at the end; it may be taken out for that.
    fn content(&self, visit: impl FnMut(u64));

    fn flush(&self);

    /// What retirements took, of threads that have ended; `None` where nothing is retired.
    fn meter(&self) -> Option<Meter>;

    /// The documented bound on what waits.
    fn bound(&self, threads: usize) -> Option<usize>;
}

/// A number of 48 bits and what follows from it.
#[inline(always)]
fn seal(number: u64) -> u64 {
    number << 16 | number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48
}

/// A map.
pub(super) struct OnMap<M>(M);

impl<S: Scheme, M: Map<Scheme = Metered<S>>> Subject for OnMap<M> {
    type Thread<'a> = M::Thread<'a>;

    fn new(elements: u64, census: &'static Census) -> Self {
        OnMap(M::new(elements as usize, census))
    }

    fn thread(&self) -> Self::Thread<'_> {
        self.0.thread()
    }

    #[inline(always)]
    fn value(key: u64, worker: usize, serial: u64) -> u64 {
        key << 40 | (worker as u64 & 0xfff) << 28 | serial & 0xfff_ffff
    }

    #[inline(always)]
    fn is_whole(key: u64, value: u64) -> bool {
        value >> 40 == key
    }

    #[inline(always)]
    fn act(&self, thread: &mut Self::Thread<'_>, op: Op, key: u64, value: u64) -> Did {
        match op {
            Op::Get => Did {
                saw: self.0.get(thread, key),
                ..Did::default()
            },
            Op::Insert => Did {
                put: self.0.insert(thread, key, value),
                ..Did::default()
            },
            Op::Remove => Did {
                took: self.0.remove(thread, key),
                ..Did::default()
            },
        }
    }

    fn hold(&self, thread: &mut Self::Thread<'_>, pause: impl FnOnce()) {
        self.0.hold(thread, pause);
    }

    fn idle(thread: &mut Self::Thread<'_>, pause: impl FnOnce()) {
        thread.idle(pause);
    }

    fn walk(&self, thread: &mut Self::Thread<'_>, visit: impl FnMut(u64, u64)) -> Scan {
        self.0.scan(thread, visit)
    }

    fn content(&self, mut visit: impl FnMut(u64)) {
        self.0.scan(&mut self.0.thread(), |_, value| visit(value));
    }

    fn flush(&self) {
        self.0.flush();
    }

    fn meter(&self) -> Option<Meter> {
        Some(self.0.scheme().meter())
    }

    fn bound(&self, threads: usize) -> Option<usize> {
        self.0.scheme().bound(threads, SLOTS)
    }
}

/// At least as many slots as a thread of any structure has.
const SLOTS: usize = 16;

/// A stack: gets look at the top, insertions push, removals pop.
pub(super) struct OnStack<S: Scheme>(Stack<Metered<S>>);

impl<S: Scheme> Subject for OnStack<S> {
    type Thread<'a> = <Metered<S> as Scheme>::Thread<'a, 1>;

    fn new(_: u64, census: &'static Census) -> Self {
        OnStack(Stack::new(census))
    }

    fn thread(&self) -> Self::Thread<'_> {
        self.0.thread()
    }

    #[inline(always)]
    fn act(&self, thread: &mut Self::Thread<'_>, op: Op, _: u64, value: u64) -> Did {
        match op {
            Op::Get => Did {
                saw: self.0.peek(thread),
                ..Did::default()
            },
            Op::Insert => {
                self.0.push(thread, value);
                Did {
                    put: true,
                    ..Did::default()
                }
            }
            Op::Remove => Did {
                took: self.0.pop(thread),
                ..Did::default()
            },
        }
    }

    fn hold(&self, thread: &mut Self::Thread<'_>, pause: impl FnOnce()) {
        self.0.hold(thread, pause);
    }

    fn idle(thread: &mut Self::Thread<'_>, pause: impl FnOnce()) {
        thread.idle(pause);
    }

    fn content(&self, mut visit: impl FnMut(u64)) {
        let mut thread = self.0.thread();
        while let Some(value) = self.0.pop(&mut thread) {
            visit(value);
        }
    }

    fn flush(&self) {
        self.0.flush();
    }

    fn meter(&self) -> Option<Meter> {
        Some(self.0.scheme().meter())
    }

    fn bound(&self, threads: usize) -> Option<usize> {
        self.0.scheme().bound(threads, SLOTS)
    }
}

/// A queue: gets look at what is first, insertions enqueue, removals dequeue.
pub(super) struct OnQueue<S: Scheme>(Queue<Metered<S>>);

impl<S: Scheme> Subject for OnQueue<S> {
    type Thread<'a> = <Metered<S> as Scheme>::Thread<'a, 2>;

    const OTHERS: u64 = 1;

    fn new(_: u64, census: &'static Census) -> Self {
        OnQueue(Queue::new(census))
    }

    fn thread(&self) -> Self::Thread<'_> {
        self.0.thread()
    }

    #[inline(always)]
    fn act(&self, thread: &mut Self::Thread<'_>, op: Op, _: u64, value: u64) -> Did {
        match op {
            Op::Get => Did {
                saw: self.0.peek(thread),
                ..Did::default()
            },
            Op::Insert => {
                self.0.enqueue(thread, value);
                Did {
                    put: true,
                    ..Did::default()
                }
            }
            Op::Remove => Did {
                took: self.0.dequeue(thread),
                ..Did::default()
            },
        }
    }

    fn hold(&self, thread: &mut Self::Thread<'_>, pause: impl FnOnce()) {
        self.0.hold(thread, pause);
    }

    fn idle(thread: &mut Self::Thread<'_>, pause: impl FnOnce()) {
        thread.idle(pause);
    }

    fn content(&self, mut visit: impl FnMut(u64)) {
        let mut thread = self.0.thread();
        while let Some(value) = self.0.dequeue(&mut thread) {
            visit(value);
        }
    }

    fn flush(&self) {
        self.0.flush();
    }

    fn meter(&self) -> Option<Meter> {
        Some(self.0.scheme().meter())
    }

    fn bound(&self, threads: usize) -> Option<usize> {
        self.0.scheme().bound(threads, SLOTS)
    }
}

/// A cell: gets read it, insertions and removals swap.
pub(super) struct OnCell<C>(C);

/// What a cell is told of its meter.
pub(super) trait HasMeter {
    fn meter(&self) -> Option<Meter>;
    fn bound(&self, threads: usize) -> Option<usize>;
}

impl<S: Scheme> HasMeter for SwapCell<Metered<S>> {
    fn meter(&self) -> Option<Meter> {
        Some(self.scheme().meter())
    }

    fn bound(&self, threads: usize) -> Option<usize> {
        self.scheme().bound(threads, SLOTS)
    }
}

impl HasMeter for ArcCell {
    fn meter(&self) -> Option<Meter> {
        None
    }

    fn bound(&self, _: usize) -> Option<usize> {
        None
    }
}

impl<C: Cell + HasMeter> Subject for OnCell<C> {
    type Thread<'a> = C::Thread<'a>;

    fn new(_: u64, census: &'static Census) -> Self {
        OnCell(C::new(Self::value(0, super::crew::PREFILLER, 0), census))
    }

    fn thread(&self) -> Self::Thread<'_> {
        self.0.thread()
    }

    #[inline(always)]
    fn act(&self, thread: &mut Self::Thread<'_>, op: Op, _: u64, value: u64) -> Did {
        match op {
            Op::Get => Did {
                saw: Some(self.0.get(thread)),
                ..Did::default()
            },
            Op::Insert | Op::Remove => Did {
                put: true,
                took: Some(self.0.swap(thread, value)),
                saw: None,
            },
        }
    }

    fn hold(&self, thread: &mut Self::Thread<'_>, pause: impl FnOnce()) {
        self.0.hold(thread, pause);
    }

    fn idle(thread: &mut Self::Thread<'_>, pause: impl FnOnce()) {
        C::idle(thread, pause);
    }

    fn content(&self, mut visit: impl FnMut(u64)) {
        visit(self.0.get(&mut self.0.thread()));
    }

    fn flush(&self) {
        self.0.flush();
    }

    fn meter(&self) -> Option<Meter> {
        self.0.meter()
    }

    fn bound(&self, threads: usize) -> Option<usize> {
        self.0.bound(threads)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::structures::schemes::{Hp, Native};
    use ::structures::{List, SkipList};

    type Ours = Metered<Hp<Native>>;

    fn does_what_it_says<S: Subject>(is_cell: bool) {
        let census = Census::leak();
        let subject = S::new(4, census);
        let mut thread = subject.thread();
        let value = S::value(3, 1, 9);
        assert!(S::is_whole(3, value));
        assert!(!S::is_whole(3, value ^ (1 << 41)), "a bit is wrong");
        let did = subject.act(&mut thread, Op::Insert, 3, value);
        assert!(did.put && did.took.is_some() == is_cell);
        assert_eq!(
            subject.act(&mut thread, Op::Get, 3, 0).saw,
            Some(value),
            "just put in"
        );
        let mut content = Vec::new();
        subject.content(|value| content.push(value));
        assert_eq!(content, [value]);
        subject.hold(&mut thread, || ());
        drop(thread);
        subject.flush();
    }

    #[test]
    fn subjects() {
        does_what_it_says::<OnCell<SwapCell<Ours>>>(true);
        does_what_it_says::<OnCell<ArcCell>>(true);
        does_what_it_says::<OnStack<Hp<Native>>>(false);
        does_what_it_says::<OnQueue<Hp<Native>>>(false);
        does_what_it_says::<OnMap<List<Ours>>>(false);
        does_what_it_says::<OnMap<::structures::HashMap<Ours>>>(false);
        does_what_it_says::<OnMap<SkipList<Ours>>>(false);
    }
}
