//! Floor 3, bench-suite. The trackers under real threads: users that leave an mm that they have lazily, tear-downs that
//! interrupt them, canaries in between; at the end every mm was freed once. May touch threads.
//!
//! Interrupts are letters: who tears down puts the mm into the box of a CPU and waits until it is empty again. A CPU
//! looks into its box between all steps, also while it waits itself.

use super::super::mm::{Census, Found, Mm};
use super::super::tracker::{Interrupts, Tracker};
use super::{Visit, all, dispatch};
use std::cell::RefCell;
use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

const CPUS: usize = 3;
const ROUNDS: usize = if cfg!(miri) { 10 } else { 300 };
/// Users of an mm.
const USERS: usize = 2;

type Box<T> = AtomicPtr<Mm<T>>;

/// What the threads share.
struct Storm<T: Tracker> {
    tracker: T,
    boxes: [Box<T>; CPUS],
    /// An mm, and how many of its users have not come yet.
    newest: Mutex<(usize, usize)>,
    census: &'static Census,
    done: AtomicUsize,
    dead: AtomicUsize,
}

/// What a CPU has lazily.
type Lazily<'t, T> = RefCell<Option<(NonNull<Mm<T>>, <T as Tracker>::Held<'t>)>>;

impl<T: Tracker> Storm<T> {
    fn user(&self) -> NonNull<Mm<T>> {
        let mut newest = self.newest.lock().unwrap();
        if newest.1 == 0 {
            let mm = Mm::<T>::new(self.tracker.mark(), USERS, self.census);
            *newest = (mm.as_ptr().expose_provenance(), USERS);
        }
        newest.1 -= 1;
        NonNull::new(std::ptr::with_exposed_provenance_mut(newest.0)).unwrap()
    }

