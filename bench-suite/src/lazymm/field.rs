//! Floor 3, bench-suite. Owns what `think` and `track` have in common: the tracker of a run, mms that replace each
//! other while threads use them, and the end, where all must be freed. May touch the tracker, the census, the record.
//!
//! ```text
//! Field     the tracker, what was counted, what was broken: one a run, as a kernel has one
//!  └ Line   mms one after the other, each for the same number of users
//!     └ Seat  a user of the line's newest mm (or of the one before, until it looks), playing one CPU
//! ```
//! A generation is published for as many users as the line has, so every seat is a user of it before it knows. A seat
//! that looks and finds a newer one moves over and leaves the old one; the last to leave tears it down. The next one is
//! published only when all have left the one before. So a look is one load, of a line that changes only then.
//!
//! A seat moves only while its CPU runs a user task, so nobody holds an mm lazily that is torn down: tear-downs find
//! nothing to interrupt. (What holders that outlive the users do is the subject of `sched`.)
//!
//! **Orderings.** *Publish* (Release) of the next generation pairs with the look (Acquire).

use super::invariants::Invariants;
use super::mm::{Census, Mm};
use super::tracker::{Interrupts, Tracker};
use crate::report::record::Record;
use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64};
use std::time::{Duration, Instant};

/// How long the end waits for a scheme that frees nothing.
const PATIENCE: Duration = Duration::from_secs(2);

/// A run.
pub(crate) struct Field<T: Tracker> {
    tracker: T,
    cpus: usize,
    census: &'static Census,
    /// What was broken.
    pub(crate) invariants: Invariants,
    interrupts: AtomicU64,
}

impl<T: Tracker> Field<T> {
    /// For so many CPUs.
    pub(crate) fn new(cpus: usize) -> Self {
        Field {
            tracker: T::new(cpus),
            cpus,
            census: Census::leak(),
            invariants: Invariants::default(),
            interrupts: AtomicU64::new(0),
        }
    }

    /// Tears down an mm that its last user has left.
    ///
    /// # Safety
    /// As for [`Tracker::tear_down`].
    unsafe fn tear_down<'t>(&'t self, cpu: &mut T::Cpu<'t>, mm: NonNull<Mm<T>>) {
        struct Nobody(u64);
        impl<T: Tracker> Interrupts<T> for Nobody {
            fn let_go(&mut self, _: usize, _: NonNull<Mm<T>>) {
                self.0 += 1;
            }
        }
        let mut nobody = Nobody(0);
        // SAFETY: nobody has freed it yet.
        unsafe { mm.as_ref() }.torn();
        // SAFETY: the caller's.
        unsafe { self.tracker.tear_down(cpu, mm, &mut nobody) };
        self.interrupts.fetch_add(nobody.0, Relaxed);
        if T::FREES_AT_ONCE {
            let holds = |cpu: &usize| self.tracker.slot(*cpu) == Some(mm.as_ptr().cast_const());
            let holding = (0..self.cpus).filter(holds).count();
            self.invariants.broken(2, holding as u64);
        }
    }

    /// After all threads have gone: lets all mms be freed, and tells the record.
    pub(crate) fn finish(self, lines: Vec<Line<T>>, record: &mut Record) {
        let latencies = self.census.latencies();
        let peak = self.census.found();
        let mut cpu = self.tracker.cpu(0);
        for line in lines {
            line.end(&self, &mut cpu);
        }
        let mut waiting = self.census.waiting();
        let mut moved = Instant::now();
        while waiting > 0 && moved.elapsed() < PATIENCE {
            self.tracker.flush(&mut cpu);
            let now = self.census.waiting();
            if now == waiting && !T::FREES_LAST {
                std::thread::yield_now();
            } else if now == waiting {
                break;
            } else {
                moved = Instant::now();
            }
            waiting = now;
        }
        drop(cpu);
        let interrupts = self.interrupts.load(Relaxed);
        self.invariants
            .count(self.tracker.busy(), interrupts, self.tracker.reasons());
        let cost = self.tracker.cost();
        drop(self.tracker);
        let found = self.census.found();
        self.invariants.settle(&found);
        record.set("locked_per_op", cost.locked.0 + cost.locked.1);
        record.set("fences_per_op", cost.fences.0 + cost.fences.1);
        record.set("teardowns", peak.torn);
        record.set("interrupts", interrupts);
        record.set("peak_unreclaimed", peak.peak);
        record.set("freed_at_end", peak.torn.saturating_sub(peak.freed));
        super::report_latencies(record, &latencies);
        self.invariants.judge(record);
    }
}

/// One mm and the way to the next.
struct Generation<T: Tracker> {
    mm: NonNull<Mm<T>>,
    next: AtomicPtr<Generation<T>>,
    torn: AtomicBool,
}

