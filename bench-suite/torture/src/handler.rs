//! Readers that are interrupted by a reader.
//!
//! Floor 3. Owns the process's action for `SIGUSR1` and, for each thread that
//! wants it, what the handler does there.

use std::cell::Cell;
use std::io;
use std::sync::Once;
use std::sync::atomic::{Ordering, compiler_fence};

thread_local! {
    /// What this thread's handler does; null: nothing.
    static HERE: Cell<*const &'static dyn Fn()> = const { Cell::new(std::ptr::null()) };
}

const SIGNAL: libc::c_int = libc::SIGUSR1;

extern "C" fn on_signal(_: libc::c_int) {
    // SAFETY: null, or what `with` keeps alive on this very thread.
    if let Some(f) = unsafe { HERE.get().as_ref() } {
        f();
    }
}

/// Puts the handler up, once for the process.
pub(crate) fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: `action` is zeroed but for the handler, which is a static
        // function; what it calls is async-signal-safe by `with`'s contract.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_signal as extern "C" fn(libc::c_int) as usize;
            action.sa_flags = libc::SA_RESTART;
            let answer = libc::sigaction(SIGNAL, &raw const action, std::ptr::null_mut());
            assert_eq!(answer, 0, "{}", io::Error::last_os_error());
        }
    });
}

/// Runs `body`, during which signals to this thread run `f`.
///
/// `f` must be async-signal-safe: no lock, no allocation.
pub(crate) fn with<R>(f: &dyn Fn(), body: impl FnOnce() -> R) -> R {
    struct Reset;
    impl Drop for Reset {
        fn drop(&mut self) {
            compiler_fence(Ordering::SeqCst);
            HERE.set(std::ptr::null());
        }
    }
    // SAFETY: only the lifetime is changed; `Reset` takes it back before `f`
    // ends, and the handler runs on this thread, hence before or after that.
    let f: &'static dyn Fn() = unsafe { std::mem::transmute::<&dyn Fn(), &'static dyn Fn()>(f) };
    let _reset = Reset;
    HERE.set(&raw const f);
    // The handler must find it: nothing of `body` moves before.
    compiler_fence(Ordering::SeqCst);
    body()
}

/// Interrupts a thread of this process. `false` if it is gone.
pub(crate) fn interrupt(tid: libc::pid_t) -> bool {
    // SAFETY: sends a signal whose handler is up; numbers only.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), tid, SIGNAL) == 0 }
}
