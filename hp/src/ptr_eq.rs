//! Comparing pointers without telling the optimiser that they are the same.
//!
//! Floor 2 (`hp`); touches nothing.
//!
//! After a plain `a == b` a compiler may use `a` where the program says `b`.
//! Then an access through `b` no longer depends on the load that produced `b`:
//! it may be issued before that load (address dependencies order loads on
//! every machine but Alpha; branches do not), and it carries `a`'s provenance
//! instead of `b`'s. In the re-check of a hazard pointer `a` is the first,
//! unprotected load — exactly the value that must not be used.
//!
//! [`ptr_eq`] compares hidden copies, so the answer says nothing about the
//! values that the caller goes on with. It costs no instruction beyond the
//! comparison. With loads of `Acquire` strength the *ordering* half of the
//! problem does not arise; the provenance half does.
//!
//! Source: the kernel's `ptr_eq()` proposal (Desnoyers, 2024) and its
//! `rcu_dereference` rules.

/// A copy of `p` about which the optimiser knows nothing.
///
/// On targets without inline assembly (and under Miri) this is
/// [`core::hint::black_box`], which is best effort by contract.
#[inline(always)]
#[must_use]
pub fn hide<T: ?Sized>(p: *const T) -> *const () {
    #[allow(unused_mut)]
    let mut thin = p.cast::<()>();
    #[cfg(all(
        any(
            target_arch = "x86_64",
            target_arch = "x86",
            target_arch = "aarch64",
            target_arch = "arm",
            target_arch = "riscv64",
        ),
        not(miri)
    ))]
    // The pointer is a value here, nothing is read through it.
    #[allow(clippy::pointers_in_nomem_asm_block)]
    // SAFETY: the template is empty; it reads and writes the register only.
    unsafe {
        core::arch::asm!("/* {0} */", inout(reg) thin, options(pure, nomem, nostack, preserves_flags));
    }
    #[cfg(any(
        not(any(
            target_arch = "x86_64",
            target_arch = "x86",
            target_arch = "aarch64",
            target_arch = "arm",
            target_arch = "riscv64",
        )),
        miri
    ))]
    {
        thin = core::hint::black_box(thin);
    }
    thin
}

/// Whether two pointers hold the same address, without letting the optimiser
/// substitute one for the other afterwards.
///
/// Wide pointers are compared by address alone.
///
/// # Example
///
/// ```
/// # use std::sync::atomic::{AtomicPtr, Ordering::*};
/// let mut value = 5;
/// let src = AtomicPtr::new(&raw mut value);
/// let first = src.load(Relaxed);
/// // … publish `first`, light barrier …
/// let second = src.load(Relaxed);
/// if hp::ptr_eq(first, second) {
///     // goes through `second`, whose load it depends on
///     assert_eq!(unsafe { *second }, 5);
/// }
/// ```
#[inline(always)]
#[must_use]
pub fn ptr_eq<T: ?Sized>(a: *const T, b: *const T) -> bool {
    hide(a) == hide(b)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn equality_is_equality_of_addresses() {
        let xs = [1u8, 2, 3];
        assert!(ptr_eq(&raw const xs[0], xs.as_ptr()));
        assert!(!ptr_eq(&raw const xs[0], &raw const xs[1]));
        assert!(ptr_eq::<u8>(core::ptr::null(), core::ptr::null()));
        let (short, long): (*const [u8], *const [u8]) = (&raw const xs[..1], &raw const xs[..]);
        assert!(ptr_eq(short, long), "wide pointers: by address");
    }
}
