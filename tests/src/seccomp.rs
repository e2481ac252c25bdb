//! System call filters, as sandboxes install them.

use std::io;

/// What the kernel does when a listed call is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The call fails with this error number.
    Errno(i32),
    /// The process dies.
    Kill,
    /// The thread gets `SIGSYS`, whose handler answers in the kernel's place.
    Trap,
}

const LOAD_WORD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
/// Where a filter finds the low half of the call's first and third argument.
const FIRST: u32 = 16;
const THIRD: u32 = 32;
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

/// Filters those calls of `call` whose first argument is among `first`, for
/// all threads of the process. A call whose third argument is `pass` goes
/// through whatever the first is: so a handler of [`Answer::Trap`] can ask the
/// kernel itself.
///
/// # Errors
///
/// As [`install`].
pub fn install_commands(
    call: libc::c_long,
    first: &[i32],
    pass: Option<u32>,
    answer: Answer,
) -> io::Result<()> {
    let verdict = verdict(answer);
    let mut program = vec![
        op(LOAD_WORD, 0, 0, 0),
        op(JUMP_IF_EQUAL, 1, 0, call as u32),
        op(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    if let Some(pass) = pass {
        program.push(op(LOAD_WORD, 0, 0, THIRD));
        program.push(op(JUMP_IF_EQUAL, 0, 1, pass));
        program.push(op(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW));
    }
    program.push(op(LOAD_WORD, 0, 0, FIRST));
    for &command in first {
        program.push(op(JUMP_IF_EQUAL, 0, 1, command as u32));
        program.push(op(RETURN, 0, 0, verdict));
    }
    program.push(op(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW));
    load(&mut program, libc::SECCOMP_FILTER_FLAG_TSYNC)
}

fn op(code: u16, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter { code, jt, jf, k }
}

fn verdict(answer: Answer) -> u32 {
    match answer {
        Answer::Errno(errno) => libc::SECCOMP_RET_ERRNO | errno as u32,
        Answer::Kill => libc::SECCOMP_RET_KILL_PROCESS,
        Answer::Trap => libc::SECCOMP_RET_TRAP,
    }
}

fn install_with(calls: &[libc::c_long], answer: Answer, flags: libc::c_ulong) -> io::Result<()> {
    let verdict = verdict(answer);
    // The call's number is the first word of what a filter sees.
    let mut program = vec![op(LOAD_WORD, 0, 0, 0)];
    for &call in calls {
        program.push(op(JUMP_IF_EQUAL, 0, 1, call as u32));
        program.push(op(RETURN, 0, 0, verdict));
    }
    program.push(op(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW));
    load(&mut program, flags)
}

fn load(program: &mut [libc::sock_filter], flags: libc::c_ulong) -> io::Result<()> {
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
