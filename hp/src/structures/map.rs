//! A hash map.
//!
//! Floor 2 (`hp`), safe level, over [`super::list`] and [`super::table`]. Owns
//! the hashing, the comparing of keys, the count and when to grow; changes no
//! link itself.

use super::count::Count;
use super::keep::{Keeper, Process};
use super::list::{Kept, Node, Walk};
use super::map_iter::MapIter;
use super::table::Table;
use crate::guard::Guard;
use crate::slot::Held;
use core::borrow::Borrow;
use core::hash::{BuildHasher, Hash};
use core::marker::PhantomData;
use core::ptr::NonNull;
use std::hash::RandomState;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// log2 of the buckets of a map that nobody asked for more.
const BASE: u32 = 4;

/// 2^64 divided by the golden ratio, and odd: the multiplier of Fibonacci
/// hashing (Knuth).
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// Links that an insertion may pass before it looks whether to grow, and
/// insertions of one counter after which it looks anyway.
const LONG_WAY: usize = 6;
const LOOK_EVERY: i64 = 64;

/// A lock-free hash map.
///
/// Reading gives a [`Guard`] of the value: no lock, no copy, no lifetime. An
/// entry that is removed or replaced stays alive for those who hold one, and is
/// dropped some time after the last is gone, on any thread (hence
/// `K, V: Send + 'static`).
///
/// The map grows by itself and never shrinks: from one bucket for each entry it
/// doubles the buckets, which moves and copies nothing. A bucket is 24 bytes,
/// an entry 24 bytes beyond its key and value, a map itself about 1.5 KiB.
///
/// # Progress
///
/// All operations are lock-free: a retry means that another thread changed the
/// bucket. None waits for another thread.
///
/// # Bounds
///
/// `K` and `V` are `Send + 'static` because entries are dropped later and
/// anywhere. The map is `Send` and `Sync` if they are `Sync` as well: all its
/// guards are shared references.
///
/// # Source
///
/// Michael, *High Performance Dynamic Lock-Free Hash Tables and List-Based Sets*
/// (2002); Shalev and Shavit, *Split-Ordered Lists* (2006). Replacing in place,
/// and the ranks by which iterators find their place again, are this map's own.
///
/// # Example
///
/// ```
/// use hp::structures::Map;
///
/// let ports = Map::new();
/// ports.insert("http", 80);
/// ports.insert("https", 442);
/// let old = ports.insert("https", 443).expect("was there");
///
/// let https = ports.get("https").expect("is there");
/// ports.remove("https");
/// assert_eq!((*old, *https), (442, 443)); // both alive: they are guarded
/// assert!(!ports.contains_key("https"));
/// assert_eq!(ports.len(), 1);
/// ```
pub struct Map<K: Send + 'static, V: Send + 'static, S = RandomState> {
    table: Table<(K, V)>,
    count: Count,
    hasher: S,
    /// Neither `Send` nor `Sync` by itself, and invariant.
    _entries: PhantomData<*mut (K, V)>,
}

// SAFETY: moving the map moves access to `&K` and `&V`, which guards need not
// go along with (`Sync`), and drops them anywhere (`Send`).
unsafe impl<K: Send + Sync, V: Send + Sync, S: Send> Send for Map<K, V, S> {}
// SAFETY: as above; `&Map` gives guards, takes keys and values, and hashes.
unsafe impl<K: Send + Sync, V: Send + Sync, S: Sync> Sync for Map<K, V, S> {}

/// What [`Map::find`] found.
struct Found<'a, K, V> {
    walk: Walk<'a, Process, (K, V)>,
    /// Whether `walk` stands at an entry with the key.
    here: bool,
    /// The rank of a new entry in this place.
    rank: usize,
    /// Links that it passed.
    passed: usize,
}

impl<K: Send + 'static, V: Send + 'static> Map<K, V> {
    /// An empty map. Allocates no buckets yet.
    #[must_use]
    pub fn new() -> Self {
        Self::with_hasher(RandomState::new())
    }

    /// An empty map that has buckets for `capacity` entries, so that these
    /// need not grow it.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self::with_capacity_and_hasher(capacity, RandomState::new())
    }
}

