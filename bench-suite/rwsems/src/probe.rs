//! A priority inversion on purpose, and how long it lasts.
//!
//! Floor 3 (`rwsems`). Owns four kinds of real-time threads on one CPU; touches a
//! lock through its trait, and the scheduler.
//!
//! ```text
//! low    enters, starts high, works on inside, leaves
//! high   starts mid (which does not get the CPU yet), wants to enter: waits
//! mid    has nothing to do with the lock; wants the CPU for a time
//! ```
//!
//! On one CPU the three priorities decide what happens. If low inherits high's
//! priority it goes on at once, and high waits for the rest of low's section. If it
//! does not, mid runs first, and high, the most urgent of all, waits for mid, too.
//!
//! # It never holds the machine up
//!
//! What low and mid do is bounded, by the wall clock as well. Who waits for a lock
//! sleeps. The kernel lets real-time threads have 95 % of a CPU at most. The caller
//! should run this in a process with an alarm, for a lock that loses a wake-up.

use crate::RwSem;

/// Who holds the lock, and who wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// A reader is inside, a writer waits: what multi-reader PI is for.
    WriterBehindReader,
    /// The same with two readers inside.
    WriterBehindReaders,
    /// The writer is inside, a reader waits.
    ReaderBehindWriter,
    /// The writer is inside, a writer waits.
    WriterBehindWriter,
}

impl Case {
    /// All of them.
    pub const ALL: [Case; 4] = [
        Case::WriterBehindReader,
        Case::WriterBehindReaders,
        Case::ReaderBehindWriter,
        Case::WriterBehindWriter,
    ];

    /// In words.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Case::WriterBehindReader => "writer behind a reader",
            Case::WriterBehindReaders => "writer behind 2 readers",
            Case::ReaderBehindWriter => "reader behind the writer",
            Case::WriterBehindWriter => "writer behind the writer",
        }
    }
}

/// How much they do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// CPU time of low's section, from when high wants to enter.
    pub hold: std::time::Duration,
    /// CPU time of mid.
    pub burn: std::time::Duration,
}

/// Most that [`Work`] may ask for, each.
pub const LONGEST: std::time::Duration = std::time::Duration::from_millis(200);

/// What it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// How long high waited.
    pub waited: std::time::Duration,
    /// Whether mid had finished before high was inside.
    pub inverted: bool,
}

/// Runs the case once.
///
/// # Errors
///
/// Why it cannot be had here: no right to real-time priorities, not Linux, or a
/// lock that lets one reader in and two are asked for.
///
/// # Panics
///
/// If more than [`LONGEST`] is asked for, or a thread cannot be started.
pub fn run<L: RwSem>(case: Case, work: Work) -> Result<Found, String> {
    assert!(work.hold <= LONGEST && work.burn <= LONGEST, "too long");
    if L::ABOUT.pi {
        crate::futex::pi_available()?;
    }
    let readers = usize::from(case == Case::WriterBehindReaders) + 1;
    if L::new().limit().is_some_and(|limit| limit < readers) {
        return Err(format!("{}: {readers} readers do not fit", L::ABOUT.name));
    }
    imp::run::<L>(case, work)
}

/// Whether the calling thread may become a real-time thread.
///
/// # Errors
///
/// Why not.
pub fn available() -> Result<(), String> {
    imp::available()
}

#[cfg(not(all(target_os = "linux", not(miri))))]
mod imp {
    use super::*;

    pub(super) fn run<L: RwSem>(_: Case, _: Work) -> Result<Found, String> {
        available().map(|()| unreachable!())
    }

    pub(super) fn available() -> Result<(), String> {
        Err("real-time priorities are asked for on Linux only".to_owned())
    }
}

#[cfg(all(target_os = "linux", not(miri)))]
mod imp {
    use super::*;
    use percpu::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::io;
    use std::sync::{Condvar, Mutex};
    use std::time::{Duration, Instant};

    const LOW: i32 = 10;
    const MID: i32 = 20;
    const HIGH: i32 = 30;

    pub(super) fn available() -> Result<(), String> {
        std::thread::spawn(|| become_real_time(last_cpu()?, LOW))
            .join()
            .expect("asks only")
    }

