//! The three read sides of `rcu-lite`.
//!
//! Floor 3. Elements are published by their addresses.

use super::{Flavour, Parcel};
use crate::plan::Dimension;
use crate::world::{Element, World};
use rcu_lite::qsbr::Online;
use rcu_lite::{Flavor, QsbrRcu, Rcu, ThreadRcu};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::thread;
use std::time::Duration;

/// A flavour of `rcu-lite`, and what its readers can do beyond the others'.
pub(crate) trait ReadSide: Flavor + Clone + Send + Sync + 'static {
    /// What a reader thread keeps.
    type Thread;

    const READS: &'static [&'static str];
    const WITHOUT: &'static [(Dimension, &'static str)];

    fn get() -> Self;

    fn begin(&self) -> Self::Thread;

    /// Runs `f` inside, in the `how`th way, and is outside afterwards.
    fn section(&self, thread: &mut Self::Thread, how: usize, f: &mut dyn FnMut());

    fn outside(&self, thread: &mut Self::Thread, f: &mut dyn FnMut());

    /// A section that another thread may end.
    fn sendable(&self) -> Option<Box<dyn Send>>;
}

/// Guards are of one thread.
const NOT_SENT: &[(Dimension, &str)] = &[(Dimension::Handover, "its guards cannot be sent")];

impl ReadSide for &'static Rcu {
    type Thread = ();

    const READS: &'static [&'static str] = &["read", "clone"];
    const WITHOUT: &'static [(Dimension, &'static str)] = &[];

    fn get() -> Self {
        Rcu::global()
    }

    fn begin(&self) {}

    fn section(&self, _: &mut (), how: usize, f: &mut dyn FnMut()) {
        let guard = self.read();
        if how == 1 {
            let clone = guard.clone();
            drop(guard);
            f();
            drop(clone);
        } else {
            f();
        }
    }

    fn outside(&self, _: &mut (), f: &mut dyn FnMut()) {
        f();
    }

    fn sendable(&self) -> Option<Box<dyn Send>> {
        Some(Box::new(Rcu::read(self)))
    }
}

impl ReadSide for ThreadRcu {
    type Thread = ();

    const READS: &'static [&'static str] = &["read", "nest"];
    const WITHOUT: &'static [(Dimension, &'static str)] = NOT_SENT;

    fn get() -> Self {
        ThreadRcu
    }

    fn begin(&self) {
        // A handler may read once the thread has.
        drop(self.read());
    }

    fn section(&self, _: &mut (), how: usize, f: &mut dyn FnMut()) {
        let first = self.read();
        let more = (how == 1).then(|| [self.read(), self.read(), self.read()]);
        f();
        drop(first);
        drop(more);
    }

    fn outside(&self, _: &mut (), f: &mut dyn FnMut()) {
        f();
    }

    fn sendable(&self) -> Option<Box<dyn Send>> {
        None
    }
}

impl ReadSide for QsbrRcu {
    type Thread = Option<Online>;

    const READS: &'static [&'static str] = &["online", "without a handle", "second reason"];
    const WITHOUT: &'static [(Dimension, &'static str)] = NOT_SENT;

    fn get() -> Self {
        QsbrRcu
    }

    fn begin(&self) -> Option<Online> {
        Some(self.online())
    }

    fn section(&self, thread: &mut Option<Online>, how: usize, f: &mut dyn FnMut()) {
        match how {
            1 => {
                *thread = None;
                let guard = QsbrRcu.read();
                f();
                drop(guard);
            }
            2 => {
                let second = QsbrRcu.read();
                f();
                drop(second);
            }
            _ => {
                let online = thread.get_or_insert_with(|| QsbrRcu.online());
                let guard = online.read();
                f();
                drop(guard);
            }
        }
        if let Some(online) = thread {
            online.quiescent_state();
        }
    }

    fn outside(&self, thread: &mut Option<Online>, f: &mut dyn FnMut()) {
        match thread {
            Some(online) => online.offline(f),
            None => f(),
        }
    }

    fn sendable(&self) -> Option<Box<dyn Send>> {
        None
    }
}

/// See the module. With `EARLY` it is broken: updates that wait for a cookie
/// use one that was taken before the element was unlinked.
pub(super) struct Of<R, const EARLY: bool = false> {
    world: &'static World,
    published: AtomicPtr<Element>,
    rcu: R,
}

