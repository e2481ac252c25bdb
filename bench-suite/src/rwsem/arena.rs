//! Floor 3, bench-suite. Owns memory whose pages fault once each: a range for each reader, in a random order of its own.
//! May map, advise and unmap memory.
//!
//! Nothing is touched when the memory is mapped, and huge pages are refused, so that the first access to each page is
//! one page fault. A reader that has touched all pages of its range gives them back (`MADV_DONTNEED`) and begins anew;
//! that is outside the lock, and the time of it is recorded by itself.

use std::io;
use std::ptr;

/// Pages of one range.
pub(super) const PAGES: usize = 4096;

/// The memory.
#[derive(Debug)]
pub(super) struct Arena {
    base: *mut u8,
    bytes: usize,
    page: usize,
}

// SAFETY: memory, written by whoever has the range.
unsafe impl Send for Arena {}
// SAFETY: as above.
unsafe impl Sync for Arena {}

/// The size of a page.
pub(super) fn page_size() -> usize {
    // SAFETY: asks for a number.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

impl Arena {
    /// Maps `ranges` ranges.
    pub(super) fn new(ranges: usize) -> io::Result<Self> {
        let page = page_size();
        let bytes = ranges.max(1) * PAGES * page;
        // SAFETY: a new mapping concerns no other memory.
        let base = unsafe {
            libc::mmap(
                ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: its own mapping. A kernel without huge pages refuses: as good.
        unsafe { libc::madvise(base, bytes, libc::MADV_NOHUGEPAGE) };
        Ok(Arena {
            base: base.cast(),
            bytes,
            page,
        })
    }

    /// Where it begins.
    pub(super) fn start(&self) -> usize {
        self.base.addr()
    }

    /// How long it is.
    pub(super) fn len(&self) -> usize {
        self.bytes
    }

    /// The pages of range `n`, in an order that `seed` decides.
    pub(super) fn range(&self, n: usize, seed: u64) -> Range<'_> {
        assert!((n + 1) * PAGES * self.page <= self.bytes);
        Range {
            arena: self,
            first: n * PAGES,
            at: seed as usize % PAGES,
            left: PAGES,
        }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: its own mapping; ranges borrow it.
        unsafe { libc::munmap(self.base.cast(), self.bytes) };
    }
}

/// One reader's pages.
#[derive(Debug)]
pub(super) struct Range<'a> {
    arena: &'a Arena,
    first: usize,
    at: usize,
    /// Pages that have not been touched since the last [`renew`](Self::renew).
    left: usize,
}

impl Range<'_> {
    /// The distance of the next page from the start of the arena; none if all have been touched.
    #[inline]
    pub(super) fn next(&mut self) -> Option<usize> {
        self.left = self.left.checked_sub(1)?;
        let page = self.at;
        // A full period: every page once in `PAGES` steps (the factor is 1 modulo 4, the addend odd, Hull and Dobell).
        self.at = (self.at.wrapping_mul(1_664_525) + 1_013_904_223) % PAGES;
        Some((self.first + page) * self.arena.page)
    }

    /// Writes to the page at `distance`, which is one of [`next`](Self::next), from `base`, the start of the arena as
    /// the description has it.
    #[inline]
    pub(super) fn touch(&self, base: usize, distance: usize) {
        debug_assert_eq!(base, self.arena.start());
        let byte = self.arena.base.with_addr(base).wrapping_add(distance);
        // SAFETY: in the mapping; the page belongs to this range, and one thread has that.
        unsafe { byte.write_volatile(1) };
    }

    /// Gives all pages back, so that they fault again.
    pub(super) fn renew(&mut self) -> io::Result<()> {
        let page = self.arena.page;
        let start = self.arena.base.wrapping_add(self.first * page);
        // SAFETY: its own part of the mapping.
        if unsafe { libc::madvise(start.cast(), PAGES * page, libc::MADV_DONTNEED) } != 0 {
            return Err(io::Error::last_os_error());
        }
        self.left = PAGES;
        Ok(())
    }
}

/// Page faults of the calling thread that needed no file, so far.
pub(super) fn faults() -> u64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: writes one `rusage`, and zeroed is a valid one should it fail.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init()
    };
    usage.ru_minflt.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Report 104 (will-it-scale, haphazard): the loop measured something else. Here each touch is a fault, as the
    /// kernel counts them, and the second touch of a page is none.
    #[test]
    fn report_104_every_touch_is_a_page_fault() {
        let arena = Arena::new(2).unwrap();
        let mut range = arena.range(1, 77);
        let mut pages = vec![false; PAGES];
        for round in 0..2 {
            let before = faults();
            while let Some(distance) = range.next() {
                range.touch(arena.start(), distance);
                pages[distance / page_size() - PAGES] ^= true;
            }
            let new = faults() - before;
            assert!(
                (PAGES as u64..PAGES as u64 + 64).contains(&new),
                "{new} faults"
            );
            // All once in each round.
            assert!(pages.iter().all(|&odd| odd == (round == 0)));
            let before = faults();
            range.touch(arena.start(), PAGES * page_size());
            assert!(faults() - before <= 1);
            range.renew().unwrap();
        }
    }

    #[test]
    fn the_seed_decides_where_it_begins() {
        let arena = Arena::new(1).unwrap();
        let first = |seed| arena.range(0, seed).next().unwrap();
        assert_ne!(first(1), first(2));
        assert_eq!(first(5), first(5 + PAGES as u64));
    }
}
