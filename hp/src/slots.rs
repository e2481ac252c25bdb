//! All hazard slots of the process: the CPUs' lines and the overflow records.
//!
//! Floor 2 (`hp`), raw layer. Owns protecting, holding and scanning; knows no
//! types, no domains and no deleters.
//!
//! # Reader
//!
//! One restartable section: *own line's slot 0 is free, load the source, store
//! it in the slot*. If slot 0 is taken, the same with the first free slot of
//! the line; if all are, in an overflow slot (see [`crate::overflow`]). On the
//! lower rungs always in an overflow slot, by publish and recheck.
//!
//! A line stays full for a while when its slots belong to threads that wait
//! for the processor. Whoever finds it full goes straight to its overflow
//! record the next few times.
//!
//! # Scanner
//!
//! Unlink – heavy barrier – look at every slot: **first the CPUs' lines, then
//! the overflow records**. Protection moves from a line to a record
//! (`move_out`, clones), never back, and the new place is stored before the
//! old one is cleared; so a scan that has passed the old place while it was
//! already clear finds the new one. The move's order is carried by the old
//! slot: stored new, then *Clear* (Release) – *Clear* read (Acquire), then the
//! new place read.
//!
//! # Why nothing is missed
//!
//! A section that committed before the heavy barrier is in a slot that the
//! scanner sees. One that did not starts again and sees the unlinking. The
//! line it is in was announced before its first slot was opened
//! (`percpu::line`).

#[cfg(not(loom))]
use crate::overflow::{self, Own};
use crate::overflow::{Overflow, Thread};
use crate::slot::{FREE, SLOTS_PER_CPU, SlotRef, is_address};
use core::ptr::NonNull;
#[cfg(not(loom))]
use percpu::barrier::decided;
use percpu::barrier::{Rung, rung};
use percpu::line::{Lines, MAX_LINES};
use percpu::section::{self, Miss};
use percpu::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// Interrupted sections before a claim goes to an overflow slot.
const RESTARTS: usize = 64;

/// No bit is a tag.
pub(crate) const ALL_BITS: usize = usize::MAX;

/// The process-wide slots.
#[cfg(not(loom))]
pub(crate) static SLOTS: Slots = Slots::new();

/// The slots of the execution.
#[cfg(loom)]
pub(crate) static SLOTS: Modelled = Modelled;

#[cfg(loom)]
#[derive(Debug)]
pub(crate) struct Modelled;

#[cfg(loom)]
impl core::ops::Deref for Modelled {
    type Target = Slots;

    fn deref(&self) -> &Slots {
        &crate::verify::statics().slots
    }
}

#[derive(Debug)]
pub(crate) struct Slots {
    lines: Lines,
    overflow: Overflow,
}

