//! The program that the environment, fork and signal tests of `rcu-lite` run.
//!
//! Usage: `rcu-child COMMAND [KEY=VALUE …]`. Prints one `SUMMARY` line.

#[cfg(target_os = "linux")]
mod linux {
    use rcu_lite::{Callbacks, Flavor, QsbrRcu, Rcu, RcuCell, ThreadRcu, Timeout};
    use std::process::ExitCode;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::sync::{Arc, Barrier};
    use std::thread;
    use std::time::{Duration, Instant};
    use tests::arguments::Arguments;
    use tests::rcu_smoke::{Value, describe};
    use tests::seccomp::{Answer, install, install_here};
    use tests::{counting, machine, rcu_signals, rcu_smoke};

    #[global_allocator]
    static ALLOCATOR: counting::Counting = counting::Counting;

    const BARRIER_CALLS: [libc::c_long; 2] = [libc::SYS_membarrier, libc::SYS_rseq];
    const THREAD_CALLS: [libc::c_long; 2] = [libc::SYS_clone, libc::SYS_clone3];
    const SHORT: Duration = Duration::from_millis(10);

    pub(super) fn main() -> ExitCode {
        let mut words = std::env::args().skip(1);
        let command = words.next().unwrap_or_default();
        let arguments = Arguments::parse(words);
        machine::watchdog(120);
        match command.as_str() {
            "smoke" => smoke_under(&arguments),
            "late" => late(),
            "late-domains" => late_domains(),
            #[cfg(target_arch = "x86_64")]
            "restored" => restored(),
            "crowd" => crowd(&arguments),
            "recover" => recover(),
            "threadless" => threadless(),
            "signals" => signals_by(&arguments),
            "wait" => wait_by(&arguments),
            "atexit" => at_exit(),
            "leave" => leave(),
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
        let rounds = arguments.number("rounds", 1500) as usize;
        let mut report = rcu_smoke::run(threads, rounds);
        if arguments.text("cpu") == "last" {
            // Wider again: other CPUs are met for the first time.
            machine::set_affinity(0, &cpus).expect("affinity");
            report = rcu_smoke::run(threads, rounds);
        }
        eprintln!("{}", percpu::capabilities());
        println!("SUMMARY smoke {} {report} result=ok", describe());
    }

    /// The kernel grants the barrier, then refuses it for ever.
    fn late() {
        let report = rcu_smoke::run(2, 300);
        assert_eq!(report.barriers_lost, 0);
        install(&BARRIER_CALLS[..1], Answer::Errno(libc::EPERM)).expect("filter");
        static OWN: Rcu = Rcu::new();
        let refused = lost(&&OWN, true)
            + lost(&rcu_signals::own_domain(), false)
            + lost(&Rcu::global(), false)
            + lost(&ThreadRcu, false);
        // Needs no barrier of the kernel's.
        let _ = rcu_smoke::one(&QsbrRcu, 2, 300);
        assert_eq!(QsbrRcu.stats().barriers_lost, 0);
        println!(
            "SUMMARY late {} {report} refused={refused} result=ok",
            describe()
        );
    }

    /// The kernel forgets the registration, again and again, as after a
    /// checkpoint is restored: no grace period is put off.
    #[cfg(target_arch = "x86_64")]
    fn restored() {
        use tests::checkpoint;
        let mut report = rcu_smoke::run(2, 100);
        checkpoint::install().expect("filter");
        let times = 20;
        for _ in 0..times {
            checkpoint::forget();
            report = rcu_smoke::run(2, 100);
            assert_eq!(report.barriers_lost, 0);
            Rcu::global().synchronize();
        }
        let seen = checkpoint::seen();
        println!(
            "SUMMARY restored {} {report} times={times} refused={} registered={} result=ok",
            describe(),
            seen.refused,
            seen.registered,
        );
    }

    /// Very many threads, all inside sections of each flavour at once.
    fn crowd(arguments: &Arguments) {
        let count = arguments.number("threads", 3000) as usize;
        let passed =
            inside(&Rcu::global(), count) + inside(&ThreadRcu, count) + inside(&QsbrRcu, count);
        println!(
            "SUMMARY crowd {} threads={count} passed={passed} result=ok",
            describe()
        );
    }

    fn inside<F: Flavor + Clone + Send + Sync>(flavor: &F, count: usize) -> usize {
        let dropped = Arc::new(AtomicUsize::new(0));
        let cell = RcuCell::new_in(Value::new(0, &dropped), flavor.clone());
        let (held, last) = (Barrier::new(count + 1), Barrier::new(count + 1));
        thread::scope(|scope| {
            for _ in 0..count {
                let (cell, held, last) = (&cell, &held, &last);
                thread::Builder::new()
                    .stack_size(64 << 10)
                    .spawn_scoped(scope, move || {
                        let guard = flavor.read();
                        let value = cell.load(&guard);
                        assert_eq!(value.check(), 0);
                        held.wait();
                        last.wait();
                        // The first value still, whatever was stored meanwhile.
                        assert_eq!(value.check(), 0);
                        drop(guard);
                    })
                    .expect("a thread");
            }
            held.wait();
            cell.replace(Value::new(1, &dropped));
            let cookie = flavor.start_poll();
            assert_eq!(
                flavor.synchronize_timeout(SHORT),
                Err(Timeout::ReadersRemain)
            );
            assert!(!flavor.poll(&cookie), "{count} threads are inside");
            assert_eq!(dropped.load(Ordering::SeqCst), 0);
            last.wait();
        });
        flavor.synchronize();
        flavor.drain();
        assert_eq!(dropped.load(Ordering::SeqCst), 1);
        count
    }

    /// Nothing is freed, everything says so, readers go on.
    fn lost<F: Flavor + Clone>(flavor: &F, manual: bool) -> u64 {
        if manual {
            flavor.set_callbacks(Callbacks::Manual);
        }
        let before = flavor.stats();
        let dropped = Arc::new(AtomicUsize::new(0));
        let cell = RcuCell::new_in(Value::new(0, &dropped), flavor.clone());
        let guard = flavor.read();
        let first = cell.load(&guard);
        for n in 1..=1000 {
            cell.replace(Value::new(n, &dropped));
            if n % 10 == 0 {
                let guard = flavor.read();
                assert_eq!(cell.load(&guard).check(), n, "readers go on");
            }
        }
        assert_eq!(first.check(), 0);
        drop(guard);
        thread::sleep(SHORT);
        // Nobody is inside any more.
        let cookie = flavor.start_poll();
        for limit in [Duration::ZERO, SHORT] {
            assert_eq!(
                flavor.synchronize_timeout(limit),
                Err(Timeout::BarrierLost),
                "limit {limit:?}"
            );
        }
        assert!(!flavor.poll(&cookie));
        let stats = flavor.stats();
        assert!(stats.barriers_lost > before.barriers_lost, "{stats:?}");
        assert_eq!(stats.grace_periods, before.grace_periods);
        assert_eq!((stats.run, stats.pending), (before.run, 1000), "{stats:?}");
        assert_eq!(dropped.load(Ordering::SeqCst), 0);
        // Its one value can be had: nobody borrows the cell.
        assert_eq!(cell.into_inner().check(), 1000);
        assert_eq!(dropped.load(Ordering::SeqCst), 1);
        stats.barriers_lost
    }

    /// Domains end although the barrier is lost: they have no readers.
    fn late_domains() {
        // Decides the rung.
        drop(Rcu::global().read());
        Rcu::global().synchronize();
        install(&BARRIER_CALLS[..1], Answer::Errno(libc::EPERM)).expect("filter");
        let dropped = Arc::new(AtomicUsize::new(0));
        for mode in [
            Callbacks::Manual,
            Callbacks::Inline { threshold: 4 },
            Callbacks::Worker,
        ] {
            dropped.store(0, Ordering::SeqCst);
            let rcu = Rcu::with_callbacks(mode);
            drop(rcu.read());
            for n in 0..100 {
                rcu.defer_drop(Box::new(Value::new(n, &dropped)));
            }
            thread::sleep(SHORT);
            assert_eq!(dropped.load(Ordering::SeqCst), 0);
            assert_eq!(rcu.synchronize_timeout(SHORT), Err(Timeout::BarrierLost));
            drop(rcu);
            assert_eq!(dropped.load(Ordering::SeqCst), 100, "{mode:?}");
        }
        println!("SUMMARY late-domains {} result=ok", describe());
    }

    /// One thread is refused the barrier, the others are not: what it could
    /// not finish is finished by another.
    fn recover() {
        static OWN: Rcu = Rcu::new();
        recovers(&&OWN);
        recovers(&ThreadRcu);
        println!("SUMMARY recover {} result=ok", describe());
    }

    fn recovers<F: Flavor + Clone>(flavor: &F) {
        flavor.set_callbacks(Callbacks::Manual);
        let dropped = Arc::new(AtomicUsize::new(0));
        let cell = Arc::new(RcuCell::new_in(Value::new(1, &dropped), flavor.clone()));
        drop(flavor.read());
        flavor.synchronize();
        let before = flavor.stats();
        let guard = flavor.read();
        let refused = {
            let (flavor, cell, dropped) = (flavor.clone(), Arc::clone(&cell), Arc::clone(&dropped));
            thread::spawn(move || {
                install_here(&BARRIER_CALLS[..1], Answer::Errno(libc::EPERM)).expect("filter");
                cell.replace(Value::new(2, &dropped));
                let cookie = flavor.start_poll();
                assert_eq!(flavor.synchronize_timeout(SHORT), Err(Timeout::BarrierLost));
                assert!(!flavor.poll(&cookie));
                assert_eq!(cell.load(&flavor.read()).check(), 2);
                cookie
            })
        };
        let cookie = refused.join().expect("the refused thread");
        assert!(flavor.stats().barriers_lost > before.barriers_lost);
        assert_eq!(flavor.stats().grace_periods, before.grace_periods);
        assert!(!flavor.poll(&cookie), "this reader was there before");
        assert_eq!(dropped.load(Ordering::SeqCst), 0);
        drop(guard);
        assert_eq!(flavor.synchronize_timeout(Duration::from_secs(60)), Ok(()));
        assert!(flavor.poll(&cookie));
        assert_eq!(flavor.drain(), 1);
        assert_eq!(dropped.load(Ordering::SeqCst), 1);
    }

    /// No thread can be started: what waits is run by those who ask, and by a
    /// worker once there can be one (never, here).
    fn threadless() {
        let deaf = || install(&THREAD_CALLS, Answer::Errno(libc::EAGAIN)).expect("filter");
        drop(Rcu::global().read());
        deaf();
        assert!(thread::Builder::new().spawn(|| ()).is_err(), "the filter");
        static OWN: Rcu = Rcu::new();
        without_threads(&&OWN);
        without_threads(&ThreadRcu);
        without_threads(&QsbrRcu);
        println!("SUMMARY threadless {} result=ok", describe());
    }

    fn without_threads<F: Flavor + Clone>(flavor: &F) {
        let dropped = Arc::new(AtomicUsize::new(0));
        for n in 0..5000 {
            let guard = flavor.read();
            flavor.defer_drop(Box::new(Value::new(n, &dropped)));
            drop(guard);
        }
        let stats = flavor.stats();
        assert!(!stats.worker, "{stats:?}");
        flavor.barrier();
        assert_eq!(dropped.load(Ordering::SeqCst), 5000);
        assert_eq!(flavor.stats().pending, 0);
    }

    fn signals_by(arguments: &Arguments) {
        let time = Duration::from_millis(arguments.number("ms", 1000));
        let only = arguments.is("only-handler");
        let report = match arguments.text("flavor") {
            "own" => rcu_signals::run(&rcu_signals::own_domain(), time, only),
            "rcu" => rcu_signals::run(&Rcu::global(), time, only),
            "thread" => rcu_signals::run(&ThreadRcu, time, only),
            "qsbr" => rcu_signals::run(&QsbrRcu, time, only),
            other => panic!("flavor={other}"),
        };
        println!(
            "SUMMARY signals {} runs={} wrong={} allocated={} rounds={} pending={} result=ok",
            describe(),
            report.runs,
            report.wrong,
            report.allocated,
            report.rounds,
            report.pending
        );
    }

    fn wait_by(arguments: &Arguments) {
        let time = Duration::from_millis(arguments.number("ms", 1000));
        let (waits, signals) = match arguments.text("flavor") {
            "rcu" => rcu_signals::wait_under_signals(&Rcu::global(), time),
            "thread" => rcu_signals::wait_under_signals(&ThreadRcu, time),
            "qsbr" => rcu_signals::wait_under_signals(&QsbrRcu, time),
            other => panic!("flavor={other}"),
        };
        println!(
            "SUMMARY wait {} waits={waits} signals={signals} result=ok",
            describe()
        );
    }

    /// Uses everything from a handler that runs after `main` and after the
    /// main thread's thread-locals.
    fn at_exit() {
        extern "C" fn last() {
            let report = rcu_smoke::run(2, 100);
            let guards = (Rcu::global().read(), ThreadRcu.read(), QsbrRcu.read());
            drop((ThreadRcu.read(), guards));
            println!("SUMMARY atexit {} {report} result=ok", describe());
        }
        drop((Rcu::global().read(), ThreadRcu.read(), QsbrRcu.read()));
        // SAFETY: `last` is a static function that takes nothing.
        assert_eq!(unsafe { libc::atexit(last) }, 0);
    }

    /// Ends with callbacks queued, with the worker at them, and with a reader
    /// inside on another thread: at once, and quietly.
    fn leave() {
        let stop = Arc::new(AtomicBool::new(false));
        let inside = Arc::new(AtomicBool::new(false));
        for n in 0..1000 {
            Rcu::global().call(move || assert!(n < 1000));
            ThreadRcu.call(move || assert!(n < 1000));
            QsbrRcu.call(move || assert!(n < 1000));
        }
        thread::spawn({
            let (stop, inside) = (Arc::clone(&stop), Arc::clone(&inside));
            move || {
                let guards = (Rcu::global().read(), ThreadRcu.read(), QsbrRcu.read());
                inside.store(true, Ordering::SeqCst);
                while !stop.load(Ordering::SeqCst) {
                    thread::sleep(SHORT);
                }
                drop(guards);
            }
        });
        let start = Instant::now();
        while !inside.load(Ordering::SeqCst) && start.elapsed() < Duration::from_secs(60) {
            thread::yield_now();
        }
        for _ in 0..1000 {
            Rcu::global().call(|| unreachable!("a reader is inside"));
        }
        println!("SUMMARY leave {} result=ok", describe());
    }
}

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    linux::main()
}

#[cfg(not(target_os = "linux"))]
fn main() {}
