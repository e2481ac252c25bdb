//! loom's stand-in for CPUs, sections and barriers.
//!
//! Floor 1 (`percpu`), compiled under `--cfg loom` only. Owns the simulated
//! machine of one model execution.
//!
//! * **Sections.** One loom mutex a CPU, held over the whole body. That gives
//!   what restartable sequences give: a body is never interleaved with another
//!   one on its CPU, while other CPUs see its loads and its store one by one,
//!   with their own orderings. The lock also stands for the full barrier of
//!   the context switch between two threads on a CPU. (Never a
//!   compare-exchange: it would carry an old holder's release, which a plain
//!   store does not, and hide the hand-over bug.)
//! * **Which CPU** a thread's n-th section runs on, and whether it is
//!   interrupted, stands in a plan that the model's author enumerates outside
//!   of `loom::model`.
//! * **Heavy barrier, rseq rung**: lock and unlock every CPU between fences, so
//!   that each section is wholly before it or wholly after it: committed, or
//!   restarted.
//! * **Heavy barrier, membarrier rung**: two-phase mailboxes. A light barrier is
//!   a read-modify-write of the thread's own box; a heavy one first publishes
//!   the caller's past to every box, then takes in everybody's. Light and heavy
//!   are ordered one way or the other, two light ones are not.
//! * **Fence rung**: the product's own sequentially consistent fences, each
//!   preceded by a relaxed read-modify-write of one shared word, because loom
//!   does not schedule between an access and a following fence.
//!
//! # Where it is stronger than the machine
//!
//! * A heavy barrier on the rseq rung walks the CPUs in order, so a section on
//!   CPU 0 before it happens before a section on CPU 1 after it. The kernel
//!   does not promise that. Models swap the CPUs of their plans for this.
//! * loom's sequentially consistent fences give happens-before; C++'s only
//!   restrict what may be read. The orderings next to a fence are therefore
//!   judged on the membarrier rung, whose light barrier is no fence.
//!
//! # Where it is weaker
//!
//! * An interrupted section gives no barrier, although its thread was switched
//!   out. A light barrier gives less than the interrupt that stands for it.

pub mod harness;

use crate::barrier::{BarrierLost, Rung};
use crate::section::Miss;
use core::any::Any;
use core::cell::{Cell, OnceCell};
use loom::sync::Mutex;
use loom::sync::atomic::{AtomicUsize, Ordering, fence};

/// One section of a plan.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// The CPU that the section runs on.
    pub cpu: usize,
    /// Whether it is interrupted before its commit.
    pub restart: bool,
}

impl Step {
    /// A section on CPU `cpu` that is not interrupted.
    pub const fn on(cpu: usize) -> Self {
        Self {
            cpu,
            restart: false,
        }
    }

    /// A section on CPU `cpu` that is interrupted.
    pub const fn cut(cpu: usize) -> Self {
        Self { cpu, restart: true }
    }
}

/// A plan: the steps of a thread's sections; the last one repeats.
pub type Plan = &'static [Step];

/// Every section on CPU 0.
pub const CPU0: Plan = &[Step::on(0)];
/// Every section on CPU 1.
pub const CPU1: Plan = &[Step::on(1)];
/// The first section is interrupted and runs again on the other CPU.
pub const MOVED: Plan = &[Step::cut(1), Step::on(0)];
/// The first section runs on CPU 0, the others on CPU 1.
pub const WANDERS: Plan = &[Step::on(0), Step::on(1)];
/// Every section is interrupted: the caller must do without.
pub const CUT: Plan = &[Step::cut(0)];

/// The simulated machine of one execution.
#[derive(Debug)]
pub struct World {
    rung: Rung,
    cpus: Vec<Mutex<()>>,
    mail: Vec<AtomicUsize>,
    steps: AtomicUsize,
    /// What stands for the statics of the crate above. (Not loom's own statics:
    /// whoever meets one later learns what its maker did before, which would
    /// hide missing orderings.)
    statics: OnceCell<Box<dyn Any>>,
    /// No role is under way.
    alone: Cell<bool>,
}

// SAFETY: loom runs one thread at a time, and all of them on one of the system's.
unsafe impl Send for World {}
// SAFETY: as above.
unsafe impl Sync for World {}

#[derive(Clone, Copy)]
struct Here {
    world: *const World,
    me: usize,
    plan: Plan,
    at: usize,
}

