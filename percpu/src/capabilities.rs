//! What runs here and why, for people and for bug reports.
//!
//! Floor 1 (`percpu`); reads what the other modules decided, changes nothing
//! (but the first question decides the rung).

use crate::barrier::{Rung, decision};
use core::fmt;

/// What [`capabilities`] found.
#[derive(Clone, Debug)]
pub struct Capabilities {
    /// The rung in use.
    pub rung: Rung,
    /// Why it is this one.
    pub reason: String,
    /// The field that indexes lines: `"mm_cid"`, `"cpu_id"` or `"none"`.
    pub index: &'static str,
    /// Whether this build has critical sections.
    pub sections: bool,
    /// Bytes of the rseq area that kernel and C library agree on, if any.
    /// `None` also when the rung was forced to `fence` (nothing was asked).
    pub rseq_feature_size: Option<usize>,
    /// Mask of the `membarrier` commands of this kernel. `None` if it has
    /// none, or if the rung was forced to `fence`.
    pub membarrier_mask: Option<i32>,
    /// CPUs that this machine can ever have.
    pub possible_cpus: usize,
    /// Whether the calling thread can run sections.
    pub thread_registered: bool,
}

/// Reports the rung and what it was chosen from. Decides the rung if nobody
/// has. Asks the kernel nothing when `HP_BARRIER=fence` forbids it.
#[must_use]
pub fn capabilities() -> Capabilities {
    let decision = decision();
    #[cfg(all(target_os = "linux", not(miri)))]
    let (rseq_feature_size, membarrier_mask) = if decision.may_ask {
        (
            crate::barrier::rseq_area().ok().map(|a| a.feature_size),
            crate::barrier::membarrier_mask().ok(),
        )
    } else {
        (None, None)
    };
    #[cfg(not(all(target_os = "linux", not(miri))))]
    let (rseq_feature_size, membarrier_mask) = (None, None);
    Capabilities {
        rung: decision.rung,
        reason: decision.reason,
        index: decision.index,
        sections: crate::section::AVAILABLE,
        rseq_feature_size,
        membarrier_mask,
        possible_cpus: crate::topology::possible_cpus(),
        thread_registered: crate::section::registered(),
    }
}

impl fmt::Display for Capabilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let yes = |b| if b { "yes" } else { "no" };
        writeln!(f, "rung               {}", self.rung)?;
        writeln!(f, "why                {}", self.reason)?;
        writeln!(f, "line index         {}", self.index)?;
        writeln!(f, "sections in build  {}", yes(self.sections))?;
        writeln!(f, "thread registered  {}", yes(self.thread_registered))?;
        match self.rseq_feature_size {
            Some(n) => writeln!(f, "rseq bytes filled  {n}")?,
            None => writeln!(f, "rseq bytes filled  none")?,
        }
        match self.membarrier_mask {
            Some(m) => writeln!(f, "membarrier mask    {m:#x}")?,
            None => writeln!(f, "membarrier mask    none")?,
        }
        write!(f, "possible CPUs      {}", self.possible_cpus)
    }
}
