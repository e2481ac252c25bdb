//! What every lock promises, and what only some do.

mod common;

use common::{Restless, Watchdog, for_each_lock, storm};
use rwsems::per_cpu::PerCpu;
use rwsems::pi_multi::PiMulti;
use rwsems::pi_single::PiSingle;
use rwsems::rwbase::RwBase;
use rwsems::vanilla::Vanilla;
use rwsems::{AtOnce, Region, RwSem, Visit, VisitLock, Vma};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Barrier, mpsc};
use std::time::Duration;

const ROUNDS: usize = if cfg!(miri) { 20 } else { 2_000 };
/// Long enough for a thread to have gone to sleep.
const SETTLE: Duration = Duration::from_millis(if cfg!(miri) { 500 } else { 30 });
/// Longer than whatever is sure to come takes on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Clone, Copy)]
struct Storm;

impl VisitLock for Storm {
    type Out = ();
    fn visit<L: RwSem>(self) {
        for (readers, writers) in [(3, 1), (1, 3), (2, 2), (0, 4)] {
            let most = storm(&L::new(), readers, writers, ROUNDS);
            match L::ABOUT.readers {
                AtOnce::One => assert!(most <= 1, "{}: {most}", L::ABOUT.name),
                AtOnce::Limit => assert!(Some(most) <= L::new().limit().max(Some(0))),
                AtOnce::All => assert!(most <= readers),
            }
        }
    }
}

#[test]
fn nobody_meets_a_writer() {
    let _watchdog = Watchdog::new("storms");
    for_each_lock(Storm);
}

/// As many readers as are allowed meet inside: each waits there for the others.
#[derive(Clone, Copy)]
struct Together(usize);

impl VisitLock for Together {
    type Out = ();
    fn visit<L: RwSem>(self) {
        let lock = L::new();
        let expected = match L::ABOUT.readers {
            AtOnce::One => 1,
            AtOnce::Limit => self.0.min(lock.limit().expect("a limit")),
            AtOnce::All => self.0,
        };
        assert_eq!(lock.limit().is_some(), L::ABOUT.readers != AtOnce::All);
        let (meeting, come) = (Barrier::new(expected), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..expected {
                scope.spawn(|| {
                    let _guard = lock.read();
                    meeting.wait();
                    if come.fetch_add(1, SeqCst) == 0 {
                        // All are inside now: is there room for one more?
                        let one_more =
                            std::thread::scope(|s| s.spawn(|| lock.try_read().is_some()).join());
                        let room = lock.limit().is_none_or(|limit| limit > expected);
                        assert_eq!(one_more.unwrap(), room, "{}", L::ABOUT.name);
                        assert!(lock.try_write().is_none(), "{}", L::ABOUT.name);
                    }
                    meeting.wait();
                });
            }
        });
        assert_eq!(come.load(SeqCst), expected);
    }
}

#[test]
fn readers_meet_where_they_may() {
    let _watchdog = Watchdog::new("readers together");
    for_each_lock(Together(8));
}

#[test]
fn the_limit_of_pi_multi_is_its_table() {
    let _watchdog = Watchdog::new("pi-multi");
    for limit in [1, 2, 5] {
        let lock = PiMulti::<rwsems::futex::Os>::with_limit(limit);
        assert_eq!(lock.limit(), Some(limit));
        let meeting = Barrier::new(limit + 1);
        std::thread::scope(|scope| {
            for _ in 0..limit {
                scope.spawn(|| {
                    let _guard = lock.read();
                    meeting.wait();
                    meeting.wait();
                });
            }
            meeting.wait();
            assert!(lock.try_read().is_none(), "{limit}");
            meeting.wait();
        });
        let most = storm(&lock, 6, 1, ROUNDS / 4);
        assert!(most <= limit, "{most} of {limit}");
    }
}

/// Waits are answered at random, and nothing is lost or let in.
#[test]
fn a_futex_that_does_not_wait() {
    let _watchdog = Watchdog::new("spurious returns");
    storm(&Vanilla::<Restless>::new(), 3, 3, ROUNDS / 4);
    storm(&RwBase::<Restless>::new(), 3, 3, ROUNDS / 4);
    storm(&PerCpu::<Restless>::new(), 3, 3, ROUNDS / 4);
    storm(&PiSingle::<Restless>::new(), 3, 3, ROUNDS / 4);
    storm(&PiMulti::<Restless>::new(), 3, 3, ROUNDS / 4);
}

