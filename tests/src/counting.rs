//! An allocator that counts what each thread asks for.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static CALLS: Cell<usize> = const { Cell::new(0) };
    static BYTES: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator, with a count of the calling thread's requests.
/// Meant for `#[global_allocator]`.
#[derive(Debug)]
pub struct Counting;

// SAFETY: all memory is the system allocator's. The thread-locals need neither
// initialisation nor a destructor, so they may be used at any time.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.set(CALLS.get() + 1);
        BYTES.set(BYTES.get() + layout.size());
        // SAFETY: the caller's contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's contract.
        unsafe { System.dealloc(block, layout) }
    }
}

/// Requests of the calling thread until now, and their bytes.
#[must_use]
pub fn requests() -> (usize, usize) {
    (CALLS.get(), BYTES.get())
}