loom::thread_local! {
    static HERE: Cell<Option<Here>> = Cell::new(None);
}

impl World {
    /// A machine with `threads` threads on two CPUs.
    pub fn new(rung: Rung, threads: usize) -> Self {
        Self {
            rung,
            cpus: (0..crate::line::MAX_LINES)
                .map(|_| Mutex::new(()))
                .collect(),
            mail: (0..threads).map(|_| AtomicUsize::new(0)).collect(),
            steps: AtomicUsize::new(0),
            statics: OnceCell::new(),
            alone: Cell::new(true),
        }
    }

    /// Makes the calling loom thread thread `me` of this machine. The plan's
    /// last step repeats. The machine must outlive the thread's last call.
    pub fn enter(&self, me: usize, plan: Plan) {
        HERE.with(|here| {
            here.set(Some(Here {
                world: self,
                me,
                plan,
                at: 0,
            }));
        });
    }
}

/// Which thread of the model this is, and whether the roles are under way.
pub fn place() -> (usize, bool) {
    let (here, world) = here();
    (here.me, !world.alone.get())
}

fn here() -> (Here, &'static World) {
    let here = HERE
        .with(Cell::get)
        .expect("the model's thread has not entered a world");
    // SAFETY: `enter`'s contract: the machine outlives the thread's calls.
    (here, unsafe { &*here.world })
}

/// What stands for a crate's statics in this execution; made by `make` when it
/// is first asked for, which should be before threads are started.
///
/// # Panics
///
/// If it was asked for as another type before.
pub fn statics<T: 'static>(make: impl FnOnce() -> T) -> &'static T {
    let made = here().1.statics.get_or_init(|| Box::new(make()));
    made.downcast_ref().expect("one type of statics")
}

/// The model's rung.
pub fn rung() -> Rung {
    here().1.rung
}

/// The relaxed step before a sequentially consistent fence.
pub(crate) fn fence_step() {
    here().1.steps.fetch_add(1, Ordering::Relaxed);
}

/// The reader's half of the pair.
pub fn light() {
    let (here, world) = here();
    match world.rung {
        Rung::Fence => crate::barrier::fence::light(),
        Rung::Membarrier | Rung::Rseq => {
            world.mail[here.me].fetch_add(1, Ordering::AcqRel);
        }
    }
}

/// The model's rung, which is decided from the start.
pub fn decided() -> Option<Rung> {
    Some(rung())
}

/// The reader's half of the pair.
pub fn light_on(_: Rung) {
    light();
}

/// The reclaimer's half of the pair. Never refused.
pub fn heavy() -> Result<(), BarrierLost> {
    let (here, world) = here();
    if world.rung == Rung::Fence {
        crate::barrier::fence::heavy();
        return Ok(());
    }
    fence(Ordering::SeqCst);
    for (n, mail) in world.mail.iter().enumerate() {
        if n != here.me {
            mail.fetch_add(1, Ordering::Release);
        }
    }
    if world.rung == Rung::Rseq {
        for cpu in &world.cpus {
            drop(cpu.lock().unwrap());
        }
    }
    fence(Ordering::Acquire);
    fence(Ordering::SeqCst);
    Ok(())
}

/// Runs a section's body on the CPU that the plan says.
pub(crate) fn section<R>(body: impl FnOnce(usize) -> Result<R, Miss>) -> Result<R, Miss> {
    let (mut here, world) = here();
    if world.rung != Rung::Rseq {
        return Err(Miss::Unregistered);
    }
    let step = here.plan[here.at.min(here.plan.len() - 1)];
    here.at += 1;
    HERE.with(|cell| cell.set(Some(here)));
    if step.restart {
        return Err(Miss::Restarted);
    }
    let _running = world.cpus[step.cpu].lock().unwrap();
    body(step.cpu)
}

/// What a wait loop does when it has looked in vain.
///
/// The rest of this execution is not varied any more. A loop that only reads
/// may as well have looked later, and that execution is explored by itself, so
/// nothing unsafe is missed; without this, waits make models endless. (Loops
/// that write as they wait must not use it.)
pub fn looked_in_vain() {
    loom::skip_branch();
    loom::thread::yield_now();
}

/// Whether sections run in this model.
pub(crate) fn index() -> usize {
    let (here, world) = here();
    match world.rung {
        Rung::Rseq => here.plan[here.at.min(here.plan.len() - 1)].cpu,
        _ => crate::section::NO_INDEX,
    }
}
