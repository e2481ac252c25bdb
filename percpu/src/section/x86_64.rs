//! Sections as restartable sequences in inline assembly.
//!
//! Floor 1 (`percpu`). Owns `AREA`, the place of the rseq area relative to the
//! thread pointer. Writes nothing of the kernel's but `rseq_cs`.
//!
//! # Shape of every section
//!
//! ```text
//! arm:    area.rseq_cs = &descriptor
//! start:  if area.cpu_id < 0 goto unregistered     (a thread that is not registered never stores)
//!         line = lines + area.index * 128          (if area.index < count, else unregistered)
//!         … tests and loads; any miss jumps out …
//!         store                                    (the commit, last instruction of the range)
//! end:
//! abort:  (behind the signature) report Restarted
//! ```
//!
//! The inlined claim by `cpu_id` tests less: a thread that is not registered has
//! `cpu_id` -1 or -2, which leads to one of two lines in front of the table that
//! are never free; and neither inlined claim compares the index with the
//! table's end, because the table has a line for every CPU that Linux on x86-64
//! supports (8192), and the rung is not chosen on a machine with more.
//!
//! `rseq_cs` stays armed after a section; the kernel clears it when it next
//! looks and finds the instruction pointer outside. The descriptor must
//! therefore stay mapped: `rung` pins the image that holds this code.
//!
//! ABI facts: `struct rseq` has `cpu_id` at byte 4, `rseq_cs` at 8, `mm_cid`
//! at 24; the signature before an abort handler on x86 is 0x53053053, encoded
//! as the operand of an undefined instruction (Linux uapi `rseq.h`, glibc
//! `sys/rseq.h`).

use super::{Claimed, MISSED, Miss, NO_INDEX, NOT_COUNTED};
use crate::line::{Line, STRIDE};
use crate::sync::atomic::{AtomicIsize, AtomicPtr, AtomicUsize, Ordering};
use core::arch::asm;

pub(super) const AVAILABLE: bool = true;

/// Where the rseq area lies. Zero until the rseq rung is chosen, so that one
/// test sends every section of a process without it to the portable path.
struct Area {
    /// Thread pointer → `struct rseq`, if lines are indexed by `cpu_id`: the
    /// inlined claim then needs one field less.
    by_cpu: AtomicIsize,
    /// Thread pointer → `struct rseq`.
    offset: AtomicIsize,
    /// Thread pointer → the field that indexes lines (`mm_cid` or `cpu_id`).
    index: AtomicIsize,
}

static AREA: Area = Area {
    by_cpu: AtomicIsize::new(0),
    offset: AtomicIsize::new(0),
    index: AtomicIsize::new(0),
};

const CPU_ID: isize = 4;

/// Switches sections on, for the whole process and for ever.
pub(crate) fn enable(offset: isize, index: isize) {
    // Relaxed: published by the Release store below.
    AREA.index.store(index, Ordering::Relaxed);
    // Release: pairs with the Acquire load in `area`.
    AREA.offset.store(offset, Ordering::Release);
    if index == offset + CPU_ID {
        // Release: pairs with the Acquire load in `claim_and_load`.
        AREA.by_cpu.store(offset, Ordering::Release);
    }
}

/// The two offsets, or `None` while sections are off.
#[inline(always)]
fn area() -> Option<(isize, isize)> {
    // Acquire: pairs with the Release store in `enable`; a reader that sees
    // the area sees which field indexes.
    let offset = AREA.offset.load(Ordering::Acquire);
    if offset == 0 {
        return None;
    }
    // Relaxed: written once, before `offset`.
    Some((offset, AREA.index.load(Ordering::Relaxed)))
}

/// Descriptor of the section between labels 22 and 33 with abort handler 44,
/// and the store that arms it through the scratch register `$scratch`.
macro_rules! arm_only {
    ($scratch:literal) => {
        concat!(
            ".pushsection __rseq_cs, \"aw\"\n",
            ".balign 32\n",
            "77:\n",
            ".long 0, 0\n",
            ".quad 22f, (33f - 22f), 44f\n",
            ".popsection\n",
            "lea {",
            $scratch,
            "}, [rip + 77b]\n",
            "mov qword ptr fs:[{off} + 8], {",
            $scratch,
            "}\n",
            "22:\n",
        )
    };
}