    /// Looks into the box.
    fn serve<'t>(&'t self, index: usize, lazily: &Lazily<'t, T>) {
        let letter = self.boxes[index].load(Ordering::Acquire);
        let Some(mm) = NonNull::new(letter) else {
            return;
        };
        let matches = lazily
            .borrow()
            .as_ref()
            .is_some_and(|(held, _)| *held == mm);
        if matches {
            let (_, held) = lazily.borrow_mut().take().unwrap();
            // SAFETY: held here, by this thread.
            unsafe { self.tracker.interrupted(index, mm, held) };
        }
        self.boxes[index].store(std::ptr::null_mut(), Ordering::Release);
    }

    fn look(&self, mm: NonNull<Mm<T>>) {
        // SAFETY: in the hands of the caller; that is what is tested.
        if !unsafe { mm.as_ref() }.is_alive() {
            self.dead.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn cpu(&self, index: usize) {
        let mut cpu = self.tracker.cpu(index);
        let lazily = Lazily::<T>::new(None);
        for round in 0..ROUNDS {
            let mm = self.user();
            self.look(mm);
            // SAFETY: a user from `user` to `leave`.
            unsafe {
                self.tracker.run_user(&mut cpu, mm);
                if round % 3 == 0 {
                    // Blocks and runs again.
                    let held = self.tracker.grab(&mut cpu, mm);
                    self.look(mm);
                    self.tracker.drop(&mut cpu, mm, held);
                }
                let held = self.tracker.grab(&mut cpu, mm);
                lazily.replace(Some((mm, held)));
                // The task exits; a kernel thread goes on with the mm.
                if mm.as_ref().leave() {
                    mm.as_ref().torn();
                    let mut post = Post {
                        storm: self,
                        me: index,
                        lazily: &lazily,
                    };
                    self.tracker.tear_down(&mut cpu, mm, &mut post);
                }
            }
            for _ in 0..round % 4 {
                std::thread::yield_now();
                self.serve(index, &lazily);
                if let Some((mm, _)) = &*lazily.borrow() {
                    self.look(*mm);
                }
            }
            let last = lazily.borrow_mut().take();
            if let Some((mm, held)) = last {
                // SAFETY: held since above.
                unsafe { self.tracker.drop(&mut cpu, mm, held) };
            }
            self.serve(index, &lazily);
        }
        self.done.fetch_add(1, Ordering::AcqRel);
        while self.done.load(Ordering::Acquire) < CPUS {
            self.serve(index, &lazily);
            std::thread::yield_now();
        }
        for _ in 0..1000 {
            if self.census.waiting() == 0 || T::FREES_LAST {
                break;
            }
            self.tracker.flush(&mut cpu);
            std::thread::yield_now();
        }
    }
}

/// Sends letters.
struct Post<'a, 't, T: Tracker> {
    storm: &'t Storm<T>,
    me: usize,
    lazily: &'a Lazily<'t, T>,
}

impl<T: Tracker> Interrupts<T> for Post<'_, '_, T> {
    fn let_go(&mut self, cpu: usize, mm: NonNull<Mm<T>>) {
        let null = std::ptr::null_mut();
        let slot = &self.storm.boxes[cpu];
        let put = || slot.compare_exchange(null, mm.as_ptr(), Ordering::AcqRel, Ordering::Relaxed);
        while put().is_err() {
            self.storm.serve(self.me, self.lazily);
            std::thread::yield_now();
        }
        while slot.load(Ordering::Acquire) == mm.as_ptr() {
            self.storm.serve(self.me, self.lazily);
            std::thread::yield_now();
        }
    }
}

/// What came of it, and how often a dead mm was seen.
fn storm<T: Tracker>() -> (Found, usize) {
    let census = Census::leak();
    let storm = Storm::<T> {
        tracker: T::new(CPUS),
        boxes: std::array::from_fn(|_| Box::default()),
        newest: Mutex::new((0, 0)),
        census,
        done: AtomicUsize::new(0),
        dead: AtomicUsize::new(0),
    };
    std::thread::scope(|scope| {
        for index in 0..CPUS {
            let storm = &storm;
            scope.spawn(move || storm.cpu(index));
        }
    });
    let (left, users) = *storm.newest.lock().unwrap();
    assert_eq!(users, 0, "as many users as came, mm {left:x}");
    let dead = storm.dead.load(Ordering::Relaxed);
    assert_eq!(storm.tracker.busy(), 0, "{}", T::ABOUT.name);
    drop(storm.tracker);
    (census.found(), dead)
}

#[test]
fn every_mm_is_freed_once_and_not_before() {
    struct One;
    impl Visit for One {
        type Out = ();

        fn visit<T: Tracker>(self) {
            let name = T::ABOUT.name;
            let (found, dead) = storm::<T>();
            assert_eq!(found.born as usize, CPUS * ROUNDS / USERS, "{name}");
            assert_eq!(dead, 0, "{name}: dead mms seen");
            assert_eq!(
                (found.torn, found.freed),
                (found.born, found.born),
                "{name}"
            );
            assert_eq!((found.doubled, found.untorn), (0, 0), "{name}");
        }
    }
    for about in all().iter().filter(|about| !about.hidden) {
        dispatch(about.name, One).unwrap();
    }
}

/// What it takes to see a tracker that does not look: a holder that outlives the tear-down.
#[test]
fn a_tear_down_without_a_scan_is_seen() {
    struct Nobody;
    impl<T: Tracker> Interrupts<T> for Nobody {
        fn let_go(&mut self, _: usize, _: NonNull<Mm<T>>) {
            panic!("broken-i2 looks at no slot");
        }
    }
    type Careless = super::broken::Broken<2>;
    let census = Census::leak();
    let tracker = Careless::new(2);
    let mm = Mm::<Careless>::new((), 1, census);
    let (mut holder, mut last) = (tracker.cpu(0), tracker.cpu(1));
    // SAFETY: blocks of hidden trackers stay, so the dead mm may be looked at.
    unsafe {
        tracker.grab(&mut holder, mm);
        assert!(mm.as_ref().leave());
        mm.as_ref().torn();
        tracker.tear_down(&mut last, mm, &mut Nobody);
        assert!(!mm.as_ref().is_alive());
    }
    assert_eq!(tracker.slot(0), Some(mm.as_ptr().cast_const()));
}

#[test]
fn names_are_unique_and_found() {
    struct Name;
    impl Visit for Name {
        type Out = &'static str;

        fn visit<T: Tracker>(self) -> &'static str {
            T::ABOUT.name
        }
    }
    let mut names: Vec<_> = all().iter().map(|about| about.name).collect();
    assert!(names.iter().all(|name| dispatch(name, Name) == Some(name)));
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all().len());
    assert!(dispatch("no-such-tracker", Name).is_none());
}
