//! The buckets of [`Map`](super::Map): where in the one list to begin.
//!
//! Floor 2 (`hp`), over [`super::list`]. Owns the arrays of buckets and their
//! opening; knows nothing of keys.
//!
//! # Purpose
//!
//! A bucket is a link in the list, before the entries whose order begins with
//! the bits of its number, lowest bit first. There are `size` of them, a power
//! of two. Arrays are added, never
//! moved or freed before the table: array 0 has the first `base` buckets, array
//! n the next `base << (n - 1)`, as many as there were before it. So doubling
//! is one exchange of `size`, and a reader needs no protection for a bucket.
//!
//! # Opening
//!
//! A bucket is put into the list at its first use, by whoever claims it
//! (`CLOSED` → `OPENING`). Its *parent* is the same number without its highest
//! bit; the parent's link stands before it. Buckets only shorten the way, and
//! so nobody waits: whoever finds one `OPENING` begins at its parent, and a
//! thread with an old `size` at a bucket that was there before. (One whose
//! opener panicked, in somebody's destructor, stays `OPENING` for good.)
//!
//! # Orderings
//!
//! * *Array* (Release exchange of `arrays[n]`) – pairs with the Acquire load of
//!   whoever uses it.
//! * *Open* (Release store of `OPEN`) – pairs with the Acquire load of the
//!   state: who finds it open finds the link in the list, with its order.
//! * `size` is Relaxed: any value it ever had is right.

use super::keep::Keeper;
use super::list::{Link, Node, Walk};
use core::marker::PhantomData;
use core::ptr::{self, NonNull};
use percpu::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// Arrays: the first one and its doublings.
#[cfg(not(loom))]
const ARRAYS: usize = 48;
/// Arrays under loom.
#[cfg(loom)]
const ARRAYS: usize = 2;

/// No thread has used it.
const CLOSED: usize = 0;
/// A thread puts it into the list.
const OPENING: usize = 1;
/// It is in the list.
const OPEN: usize = 2;

#[derive(Debug)]
struct Bucket {
    link: Link,
    state: AtomicUsize,
}

/// The list's head and its buckets. `T` is what entries hold.
#[derive(Debug)]
pub(crate) struct Table<T> {
    head: Link,
    /// log2 of the number of buckets in the first array.
    base: u32,
    size: AtomicUsize,
    arrays: [AtomicPtr<Bucket>; ARRAYS],
    _entries: PhantomData<*const Node<T>>,
}

macro_rules! new_table {
    ($($const:ident)?) => {
        /// A table that begins with 2^`base` buckets. Allocates none.
        pub(crate) $($const)? fn new(base: u32) -> Self {
            Self {
                head: Link::new(0),
                base,
                size: AtomicUsize::new(1 << base),
                arrays: new_table!(@arrays $($const)?),
                _entries: PhantomData,
            }
        }
    };
    (@arrays const) => { [const { AtomicPtr::new(ptr::null_mut()) }; ARRAYS] };
    (@arrays) => { std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())) };
}

impl<T> Table<T> {
    #[cfg(not(loom))]
    new_table!(const);
    #[cfg(loom)]
    new_table!();

    /// Buckets now.
    #[inline(always)]
    pub(crate) fn size(&self) -> usize {
        // Relaxed: see the module.
        self.size.load(Ordering::Relaxed)
    }

