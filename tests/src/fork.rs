//! Forked children.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Runs `body` in a forked child, which is ended by a signal after twenty
/// seconds. `Err` tells how the child failed.
///
/// # Errors
///
/// The child panicked, hung, or could not be made.
pub fn in_child(body: impl FnOnce()) -> Result<(), String> {
    // SAFETY: the child runs `body` and ends by `_exit`, so it neither runs
    // the other tests nor their destructors. What `body` calls of the C
    // library is prepared for forks (its allocator).
    match unsafe { libc::fork() } {
        -1 => Err(std::io::Error::last_os_error().to_string()),
        0 => {
            crate::machine::deadline(20);
            let code = i32::from(catch_unwind(AssertUnwindSafe(body)).is_err());
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(code) }
        }
        pid => {
            let mut status = 0;
            // SAFETY: waits for our own child, writes `status`.
            let waited = unsafe { libc::waitpid(pid, &raw mut status, 0) };
            if waited != pid {
                Err(std::io::Error::last_os_error().to_string())
            } else if libc::WIFSIGNALED(status) {
                Err(format!("signal {}", libc::WTERMSIG(status)))
            } else if libc::WEXITSTATUS(status) == 0 {
                Ok(())
            } else {
                Err("panicked".into())
            }
        }
    }
}

/// Lets the other threads of a test go, also when the test fails.
#[derive(Debug)]
pub struct SetWhenDropped<'a>(pub &'a AtomicBool);

impl Drop for SetWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Waits until `done`.
pub fn wait_for(done: &AtomicBool) {
    while !done.load(Ordering::SeqCst) {
        thread::sleep(Duration::from_millis(1));
    }
}