/// Says through the channel when it is inside.
fn enter_beside<'a, L: RwSem>(
    scope: &'a std::thread::Scope<'a, '_>,
    lock: &'a L,
    write: bool,
) -> mpsc::Receiver<()> {
    let (tell, told) = mpsc::channel();
    scope.spawn(move || {
        if write {
            let _guard = lock.write();
            tell.send(()).unwrap();
        } else {
            let _guard = lock.read();
            tell.send(()).unwrap();
        }
    });
    told
}

/// A reader that comes while a writer waits: who goes first.
#[derive(Clone, Copy)]
struct WhoIsFirst;

impl VisitLock for WhoIsFirst {
    type Out = ();
    fn visit<L: RwSem>(self) {
        let (lock, name) = (L::new(), L::ABOUT.name);
        std::thread::scope(|scope| {
            let guard = lock.read();
            let writer = enter_beside(scope, &lock, true);
            std::thread::sleep(SETTLE);
            assert!(writer.try_recv().is_err(), "{name}");
            let reader = enter_beside(scope, &lock, false);
            let overtakes = name == "rwbase";
            let wait = if overtakes { PATIENCE } else { SETTLE };
            assert_eq!(reader.recv_timeout(wait).is_ok(), overtakes, "{name}");
            drop(guard);
            writer.recv_timeout(PATIENCE).expect(name);
            if !overtakes {
                reader.recv_timeout(PATIENCE).expect(name);
            }
        });
    }
}

#[test]
fn a_reader_behind_a_waiting_writer() {
    let _watchdog = Watchdog::new("who is first");
    for_each_lock(WhoIsFirst);
}

/// Where writers are promised progress: one gets in beside readers that come and
/// go without a gap.
#[derive(Clone, Copy)]
struct Progress;

impl VisitLock for Progress {
    type Out = ();
    fn visit<L: RwSem>(self) {
        if L::ABOUT.name == "rwbase" {
            return;
        }
        let (lock, stop, wrote) = (L::new(), AtomicBool::new(false), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for n in 0..3u64 {
                let (lock, stop) = (&lock, &stop);
                scope.spawn(move || {
                    while !stop.load(SeqCst) {
                        let _guard = lock.read();
                        std::thread::sleep(Duration::from_micros(200 + 70 * n));
                    }
                });
            }
            for _ in 0..20 {
                let _guard = lock.write();
                wrote.fetch_add(1, SeqCst);
            }
            stop.store(true, SeqCst);
        });
        assert_eq!(wrote.load(SeqCst), 20);
    }
}

#[test]
fn writers_get_in_beside_a_stream_of_readers() {
    let _watchdog = Watchdog::new("progress of writers");
    for_each_lock(Progress);
}

/// Where nesting is promised: also while a writer waits.
#[derive(Clone, Copy)]
struct Nesting;

impl VisitLock for Nesting {
    type Out = ();
    fn visit<L: RwSem>(self) {
        if !L::ABOUT.nests {
            return;
        }
        let lock = L::new();
        std::thread::scope(|scope| {
            let outer = lock.read();
            let writer = enter_beside(scope, &lock, true);
            std::thread::sleep(SETTLE);
            let inner = lock.read();
            let third = lock.try_read().expect("inside already");
            drop(outer);
            drop(third);
            assert!(writer.recv_timeout(SETTLE).is_err(), "{}", L::ABOUT.name);
            drop(inner);
            writer.recv_timeout(PATIENCE).expect("free");
        });
        drop(lock.try_write().expect("free"));
    }
}

#[test]
fn readers_enter_again_where_promised() {
    let _watchdog = Watchdog::new("nesting");
    for_each_lock(Nesting);
}

/// The owner of the recursive ones may also read what it writes.
#[test]
fn a_writer_may_read_in_the_pi_locks() {
    fn check<L: RwSem>() {
        let lock = L::new();
        let writer = lock.write();
        let (one, two) = (lock.read(), lock.read());
        drop(one);
        let beside =
            || std::thread::scope(|s| s.spawn(|| lock.try_read().is_some()).join().unwrap());
        assert!(!beside());
        drop(two);
        assert!(!beside(), "the writer is still inside");
        drop(writer);
        assert!(beside());
        drop(lock.try_write().expect("free"));
    }
    check::<PiSingle>();
    check::<PiMulti>();
}

#[test]
fn a_writer_inside_its_own_section_is_told() {
    fn check<L: RwSem>() {
        let lock = L::new();
        let reader = lock.read();
        let twice = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(lock.write())));
        let said = *twice.unwrap_err().downcast::<&str>().expect("words");
        assert!(said.contains("deadlock"), "{said}");
        assert!(lock.try_write().is_none());
        drop(reader);
        drop(lock.try_write().expect("nothing was left locked"));
    }
    check::<PiSingle>();
    check::<PiMulti>();
}

