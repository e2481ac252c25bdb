//! The program that the environment and signal tests run.
//!
//! Usage: `hp-child COMMAND [KEY=VALUE …]`. Prints one `SUMMARY` line.

#[cfg(target_os = "linux")]
mod linux {
    use hp::{Atomic, Domain};
    use std::process::ExitCode;
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;
    use std::time::Duration;
    use tests::arguments::Arguments;
    use tests::seccomp::{Answer, install};
    use tests::{counting, machine, signals, smoke};

    #[global_allocator]
    static ALLOCATOR: counting::Counting = counting::Counting;

    /// The calls that a rung could make.
    const BARRIER_CALLS: [libc::c_long; 2] = [libc::SYS_membarrier, libc::SYS_rseq];

    pub(super) fn main() -> ExitCode {
        let mut words = std::env::args().skip(1);
        let command = words.next().unwrap_or_default();
        let arguments = Arguments::parse(words);
        machine::watchdog(120);
        match command.as_str() {
            "smoke" => smoke_under(&arguments),
            "late" => late(),
            #[cfg(target_arch = "x86_64")]
            "restored" => restored(),
            "crowd" => crowd(&arguments),
            "signals" => signals_by(&arguments),
            "atexit" => at_exit(),
            "fork-early" => fork_early(),
            other => {
                eprintln!("unknown command {other:?}");
                return ExitCode::from(2);
            }
        }
        ExitCode::SUCCESS
    }

    fn smoke_under(arguments: &Arguments) {
        match arguments.text("filter") {
            "" => {}
            "enosys" => install(&BARRIER_CALLS[..1], Answer::Errno(libc::ENOSYS)).expect("filter"),
            "eperm" => install(&BARRIER_CALLS[..1], Answer::Errno(libc::EPERM)).expect("filter"),
            "kill" => install(&BARRIER_CALLS, Answer::Kill).expect("filter"),
            other => panic!("filter={other}"),
        }
        let cpus = machine::allowed_cpus();
        if arguments.text("cpu") == "last" {
            machine::set_affinity(0, &cpus[cpus.len() - 1..]).expect("affinity");
        }
        let threads = arguments.number("threads", 3) as usize;
        let rounds = arguments.number("rounds", 3000) as usize;
        let stop = AtomicBool::new(false);
        let (report, moves) = thread::scope(|scope| {
            let shuffler = (arguments.text("shuffle") == "yes").then(|| {
                let (stop, cpus) = (&stop, &cpus);
                let main = machine::gettid();
                scope.spawn(move || {
                    let mut moves = 0;
                    while !stop.load(Ordering::Relaxed) {
                        // The main thread and, by inheritance, those it makes.
                        let set = match moves % 3 {
                            0 => &cpus[..1],
                            1 => &cpus[cpus.len() - 1..],
                            _ => &cpus[..],
                        };
                        moves += u64::from(machine::set_affinity(main, set).is_ok());
                        thread::sleep(Duration::from_millis(1));
                    }
                    moves
                })
            });
            let mut report = smoke::run(threads, rounds);
            if arguments.text("cpu") == "last" {
                // Wider again: other CPUs are met for the first time.
                machine::set_affinity(0, &cpus).expect("affinity");
                report = smoke::run(threads, rounds);
            }
            if shuffler.is_some() {
                // Alone on this thread, which is the one that is moved.
                let cell = Atomic::<[usize; 2]>::new([1; 2]);
                for n in 0..200_000 {
                    let guard = cell.load().expect("a value");
                    assert_eq!(guard[0], guard[1]);
                    if n % 16 == 0 {
                        cell.store([n; 2]);
                    }
                }
            }
            stop.store(true, Ordering::Relaxed);
            let moves = shuffler.map_or(0, |s| s.join().expect("shuffler"));
            (report, moves)
        });
        let here = percpu::capabilities();
        eprintln!("{here}");
        println!(
            "SUMMARY smoke {} {report} moves={moves} result=ok",
            smoke::describe(Domain::global())
        );
    }

    /// The kernel grants the barrier, then refuses it for ever.
    fn late() {
        let report = smoke::run(2, 2000);
        let before = Domain::global().stats();
        assert_eq!(before.barrier_failures, 0);
        install(&BARRIER_CALLS[..1], Answer::Errno(libc::EPERM)).expect("filter");
        let domain = Domain::new();
        let cell = Atomic::new(7u64);
        let guard = cell.load().expect("a value");
        let mut kept = Vec::new();
        for n in 0..20_000u64 {
            let one = Atomic::new(n);
            if n % 1000 == 0 {
                kept.extend(one.load());
            }
            one.take().expect("a value").retire_in(&domain);
        }
        assert_eq!(domain.drain(), 0, "nothing is freed without a barrier");
        assert_eq!(domain.reclaim(usize::MAX), 0);
        let stats = domain.stats();
        assert_eq!((stats.pending, stats.reclaimed), (20_000, 0), "{stats:?}");
        assert!(stats.barrier_failures > 0, "{stats:?}");
        assert!(hp::scan(guard.as_ptr().cast(), |_| ()).is_err());
        assert!(
            hp::synchronize_timeout(std::ptr::without_provenance(64), Duration::from_millis(5))
                .is_err()
        );
        let mut alone = Atomic::new(3u8);
        assert!(alone.get_mut().is_none(), "cannot be known to be alone");
        for (n, guard) in kept.iter().enumerate() {
            assert_eq!(**guard, n as u64 * 1000);
        }
        drop((guard, kept));
        cell.store(8);
        assert_eq!(*cell.load().expect("a value"), 8, "readers go on");
        // Hands its objects to the global domain, which keeps them as well.
        drop(domain);
        assert!(Domain::global().stats().pending >= 20_000);
        println!(
            "SUMMARY late {} {report} refused={} result=ok",
            smoke::describe(Domain::global()),
            stats.barrier_failures
        );
    }