/// Mms that replace each other.
pub(crate) struct Line<T: Tracker> {
    users: usize,
    first: NonNull<Generation<T>>,
    newest: AtomicPtr<Generation<T>>,
    /// Generations that all have left.
    left: AtomicU64,
    published: AtomicU64,
}

// SAFETY: what is behind the pointers is shared by design, and freed by `end` alone.
unsafe impl<T: Tracker> Send for Line<T> {}
// SAFETY: as above.
unsafe impl<T: Tracker> Sync for Line<T> {}

impl<T: Tracker> Line<T> {
    /// A line of `field` for so many seats.
    pub(crate) fn new(field: &Field<T>, users: usize) -> Self {
        let first = Self::generation(field, users);
        Line {
            users,
            first,
            newest: AtomicPtr::new(first.as_ptr()),
            left: AtomicU64::new(0),
            published: AtomicU64::new(0),
        }
    }

    fn generation(field: &Field<T>, users: usize) -> NonNull<Generation<T>> {
        NonNull::from(Box::leak(Box::new(Generation {
            mm: Mm::new(field.tracker.mark(), users, field.census),
            next: AtomicPtr::default(),
            torn: AtomicBool::new(false),
        })))
    }

    /// Publishes a new mm, unless some still use the one before this. Called by one thread.
    #[cold]
    fn renew(&self, field: &Field<T>) {
        let published = self.published.load(Relaxed);
        if self.left.load(Relaxed) < published {
            return;
        }
        let new = Self::generation(field, self.users).as_ptr();
        let old = self.newest.load(Relaxed);
        self.newest.store(new, Relaxed);
        self.published.store(published + 1, Relaxed);
        // SAFETY: generations live until the end.
        // Release: "Publish".
        unsafe { &*old }.next.store(new, Release);
    }

    /// Tears down what is left, for all seats, which are gone.
    fn end<'t>(self, field: &'t Field<T>, cpu: &mut T::Cpu<'t>) {
        let mut at = self.first.as_ptr();
        while !at.is_null() {
            // SAFETY: from a box, and freed here only, once each.
            let generation = unsafe { Box::from_raw(at) };
            at = generation.next.load(Acquire);
            if generation.torn.load(Relaxed) {
                continue;
            }
            // SAFETY: it has users, for whom this leaves.
            while !unsafe { generation.mm.as_ref() }.leave() {}
            // SAFETY: the last one has left.
            unsafe { field.tear_down(cpu, generation.mm) };
        }
    }
}

/// When a line is to be renewed, for the thread that does it.
pub(crate) struct Renewal {
    every: Option<Duration>,
    due: Instant,
    looks: u32,
    left: u32,
}

impl Renewal {
    /// Every so often, zero for never. The clock is read at one of `looks` looks.
    pub(crate) fn new(every: Duration, looks: u32) -> Self {
        Renewal {
            every: (!every.is_zero()).then_some(every),
            due: Instant::now() + every,
            looks: looks.max(1),
            left: looks.max(1),
        }
    }

    /// For threads that renew nothing.
    pub(crate) fn never() -> Self {
        Self::new(Duration::ZERO, u32::MAX)
    }

    #[inline(always)]
    fn look(&mut self) -> bool {
        self.left -= 1;
        self.left == 0 && self.read()
    }

    #[cold]
    #[inline(never)]
    fn read(&mut self) -> bool {
        self.left = self.looks;
        let Some(every) = self.every else {
            return false;
        };
        let now = Instant::now();
        let due = now >= self.due;
        if due {
            self.due = now + every;
        }
        due
    }
}

/// A thread that plays a CPU and uses a line's mm.
pub(crate) struct Seat<'f, T: Tracker> {
    field: &'f Field<T>,
    line: &'f Line<T>,
    at: &'f Generation<T>,
    mm: NonNull<Mm<T>>,
    cpu: T::Cpu<'f>,
    index: usize,
    renewal: Renewal,
}

impl<'f, T: Tracker> Seat<'f, T> {
    /// Made by the thread that plays CPU `index`, as one of the users that `line` counts.
    pub(crate) fn new(
        field: &'f Field<T>,
        line: &'f Line<T>,
        index: usize,
        renewal: Renewal,
    ) -> Self {
        // SAFETY: generations live until the end, for which the borrow of the line waits.
        let at = unsafe { line.first.as_ref() };
        let mut cpu = field.tracker.cpu(index);
        // SAFETY: this is one of its users.
        unsafe { field.tracker.run_user(&mut cpu, at.mm) };
        Seat {
            field,
            line,
            at,
            mm: at.mm,
            cpu,
            index,
            renewal,
        }
    }