    /// Doubles the buckets, if there are `size` of them.
    pub(crate) fn double(&self, size: usize) {
        if size < 1 << (self.base + ARRAYS as u32 - 1).min(usize::BITS - 2) {
            // Relaxed, both: see the module.
            let _ =
                self.size
                    .compare_exchange(size, 2 * size, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// The head: before everything.
    pub(crate) fn head(&self) -> &Link {
        &self.head
    }

    /// A link that stands before all entries of this order.
    #[inline(always)]
    pub(crate) fn start<K: Keeper>(&self, keeper: &K, order: usize) -> &Link {
        let number = order.reverse_bits() & (self.size() - 1);
        match self.bucket(number) {
            Some(bucket) if bucket.is_open() => &bucket.link,
            _ => self.start_cold(keeper, number),
        }
    }

    /// Array of a bucket, its place there, and the array's length.
    #[inline(always)]
    fn place(&self, number: usize) -> (usize, usize, usize) {
        let array = (usize::BITS - (number >> self.base).leading_zeros()) as usize;
        let first = if array == 0 {
            0
        } else {
            1 << (self.base as usize + array - 1)
        };
        (array, number - first, first.max(1 << self.base))
    }

    #[inline(always)]
    fn bucket(&self, number: usize) -> Option<&Bucket> {
        let (array, index, _) = self.place(number);
        // Acquire: "Array".
        let array = self.arrays.get(array)?.load(Ordering::Acquire);
        if array.is_null() {
            return None;
        }
        // SAFETY: an array has as many as `place` says, and lives as we do.
        Some(unsafe { &*array.add(index) })
    }

    #[cold]
    #[inline(never)]
    fn start_cold<K: Keeper>(&self, keeper: &K, number: usize) -> &Link {
        let bucket = match self.bucket(number) {
            Some(bucket) => bucket,
            None => self.add_array(number),
        };
        if bucket.is_open() {
            return &bucket.link;
        }
        let parent = match number.checked_ilog2() {
            // At most one call for each bit of a number.
            Some(highest) => self.parent(keeper, number & !(1 << highest)),
            None => &self.head,
        };
        // Relaxed: the claim carries nothing; "Open" does.
        let claimed = bucket
            .state
            .compare_exchange(CLOSED, OPENING, Ordering::Relaxed, Ordering::Relaxed)
            .is_ok();
        if !claimed {
            return parent;
        }
        let order = number.reverse_bits();
        bucket.link.set_order(order);
        // SAFETY: the list is this table's, whose entries are `Node<T>`s.
        let mut walk = unsafe { Walk::<K, T>::new(keeper, parent) };
        loop {
            walk.to(parent, |link, _| link.order() >= order);
            // SAFETY: claimed by us, in no list yet; arrays are freed after the
            // list is emptied.
            if unsafe { walk.insert_bucket(NonNull::from(&bucket.link)) } {
                break;
            }
        }
        // Release: "Open".
        bucket.state.store(OPEN, Ordering::Release);
        &bucket.link
    }

    fn parent<K: Keeper>(&self, keeper: &K, number: usize) -> &Link {
        match self.bucket(number) {
            Some(bucket) if bucket.is_open() => &bucket.link,
            _ => self.start_cold(keeper, number),
        }
    }

    /// Allocates the array of a bucket, unless somebody else has.
    fn add_array(&self, number: usize) -> &Bucket {
        let (array, index, len) = self.place(number);
        let new = closed_buckets(len);
        // Release: "Array". Acquire on failure: the other one's.
        let array = match self.arrays[array].compare_exchange(
            ptr::null_mut(),
            new,
            Ordering::Release,
            Ordering::Acquire,
        ) {
            Ok(_) => new,
            Err(other) => {
                // SAFETY: made above with this length, shown to nobody.
                unsafe { free_buckets(new, len) };
                other
            }
        };
        // SAFETY: as in `bucket`.
        unsafe { &*array.add(index) }
    }

    /// Takes every entry out, for the end of the list: gives each one's
    /// address, once.
    pub(crate) fn take_all(&mut self, mut give: impl FnMut(*mut ())) {
        let mut here = core::mem::replace(&mut self.head, Link::new(0)).next_mut();
        while !here.is_null() {
            // SAFETY: linked, hence alive; `&mut self`: nobody walks. Only
            // `next` is touched, which guards of the entry do not cover.
            let (next, order) = unsafe {
                let link = here.cast::<Link>();
                let next = (*link).next_mut();
                (next, (*link).order())
            };
            if order & 1 != 0 {
                give(here);
            }
            here = next;
        }
    }
}

impl Bucket {
    #[inline(always)]
    fn is_open(&self) -> bool {
        // Acquire: "Open".
        self.state.load(Ordering::Acquire) == OPEN
    }
}

/// `len` buckets, all closed.
#[cfg(not(loom))]
fn closed_buckets(len: usize) -> *mut Bucket {
    use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};
    let Ok(layout) = Layout::array::<Bucket>(len) else {
        panic!("capacity overflow: {len} buckets");
    };
    // SAFETY: buckets have a size, and there is at least one.
    let array = unsafe { alloc_zeroed(layout) };
    if array.is_null() {
        handle_alloc_error(layout);
    }
    // Zeros are a closed bucket: null, order 0 (set when it is opened), CLOSED.
    array.cast()
}

#[cfg(loom)]
fn closed_buckets(len: usize) -> *mut Bucket {
    let closed = |_| Bucket {
        link: Link::new(0),
        state: AtomicUsize::new(CLOSED),
    };
    Box::into_raw((0..len).map(closed).collect::<Box<[_]>>()).cast()
}

/// # Safety
///
/// From [`closed_buckets`] with this length; nobody uses it.
unsafe fn free_buckets(array: *mut Bucket, len: usize) {
    // SAFETY: zeroed memory of this layout, or a box of it (under loom).
    drop(unsafe { Box::from_raw(ptr::slice_from_raw_parts_mut(array, len)) });
}

impl<T> Drop for Table<T> {
    fn drop(&mut self) {
        for (n, array) in self.arrays.iter_mut().enumerate() {
            // Relaxed: exclusive.
            let array = array.load(Ordering::Relaxed);
            if !array.is_null() {
                let len = 1 << (self.base as usize + n.saturating_sub(1));
                // SAFETY: made with this length; no walk is in progress, and
                // guards are of entries.
                unsafe { free_buckets(array, len) };
            }
        }
    }
}