impl<K: Send + 'static, V: Send + 'static, S> Map<K, V, S> {
    /// An empty map with a hasher of its own. Can make a static one, if `S`
    /// can be made so:
    ///
    /// ```
    /// use hp::structures::Map;
    /// use std::hash::{BuildHasherDefault, DefaultHasher};
    ///
    /// static NAMES: Map<u32, String, BuildHasherDefault<DefaultHasher>> =
    ///     Map::with_hasher(BuildHasherDefault::new());
    /// NAMES.insert(7, "seven".to_string());
    /// assert_eq!(*NAMES.get(&7).unwrap(), "seven");
    /// ```
    ///
    /// (That hasher has no secret key; whoever chooses the keys can make them
    /// collide.)
    #[must_use]
    pub const fn with_hasher(hasher: S) -> Self {
        Self::with_base(BASE, hasher)
    }

    /// [`with_capacity`](Map::with_capacity) and
    /// [`with_hasher`](Self::with_hasher).
    ///
    /// # Panics
    ///
    /// If no memory could hold buckets for `capacity` entries.
    #[must_use]
    pub fn with_capacity_and_hasher(capacity: usize, hasher: S) -> Self {
        // A bucket is at most 32 bytes, and there are fewer than twice as many.
        assert!(
            capacity <= isize::MAX as usize / 64,
            "capacity overflow: {capacity} entries"
        );
        let base = capacity.next_power_of_two().trailing_zeros();
        Self::with_base(base.max(BASE), hasher)
    }

    const fn with_base(base: u32, hasher: S) -> Self {
        Self {
            table: Table::new(base),
            count: Count::new(),
            hasher,
            _entries: PhantomData,
        }
    }

    /// The number of entries: exact while nobody changes the map, else a sum of
    /// counts that were each true at some moment of the call.
    ///
    /// # Progress
    ///
    /// Wait-free: reads 8 counters.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count.sum()
    }

    /// Whether [`len`](Self::len) is 0.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Entries that the present buckets are meant for.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.table.size()
    }

    /// The map's hasher.
    #[must_use]
    pub fn hasher(&self) -> &S {
        &self.hasher
    }

    /// An iterator over the entries, each protected; in no particular order.
    ///
    /// It is weakly consistent. A key that is there from the call to the end of
    /// the iteration is given exactly once, with one of the values that it had;
    /// one that is inserted or removed meanwhile may be given or not. (One that
    /// is removed and inserted again meanwhile may be given twice if another key
    /// has the same full hash.)
    ///
    /// # Progress
    ///
    /// Each step is lock-free. It may be the one to unlink what others removed,
    /// and so may reclaim (and panic) as [`remove`](Self::remove) does.
    ///
    /// # Example
    ///
    /// ```
    /// use hp::structures::Map;
    ///
    /// let map: Map<u32, &str> = Map::from_iter([(1, "one"), (2, "two")]);
    /// let mut keys: Vec<_> = map.iter().map(|entry| entry.0).collect();
    /// keys.sort();
    /// assert_eq!(keys, [1, 2]);
    /// ```
    pub fn iter(&self) -> MapIter<'_, K, V> {
        MapIter::new(&self.table)
    }

    /// Removes all entries that an [`iter`](Self::iter) meets.
    ///
    /// # Panics
    ///
    /// As [`remove`](Self::remove).
    ///
    /// # Progress
    ///
    /// As [`retain`](Self::retain).
    pub fn clear(&self) {
        self.retain(|_, _| false);
    }

    /// Removes each entry that an [`iter`](Self::iter) meets and `keep` does
    /// not want. One that is replaced at that moment stays.
    ///
    /// # Panics
    ///
    /// As [`remove`](Self::remove), and if `keep` does.
    ///
    /// # Progress
    ///
    /// Each step is lock-free, `keep` apart; allocates nothing in the steady
    /// state.
    pub fn retain(&self, mut keep: impl FnMut(&K, &V) -> bool) {
        let mut entries = self.iter();
        while let Some((slot, node)) = entries.next_node() {
            // SAFETY: protected by `slot`.
            let (data, order) = unsafe { (&node.as_ref().data, node.as_ref().link.order()) };
            // SAFETY: protected, and was in the list.
            if !keep(&data.0, &data.1) && unsafe { super::list::leave(node) } {
                self.count.add(-1);
                drop(slot);
                self.sweep(order);
            }
        }
    }

    /// Unlinks whatever has left and stands before or among the entries of
    /// this order.
    fn sweep(&self, order: usize) {
        let start = self.table.start(&Process, order);
        // SAFETY: as in `find`.
        let mut walk = unsafe { Walk::<_, (K, V)>::new(&Process, start) };
        walk.to(start, |link, _| link.order() > order);
    }

    fn guard((slot, node): Kept<(K, V)>) -> Guard<(K, V)> {
        // SAFETY: the slot protects the node, whose data is written before it
        // is published and then only dropped.
        unsafe {
            let data = NonNull::from(&(*node.as_ptr()).data);
            Guard::of_part(slot, data)
        }
    }

    fn value(kept: Kept<(K, V)>) -> Guard<V> {
        Self::guard(kept).map(|entry| &entry.1)
    }
}

