//! Floor 3, bench-suite. Owns the three flavours of liburcu: the C functions of each, and its description.
//! Touches the symbols of `shim.c` only, which `build.rs` compiles once a flavour.

use super::about;
use crate::schemes::About;
use std::ffi::{c_char, c_void};
use std::fmt::Debug;

/// As large as the library's `struct rcu_head`: a link and a function.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Head([*mut c_void; 2]);

impl Head {
    pub(super) fn new() -> Self {
        Head([std::ptr::null_mut(); 2])
    }
}

/// The functions of one flavour, the table at the end of `shim.c`. See there for what each does.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Shim {
    pub(super) enter: unsafe extern "C" fn(),
    pub(super) leave: unsafe extern "C" fn(),
    pub(super) offline: unsafe extern "C" fn(),
    pub(super) online: unsafe extern "C" fn(),
    pub(super) read_batch: unsafe extern "C" fn(*const *mut c_char, usize, u64, u64) -> u64,
    pub(super) lock: unsafe extern "C" fn(*const *mut c_char) -> *mut c_void,
    pub(super) unlock: unsafe extern "C" fn(),
    pub(super) synchronize: unsafe extern "C" fn(),
    pub(super) call: unsafe extern "C" fn(*mut Head, unsafe extern "C" fn(*mut Head)),
    pub(super) barrier: unsafe extern "C" fn(),
}

unsafe extern "C" {
    safe static hpbench_memb: Shim;
    safe static hpbench_qsbr: Shim;
    safe static hpbench_bp: Shim;
}

/// One of the three.
pub(crate) trait Flavour: Debug + Send + Sync {
    /// The description of the variant.
    const ABOUT: About;

    /// Its functions.
    fn shim() -> &'static Shim;
}

/// A counter per registered thread, membarrier in the updater.
#[derive(Debug)]
pub(crate) struct Memb;

impl Flavour for Memb {
    const ABOUT: About = about(
        "liburcu-memb",
        "liburcu, flavour memb: a counter per registered thread, membarrier in the updater",
    );

    #[inline(always)]
    fn shim() -> &'static Shim {
        &hpbench_memb
    }
}

/// Announced quiescent states.
#[derive(Debug)]
pub(crate) struct Qsbr;

impl Flavour for Qsbr {
    const ABOUT: About = about(
        "liburcu-qsbr",
        "liburcu, flavour qsbr: free readers, a quiescent state announced after each operation",
    );

    #[inline(always)]
    fn shim() -> &'static Shim {
        &hpbench_qsbr
    }
}

/// Threads register themselves.
#[derive(Debug)]
pub(crate) struct Bp;

impl Flavour for Bp {
    const ABOUT: About = about(
        "liburcu-bp",
        "liburcu, flavour bp: as memb, but threads register themselves at their first read",
    );

    #[inline(always)]
    fn shim() -> &'static Shim {
        &hpbench_bp
    }
}
