//! Floor 3, bench-suite. Owns the scale types of `rcuscale`: the schemes with a blocking grace period, and two ways to wait with
//! `hp` that are no variants of other workloads. May touch `schemes` and `hp`.

use crate::schemes::{self, About, Object, Scheme, Support};
use std::marker::PhantomData;

/// Types of the kernel that cannot be had.
const REFUSED: [(&str, &str); 5] = [
    ("srcu", "sleepable RCU has no twin here; rcu may sleep, too"),
    (
        "srcud",
        "sleepable RCU has no twin here; rcu may sleep, too",
    ),
    (
        "tasks",
        "its readers run between two voluntary switches, which only the kernel sees",
    ),
    (
        "tasks-rude",
        "a switch on every CPU is the kernel's to see; heavy-barrier is the nearest",
    ),
    (
        "tasks-tracing",
        "the kernel's own, nothing in user space is like it",
    ),
];

/// How a writer waits with hazard pointers.
pub(super) trait Way: Send + Sync {
    const NAME: &'static str;
    const MEASURES: &'static str;
    fn wait(cell: &hp::Atomic<Object>);
}

/// `hp::synchronize` of an address.
#[derive(Debug)]
pub(super) struct Synchronize;

impl Way for Synchronize {
    const NAME: &'static str = "hp-sync";
    const MEASURES: &'static str =
        "hp::synchronize of an address that nobody protects, beside readers that protect another";

    fn wait(_: &hp::Atomic<Object>) {
        let unlinked = 0u64;
        hp::synchronize((&raw const unlinked).cast());
    }
}

/// Replace the object that is read, and drain.
#[derive(Debug)]
pub(super) struct Drain;

impl Way for Drain {
    const NAME: &'static str = "hp-drain";
    const MEASURES: &'static str =
        "replace the object that the readers protect, retire the old one, and Domain::drain";

    fn wait(cell: &hp::Atomic<Object>) {
        cell.store(Object::new(0, None));
        hp::Domain::global().drain();
    }
}

/// A cell as that of the variant `hp`, with a grace period.
#[derive(Debug)]
pub(super) struct Hazard<W>(hp::Atomic<Object>, PhantomData<W>);

impl<W: Way> Scheme for Hazard<W> {
    const ABOUT: About = About {
        synchronizes: true,
        ..About::new(W::NAME, W::MEASURES, "per-operation guard").over_percpu()
    };

    type Reader<'a>
        = ()
    where
        W: 'a;

    fn new(first: Object) -> Self {
        Hazard(hp::Atomic::new(first), PhantomData)
    }

    fn reader(&self) {}

    #[inline(always)]
    fn read(&self, (): &mut ()) -> bool {
        self.0.load().is_some_and(|object| object.is_alive())
    }

    fn hold(&self, (): &mut (), inside: impl FnOnce()) -> bool {
        let object = self.0.load();
        inside();
        object.is_some_and(|object| object.is_alive())
    }

    fn write(&self, object: Object) {
        self.0.store(object);
    }

    fn pass(&self) {
        hp::Domain::global().reclaim(usize::MAX);
    }

    fn synchronize(&self) -> bool {
        W::wait(&self.0);
        true
    }

    fn flush(&self) {
        hp::Domain::global().drain();
    }
}

fn own() -> [&'static About; 2] {
    const SYNCHRONIZE: &About = &Hazard::<Synchronize>::ABOUT;
    const DRAIN: &About = &Hazard::<Drain>::ABOUT;
    [SYNCHRONIZE, DRAIN]
}

/// All that can be measured.
pub(super) fn all() -> impl Iterator<Item = &'static About> {
    schemes::listed()
        .filter(|about| about.synchronizes)
        .chain(own())
}

/// `rcu,hp-sync`, or `all`.
pub(super) fn list(text: &str) -> Result<Vec<&'static str>, String> {
    if text == "all" {
        return Ok(all().map(|about| about.name).collect());
    }
    let mut list = Vec::new();
    for part in text.split(',') {
        if let Some((_, why)) = REFUSED.iter().find(|(name, _)| *name == part) {
            return Err(format!("'{part}': {why}"));
        }
        match all().find(|about| about.name == part) {
            Some(about) if !list.contains(&about.name) => list.push(about.name),
            Some(_) => {}
            None => {
                let names: Vec<_> = all().map(|about| about.name).collect();
                return Err(format!(
                    "'{part}' has no blocking grace period, or is unknown; there are {} (hpbench grace measures the others from retire to free)",
                    names.join(", ")
                ));
            }
        }
    }
    Ok(list)
}

/// Whether the type can do what is asked beside waiting.
pub(super) fn can(name: &str, asynchronous: bool, kfree: bool) -> Result<(), String> {
    let about = all()
        .find(|about| about.name == name)
        .ok_or_else(|| format!("'{name}' is unknown"))?;
    match (asynchronous, about.defer, kfree, about.write) {
        (true, Support::No(why), ..) => Err(format!("--gp-async: {name}: {why}")),
        (.., true, Support::No(why)) => Err(format!("--kfree-rcu-test: {name}: {why}")),
        _ => Ok(()),
    }
}

/// A generic function object.
pub(super) trait Visit {
    type Out;
    fn visit<S: Scheme>(self) -> Self::Out;
}

/// Calls `visitor` with the scheme called `name`.
pub(super) fn visit<V: Visit>(name: &str, visitor: V) -> V::Out {
    struct Through<V>(V);
    impl<V: Visit> schemes::Visit for Through<V> {
        type Out = V::Out;

        fn visit<S: Scheme>(self) -> V::Out {
            self.0.visit::<S>()
        }
    }
    match name {
        Synchronize::NAME => visitor.visit::<Hazard<Synchronize>>(),
        Drain::NAME => visitor.visit::<Hazard<Drain>>(),
        name => schemes::dispatch(name, Through(visitor)).expect("it was found in the list"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Once;

    impl Visit for Once {
        type Out = bool;

        fn visit<S: Scheme>(self) -> bool {
            let cell = S::new(Object::new(0, None));
            let mut reader = cell.reader();
            let alive = cell.read(&mut reader) && cell.hold(&mut reader, || ());
            drop(reader);
            alive && cell.synchronize()
        }
    }

    #[test]
    fn all_wait() {
        for about in all() {
            assert!(visit(about.name, Once), "{}", about.name);
        }
        assert_eq!(list("rcu,hp-sync,rcu"), Ok(vec!["rcu", "hp-sync"]));
        assert!(list("all").unwrap().contains(&"hp-drain"));
    }

    #[test]
    fn what_cannot_is_refused_with_the_reason() {
        assert!(list("mutex").unwrap_err().contains("hpbench grace"));
        assert!(list("srcu").unwrap_err().contains("sleepable"));
        assert!(list("").is_err());
        assert!(
            can("hp-sync", true, false)
                .unwrap_err()
                .contains("--gp-async")
        );
        assert!(
            can("heavy-barrier", false, true)
                .unwrap_err()
                .contains("--kfree")
        );
        assert!(can("rcu", true, false).is_ok() && can("hp-sync", false, true).is_ok());
    }

    /// A drain frees what the readers had.
    #[test]
    fn a_drain_drains() {
        let census = schemes::Census::leak();
        let cell = Hazard::<Drain>::new(Object::new(0, Some(census)));
        assert!(cell.synchronize());
        assert_eq!(census.dead(), 1);
    }
}