    /// The kernel forgets the registration, again and again, as after a
    /// checkpoint is restored: nothing is put off.
    #[cfg(target_arch = "x86_64")]
    fn restored() {
        use tests::checkpoint;
        let mut report = smoke::run(2, 200);
        checkpoint::install().expect("filter");
        let times = 20;
        for _ in 0..times {
            checkpoint::forget();
            report = smoke::run(2, 200);
            let domain = Domain::global();
            domain.drain();
            assert_eq!(domain.stats().barrier_failures, 0, "{:?}", domain.stats());
            assert_eq!(domain.stats().pending, 0, "{:?}", domain.stats());
        }
        let seen = checkpoint::seen();
        println!(
            "SUMMARY restored {} {report} times={times} refused={} registered={} result=ok",
            smoke::describe(Domain::global()),
            seen.refused,
            seen.registered,
        );
    }

    /// Its halves differ once it was dropped.
    struct Poisoned([usize; 2]);

    impl Poisoned {
        fn check(&self) {
            assert_eq!(self.0[0], self.0[1], "a dead value");
        }
    }

    impl Drop for Poisoned {
        fn drop(&mut self) {
            self.check();
            self.0[1] = !self.0[0];
        }
    }

    /// Very many threads, all alive and all holding guards of each kind.
    fn crowd(arguments: &Arguments) {
        let count = arguments.number("threads", 3000) as usize;
        let cell = Atomic::new(Poisoned([1; 2]));
        let (held, last) = (Barrier::new(count + 1), Barrier::new(count + 1));
        let before = Domain::global().stats();
        thread::scope(|scope| {
            for n in 0..count {
                let (cell, held, last) = (&cell, &held, &last);
                thread::Builder::new()
                    .stack_size(64 << 10)
                    .spawn_scoped(scope, move || {
                        let first = cell.load().expect("a value");
                        let mut hazard = hp::HazardPointer::new();
                        hazard.protect_raw(first.as_ptr().cast());
                        let mut own = cell.load().expect("a value");
                        own.detach();
                        cell.store(Poisoned([n; 2]));
                        held.wait();
                        last.wait();
                        // All have stored and a pass was made.
                        first.check();
                        own.check();
                    })
                    .expect("a thread");
            }
            held.wait();
            Domain::global().drain();
            let stats = Domain::global().stats();
            assert_eq!(stats.retired - before.retired, count as u64, "{stats:?}");
            last.wait();
        });
        Domain::global().drain();
        let stats = Domain::global().stats();
        assert_eq!((stats.pending, stats.barrier_failures), (0, 0), "{stats:?}");
        println!(
            "SUMMARY crowd {} threads={count} retired={} result=ok",
            smoke::describe(Domain::global()),
            stats.retired - before.retired,
        );
    }

    fn signals_by(arguments: &Arguments) {
        let report = signals::run(
            Duration::from_millis(arguments.number("ms", 1000)),
            arguments.text("full") == "yes",
            arguments.text("only-handler") == "yes",
        );
        println!(
            "SUMMARY signals {} runs={} wrong={} allocated={} leaked={} rounds={} result=ok",
            smoke::describe(Domain::global()),
            report.runs,
            report.wrong,
            report.allocated,
            report.leaked,
            report.rounds
        );
    }

    /// Forks again and again while other threads retire to a domain in which
    /// retiring decides nothing, and drains in the child.
    fn fork_early() {
        let domain = Domain::manual();
        let empty = Domain::manual();
        let stop = AtomicBool::new(false);
        let (forks, mut hung) = (20, 0);
        thread::scope(|scope| {
            // Draining what is empty decides nothing, but takes words that
            // hold the process's generation.
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    empty.drain();
                }
            });
            for _ in 0..4 {
                scope.spawn(|| {
                    for n in 1..300_000 {
                        if stop.load(Ordering::Relaxed) {
                            break;
                        }
                        // SAFETY: the deleter does nothing.
                        unsafe { domain.retire_key(n, |_| ()) };
                    }
                });
            }
            let children: Vec<_> = (0..forks)
                .map(|_| {
                    thread::sleep(Duration::from_micros(100));
                    // SAFETY: the child only drains, then ends by `_exit`.
                    let pid = unsafe { libc::fork() };
                    if pid == 0 {
                        machine::deadline(20);
                        domain.drain();
                        empty.drain();
                        // SAFETY: ends the child at once.
                        unsafe { libc::_exit(0) };
                    }
                    pid
                })
                .collect();
            stop.store(true, Ordering::Relaxed);
            for pid in children {
                let mut status = 0;
                // SAFETY: waits for our own child, writes `status`.
                assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
                hung += u32::from(libc::WIFSIGNALED(status));
            }
        });
        println!("SUMMARY fork-early forks={forks} hung={hung} result=ok");
    }

    /// Uses everything from a handler that runs after `main` and after the
    /// main thread's thread-locals.
    fn at_exit() {
        extern "C" fn last() {
            let report = smoke::run(2, 200);
            let cell = Atomic::new(1u8);
            let guard = cell.load();
            drop(cell);
            assert_eq!(guard.as_deref(), Some(&1));
            println!(
                "SUMMARY atexit {} {report} result=ok",
                smoke::describe(Domain::global())
            );
        }
        drop(hp::HazardPointer::new());
        // SAFETY: `last` is a static function that takes nothing.
        assert_eq!(unsafe { libc::atexit(last) }, 0);
    }
}

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    linux::main()
}

#[cfg(not(target_os = "linux"))]
fn main() {}
