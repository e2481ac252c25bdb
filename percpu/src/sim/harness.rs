//! Runs a model: every assignment of its roles to threads.
//!
//! Floor 1 (`percpu`), compiled under `--cfg loom` only; `hp` and `rcu-lite`
//! use it for their models. Owns the order in which roles are spawned, and
//! the count of iterations.
//!
//! loom remembers only the last access to a word when it looks for orders to
//! explore, and so misses executions depending on which thread was spawned
//! first (the canary `l0::one_access_is_remembered`). Running every
//! permutation of the roles over {main, first spawned, second spawned, …} is
//! the remedy that needs no change of loom.

use super::{CPU0, Plan, World};
use crate::barrier::Rung;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// A small program.
#[derive(Debug)]
pub struct Model<S: 'static> {
    /// What is printed.
    pub name: &'static str,
    /// The rung it runs on.
    pub rung: Rung,
    /// The plan of each role's sections.
    pub plans: &'static [Plan],
    /// Makes the shared state; as role 0 on CPU 0, before any thread exists.
    pub setup: fn() -> S,
    /// What runs at the same time, one thread each.
    pub roles: &'static [fn(&S)],
    /// Runs when all have finished; as role 0 on CPU 0.
    pub after: fn(&S),
}

struct Shared<S> {
    state: S,
    world: World,
}

// SAFETY: loom runs one thread at a time. A part of the state that is not
// `Sync` (a thread's handle) is touched by one role, or by roles whose order
// the model itself establishes.
unsafe impl<S> Send for Shared<S> {}
// SAFETY: as above.
unsafe impl<S> Sync for Shared<S> {}

/// Says which run failed, also where only the panic is shown.
struct Running<'a> {
    name: &'a str,
    rung: Rung,
    plans: &'a [Plan],
    order: &'a [usize],
    iterations: &'a Mutex<u64>,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let n = *self.iterations.lock().unwrap_or_else(|e| e.into_inner());
            eprintln!(
                "model {} failed: rung {}, roles to threads {:?}, plans {:?}, iteration {n}",
                self.name, self.rung, self.order, self.plans
            );
        }
    }
}

impl<S: 'static> Model<S> {
    /// Runs every interleaving that loom finds, for every order of the roles.
    ///
    /// # Panics
    ///
    /// If a role panics in one of them, or the environment limits loom (which
    /// then stops early and reports success).
    pub fn check(&'static self) {
        self.run(self.rung, self.plans, None);
    }

    /// [`check`](Self::check) on another rung and with other plans.
    pub fn check_with(&'static self, rung: Rung, plans: &'static [Plan]) {
        self.run(rung, plans, None);
    }

    /// [`check`](Self::check) on the rungs without sections.
    pub fn check_portable(&'static self) {
        for rung in [Rung::Membarrier, Rung::Fence] {
            self.run(rung, self.plans, None);
        }
    }

    /// [`check`](Self::check) for a program that is too large: only executions
    /// with at most `bound` preemptions. A search, no exhaustion; says so.
    pub fn search(&'static self, bound: usize) {
        self.run(self.rung, self.plans, Some(bound));
    }

    fn run(&'static self, rung: Rung, plans: &'static [Plan], bound: Option<usize>) {
        self.run_prepared(rung, plans, bound, || ());
    }

    /// The same; `prepare` runs before `setup`, for a crate's statics
    /// ([`statics`](super::statics)).
    pub fn run_prepared(
        &'static self,
        rung: Rung,
        plans: &'static [Plan],
        bound: Option<usize>,
        prepare: fn(),
    ) {
        assert_unlimited();
        assert_eq!(
            plans.len(),
            self.roles.len(),
            "{}: one plan for each role",
            self.name
        );
        let started = Instant::now();
        let iterations = Arc::new(Mutex::new(0));
        let orders = permutations(self.roles.len());
        for order in &orders {
            let _running = Running {
                name: self.name,
                rung,
                plans,
                order,
                iterations: &iterations,
            };
            let (count, order) = (Arc::clone(&iterations), order.clone());
            let mut builder = loom::model::Builder::new();
            builder.preemption_bound = bound;
            builder.check(move || {
                *count.lock().unwrap() += 1;
                self.once(rung, plans, &order, prepare);
            });
        }
        let iterations = *iterations.lock().unwrap();
        println!(
            "{:<46} {rung:<10} {:>2} orders {iterations:>7} iterations {:>6.2} s  {}{}",
            self.name,
            orders.len(),
            started.elapsed().as_secs_f32(),
            if rung == Rung::Rseq {
                describe(plans)
            } else {
                String::new()
            },
            bound.map_or(String::new(), |n| format!("  AT MOST {n} PREEMPTIONS")),
        );
    }

    /// One execution. `order[0]` runs here, the others are spawned in order.
    fn once(&'static self, rung: Rung, plans: &'static [Plan], order: &[usize], prepare: fn()) {
        let world = World::new(rung, self.roles.len());
        world.enter(0, CPU0);
        prepare();
        let shared = Arc::new(Shared {
            state: (self.setup)(),
            world,
        });
        shared.world.alone.set(false);
        let start = |role: usize| {
            let shared = Arc::clone(&shared);
            move || {
                shared.world.enter(role, plans[role]);
                self.roles[role](&shared.state);
            }
        };
        let spawned: Vec<_> = order[1..]
            .iter()
            .map(|&role| loom::thread::spawn(start(role)))
            .collect();
        start(order[0])();
        for thread in spawned {
            thread.join().unwrap();
        }
        shared.world.alone.set(true);
        shared.world.enter(0, CPU0);
        (self.after)(&shared.state);
    }
}

/// Fails if loom is limited from outside.
pub fn assert_unlimited() {
    for (name, _) in std::env::vars() {
        assert!(
            !name.starts_with("LOOM_MAX") && name != "LOOM_CHECKPOINT_FILE",
            "{name} is set: loom would stop early and report success"
        );
    }
}

fn describe(plans: &[Plan]) -> String {
    let plan = |plan: &Plan| -> String {
        plan.iter()
            .map(|step| format!("{}{}", step.cpu, if step.restart { "!" } else { "" }))
            .collect::<Vec<_>>()
            .join(",")
    };
    format!(
        "CPUs {}",
        plans.iter().map(plan).collect::<Vec<_>>().join(" | ")
    )
}

fn permutations(n: usize) -> Vec<Vec<usize>> {
    if n == 0 {
        return vec![vec![]];
    }
    let mut all = vec![];
    for shorter in permutations(n - 1) {
        for place in 0..n {
            let mut order = shorter.clone();
            order.insert(place, n - 1);
            all.push(order);
        }
    }
    all
}
