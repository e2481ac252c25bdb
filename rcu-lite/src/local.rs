//! What a thread keeps for itself, and which callbacks it is running.
//!
//! Floor 2 (`rcu-lite`), raw layer. Owns the crate's thread-locals but for
//! those of the per-thread flavours. Constant and without destructors: usable
//! at any time, also from destructors of other thread-locals.

use core::cell::Cell;

/// How the callbacks that a thread is running came to be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Running {
    /// By a thread that may wait for grace periods.
    Free,
    /// By a thread that queued one itself, perhaps inside a read-side section.
    Inline,
}

/// One run of a domain's callbacks on this thread's stack; runs nest.
#[derive(Clone, Copy)]
struct Frame {
    domain: *const (),
    running: Running,
    outer: *const Frame,
}

#[cfg(not(loom))]
thread_local! {
    static INNERMOST: Cell<*const Frame> = const { Cell::new(core::ptr::null()) };
    static TOKEN: Cell<usize> = const { Cell::new(usize::MAX) };
}

#[cfg(loom)]
loom::thread_local! {
    static INNERMOST: Cell<*const Frame> = Cell::new(core::ptr::null());
}

/// Runs `f` as callbacks of `domain`.
pub(crate) fn as_callbacks<R>(domain: *const (), running: Running, f: impl FnOnce() -> R) -> R {
    struct Restore(*const Frame);
    impl Drop for Restore {
        fn drop(&mut self) {
            INNERMOST.with(|innermost| innermost.set(self.0));
        }
    }
    let outer = INNERMOST.with(Cell::get);
    let frame = Frame {
        domain,
        running,
        outer,
    };
    let _restore = Restore(outer);
    INNERMOST.with(|innermost| innermost.set(&raw const frame));
    f()
}

/// Whether the calling thread is inside a callback of `domain`, and how that
/// is being run (`Inline` if any of several runs is).
pub(crate) fn running(domain: *const ()) -> Option<Running> {
    let mut found = None;
    let mut at = INNERMOST.with(Cell::get);
    while !at.is_null() {
        // SAFETY: frames live in `as_callbacks` of this thread's own stack, for
        // as long as they are linked.
        let frame = unsafe { *at };
        if frame.domain == domain {
            if frame.running == Running::Inline {
                return Some(Running::Inline);
            }
            found = Some(Running::Free);
        }
        at = frame.outer;
    }
    found
}

/// A small number that differs between threads; spreads them over what they
/// share.
#[cfg(not(loom))]
pub(crate) fn token() -> usize {
    use percpu::sync::atomic::{AtomicUsize, Ordering};
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    TOKEN.with(|token| {
        if token.get() == usize::MAX {
            // Relaxed: any distribution is right.
            token.set(NEXT.fetch_add(1, Ordering::Relaxed) & (usize::MAX >> 1));
        }
        token.get()
    })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use core::ptr::without_provenance;

    #[test]
    fn runs_nest_and_end() {
        let (a, b) = (without_provenance(8), without_provenance(16));
        assert_eq!(running(a), None);
        as_callbacks(a, Running::Free, || {
            assert_eq!(running(a), Some(Running::Free));
            assert_eq!(running(b), None);
            as_callbacks(b, Running::Inline, || {
                assert_eq!(running(a), Some(Running::Free));
                assert_eq!(running(b), Some(Running::Inline));
                as_callbacks(a, Running::Inline, || {
                    assert_eq!(running(a), Some(Running::Inline));
                });
                assert_eq!(running(a), Some(Running::Free));
            });
            let thrown = std::panic::catch_unwind(|| as_callbacks(b, Running::Free, || panic!()));
            assert!(thrown.is_err());
            assert_eq!(running(b), None);
        });
        assert_eq!(running(a), None);
    }
}
