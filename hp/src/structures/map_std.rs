//! The standard library's traits for [`Map`].
//!
//! Floor 2 (`hp`), safe level, over the map's public methods.

use super::map::Map;
use super::map_iter::MapIter;
use crate::guard::Guard;
use core::fmt;
use core::hash::{BuildHasher, Hash};

impl<K: Send + 'static, V: Send + 'static, S: Default> Default for Map<K, V, S> {
    fn default() -> Self {
        Self::with_hasher(S::default())
    }
}

impl<K, V, S> FromIterator<(K, V)> for Map<K, V, S>
where
    K: Hash + Eq + Send + 'static,
    V: Send + 'static,
    S: BuildHasher + Default,
{
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let entries = entries.into_iter();
        let map = Self::with_capacity_and_hasher(entries.size_hint().0, S::default());
        (&map).extend(entries);
        map
    }
}

impl<K, V, S> Extend<(K, V)> for Map<K, V, S>
where
    K: Hash + Eq + Send + 'static,
    V: Send + 'static,
    S: BuildHasher,
{
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        (&*self).extend(entries);
    }
}

impl<K, V, S> Extend<(K, V)> for &Map<K, V, S>
where
    K: Hash + Eq + Send + 'static,
    V: Send + 'static,
    S: BuildHasher,
{
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        for (key, value) in entries {
            drop(self.insert(key, value));
        }
    }
}

impl<'a, K: Send + 'static, V: Send + 'static, S> IntoIterator for &'a Map<K, V, S> {
    type Item = Guard<(K, V)>;
    type IntoIter = MapIter<'a, K, V>;

    fn into_iter(self) -> MapIter<'a, K, V> {
        self.iter()
    }
}

impl<K, V, S> fmt::Debug for Map<K, V, S>
where
    K: Send + fmt::Debug + 'static,
    V: Send + fmt::Debug + 'static,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = f.debug_map();
        for entry in self {
            map.entry(&entry.0, &entry.1);
        }
        map.finish()
    }
}
