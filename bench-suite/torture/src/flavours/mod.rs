//! What is tortured: one file a flavour, one line each in [`all`].
//!
//! Floor 3. Owns the trait that the threads of a run call, and the registry.

mod control;
mod hp;
mod hp_held;
mod rcu;

use crate::failure::Sign;
use crate::plan::{Dimension, Plan};
use crate::report::{Progress, Report};
use crate::run::run;
use crate::world::{Element, World};
use control::*;

/// A protection that another thread may release, by dropping it.
pub(crate) struct Parcel {
    pub(crate) element: &'static Element,
    pub(crate) hold: Box<dyn Send>,
}

/// A scheme, as readers and writers use it. It publishes one element at a time.
pub(crate) trait Flavour: Send + Sync + Sized + 'static {
    /// What a reader thread keeps.
    type Thread;

    /// Ways of protecting, for [`inside`](Self::inside); at most 8.
    const READS: &'static [&'static str];
    /// Ways of reclaiming, for [`update`](Self::update); at most 8.
    const UPDATES: &'static [&'static str];
    /// Dimensions that it has no use for, and why.
    const WITHOUT: &'static [(Dimension, &'static str)] = &[];

    fn new(world: &'static World) -> Self;

    /// Called by each reader thread.
    fn begin(&self) -> Self::Thread;

    /// Calls `visit` with what is published, if anything is, while it is
    /// protected in the `how`th way.
    fn inside(
        &self,
        thread: &mut Self::Thread,
        how: usize,
        visit: &mut dyn FnMut(&'static Element),
    );

    /// The same with `count` protections at once.
    fn many(
        &self,
        thread: &mut Self::Thread,
        count: usize,
        visit: &mut dyn FnMut(&[&'static Element]),
    );

    /// Runs `f`, which blocks, while nothing is protected.
    fn outside(&self, _: &mut Self::Thread, f: &mut dyn FnMut()) {
        f();
    }

    /// A protection for another thread.
    fn parcel(&self, _: &mut Self::Thread) -> Option<Parcel>;

    /// As [`inside`](Self::inside), in a handler that interrupts a reader
    /// wherever it is. Async-signal-safe.
    fn in_handler(&self, visit: &mut dyn FnMut(&'static Element));

    /// Publishes `element`, takes the old one out ([`World::unlinked`]), and has
    /// it reclaimed ([`World::reclaimed`]) in the `how`th way, now or later.
    fn update(&self, element: &'static Element, how: usize);

    /// Reclaims what can be reclaimed now.
    fn flush(&self);

    /// Takes the last element out, and has it reclaimed. (No reader is left.)
    fn finish(&self);

    /// What the scheme counts.
    fn facts(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}

/// Runs a plan; see [`About::run`].
type Runner = fn(Plan, &dyn Fn() -> bool, &mut dyn FnMut(Progress)) -> Report;

/// A flavour.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a line.
    pub what: &'static str,
    /// What is wrong with it: what must show it, and how it may show. Nothing
    /// for what is really tested.
    pub fault: Option<Fault>,
    run: Runner,
}

/// A planted fault.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// The dimension without which nothing is wrong; any, if there is none.
    pub needs: Option<Dimension>,
    /// How it may show.
    pub signs: &'static [Sign],
}

impl About {
    /// Runs `plan`, until its time is over, something is wrong, or `stop` says
    /// so (it is asked ten times a second). Calls `tell` once a second.
    #[must_use]
    pub fn run(
        &self,
        plan: Plan,
        stop: &dyn Fn() -> bool,
        tell: &mut dyn FnMut(Progress),
    ) -> Report {
        (self.run)(plan, stop, tell)
    }
}

macro_rules! about {
    ($name:literal, $what:literal, $type:ty) => {
        about!(@ $name, $what, $type, None)
    };
    ($name:literal, $what:literal, $type:ty, $needs:expr, $signs:expr) => {
        about!(@ $name, $what, $type, Some(Fault { needs: $needs, signs: $signs }))
    };
    (@ $name:literal, $what:literal, $type:ty, $fault:expr) => {
        About {
            name: $name,
            what: $what,
            fault: $fault,
            run: |plan, stop, tell| run::<$type>($name, plan, stop, tell),
        }
    };
}

/// What a reader that holds a reclaimed element may see first.
const HELD: &[Sign] = &[Sign::TooOld, Sign::Unstamped, Sign::Changed, Sign::Poisoned];

static ALL: &[About] = &[
    about!("hp", "hp's guards: load, detach, clone, map, send", hp::Hp),
    about!(
        "hp-held",
        "hp's slots that are held: protect, try_protect, protect_raw",
        hp_held::HpHeld
    ),
    about!("rcu", "rcu-lite's Rcu", rcu::Of<&'static ::rcu_lite::Rcu>),
    about!(
        "rcu-thread",
        "rcu-lite's ThreadRcu",
        rcu::Of<::rcu_lite::ThreadRcu>
    ),
    about!(
        "rcu-qsbr",
        "rcu-lite's QsbrRcu",
        rcu::Of<::rcu_lite::QsbrRcu>
    ),
    about!(
        "control",
        "counts on elements that are never freed: slow, and right",
        Control<NONE>
    ),
    about!(
        "broken-wait",
        "the writer does not wait",
        Control<WAIT>,
        None,
        HELD
    ),
    about!(
        "broken-sleep",
        "the writer waits two milliseconds at most",
        Control<SLEEP>,
        Some(Dimension::Sleep),
        HELD
    ),
    about!(
        "broken-handover",
        "what is sent is protected no more",
        Control<HANDOVER>,
        Some(Dimension::Handover),
        HELD
    ),
    about!(
        "broken-signal",
        "a handler releases what it interrupts",
        Control<SIGNAL>,
        Some(Dimension::Signal),
        HELD
    ),
    about!(
        "broken-validate",
        "what was published is not looked at again",
        Control<VALIDATE>,
        Some(Dimension::Overcommit),
        HELD
    ),
    about!(
        "broken-claim",
        "a slot of the CPU is claimed in two steps",
        Control<CLAIM>,
        Some(Dimension::Affinity),
        HELD
    ),
    about!(
        "broken-churn",
        "threads beyond the first ones are overlooked",
        Control<CHURN>,
        Some(Dimension::Churn),
        HELD
    ),
    about!(
        "broken-stutter",
        "a thread that has done nothing for a while is overlooked once",
        Control<STUTTER>,
        Some(Dimension::Stutter),
        HELD
    ),
    about!(
        "broken-starve",
        "a ninth protection protects nothing",
        Control<STARVE>,
        Some(Dimension::Starve),
        HELD
    ),
    about!(
        "broken-cookie",
        "a grace period that began before the unlinking",
        rcu::Of<&'static ::rcu_lite::Rcu, true>,
        None,
        HELD
    ),
    about!(
        "broken-leak",
        "some elements are forgotten",
        Control<LEAK>,
        None,
        &[Sign::Lost]
    ),
    about!(
        "broken-twice",
        "some elements are reclaimed twice",
        Control<TWICE>,
        None,
        &[Sign::Twice]
    ),
    about!(
        "broken-hang",
        "some protections are never released",
        Control<HANG>,
        None,
        &[Sign::Hung]
    ),
];

/// All flavours; those with a planted fault last.
#[must_use]
pub fn all() -> &'static [About] {
    ALL
}

/// The one of that name.
#[must_use]
pub fn find(name: &str) -> Option<&'static About> {
    ALL.iter().find(|about| about.name == name)
}
