//! Bad days of the environment: calls that are missing or filtered, another rung, no rseq, signals, CPUs that come late.
//! What must hold for the whole process is tried in a run of this program of its own.
//!
//! The numbers are those of the public reports that each test is made from (liburcu, tcmalloc, jemalloc, container
//! run-times).

#![cfg(all(target_os = "linux", not(miri)))]

mod common;

use common::{Watchdog, for_each_lock, storm};
use rwsems::per_cpu::PerCpu;
use rwsems::{Region, RwSem, Visit, VisitLock, Vma};
use std::process::Command;
use std::time::{Duration, Instant};

const ROUNDS: usize = 300;

#[derive(Clone, Copy)]
struct Storm;

impl VisitLock for Storm {
    type Out = ();
    fn visit<L: RwSem>(self) {
        storm(&L::new(), 2, 2, ROUNDS);
    }
}

struct Replace;

impl Visit for Replace {
    type Out = ();
    fn visit<R: Region>(self) {
        let region = R::new(Vma::new(1, 1));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    assert!(region.read(|vma| vma.is_whole()), "{}", R::ABOUT.name);
                }
            });
            for _ in 0..ROUNDS {
                region.write(Vma::next);
            }
        });
        assert_eq!(region.read(Vma::generation), ROUNDS as u64);
        region.flush();
    }
}

fn smoke() {
    let _watchdog = Watchdog::new("smoke");
    for_each_lock(Storm);
    for about in rwsems::all() {
        if about.pi && rwsems::futex::pi_available().is_err() {
            continue;
        }
        rwsems::dispatch(about.name, Replace).expect("a variant");
    }
}

const ROLE: &str = "RWSEMS_TEST_ROLE";

/// Runs [`child`] in a process of its own.
fn in_child(role: &str, environment: &[(&str, &str)]) {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture"])
        .env(ROLE, role)
        .envs(environment.iter().copied())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{role} {environment:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Not a test by itself.
#[test]
fn child() {
    match std::env::var(ROLE).as_deref() {
        Ok("smoke") => smoke(),
        Ok("fence") => {
            assert_eq!(percpu::barrier::rung(), percpu::barrier::Rung::Fence);
            smoke();
        }
        Ok("no membarrier") => {
            filter(libc::SYS_membarrier, None, libc::ENOSYS);
            assert_eq!(percpu::barrier::rung(), percpu::barrier::Rung::Fence);
            smoke();
        }
        Ok("no pi") => {
            filter(libc::SYS_futex, Some(libc::FUTEX_LOCK_PI), libc::ENOSYS);
            filter(libc::SYS_futex, Some(libc::FUTEX_UNLOCK_PI), libc::ENOSYS);
            let why = rwsems::futex::pi_available().unwrap_err();
            assert!(why.contains("PI futexes"), "{why}");
            smoke();
        }
        Ok(other) => panic!("{other}?"),
        Err(_) => {}
    }
}

/// Answers a call with an error, for this process from now on; a futex call only with this operation.
fn filter(call: libc::c_long, operation: Option<libc::c_int>, errno: i32) {
    let op = |code: u32, jt, jf, k| libc::sock_filter {
        code: code as u16,
        jt,
        jf,
        k,
    };
    let load = |offset| op(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, offset);
    let equal = |value, skip| op(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, skip, value);
    let answer = |value| op(libc::BPF_RET | libc::BPF_K, 0, 0, value);
    let mut program = vec![
        load(0),
        equal(call as u32, if operation.is_some() { 4 } else { 1 }),
    ];
    if let Some(operation) = operation {
        // The second argument, its lower half, without the flag for private ones.
        program.push(load(24));
        let mask = !(libc::FUTEX_PRIVATE_FLAG as u32);
        program.push(op(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, 0, 0, mask));
        program.push(equal(operation as u32, 1));
    }
    program.push(answer(libc::SECCOMP_RET_ERRNO | errno as u32));
    program.push(answer(libc::SECCOMP_RET_ALLOW));
    let program = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    // SAFETY: the instructions live until the calls return; the kernel copies and checks them.
    let outcome = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_TSYNC,
            &raw const program,
        )
    };
    assert_eq!(outcome, 0, "{}", std::io::Error::last_os_error());
}

/// Sandboxes that filter `membarrier`: everything works on the rung that needs nothing.
#[test]
fn report_80_membarrier_is_filtered_or_not_asked_for() {
    in_child("no membarrier", &[]);
    in_child("fence", &[("HP_BARRIER", "fence")]);
    in_child("smoke", &[("HP_BARRIER", "membarrier")]);
}

/// No registration, or somebody else's: the readers of `percpu` and `vma-*` go the portable way.
#[test]
fn report_81_rseq_is_off() {
    in_child("smoke", &[("GLIBC_TUNABLES", "glibc.pthread.rseq=0")]);
}

/// The kernel has no PI futexes: that is said, and the others work.
#[test]
fn report_80_pi_futexes_are_filtered() {
    in_child("no pi", &[]);
}

/// A barrier that waits for a grace period of the kernel takes milliseconds; a thousand of ours less than a second.
#[test]
fn report_84_a_thousand_writers_of_percpu_take_less_than_a_second() {
    let lock = PerCpu::<rwsems::futex::Os>::new();
    // The best of three: the machine is shared.
    let best = (0..3)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..1000 {
                drop(lock.write());
            }
            start.elapsed()
        })
        .min()
        .unwrap();
    assert!(best < Duration::from_secs(1), "{best:?}");
}

/// Signals at 1 kHz, whose handler does not ask for calls to be restarted: no wake-up is lost, nobody is let in.
#[test]
fn report_85_signals_all_the_time() {
    extern "C" fn handler(_: libc::c_int) {}
    let _watchdog = Watchdog::new("signals");
    // SAFETY: the handler does nothing; the structs are complete.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as libc::sighandler_t;
        libc::sigaction(libc::SIGALRM, &raw const action, std::ptr::null_mut());
    }
    let timer = |period_us| {
        let period = libc::timeval {
            tv_sec: 0,
            tv_usec: period_us,
        };
        let timer = libc::itimerval {
            it_interval: period,
            it_value: period,
        };
        // SAFETY: reads the struct.
        unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, std::ptr::null_mut()) };
    };
    timer(1000);
    for_each_lock(Storm);
    timer(0);
}

/// Tables sized by the CPUs that a process may use at first, indexed by CPU numbers: here the process begins on its last
/// CPU, and may use all of them later.
#[test]
fn report_86_the_last_cpu_first_and_all_of_them_later() {
    let mut all = std::mem::MaybeUninit::<libc::cpu_set_t>::zeroed();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _watchdog = Watchdog::new("CPUs");
            let size = size_of::<libc::cpu_set_t>();
            // SAFETY: sets of bits, which the calls read or write; the calling thread's.
            unsafe {
                assert_eq!(libc::sched_getaffinity(0, size, all.as_mut_ptr()), 0);
                let all = all.assume_init();
                let last = (0..libc::CPU_SETSIZE as usize).rfind(|&cpu| libc::CPU_ISSET(cpu, &all));
                let mut one: libc::cpu_set_t = std::mem::zeroed();
                libc::CPU_SET(last.expect("a CPU"), &mut one);
                assert_eq!(libc::sched_setaffinity(0, size, &raw const one), 0);
                let lock = PerCpu::<rwsems::futex::Os>::new();
                storm(&lock, 2, 1, ROUNDS);
                assert_eq!(libc::sched_setaffinity(0, size, &raw const all), 0);
                storm(&lock, 4, 1, ROUNDS);
            }
        });
    });
}
