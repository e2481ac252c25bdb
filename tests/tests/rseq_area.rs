//! What the kernel shares with every thread stays the kernel's.
//!
//! Bug log 82: only `rseq_cs` is ever written.
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

use hp::{Atomic, HazardPointer};

/// `struct rseq` without `rseq_cs`, which is ours to write.
#[derive(Debug, PartialEq)]
struct Area {
    cpu_id_start: u32,
    cpu_id: u32,
    flags: u32,
}

/// The calling thread's area, if the C library registered one.
#[cfg(target_arch = "x86_64")]
fn area() -> Option<Area> {
    // SAFETY: the names are NUL-terminated; glibc documents the two symbols
    // and the area's place; the kernel's fields are read volatile.
    unsafe {
        let offset = libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_offset".as_ptr());
        let size = libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_size".as_ptr());
        if offset.is_null() || size.is_null() || *size.cast::<u32>() == 0 {
            return None;
        }
        let thread: *const u8;
        std::arch::asm!("mov {}, fs:[0]", out(reg) thread, options(nostack, readonly));
        let area = thread.offset(*offset.cast::<isize>()).cast::<u32>();
        Some(Area {
            cpu_id_start: area.read_volatile(),
            cpu_id: area.add(1).read_volatile(),
            flags: area.add(4).read_volatile(),
        })
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn area() -> Option<Area> {
    None
}

/// Bug log 82: around a million claims the kernel's fields hold valid CPUs and
/// nothing else.
#[test]
fn report_82_only_our_field_is_written() {
    let cpus = percpu::possible_cpus() as u32;
    let Some(first) = area() else {
        eprintln!("SKIPPED: no rseq area here");
        return;
    };
    let cell = Atomic::new(7u64);
    let mut hazard = HazardPointer::new();
    for n in 0..1_000_000u32 {
        let guard = cell.load().expect("a value");
        if n % 1000 == 0 {
            hazard.protect_raw(guard.as_ptr().cast());
            let held: Vec<_> = (0..10).map(|_| cell.load()).collect();
            drop(held);
            let now = area().expect("still registered");
            assert!(now.cpu_id < cpus, "{now:?}");
            assert!(now.cpu_id_start < cpus, "{now:?}");
            assert_eq!(now.flags, first.flags, "{now:?}");
            cell.store(u64::from(n));
        }
        assert_ne!(*guard, 1);
    }
}