/// [`arm_only`], and the test whether the thread is registered.
macro_rules! arm {
    ($scratch:literal) => {
        concat!(
            arm_only!($scratch),
            "cmp dword ptr fs:[{off} + 4], 0\n",
            "jl 66f\n",
        )
    };
}

/// Line of the running CPU into `{$line}`; out of range goes to label 66.
macro_rules! own_line {
    ($line:literal, $count:literal) => {
        concat!(
            "mov {",
            $line,
            ":e}, dword ptr fs:[{idx}]\n",
            "cmp {",
            $line,
            "}, ",
            $count,
            "\n",
            "jae 66f\n",
            "shl {",
            $line,
            "}, 7\n",
            "add {",
            $line,
            "}, {lines}\n",
        )
    };
}

/// Opens the cold part, which begins with the abort handler.
macro_rules! cold {
    () => {
        concat!(
            ".pushsection .text.percpu_rseq_cold, \"ax\"\n",
            ".byte 0x0f, 0xb9, 0x3d\n",
            ".long 0x53053053\n",
            "44:\n",
        )
    };
}

const _: () = assert!(STRIDE == 1 << 7, "the shift in `own_line`");

const NULL: u32 = 1;
const BUSY: u32 = 2;
const INACTIVE: u32 = 3;
// 4: unregistered, or an index outside the table.
const RESTARTED: u32 = 5;
const MISMATCH: u32 = 6;

#[cold]
fn miss(status: u32, lines: *const Line, slot: *const AtomicUsize) -> Miss {
    match status {
        NULL => Miss::Null,
        BUSY => Miss::Busy,
        INACTIVE => Miss::Inactive((slot.addr() - lines.addr()) / STRIDE),
        RESTARTED => Miss::Restarted,
        MISMATCH => Miss::Mismatch,
        _ => Miss::Unregistered,
    }
}

#[inline(always)]
pub(super) unsafe fn claim_and_load(lines: *const Line, src: &AtomicPtr<()>) -> Claimed {
    // Acquire: pairs with the Release store in `enable`.
    let off = AREA.by_cpu.load(Ordering::Acquire);
    if off == 0 {
        // SAFETY: the caller's obligations are the same.
        return unsafe { claim_and_load_by_index(lines, src) };
    }
    let slot: *const AtomicUsize;
    let value: *mut ();
    // SAFETY: `off` is the rseq area of this thread. Its `cpu_id` is below the
    // number of possible CPUs, which `enable`'s caller has checked against
    // MAX_LINES, or it is -1 or -2 in a thread that is not registered: the
    // caller's table has two lines before the first for those, which are never
    // FREE, so that such a thread never stores. Only a FREE word of the own
    // CPU's line is stored to, and the kernel restarts the section before
    // another thread can run on this CPU.
    unsafe {
        asm!(
            arm_only!("slot"),
            "movsxd {slot}, dword ptr fs:[{off} + 4]",
            "shl {slot}, 7",
            "add {slot}, {lines}",
            "cmp qword ptr [{slot}], -1",
            "jne 66f",
            "mov {value}, qword ptr [{src}]",
            "test {value}, {value}",
            "jz 55f",
            "mov qword ptr [{slot}], {value}",
            "33:",
            cold!(),
            "66:",
            "mov {value:e}, 1",
            "55:",
            "xor {slot:e}, {slot:e}",
            "jmp 33b",
            ".popsection",
            off = in(reg) off,
            lines = in(reg) lines,
            src = in(reg) src.as_ptr(),
            slot = out(reg) slot,
            value = out(reg) value,
            options(nostack),
        );
    }
    Claimed { slot, value }
}

