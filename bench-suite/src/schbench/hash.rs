//! Floor 3, bench-suite. Owns what `schbench` asks of the kernel's private futex hash (`-H`, `-I`), in words that say
//! which kernels have what. May touch `prctl`.
//!
//! | kernel | set slots | immutable |
//! |---|---|---|
//! | up to 6.15 | no such call | – |
//! | 6.16-rc | 0 (the global hash, for good), or a power of two | a flag, and a question |
//! | 6.16 | refused: the private hash is switched off | – |
//! | from 6.17 on | as in 6.16-rc | gone: the flag is refused |

use crate::trouble::Trouble;

const PR_FUTEX_HASH: libc::c_int = 78;
const SET_SLOTS: libc::c_ulong = 1;
const GET_SLOTS: libc::c_ulong = 2;
const GET_IMMUTABLE: libc::c_ulong = 3;
const IMMUTABLE: libc::c_ulong = 1;

/// What the kernel tells; nothing where it has no such question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct State {
    pub(super) slots: Option<u32>,
    pub(super) immutable: Option<bool>,
}

fn call(what: libc::c_ulong, slots: libc::c_ulong, flags: libc::c_ulong) -> Result<u32, i32> {
    // SAFETY: takes numbers.
    match unsafe { libc::prctl(PR_FUTEX_HASH, what, slots, flags, 0) } {
        -1 => Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(0)),
        n => Ok(n as u32),
    }
}

impl State {
    /// Asks the kernel.
    pub(super) fn look() -> Self {
        State {
            slots: call(GET_SLOTS, 0, 0).ok(),
            immutable: call(GET_IMMUTABLE, 0, 0).ok().map(|n| n != 0),
        }
    }

    /// The line of the patched original; what the kernel does not tell is -1, as there.
    pub(super) fn original(self) -> String {
        let slots = self.slots.map_or(-1, i64::from);
        let immutable = self.immutable.map_or(-1, i64::from);
        format!("Futex HBs: {slots} immutable: {immutable}\n")
    }

    /// In words.
    pub(super) fn words(self) -> String {
        let slots = match self.slots {
            None => return "global (this kernel has no private futex hash)".to_owned(),
            Some(0) => "global".to_owned(),
            Some(n) => format!("private, {n} buckets"),
        };
        let immutable = match self.immutable {
            None => "this kernel knows no immutable ones",
            Some(true) => "immutable",
            Some(false) => "not immutable",
        };
        format!("{slots} ({immutable})")
    }
}

/// What `-H` takes.
pub(super) fn slots(text: &str) -> Result<u32, String> {
    match text.parse::<u32>() {
        Ok(0) => Ok(0),
        Ok(n) if n >= 2 && n.is_power_of_two() => Ok(n),
        _ => Err(format!(
            "'{text}' is neither 0 (the global hash) nor a power of two from 2 on nor auto"
        )),
    }
}

/// Sets the hash of this process, before it has threads.
pub(super) fn set(slots: u32, immutable: bool) -> Result<(), Trouble> {
    let flags = if immutable { IMMUTABLE } else { 0 };
    match call(SET_SLOTS, slots.into(), flags) {
        Ok(_) => Ok(()),
        Err(error) => Err(refused(slots, immutable, error, State::look())),
    }
}

/// Whether a process of this kernel can have such a hash: what there is to say before any is asked for it.
pub(super) fn has(slots: u32, immutable: bool) -> Result<(), Trouble> {
    let state = State::look();
    match (state.slots, immutable && state.immutable.is_none()) {
        (Some(_), false) => Ok(()),
        _ => Err(refused(slots, immutable, libc::EINVAL, state)),
    }
}

fn refused(slots: u32, immutable: bool, error: i32, state: State) -> Trouble {
    let why = std::io::Error::from_raw_os_error(error);
    match (error, state.slots) {
        (libc::EINVAL, None) => Trouble::Environment(format!(
            "-H {slots}: this kernel has no private futex hash (PR_FUTEX_HASH, from Linux 6.16 on)"
        )),
        (libc::EINVAL, Some(_)) if immutable && state.immutable.is_none() => Trouble::Usage(
            "-I: this kernel has lost immutable futex hashes (they were in 6.16-rc only); leave -I out"
                .to_owned(),
        ),
        (libc::EBUSY, Some(0)) => Trouble::Environment(format!(
            "-H {slots}: this process has the global hash for good ({why})"
        )),
        _ => Trouble::Environment(format!(
            "-H {slots}: the kernel refuses ({why}); the hash is {}",
            state.words()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TODAY: State = State {
        slots: Some(16),
        immutable: None,
    };

    #[test]
    fn what_is_refused_is_named() {
        for (immutable, error, slots, code, words) in [
            (false, libc::EINVAL, None, 3, "no private futex hash"),
            (true, libc::EINVAL, None, 3, "no private futex hash"),
            (true, libc::EINVAL, Some(16), 2, "-I: this kernel has lost"),
            (false, libc::EINVAL, Some(16), 3, "private, 16 buckets"),
            (false, libc::EBUSY, Some(0), 3, "for good"),
        ] {
            let state = State { slots, ..TODAY };
            let trouble = refused(64, immutable, error, state);
            assert_eq!(trouble.code(), code, "{trouble}");
            assert!(trouble.to_string().contains(words), "{trouble}");
        }
    }

    #[test]
    fn states_are_told() {
        assert_eq!(TODAY.original(), "Futex HBs: 16 immutable: -1\n");
        let old = State {
            slots: Some(0),
            immutable: Some(true),
        };
        assert_eq!(old.original(), "Futex HBs: 0 immutable: 1\n");
        assert_eq!(old.words(), "global (immutable)");
        let none = State {
            slots: None,
            immutable: None,
        };
        assert_eq!(none.original(), "Futex HBs: -1 immutable: -1\n");
    }

    #[test]
    fn numbers_of_buckets() {
        assert_eq!(slots("0"), Ok(0));
        assert_eq!(slots("1024"), Ok(1024));
        for bad in ["1", "3", "-2", "x", "", "4294967296"] {
            assert!(slots(bad).is_err(), "{bad}");
        }
    }
}
