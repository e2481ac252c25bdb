//! Faults that tests plant in the maps, to see that a test notices, and pauses where a test lets something come between.
//!
//! Floor 3 (`structures`). Owns a thread's planted fault, in this crate's own tests; elsewhere nothing is planted, nobody
//! pauses, and asking costs nothing. A fault is a thread's, so tests do not disturb each other.
//!
//! An operation with a fault may go round for ever (trying an exchange that cannot succeed, say). So a fault goes away by
//! itself after some thousand pauses.

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
    static PLANTED: std::cell::Cell<(Fault, u32)> = const { std::cell::Cell::new((Fault::None, 0)) };
}

/// Many times the pauses of an operation on a few elements.
#[cfg(test)]
const FUEL: u32 = 2000;

/// Plants `fault` in what the calling thread does from now on.
#[cfg(test)]
pub(crate) fn plant(fault: Fault) {
    PLANTED.set((fault, FUEL));
}

/// Whether `fault` is planted.
#[cfg(test)]
pub(crate) fn planted(fault: Fault) -> bool {
    PLANTED.get().0 == fault
}

/// Whether `fault` is planted.
#[cfg(not(test))]
#[inline(always)]
pub(crate) const fn planted(_: Fault) -> bool {
    false
}

#[cfg(test)]
thread_local! {
    /// What comes between, and how many pauses before it.
    static BETWEEN: std::cell::RefCell<Option<(usize, Other)>> =
        const { std::cell::RefCell::new(None) };
}

/// What comes between.
#[cfg(test)]
type Other = Box<dyn FnOnce()>;

/// Lets `what` happen at the calling thread's pause after the next `pauses`. What was to happen and has not is dropped.
#[cfg(test)]
pub(crate) fn come_between(pauses: usize, what: impl FnOnce() + 'static) {
    BETWEEN.with_borrow_mut(|between| *between = Some((pauses, Box::new(what))));
}

/// Nothing comes between any more; says whether something was still to come.
#[cfg(test)]
pub(crate) fn alone() -> bool {
    BETWEEN.take().is_some()
}

/// Between two steps that another thread may come between.
#[cfg(test)]
pub(crate) fn pause() {
    PLANTED.set(match PLANTED.get() {
        (_, 0) => (Fault::None, 0),
        (fault, fuel) => (fault, fuel - 1),
    });
    let now = BETWEEN.with_borrow_mut(|between| match between {
        Some((0, _)) => between.take(),
        Some((pauses, _)) => {
            *pauses -= 1;
            None
        }
        None => None,
    });
    if let Some((_, what)) = now {
        what();
    }
}

/// Between two steps that another thread may come between.
#[cfg(not(test))]
#[inline(always)]
pub(crate) const fn pause() {}
