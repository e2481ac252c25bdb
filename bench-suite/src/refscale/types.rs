//! Floor 3, bench-suite. Owns which scale type of `ref` is what here, and which cannot be had in user space. May ask the
//! registry of schemes.

use super::subject::{
    AcquireRelease, ByLock, ByRef, BySequence, Clock, Counted, Of, Refcnt, Subject, Typesafe,
};
use crate::schemes::{self, Scheme, Support};
use crate::trouble::Trouble;
use refcounts::futex_ref::FutexRef;
use refcounts::percpu_ref::PercpuRef;
use refcounts::rcuref::RcuRef;
use refcounts::split::Slot;
use std::fmt::Write;

/// What a type is.
#[derive(Debug, PartialEq, Eq)]
enum Kind {
    /// The scheme with this name.
    Scheme(&'static str),
    /// One of `subject`.
    Own,
    /// Nothing in user space.
    Refused,
}

/// A scale type.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Type {
    pub(super) name: &'static str,
    kind: Kind,
    /// The kernel's has this name.
    original: bool,
    /// What is measured, or why it is not.
    what: &'static str,
}

const fn kernel(name: &'static str, kind: Kind, what: &'static str) -> Type {
    Type {
        name,
        kind,
        original: true,
        what,
    }
}

const fn ours(name: &'static str, what: &'static str) -> Type {
    Type {
        name,
        kind: Kind::Own,
        original: false,
        what,
    }
}

const fn scheme(name: &'static str, what: &'static str) -> Type {
    Type {
        name,
        kind: Kind::Scheme(name),
        original: false,
        what,
    }
}

const KERNEL_ONLY: &str = "the kernel's own, nothing in user space is like it";

static TYPES: &[Type] = &[
    kernel(
        "rcu",
        Kind::Scheme("rcu"),
        "rcu-lite on per-CPU counters, and a look at the object",
    ),
    kernel(
        "refcnt",
        Kind::Own,
        "one atomic addition and one subtraction on one word",
    ),
    kernel(
        "rwlock",
        Kind::Scheme("rwlock"),
        "std::sync::RwLock for reading, and a look at the object",
    ),
    kernel(
        "lock",
        Kind::Scheme("mutex"),
        "std::sync::Mutex (not a spin lock), and a look at the object",
    ),
    kernel(
        "acqrel",
        Kind::Own,
        "a load that acquires, a store of one's own that releases",
    ),
    kernel("clock", Kind::Own, "one reading of the monotonic clock"),
    kernel(
        "typesafe_ref",
        Kind::Own,
        "rcu-lite; of an object drawn anew: count up unless zero, look again, count down",
    ),
    kernel(
        "typesafe_lock",
        Kind::Own,
        "the same with the object's mutex",
    ),
    kernel(
        "typesafe_seqlock",
        Kind::Own,
        "the same with the object's sequence count",
    ),
    scheme(
        "hp",
        "hazard pointers in per-CPU slots, and a look at the object",
    ),
    scheme("hp-held", "the same, protecting again with a held slot"),
    scheme(
        "rcu-thread",
        "rcu-lite on per-thread counters, and a look at the object",
    ),
    scheme(
        "rcu-qsbr",
        "rcu-lite with announced quiescent states, and a look at the object",
    ),
    scheme("crossbeam-epoch", "crossbeam-epoch: pin, look, unpin"),
    scheme("seize", "seize: enter, protect, look, leave"),
    scheme(
        "haphazard",
        "haphazard with a kept holder: protect, look, reset",
    ),
    scheme("arc-swap", "arc-swap: load, look, drop"),
    scheme("sdd", "sdd: guard, look, drop"),
    scheme("kovan", "kovan: pin, look, unpin"),
    scheme("none", "a plain load and a look: the limit"),
    ours("percpu-ref", "refcounts: a per-CPU count up and down"),
    ours(
        "futex-ref",
        "refcounts: the counts of Linux 6.17's futex hash up and down",
    ),
    ours(
        "rcuref",
        "refcounts: one atomic addition and one subtraction, zones instead of zero",
    ),
    ours(
        "split-count",
        "refcounts: load from a cell with its external count, and release",
    ),
    kernel(
        "srcu",
        Kind::Refused,
        "sleepable RCU has no twin here; rcu may sleep, too",
    ),
    kernel(
        "srcu-fast",
        Kind::Refused,
        "sleepable RCU has no twin here; rcu may sleep, too",
    ),
    kernel(
        "srcu-lite",
        Kind::Refused,
        "sleepable RCU has no twin here; rcu may sleep, too",
    ),
    kernel("rcu-trace", Kind::Refused, KERNEL_ONLY),
    kernel(
        "rcu-tasks",
        Kind::Refused,
        "its readers run between two voluntary switches, which only the kernel sees",
    ),
    kernel(
        "rwsem",
        Kind::Refused,
        "a sleeping lock of the kernel; rwlock is the nearest",
    ),
    kernel(
        "lock-irq",
        Kind::Refused,
        "user space cannot switch interrupts off; use lock",
    ),
    kernel(
        "sched-clock",
        Kind::Refused,
        "the scheduler's clock is the kernel's; use clock",
    ),
    kernel(
        "jiffies",
        Kind::Refused,
        "a variable of the kernel; use clock",
    ),
    kernel(
        "shazptr",
        Kind::Refused,
        "of a series that was not merged; use hp",
    ),
    kernel(
        "shazptr-wildcard",
        Kind::Refused,
        "of a series that was not merged; hp has no wildcards",
    ),
    kernel(
        "hazptr",
        Kind::Refused,
        "of a series that was not merged; use hp",
    ),
];