    fn last_cpu() -> Result<usize, String> {
        // SAFETY: a set of bits; the call writes one.
        unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) != 0 {
                return Err(format!("no affinity: {}", io::Error::last_os_error()));
            }
            (0..libc::CPU_SETSIZE as usize)
                .rfind(|&cpu| libc::CPU_ISSET(cpu, &set))
                .ok_or_else(|| "no CPU".to_owned())
        }
    }

    /// Binds the calling thread to `cpu` and gives it a priority.
    fn become_real_time(cpu: usize, priority: i32) -> Result<(), String> {
        // SAFETY: as above; the parameter is read.
        unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(cpu, &mut set);
            if libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) != 0 {
                let error = io::Error::last_os_error();
                return Err(format!("cannot bind to CPU {cpu}: {error}"));
            }
            let parameter = libc::sched_param {
                sched_priority: priority,
            };
            if libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameter) != 0 {
                let error = io::Error::last_os_error();
                return Err(format!(
                    "no real-time priority: {error} (needs CAP_SYS_NICE or ulimit -r {HIGH})"
                ));
            }
        }
        Ok(())
    }

    fn cpu_time() -> Duration {
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: writes one time.
        unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
        Duration::new(
            time.tv_sec.unsigned_abs(),
            u32::try_from(time.tv_nsec).unwrap_or(0),
        )
    }

    /// Works for so much CPU time, and not for ever.
    fn work(time: Duration) {
        let (start, wall) = (cpu_time(), Instant::now());
        let deadline = 20 * time + Duration::from_millis(100);
        while cpu_time().saturating_sub(start) < time && wall.elapsed() < deadline {
            percpu::sync::spin_loop();
        }
    }

    // Relaxed (all): flags and a count; gates and joins carry what there is.

    /// A gate that threads sleep at.
    #[derive(Default)]
    struct Gate {
        open: Mutex<bool>,
        changed: Condvar,
    }

    impl Gate {
        fn open(&self) {
            *self.open.lock().expect("nobody panics here") = true;
            self.changed.notify_all();
        }

        fn pass(&self) {
            let mut open = self.open.lock().expect("nobody panics here");
            while !*open {
                open = self.changed.wait(open).expect("nobody panics here");
            }
        }
    }

    struct Stage<L> {
        lock: L,
        case: Case,
        work: Work,
        cpu: usize,
        /// Threads that are ready at their gates.
        ready: AtomicUsize,
        low: Gate,
        second: Gate,
        high: Gate,
        mid: Gate,
        /// High is about to wait.
        wants: AtomicBool,
        mid_done: AtomicBool,
    }

    impl<L: RwSem> Stage<L> {
        fn take_place(&self, priority: i32, gate: &Gate) -> Result<(), String> {
            let outcome = become_real_time(self.cpu, priority);
            self.ready.fetch_add(1, Ordering::Relaxed);
            gate.pass();
            outcome
        }

        /// Low, inside: starts the others and does its work.
        fn inside(&self, next: &Gate) {
            next.open();
            if !self.wants.load(Ordering::Relaxed) {
                // With two readers the other one has to enter first.
                let start = Instant::now();
                while !self.wants.load(Ordering::Relaxed) && start.elapsed() < LONGEST {
                    std::thread::sleep(Duration::from_micros(100));
                }
            }
            work(self.work.hold);
        }

        fn low(&self, gate: &Gate, next: &Gate) -> Result<(), String> {
            self.take_place(LOW, gate)?;
            if matches!(
                self.case,
                Case::WriterBehindReader | Case::WriterBehindReaders
            ) {
                let _guard = self.lock.read();
                self.inside(next);
            } else {
                let _guard = self.lock.write();
                self.inside(next);
            }
            Ok(())
        }

        fn mid(&self) -> Result<(), String> {
            self.take_place(MID, &self.mid)?;
            work(self.work.burn);
            self.mid_done.store(true, Ordering::Relaxed);
            Ok(())
        }

        fn high(&self) -> Result<Found, String> {
            let outcome = self.take_place(HIGH, &self.high);
            self.mid.open();
            self.wants.store(true, Ordering::Relaxed);
            outcome?;
            let start = Instant::now();
            let found = |start: Instant| Found {
                waited: start.elapsed(),
                inverted: self.mid_done.load(Ordering::Relaxed),
            };
            if self.case == Case::ReaderBehindWriter {
                let _guard = self.lock.read();
                Ok(found(start))
            } else {
                let _guard = self.lock.write();
                Ok(found(start))
            }
        }
    }

    pub(super) fn run<L: RwSem>(case: Case, work: Work) -> Result<Found, String> {
        let stage = Stage {
            lock: L::new(),
            case,
            work,
            cpu: last_cpu()?,
            ready: AtomicUsize::new(0),
            low: Gate::default(),
            second: Gate::default(),
            high: Gate::default(),
            mid: Gate::default(),
            wants: AtomicBool::new(false),
            mid_done: AtomicBool::new(false),
        };
        let two = case == Case::WriterBehindReaders;
        std::thread::scope(|scope| {
            let high = scope.spawn(|| stage.high());
            let mid = scope.spawn(|| stage.mid());
            let next = if two { &stage.second } else { &stage.high };
            let low = scope.spawn(|| stage.low(&stage.low, next));
            let second = two.then(|| scope.spawn(|| stage.low(&stage.second, &stage.high)));
            // A thread that is refused has counted itself as well: nobody is missed.
            while stage.ready.load(Ordering::Relaxed) < 3 + usize::from(two) {
                std::thread::sleep(Duration::from_millis(1));
            }
            stage.low.open();
            let outcomes = [Some(low), second, Some(mid)]
                .into_iter()
                .flatten()
                .map(|thread| {
                    let outcome = thread.join().expect("does not panic");
                    if outcome.is_err() {
                        // Who was not to come does not open the next gate.
                        stage.second.open();
                        stage.high.open();
                    }
                    outcome
                })
                .collect::<Result<Vec<()>, String>>();
            let found = high.join().expect("does not panic");
            outcomes.and(found)
        })
    }
}