impl<K: Hash + Eq + Send + 'static, V: Send + 'static, S: BuildHasher> Map<K, V, S> {
    /// The order of an entry with this key.
    #[inline]
    fn order<Q: Hash + ?Sized>(&self, key: &Q) -> usize {
        // Buckets are told apart by the highest bits, which the product makes
        // depend on all bits: hashers may be as plain as the identity.
        let mixed = self.hasher.hash_one(key).wrapping_mul(SPREAD);
        (mixed >> (u64::BITS - usize::BITS)) as usize | 1
    }

    /// To the entry with this key, or to where it would have to be.
    #[inline]
    fn find<Q: Eq + ?Sized>(&self, order: usize, key: &Q) -> Found<'_, K, V>
    where
        K: Borrow<Q>,
    {
        let start = self.table.start(&Process, order);
        // SAFETY: the table's list has entries of this type only; what leaves
        // it is retired to a domain.
        let mut walk = unsafe { Walk::new(&Process, start) };
        let (mut here, mut rank, mut passed) = (false, 0, 0);
        walk.to(start, |link, entry: Option<&Node<(K, V)>>| {
            let now = link.order();
            if now > order {
                return true;
            }
            passed += 1;
            if now == order
                && let Some(entry) = entry
            {
                if entry.data.0.borrow() == key {
                    here = true;
                    return true;
                }
                rank = entry.rank + 1;
            }
            false
        });
        Found {
            walk,
            here,
            rank,
            passed,
        }
    }

    #[inline]
    fn find_kept<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<Kept<(K, V)>>
    where
        K: Borrow<Q>,
    {
        let found = self.find(self.order(key), key);
        if found.here { found.walk.take() } else { None }
    }

    /// The value of a key, protected.
    ///
    /// Everything that happened before the entry was inserted happens before
    /// this returns it.
    ///
    /// # Panics
    ///
    /// As [`insert`](Self::insert): a reader that meets an entry which others
    /// removed and did not unlink yet does that for them.
    ///
    /// # Progress
    ///
    /// Lock-free. Allocates nothing but, once for as many buckets as there are,
    /// their array.
    #[inline]
    #[must_use]
    pub fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<Guard<V>>
    where
        K: Borrow<Q>,
    {
        self.find_kept(key).map(Self::value)
    }

    /// The entry of a key, protected.
    ///
    /// # Panics, Progress
    ///
    /// As [`get`](Self::get).
    #[inline]
    #[must_use]
    pub fn get_key_value<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<Guard<(K, V)>>
    where
        K: Borrow<Q>,
    {
        self.find_kept(key).map(Self::guard)
    }

