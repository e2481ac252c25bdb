//! Floor 3, bench-suite. Owns the variants: one file per way to keep an object alive, all behind [`Scheme`].
//! May touch `hp`, `percpu` and the peer crates; knows nothing of workloads, threads or reports.
//!
//! A new scheme is one file, its `mod` line and its line in the registry at the bottom. Calls are monomorphised:
//! a workload asks [`dispatch`] once per run, and its measured loop is compiled for each scheme.

mod arc_swap;
mod broken;
mod crossbeam;
mod haphazard;
mod haphazard_per_op;
mod hazarc;
mod hp;
mod hp_held;
mod kovan;
mod mutex;
mod none;
pub(crate) mod object;
mod refcount;
mod rwlock;
mod sdd;
mod seize;

pub(crate) use object::{Census, Object};

/// One way to keep an object alive while it is read: a cell that holds one object.
pub(crate) trait Scheme: Sized + Send + Sync {
    /// Name and description.
    const ABOUT: About;

    /// What a reading thread keeps between operations (a cached holder, a collector, nothing).
    type Reader<'a>
    where
        Self: 'a;

    /// A cell that holds `first`.
    fn new(first: Object) -> Self;

    /// Called once by each reading thread.
    fn reader(&self) -> Self::Reader<'_>;

    /// Protect, dereference, release. True when the object was alive.
    fn read(&self, reader: &mut Self::Reader<'_>) -> bool;

    /// Protect, run `inside`, dereference, release. True when the object was alive after `inside`.
    fn hold(&self, reader: &mut Self::Reader<'_>, inside: impl FnOnce()) -> bool;

    /// Allocate, swap in, retire the old object.
    fn write(&self, object: Object);

    /// One forced reclaim pass by the calling thread. Only called where [`About::scan`] is [`Support::Yes`].
    fn pass(&self) {}

    /// Frees what can be freed now, as well as the scheme knows how.
    fn flush(&self) {
        for _ in 0..4 {
            self.pass();
        }
    }

    /// The documented bound on retired objects that wait while `writers` threads retire, where the scheme has one.
    fn bound(&self, writers: usize) -> Option<usize> {
        let _ = writers;
        None
    }
}

/// Whether a variant can take part in a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Support {
    /// It can.
    Yes,
    /// It cannot; the reason is reported as the note of a skipped run.
    No(&'static str),
}

/// What `--list` shows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct About {
    /// The name for `--variants`.
    pub(crate) name: &'static str,
    /// What is measured.
    pub(crate) measures: &'static str,
    /// The fairest use of the peer, and the one measured: cached or per-operation holder.
    pub(crate) holder: &'static str,
    /// A rung to force in the process that runs it (`HP_BARRIER`).
    pub(crate) rung: Option<&'static str>,
    /// Writers beside readers.
    pub(crate) write_with_readers: Support,
    /// A forced reclaim pass.
    pub(crate) scan: Support,
    /// A reader parked inside protection.
    pub(crate) stall: Support,
    /// Not listed, not in the default set, refused unless the environment allows it.
    pub(crate) hidden: bool,
}

impl About {
    /// A listed variant that takes part everywhere.
    pub(crate) const fn new(
        name: &'static str,
        measures: &'static str,
        holder: &'static str,
    ) -> Self {
        About {
            name,
            measures,
            holder,
            rung: None,
            write_with_readers: Support::Yes,
            scan: Support::Yes,
            stall: Support::Yes,
            hidden: false,
        }
    }

    /// The same without the `scan` workload.
    pub(crate) const fn without_scan(self, why: &'static str) -> Self {
        About {
            scan: Support::No(why),
            ..self
        }
    }
}

/// A generic function object for [`dispatch`].
pub(crate) trait Visit {
    /// What the visit returns.
    type Out;
    /// Called with the chosen scheme.
    fn visit<S: Scheme>(self) -> Self::Out;
}

macro_rules! registry {
    ($($scheme:ty,)*) => {
        static ALL: &[About] = &[$(<$scheme as Scheme>::ABOUT),*];

        /// Calls `visitor` with the scheme called `name`.
        pub(crate) fn dispatch<V: Visit>(name: &str, visitor: V) -> Option<V::Out> {
            $(if name == <$scheme as Scheme>::ABOUT.name {
                return Some(visitor.visit::<$scheme>());
            })*
            None
        }
    };
}

registry! {
    none::Plain,
    hp::Hp<hp::Native>,
    hp::Hp<hp::Membarrier>,
    hp::Hp<hp::Fence>,
    hp_held::HpHeld,
    haphazard::Haphazard,
    haphazard_per_op::HaphazardPerOp,
    crossbeam::Crossbeam,
    seize::Seize,
    arc_swap::ArcSwapped,
    sdd::Sdd,
    kovan::Kovan,
    hazarc::Hazarc,
    refcount::Refcount,
    mutex::Locked,
    rwlock::RwLocked,
    broken::Broken,
}

/// All variants that the user may see, in the order of the registry.
pub(crate) fn listed() -> impl Iterator<Item = &'static About> {
    ALL.iter().filter(|about| !about.hidden)
}

/// The variant called `name`; hidden ones only where the environment allows them.
pub(crate) fn find(name: &str) -> Option<&'static About> {
    ALL.iter()
        .find(|about| about.name == name && (!about.hidden || broken::allowed()))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Exercise;

    impl Visit for Exercise {
        type Out = ();

        fn visit<S: Scheme>(self) {
            let census = Census::leak();
            let cell = S::new(Object::new(0, Some(census)));
            let mut reader = cell.reader();
            for serial in 1..200 {
                assert!(cell.read(&mut reader), "{}", S::ABOUT.name);
                cell.write(Object::new(serial, Some(census)));
            }
            assert!(cell.hold(&mut reader, || ()), "{}", S::ABOUT.name);
            drop(reader);
            if S::ABOUT.scan == Support::Yes {
                cell.pass();
            }
            cell.flush();
            assert!(
                census.living() >= 1,
                "{} lost the published object",
                S::ABOUT.name
            );
        }
    }

    #[test]
    fn every_scheme_reads_writes_holds_and_flushes() {
        for about in listed() {
            dispatch(about.name, Exercise).unwrap();
        }
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<_> = ALL.iter().map(|about| about.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
    }

    #[test]
    fn unknown_names_are_not_found() {
        assert!(find("no-such-variant").is_none());
        assert!(dispatch("no-such-variant", Exercise).is_none());
    }
}