/// Says that its element is reclaimed when it is dropped.
struct Loan(&'static World, &'static Element);

impl Drop for Loan {
    fn drop(&mut self) {
        self.0.reclaimed(self.1);
    }
}

impl<R: ReadSide, const EARLY: bool> Of<R, EARLY> {
    /// What is published; called inside a section.
    fn element(&self) -> Option<&'static Element> {
        // SAFETY: elements are never freed (what is checked is the age).
        unsafe { self.published.load(Ordering::Acquire).as_ref() }
    }

    fn replace(&self, new: *mut Element) -> Option<&'static Element> {
        // SAFETY: as above.
        let old = unsafe { self.published.swap(new, Ordering::AcqRel).as_ref() }?;
        self.world.unlinked(old);
        Some(old)
    }
}

impl<R: ReadSide, const EARLY: bool> Flavour for Of<R, EARLY> {
    type Thread = R::Thread;

    const READS: &'static [&'static str] = R::READS;
    const UPDATES: &'static [&'static str] = &[
        "synchronize",
        "call",
        "poll",
        "cond_synchronize",
        "synchronize_timeout",
        "defer_drop",
    ];
    const WITHOUT: &'static [(Dimension, &'static str)] = R::WITHOUT;

    fn new(world: &'static World) -> Self {
        Self {
            world,
            published: AtomicPtr::new(ptr::null_mut()),
            rcu: R::get(),
        }
    }

    fn begin(&self) -> R::Thread {
        self.rcu.begin()
    }

    fn inside(&self, thread: &mut R::Thread, how: usize, visit: &mut dyn FnMut(&'static Element)) {
        self.rcu.section(thread, how, &mut || {
            self.element().into_iter().for_each(&mut *visit)
        });
    }

    fn many(&self, _: &mut R::Thread, count: usize, visit: &mut dyn FnMut(&[&'static Element])) {
        let held: Vec<_> = (0..count)
            .map(|_| (self.rcu.read(), self.element()))
            .collect();
        let elements: Vec<_> = held.iter().filter_map(|(_, element)| *element).collect();
        visit(&elements);
    }

    fn outside(&self, thread: &mut R::Thread, f: &mut dyn FnMut()) {
        self.rcu.outside(thread, f);
    }

    fn parcel(&self, _: &mut R::Thread) -> Option<Parcel> {
        let hold = self.rcu.sendable()?;
        let element = self.element()?;
        Some(Parcel { element, hold })
    }

    fn in_handler(&self, visit: &mut dyn FnMut(&'static Element)) {
        let outer = self.rcu.read();
        let inner = self.rcu.read();
        self.element().into_iter().for_each(visit);
        drop((inner, outer));
    }

    fn update(&self, new: &'static Element, how: usize) {
        let early = EARLY.then(|| self.rcu.start_poll());
        if EARLY {
            // Others' grace periods come and go.
            self.rcu.synchronize();
        }
        let Some(old) = self.replace(ptr::from_ref(new).cast_mut()) else {
            return;
        };
        let loan = Loan(self.world, old);
        match how {
            1 => self.rcu.call(move || drop(loan)),
            5 => self.rcu.defer_drop(Box::new(loan)),
            2 => {
                let cookie = early.unwrap_or_else(|| self.rcu.start_poll());
                while !self.rcu.poll(&cookie) {
                    thread::sleep(Duration::from_micros(50));
                }
            }
            3 => self
                .rcu
                .cond_synchronize(early.unwrap_or_else(|| self.rcu.start_poll())),
            4 => {
                let limit = Duration::from_micros(300);
                while self.rcu.synchronize_timeout(limit).is_err() {}
            }
            _ => self.rcu.synchronize(),
        }
    }

    fn flush(&self) {
        self.rcu.barrier();
    }

    fn finish(&self) {
        if let Some(old) = self.replace(ptr::null_mut()) {
            self.rcu.synchronize();
            self.world.reclaimed(old);
        }
        self.rcu.barrier();
    }

    fn facts(&self) -> Vec<(&'static str, u64)> {
        let stats = self.rcu.stats();
        vec![
            ("grace_periods", stats.grace_periods),
            (
                "longest_us",
                u64::try_from(stats.longest.as_micros()).unwrap_or(u64::MAX),
            ),
            ("callbacks", stats.queued),
            ("pending", stats.pending),
            ("barriers_lost", stats.barriers_lost),
        ]
    }
}
