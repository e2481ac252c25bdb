//! Hidden schemes: `broken-…`, which must turn a check red, and `control`, the same code without a fault, which must not.
//!
//! Floor 3 (`structures`). Textbook hazard pointers whose dead nodes are poisoned but keep their memory until the
//! structure goes. So a look at a dead node, or a second retirement, is seen and is no undefined behaviour.
//!
//! | scheme | what it leaves out |
//! |---|---|
//! | `control` | nothing |
//! | `broken-unprotected` | publishing the address |
//! | `broken-unvalidated` | reading the source again after publishing |
//! | `broken-unlooking` | the structure's own second look: `unchanged` says yes to everything |
//! | `broken-unannounced` | `announce` |
//!
//! **Orderings.** "Publish" (SeqCst) pairs with "Scan" (SeqCst): either the scan sees the slot, or the second look comes
//! after the unlinking. The fences are the textbook's.

use crate::scheme::{Guard, Scheme, Thread, untagged};
use crate::{About, Node, Protects};
use percpu::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering, fence};
use std::fmt::Debug;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};

/// What is left out.
pub trait Fault: Debug + Send + Sync + 'static {
    /// The scheme's name.
    const NAME: &'static str;
    /// Whether addresses are published.
    const PUBLISHES: bool = true;
    /// Whether the source is read again.
    const VALIDATES: bool = true;
    /// Whether the structure's second look looks.
    const LOOKS: bool = true;
    /// Whether announcing does anything.
    const ANNOUNCES: bool = true;
}

/// Nothing.
#[derive(Debug)]
pub struct Control;

impl Fault for Control {
    const NAME: &'static str = "control";
}

/// Publishing.
#[derive(Debug)]
pub struct Unprotected;

impl Fault for Unprotected {
    const NAME: &'static str = "broken-unprotected";
    const PUBLISHES: bool = false;
}

/// Reading again.
#[derive(Debug)]
pub struct Unvalidated;

impl Fault for Unvalidated {
    const NAME: &'static str = "broken-unvalidated";
    const VALIDATES: bool = false;
}

/// The structure's second look.
#[derive(Debug)]
pub struct Unlooking;

impl Fault for Unlooking {
    const NAME: &'static str = "broken-unlooking";
    const LOOKS: bool = false;
}

/// Announcing.
#[derive(Debug)]
pub struct Unannounced;

impl Fault for Unannounced {
    const NAME: &'static str = "broken-unannounced";
    const ANNOUNCES: bool = false;
}

/// A node that waits, or is dead.
#[derive(Debug)]
struct Retired {
    node: *mut (),
    poison: unsafe fn(*mut ()),
    free: unsafe fn(*mut ()),
}

// SAFETY: nodes are `Send`; dead ones are read through their atomic canary only.
unsafe impl Send for Retired {}

unsafe fn poison<T: Node>(node: *mut ()) {
    // SAFETY: the caller's: a node whose memory stays.
    unsafe { (*node.cast::<T>()).life().poison() };
}

unsafe fn free<T: Node>(node: *mut ()) {
    // SAFETY: the caller's: a box of `T`.
    drop(unsafe { Box::from_raw(node.cast::<T>()) });
}

#[derive(Debug, Default)]
struct Shared {
    slots: Vec<Arc<[AtomicUsize]>>,
    waiting: Vec<Retired>,
    dead: Vec<Retired>,
}

/// Hazard pointers with or without a fault.
#[derive(Debug)]
pub struct Textbook<F> {
    shared: Mutex<Shared>,
    twice: AtomicBool,
    fault: PhantomData<F>,
}

impl<F> Textbook<F> {
    /// Whether a node was retired twice.
    pub fn retired_twice(&self) -> bool {
        // Relaxed: for tests, after the threads.
        self.twice.load(Ordering::Relaxed)
    }