    /// The user task gives way, `inside` happens, a user task runs again. Whether the mm was alive all the time.
    #[inline(always)]
    pub(crate) fn excursion<R>(&mut self, inside: impl FnOnce() -> R) -> (bool, R) {
        let tracker = &self.field.tracker;
        // SAFETY: a seat is a user of its mm until it looks, so the mm lives until then; what is grabbed is given back
        // on the same CPU.
        unsafe {
            let held = tracker.grab(&mut self.cpu, self.mm);
            let result = inside();
            let alive = self.mm.as_ref().is_alive();
            tracker.drop(&mut self.cpu, self.mm, held);
            tracker.run_user(&mut self.cpu, self.mm);
            (alive, result)
        }
    }

    /// The same with looks at the slot: invariant I3.
    #[inline(always)]
    pub(crate) fn checked_excursion<R>(&mut self, inside: impl FnOnce() -> R) -> (bool, R) {
        let (field, index, mm) = (self.field, self.index, self.mm.as_ptr().cast_const());
        let slot = |wanted: *const Mm<T>| {
            if field.tracker.slot(index).is_some_and(|it| it != wanted) {
                field.invariants.broken(3, 1);
            }
        };
        let out = self.excursion(|| {
            slot(mm);
            inside()
        });
        slot(ptr::null());
        out
    }

    /// Between two excursions: renews the line if this seat's thread does that and it is time, and moves over to a newer
    /// mm if there is one.
    #[inline(always)]
    pub(crate) fn look(&mut self) {
        if self.renewal.look() {
            self.line.renew(self.field);
        }
        // Acquire: pairs with "Publish".
        if !self.at.next.load(Acquire).is_null() {
            self.move_over();
        }
    }

    #[cold]
    #[inline(never)]
    fn move_over(&mut self) {
        let old = self.at;
        // SAFETY: generations live until the end.
        let new = unsafe { &*old.next.load(Acquire) };
        (self.at, self.mm) = (new, new.mm);
        // SAFETY: the new one was made with this seat among its users.
        unsafe { self.field.tracker.run_user(&mut self.cpu, new.mm) };
        // SAFETY: this seat is a user until here.
        if unsafe { old.mm.as_ref() }.leave() {
            old.torn.store(true, Relaxed);
            // SAFETY: the last user has left, and nobody grabs what it does not use.
            unsafe { self.field.tear_down(&mut self.cpu, old.mm) };
            self.line.left.fetch_add(1, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lazymm::trackers::{Visit, all, dispatch};
    use crate::report::record::Status;
    use crate::report::record::tests::sample;
    use crate::workloads::Workload;

    /// Two seats of a line that is renewed as often as can be.
    struct Both;

    impl Visit for Both {
        type Out = Record;

        fn visit<T: Tracker>(self) -> Record {
            let field = Field::<T>::new(2);
            let line = Line::new(&field, 2);
            let renewed = AtomicU64::new(0);
            std::thread::scope(|scope| {
                for index in 0..2 {
                    let (field, line, renewed) = (&field, &line, &renewed);
                    scope.spawn(move || {
                        let mut seat = Seat::new(field, line, index, Renewal::never());
                        while renewed.load(Relaxed) < 200 {
                            seat.look();
                            let (alive, ()) = seat.checked_excursion(|| ());
                            field.invariants.broken(1, u64::from(!alive));
                            if index == 0 {
                                line.renew(field);
                                renewed.store(line.left.load(Relaxed), Relaxed);
                            }
                            std::thread::yield_now();
                        }
                    });
                }
            });
            let mut record = sample(Workload::Think, T::ABOUT.name, 2, 0, 1);
            field.finish(vec![line], &mut record);
            record
        }
    }

    #[test]
    fn mms_are_replaced_under_their_users() {
        for about in all().iter().filter(|about| !about.hidden) {
            let record = dispatch(about.name, Both).unwrap();
            assert_eq!(record.status, Status::Ok, "{}: {}", about.name, record.note);
            assert!(record.number("teardowns").unwrap() >= 200.0);
            assert!(record.number("peak_unreclaimed").unwrap() >= 1.0);
        }
    }

    #[test]
    fn the_clock_is_read_now_and_then() {
        let mut renewal = Renewal::new(Duration::from_nanos(1), 4);
        let due: Vec<bool> = (0..8).map(|_| renewal.look()).collect();
        assert_eq!(due, [false, false, false, true, false, false, false, true]);
        let mut never = Renewal::never();
        assert!((0..1000).all(|_| !never.look()));
        let mut late = Renewal::new(Duration::from_secs(3600), 1);
        assert!((0..1000).all(|_| !late.look()));
    }
}
