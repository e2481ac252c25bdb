//! A kernel that forgets what the process has registered, as one does to which
//! a checkpoint was restored: `membarrier` says `EPERM` until the process
//! registers again.
//!
//! Floor 4, tests only. Owns the process's `SIGSYS` handler and one filter.
//! The filter sends each `membarrier` command to the handler, which answers for
//! the kernel, or asks it by a call that the filter knows by its third
//! argument (which the kernel ignores unless a flag says otherwise).

use crate::seccomp::{Answer, install_commands};
use std::io;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

/// Commands of `membarrier(2)` that need a registration, and those that make it.
const NEED: [i32; 2] = [1 << 3, 1 << 7];
const MAKE: [i32; 2] = [1 << 4, 1 << 8];

const PASS: u32 = 0x7e57_ca11;

/// Bit `n`: the registration for `NEED[n]` is forgotten.
static FORGOTTEN: AtomicU32 = AtomicU32::new(0);
static REFUSED: AtomicUsize = AtomicUsize::new(0);
static MADE: AtomicUsize = AtomicUsize::new(0);

/// What the handler answered since the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Barriers that were refused for want of a registration.
    pub refused: usize,
    /// Registrations that were made again.
    pub registered: usize,
}

/// Puts the handler between the process and `membarrier`. Nothing is forgotten
/// yet.
///
/// # Errors
///
/// If the kernel has no filters.
pub fn install() -> io::Result<()> {
    // SAFETY: the action is zeroed and then filled; the handler makes only
    // calls that may be made in a handler.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_call as extern "C" fn(_, _, _) as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        if libc::sigaction(libc::SIGSYS, &raw const action, std::ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    let commands: Vec<i32> = NEED.into_iter().chain(MAKE).collect();
    install_commands(libc::SYS_membarrier, &commands, Some(PASS), Answer::Trap)
}

/// The checkpoint: what is registered now is forgotten.
pub fn forget() {
    FORGOTTEN.store(!0, Ordering::SeqCst);
}

/// What was asked so far.
#[must_use]
pub fn seen() -> Seen {
    Seen {
        refused: REFUSED.load(Ordering::SeqCst),
        registered: MADE.load(Ordering::SeqCst),
    }
}

/// The kernel's answer, or the forgetful one's: a result or `-errno`.
fn answer(command: i32) -> i64 {
    if let Some(n) = NEED.iter().position(|need| *need == command)
        && FORGOTTEN.load(Ordering::SeqCst) & (1 << n) != 0
    {
        REFUSED.fetch_add(1, Ordering::SeqCst);
        return -i64::from(libc::EPERM);
    }
    if let Some(n) = MAKE.iter().position(|make| *make == command)
        && FORGOTTEN.fetch_and(!(1 << n), Ordering::SeqCst) & (1 << n) != 0
    {
        MADE.fetch_add(1, Ordering::SeqCst);
    }
    // SAFETY: membarrier touches no memory of ours; errno is put back.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        let result = libc::syscall(libc::SYS_membarrier, command, 0, PASS);
        let result = if result < 0 {
            -i64::from(*errno)
        } else {
            result
        };
        *errno = before;
        result
    }
}

#[cfg(target_arch = "x86_64")]
extern "C" fn on_call(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes the interrupted context, which is ours to
    // change until the handler returns.
    let registers = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    let command = registers[libc::REG_RDI as usize] as i32;
    registers[libc::REG_RAX as usize] = answer(command);
}