impl Slots {
    #[cfg(not(loom))]
    pub(crate) const fn new() -> Self {
        Self {
            lines: Lines::new(),
            overflow: Overflow::new(),
        }
    }

    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        Self {
            lines: Lines::new(),
            overflow: Overflow::new(),
        }
    }

    /// For models: what they prepare or use by itself.
    #[cfg(loom)]
    pub(crate) fn parts(&self) -> (&Lines, &Overflow) {
        (&self.lines, &self.overflow)
    }

    /// Protects what `src` points to.
    ///
    /// # Progress
    ///
    /// Wait-free where sections run, lock-free elsewhere.
    #[cfg(not(loom))]
    #[inline(always)]
    pub(crate) fn protect(&'static self, src: &AtomicPtr<()>) -> Option<(SlotRef, NonNull<()>)> {
        // SAFETY: `first` of a table that lives for ever (with the two lines in
        // front that threads without registration are led to); its slots are
        // claimed by sections only, compare-exchange only opens them.
        let claimed = unsafe { section::claim_and_load(self.lines.first(), src) };
        if let Some(word) = NonNull::new(claimed.slot.cast_mut()) {
            // SAFETY: a section claims nothing for null, and words are aligned
            // (which lets the compiler drop the release's test of the kind).
            let value = unsafe {
                core::hint::assert_unchecked(word.addr().get() & 1 == 0);
                NonNull::new_unchecked(claimed.value)
            };
            Some((SlotRef::percpu(word), value))
        } else if claimed.value.is_null() {
            None
        } else {
            self.protect_cold(src)
        }
    }

    /// [`protect`](Self::protect) when the CPU's first slot could not be had.
    /// No calls but in tail position, so that the common ways need no frame.
    /// ("Cold" keeps the caller's straight line for the first slot.)
    #[cfg(not(loom))]
    #[cold]
    #[inline(never)]
    fn protect_cold(&'static self, src: &AtomicPtr<()>) -> Option<(SlotRef, NonNull<()>)> {
        if decided() != Some(Rung::Rseq) {
            return self.protect_portable(src);
        }
        crate::thread::with(|thread| {
            if !thread.skips_the_line() {
                // SAFETY: as in `protect`.
                let claimed = unsafe { section::claim_rest_and_load(self.lines.first(), src) };
                if let Some(word) = NonNull::new(claimed.slot.cast_mut()) {
                    // SAFETY: a section claims nothing for null.
                    let value = unsafe { NonNull::new_unchecked(claimed.value) };
                    return Some((SlotRef::percpu(word), value));
                }
                if claimed.value.is_null() {
                    return None;
                }
                if claimed.value != section::ALL_TAKEN {
                    return self.protect_colder(src);
                }
                thread.found_the_line_full();
            }
            match overflow::protect_own(thread, src, Rung::Rseq) {
                Own::Protected(slot, value) => Some((slot, value)),
                Own::Null => None,
                Own::NotNow => self.protect_colder(src),
            }
        })
    }

    /// [`protect`](Self::protect) where sections do not run.
    #[cfg(not(loom))]
    #[inline(never)]
    fn protect_portable(&'static self, src: &AtomicPtr<()>) -> Option<(SlotRef, NonNull<()>)> {
        crate::thread::with(|thread| {
            let own = match decided() {
                Some(Rung::Membarrier) => overflow::protect_own(thread, src, Rung::Membarrier),
                Some(Rung::Fence) => overflow::protect_own(thread, src, Rung::Fence),
                _ => Own::NotNow,
            };
            match own {
                Own::Protected(slot, value) => Some((slot, value)),
                Own::Null => None,
                Own::NotNow => self.protect_colder(src),
            }
        })
    }

    /// [`protect`](Self::protect) the first time on a CPU or in a thread,
    /// while the rung is undecided, after an interruption, and when the
    /// thread's record is full.
    #[cfg(not(loom))]
    #[cold]
    #[inline(never)]
    fn protect_colder(&'static self, src: &AtomicPtr<()>) -> Option<(SlotRef, NonNull<()>)> {
        crate::thread::with(|thread| self.protect_with(thread, src, ALL_BITS))
    }

    /// [`protect`](Self::protect) with an explicit thread handle.
    pub(crate) fn protect_with(
        &self,
        thread: &Thread,
        src: &AtomicPtr<()>,
        mask: usize,
    ) -> Option<(SlotRef, NonNull<()>)> {
        if rung() == Rung::Rseq {
            for _ in 0..RESTARTS {
                // SAFETY: as in `protect`.
                let answer = unsafe {
                    section::search_and_load(
                        self.lines.first(),
                        MAX_LINES,
                        0,
                        SLOTS_PER_CPU,
                        src,
                        mask,
                    )
                };
                match answer {
                    Ok((word, value)) => {
                        let word = NonNull::new(word.cast_mut())?;
                        return Some((SlotRef::percpu(word), NonNull::new(value)?));
                    }
                    Err(Miss::Null) => return None,
                    Err(Miss::Restarted) => {}
                    Err(Miss::Inactive(index)) => {
                        self.lines.activate(index, SLOTS_PER_CPU, FREE);
                    }
                    Err(Miss::Busy | Miss::Unregistered | Miss::Mismatch) => break,
                }
            }
        }
        self.overflow.protect(thread, src, mask)
    }

    /// Takes an overflow slot for an address that is already protected, or
    /// for nothing yet (`RESERVED`).
    pub(crate) fn hold(&self, thread: &Thread, word: usize) -> SlotRef {
        self.overflow.hold(thread, word)
    }

    /// Another reference to the protection that `slot` gives.
    pub(crate) fn share(&self, thread: &Thread, slot: &SlotRef) -> SlotRef {
        if slot.is_overflow() {
            let (record, index) = slot.place();
            // SAFETY: records are never freed.
            unsafe { record.as_ref() }.retain(index);
            SlotRef::overflow(record, index)
        } else {
            // Relaxed: the slot is the caller's, nobody else stores to it.
            self.hold(thread, slot.word().load(Ordering::Relaxed))
        }
    }

    /// Moves the protection out of the CPU's line, if it is there: new place
    /// first, then the old one is cleared.
    pub(crate) fn move_out(&self, thread: &Thread, slot: &mut SlotRef) {
        if !slot.is_overflow() {
            // Relaxed: as in `share`.
            let new = self.hold(thread, slot.word().load(Ordering::Relaxed));
            core::mem::replace(slot, new).release();
        }
    }

    /// Calls `f` with each slot that holds an address, lines before records.
    /// The caller has issued its heavy barrier.
    pub(crate) fn for_each_protected(&self, mut f: impl FnMut(Place, &AtomicUsize, usize)) {
        self.lines.for_each_active(|cpu, line| {
            for (index, slot) in line.words()[..SLOTS_PER_CPU].iter().enumerate() {
                // Acquire: pairs with the commit of a claim and with "Clear".
                let word = slot.load(Ordering::Acquire);
                if is_address(word) {
                    f(
                        Place {
                            cpu: Some(cpu),
                            index,
                        },
                        slot,
                        word,
                    );
                }
            }
        });
        let mut index = 0;
        self.overflow.for_each_protected(|slot, word| {
            f(Place { cpu: None, index }, slot, word);
            index += 1;
        });
    }

    /// Whether some slot holds `address`.
    pub(crate) fn is_protected(&self, address: usize) -> bool {
        let mut found = false;
        self.for_each_protected(|_, _, word| found |= word == address);
        found
    }

    /// Frees each slot whose address `keep` does not want. For a process with
    /// one thread.
    #[cfg(not(loom))]
    pub(crate) fn clear_except(&self, keep: impl Fn(usize) -> bool) {
        self.for_each_protected(|_, slot, address| {
            if !keep(address) {
                // Relaxed: there is one thread.
                slot.store(FREE, Ordering::Relaxed);
            }
        });
        self.overflow.forget_clones();
    }

    pub(crate) fn overflow_acquires(&self) -> u64 {
        self.overflow.acquires()
    }
}

/// Where a protection was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The line (CPU number or concurrency id), or `None` for an overflow slot.
    pub cpu: Option<usize>,
    /// The slot in the line, or a running number of the overflow slots found.
    pub index: usize,
}