#[inline(always)]
unsafe fn claim_and_load_by_index(lines: *const Line, src: &AtomicPtr<()>) -> Claimed {
    let Some((off, idx)) = area() else {
        return Claimed {
            slot: core::ptr::null(),
            value: core::ptr::without_provenance_mut(1),
        };
    };
    let slot: *const AtomicUsize;
    let value: *mut ();
    // SAFETY: `off` is the rseq area of this thread when `cpu_id` is not
    // negative, which the section tests before it relies on it. The index of a
    // registered thread is below the number of possible CPUs, which `enable`'s
    // caller has checked against MAX_LINES, so `slot` is in the caller's table.
    // Only a FREE word of the own CPU's line is stored to, and the kernel
    // restarts the section before another thread can run on this CPU (or use
    // its mm_cid).
    unsafe {
        asm!(
            arm!("slot"),
            "mov {slot:e}, dword ptr fs:[{idx}]",
            "shl {slot}, 7",
            "add {slot}, {lines}",
            "cmp qword ptr [{slot}], -1",
            "jne 66f",
            "mov {value}, qword ptr [{src}]",
            "test {value}, {value}",
            "jz 55f",
            "mov qword ptr [{slot}], {value}",
            "33:",
            cold!(),
            "66:",
            "mov {value:e}, 1",
            "55:",
            "xor {slot:e}, {slot:e}",
            "jmp 33b",
            ".popsection",
            off = in(reg) off,
            idx = in(reg) idx,
            lines = in(reg) lines,
            src = in(reg) src.as_ptr(),
            slot = out(reg) slot,
            value = out(reg) value,
            options(nostack),
        );
    }
    Claimed { slot, value }
}

#[inline(always)]
pub(super) unsafe fn claim_rest_and_load(lines: *const Line, src: &AtomicPtr<()>) -> Claimed {
    let Some((off, idx)) = area() else {
        return Claimed {
            slot: core::ptr::null(),
            value: core::ptr::without_provenance_mut(1),
        };
    };
    let slot: *const AtomicUsize;
    let value: *mut ();
    // SAFETY: as in `claim_and_load`; words 1 to 7 are inside the line.
    unsafe {
        asm!(
            arm!("slot"),
            "mov {slot:e}, dword ptr fs:[{idx}]",
            "shl {slot}, 7",
            "add {slot}, {lines}",
            "cmp qword ptr [{slot}], 0",
            "je 66f",
            "lea {value}, [{slot} + 64]",
            "88:",
            "add {slot}, 8",
            "cmp {slot}, {value}",
            "je 57f",
            "cmp qword ptr [{slot}], -1",
            "jne 88b",
            "mov {value}, qword ptr [{src}]",
            "test {value}, {value}",
            "jz 55f",
            "mov qword ptr [{slot}], {value}",
            "33:",
            cold!(),
            "66:",
            "mov {value:e}, 1",
            "55:",
            "xor {slot:e}, {slot:e}",
            "jmp 33b",
            "57:",
            "mov {value:e}, 2",
            "jmp 55b",
            ".popsection",
            off = in(reg) off,
            idx = in(reg) idx,
            lines = in(reg) lines,
            src = in(reg) src.as_ptr(),
            slot = out(reg) slot,
            value = out(reg) value,
            options(nostack),
        );
    }
    Claimed { slot, value }
}