    fn with<R>(&self, f: impl FnOnce(&mut Shared) -> R) -> R {
        f(&mut self.shared.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Kills what is in no slot. The memory stays.
    fn pass(shared: &mut Shared) {
        // SeqCst: "Scan".
        fence(Ordering::SeqCst);
        let held: Vec<usize> = shared
            .slots
            .iter()
            .flat_map(|slots| slots.iter().map(|slot| slot.load(Ordering::SeqCst)))
            .collect();
        let (stay, dead): (Vec<_>, Vec<_>) = shared
            .waiting
            .drain(..)
            .partition(|retired| held.contains(&retired.node.addr()));
        for retired in &dead {
            // SAFETY: the memory stays until the scheme is dropped.
            unsafe { (retired.poison)(retired.node) };
        }
        shared.waiting = stay;
        shared.dead.extend(dead);
    }
}

impl<F: Fault> Scheme for Textbook<F> {
    const ABOUT: About = About {
        hidden: true,
        ..About::new(
            F::NAME,
            Protects::Object,
            "textbook hazard pointers, dead nodes kept: for checking the checks",
            "cached: slots",
        )
    };

    type Thread<'a, const K: usize> = Slots<'a, F>;

    fn new() -> Self {
        Textbook {
            shared: Mutex::default(),
            twice: AtomicBool::new(false),
            fault: PhantomData,
        }
    }

    fn thread<const K: usize>(&self) -> Slots<'_, F> {
        let slots: Arc<[AtomicUsize]> = (0..K).map(|_| AtomicUsize::new(0)).collect();
        self.with(|shared| shared.slots.push(Arc::clone(&slots)));
        Slots {
            slots,
            scheme: self,
        }
    }

    fn flush(&self) {
        self.with(Self::pass);
    }
}

impl<F> Drop for Textbook<F> {
    fn drop(&mut self) {
        let shared = self
            .shared
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        for retired in shared.waiting.drain(..).chain(shared.dead.drain(..)) {
            // SAFETY: in the lists once each, and `&mut self` proves that nobody uses the structure.
            unsafe { (retired.free)(retired.node) };
        }
    }
}

/// A thread's slots.
#[derive(Debug)]
pub struct Slots<'a, F> {
    slots: Arc<[AtomicUsize]>,
    scheme: &'a Textbook<F>,
}

impl<F> Slots<'_, F> {
    fn clear_all(&self) {
        for slot in self.slots.iter() {
            slot.store(0, Ordering::SeqCst);
        }
    }
}

impl<F> Drop for Slots<'_, F> {
    fn drop(&mut self) {
        self.scheme.with(|shared| {
            shared
                .slots
                .retain(|slots| !Arc::ptr_eq(slots, &self.slots));
        });
    }
}

impl<'a, F: Fault> Thread for Slots<'a, F> {
    type Guard<'g>
        = Using<'g, 'a, F>
    where
        Self: 'g;

    fn pin(&mut self) -> Using<'_, 'a, F> {
        Using(self)
    }
}

/// The slots in use.
#[derive(Debug)]
pub struct Using<'g, 'a, F>(&'g Slots<'a, F>);

impl<F: Fault> Guard for Using<'_, '_, F> {
    fn protect<T>(&mut self, slot: usize, src: &AtomicPtr<T>) -> *mut T {
        let mut seen = src.load(Ordering::SeqCst);
        loop {
            // Where a real one would be interrupted now and then.
            linger();
            if F::PUBLISHES {
                // SeqCst: "Publish".
                self.0.slots[slot].store(untagged(seen).addr(), Ordering::SeqCst);
                fence(Ordering::SeqCst);
            }
            if !F::VALIDATES || !F::PUBLISHES {
                linger();
                return seen;
            }
            let now = src.load(Ordering::SeqCst);
            if now.addr() == seen.addr() {
                return now;
            }
            seen = now;
        }
    }

    fn unchanged<T>(&self, src: &AtomicPtr<T>, seen: *mut T) -> bool {
        !F::LOOKS || src.load(Ordering::SeqCst).addr() == seen.addr()
    }

    fn announce<T>(&mut self, slot: usize, node: *mut T) {
        if F::PUBLISHES && F::ANNOUNCES {
            // SeqCst: "Publish".
            self.0.slots[slot].store(untagged(node).addr(), Ordering::SeqCst);
        }
        linger();
    }

    fn clear(&mut self, slot: usize) {
        self.0.slots[slot].store(0, Ordering::SeqCst);
    }

    unsafe fn retire<T: Node>(&mut self, node: *mut T) {
        let node = node.cast();
        self.0.scheme.with(|shared| {
            if shared
                .waiting
                .iter()
                .chain(&shared.dead)
                .any(|r| r.node == node)
            {
                // Relaxed: for tests.
                self.0.scheme.twice.store(true, Ordering::Relaxed);
                return;
            }
            shared.waiting.push(Retired {
                node,
                poison: poison::<T>,
                free: free::<T>,
            });
            Textbook::<F>::pass(shared);
        });
        linger();
    }
}

impl<F> Drop for Using<'_, '_, F> {
    fn drop(&mut self) {
        self.0.clear_all();
    }
}

/// Gives others a moment; sometimes a longer one.
fn linger() {
    crate::fault::pause();
    thread_local! {
        static TURN: std::cell::Cell<u32> = const { std::cell::Cell::new(1) };
    }
    let turn = TURN
        .get()
        .wrapping_mul(1_664_525)
        .wrapping_add(1_013_904_223);
    TURN.set(turn);
    if turn >> 29 == 0 {
        std::thread::yield_now();
    }
}
