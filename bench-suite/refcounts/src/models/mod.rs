//! loom models of this crate, on its own code.
//!
//! Floor 3 (`refcounts`), compiled for tests under `--cfg loom` only. Each model
//! is a tiny program around one object, whose freeing writes poison into loom's
//! cell: a use after free is a race or a wrong value. It runs in every order
//! that loom finds, on each rung that it applies to, with every assignment of
//! its roles to threads. What the barriers and sections are made of is in
//! `percpu::sim`; what loom cannot see is pinned in `percpu`'s `models::l0`.
//!
//! | module | what |
//! |---|---|
//! | `plain` | the last put, weak gets |
//! | `l12` | `rcuref`: get against last put against dead |
//! | `t17` | `rcuref`: two last puts |
//! | `l13` | `percpu_ref`: kill, switches and revival against gets and puts |
//! | `t18` | `futex_ref`: replacements against gets and puts |
//! | `lazy` | slots of lazy address spaces: exits against tear-downs |
//! | `lookups` | lookups against the wait for them |
//! | `split` | load, fold, release against replacement |

mod l12;
mod l13;
mod lazy;
mod lookups;
mod plain;
mod split;
mod t17;
mod t18;

use percpu::barrier::Rung;
use percpu::sim::Plan;
use percpu::sim::harness::Model;
use percpu::sync::UnsafeCell;

const POISON: u32 = 0xdead;

/// An object: 0 before it is initialised, [`POISON`] when freed.
struct Object(UnsafeCell<u32>);

// SAFETY: loom checks.
unsafe impl Sync for Object {}

impl Object {
    /// An initialised object.
    fn new(value: u32) -> Self {
        Self(UnsafeCell::new(value))
    }

    fn blank() -> Self {
        Self::new(0)
    }

    fn init(&self, value: u32) {
        // SAFETY: loom checks.
        self.0.with_mut(|v| unsafe { *v = value });
    }

    /// What a holder of a reference does.
    fn read(&self) {
        // SAFETY: loom checks.
        let value = self.0.with(|v| unsafe { *v });
        assert_ne!(value, POISON, "use after free");
        assert_ne!(value, 0, "use before initialisation");
    }

    fn free(&self) {
        // SAFETY: loom checks.
        self.0.with_mut(|v| unsafe {
            assert_ne!(*v, POISON, "freed twice");
            *v = POISON;
        });
    }

    /// Frees if this was the last reference.
    fn free_if(&self, last: bool) {
        if last {
            self.free();
        }
    }

    fn is_freed(&self) -> bool {
        // SAFETY: loom checks.
        self.0.with(|v| unsafe { *v == POISON })
    }
}

/// Every rung, with plans for the one that has sections.
fn on_all_rungs(model: &'static Model<impl Sized>, plans: &[&'static [Plan]]) {
    for plans in plans {
        model.check_with(Rung::Rseq, plans);
    }
    model.check_portable();
}