/// A panic inside releases, and poisons nothing.
#[derive(Clone, Copy)]
struct Panics;

impl VisitLock for Panics {
    type Out = ();
    fn visit<L: RwSem>(self) {
        let lock = L::new();
        for write in [false, true] {
            let ended = std::thread::scope(|scope| {
                scope
                    .spawn(|| {
                        let _writer = write.then(|| lock.write());
                        let _reader = (!write).then(|| lock.read());
                        std::panic::resume_unwind(Box::new("inside"));
                    })
                    .join()
            });
            assert!(ended.is_err());
            drop(lock.try_write().expect(L::ABOUT.name));
            drop(lock.read());
        }
    }
}

#[test]
fn a_panic_inside_poisons_nothing() {
    let _watchdog = Watchdog::new("panics");
    for_each_lock(Panics);
}

/// Threads that end inside, of locks that promise to notice.
#[test]
fn owners_that_end_inside() {
    if rwsems::futex::pi_available().is_err() {
        return;
    }
    let _watchdog = Watchdog::new("dead owners");
    let single = PiSingle::<rwsems::futex::Os>::new();
    let end = |body: &(dyn Fn() + Sync)| {
        std::thread::scope(|scope| {
            scope.spawn(body);
        });
    };
    end(&|| std::mem::forget(single.read()));
    drop(single.write());
    end(&|| std::mem::forget(single.write()));
    drop((single.read(), single.read()));
    assert_eq!(single.deaths(), 2);

    let multi = PiMulti::<rwsems::futex::Os>::with_limit(2);
    end(&|| std::mem::forget(multi.read()));
    drop(multi.write());
    assert_eq!(multi.deaths(), 1);
    // Its door and both seats.
    end(&|| std::mem::forget(multi.write()));
    drop(multi.read());
    drop(multi.write());
    assert_eq!(multi.deaths(), 4);
    storm(&multi, 3, 1, ROUNDS / 8);

    let base = RwBase::<rwsems::futex::Os>::new();
    end(&|| std::mem::forget(base.write()));
    drop(base.read());
    assert_eq!(base.deaths(), 1);
    end(&|| std::mem::forget(base.write()));
    drop(base.write());
    assert_eq!(base.deaths(), 2);
    storm(&base, 3, 1, ROUNDS / 8);
}

/// Descriptions are whole as long as they are looked at, in every variant.
struct Whole;

impl Visit for Whole {
    type Out = ();
    fn visit<R: Region>(self) {
        let region = R::new(Vma::new(0x1000, 4096));
        let name = R::ABOUT.name;
        let (writers, readers, rounds) = (2, 3, ROUNDS as u64 / 2);
        std::thread::scope(|scope| {
            for _ in 0..readers {
                scope.spawn(|| {
                    let mut last = 0;
                    for _ in 0..rounds {
                        let seen = region.read(|vma| {
                            assert!(vma.is_whole(), "{name}");
                            std::thread::yield_now();
                            assert!(vma.is_whole(), "{name}: torn or freed inside");
                            assert_eq!((vma.start(), vma.len()), (0x1000, 4096));
                            vma.generation()
                        });
                        assert!(seen >= last, "{name}: an old one came back");
                        last = seen;
                    }
                });
            }
            for _ in 0..writers {
                scope.spawn(|| {
                    for _ in 0..rounds {
                        region.write(|vma| {
                            assert!(vma.is_whole(), "{name}");
                            vma.next()
                        });
                    }
                });
            }
        });
        assert_eq!(
            region.read(|vma| vma.generation()),
            writers * rounds,
            "{name}"
        );
        region.flush();
    }
}

#[test]
fn descriptions_are_whole_inside() {
    let _watchdog = Watchdog::new("regions");
    for about in rwsems::all() {
        rwsems::dispatch(about.name, Whole).expect("a variant");
    }
}

/// A torn or freed description is noticed: else the test above says nothing.
#[test]
fn a_dead_description_knows() {
    let mut vma = std::mem::ManuallyDrop::new(Vma::new(1, 2));
    assert!(vma.is_whole());
    // SAFETY: dropped once; looked at afterwards, which is the point: the memory
    // is this frame's, and its fields own nothing.
    unsafe { std::mem::ManuallyDrop::drop(&mut vma) };
    assert!(!vma.is_whole());
}
