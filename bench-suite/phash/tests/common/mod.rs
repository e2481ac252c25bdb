//! What the tests share: something done with every scheme, and a thread that sleeps badly.

#![allow(dead_code)]

use phash::{Futex, Scheme, Sleep, Visit, schemes};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

/// `visit`, made anew for each, with every scheme. (Not with the peers' under Miri, whose rules for references
/// crossbeam-epoch breaks in its own list.)
pub(crate) fn each<V: Visit>(mut visit: impl FnMut() -> V) -> Vec<(&'static str, V::Out)> {
    if cfg!(miri) {
        // Miri calls a thread that outlives `main` an error, and a worker lingers.
        rcu_lite::Rcu::global().set_callbacks(rcu_lite::Callbacks::Manual);
        rcu_lite::ThreadRcu.set_callbacks(rcu_lite::Callbacks::Manual);
    }
    schemes::ALL
        .iter()
        .filter(|about| !cfg!(miri) || !["crossbeam-epoch", "seize"].contains(&about.name))
        .map(|about| {
            let out = schemes::dispatch(about.name, visit()).expect("a listed scheme");
            (about.name, out)
        })
        .collect()
}

/// Sleeps for no time at all two times in three, as a signal would make it.
#[derive(Debug, Default)]
pub(crate) struct Spurious {
    futex: Futex,
    calls: AtomicUsize,
}

impl Sleep for Spurious {
    fn sleep(&self, word: &AtomicU32, value: u32, until: Option<Instant>) {
        if self.calls.fetch_add(1, Relaxed) % 3 == 2 {
            self.futex.sleep(word, value, until);
        }
    }

    fn wake(&self, word: &AtomicU32) {
        self.futex.wake(word);
    }
}

/// Whether `S` can be replaced.
pub(crate) fn replaces<S: Scheme>() -> bool {
    S::ABOUT.replaces != phash::Replaces::Never
}
