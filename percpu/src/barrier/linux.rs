//! The `membarrier` system call and its numbers.
//!
//! Floor 1 (`percpu`); touches the kernel only. Numbers from Linux uapi
//! `membarrier.h`.

pub(super) const PRIVATE_EXPEDITED: i32 = 1 << 3;
pub(super) const REGISTER_PRIVATE_EXPEDITED: i32 = 1 << 4;
pub(super) const PRIVATE_EXPEDITED_RSEQ: i32 = 1 << 7;
pub(super) const REGISTER_PRIVATE_EXPEDITED_RSEQ: i32 = 1 << 8;

/// Issues `command`; the error is `errno`.
pub(super) fn membarrier(command: i32) -> Result<i32, i32> {
    // SAFETY: membarrier takes three integers and touches no memory of ours.
    let answer = unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) };
    if answer >= 0 {
        Ok(answer as i32)
    } else {
        Err(errno())
    }
}

/// The mask of commands that the kernel knows.
pub(crate) fn query() -> Result<i32, i32> {
    membarrier(0)
}

/// Issues an expedited barrier; when the kernel has forgotten the registration
/// (restored from a checkpoint, say), registers again and retries once.
pub(super) fn expedited(command: i32, register: i32) -> Result<(), super::BarrierLost> {
    if membarrier(command).is_ok() {
        return Ok(());
    }
    if membarrier(register).is_ok() && membarrier(command).is_ok() {
        return Ok(());
    }
    Err(super::BarrierLost)
}

/// Registers for `command` and tries it once.
pub(super) fn register(command: i32, register: i32, name: &str) -> Result<(), String> {
    membarrier(register)
        .and_then(|_| membarrier(command))
        .map(drop)
        .map_err(|errno| format!("{name}: {}", describe(errno)))
}

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// Short name of the answers that matter here.
pub(crate) fn describe(errno: i32) -> String {
    match errno {
        libc::ENOSYS => "ENOSYS (not in this kernel, or filtered)".into(),
        libc::EPERM => "EPERM (refused)".into(),
        libc::EINVAL => "EINVAL (command unknown to this kernel)".into(),
        other => std::io::Error::from_raw_os_error(other).to_string(),
    }
}
