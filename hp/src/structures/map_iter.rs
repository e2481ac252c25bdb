//! An iterator over a map that others change.
//!
//! Floor 2 (`hp`), safe level, over [`super::list`] and [`super::table`]. Owns
//! the cursor: an entry that it keeps alive, and that entry's place.
//!
//! The next entry is the first one beyond (order, rank) of the last. It is
//! looked for from the last one while that is in the list, else from its
//! bucket; the places strictly increase along the list, so that nothing is
//! given twice or passed over, wherever the walk begins.

use super::keep::Process;
use super::list::{Kept, Node, Walk};
use super::table::Table;
use crate::guard::Guard;
use crate::slot::Held;
use crate::slots::SLOTS;
use core::fmt;
use core::iter::FusedIterator;
use core::ptr::NonNull;

/// The entries of a [`Map`](super::Map); see [`iter`](super::Map::iter).
pub struct MapIter<'a, K: Send + 'static, V: Send + 'static> {
    table: &'a Table<(K, V)>,
    last: Last<(K, V)>,
}

enum Last<T> {
    /// Nothing was given yet.
    None,
    /// This one, which is protected.
    Entry(Kept<T>),
    /// The end was reached.
    End,
}

// SAFETY: it is a shared reference to the map and a guard of an entry.
unsafe impl<K: Send + Sync, V: Send + Sync> Send for MapIter<'_, K, V> {}
// SAFETY: as above; `&MapIter` gives nothing.
unsafe impl<K: Send + Sync, V: Send + Sync> Sync for MapIter<'_, K, V> {}

impl<'a, K: Send + 'static, V: Send + 'static> MapIter<'a, K, V> {
    pub(super) fn new(table: &'a Table<(K, V)>) -> Self {
        Self {
            table,
            last: Last::None,
        }
    }

    /// The next entry, in a slot of its own.
    pub(super) fn next_node(&mut self) -> Option<Kept<(K, V)>> {
        let found = match &self.last {
            Last::None => {
                let head = self.table.head();
                // SAFETY: the table's list has entries of this type only; what
                // leaves it is retired to a domain.
                let mut walk = unsafe { Walk::new(&Process, head) };
                walk.to(head, |_, entry: Option<&Node<(K, V)>>| entry.is_some());
                walk.take()
            }
            Last::Entry((_slot, node)) => {
                // SAFETY: protected by `_slot`.
                let node = unsafe { node.as_ref() };
                let place = (node.link.order(), node.rank);
                let beyond = |_: &_, entry: Option<&Node<(K, V)>>| {
                    entry.is_some_and(|entry| (entry.link.order(), entry.rank) > place)
                };
                // SAFETY: as above.
                let mut walk = unsafe { Walk::new(&Process, &node.link) };
                if !walk.to(&node.link, beyond) {
                    // It has left.
                    let start = self.table.start(&Process, place.0);
                    walk.to(start, beyond);
                }
                walk.take()
            }
            Last::End => None,
        };
        let Some((slot, node)) = found else {
            self.last = Last::End;
            return None;
        };
        // A slot of the CPU's line goes to the caller, who lets go of it soon.
        let own = Held(crate::thread::with(|thread| SLOTS.share(thread, &slot.0)));
        self.last = Last::Entry((own, node));
        Some((slot, node))
    }
}

impl<K: Send + 'static, V: Send + 'static> Iterator for MapIter<'_, K, V> {
    type Item = Guard<(K, V)>;

    fn next(&mut self) -> Option<Self::Item> {
        let (slot, node) = self.next_node()?;
        // SAFETY: the slot protects the node, whose data is written before it
        // is published and then only dropped.
        Some(unsafe {
            let data = NonNull::from(&(*node.as_ptr()).data);
            Guard::of_part(slot, data)
        })
    }
}

impl<K: Send + 'static, V: Send + 'static> FusedIterator for MapIter<'_, K, V> {}

impl<K: Send + 'static, V: Send + 'static> fmt::Debug for MapIter<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MapIter").finish_non_exhaustive()
    }
}