#[inline]
pub(super) unsafe fn search_and_load(
    lines: *const Line,
    count: usize,
    first: usize,
    end: usize,
    src: &AtomicPtr<()>,
    mask: usize,
) -> Result<(*const AtomicUsize, *mut ()), Miss> {
    let Some((off, idx)) = area() else {
        return Err(Miss::Unregistered);
    };
    let slot: *const AtomicUsize;
    let value: *mut ();
    let status: u32;
    // SAFETY: as in `claim_and_load`; `first..end` lies inside a line.
    unsafe {
        asm!(
            arm!("slot"),
            own_line!("slot", "{count}"),
            "lea {last}, [{slot} + {end} * 8]",
            "lea {slot}, [{slot} + {first} * 8]",
            "cmp qword ptr [{slot}], 0",
            "je 59f",
            "88:",
            "cmp qword ptr [{slot}], -1",
            "je 99f",
            "add {slot}, 8",
            "cmp {slot}, {last}",
            "jne 88b",
            "mov {status:e}, 2",
            "jmp 34f",
            "99:",
            "mov {value}, qword ptr [{src}]",
            "mov {last}, {value}",
            "and {last}, {mask}",
            "jz 55f",
            "mov qword ptr [{slot}], {last}",
            "33:",
            "xor {status:e}, {status:e}",
            "34:",
            cold!(),
            "mov {status:e}, 5",
            "jmp 34b",
            "55:",
            "mov {status:e}, 1",
            "jmp 34b",
            "59:",
            "mov {status:e}, 3",
            "jmp 34b",
            "66:",
            "mov {status:e}, 4",
            "jmp 34b",
            ".popsection",
            off = in(reg) off,
            idx = in(reg) idx,
            lines = in(reg) lines,
            count = in(reg) count,
            first = in(reg) first,
            end = in(reg) end,
            src = in(reg) src.as_ptr(),
            mask = in(reg) mask,
            slot = out(reg) slot,
            value = out(reg) value,
            last = out(reg) _,
            status = out(reg) status,
            options(nostack),
        );
    }
    if status == 0 {
        Ok((slot, value))
    } else {
        Err(miss(status, lines, slot))
    }
}

#[inline(always)]
pub(super) unsafe fn load_into(src: &AtomicPtr<()>, slot: &AtomicUsize) -> *mut () {
    let Some((off, _)) = area() else {
        return MISSED;
    };
    let value: *mut ();
    // SAFETY: as in `claim_and_load`; the only word stored to is `slot`, which
    // the caller owns.
    unsafe {
        asm!(
            arm!("value"),
            "mov {value}, qword ptr [{src}]",
            "test {value}, {value}",
            "jz 34f",
            "mov qword ptr [{slot}], {value}",
            "33:",
            "34:",
            cold!(),
            "66:",
            "mov {value}, -1",
            "jmp 34b",
            ".popsection",
            off = in(reg) off,
            src = in(reg) src.as_ptr(),
            slot = in(reg) slot.as_ptr(),
            value = out(reg) value,
            options(nostack),
        );
    }
    value
}

#[inline]
pub(super) unsafe fn load_into_masked(
    src: &AtomicPtr<()>,
    slot: &AtomicUsize,
    mask: usize,
) -> *mut () {
    let Some((off, _)) = area() else {
        return MISSED;
    };
    let value: *mut ();
    // SAFETY: as in `load_into`.
    unsafe {
        asm!(
            arm!("value"),
            "mov {value}, qword ptr [{src}]",
            "mov {masked}, {value}",
            "and {masked}, {mask}",
            "jz 34f",
            "mov qword ptr [{slot}], {masked}",
            "33:",
            "34:",
            cold!(),
            "66:",
            "mov {value}, -1",
            "jmp 34b",
            ".popsection",
            off = in(reg) off,
            src = in(reg) src.as_ptr(),
            slot = in(reg) slot.as_ptr(),
            mask = in(reg) mask,
            value = out(reg) value,
            masked = out(reg) _,
            options(nostack),
        );
    }
    value
}

#[inline]
pub(super) unsafe fn claim(
    lines: *const Line,
    count: usize,
    first: usize,
    end: usize,
    value: usize,
) -> Result<*const AtomicUsize, Miss> {
    let Some((off, idx)) = area() else {
        return Err(Miss::Unregistered);
    };
    let slot: *const AtomicUsize;
    let status: u32;
    // SAFETY: as in `search_and_load`.
    unsafe {
        asm!(
            arm!("slot"),
            own_line!("slot", "{count}"),
            "lea {last}, [{slot} + {end} * 8]",
            "lea {slot}, [{slot} + {first} * 8]",
            "cmp qword ptr [{slot}], 0",
            "je 59f",
            "88:",
            "cmp qword ptr [{slot}], -1",
            "je 99f",
            "add {slot}, 8",
            "cmp {slot}, {last}",
            "jne 88b",
            "mov {status:e}, 2",
            "jmp 34f",
            "99:",
            "mov qword ptr [{slot}], {value}",
            "33:",
            "xor {status:e}, {status:e}",
            "34:",
            cold!(),
            "mov {status:e}, 5",
            "jmp 34b",
            "59:",
            "mov {status:e}, 3",
            "jmp 34b",
            "66:",
            "mov {status:e}, 4",
            "jmp 34b",
            ".popsection",
            off = in(reg) off,
            idx = in(reg) idx,
            lines = in(reg) lines,
            count = in(reg) count,
            first = in(reg) first,
            end = in(reg) end,
            value = in(reg) value,
            slot = out(reg) slot,
            last = out(reg) _,
            status = out(reg) status,
            options(nostack),
        );
    }
    if status == 0 {
        Ok(slot)
    } else {
        Err(miss(status, lines, slot))
    }
}

