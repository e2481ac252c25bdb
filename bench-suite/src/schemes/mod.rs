//! Floor 3, bench-suite. Owns the variants: one file per way to keep an object alive, all behind [`Scheme`].
//! May touch `hp`, `rcu-lite`, `percpu` and the peers; knows nothing of workloads, threads or reports.
//!
//! A new scheme is one file, its `mod` line and its line in the registry at the bottom. Calls are monomorphised:
//! a workload asks [`dispatch`] once per run, and its measured loop is compiled for each scheme.

mod arc_swap;
mod broken;
mod callback;
mod crossbeam;
mod haphazard;
mod haphazard_per_op;
mod hazarc;
mod heavy_barrier;
mod hp;
mod hp_held;
mod kovan;
#[cfg(feature = "liburcu")]
mod liburcu;
mod mutex;
mod none;
pub(crate) mod object;
mod rcu;
mod rcu_qsbr;
mod rcu_thread;
mod refcount;
mod rwlock;
mod sdd;
mod seize;

pub(crate) use callback::{Callback, Ran};
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

    /// As many reads as `count`; returns how many objects were dead. To be given only where the loop must be compiled
    /// elsewhere.
    #[inline(always)]
    fn read_batch(&self, reader: &mut Self::Reader<'_>, count: u64) -> u64 {
        let mut dead = 0;
        for _ in 0..count {
            dead += u64::from(!self.read(reader));
        }
        dead
    }

    /// Protect, run `inside`, dereference, release. True when the object was alive after `inside`.
    fn hold(&self, reader: &mut Self::Reader<'_>, inside: impl FnOnce()) -> bool;

    /// Runs `pause`, in which the thread sleeps with its reader state but without protection.
    fn idle(&self, reader: &mut Self::Reader<'_>, pause: impl FnOnce()) {
        let _ = reader;
        pause();
    }

    /// Allocate, swap in, retire the old object.
    fn write(&self, object: Object);

    /// One forced reclaim pass by the calling thread. Only called where [`About::scan`] is [`Support::Yes`].
    fn pass(&self) {}

    /// Waits for a grace period. False if there was none: then nothing is measured. Only called where
    /// [`About::synchronizes`] says so.
    fn synchronize(&self) -> bool {
        false
    }

    /// Queues `callback` for when the readers of now have left. Only called where [`About::defer`] is [`Support::Yes`].
    fn defer(&self, reader: &mut Self::Reader<'_>, callback: Callback) {
        let _ = (reader, callback);
    }

    /// Frees what can be freed now, and runs the callbacks that can run now, as well as the scheme knows how.
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
    /// Whether `percpu` is under it, so that its rung matters.
    pub(crate) percpu: bool,
    /// Readers.
    pub(crate) read: Support,
    /// Writers.
    pub(crate) write: Support,
    /// Writers beside readers.
    pub(crate) write_with_readers: Support,
    /// A forced reclaim pass.
    pub(crate) scan: Support,
    /// A reader parked inside protection.
    pub(crate) stall: Support,
    /// A grace period, or the way from retire to free.
    pub(crate) grace: Support,
    /// Whether it has a blocking grace period, [`Scheme::synchronize`].
    pub(crate) synchronizes: bool,
    /// Deferred callbacks.
    pub(crate) defer: Support,
    /// Not listed, not in the default set, refused unless the environment allows it.
    pub(crate) hidden: bool,
}

impl About {
    /// A listed variant that takes part wherever objects are freed.
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
            percpu: false,
            read: Support::Yes,
            write: Support::Yes,
            write_with_readers: Support::Yes,
            scan: Support::Yes,
            stall: Support::Yes,
            grace: Support::Yes,
            synchronizes: false,
            defer: Support::No("it frees objects and takes no callbacks"),
            hidden: false,
        }
    }

    /// The same without what needs reclaim that waits: `scan` and `grace`.
    pub(crate) const fn without_waiting(self, why: &'static str) -> Self {
        About {
            scan: Support::No(why),
            grace: Support::No(why),
            ..self
        }
    }

    /// The same without the workloads that write objects.
    pub(crate) const fn without_writing(self, why: &'static str) -> Self {
        About {
            write: Support::No(why),
            write_with_readers: Support::No(why),
            scan: Support::No(why),
            stall: Support::No(why),
            ..self
        }
    }

    /// The same, taking part in nothing.
    pub(crate) const fn nowhere(self, why: &'static str) -> Self {
        About {
            read: Support::No(why),
            grace: Support::No(why),
            defer: Support::No(why),
            ..self.without_writing(why)
        }
    }

    /// The same over `percpu`.
    pub(crate) const fn over_percpu(self) -> Self {
        About {
            percpu: true,
            ..self
        }
    }

    /// What it can take part in, each with its name.
    pub(crate) fn supports(&self) -> [(&'static str, Support); 7] {
        [
            ("read", self.read),
            ("write", self.write),
            ("write beside readers", self.write_with_readers),
            ("scan", self.scan),
            ("stall", self.stall),
            ("grace", self.grace),
            ("defer", self.defer),
        ]
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
    ($($(#[$condition:meta])* $scheme:ty,)*) => {
        static ALL: &[About] = &[$($(#[$condition])* <$scheme as Scheme>::ABOUT),*];

        /// Calls `visitor` with the scheme called `name`.
        pub(crate) fn dispatch<V: Visit>(name: &str, visitor: V) -> Option<V::Out> {
            $($(#[$condition])* if name == <$scheme as Scheme>::ABOUT.name {
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
    rcu::Rcu<rcu::PerCpu>,
    rcu::Rcu<rcu_thread::PerThread>,
    rcu_qsbr::RcuQsbr,
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
    heavy_barrier::HeavyBarrier,
    #[cfg(feature = "liburcu")]
    liburcu::Liburcu<liburcu::Memb>,
    #[cfg(feature = "liburcu")]
    liburcu::Liburcu<liburcu::Qsbr>,
    #[cfg(feature = "liburcu")]
    liburcu::Liburcu<liburcu::Bp>,
    broken::Broken,
}

/// All variants that the user may see, in the order of the registry.
pub(crate) fn listed() -> impl Iterator<Item = &'static About> {
    ALL.iter().filter(|about| !about.hidden)
}

/// All variants.
pub(crate) fn all() -> &'static [About] {
    ALL
}

/// Whether hidden variants may be asked for.
pub(crate) fn hidden_allowed() -> bool {
    broken::allowed()
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
            assert_eq!(cell.read_batch(&mut reader, 10), 0, "{}", S::ABOUT.name);
            assert!(cell.hold(&mut reader, || ()), "{}", S::ABOUT.name);
            let mut slept = false;
            cell.idle(&mut reader, || slept = true);
            assert!(slept, "{}", S::ABOUT.name);
            drop(reader);
            if S::ABOUT.scan == Support::Yes {
                cell.pass();
            }
            if S::ABOUT.synchronizes {
                assert!(cell.synchronize(), "{}", S::ABOUT.name);
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
        assert!(dispatch("no-such-variant", Exercise).is_none());
    }
}