    /// Whether the key is in the map.
    ///
    /// # Panics, Progress
    ///
    /// As [`get`](Self::get).
    #[inline]
    #[must_use]
    pub fn contains_key<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.find(self.order(key), key).here
    }

    /// Puts an entry in, or in the place of the one with the same key (of which
    /// the key is replaced, too). Gives the value that was replaced.
    ///
    /// To a reader, replacing is one step: at no moment is the key absent.
    ///
    /// # Panics
    ///
    /// If `Hash` or `Eq` do, or if this call reclaims and a destructor panics,
    /// as with [`Domain::retire_box`](crate::Domain::retire_box).
    ///
    /// # Progress
    ///
    /// Lock-free; allocates one node.
    pub fn insert(&self, key: K, value: V) -> Option<Guard<V>> {
        let order = self.order(&key);
        let mut node = Node::boxed(order, (key, value));
        loop {
            let found = self.find(order, &node.data.0);
            if found.here {
                match found.walk.replace(node) {
                    Ok((old, unlinked)) => {
                        let old = Self::value(old);
                        if !unlinked {
                            self.sweep(order);
                        }
                        return Some(old);
                    }
                    Err(again) => node = again,
                }
            } else {
                node.rank = found.rank;
                match found.walk.insert(node) {
                    Ok(_) => {
                        self.counted(found.passed);
                        return None;
                    }
                    Err(again) => node = again,
                }
            }
        }
    }

    /// The value of a key, which `make` provides if the key is not there.
    /// `make` runs at most once; what it made is dropped if another thread
    /// inserts the key meanwhile.
    ///
    /// # Panics
    ///
    /// As [`insert`](Self::insert), and if `make` does (which changes nothing).
    ///
    /// # Progress
    ///
    /// Lock-free, `make` apart.
    ///
    /// # Example
    ///
    /// ```
    /// let lengths = hp::structures::Map::new();
    /// let word = "hazard";
    /// assert_eq!(*lengths.get_or_insert_with(word, || word.len()), 6);
    /// assert_eq!(*lengths.get_or_insert_with(word, || unreachable!()), 6);
    /// ```
    pub fn get_or_insert_with(&self, key: K, make: impl FnOnce() -> V) -> Guard<V> {
        let order = self.order(&key);
        let found = self.find(order, &key);
        if found.here
            && let Some(kept) = found.walk.take()
        {
            return Self::value(kept);
        }
        let mut node = Node::boxed(order, (key, make()));
        // Before others can see and remove it.
        let slot: Held = Process.hold(NonNull::from(&*node).cast());
        loop {
            let found = self.find(order, &node.data.0);
            if found.here {
                if let Some(kept) = found.walk.take() {
                    return Self::value(kept);
                }
            } else {
                node.rank = found.rank;
                match found.walk.insert(node) {
                    Ok(node) => {
                        self.counted(found.passed);
                        return Self::value((slot, node));
                    }
                    Err(again) => {
                        node = again;
                        continue;
                    }
                }
            }
        }
    }

    /// Takes an entry out; gives its value, which others may still hold. It is
    /// dropped when nobody does.
    ///
    /// # Panics
    ///
    /// As [`insert`](Self::insert).
    ///
    /// # Progress
    ///
    /// Lock-free; allocates nothing in the steady state.
    pub fn remove<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<Guard<V>>
    where
        K: Borrow<Q>,
    {
        self.remove_entry(key).map(|entry| entry.map(|e| &e.1))
    }

    /// [`remove`](Self::remove), with the key.
    ///
    /// # Panics, Progress
    ///
    /// As [`remove`](Self::remove).
    pub fn remove_entry<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<Guard<(K, V)>>
    where
        K: Borrow<Q>,
    {
        let order = self.order(key);
        loop {
            let found = self.find(order, key);
            if !found.here {
                return None;
            }
            if let Some((old, unlinked)) = found.walk.remove(|| {
                self.count.add(-1);
            }) {
                let old = Self::guard(old);
                if !unlinked {
                    self.sweep(order);
                }
                return Some(old);
            }
        }
    }

    /// After an insertion: counts, and doubles the buckets if there are more
    /// entries than that.
    #[inline]
    fn counted(&self, passed: usize) {
        let count = self.count.add(1);
        if passed > LONG_WAY || count % LOOK_EVERY == 0 {
            let size = self.table.size();
            if self.len() > size {
                self.table.double(size);
            }
        }
    }
}

impl<K: Send + 'static, V: Send + 'static, S> Drop for Map<K, V, S> {
    /// Retires every entry; guards may outlive the map.
    fn drop(&mut self) {
        let mut panic = None;
        self.table.take_all(|node| {
            // SAFETY: from a box, in the list until now, and nobody else's.
            let node = unsafe { Node::<(K, V)>::retired(node) };
            // A destructor that panics must not keep the rest.
            if let Err(caught) = catch_unwind(AssertUnwindSafe(|| Process.retire(node))) {
                panic = Some(caught);
            }
        });
        if let Some(caught) = panic
            && !std::thread::panicking()
        {
            resume_unwind(caught);
        }
    }
}