#[inline(always)]
pub(super) unsafe fn load_and_add(lines: *const Line, src: &AtomicUsize) -> usize {
    // Acquire: pairs with the Release store in `enable`.
    let off = AREA.by_cpu.load(Ordering::Acquire);
    if off == 0 {
        // SAFETY: the caller's obligations are the same.
        return unsafe { load_and_add_by_index(lines, src) };
    }
    let word: usize;
    // SAFETY: as in `claim_and_load`: the line is the own CPU's, or one of the
    // two in front, whose words are never open; only an open word is changed.
    unsafe {
        asm!(
            arm_only!("line"),
            "movsxd {line}, dword ptr fs:[{off} + 4]",
            "shl {line}, 7",
            "add {line}, {lines}",
            "mov {word}, qword ptr [{src}]",
            "lea {line}, [{line} + {word} * 8]",
            "mov {count}, qword ptr [{line}]",
            "test {count}, {count}",
            "jz 66f",
            "inc {count}",
            "mov qword ptr [{line}], {count}",
            "33:",
            cold!(),
            "66:",
            "mov {word}, -1",
            "jmp 33b",
            ".popsection",
            off = in(reg) off,
            lines = in(reg) lines,
            src = in(reg) src.as_ptr(),
            line = out(reg) _,
            count = out(reg) _,
            word = out(reg) word,
            options(nostack),
        );
    }
    word
}

#[inline(never)]
unsafe fn load_and_add_by_index(lines: *const Line, src: &AtomicUsize) -> usize {
    let Some((off, idx)) = area() else {
        return NOT_COUNTED;
    };
    let word: usize;
    // SAFETY: as in `claim_and_load_by_index`; only an open word is changed.
    unsafe {
        asm!(
            arm!("line"),
            "mov {line:e}, dword ptr fs:[{idx}]",
            "shl {line}, 7",
            "add {line}, {lines}",
            "mov {word}, qword ptr [{src}]",
            "lea {line}, [{line} + {word} * 8]",
            "mov {count}, qword ptr [{line}]",
            "test {count}, {count}",
            "jz 66f",
            "inc {count}",
            "mov qword ptr [{line}], {count}",
            "33:",
            cold!(),
            "66:",
            "mov {word}, -1",
            "jmp 33b",
            ".popsection",
            off = in(reg) off,
            idx = in(reg) idx,
            lines = in(reg) lines,
            src = in(reg) src.as_ptr(),
            line = out(reg) _,
            count = out(reg) _,
            word = out(reg) word,
            options(nostack),
        );
    }
    word
}

#[inline(always)]
pub(super) unsafe fn add(lines: *const Line, word: usize) -> bool {
    // Acquire: pairs with the Release store in `enable`.
    let off = AREA.by_cpu.load(Ordering::Acquire);
    if off == 0 {
        // SAFETY: the caller's obligations are the same.
        return unsafe { add_by_index(lines, word) };
    }
    let count: usize;
    // SAFETY: as in `load_and_add`; the caller vouches for `word`.
    unsafe {
        asm!(
            arm_only!("line"),
            "movsxd {line}, dword ptr fs:[{off} + 4]",
            "shl {line}, 7",
            "add {line}, {words}",
            "mov {count}, qword ptr [{line}]",
            "test {count}, {count}",
            "jz 66f",
            "inc {count}",
            "mov qword ptr [{line}], {count}",
            "33:",
            cold!(),
            "66:",
            "xor {count:e}, {count:e}",
            "jmp 33b",
            ".popsection",
            off = in(reg) off,
            words = in(reg) lines.cast::<usize>().wrapping_add(word),
            line = out(reg) _,
            count = out(reg) count,
            options(nostack),
        );
    }
    count != 0
}

