//! Runs one test over each map and each scheme.

use super::linked;
use structures::{HashMap, List, Map, Scheme, SkipList, Visit, dispatch};

/// A test of any map.
pub(crate) trait OnMap {
    fn run<M: Map>(&self);
}

struct Over<'a, T>(&'a T);

impl<T: OnMap> Visit for Over<'_, T> {
    type Out = ();

    fn visit<S: Scheme>(self) {
        self.0.run::<List<S>>();
        self.0.run::<HashMap<S>>();
        self.0.run::<SkipList<S>>();
    }
}

/// Each map under each scheme.
pub(crate) fn each(test: &impl OnMap) {
    for about in linked() {
        dispatch(about.name, Over(test)).expect("listed");
    }
}

/// For messages.
pub(crate) fn name<M: Map>() -> String {
    format!("{} under {}", M::KIND.name(), M::Scheme::ABOUT.name)
}
