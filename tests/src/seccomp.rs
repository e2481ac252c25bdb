//! System call filters, as sandboxes install them.

use std::io;

/// What the kernel does when a listed call is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The call fails with this error number.
    Errno(i32),
    /// The process dies.
    Kill,
}

const LOAD_WORD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const JUMP_IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// Filters `calls` for all threads of the process, for good.
///
/// # Errors
///
/// If this kernel has no filters, or refuses this one.
pub fn install(calls: &[libc::c_long], answer: Answer) -> io::Result<()> {
    install_with(calls, answer, libc::SECCOMP_FILTER_FLAG_TSYNC)
}

/// As [`install`], for the calling thread and those that it starts.
///
/// # Errors
///
/// As [`install`].
pub fn install_here(calls: &[libc::c_long], answer: Answer) -> io::Result<()> {
    install_with(calls, answer, 0)
}

fn install_with(calls: &[libc::c_long], answer: Answer, flags: libc::c_ulong) -> io::Result<()> {
    let op = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let verdict = match answer {
        Answer::Errno(errno) => libc::SECCOMP_RET_ERRNO | errno as u32,
        Answer::Kill => libc::SECCOMP_RET_KILL_PROCESS,
    };
    // The call's number is the first word of what a filter sees.
    let mut program = vec![op(LOAD_WORD, 0, 0, 0)];
    for &call in calls {
        program.push(op(JUMP_IF_EQUAL, 0, 1, call as u32));
        program.push(op(RETURN, 0, 0, verdict));
    }
    program.push(op(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW));
    let program = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    // SAFETY: `program` points to instructions that live until the call
    // returns; the kernel copies and checks them.
    let answer = unsafe {
        if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 {
            return Err(io::Error::last_os_error());
        }
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            flags,
            &raw const program,
        )
    };
    if answer == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
