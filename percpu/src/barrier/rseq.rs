//! The rung of one-step sections: expedited `membarrier` that also restarts
//! every section in flight.
//!
//! Floor 1 (`percpu`). Finds the C library's rseq area; touches the kernel.

use super::{BarrierLost, linux};
use crate::line::MAX_LINES;
use crate::section;
use crate::sync::atomic::{Ordering, fence};

/// The field of `struct rseq` that indexes lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Index {
    /// `mm_cid`: dense, at most the number of threads that run at once.
    MmCid,
    /// `cpu_id`: the CPU's number.
    CpuId,
}

impl Index {
    /// Offset in `struct rseq`.
    fn offset(self) -> isize {
        match self {
            Index::CpuId => 4,
            Index::MmCid => 24,
        }
    }
}

/// The rseq area that the C library registers for every thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Area {
    /// Thread pointer → area.
    pub(crate) offset: isize,
    /// Bytes that the kernel fills.
    pub(crate) feature_size: usize,
}

const AT_RSEQ_FEATURE_SIZE: libc::c_ulong = 27;
const MM_CID_END: usize = 28;
/// Up to here `cpu_id` is the index: it is quicker to claim by (it says by itself
/// whether the thread is registered), stays where the CPU is, and a scan that
/// has to read so many lines is still cheap beside the barrier before it.
/// Beyond, `mm_cid` keeps the lines as few as the threads that run at once.
const FEW_CPUS: usize = 512;
const ORIGINAL_SIZE: usize = 20;
const ORIGINAL_ALLOCATED: usize = 32;

/// Finds the area, without relying on the linker knowing its symbols (musl and
/// glibc before 2.35 have none).
pub(crate) fn area() -> Result<Area, String> {
    // SAFETY: the names are NUL-terminated; dlsym may be called at any time.
    let (offset, size) = unsafe {
        (
            libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_offset".as_ptr()),
            libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_size".as_ptr()),
        )
    };
    if offset.is_null() || size.is_null() {
        return Err("the C library does not register rseq (glibc >= 2.35 does)".into());
    }
    // SAFETY: glibc documents `const ptrdiff_t __rseq_offset` and
    // `const unsigned int __rseq_size`.
    let (offset, size) = unsafe { (*offset.cast::<isize>(), *size.cast::<u32>() as usize) };
    if size == 0 {
        return Err("the C library did not register rseq (kernel without it, filtered, or glibc.pthread.rseq=0)".into());
    }
    // SAFETY: getauxval reads the process's auxiliary vector.
    let auxv = unsafe { libc::getauxval(AT_RSEQ_FEATURE_SIZE) } as usize;
    // librseq's rule: 20 and 32 say "the original layout"; how much of its 32
    // bytes the kernel fills stands in the auxiliary vector.
    let feature_size = if size == ORIGINAL_SIZE || size == ORIGINAL_ALLOCATED {
        ORIGINAL_ALLOCATED.min(if auxv == 0 { ORIGINAL_SIZE } else { auxv })
    } else {
        size
    };
    Ok(Area {
        offset,
        feature_size,
    })
}

/// Finds the area, registers for the barrier and says which field indexes.
/// Nothing is enabled yet.
pub(super) fn probe(wanted: Option<&str>) -> Result<(Area, Index), String> {
    if !section::AVAILABLE {
        return Err("this build has no critical sections (they exist for Linux on x86-64)".into());
    }
    let area = area()?;
    let cpus = crate::topology::possible_cpus();
    if cpus > MAX_LINES {
        return Err(format!("{cpus} possible CPUs, {MAX_LINES} lines"));
    }
    if section::cpu_id_at(area.offset) < 0 {
        return Err("this thread is not registered for rseq".into());
    }
    linux::register(
        linux::PRIVATE_EXPEDITED_RSEQ,
        linux::REGISTER_PRIVATE_EXPEDITED_RSEQ,
        "membarrier(PRIVATE_EXPEDITED_RSEQ)",
    )?;
    let index = match wanted {
        _ if area.feature_size < MM_CID_END => Index::CpuId,
        Some("cpu_id") => Index::CpuId,
        Some("mm_cid") => Index::MmCid,
        _ if cpus <= FEW_CPUS => Index::CpuId,
        _ => Index::MmCid,
    };
    Ok((area, index))
}

/// Switches the sections on.
pub(super) fn enable(area: Area, index: Index) {
    pin_image();
    section::enable(area.offset, area.offset + index.offset());
}

/// Keeps the image that holds the section descriptors mapped: the kernel may
/// read the descriptor of a finished section until the thread is next
/// scheduled, also after a `dlclose`.
fn pin_image() {
    let mut info = core::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    let here = pin_image as fn() as *const libc::c_void;
    // SAFETY: `here` is an address of this image; on success dladdr fills
    // `info` with a path that lives as long as the image. Reopening with
    // NODELETE and NOLOAD changes nothing but the image's lifetime; for the
    // main program it fails, harmlessly.
    unsafe {
        if libc::dladdr(here, info.as_mut_ptr()) != 0 {
            let name = info.assume_init().dli_fname;
            if !name.is_null() {
                libc::dlopen(
                    name,
                    libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE,
                );
            }
        }
    }
}

/// A full barrier on every running thread of the process, and a restart of
/// every section in flight.
pub(super) fn heavy() -> Result<(), BarrierLost> {
    // SeqCst: as on the membarrier rung.
    fence(Ordering::SeqCst);
    linux::expedited(
        linux::PRIVATE_EXPEDITED_RSEQ,
        linux::REGISTER_PRIVATE_EXPEDITED_RSEQ,
    )?;
    // SeqCst: keeps the scan behind the call.
    fence(Ordering::SeqCst);
    Ok(())
}
