//! Faults that tests plant in the maps, to see that a test notices, and points where a test gives other threads a moment.
//!
//! Floor 3 (`structures`). Owns a thread's planted fault, in this crate's own tests; elsewhere nothing is planted, nobody
//! pauses, and asking costs nothing. A fault is a thread's, so tests do not disturb each other.

/// A step left out, or done twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(test), allow(dead_code))]
pub(crate) enum Fault {
    /// None.
    None,
    /// A walk follows a pointer that it only read.
    Unprotected,
    /// A walk goes on behind a node that has been marked.
    Unvalidated,
    /// A removal unlinks without a mark.
    Unmarked,
    /// A removal retires what another thread has unlinked for it.
    RetiredTwice,
    /// Skip list: who links a node does not count as having it.
    Uncounted,
    /// Skip list: who has linked a node does not look whether it was removed meanwhile.
    Unchecked,
}

#[cfg(test)]
thread_local! {
    static PLANTED: std::cell::Cell<Fault> = const { std::cell::Cell::new(Fault::None) };
}

/// Plants `fault` in what the calling thread does from now on.
#[cfg(test)]
pub(crate) fn plant(fault: Fault) {
    PLANTED.set(fault);
}

/// Whether `fault` is planted.
#[cfg(test)]
pub(crate) fn planted(fault: Fault) -> bool {
    PLANTED.get() == fault
}

/// Whether `fault` is planted.
#[cfg(not(test))]
#[inline(always)]
pub(crate) const fn planted(_: Fault) -> bool {
    false
}

/// Between two steps that another thread may come between: sometimes lets it.
#[cfg(test)]
pub(crate) fn pause() {
    thread_local! {
        static TURN: std::cell::Cell<u32> = const { std::cell::Cell::new(1) };
    }
    let turn = TURN
        .get()
        .wrapping_mul(1_664_525)
        .wrapping_add(1_013_904_223);
    TURN.set(turn);
    if turn >> 30 == 0 {
        for _ in 0..turn >> 27 & 7 {
            std::thread::yield_now();
        }
    }
}

/// Between two steps that another thread may come between.
#[cfg(not(test))]
#[inline(always)]
pub(crate) const fn pause() {}
