//! Chooses the rung, once, lock-free, and remembers why.
//!
//! Floor 1 (`percpu`). Reads the environment; writes `RUNG` and the record of
//! the decision.

use super::{RUNG, Rung};
use crate::sync::atomic::{AtomicPtr, Ordering};

/// Why the rung is what it is; for people.
#[derive(Clone, Debug)]
pub(crate) struct Decision {
    pub(crate) rung: Rung,
    pub(crate) reason: String,
    /// "mm_cid", "cpu_id" or "none".
    pub(crate) index: &'static str,
    /// False when the environment forbids to ask the kernel.
    #[cfg_attr(not(all(target_os = "linux", not(miri))), allow(dead_code))]
    pub(crate) may_ask: bool,
}

static DECISION: AtomicPtr<Decision> = AtomicPtr::new(core::ptr::null_mut());

/// The decision; decides if nobody has.
pub(crate) fn decision() -> Decision {
    let _ = super::rung();
    // Acquire: pairs with the Release in `decide`. Null only in the instant
    // between the two stores of the deciding thread.
    let decision = DECISION.load(Ordering::Acquire);
    if decision.is_null() {
        return Decision {
            rung: super::rung(),
            reason: "being decided by another thread".into(),
            index: "none",
            may_ask: false,
        };
    }
    // SAFETY: stored once from a leaked box, never changed or freed.
    unsafe { (*decision).clone() }
}

/// Decides. Several threads may come here at once: each asks the kernel (which
/// registers as often as it is asked), the first exchange wins, and all act on
/// the winner's rung.
#[cold]
pub(super) fn decide() -> Rung {
    let _ = crate::fork::generation();
    let (mine, enable) = ask();
    match RUNG.settle(mine.rung) {
        Ok(()) => {
            let rung = mine.rung;
            // Release: pairs with the Acquire in `decision`.
            DECISION.store(Box::into_raw(Box::new(mine)), Ordering::Release);
            enable();
            rung
        }
        // The winner switches on what it found; until then sections miss.
        Err(theirs) => theirs,
    }
}

type Enable = Box<dyn FnOnce()>;

fn ask() -> (Decision, Enable) {
    let asked = variable(c"HP_BARRIER");
    let (top, mut notes) = match asked.as_deref() {
        None | Some("") => (Rung::Rseq, String::new()),
        Some("rseq") => (Rung::Rseq, "HP_BARRIER=rseq".into()),
        Some("membarrier") => (Rung::Membarrier, "HP_BARRIER=membarrier".into()),
        Some("fence") => (Rung::Fence, "HP_BARRIER=fence".into()),
        Some(other) => (
            Rung::Rseq,
            format!("HP_BARRIER={other} ignored (rseq, membarrier or fence)"),
        ),
    };
    let mut note = |text: String| {
        if !notes.is_empty() {
            notes.push_str("; ");
        }
        notes.push_str(&text);
    };
    #[cfg(all(target_os = "linux", not(miri)))]
    {
        use super::{membarrier, rseq};
        if top == Rung::Rseq {
            let wanted = variable(c"HP_INDEX");
            match rseq::probe(wanted.as_deref()) {
                Ok((area, index)) => {
                    let index_name = match index {
                        rseq::Index::MmCid => "mm_cid",
                        rseq::Index::CpuId => "cpu_id",
                    };
                    note(format!(
                        "rseq is registered ({} bytes filled by the kernel) and the restarting barrier works",
                        area.feature_size,
                    ));
                    if let Some(wanted) = wanted {
                        note(format!("HP_INDEX={wanted}"));
                    }
                    return (
                        Decision {
                            rung: Rung::Rseq,
                            reason: notes,
                            index: index_name,
                            may_ask: true,
                        },
                        Box::new(move || rseq::enable(area, index)),
                    );
                }
                Err(why) => note(format!("no rseq rung: {why}")),
            }
        }
        if top >= Rung::Membarrier {
            match membarrier::probe() {
                Ok(()) => {
                    note("membarrier works".into());
                    return (
                        Decision {
                            rung: Rung::Membarrier,
                            reason: notes,
                            index: "none",
                            may_ask: true,
                        },
                        Box::new(|| ()),
                    );
                }
                Err(why) => note(format!("no membarrier rung: {why}")),
            }
        }
    }
    #[cfg(not(all(target_os = "linux", not(miri))))]
    if top > Rung::Fence {
        note("this platform has neither rseq nor membarrier".into());
    }
    (
        Decision {
            rung: Rung::Fence,
            reason: notes,
            index: "none",
            may_ask: top > Rung::Fence,
        },
        Box::new(|| ()),
    )
}

/// An environment variable, read without the standard library's lock where
/// the C library can be asked.
fn variable(name: &core::ffi::CStr) -> Option<String> {
    #[cfg(all(unix, not(miri)))]
    {
        // SAFETY: `name` is NUL-terminated; the answer is copied at once. (As
        // with every reader of the environment, a thread that changes it at
        // this moment is the program's fault.)
        unsafe {
            let value = libc::getenv(name.as_ptr());
            (!value.is_null()).then(|| {
                core::ffi::CStr::from_ptr(value)
                    .to_string_lossy()
                    .into_owned()
            })
        }
    }
    #[cfg(not(all(unix, not(miri))))]
    {
        std::env::var(name.to_str().ok()?).ok()
    }
}