/// Those that can be had in user space.
pub(super) fn listed() -> impl Iterator<Item = &'static Type> {
    TYPES.iter().filter(|kind| kind.kind != Kind::Refused)
}

impl Type {
    /// What is measured.
    pub(super) fn what(&self) -> &'static str {
        self.what
    }

    fn about(&self) -> Option<&'static schemes::About> {
        match self.kind {
            Kind::Scheme(name) => schemes::all().iter().find(|about| about.name == name),
            Kind::Own | Kind::Refused => None,
        }
    }

    /// Whether `percpu` is under it.
    pub(super) fn percpu(&self) -> bool {
        let counted = ["percpu-ref", "futex-ref"].contains(&self.name);
        counted || self.about().is_some_and(|about| about.percpu)
    }
}

/// Whether a listed type is in this build.
pub(super) fn support(name: &str) -> Support {
    match listed().find(|kind| kind.name == name) {
        Some(kind) if matches!(kind.kind, Kind::Scheme(_)) => kind
            .about()
            .map_or(Support::No("not in this build"), |about| about.read),
        _ => Support::Yes,
    }
}

/// `rcu,hp`, or `all`.
pub(super) fn list(text: &str) -> Result<Vec<&'static Type>, String> {
    if text == "all" {
        return Ok(listed().collect());
    }
    let mut list: Vec<&'static Type> = Vec::new();
    for part in text.split(',') {
        match TYPES.iter().find(|kind| kind.name == part) {
            None if part.is_empty() => return Err("an empty entry".to_owned()),
            None => {
                let names: Vec<_> = listed().map(|kind| kind.name).collect();
                return Err(format!(
                    "unknown scale type '{part}', there are {}",
                    names.join(", ")
                ));
            }
            Some(kind) if kind.kind == Kind::Refused => {
                return Err(format!("'{part}': {}", kind.what));
            }
            Some(kind) if !list.contains(&kind) => list.push(kind),
            Some(_) => {}
        }
    }
    Ok(list)
}

/// What `--list-types` says.
pub(super) fn show() -> String {
    let mut text = String::from("scale types of refscale\n");
    let mut part = |heading: &str, keep: &dyn Fn(&Type) -> bool| {
        text.push_str(heading);
        for kind in TYPES.iter().filter(|kind| keep(kind)) {
            let _ = writeln!(text, "  {:<18}{}", kind.name, kind.what);
        }
    };
    part("as here:\n", &|kind| {
        kind.original && kind.kind != Kind::Refused
    });
    part("of this project and its peers:\n", &|kind| !kind.original);
    part("not in user space:\n", &|kind| kind.kind == Kind::Refused);
    text
}

/// A generic function object.
pub(super) trait Visit {
    type Out;
    fn visit<S: Subject>(self, subject: S) -> Self::Out;
}

/// Calls `visitor` with a subject of the type; typesafe ones with that many objects.
pub(super) fn visit<V: Visit<Out = Result<T, Trouble>>, T>(
    kind: &Type,
    objects: usize,
    visitor: V,
) -> Result<T, Trouble> {
    struct Through<V>(V);
    impl<V: Visit> schemes::Visit for Through<V> {
        type Out = V::Out;

        fn visit<S: Scheme>(self) -> V::Out {
            self.0.visit(Of::<S>::new())
        }
    }
    if let Kind::Scheme(name) = kind.kind {
        let about = schemes::all().iter().find(|about| about.name == name);
        return match about.map(|about| about.read) {
            Some(Support::Yes) => schemes::dispatch(name, Through(visitor)).expect("it is listed"),
            Some(Support::No(why)) => Err(Trouble::Environment(format!("{}: {why}", kind.name))),
            None => Err(Trouble::Environment(format!(
                "{}: not in this build",
                kind.name
            ))),
        };
    }
    match kind.name {
        "refcnt" => visitor.visit(Refcnt::default()),
        "acqrel" => visitor.visit(AcquireRelease::default()),
        "clock" => visitor.visit(Clock),
        "typesafe_ref" => visitor.visit(Typesafe::<ByRef>::new(objects)),
        "typesafe_lock" => visitor.visit(Typesafe::<ByLock>::new(objects)),
        "typesafe_seqlock" => visitor.visit(Typesafe::<BySequence>::new(objects)),
        "percpu-ref" => visitor.visit(Counted::<PercpuRef>::new()),
        "futex-ref" => visitor.visit(Counted::<FutexRef>::new()),
        "rcuref" => visitor.visit(Counted::<RcuRef>::new()),
        "split-count" => visitor.visit(Counted::<Slot<()>>::new()),
        other => unreachable!("{other} is refused where it is parsed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Ten;

    impl Visit for Ten {
        type Out = Result<u64, Trouble>;

        fn visit<S: Subject>(self, subject: S) -> Self::Out {
            let mut reader = subject.reader(0);
            Ok(subject.pairs(&mut reader, 10))
        }
    }

    #[test]
    fn every_type_is_measured_or_refused_with_a_reason() {
        let mut names: Vec<_> = TYPES.iter().map(|kind| kind.name).collect();
        for kind in TYPES {
            match kind.kind {
                Kind::Refused => assert!(list(kind.name).unwrap_err().contains(kind.what)),
                _ => {
                    assert_eq!(list(kind.name).unwrap(), [kind]);
                    assert_eq!(visit(kind, 2, Ten).unwrap(), 0, "{}", kind.name);
                }
            }
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), TYPES.len());
        assert_eq!(list("hp,rcu,hp").unwrap().len(), 2);
        assert!(list("all").unwrap().len() > 20);
        assert!(list("hp,,rcu").is_err() && list("nothing").is_err());
        let text = show();
        assert!(TYPES.iter().all(|kind| text.contains(kind.name)));
    }
}