#[inline(never)]
unsafe fn add_by_index(lines: *const Line, word: usize) -> bool {
    let Some((off, idx)) = area() else {
        return false;
    };
    let count: usize;
    // SAFETY: as in `load_and_add_by_index`; the caller vouches for `word`.
    unsafe {
        asm!(
            arm!("line"),
            "mov {line:e}, dword ptr fs:[{idx}]",
            "shl {line}, 7",
            "add {line}, {words}",
            "mov {count}, qword ptr [{line}]",
            "test {count}, {count}",
            "jz 66f",
            "inc {count}",
            "mov qword ptr [{line}], {count}",
            "33:",
            cold!(),
            "66:",
            "xor {count:e}, {count:e}",
            "jmp 33b",
            ".popsection",
            off = in(reg) off,
            idx = in(reg) idx,
            words = in(reg) lines.cast::<usize>().wrapping_add(word),
            line = out(reg) _,
            count = out(reg) count,
            options(nostack),
        );
    }
    count != 0
}

#[inline]
pub(super) unsafe fn check_and_add(
    flag: &AtomicUsize,
    expected: usize,
    lines: *const Line,
    count: usize,
    word: usize,
    n: usize,
) -> Result<(), Miss> {
    let Some((off, idx)) = area() else {
        return Err(Miss::Unregistered);
    };
    let status: u32;
    // SAFETY: as in `claim_and_load`; the caller vouches for `word`.
    unsafe {
        asm!(
            arm!("line"),
            own_line!("line", "{count}"),
            "cmp qword ptr [{flag}], {expected}",
            "jne 58f",
            "add qword ptr [{line} + {word} * 8], {n}",
            "33:",
            "xor {status:e}, {status:e}",
            "34:",
            cold!(),
            "mov {status:e}, 5",
            "jmp 34b",
            "58:",
            "mov {status:e}, 6",
            "jmp 34b",
            "66:",
            "mov {status:e}, 4",
            "jmp 34b",
            ".popsection",
            off = in(reg) off,
            idx = in(reg) idx,
            lines = in(reg) lines,
            count = in(reg) count,
            flag = in(reg) flag.as_ptr(),
            expected = in(reg) expected,
            word = in(reg) word,
            n = in(reg) n,
            line = out(reg) _,
            status = out(reg) status,
            options(nostack),
        );
    }
    if status == 0 {
        Ok(())
    } else {
        Err(miss(status, core::ptr::null(), core::ptr::null()))
    }
}

#[inline]
pub(super) fn index_hint() -> usize {
    let Some((off, idx)) = area() else {
        return NO_INDEX;
    };
    let cpu: i32;
    let index: u32;
    // SAFETY: both fields are readable words of this thread's control block
    // (the rseq area, registered or not); nothing is written.
    unsafe {
        asm!(
            "mov {cpu:e}, dword ptr fs:[{off} + 4]",
            "mov {index:e}, dword ptr fs:[{idx}]",
            off = in(reg) off,
            idx = in(reg) idx,
            cpu = out(reg) cpu,
            index = out(reg) index,
            options(nostack, readonly, preserves_flags),
        );
    }
    if cpu < 0 { NO_INDEX } else { index as usize }
}

/// `cpu_id` of the calling thread at `offset`, before sections are enabled.
pub(crate) fn cpu_id_at(offset: isize) -> i32 {
    let cpu: i32;
    // SAFETY: `offset` is the C library's `__rseq_offset`; the area belongs to
    // every thread's control block whether or not it is registered.
    unsafe {
        asm!(
            "mov {cpu:e}, dword ptr fs:[{off} + 4]",
            off = in(reg) offset,
            cpu = out(reg) cpu,
            options(nostack, readonly, preserves_flags),
        );
    }
    cpu
}
